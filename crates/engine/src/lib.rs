#![doc = include_str!("../README.md")]

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
