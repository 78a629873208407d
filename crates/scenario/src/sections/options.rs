//! Options of a path in `[[timeline]]`: `backup`, `price`, `cap`, `weight`.

use super::path;
use crate::keys::Key;
use crate::scenario::{OptionChange, PathOptions};
use crate::tree::{Node, Report};

/// The change that sets the option `key` to the value of `node`.
pub(crate) fn change(report: &mut Report, key: &'static Key, node: &Node) -> Option<OptionChange> {
    let mut options = PathOptions::default();
    let mut rows = path::options(&mut options);
    rows.iter_mut().find(|row| row.name == key.name)?.read(report, key, node).then_some(())?;
    drop(rows);
    match key.name {
        "backup" => Some(OptionChange::Backup(options.backup)),
        "price" => Some(OptionChange::Price(options.policy.price)),
        "cap" => options.policy.cap.map(OptionChange::Cap),
        "weight" => options.policy.weight.map(OptionChange::Weight),
        other => unreachable!("{other} is changeable"),
    }
}

/// The option that `change` sets, and its value in a file's notation.
pub(crate) fn written(change: OptionChange) -> (&'static str, String) {
    let name = match change {
        OptionChange::Backup(_) => "backup",
        OptionChange::Price(_) => "price",
        OptionChange::Cap(_) => "cap",
        OptionChange::Weight(_) => "weight",
    };
    let mut options = PathOptions::default();
    change.apply(&mut options);
    let rows = path::options(&mut options);
    (name, rows.iter().find(|row| row.name == name).and_then(|row| row.write()).unwrap_or_default())
}
