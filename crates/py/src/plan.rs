//! Plans, runs and results.

use crate::errors;
use crate::plugins::{Fate, Raised, equip};
use crate::scenario::Checked;
use crate::table::Table;
use anabranch_cli::parts::{Failure, Threads, Wanted, Watch, columns, congestions, runs_csv, schedulers};
use anabranch_report::text::results_table;
use anabranch_run::{
    Choice, Driver, Job, Labelled, Observer, Options, Plan as RunPlan, Pool, Repeat, Results as RunResults, RunError,
    RunOutcome, Runner, SCHEMA, Variant, VirtualTime,
};
use anabranch_scenario::PlugIn;
use anabranch_trace::Recorder;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Plug-ins that are objects of Python, by name.
type Objects = BTreeMap<String, Py<PyAny>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Outcomes of runs that are done: another call, or another process, need not do them again.
#[pyclass(frozen, module = "anabranch._native")]
#[derive(Default)]
pub struct Outcomes(Mutex<BTreeMap<String, RunOutcome>>);

/// The key of an outcome: everything on which it depends within one scenario.
fn key(job: &Job) -> String {
    let choice = match &job.choice {
        Choice::Multipath(plug_in) => plug_in.with_parameters(),
        Choice::Single(path) => format!("single:{path}"),
    };
    format!("{choice}|{}|{}|{:?}", job.congestion.with_parameters(), job.seed, job.cell)
}

impl Outcomes {
    fn get(&self, job: &Job) -> Option<RunOutcome> {
        locked(&self.0).get(&key(job)).cloned()
    }

    fn has(&self, job: &Job) -> bool {
        locked(&self.0).contains_key(&key(job))
    }
}

#[pymethods]
impl Outcomes {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        locked(&self.0).len()
    }

    /// All of them as a document, for another process.
    fn to_json(&self) -> String {
        serde_json::to_string(&*locked(&self.0)).unwrap_or_default()
    }

    /// Adds those of a document of [`Self::to_json`].
    fn add_json(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let more: BTreeMap<String, RunOutcome> =
            serde_json::from_str(text).map_err(|error| errors::error(py, "ResultsError", &error.to_string()))?;
        locked(&self.0).extend(more);
        Ok(())
    }
}

/// The runs of a scenario.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Plan {
    plan: RunPlan,
    variants: Vec<Variant>,
    options: Options,
    schedulers: Objects,
    congestions: Objects,
}

/// Reads names, with commas between them, and objects of Python, which are known by their `name`.
fn plug_ins(
    py: Python<'_>,
    given: &[Bound<'_, PyAny>],
    read: impl Fn(&[String]) -> Result<Vec<PlugIn>, Failure>,
    is_known: fn(&str) -> bool,
) -> PyResult<(Vec<PlugIn>, Objects)> {
    let (mut all, mut objects) = (Vec::new(), Objects::new());
    for one in given {
        if let Ok(name) = one.extract::<String>() {
            all.extend(read(&[name]).map_err(|failure| errors::failure(py, &failure))?);
            continue;
        }
        let name: String = one.getattr("name")?.extract()?;
        let why = match () {
            () if is_known(&name) => "that is the name of a built-in one",
            () if name.is_empty() || name.contains([',', '(', '|', ':']) => "it must be a word",
            () if objects.contains_key(&name) => "another object has it",
            () => "",
        };
        if !why.is_empty() {
            let text = format!("an object cannot be called `{name}`: {why}; set its attribute `name`");
            return Err(errors::error(py, "PlugInError", &text));
        }
        all.push(PlugIn { name: name.clone(), parameters: Vec::new() });
        objects.insert(name, one.clone().unbind());
    }
    Ok((all, objects))
}

#[pymethods]
impl Plan {
    /// `schedulers` and `congestions` have names and objects; empty = the scenario's own.
    #[new]
    #[pyo3(signature = (scenario, schedulers, congestions, baselines=true, auto=false))]
    fn new(
        py: Python<'_>,
        scenario: &Checked,
        schedulers: Vec<Bound<'_, PyAny>>,
        congestions: Vec<Bound<'_, PyAny>>,
        baselines: bool,
        auto: bool,
    ) -> PyResult<Self> {
        let known = |name: &str| anabranch_schedulers::resolve(name).is_ok();
        let read = |names: &[String]| self::schedulers("schedulers", names);
        let (schedulers, own_schedulers) = plug_ins(py, &schedulers, read, known)?;
        let known = |name: &str| anabranch_congestion::find(name).is_some();
        let read = |names: &[String]| self::congestions("congestion", names);
        let (congestions, own_congestions) = plug_ins(py, &congestions, read, known)?;
        let options = Options {
            schedulers,
            congestions,
            baselines,
            repeat: if auto { Repeat::Auto } else { Repeat::AsWritten },
            real_time: false,
            curves: None,
        };
        let variants = scenario.0.variants();
        let plan = RunPlan::new(&variants, &options);
        Ok(Self { plan, variants, options, schedulers: own_schedulers, congestions: own_congestions })
    }

    /// The number of runs, at least.
    fn __len__(&self) -> usize {
        self.plan.extent().0
    }

    /// Does all runs that `outcomes` does not have, and adds them to it. `threads`: one per core if `None`. `progress` is
    /// called with the numbers of runs that are done and planned.
    ///
    /// Raises `RunFailed`, `PlugInError` if an object of Python raises, `KeyboardInterrupt`.
    #[pyo3(signature = (outcomes, threads=None, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        outcomes: &Outcomes,
        threads: Option<NonZeroUsize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Results> {
        self.carry_out(py, outcomes, threads, progress, &()).map(Results)
    }

    /// Does the runs, and writes the time series and the fates of the first `packets` packets of each row's first repetition
    /// into `folder`, as `run --out` does.
    #[pyo3(signature = (folder, packets, threads=None))]
    fn follow(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        packets: usize,
        threads: Option<NonZeroUsize>,
    ) -> PyResult<Results> {
        let (series, timeline) = (Some(folder.join("series")), Some((folder.join("timeline"), packets)));
        let wanted = Wanted { series, timeline: timeline.filter(|_| packets > 0), ..Wanted::default() };
        let watch = Watch::new(wanted).map_err(|failure| errors::failure(py, &failure))?;
        let results = self.carry_out(py, &Outcomes::default(), threads, None, &watch)?;
        watch.finish().map_or(Ok(Results(results)), |failure| Err(errors::failure(py, &failure)))
    }

    /// The results of the runs in `outcomes`: as many repetitions as every row has whose first one is done; of a sweep, the
    /// cells all of whose rows are. `None` if that leaves nothing.
    fn salvage(&self, py: Python<'_>, outcomes: &Outcomes) -> PyResult<Option<Results>> {
        let most = self.variants.iter().map(|variant| variant.scenario.repeat).max().unwrap_or(1).max(1);
        let done = |job: &Job| {
            let later = |n: u32| Job { seed: job.seed.wrapping_add(n.into()), ..job.clone() };
            (0..most).take_while(|n| outcomes.has(&later(*n))).count() as u32
        };
        let rows: Vec<(Job, u32)> = self.plan.jobs().map(|job| (job.clone(), done(&job))).collect();
        let is_single = |job: &Job| matches!(job.choice, Choice::Single(_));
        let several = self.variants.len() > 1;
        let begun = |job: &Job| done(job) > 0;
        let mut options = Options { repeat: Repeat::AsWritten, ..self.options.clone() };
        let mut variants = self.variants.clone();
        if several {
            variants.retain(|variant| {
                let part = RunPlan::new(std::slice::from_ref(variant), &options);
                part.jobs().all(|job| begun(&job))
            });
        } else {
            options.baselines &= rows.iter().filter(|(job, _)| is_single(job)).all(|(_, n)| *n > 0);
            let of = |job: &Job| match &job.choice {
                Choice::Multipath(plug_in) => Some(plug_in.clone()),
                Choice::Single(_) => None,
            };
            let lacks = |plug_in: &PlugIn| rows.iter().any(|(job, n)| of(job).as_ref() == Some(plug_in) && *n == 0);
            let mut kept: Vec<PlugIn> = rows.iter().filter_map(|(job, _)| of(job)).collect();
            kept.retain(|plug_in| !lacks(plug_in));
            kept.dedup();
            if kept.is_empty() {
                return Ok(None);
            }
            options.schedulers = kept;
        }
        let least = |variant: &Variant| {
            let part = RunPlan::new(std::slice::from_ref(variant), &options);
            part.jobs().map(|job| done(&job)).min().unwrap_or(0)
        };
        let repeat = variants.iter().map(least).min().unwrap_or(0);
        if repeat == 0 {
            return Ok(None);
        }
        for variant in &mut variants {
            let mut scenario = (*variant.scenario).clone();
            scenario.repeat = repeat;
            variant.scenario = Arc::new(scenario);
        }
        let (schedulers, congestions) = (cloned(py, &self.schedulers), cloned(py, &self.congestions));
        let plan = RunPlan::new(&variants, &options);
        let part = Self { plan, variants, options, schedulers, congestions };
        part.carry_out(py, outcomes, NonZeroUsize::new(1), None, &()).map(|results| Some(Results(results)))
    }
}

fn cloned(py: Python<'_>, objects: &Objects) -> Objects {
    objects.iter().map(|(name, object)| (name.clone(), object.clone_ref(py))).collect()
}

/// Counts runs, and lets `inner` listen.
struct Counting<'a> {
    inner: &'a dyn Observer,
    done: AtomicUsize,
    planned: AtomicUsize,
    /// Called after each run on the thread that does all of them.
    at_once: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

impl Observer for Counting<'_> {
    fn observe(&self, job: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
        self.inner.observe(job, run);
    }

    fn progress(&self, done: usize, planned: usize) {
        self.done.store(done, Ordering::Relaxed);
        self.planned.store(planned, Ordering::Relaxed);
        if let Some(call) = self.at_once {
            call(done, planned);
        }
    }
}

/// Does the first repetition of every row, then the second: an interruption leaves rows of about equal length.
struct Across<P> {
    inner: P,
    rows: usize,
}

impl<P: Pool> Pool for Across<P> {
    fn for_each(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        if self.rows == 0 || !count.is_multiple_of(self.rows) {
            return self.inner.for_each(count, task);
        }
        let each = count / self.rows;
        self.inner.for_each(count, &|index| task(index % self.rows * each + index / self.rows));
    }
}

/// Virtual time with objects of Python as plug-ins, and with outcomes that are known.
struct Bench<'a> {
    plan: &'a Plan,
    outcomes: &'a Outcomes,
    fate: Fate,
}

impl Driver for Bench<'_> {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        if let Some(outcome) = self.outcomes.get(job) {
            return Ok(outcome);
        }
        if self.fate.is_stopped() {
            return Err(RunError::Interrupted);
        }
        let outcome = self.simulate(job, listener)?;
        if self.fate.is_stopped() {
            return Err(RunError::Interrupted);
        }
        locked(&self.outcomes.0).insert(key(job), outcome.clone());
        Ok(outcome)
    }
}

impl Bench<'_> {
    fn simulate(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let world = VirtualTime { stop: Some(self.fate.flag()), ..VirtualTime::default() };
        let scheduler = match &job.choice {
            Choice::Multipath(plug_in) => self.plan.schedulers.get_key_value(&plug_in.name),
            Choice::Single(_) => None,
        };
        let congestion = self.plan.congestions.get_key_value(&job.congestion.name);
        if scheduler.is_none() && congestion.is_none() {
            return world.run(job, listener);
        }
        // The registries know no objects: others hold their places until the connections are made.
        let named = |name: &str| PlugIn { name: name.to_owned(), parameters: Vec::new() };
        let mut job = job.clone();
        if scheduler.is_some() {
            job.choice = Choice::Multipath(named("minrtt"));
        }
        if congestion.is_some() {
            job.congestion = named("reno");
        }
        let scheduler = scheduler.map(|(name, object)| (name.as_str(), object));
        let congestion = congestion.map(|(name, object)| (name.as_str(), object));
        let done = world.run_with(&job, listener, |flows| {
            Python::attach(|py| equip(py, flows, scheduler, congestion, &self.fate));
        });
        if self.fate.is_stopped() { Err(RunError::Interrupted) } else { done }
    }
}

impl Plan {
    #[expect(clippy::disallowed_methods, reason = "one thread waits for signals while the pool works")]
    fn carry_out(
        &self,
        py: Python<'_>,
        outcomes: &Outcomes,
        threads: Option<NonZeroUsize>,
        progress: Option<Py<PyAny>>,
        observer: &dyn Observer,
    ) -> PyResult<RunResults> {
        let fate = Fate::new();
        let driver = Bench { plan: self, outcomes, fate: fate.clone() };
        let interrupted: Mutex<Option<PyErr>> = Mutex::default();
        // Signals and the progress bar; an exception in either ends the runs.
        let attend = |py: Python<'_>, done: usize, planned: usize| {
            let tell = || match &progress {
                Some(progress) if planned > 0 => progress.call1(py, (done, planned)).map(drop),
                _ => Ok(()),
            };
            if let Err(error) = py.check_signals().and_then(|()| tell()) {
                locked(&interrupted).get_or_insert(error);
                fate.stop();
            }
        };
        let rows = self.plan.jobs().count();
        let answer = if self.schedulers.is_empty() && self.congestions.is_empty() {
            let counting = Counting { inner: observer, done: 0.into(), planned: 0.into(), at_once: None };
            let pool = Across { inner: Threads::new(threads), rows };
            py.detach(|| {
                std::thread::scope(|scope| {
                    let (end, ended) = channel();
                    let runner = Runner { driver: &driver, pool: &pool, observer: &counting };
                    let work = scope.spawn(move || {
                        let answer = runner.run(&self.plan);
                        let _ = end.send(());
                        answer
                    });
                    while ended.recv_timeout(std::time::Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
                        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
                        Python::attach(|py| attend(py, count(&counting.done), count(&counting.planned)));
                    }
                    work.join()
                })
            })
        } else {
            // Python runs on one thread at a time, so there is no use for another.
            let at_once = |done, planned| Python::attach(|py| attend(py, done, planned));
            let counting = Counting { inner: observer, done: 0.into(), planned: 0.into(), at_once: Some(&at_once) };
            let pool = Across { inner: anabranch_run::Serial, rows };
            Ok(Runner { driver: &driver, pool: &pool, observer: &counting }.run(&self.plan))
        };
        if let Some(error) = interrupted.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let answer = answer.map_err(|_| errors::error(py, "RunFailed", "a run panicked: this is a defect"))?;
        answer.map_err(|failure| match fate.take() {
            Some(raised) => raised_error(py, raised, &failure.run),
            None if failure.error == RunError::Interrupted => PyKeyboardInterrupt::new_err(failure.run),
            None => errors::error(py, "RunFailed", &failure.to_string()),
        })
    }
}

fn raised_error(py: Python<'_>, raised: Raised, run: &str) -> PyErr {
    let Raised { error, kind, name, at } = raised;
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return error;
    }
    let class = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
    let value = error.value(py).to_string();
    let text = format!("the {kind} `{name}` raised {class} at {at} of virtual time, in the run {run}: {value}");
    errors::error_from(py, "PlugInError", &text, error)
}

/// The document of `run --format json`.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Results(RunResults);

#[pymethods]
impl Results {
    /// Reads a document.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        let read = serde_json::from_str(text).map(Self);
        read.map_err(|error| errors::error(py, "ResultsError", &error.to_string()))
    }

    /// The document.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The table that the command prints.
    fn text(&self) -> String {
        results_table(&self.0)
    }

    /// Hash over the runs' digests.
    #[getter]
    fn digest(&self) -> &str {
        &self.0.digest
    }

    /// The text of `runs.csv`.
    fn runs_csv(&self) -> String {
        runs_csv(&self.0)
    }

    /// One row per run, with the columns of `runs.csv`.
    fn runs(&self) -> PyResult<Table> {
        Table::of_columns(columns(&self.0))
    }
}

/// The version of the results' schema.
#[pyfunction]
pub fn schema() -> u32 {
    SCHEMA
}

/// The main metric of runs that have these, whose names are given.
#[pyfunction]
pub fn main_metric(names: Vec<String>) -> &'static str {
    anabranch_metrics::main_metric(|wanted| names.iter().any(|name| name == wanted)).name
}
