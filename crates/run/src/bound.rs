//! The oracle's bounds of a plan, without any run.

use crate::job::{Choice, Job, RunError};
use crate::layout::Layout;
use crate::plan::{CellPlan, Plan, PlanRow};
use crate::record::CellValues;
use anabranch_metrics::FrameTimes;
use anabranch_units::{Duration, Instant};
use serde::Serialize;

/// The best that any scheduler with any congestion control could reach: what `oracle_ratio` is measured by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The sweep's cell.
    pub cell: CellValues,
    /// `all`, or `single:PATH` for plain TCP over that path alone.
    pub paths: String,
    /// `goodput_bps` of unlimited data, or of one way that is filled `goodput_down_bps` or `goodput_up_bps`; `completion_s` of sized traffic,
    /// `app_delay_mean_s` of frames.
    pub metric: &'static str,
    /// In the metric's unit; absent if the paths can never carry the traffic, and for responses
    /// without end (`response_mean_s`) and video (`qoe`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

/// The bounds of each cell of `plan`: over all paths, then over each path that the plan runs alone.
///
/// # Errors
/// A scenario needs something that no driver can do.
pub fn bounds(plan: &Plan) -> Result<Vec<Bound>, RunError> {
    let mut bounds: Vec<Bound> = Vec::new();
    for cell in &plan.cells {
        for row in &cell.rows {
            let bound = bound(cell, row, &plan.job(cell, row, 0))?;
            // Schedulers and congestion controls do not count.
            if !bounds.contains(&bound) {
                bounds.push(bound);
            }
        }
    }
    Ok(bounds)
}

fn bound(cell: &CellPlan, row: &PlanRow, job: &Job) -> Result<Bound, RunError> {
    let from = Instant::ZERO + job.scenario.warmup;
    let layout = Layout::of(job)?;
    let frames = layout.frames();
    let all = frames.as_ref().and_then(|frames| Some(frames.pattern.at(frames.count?)));
    // Without a duration the last application that is stopped ends it.
    let stopped = || job.scenario.traffic.iter().filter_map(|traffic| traffic.stop).max();
    let stopped = stopped().map(|stop| stop.since(Instant::ZERO));
    // The first of them ends the run.
    let measured = job.scenario.duration.into_iter().chain(all).min().or(stopped).unwrap_or(Duration::ZERO);
    // As if the first frame were written at once.
    let written = frames.map(|frames| {
        let within = frames.pattern.due_before(from, from + measured);
        FrameTimes { first: from, counted: 0..frames.count.unwrap_or(within).min(within) }
    });
    // Of one direction the second is empty, and not looked at.
    let written = [written.clone().into_iter().collect(), written.into_iter().collect()];
    let best = layout.bound(job, (from, from + measured), (&written, Instant::MAX));
    let paths = match row.choice {
        Choice::Multipath(_) => "all".to_owned(),
        Choice::Single(_) => row.scheduler_label.clone(),
    };
    Ok(Bound { cell: cell.values(), paths, metric: best.metric, value: best.value })
}
