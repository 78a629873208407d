//! Which paths a connection has, tries and announces (RFC 8684 §3.2, §3.4), and over which it opens.

mod addresses;
mod manager;
mod race;

pub use manager::PathSetup;

pub(crate) use addresses::{Addresses, Announcement};
pub(crate) use manager::PathManager;
pub(crate) use race::Race;
