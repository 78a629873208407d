//! The engine and the Linux kernel agree on Multipath TCP's control plane: how connections and subflows begin, change
//! and end, and what becomes of them when something on the way does not speak it.

mod abort;
mod addresses;
mod close;
#[path = "../common/mod.rs"]
mod common;
mod fallback;
mod handshake;
mod priority;
mod race;
