//! Multipath TCP itself on the wire, without a carrier: the engine's packets leave through a TUN device per interface, and the system
//! forwards them with the interface's address. docs/native.md says what that changes on a machine. Needs root.
//!
//! Two processes: the proxy, which gives its privileges up before it serves a program, and its keeper (`keeper.rs`), which sets the
//! network up, follows the interfaces, and takes everything back when the proxy has ended, however it ended.

mod ground;
mod keeper;
mod link;
mod machine;
mod plan;
mod privilege;
mod record;
mod run;
mod upkeep;

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
}

/// An interface's state: its turn, which changes with its address, when its connections are lost; `None` if it cannot be used.
type Turns = Vec<Option<u32>>;

/// A line of the keeper's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Report {
    /// All is set up.
    Ready(Ready),
    /// It cannot be set up, or not kept.
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
