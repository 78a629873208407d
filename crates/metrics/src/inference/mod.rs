//! Inference from repeated runs: bootstrap intervals, tests of paired differences, effect sizes, rank claims.
//!
//! All values are taken to be finite. Resampling draws from random streams of its own, keyed by a seed.

mod bootstrap;
mod effect;
mod holm;
mod normal;
mod permutation;
mod ranking;
mod signed_rank;
mod verdict;

pub use bootstrap::Bootstrap;
pub use effect::{EffectSize, superiority};
pub use holm::holm;
pub use normal::{normal_probability, normal_quantile};
pub use permutation::sign_flip_probability;
pub use ranking::{Better, RankClaim, Ranking};
pub use signed_rank::SignedRank;
pub use verdict::{Difference, SIGNIFICANT, Verdict, verdicts};
