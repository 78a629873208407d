//! The model of paths: per direction a queue, a capacity, a delay, impairments. Sans-IO: time is an argument.
//!
//! ```text
//! send → Bottleneck (Qdisc, Capacity; own or shared) → Way (delay, Impairments, outages) → poll_deliver
//! ```
//!
//! One [`Network`] serves every driver: virtual time carries values through it, real time carries bytes.

mod agenda;
mod bottleneck;
mod bucket;
mod capacity;
mod codel;
mod discipline;
mod impairment;
mod jitter;
mod mark;
mod network;
mod qdisc;
mod recording;
mod red;
mod spec;
mod steps;
mod tail;
mod trace;
mod way;

pub use bucket::BucketSpec;
pub use capacity::{Capacity, FixedRate, TraceDriven};
pub use codel::{Codel, CodelSpec};
pub use discipline::{Discipline, ManagedQueue, Misfit, Parameter, Threshold, Value};
pub use impairment::{Corruption, Duplication, Fate, GilbertElliott, Impairment, Loss, Reordering};
pub use jitter::{DelayDistribution, DelayTable, JitterSpec, TableError};
pub use mark::Markable;
pub use network::{Delivery, Network};
pub use qdisc::{DropTail, Qdisc, QueueState};
pub use recording::{Recorded, Recording, RecordingError, Shift};
pub use red::{Red, RedSpec};
pub use spec::{
    Bottleneck, BottleneckSpec, CapacitySpec, CapacityTrace, Change, LinkSpec, LossSpec, PathSpec, Place, QueueSpec,
    ReorderSpec, Topology, WaySpec,
};
pub use steps::{RateSteps, Steps};
pub use trace::{TraceError, TraceFault};
