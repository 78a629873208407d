//! Swept keys as numbers.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// A swept key in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweptKey {
    /// `s`, `bit/s`, `B`, `packets`, `BDP`; empty for a plain number or a fraction.
    pub unit: String,
    /// Each value as written in cells, with its number in this unit.
    pub values: IndexMap<String, f64>,
}

impl SweptKey {
    /// The key with the values of `key`; `None` if one of them is no number, or of another unit.
    pub(crate) fn of<'a>(key: &str, texts: impl Iterator<Item = &'a String>) -> Option<Self> {
        let mut unit = None;
        let mut number = |text: &String| {
            let swept = anabranch_scenario::swept(key, text)?;
            (*unit.get_or_insert(swept.unit) == swept.unit).then(|| (text.clone(), swept.number))
        };
        let values = texts.map(&mut number).collect::<Option<IndexMap<String, f64>>>()?;
        Some(Self { unit: unit?.to_owned(), values })
    }
}
