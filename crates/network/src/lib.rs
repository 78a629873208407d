#![doc = include_str!("../README.md")]

mod agenda;
mod bottleneck;
mod bucket;
mod cake;
mod capacity;
mod cobalt;
mod codel;
mod counts;
mod discipline;
mod dualpi2;
mod fifo;
mod flow_queues;
mod fq_codel;
mod front;
mod impairment;
mod jitter;
mod mark;
mod medium;
mod middle;
mod netem;
mod network;
mod parameter;
mod pie;
mod qdisc;
mod radio;
mod recording;
mod red;
mod spec;
mod steps;
mod tail;
mod trace;
mod updates;
mod way;

pub use bucket::BucketSpec;
pub use cake::{Cake, CakeSpec};
pub use capacity::{Capacity, FixedRate, TraceDriven};
pub use cobalt::{Cobalt, CobaltSpec};
pub use codel::{Codel, CodelSpec};
pub use counts::LinkCounts;
pub use discipline::{Discipline, Limit, ManagedQueue};
pub use dualpi2::{DualPi2, DualPi2Spec};
pub use fifo::FifoSpec;
pub use fq_codel::{FqCodel, FqCodelSpec};
pub use impairment::{Corruption, Duplication, Fate, GilbertElliott, Impairment, Loss, Reordering};
pub use jitter::{DelayDistribution, DelayTable, JitterSpec, TableError};
pub use mark::Markable;
pub use medium::MediumSpec;
pub use middle::{
    Answer, BoxKind, Carried, CoalesceSpec, EcnSpec, ForgetSpec, Middlebox, MiddleboxSpec, MssSpec, OptionKind,
    OptionSet, Passed, RejectSpec, Segments, SplitSpec, StripSpec, TerminateSpec, ThinSpec, TranslateSpec, absorb, cut,
    remove, renumber, sift,
};
pub use netem::NetemSpec;
pub use network::{Delivery, Network, Refused};
pub use parameter::{Misfit, Parameter, Threshold, Value};
pub use pie::{Pie, PieSpec};
pub use qdisc::{Aqm, DropTail, Fifo, Next, Qdisc, QueueState, Verdict, Verdicts, Waiting};
pub use radio::{ArqSpec, RadioChange, RadioSpec, SlotsSpec, WakeSpec};
pub use recording::{Recorded, Recording, RecordingError};
pub use red::{Red, RedSpec};
pub use spec::{
    BehindChange, Bottleneck, BottleneckSpec, CapacitySpec, CapacityTrace, Change, LinkSpec, LossSpec, PathSpec, Place,
    QueueSpec, ReorderSpec, Topology, WaySpec,
};
pub use steps::{RateSteps, Steps};
pub use trace::{TraceError, TraceFault};

/// The ECN field, of which parameters name a codepoint.
pub use anabranch_wire::Ecn;
