//! Multipath TCP over real links: the [carrier](anabranch_carrier) over UDP sockets, keys in files, the driver that runs engines over a
//! link in real time, and the server that gives its clients services. Linux only.
//!
//! What the services are is not known here: `proxy` and `measure` are two of them.

#![cfg(target_os = "linux")]

mod client;
mod driver;
mod error;
pub mod frames;
mod host;
mod inner;
mod memory;
mod outbox;
pub mod secrets;
mod server;
mod services;
mod socket;
mod station;
mod status;
mod tally;

pub use anabranch_carrier::{PublicKey, files};
pub use client::{ClientLink, Reach, path_of};
pub use driver::{Driver, Incoming, Link, Make};
pub use error::{LinkError, Unmet};
pub use host::Host;
pub use inner::{HEADERS, Marks};
pub use memory::{Memory, Share};
pub use server::ServerLink;
pub use services::{ClientService, Service};
pub use socket::{Socket, raise_file_limit};
pub use station::{Engine, Station};
pub use status::{ClientStatus, PathState, Status, Window, read_status};
pub use tally::PathTally;
