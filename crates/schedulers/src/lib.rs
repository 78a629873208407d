//! Packet schedulers, one file each, and their registry.
//!
//! A name is a scheduler's canonical name or an alias, with `+pr` or `+or` after a pull scheduler: see [`resolve`].

/// Makes a plug-in's reference page: the text that `explain` prints is its documentation here.
macro_rules! page {
    ($text:literal) => {
        #[doc = $text]
        pub const PAGE: &str = $text;
    };
}

pub mod adversary;
pub mod blest;
pub mod blest_linux;
pub mod daps;
mod data_timer;
pub mod fifo;
pub mod linux_default;
pub mod minrtt;
pub mod opportunistic;
pub mod otias;
mod pick;
pub mod redundant;
pub mod registry;
pub mod roundrobin;
mod send_memory;
#[cfg(test)]
mod testing;

pub use registry::{BuildError, Resolved, all, build, find, resolve, suffixes, takes_suffix};
