//! What applications do, sans-IO: [`Workload`]s at the ends of a connection, and [`PacketSource`]s that send datagrams
//! past all congestion control.

mod bulk;
mod datagrams;
mod frames;
pub mod pattern;
mod poisson;
mod sizes;
mod workload;

pub use bulk::{BulkSink, BulkSource, Duplex};
pub use datagrams::{ConstantRate, Datagram, OnOff, OnOffSpec, PacketSource};
pub use frames::FrameSource;
pub use poisson::PoissonSource;
pub use sizes::PacketSizes;
pub use workload::{Fault, Stream, Workload};
