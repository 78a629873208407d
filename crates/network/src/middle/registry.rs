//! The registry of middleboxes. A box is one file: its parameters, and the [`Middlebox`] that they build.

use super::{
    CoalesceSpec, EcnSpec, ForgetSpec, Middlebox, MssSpec, RejectSpec, SplitSpec, StripSpec, TerminateSpec, ThinSpec,
    TranslateSpec,
};
use crate::{Misfit, Parameter};

/// The parameters of one kind of middlebox. [`Default`] has its defaults.
pub trait BoxKind: Copy + Default + PartialEq {
    /// Name as scenario files write it.
    const NAME: &'static str;
    /// One line: what it does.
    const ABOUT: &'static str;

    /// Every parameter, in the order of a resolved scenario.
    fn parameters(&mut self) -> Vec<Parameter<'_>>;

    /// Whether the parameters fit together.
    ///
    /// # Errors
    /// The parameter that does not fit.
    fn check(&self) -> Result<(), Misfit> {
        Ok(())
    }

    /// A box that has seen no segment.
    fn build(self) -> Box<dyn Middlebox>;
}

/// Declares [`MiddleboxSpec`] with one variant per line.
macro_rules! middleboxes {
    ($($(#[$doc:meta])* $variant:ident($spec:ty),)*) => {
        /// A middlebox of any kind, with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum MiddleboxSpec {
            $($(#[$doc])* $variant($spec),)*
        }

        $(impl From<$spec> for MiddleboxSpec {
            fn from(spec: $spec) -> Self {
                Self::$variant(spec)
            }
        })*

        impl MiddleboxSpec {
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

            /// One line: what it does.
            pub const fn about(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$spec>::ABOUT,)* }
            }

            /// Every parameter, in the order of a resolved scenario.
            pub fn parameters(&mut self) -> Vec<Parameter<'_>> {
                match self { $(Self::$variant(spec) => spec.parameters(),)* }
            }

            /// Whether the parameters fit together.
            ///
            /// # Errors
            /// The parameter that does not fit.
            pub fn check(&self) -> Result<(), Misfit> {
                match self { $(Self::$variant(spec) => spec.check(),)* }
            }

            /// A box that has seen no segment.
            pub fn build(self) -> Box<dyn Middlebox> {
                match self { $(Self::$variant(spec) => spec.build(),)* }
            }
        }
    };
}

middleboxes! {
    /// Options are removed.
    Strip(StripSpec),
    /// Sequence numbers are translated.
    Translate(TranslateSpec),
    /// Segments are cut.
    Split(SplitSpec),
    /// Segments are merged.
    Coalesce(CoalesceSpec),
    /// The ECN field is set.
    Ecn(EcnSpec),
    /// The MSS option is lowered.
    Mss(MssSpec),
    /// Idle flows are forgotten.
    Forget(ForgetSpec),
    /// Segments are refused.
    Reject(RejectSpec),
    /// Acknowledgments are thinned.
    Thin(ThinSpec),
    /// TCP is terminated.
    Terminate(TerminateSpec),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_parameters_are_unique() {
        for (place, mut spec) in MiddleboxSpec::all().enumerate() {
            assert_eq!(spec.name(), MiddleboxSpec::NAMES[place]);
            assert!(!MiddleboxSpec::NAMES[..place].contains(&spec.name()));
            let names: Vec<_> = spec.parameters().iter().map(|parameter| parameter.name).collect();
            for (n, name) in names.iter().enumerate() {
                assert!(!names[..n].contains(name) && *name != "kind", "{name}");
            }
        }
    }
}
