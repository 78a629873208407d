//! Runs over real links: the server sends what a scenario says, the client receives it, and both record events, of which the
//! metrics of every run are made. docs/measure.md has the messages between them. Linux only.

#![cfg(target_os = "linux")]

mod desk;
mod message;
mod order;
mod real;
mod record;
mod running;
mod service;
mod session;
mod setup;
mod sight;
mod survey;
mod tally;
mod tape;

pub use desk::read_messages;
pub use real::RealLinks;
pub use record::{Capacity, PathRecord, is_recordable};
pub use service::MeasurementService;
pub use session::{Idle, Session, path_names};
pub use setup::{MSS, overhead};
pub use survey::PathSurvey;
