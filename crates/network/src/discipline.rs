//! The registry of managed queues. A discipline is one file: its parameters, and the [`Qdisc`] that they build.

use crate::{DropTail, Misfit, Parameter, Qdisc};
use anabranch_units::{Rate, Rng};

/// The parameters of one kind of managed queue. [`Default`] has its defaults.
pub trait ManagedQueue: Copy + Default + PartialEq {
    /// Name as scenario files write it.
    const NAME: &'static str;
    /// One line with its source.
    const ABOUT: &'static str;
    /// Capacity if a scenario states none.
    const LIMIT: Limit;
    /// Whether the discipline draws random numbers.
    const RANDOM: bool = false;
    /// Whether the discipline looks at packets' flows.
    const BY_FLOW: bool = false;
    /// Whether the limit counts every packet from the queue to the far end. Then the network applies it, not the discipline.
    const COUNTS_PROPAGATION: bool = false;

    /// Every parameter, in the order of a resolved scenario.
    fn parameters(&mut self) -> Vec<Parameter<'_>>;

    /// Whether it marks ECN-capable packets in place of dropping them.
    fn marks(&self) -> bool;

    /// Whether the parameters fit together.
    ///
    /// # Errors
    /// The parameter that does not fit the others.
    fn check(&self) -> Result<(), Misfit> {
        Ok(())
    }

    /// An empty queue of capacity `limit` before a link of `rate`. Random draws come from `rng`.
    fn build(self, limit: DropTail, rate: Rate, rng: Rng) -> Box<dyn Qdisc>;
}

/// The capacity of a queue for which a scenario states none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// One bandwidth-delay product.
    Bdp,
    /// So many packets.
    Packets(u32),
    /// So many bytes.
    Bytes(u64),
    /// Every packet.
    Unlimited,
}

/// Declares [`Discipline`] with one variant per line.
macro_rules! disciplines {
    ($($(#[$doc:meta])* $variant:ident($spec:ty),)*) => {
        /// A managed queue of any kind, with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Discipline {
            $($(#[$doc])* $variant($spec),)*
        }

        $(impl From<$spec> for Discipline {
            fn from(spec: $spec) -> Self {
                Self::$variant(spec)
            }
        })*

        impl Discipline {
            /// Names of all kinds, in the order of lists.
            pub const NAMES: &'static [&'static str] = &[$(<$spec>::NAME),*];

            /// Every kind with its defaults, in the order of [`Self::NAMES`].
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant(<$spec>::default())),*].into_iter()
            }

            /// Name as scenario files write it.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$spec>::NAME,)* }
            }

            /// One line with its source.
            pub const fn about(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$spec>::ABOUT,)* }
            }

            /// Capacity if a scenario states none.
            pub const fn limit(&self) -> Limit {
                match self { $(Self::$variant(_) => <$spec>::LIMIT,)* }
            }

            /// Whether it draws random numbers.
            pub const fn is_random(&self) -> bool {
                match self { $(Self::$variant(_) => <$spec>::RANDOM,)* }
            }

            /// Whether it looks at packets' flows.
            pub const fn is_by_flow(&self) -> bool {
                match self { $(Self::$variant(_) => <$spec>::BY_FLOW,)* }
            }

            /// Whether its limit counts every packet from the queue to the far end.
            pub const fn counts_propagation(&self) -> bool {
                match self { $(Self::$variant(_) => <$spec>::COUNTS_PROPAGATION,)* }
            }

            /// Every parameter, in the order of a resolved scenario.
            pub fn parameters(&mut self) -> Vec<Parameter<'_>> {
                match self { $(Self::$variant(spec) => spec.parameters(),)* }
            }

            /// Whether it marks ECN-capable packets in place of dropping them.
            pub fn marks(&self) -> bool {
                match self { $(Self::$variant(spec) => spec.marks(),)* }
            }

            /// Whether the parameters fit together.
            ///
            /// # Errors
            /// The parameter that does not fit the others.
            pub fn check(&self) -> Result<(), Misfit> {
                match self { $(Self::$variant(spec) => spec.check(),)* }
            }

            /// An empty queue of capacity `limit` before a link of `rate`. Random draws come from `rng`.
            pub(crate) fn build(self, limit: DropTail, rate: Rate, rng: Rng) -> Box<dyn Qdisc> {
                match self { $(Self::$variant(spec) => spec.build(limit, rate, rng),)* }
            }
        }
    };
}

disciplines! {
    /// Random Early Detection.
    Red(crate::RedSpec),
    /// Controlled Delay.
    Codel(crate::CodelSpec),
    /// Proportional Integral controller Enhanced.
    Pie(crate::PieSpec),
    /// Controlled Delay for each flow.
    FqCodel(crate::FqCodelSpec),
    /// COBALT for each flow, and a shaper.
    Cake(crate::CakeSpec),
    /// A queue for L4S beside a classic one.
    DualPi2(crate::DualPi2Spec),
    /// Without a limit.
    Fifo(crate::FifoSpec),
    /// A queue whose limit counts packets in propagation.
    Netem(crate::NetemSpec),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_parameters_are_unique_and_defaults_fit() {
        for (place, mut discipline) in Discipline::all().enumerate() {
            assert_eq!(discipline.name(), Discipline::NAMES[place]);
            assert_eq!(discipline.check(), Ok(()));
            assert!(!Discipline::NAMES[..place].contains(&discipline.name()));
            let names: Vec<_> = discipline.parameters().iter().map(|parameter| parameter.name).collect();
            for (n, name) in names.iter().enumerate() {
                assert!(!names[..n].contains(name) && !["kind", "limit"].contains(name), "{name}");
            }
        }
    }
}
