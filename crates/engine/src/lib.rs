//! A sans-IO Multipath TCP endpoint: RFC 8684 over RFC 9293.
//!
//! No socket, no clock, no thread: time is an argument. What a packet scheduler and a congestion control are
//! ([`Scheduler`], [`CongestionControl`]) is defined in `anabranch_plugin`; the engine knows no implementation of either.

mod account;
mod accounting;
pub mod connection;
mod cx;
mod deadlines;
pub mod endpoint;
mod four_tuple;
mod mode;
mod paths;
mod peer_stream;
mod pieces;
mod reasons;
mod receiving;
mod sending;
mod session;
mod settings;
mod slots;
mod subflow;

pub use anabranch_plugin::{CongestionControl, Scheduler, congestion, schedule};

pub use accounting::packet_memory;
pub use cx::Cx;
pub use four_tuple::FourTuple;
pub use settings::{
    AckCounting, BufferAccounting, DssWidth, FirstPath, HostModel, InitialThreshold, LimitedDecay, ReceiveWindow,
    RecoveryKind, RtoForm, Settings, TcpSettings,
};
pub use subflow::{Move, State};
