//! Many runs: schedulers × seeds with the single paths beside them, as a report.

use crate::own::{Ask, OWN, equip, stand_in};
use crate::request::{Mistake, Request};
use anabranch_recorders::{SeriesRecorders, Timeline, TimelineRecorder};
use anabranch_report::of_run::{self, OfRow, RunFolder, Series};
use anabranch_report::{MadeBy, html};
use anabranch_run::{
    CONNECTION, Choice, Driver, Job, Labelled, Observer, Options, Results, RunError, RunOutcome, Runner, Serial,
    VirtualTime,
};
use anabranch_scenario::PlugIn;
use anabranch_trace::{DecisionLog, Event, Origin, Recorder, Tee};
use anabranch_units::Instant;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Packets of each timeline in a report.
const PACKETS: usize = 4000;

/// A study's results, and their report as a page.
#[derive(Debug)]
pub struct Study {
    /// As `anabranch run --format json` prints them.
    pub results: Results,
    /// The page of `anabranch run --out`.
    pub page: String,
}

/// Runs a request's schedulers with all seeds; `progress` is given how many runs are done, and how many there are at least.
///
/// # Errors
/// Every mistake in the request, or the run that failed.
pub fn study(request: &Request, own: Option<Ask>, progress: fn(usize, usize)) -> Result<Study, Vec<Mistake>> {
    let mut schedulers = request.schedulers()?;
    let own = own.filter(|_| request.own);
    if own.is_some() {
        schedulers.insert(0, PlugIn { name: OWN.into(), parameters: Vec::new() });
    }
    let plan = request.plan(&Options { schedulers, ..Options::default() })?;
    let watch = Watch { progress, seen: Mutex::default() };
    let runner = Runner { driver: &Equipped(own), pool: &Serial, observer: &watch };
    let results = runner.run(&plan).map_err(|failure| vec![Mistake::plain(failure.to_string())])?;
    let folder = folder(request, watch)?;
    let page = html(&of_run::report(&results, folder));
    Ok(Study { results, page })
}

fn folder(request: &Request, watch: Watch) -> Result<RunFolder, Vec<Mistake>> {
    let described = request.describe()?;
    let (series, timelines) = watch.seen.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().unzip();
    Ok(RunFolder {
        made_by: MadeBy { version: env!("CARGO_PKG_VERSION").into(), git_commit: None },
        settings: vec![("made".into(), "in the playground".into())],
        scenario: (request.name.clone(), described.toml),
        schedulers: anabranch_schedulers::all().iter().map(|entry| entry.name.to_owned()).collect(),
        network: described.network,
        series,
        timelines,
        packets: None,
    })
}

/// Virtual time, with the page's scheduler where a job names it.
#[derive(Debug)]
struct Equipped(Option<Ask>);

impl Driver for Equipped {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let driver = VirtualTime::default();
        match (&job.choice, self.0) {
            (Choice::Multipath(plug_in), Some(ask)) if plug_in.name == OWN => {
                let job = Job { choice: stand_in(), ..job.clone() };
                let sender = job.scenario.direction().first().sender();
                driver.run_with(&job, listener, |flows| equip(flows, sender, ask))
            }
            _ => driver.run(job, listener),
        }
    }
}

/// A run's records.
type Seen = (OfRow<Series>, OfRow<Timeline>);

/// Records the first run of each row.
struct Watch {
    progress: fn(usize, usize),
    seen: Mutex<Vec<Seen>>,
}

/// Knows how late it is.
#[derive(Default)]
struct Clock(Instant);

impl Recorder for Clock {
    fn record(&mut self, now: Instant, _: Origin, _: &Event) {
        self.0 = self.0.max(now);
    }
}

impl Watch {
    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Watch {
    fn observe(&self, labelled: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
        if labelled.repetition > 0 {
            return run(&mut ());
        }
        let scenario = &labelled.job.scenario;
        let paths: Vec<String> = scenario.topology.paths.iter().map(|path| path.name.clone()).collect();
        let way = scenario.direction().first();
        let series = SeriesRecorders::new(CONNECTION, paths.len(), scenario.direction());
        let from = Instant::ZERO + scenario.warmup;
        let log = DecisionLog::new(CONNECTION, from, PACKETS).of(way.sender());
        let follow = TimelineRecorder::new(CONNECTION, from, PACKETS).sent(way).with_decisions(log);
        let mut recorder = Tee(Clock::default(), Tee(series, follow));
        run(&mut recorder);
        let Tee(Clock(now), Tee(series, follow)) = recorder;
        let series = Series::of(&series.finish(now), labelled.job);
        let cell = of_run::cell_name(labelled.job.cell.iter().map(|(key, value)| (key, value)));
        let (row, seed) = (labelled.scheduler.to_owned(), Some(labelled.job.seed));
        let timeline = OfRow { row: row.clone(), cell: cell.clone(), seed, record: follow.finish(now, paths) };
        self.seen().push((OfRow { row, cell, seed, record: series }, timeline));
    }

    fn progress(&self, done: usize, planned: usize) {
        (self.progress)(done, planned);
    }
}
