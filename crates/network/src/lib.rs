//! The model of paths: per direction a queue, a capacity, a delay, impairments. Sans-IO: time is an argument.

mod spec;

pub use spec::{
    Bottleneck, BottleneckSpec, CapacitySpec, CapacityTrace, Change, LinkSpec, LossSpec, PathSpec, QueueSpec,
    ReorderSpec, Topology, WaySpec,
};
