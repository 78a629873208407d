//! Whole segments exchanged at stated times, then a state. Tests are grouped by the specification they read like.

#[path = "../common/mod.rs"]
mod common;

mod tcp_close;
mod tcp_open;
