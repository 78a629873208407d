//! A sans-IO Multipath TCP endpoint: RFC 8684 over RFC 9293.
//!
//! No socket, no clock, no thread: time is an argument. The engine defines what a packet scheduler and a congestion
//! control are ([`Scheduler`], [`CongestionControl`]) and knows no implementation of either.

mod accounting;
mod blocks;
mod capacity;
pub mod congestion;
pub mod connection;
mod cx;
mod deadlines;
pub mod endpoint;
mod ensemble;
mod four_tuple;
mod mode;
mod path;
mod paths;
mod peer_stream;
mod pieces;
pub mod plugin;
mod reasons;
mod receiving;
pub mod schedule;
mod sending;
mod session;
mod settings;
mod slots;
mod subflow;

pub use accounting::packet_memory;
pub use congestion::CongestionControl;
pub use cx::Cx;
pub use four_tuple::FourTuple;
pub use schedule::Scheduler;
pub use settings::{
    AckCounting, BufferAccounting, DssWidth, FirstPath, HostModel, InitialThreshold, LimitedDecay, ReceiveWindow,
    RecoveryKind, RtoForm, Settings, TcpSettings,
};
pub use subflow::{Move, State};
