//! `[[traffic]]`: what the application does.

use super::fields::{Fields, check_only};
use super::value;
use crate::diagnostic::Code;
use crate::scenario::Traffic;
use crate::tree::Report;

/// What the application does: one unlimited bulk transfer unless the file says otherwise.
pub(crate) fn traffic(report: &mut Report, entries: &[Fields<'_>]) -> Option<Vec<Traffic>> {
    if let Some(second) = entries.get(1) {
        report
            .error(Code::NotAvailable, second.at, "several [[traffic]] tables are not available yet")
            .label("the second one")
            .help("this version runs one application on one connection");
    }
    if entries.is_empty() {
        return Some(vec![Traffic::Bulk { size: None }]);
    }
    entries.iter().map(|fields| application(report, fields)).collect()
}

fn application(report: &mut Report, fields: &Fields<'_>) -> Option<Traffic> {
    let kind = fields.get(report, "kind", value::word)?;
    check_only(report, fields, &[("interval", &["frames"]), ("count", &["frames"])], "traffic", kind);
    if kind == "bulk" {
        return Some(Traffic::Bulk { size: fields.get(report, "size", value::size) });
    }
    let size = required(report, fields, "size", value::size);
    let interval = required(report, fields, "interval", value::duration);
    let count = fields.get(report, "count", value::integer).and_then(|count| u64::try_from(count).ok());
    Some(Traffic::Frames { size: size?, interval: interval?, count })
}

/// A key that is required for this kind alone.
pub(super) fn required<T>(
    report: &mut Report,
    fields: &Fields<'_>,
    name: &str,
    read: impl FnOnce(&mut Report, &'static crate::keys::Key, &crate::tree::Node) -> Option<T>,
) -> Option<T> {
    if fields.written(name).is_none() {
        fields.missing(report, fields.key(name));
    }
    fields.get(report, name, read)
}
