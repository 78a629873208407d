//! Multipath TCP itself on the wire, without a carrier: the engine's packets leave through a TUN device per interface, and the system
//! forwards them with the interface's address. docs/native-machine.md says what that changes on a machine. Needs root.
//!
//! A proxy connects programs to targets (`proxy.rs`); a server listens for clients (`server.rs`). Either is two processes: itself, which gives its
//! privileges up before it serves anyone, and its keeper (`keeper.rs`), which sets the network up, follows the interfaces, and takes everything
//! back when it has ended, however it ended.

mod keeper;
mod keeper_handle;
mod link;
mod managed_network;
mod network;
mod plan;
mod privilege;
mod protocol;
mod proxy;
mod server;
mod system;
mod undo_log;

pub use keeper::keep;
pub use proxy::{NativeProxy, NativeProxySettings};
pub use server::{NativeServer, NativeServerSettings};
