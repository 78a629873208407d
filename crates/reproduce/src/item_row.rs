//! A scheduler of an item.

use anabranch_scenario::PlugIn;

/// A scheduler of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRow {
    /// The scheduler.
    pub plug_in: PlugIn,
    /// Its name in results.
    pub label: String,
}

impl ItemRow {
    /// With its parameters, as scenarios write it: `daps(round=4)`.
    pub fn in_full(&self) -> String {
        self.plug_in.with_parameters()
    }
}
