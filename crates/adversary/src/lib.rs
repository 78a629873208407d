//! Two endpoints and a hostile man in the middle; the bytes that they deliver are compared one by one.
//!
//! A [`Case`] is one transfer: settings, schedulers, applications, paths, and the changes made to packets. It follows
//! from a [`Class`] and a seed (or from a fuzzer's bytes). [`run`] plays it in virtual time and names the property that
//! it broke;
//! [`shrink`] finds the smallest case that breaks the same property.

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
pub use parties::{Party, newcomers};
pub use shrink::shrink;
pub use verdict::{Failure, Kind, Outcome};
pub use world::{hush_panics, run, told};
