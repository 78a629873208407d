//! The fields of tables on a terminal.

use anabranch_metrics::MetricInfo;
use anabranch_run::{ResultRow, Results};

/// The mean with the half-width of its interval.
pub(super) fn interval(row: &ResultRow<'_>, info: &MetricInfo) -> Option<String> {
    let (summary, per) = (row.get(info.name)?, info.scale.per);
    let half = summary.half_width().map(|half| format!(" ± {:.3}", half / per));
    Some(format!("{:.3}{}", summary.mean / per, half.unwrap_or_default()))
}

/// The paired difference of `row` from `reference` in percent of the reference's mean, with its half-width.
pub(super) fn difference(
    results: &Results,
    row: &ResultRow<'_>,
    reference: &ResultRow<'_>,
    metric: &str,
) -> Option<String> {
    let comparison = results.comparison(row, reference, metric)?;
    let percent = 100.0 / reference.get(metric)?.mean;
    if !percent.is_finite() {
        return None;
    }
    let half = comparison.half_width().map(|half| format!(" ± {:.1}", half * percent)).unwrap_or_default();
    Some(format!("{:+.1}{half}", comparison.mean_diff * percent))
}
