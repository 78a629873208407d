#![doc = include_str!("../README.md")]

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
