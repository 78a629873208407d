//! Runs over real links: the server sends what a scenario says, the client receives it, and both record events, of which the
//! metrics of every run are made. docs/measure.md has the messages between them.

mod desk;
mod message;
mod order;
mod real;
mod record;
mod running;
mod session;
mod setup;
mod sight;
mod survey;
mod tally;
mod tape;

pub(crate) use desk::Desk;
pub use desk::read_messages;
pub use real::RealLinks;
pub use record::{Capacity, PathRecord, is_recordable};
pub use session::{Idle, Reach, Session, path_names};
pub(crate) use setup::HEADERS;
pub use setup::{MSS, overhead};
pub use survey::PathSurvey;
pub(crate) use tally::PathTally;
