//! The events of a run: one enum, the trait of its recorders, the digest, JSON lines.
//!
//! Every metric, capture and chart is a fold over these events, in virtual and in real time alike. Captures, series
//! and timelines are in the crate `recorders`; a recorder that must name every event is here.

mod decision;
mod digest;
mod event;
mod held;
mod jsonl;
mod recorder;

pub use anabranch_units::{Name, RecoveryPhase, SchedulerName, SendKind, value_name};
pub use decision::{Decision, DecisionLog, Decisions, Outcome, SeenPath};
pub use digest::Digest;
pub use event::{CloseReason, DropCause, Event, LinkEvent, PathState, Violation, WindowChange};
pub use held::Held;
pub use jsonl::JsonLines;
pub use recorder::{Origin, Recorder, Tee};
