#![doc = include_str!("../README.md")]

mod decision;
mod digest;
mod drops;
mod event;
mod held;
mod jsonl;
mod recorder;

pub use anabranch_units::{Name, RecoveryPhase, SchedulerName, SendKind, value_name};
pub use decision::{Decision, DecisionLog, Decisions, Outcome, SeenPath};
pub use digest::Digest;
pub use drops::Drops;
pub use event::{CloseReason, DropCause, Event, LinkEvent, PathState, Violation, WindowChange};
pub use held::Held;
pub use jsonl::JsonLines;
pub use recorder::{Origin, Recorder, Tee};
