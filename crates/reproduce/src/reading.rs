//! Ways to read a paper's set-up.

use crate::item_row::ItemRow;
use anabranch_scenario::Override;

/// The runs of an item with some keys or schedulers otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// A few words: `full buffers`.
    pub name: String,
    /// Why the paper may be read so.
    pub why: String,
    /// The keys that it sets.
    pub set: Vec<Override>,
    /// Schedulers in the place of the item's rows, by position: `minrtt` for `minrtt+pr`. Empty = the item's.
    pub rows: Vec<ItemRow>,
    /// The paper leaves it open, so that its own baselines decide whether it is admissible. Otherwise an assumption is made
    /// otherwise to see what it moves.
    pub open: bool,
    /// Text for a reading that was added when outcomes of schedulers were known; it says which.
    pub post_hoc: Option<String>,
}

impl Reading {
    /// The differences: `recv_buffer = 16MiB`, `schedulers = minrtt, blest`.
    pub fn changes(&self) -> Vec<String> {
        let set = self.set.iter().map(|change| format!("{} = {}", change.key, change.value));
        let rows = (!self.rows.is_empty()).then(|| {
            let labels: Vec<String> = self.rows.iter().map(ItemRow::label).collect();
            format!("schedulers = {}", labels.join(", "))
        });
        set.chain(rows).collect()
    }
}
