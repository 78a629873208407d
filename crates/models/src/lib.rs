#![doc = include_str!("../README.md")]

pub mod bufferbloat_loss;
pub mod delayed_start;
pub mod idle_restart;
pub mod increment_efficiency;
pub mod rtt_cycle;

mod model;
mod registry;
mod storage;

pub use bufferbloat_loss::BufferbloatLoss;
pub use delayed_start::{DelayedStart, LossMode};
pub use idle_restart::IdleRestart;
pub use increment_efficiency::IncrementEfficiency;
pub use model::{Column, Model, Parameter, Range, Unit, Values};
pub use registry::{all, find};
pub use rtt_cycle::RttCycle;
pub use storage::{Cycle, Storage};
