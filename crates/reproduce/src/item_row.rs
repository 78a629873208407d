//! A scheduler of an item.

use anabranch_scenario::PlugIn;

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
}
