//! Outcomes of runs that serve several jobs.

use crate::job::{Choice, Job, RunError, RunOutcome};
use crate::layout::Layout;
use crate::summary::position;
use anabranch_metrics::names;

/// The outcome for `job` of a run of another job with the same identity. Paths that neither used decide the bound over all paths, and so
/// one ratio.
///
/// # Errors
/// No driver can run the job.
pub fn reused(mut outcome: RunOutcome, job: &Job) -> Result<RunOutcome, RunError> {
    let Some(measured) = outcome.measured.as_ref().filter(|_| matches!(job.choice, Choice::Single(_))) else {
        return Ok(outcome);
    };
    let reached = |name: &str| outcome.metrics.get(name).copied();
    let of_all = Layout::of(job)?.ratio_of_all(job, measured, reached);
    outcome.metrics.set(names::ORACLE_RATIO_OF_ALL, of_all);
    outcome.metrics.sort_by_key(position);
    Ok(outcome)
}
