//! How a world's run ends.

use anabranch_units::Side;
use anabranch_workload::Fault;

/// Why [`crate::World::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// All awaited flows are done.
    Done,
    /// The time is over.
    Time,
}

/// Why a run cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Nothing will ever happen again, and an awaited flow is not done.
    Silence,
    /// An application got what was never written.
    Fault {
        /// Which flow, by its place.
        flow: usize,
        /// What.
        fault: Fault,
    },
    /// A packet did not survive being written and read back.
    Wire,
    /// Time stands still: a host is due at this moment again and again, or sends without end.
    Still {
        /// Which flow, by its place.
        flow: usize,
        /// Which end of it.
        side: Side,
        /// Its timer rounds at this moment.
        rounds: u32,
        /// The packets that it sent at this moment.
        packets: u32,
    },
    /// It was asked to stop: see [`crate::World::stop_when`].
    Asked,
}

impl core::fmt::Display for Stuck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Silence => f.write_str("nothing can happen any more, and a transfer is not complete"),
            Self::Fault { flow, fault } => write!(f, "flow {flow}: {fault}"),
            Self::Wire => f.write_str("a packet did not survive being written and read back"),
            Self::Still { flow, side, rounds, packets } => {
                let side = if *side == Side::Client { "client" } else { "server" };
                write!(
                    f,
                    "time stands still: the {side} of flow {flow} had {rounds} timer rounds and sent {packets} packets at \
                     this moment. This is a defect of Anabranch, not of the scenario: please report it"
                )
            }
            Self::Asked => f.write_str("asked to stop"),
        }
    }
}
