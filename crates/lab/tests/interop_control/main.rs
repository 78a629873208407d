//! The engine and the Linux kernel agree on Multipath TCP's control plane: connections and subflows begin, change and
//! end, and fall back when a box on the path does not speak MPTCP.

mod abort;
mod addresses;
mod close;
#[path = "../common/mod.rs"]
mod common;
mod fallback;
mod handshake;
mod priority;
mod race;
