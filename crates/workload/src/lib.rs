#![doc = include_str!("../README.md")]

pub mod abr;
mod arrivals;
mod bulk;
mod call;
mod datagrams;
mod frames;
mod halves;
mod ladder;
mod objects;
pub mod pattern;
#[cfg(test)]
mod pipe;
mod poisson;
mod request;
mod sizes;
mod video;
mod workload;

pub use arrivals::poisson;
pub use bulk::{BulkSink, BulkSource, Duplex};
pub use call::{Call, Video};
pub use datagrams::{ConstantRate, Datagram, OnOff, OnOffSpec, PacketSource};
pub use frames::FrameSource;
pub use ladder::Ladder;
pub use objects::Objects;
pub use poisson::PoissonSource;
pub use request::{Exchange, REQUEST_BYTES, RequestClient, ResponseServer};
pub use sizes::PacketSizes;
pub use video::{VideoClient, VideoStream};
pub use workload::{Fault, Stream, Workload};
