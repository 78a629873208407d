//! What applications do, sans-IO: [`Workload`]s at the ends of a connection, and [`PacketSource`]s that send datagrams
//! past all congestion control.

mod bulk;
mod datagrams;
pub mod pattern;
mod workload;

pub use bulk::{BulkSink, BulkSource, Duplex};
pub use datagrams::{ConstantRate, Datagram, OnOff, OnOffSpec, PacketSource};
pub use workload::{Fault, Stream, Workload};
