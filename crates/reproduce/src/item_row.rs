//! A scheduler of an item.

use anabranch_scenario::{Diagnostic, Override, PlugIn};

/// A scheduler of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemRow {
    /// The scheduler.
    pub plug_in: PlugIn,
    /// Name in the item: with parameters only where another row differs in nothing else.
    pub name: String,
}

impl ItemRow {
    /// The rows of an item.
    pub fn all(plug_ins: Vec<PlugIn>) -> Vec<Self> {
        let namesakes = |name: &str| plug_ins.iter().filter(|other| other.name == name).count();
        let name = |one: &PlugIn| if namesakes(&one.name) > 1 { one.with_parameters() } else { one.name.clone() };
        let names: Vec<String> = plug_ins.iter().map(name).collect();
        plug_ins.into_iter().zip(names).map(|(plug_in, name)| Self { plug_in, name }).collect()
    }

    /// Name in results, with its parameters: `daps(round=4)`.
    pub fn label(&self) -> String {
        self.plug_in.with_parameters()
    }

    /// The row with the settings of it among `set`: `row.NAME.PARAMETER`. Its name stays.
    ///
    /// # Errors
    /// The scheduler has no such parameter, or not with that value.
    pub fn with(&self, set: &[Override]) -> Result<Self, Vec<Diagnostic>> {
        let mut row = self.clone();
        for change in set {
            let Some((_, parameter)) = row_and_parameter(&change.key).filter(|(name, _)| *name == self.name) else {
                continue;
            };
            let one = format!("{}({parameter}={})", self.plug_in.name, change.value);
            let given = anabranch_scenario::scheduler(&change.key, &one)?.parameters;
            row.plug_in.parameters.retain(|(name, _)| !given.iter().any(|(own, _)| own == name));
            row.plug_in.parameters.extend(given);
        }
        Ok(row)
    }
}

/// The row and the parameter that the key `row.NAME.PARAMETER` sets; `None` of a scenario's key.
pub(crate) fn row_and_parameter(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix("row.")?.rsplit_once('.')
}
