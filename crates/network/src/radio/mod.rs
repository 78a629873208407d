//! Layers under a link: retransmission below IP, release in bursts, sleep, and slots of a schedule.

mod aggregate;
mod arq;
mod slots;
mod wake;

pub use arq::ArqSpec;
pub use slots::SlotsSpec;
pub use wake::WakeSpec;

pub(crate) use aggregate::Aggregate;
pub(crate) use arq::{Arq, Outcome};
pub(crate) use slots::Slots;
pub(crate) use wake::Anterooms;

use anabranch_units::Duration;

/// The layers under one direction of a path; each is off by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioSpec {
    /// Retransmission below IP.
    pub arq: ArqSpec,
    /// Packets are released together at multiples of this time; zero releases each at once.
    pub aggregate: Duration,
    /// The sleep of the device.
    pub wake: WakeSpec,
    /// Slots with a delay of their own.
    pub slots: SlotsSpec,
}

impl RadioSpec {
    /// No such layer.
    pub const NONE: Self =
        Self { arq: ArqSpec::NONE, aggregate: Duration::ZERO, wake: WakeSpec::NONE, slots: SlotsSpec::NONE };

    /// The same with one layer replaced.
    #[must_use]
    pub fn with(self, change: RadioChange) -> Self {
        match change {
            RadioChange::Arq(arq) => Self { arq, ..self },
            RadioChange::Aggregate(aggregate) => Self { aggregate, ..self },
            RadioChange::Wake(wake) => Self { wake, ..self },
            RadioChange::Slots(slots) => Self { slots, ..self },
        }
    }

    /// Whether the seed matters to it.
    pub fn is_random(&self) -> bool {
        self.arq.loss > 0.0 || !self.aggregate.is_zero() || !self.slots.is_none()
    }

    /// Packets may be delayed or lost one by one.
    pub fn impairs(&self) -> bool {
        *self != Self::NONE
    }
}

/// Another value of one layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RadioChange {
    /// Retransmission below IP.
    Arq(ArqSpec),
    /// The time between two releases.
    Aggregate(Duration),
    /// The sleep of the device.
    Wake(WakeSpec),
    /// Slots with a delay of their own.
    Slots(SlotsSpec),
}
