#![doc = include_str!("../README.md")]

mod blocks;
mod frames;
mod id;
#[cfg(feature = "serde")]
mod name;
mod playback;
mod range_set;
mod rate;
mod rng;
mod row;
mod seq;
mod term;
mod time;

pub use blocks::{At, Blocks};
pub use frames::FramePattern;
pub use id::{ConnId, Direction, PathId, Side, TrafficDirection};
#[cfg(feature = "serde")]
pub use name::deserialize_name;
pub use playback::{Playback, PlaybackRule, PlaybackTotals};
pub use range_set::{Range, RangeSet};
pub use rate::Rate;
pub use rng::Rng;
pub use seq::{DataSeq, SeqNumber};
pub use term::{Name, RecoveryPhase, SchedulerName, SendKind, value_name};
pub use time::{Duration, Instant};
