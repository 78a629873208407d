//! TCP segments with Multipath TCP options, as values: what the wire can carry and nothing else.

mod mptcp;
mod options;
mod packet;
mod segment;

pub use mptcp::{AddAddr, DataAck, Dss, Mapping, MpCapable, MpJoin, MptcpOption, Reason};
pub use options::{MAX_OPTIONS, Options, SackBlock, Timestamps};
pub use packet::Packet;
pub use segment::{Flags, Segment};
