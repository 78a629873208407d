#![doc = include_str!("../README.md")]

mod anchor;
mod assessment;
mod claim;
mod classify;
mod conclude;
mod curves;
mod cycle;
mod estimate;
mod figure;
mod finding;
pub mod infer;
mod item_row;
mod judge;
mod outcome;
mod pair;
mod paper;
mod plan;
mod prediction;
mod read;
mod reading;
mod samples;
mod theory;

pub use anchor::{Weighed, published, weigh};
pub use assessment::decimals;
pub use claim::{Claim, Kind, Point, Side, Standing, Statistic, Unit};
pub use conclude::{Ran, conclude};
pub use figure::Figure;
pub use finding::Finding;
pub use item_row::ItemRow;
pub use judge::judge;
pub use outcome::{
    Anchor, Class, FindingOutcome, ItemOutcome, Judged, MeanCurve, PaperOutcome, ReadingOutcome, Reproduction, Shown,
    Stand, Tested, Verdict,
};
pub use pair::{Agreement, Pair};
pub use paper::{Item, Paper};
pub use plan::{Asked, Part, TESTBED, Testbed, baselines_in, example, parts, whole_in};
pub use prediction::Prediction;
pub use read::{Mistake, read};
pub use reading::Reading;
