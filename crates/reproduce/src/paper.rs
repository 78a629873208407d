//! A paper: its items, each a table or figure with the scenario that represents it.

use crate::claim::Claim;
use crate::figure::Figure;
use crate::finding::Finding;
use crate::item_row::ItemRow;
use crate::reading::Reading;
use anabranch_scenario::Override;
use anabranch_units::Duration;

/// A paper to be reproduced.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    /// Short name, that of its folder.
    pub key: String,
    /// Title.
    pub title: String,
    /// Authors.
    pub authors: String,
    /// Where it appeared.
    pub venue: String,
    /// How often its authors repeated each measurement, if they say so.
    pub repetitions: Option<u32>,
    /// The announcement of its abstract, in about five words.
    pub headline: String,
    /// The outcome, in a sentence.
    pub in_short: String,
    /// The conclusion from its data and ours, in words that its authors would accept.
    pub conclusion: String,
    /// XXH3-128 of the text of `claims.toml`, in hexadecimal.
    pub claims_digest: String,
    /// Tables and figures of the paper.
    pub items: Vec<Item>,
}

impl Paper {
    /// In how many claims schedulers are tested against each other: the family in which the rate of false finds is held.
    pub fn contrasts(&self) -> usize {
        self.items.iter().flat_map(|item| &item.claims).filter(|claim| claim.is_contrast()).count()
    }
}

/// One table or figure, or one panel of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Name on the command line: `fig3-3g-wlan`.
    pub id: String,
    /// Contents of the item.
    pub title: String,
    /// Place in the paper: `Figure 3`.
    pub place: String,
    /// The scenario file beside `claims.toml`.
    pub scenario: String,
    /// Schedulers, in the paper's order.
    pub rows: Vec<ItemRow>,
    /// Run each path alone beside them.
    pub baselines: bool,
    /// Bin of the curves, if it needs any.
    pub curves: Option<Duration>,
    /// Kernels at the receiving end, in real time.
    pub live: bool,
    /// The same scenario with some keys set: a cell `variant = NAME` each. Empty = the scenario as written.
    pub variants: Vec<(String, Vec<Override>)>,
    /// The keys that `--quick` sets besides the number of repetitions.
    pub quick: Vec<Override>,
    /// Rows of which the packets of one run are shown, in the first cell.
    pub packets: Vec<String>,
    /// How to draw it.
    pub figures: Vec<Figure>,
    /// Published values of baseline rows, by which readings are distinguished. Each is a `Kind::Value`; none is a claim.
    pub anchors: Vec<Claim>,
    /// The paper's claims.
    pub claims: Vec<Claim>,
    /// Other ways to read the set-up, and assumptions that are varied to see what they move.
    pub readings: Vec<Reading>,
    /// Why results differ from claims.
    pub findings: Vec<Finding>,
}
