#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]

mod client_link;
mod driver;
mod error;
pub mod frames;
mod gso;
mod inner;
mod path_stats;
mod quota;
pub mod secrets;
mod server;
mod server_link;
mod services;
mod socket;
mod station;
mod status;

pub use anabranch_carrier::{PublicKey, files};
pub use client_link::{ClientLink, SessionSettings, path_of};
pub use driver::{Driver, Link, LinkEvent, MakeStation};
pub use error::{LinkError, PeerError};
pub use inner::{EcnMarks, HEADERS};
pub use path_stats::PathStats;
pub use quota::{Quota, Reservation};
pub use server::Server;
pub use server_link::ServerLink;
pub use services::{ClientService, Service};
pub use socket::{Socket, raise_file_limit};
pub use station::{Engine, Station};
pub use status::{ClientStatus, PathState, Status, StatusSocket, read_status};
