//! Multipath TCP over real links: the [carrier](anabranch_carrier) over UDP sockets, and the driver that runs the engine over it
//! in real time. Linux only.

#![cfg(target_os = "linux")]

mod client;
mod driver;
mod error;
mod far;
mod frames;
mod inner;
pub mod measure;
mod memory;
pub mod native;
mod outbox;
pub mod proxy;
pub mod secrets;
mod serve;
mod server;
mod socket;
mod station;
mod status;

pub use anabranch_carrier::{PublicKey, files};
pub use client::ClientLink;
pub use driver::{Driver, Incoming, Link, Make};
pub use error::{LinkError, Unmet};
pub use inner::Marks;
pub use ipnet::IpNet;
pub use serve::{Host, Services};
pub use server::ServerLink;
pub use socket::{Socket, raise_file_limit};
pub use station::{Engine, Station};
pub use status::{ClientStatus, PathState, Status, Window, read_status};
