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
mod protocol;
mod record;
mod run;
mod upkeep;

pub use host::{NativeHost, NativeHostSettings};
pub use keeper::keep;
pub use link::NativeLink;
pub use run::{NativeProxy, NativeSettings};
