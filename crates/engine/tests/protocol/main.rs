//! Whole segments exchanged at stated times, then a state. Tests are grouped by the specification they read like.

#[path = "../common/mod.rs"]
mod common;

mod addresses;
mod clock;
mod delivery_rate;
mod ecn;
mod ends;
mod finished;
mod forward_delay;
mod half_open;
mod join;
mod linux_window;
mod mptcp_close;
mod mptcp_data;
mod mptcp_fail;
mod mptcp_open;
mod narrow;
mod news;
mod path_mtu;
mod race;
mod scheduling;
mod segments;
mod silence;
mod states;
mod stripping;
mod subflow_window;
mod tcp_close;
mod tcp_flow;
mod tcp_open;
mod timeouts;
