//! Plans carried out: what every command that needs drivers does before and after its runs.

use crate::failure::{Failure, Salvage};
use crate::pool::{Mixed, Threads};
use crate::progress::Progress;
use crate::spool::spooled;
use crate::watch::{Wanted, Watch};
use anabranch_run::{Driver, Labelled, Observer, Plan, Results, RunError, Runner, Shard};
use anabranch_trace::Recorder;
use anabranch_units::Duration;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// A plan, and what makes its runs.
pub struct Stage<'a> {
    /// Plan of the runs.
    pub plan: Plan,
    /// Makes each run.
    pub driver: &'a dyn Driver,
    /// Runs follow the clock.
    pub real_time: bool,
    /// Runs at a time; one per core unless given.
    pub jobs: Option<NonZeroUsize>,
    /// Said before the name of a run that failed.
    pub name: String,
    /// The fate of finished runs if a signal comes.
    pub kept: Salvage,
    /// A directory for what memory does not hold; where the system has such files if `None`.
    pub folder: Option<PathBuf>,
    /// The runs of each repetition come in a random order with this seed: for networks that change meanwhile.
    pub order: Option<u64>,
}

/// The outcome of stages.
pub struct Carried {
    /// Results of the stages that were done, from the first on.
    pub results: Vec<Results>,
    /// Results of the stage that ended early: the runs that were finished, if any.
    pub part: Option<Results>,
    /// The failure that ended the work early, if any; then a file that could not be written.
    pub wrong: Vec<Failure>,
}

/// Carries out one stage after the other.
///
/// # Errors
/// The drivers lack something, or a file cannot be made: reported before the first run.
pub fn carry_out(stages: &[Stage<'_>], wanted: Wanted, progress: &dyn Progress) -> Result<Carried, Failure> {
    for stage in stages {
        stage.driver.prepare(&stage.plan).map_err(Failure::refused)?;
    }
    let watch = Watch::new(wanted, progress)?;
    if let Some(text) = real_time_notice(stages) {
        progress.say(&text);
    }
    let mut ahead = Ahead { watch: &watch, before: 0, behind: stages.iter().map(Stage::runs).sum() };
    let mut carried = Carried { results: Vec::new(), part: None, wrong: Vec::new() };
    for stage in stages {
        ahead.behind -= stage.runs();
        match stage.run(&ahead) {
            (results, None) => {
                ahead.before += results.runs.len();
                carried.results.push(results);
            }
            (part, Some(failure)) => {
                carried.part = Some(part).filter(|part| !part.runs.is_empty());
                carried.wrong.push(failure);
                break;
            }
        }
    }
    carried.wrong.extend(watch.finish());
    Ok(carried)
}

/// Makes the runs of one shard of a stage, for its driver to keep: how many.
///
/// # Errors
/// As [`carry_out`], and the failure that ended the work early.
pub fn carry_out_shard(stage: &Stage<'_>, shard: Shard, progress: &dyn Progress) -> Result<usize, Failure> {
    stage.driver.prepare(&stage.plan).map_err(Failure::refused)?;
    let watch = Watch::new(Wanted::default(), progress)?;
    let ahead = Ahead { watch: &watch, before: 0, behind: 0 };
    let (done, failure) = stage.runner(&ahead, &Threads::new(stage.jobs)).run_shard(&stage.plan, shard);
    let failure = failure.map(|failure| stage.failure(&failure, &watch, stage.kept));
    failure.or(watch.finish()).map_or(Ok(done), Err)
}

/// Reports one stage's progress among all of them.
struct Ahead<'a> {
    watch: &'a Watch<'a>,
    /// Runs of the stages before.
    before: usize,
    /// Runs of those to come, at least.
    behind: usize,
}

impl Observer for Ahead<'_> {
    fn observe(&self, job: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
        self.watch.observe(job, run);
    }

    fn progress(&self, done: usize, planned: usize) {
        self.watch.progress(self.before + done, self.before + planned + self.behind);
    }
}

impl Stage<'_> {
    /// How many runs it has, at least.
    fn runs(&self) -> usize {
        self.plan.extent().0
    }

    fn runner<'r>(&'r self, ahead: &'r Ahead<'_>, pool: &'r Threads) -> Runner<'r> {
        Runner { driver: self.driver, pool, observer: ahead }
    }

    fn run(&self, ahead: &Ahead<'_>) -> (Results, Option<Failure>) {
        let block = self.plan.shape().iter().map(|(rows, _)| rows).sum();
        let pool = Threads::new(self.jobs).mixed(self.order.map(|seed| Mixed { seed, block }));
        let (results, failure) = self.runner(ahead, &pool).run_into(&self.plan, spooled(self.folder.as_deref()));
        let is_nothing = self.kept == Salvage::Printed && ahead.before == 0 && results.runs.is_empty();
        let kept = if is_nothing { Salvage::Nothing } else { self.kept };
        let failure = failure.map(|failure| self.failure(&failure, ahead.watch, kept));
        (results, failure)
    }

    /// Why its runs ended early.
    fn failure(&self, failure: &anabranch_run::Failure, watch: &Watch<'_>, kept: Salvage) -> Failure {
        match failure.error {
            RunError::Interrupted => {
                let progress = watch.progress_so_far();
                Failure::interrupted(&format!("interrupted {progress}: {}{}", self.name, failure.run), kept)
            }
            _ => Failure::failed("anabranch::run::failed", format!("{}{failure}", self.name)),
        }
    }
}

/// How long runs in real time take, beforehand.
fn real_time_notice(stages: &[Stage<'_>]) -> Option<String> {
    let (mut runs, mut time) = (0, Some(Duration::ZERO));
    for stage in stages.iter().filter(|stage| stage.real_time) {
        let (count, takes) = stage.plan.extent();
        let jobs = stage.jobs.map_or(1, NonZeroUsize::get).min(count.max(1)) as u64;
        runs += count;
        time = time.zip(takes).map(|(time, takes)| time + Duration::from_nanos(takes.as_nanos() / jobs));
    }
    let text = match time {
        Some(time) => format!("real time: {runs} runs take {:.0} s at least", time.as_secs_f64().ceil()),
        None => format!("real time: {runs} runs, each until its transfer is done"),
    };
    (runs > 0).then_some(text)
}
