//! Hosts that are the Linux kernel's own TCP and Multipath TCP.

mod application;
mod changes;
mod client;
mod counters;
pub mod facts;
mod host;
mod sampler;
mod settings;
mod sock_diag;
mod stream;

pub use application::{Application, Line, Protocol};
pub use changes::{Changes, PathChange, changes, is_there};
pub use client::ClientPath;
pub use counters::{Counters, counters};
pub use host::{Addresses, KernelHost, check_paths};
pub use sampler::{Sample, Sampler, events};
pub use settings::KernelSettings;
pub use sock_diag::{Backlog, SockDiag, SocketInfo, State};
pub use stream::Report;
