//! The words of keys that choose among values of an enum.

use crate::fabric::Pairing;
use crate::scenario::{ConnectionsPer, Distribution, Host, MtuSignal, ObjectSizes};
use crate::sections::jitter::Order;
use crate::sections::path::TraceEnd;
use anabranch_engine::{AckCounting, BufferAccounting, HostModel, LimitedDecay, ReceiveWindow, RecoveryKind, RtoForm};
use anabranch_network::{Answer, Ecn, Segments};
use anabranch_units::{Direction, TrafficDirection};

/// An enum whose values have a word each.
pub(crate) trait Word: Copy + 'static {
    /// The words in the order of lists.
    const NAMES: &'static [&'static str];

    /// The value of a word.
    fn of(name: &'static str) -> Option<Self>;

    /// The word.
    fn name(&self) -> &'static str;
}

/// Gives each value of an enum its word. A value without one does not compile.
macro_rules! words {
    ($($of:ident { $($value:ident = $name:literal),* $(,)? })*) => {
        $(impl Word for $of {
            const NAMES: &'static [&'static str] = &[$($name),*];

            fn of(name: &'static str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$value),)*
                    _ => None,
                }
            }

            fn name(&self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }
        })*
    };
}

words! {
    RecoveryKind { Rack = "rack", Sack = "sack", Fack = "fack" }
    RtoForm { Linux = "linux", Rfc6298 = "rfc6298" }
    AckCounting { Packets = "packets", AcksInAvoidance = "acks-in-avoidance" }
    LimitedDecay { None = "none", Rfc2861 = "rfc2861", Linux = "linux" }
    ReceiveWindow { Connection = "connection", Subflow = "subflow" }
    BufferAccounting { Payload = "payload", Truesize = "truesize" }
    Host { Engine = "engine", Linux = "linux" }
    HostModel { Rfc = "rfc", Linux = "linux" }
    TraceEnd { Loop = "loop", Hold = "hold" }
    MtuSignal { Interface = "interface", Icmp = "icmp", None = "none" }
    Order { Kept = "kept", Free = "free" }
    Segments { All = "all", Syn = "syn", NotSyn = "not-syn", Data = "data", Pure = "no-data", Reset = "reset" }
    Answer { Reset = "reset", Silence = "silence" }
    Ecn { NotEct = "not-ect", Ect0 = "ect0", Ect1 = "ect1", Ce = "ce" }
    Direction { Down = "down", Up = "up" }
    TrafficDirection { Down = "down", Up = "up", Both = "both" }
    Pairing { Permutation = "permutation", Incast = "incast", Random = "random" }
    Distribution { Fixed = "fixed", Exponential = "exponential" }
    ConnectionsPer { Page = "page", Object = "object" }
    ObjectSizes { Equal = "equal", Lognormal = "lognormal" }
}
