//! Messages between the proxy and its keeper: a line of JSON each.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The work of a keeper: its first line of input. The end of the input is the end of its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeeperConfig {
    /// One per path.
    pub interfaces: Vec<String>,
    /// The TUN device of each path. They exist, and are down.
    pub devices: Vec<String>,
    /// Connections of other hosts to these ports are ours.
    pub ports: Vec<u16>,
}

/// An interface that can be used. Its connections are lost with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InterfaceState {
    /// Another one after each change of the address.
    pub number: u32,
    /// The address by which other hosts know it.
    pub source: Ipv4Addr,
}

/// The interfaces' state; `None` for one that cannot be used.
pub(super) type InterfaceStates = Vec<Option<InterfaceState>>;

/// A line of the keeper's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum KeeperMessage {
    /// All is set up.
    Ready(NetworkReady),
    /// The network cannot be set up, or not kept.
    Failed { what: String, help: Option<String> },
    /// Interfaces came or went.
    Interfaces(InterfaceStates),
}

/// A network that is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NetworkReady {
    /// The engine's address on each path.
    pub addresses: Vec<Ipv4Addr>,
    /// The least MTU of the interfaces that there are, in bytes.
    pub mtu: u32,
    pub states: InterfaceStates,
}
