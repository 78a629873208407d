//! Two endpoints and a man in the middle who wishes them ill; what they deliver is compared byte by byte.
//!
//! A [`Case`] is one transfer: settings, schedulers, applications, paths, and what is done to the packets. It follows from
//! a [`Class`] and a seed (or from a fuzzer's bytes), [`run`] plays it in virtual time and says what it broke, and
//! [`shrink`] makes the smallest case that breaks the same.

mod application;
mod case;
mod class;
mod luck;
mod middle;
mod parties;
mod pattern;
mod script;
mod show;
mod shrink;
mod verdict;
mod watch;
mod world;

pub use case::{Case, Nat, Outage, Path};
pub use class::Class;
pub use luck::Luck;
pub use parties::Party;
pub use shrink::shrink;
pub use verdict::{Failure, Kind, Outcome};
pub use world::{hush_panics, run, told};
