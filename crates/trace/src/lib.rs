//! What happened in a run: one enum of events, and recorders that listen.
//!
//! Every metric, capture and chart is a fold over these events, in virtual and in real time alike.

mod event;
mod pcapng;
mod recorder;

pub use event::{
    CloseReason, DropCause, Event, LinkEvent, PathState, RecoveryPhase, SendKind, Violation, WindowChange,
};
pub use pcapng::PcapNg;
pub use recorder::{Origin, Recorder, Tee};
