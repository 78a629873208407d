//! Multipath TCP itself on the wire, without a carrier: the engine's packets leave through a TUN device per interface, and the system
//! forwards them with the interface's address. docs/native-machine.md says what that changes on a machine. Needs root.
//!
//! A proxy connects programs to targets (`run.rs`); a server listens for clients (`host.rs`). Either is two processes: itself, which gives its
//! privileges up before it serves anyone, and its keeper (`keeper.rs`), which sets the network up, follows the interfaces, and takes everything
//! back when it has ended, however it ended.

mod footing;
mod ground;
mod host;
mod keeper;
mod link;
mod machine;
mod plan;
mod privilege;
mod record;
mod run;
mod upkeep;

pub use host::{NativeHost, NativeHostSettings};
pub use keeper::keep;
pub use link::NativeLink;
pub use run::{NativeProxy, NativeSettings};

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The work of a keeper: its first line of input. The end of the input is the end of its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Orders {
    /// One per path.
    interfaces: Vec<String>,
    /// The TUN device of each path. They exist, and are down.
    devices: Vec<String>,
    /// Connections of other hosts to these ports are ours.
    ports: Vec<u16>,
}

/// An interface that can be used. Its connections are lost with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Turn {
    /// Another one after each change of the address.
    number: u32,
    /// The address by which other hosts know it.
    source: Ipv4Addr,
}

/// The interfaces' state; `None` for one that cannot be used.
type Turns = Vec<Option<Turn>>;

/// A line of the keeper's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Report {
    /// All is set up.
    Ready(Ready),
    /// The network cannot be set up, or not kept.
    Failed { what: String, help: Option<String> },
    /// Interfaces came or went.
    Turns(Turns),
}

/// A network that is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ready {
    /// The engine's address on each path.
    addresses: Vec<Ipv4Addr>,
    /// The least MTU of the interfaces that there are, in bytes.
    mtu: u32,
    turns: Turns,
}
