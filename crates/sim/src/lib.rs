//! Virtual time: hosts that are engines, joined by a modelled network. Deterministic to the bit.

mod flow;
mod world;

pub use flow::{FlowSetup, Party, address, paths_between};
pub use world::{Checks, Halt, SourceSetup, Stuck, World, WorldSetup};
