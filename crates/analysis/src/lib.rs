#![doc = include_str!("../README.md")]

mod analyse;
mod connection;
mod frames;
mod result;
mod words;

pub use analyse::analyse;
pub use connection::{Fate, Signal, Tally, Times};
pub use frames::{Bytes, Capture, CaptureInfo, Fault, FaultKind, Skipped};
pub use result::{
    Analysis, Blocked, Cause, Connection, Event, Fallback, JoinFailure, Near, OneWay, OutOfOrder, Outage, Protocol,
    Stream, Subflow, Waited,
};
