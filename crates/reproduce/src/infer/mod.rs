//! Parameters that a paper leaves open, inferred from its baselines by simulation: approximate Bayesian computation by rejection (Pritchard et
//! al. 1999).
//!
//! Whole testbeds are drawn from the priors of `unsaid.toml`, the baselines run in each, and those testbeds are kept whose baselines are
//! nearest to the published ones. No scheduler that the paper proposes takes part in the choice.

mod calibrate;
mod draw;
mod library;
mod outcome;
mod posterior;
mod prior;
mod read;
mod read_prior;
mod search;
mod tally;
mod unknown;

#[cfg(test)]
mod tests;

pub use calibrate::{Calibration, Coverage, calibrate};
pub use draw::{Region, draw};
pub use library::{Kept, Library, NoneNearer, Ruler, central};
pub use outcome::{Inference, NamedReading};
pub use posterior::{MOVES, Posterior, posteriors};
pub use prior::{Choice, Prior, Range, Spacing};
pub use read::{Extent, MOST_DRAWS, Measured, Unsaid, read_measured, read_unsaid};
pub use search::{Drawn, Search, by_testbed, values};
pub use tally::{Answer, PairTally, Spread, Tally, tally};
pub use unknown::{Fitted, Position, Subject, Try, Unknown, fit};
