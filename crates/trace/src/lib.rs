//! The events of a run: one enum, and the recorders that receive it.
//!
//! Every metric, capture and chart is a fold over these events, in virtual and in real time alike.

mod decision;
mod digest;
mod event;
mod held;
mod jsonl;
mod name;
mod pcapng;
mod recorder;
mod series;
mod timeline;
mod timeline_recorder;

pub use decision::{Decision, DecisionLog, Decisions, Outcome, SeenPath};
pub use digest::Digest;
pub use event::{
    CloseReason, DropCause, Event, LinkEvent, PathState, RecoveryPhase, SchedulerName, SendKind, Violation,
    WindowChange, value_name,
};
pub use held::Held;
pub use jsonl::JsonLines;
pub use name::Name;
pub use pcapng::PcapNg;
pub use recorder::{Origin, Recorder, Tee};
pub use series::{Column, Series, SeriesRecorder};
pub use timeline::{Fate, Timeline, TimelinePacket};
pub use timeline_recorder::TimelineRecorder;
