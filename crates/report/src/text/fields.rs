//! The fields of tables on a terminal.

use crate::of_run::rows::Main;
use anabranch_metrics::Verdict;
use anabranch_run::{Comparison, ResultRow, Results};

/// Behind a difference that is tested and stands.
const STANDS: &str = " *";

/// The mean with the half-width of its interval.
pub(super) fn interval(row: &ResultRow<'_>, main: &Main) -> Option<String> {
    let (summary, per) = (row.get(&main.name)?, main.info.scale.per);
    let half = summary.half_width().map(|half| format!(" ± {:.3}", half / per));
    Some(format!("{:.3}{}", summary.mean / per, half.unwrap_or_default()))
}

/// The paired differences of all rows from one scheduler in one metric, tested together.
pub(super) struct Differences<'a> {
    metric: String,
    all: Vec<(&'a Comparison, Verdict)>,
}

impl<'a> Differences<'a> {
    pub fn new(results: &'a Results, metric: &str, reference: &ResultRow<'_>) -> Self {
        Self { metric: metric.to_owned(), all: results.verdicts(metric, reference.scheduler) }
    }

    /// Difference of `row` from `reference` in percent of the reference's mean, with its half-width, and [`STANDS`] if the seeds show it.
    pub fn text(&self, row: &ResultRow<'_>, reference: &ResultRow<'_>) -> Option<String> {
        let is_it = |(c, _): &&(&Comparison, Verdict)| {
            (&*c.a, &*c.b, &*c.congestion) == (row.scheduler, reference.scheduler, row.congestion)
                && *c.cell == *row.cell
        };
        let (comparison, verdict) = self.all.iter().find(is_it)?;
        let percent = 100.0 / reference.get(&self.metric)?.mean.abs();
        if !percent.is_finite() {
            return None;
        }
        let half = comparison.half_width().map(|half| format!(" ± {:.1}", half * percent)).unwrap_or_default();
        // As wide as the sign, so that figures stay below each other.
        let stands = match verdict {
            _ if !self.are_tested() => "",
            Verdict::Differs if comparison.n > 1 => STANDS,
            _ => "  ",
        };
        Some(format!("{:+.1}{half}{stands}", comparison.mean_diff * percent))
    }

    /// Some comparison is of several seeds.
    fn are_tested(&self) -> bool {
        self.all.iter().any(|(comparison, _)| comparison.n > 1)
    }
}
