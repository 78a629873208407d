//! Hosts that are the Linux kernel's own TCP and Multipath TCP.

mod application;
mod counters;
mod host;
mod settings;
mod stream;

pub use application::{Application, Line, Protocol, Told};
pub use counters::{Counters, counters};
pub use host::{Addresses, KernelHost};
pub use settings::KernelSettings;
