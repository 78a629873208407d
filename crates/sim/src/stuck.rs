//! The ends of a world's run.

use anabranch_units::Side;
use anabranch_workload::Fault;

/// Why [`crate::World::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// All awaited flows are done.
    Done,
    /// The time limit is reached.
    Time,
    /// Nothing more can happen, because an end of each flow that is not done has given its connection up.
    GivenUp,
}

/// Why a run cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// No event is left, and an awaited flow is not done, whose connection stands at both ends.
    Silence,
    /// An application received wrong data.
    Fault {
        /// The index of the flow.
        flow: usize,
        /// The fault.
        fault: Fault,
    },
    /// A packet changed when it was written and read back.
    Wire,
    /// Time stands still: a host has timers at one time again and again, or sends without end.
    Still {
        /// The index of the flow.
        flow: usize,
        /// The end of the flow.
        side: Side,
        /// Rounds of the timer at this time.
        rounds: u32,
        /// Packets at this time.
        packets: u32,
    },
    /// A stop was requested: see [`crate::World::stop_when`].
    Asked,
}

impl core::fmt::Display for Stuck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Silence => {
                f.write_str("nothing can happen any more, and a connection waits with a transfer that is not complete")
            }
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
