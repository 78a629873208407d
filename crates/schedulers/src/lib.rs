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
pub mod barre;
pub mod bas;
pub mod blest;
pub mod blest_linux;
pub mod daps;
pub mod dems;
pub mod ecf;
pub mod fifo;
mod linucb;
pub mod linux_default;
pub mod lssctp;
pub mod minrtt;
pub mod mtcs;
pub mod opportunistic;
pub mod otias;
pub mod peekaboo;
mod pick;
pub mod qaware;
pub mod redundant;
pub mod registry;
pub mod roundrobin;
pub mod srpt_ecf;
pub mod stms;
pub mod sttf;
#[cfg(test)]
mod testing;

pub use registry::{BuildError, Resolved, all, build, find, resolve, suffixes, takes_suffix};
