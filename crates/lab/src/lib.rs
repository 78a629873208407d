//! Real time: the same world as in virtual time, run in real time, with the Linux kernel at either end or both.
//!
//! A kernel host is a network namespace with one TUN device per path. Packets that it sends enter the world's network;
//! packets that the network delivers to it are written to the device. Namespaces have no name: they vanish with this
//! process, however it ends, with everything in them.

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
