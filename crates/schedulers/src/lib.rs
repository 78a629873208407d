#![doc = include_str!("../README.md")]

/// Makes a plug-in's reference page: the text of `explain` is also its documentation here.
macro_rules! page {
    ($text:literal) => {
        #[doc = $text]
        #[allow(rustdoc::broken_intra_doc_links, reason = "U[0] on a page is an element, not a link")]
        pub const PAGE: &str = $text;
    };
}

pub mod active_backup;
pub mod adversary;
pub mod barre;
pub mod bas;
mod binding;
pub mod blest;
pub mod blest_linux;
pub mod cost;
pub mod cp;
pub mod daps;
pub mod daps2;
mod data_timer;
pub mod dems;
pub mod ecf;
pub mod ecf_linux;
pub mod f2pdps;
pub mod fdps;
pub mod fifo;
pub mod fps;
mod fragments;
pub mod hsr;
pub mod kim2012;
mod line;
mod linucb;
pub mod linux_default;
pub mod lssctp;
pub mod lts;
pub mod lws;
pub mod minrtt;
pub mod mtcs;
pub mod ocps;
pub mod opportunistic;
pub mod otias;
pub mod peekaboo;
mod pick;
mod plan;
pub mod playahead;
pub mod qaware;
pub mod redundant;
pub mod registry;
pub mod roundrobin;
mod send_memory;
pub mod skip;
pub mod srpt_ecf;
mod stale;
pub mod stms;
pub mod sttf;
mod tail;
#[cfg(test)]
mod template;
#[cfg(test)]
mod testing;
pub mod weighted;

/// The source of a new scheduler, complete but for its name and its page; it is compiled and tested with the others.
pub const TEMPLATE: &str = include_str!("template.rs");

pub use registry::{BuildError, Resolved, all, build, find, resolve, suffixes, takes_suffix};
