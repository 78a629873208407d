#![doc = include_str!("../README.md")]

mod capacity;
pub mod congestion;
pub mod ensemble;
mod path;
pub mod registry;
pub mod schedule;

pub use congestion::CongestionControl;
pub use schedule::Scheduler;
