//! Whether this kernel can be the hosts of a plan.

use crate::kernel::{check_paths, facts};
use crate::{LabError, interrupt, privilege};
use anabranch_run::layout::host;
use anabranch_run::{Choice, Job, Plan, Refusal};
use anabranch_scenario::{Host, TimelineChange, nearest};
use anabranch_units::Side;

/// Our name of an unmodified kernel's scheduler.
pub const LINUX_SCHEDULER: &str = "linux-default";

/// Acquires the privileges for `plan`, before any thread starts.
///
/// # Errors
/// A name that no kernel knows, or a lack of privilege, of a program or of Multipath TCP.
pub fn prepare(plan: &Plan) -> Result<(), Refusal> {
    let available = facts::congestion_controls();
    let (mut linux, mut mptcp) = (false, false);
    for job in plan.jobs() {
        let ways = job.scenario.direction().ways();
        if ways.iter().any(|way| host(&job, way.sender()) == Host::Linux) {
            check_words(&job, &available)?;
        }
        let kernels = [Side::Client, Side::Server].into_iter().filter(|side| host(&job, *side) == Host::Linux);
        for side in kernels {
            linux = true;
            if speaks_mptcp(&job) {
                mptcp = true;
                check_paths(side, job.scenario.topology.paths.len()).map_err(missing)?;
            }
        }
    }
    interrupt::listen().map_err(missing)?;
    if !linux {
        return Ok(());
    }
    if mptcp && !facts::has_mptcp() {
        return Err(missing(LabError::NoMptcp));
    }
    privilege::acquire().map_err(missing)
}

fn missing(error: LabError) -> Refusal {
    Refusal::Missing { what: error.to_string(), help: error.help() }
}

fn speaks_mptcp(job: &Job) -> bool {
    job.scenario.settings.mptcp && matches!(job.choice, Choice::Multipath(_))
}

/// A sending kernel uses its own scheduler, and a congestion control that it has.
fn check_words(job: &Job, available: &[String]) -> Result<(), Refusal> {
    let later = job.scenario.timeline.iter().filter_map(|entry| match &entry.change {
        TimelineChange::Scheduler(plug_in) => Some(plug_in),
        TimelineChange::Network(_) | TimelineChange::Option(..) => None,
    });
    if let Choice::Multipath(scheduler) = &job.choice
        && speaks_mptcp(job)
        && let Some(scheduler) = [scheduler].into_iter().chain(later).find(|plug_in| plug_in.name != LINUX_SCHEDULER)
    {
        return Err(Refusal::Word {
            kind: "scheduler",
            word: scheduler.name.clone(),
            why: "a Linux sender does not have it".into(),
            help: format!("an unmodified kernel has one scheduler: `--scheduler {LINUX_SCHEDULER}`"),
        });
    }
    let congestion = &job.congestion.name;
    if available.iter().any(|name| name == congestion) {
        return Ok(());
    }
    let single = anabranch_congestion::single_path_form(congestion);
    let instead = match nearest(congestion, available.iter().map(String::as_str)) {
        Some(near) => near,
        None if available.iter().any(|name| name == single) => single,
        None => "reno",
    };
    Err(Refusal::Word {
        kind: "congestion control",
        word: congestion.clone(),
        why: "a Linux sender does not have it".into(),
        help: format!("this kernel has {}: `--congestion {instead}`", available.join(", ")),
    })
}

/// A kernel's congestion control for a job: the job's; a receiver that lacks it uses the nearest available one.
pub(crate) fn congestion(job: &Job) -> String {
    let available = facts::congestion_controls();
    let single = anabranch_congestion::single_path_form(&job.congestion.name);
    let has = |name: &&str| available.iter().any(|one| one == name);
    [job.congestion.name.as_str(), single].into_iter().find(has).unwrap_or("reno").to_owned()
}
