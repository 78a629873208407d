#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod capture;
mod clock;
mod delays;
mod error;
mod exchange;
pub mod interrupt;
pub mod kernel;
mod lateness;
mod middlebox;
mod namespace;
pub mod preflight;
mod priority;
pub mod privilege;
pub mod probe;
mod readiness;
mod real_time;
mod seen;
pub mod shell;
pub mod tool;
mod train;
mod tun;

pub use capture::Capture;
pub use clock::Clock;
pub use delays::Delays;
pub use error::LabError;
pub use exchange::{Ended, Exchange, Outside};
pub use lateness::{Lateness, LatenessReport};
pub use middlebox::{InOut, Middlebox};
pub use namespace::Namespace;
pub use readiness::LINUX_SCHEDULER;
pub use real_time::RealTime;
pub use seen::{Known, Seen};
pub use tun::Tun;
