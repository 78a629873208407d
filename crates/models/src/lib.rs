//! Closed-form models: the equations of Y.-C. Chen and D. Towsley, "On Bufferbloat and Delay Analysis of MultiPath TCP
//! in Wireless Networks" (IFIP Networking 2014), and the window after idling.
//!
//! Each model is a struct with its inputs in SI units (times in seconds, rates in bits per second, windows in packets)
//! and methods that compute; [`all`] lists the same models with their parameters by name, for command lines.

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
