//! The quantities of the field: time, rates, sequence numbers, sets of byte ranges, identifiers, named random streams.
//!
//! Everything is an integer; nothing here reads a clock.

mod id;
mod range_set;
mod rate;
mod rng;
mod row;
mod seq;
mod time;

pub use id::{ConnId, Direction, PathId, Side};
pub use range_set::{Range, RangeSet};
pub use rate::Rate;
pub use rng::Rng;
pub use seq::{DataSeq, SeqNumber};
pub use time::{Duration, Instant};
