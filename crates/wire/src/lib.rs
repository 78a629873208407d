#![doc = include_str!("../README.md")]

mod checksum;
mod coalesce;
pub mod crypto;
mod display;
mod ecn;
mod emit;
mod five_tuple;
mod icmp;
mod mptcp;
mod mptcp_codec;
mod options;
mod options_codec;
mod packet;
mod parse;
mod segment;
mod vnet;

pub use checksum::{ChecksumAccumulator, dss_checksum};
pub use ecn::Ecn;
pub use five_tuple::FiveTuple;
pub use icmp::too_big;
pub use mptcp::{AddAddr, DataAck, Dss, Mapping, MpCapable, MpJoin, MptcpOption, Reason};
pub use options::{MAX_OPTIONS, Options, SackBlock, Timestamps};
pub use packet::Packet;
pub use parse::ParseError;
pub use segment::{Flags, Segment};
pub use vnet::{Gso, GsoKind, VnetHeader};
