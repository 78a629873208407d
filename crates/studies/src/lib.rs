//! Comparisons over grids of scenarios, each made of many runs: of schedulers with the upper bound, of a scheduler with a rival
//! where its paper claims a gain, of the simulator with kernels and with what was measured.
//!
//! As in `run`, the driver, the pool and the observer come from outside.

pub mod advise;
pub mod frontier;
pub mod parity;
mod prediction;
pub mod purposes;

pub use prediction::Prediction;
