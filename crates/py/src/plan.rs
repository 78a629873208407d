//! Plans, runs and results.

use crate::errors;
use crate::outcomes::{Knowing, Outcomes};
use crate::plugins::{Fate, Raised, equip};
use crate::scenario::Checked;
use crate::table::Table;
use crate::waiting::{Attendant, Counts};
use anabranch_report::of_run::Network;
use anabranch_report::text::results_table;
use anabranch_run::{
    Choice, Driver, Failure as RunFailure, Job, Labelled, Observer, Options, Plan as RunPlan, Repeat,
    Results as RunResults, RunError, RunOutcome, Runner, SCHEMA, Serial, VirtualTime,
};
use anabranch_scenario::PlugIn;
use anabranch_trace::Recorder;
use anabranch_workbench::artifacts::{Manifest, ScenarioText, write_results};
use anabranch_workbench::cache::Cached;
use anabranch_workbench::division::{Part, divide, identity, part_file};
use anabranch_workbench::failure::Failure;
use anabranch_workbench::folder;
use anabranch_workbench::input::{RESULTS, read_within, why};
use anabranch_workbench::kept::PROGRAM;
use anabranch_workbench::load::{congestions, schedulers};
use anabranch_workbench::out_folder::{OutFolder, Owner};
use anabranch_workbench::pool::Threads;
use anabranch_workbench::runs_table::Columns;
use anabranch_workbench::spool::spooled;
use anabranch_workbench::visible::visible;
use anabranch_workbench::watch::{Wanted, Watch};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Plug-ins that are objects of Python, by name.
type Objects = BTreeMap<String, Py<PyAny>>;

/// Plug-ins in order, and those of them that are objects.
type PlugIns = (Vec<PlugIn>, Objects);

/// A panic elsewhere leaves nothing half done in here.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A part of a plan, which a store keeps in a file.
#[pyclass(frozen, get_all, module = "anabranch._native")]
pub struct Shard {
    /// Place among the shards, from 0 on.
    number: usize,
    /// The first cell, and the one after the last.
    cells: (usize, usize),
    /// The first repetition, and the one after the last.
    repetitions: (u32, u32),
    /// The number of runs.
    runs: usize,
    /// The name of the file: the place, and the key of the build, the scenario, the options and the seeds.
    file: String,
}

/// The runs of a scenario.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Plan {
    pub(crate) plan: RunPlan,
    schedulers: Objects,
    congestions: Objects,
}

/// Reads names, with commas between them, and objects of Python, which are known by their `name`.
fn plug_ins(
    py: Python<'_>,
    given: &[Bound<'_, PyAny>],
    read: impl Fn(&[String]) -> Result<Vec<PlugIn>, Failure>,
    is_known: fn(&str) -> bool,
) -> PyResult<PlugIns> {
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

/// The options of a study, with its own schedulers and congestion controls, as [`plug_ins`] reads them.
pub fn options(
    py: Python<'_>,
    schedulers: &[Bound<'_, PyAny>],
    congestions: &[Bound<'_, PyAny>],
    (baselines, auto): (bool, bool),
) -> PyResult<(Options, Objects, Objects)> {
    let known = |name: &str| anabranch_schedulers::resolve(name).is_ok();
    let read = |names: &[String]| self::schedulers("schedulers", names);
    let (schedulers, own_schedulers) = plug_ins(py, schedulers, read, known)?;
    let known = |name: &str| anabranch_congestion::find(name).is_some();
    let read = |names: &[String]| self::congestions("congestion", names);
    let (congestions, own_congestions) = plug_ins(py, congestions, read, known)?;
    let repeat = if auto { Repeat::Auto } else { Repeat::AsWritten };
    let options = Options { schedulers, congestions, baselines, repeat, ..Options::default() };
    Ok((options, own_schedulers, own_congestions))
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
        let (options, schedulers, congestions) = options(py, &schedulers, &congestions, (baselines, auto))?;
        let plan = RunPlan::new(&scenario.0.variants(), &options);
        Ok(Self { plan, schedulers, congestions })
    }

    /// The number of runs, at least.
    fn __len__(&self) -> usize {
        self.plan.extent().0
    }

    /// Shape of each cell, in order: how many rows it has, and how many repetitions of each, at least.
    fn shape(&self) -> Vec<(usize, u32)> {
        self.plan.shape()
    }

    /// Some cells, with some of their repetitions: a plan of its own. Both ranges are (begin, end), counted from 0.
    fn part(&self, py: Python<'_>, cells: (usize, usize), repetitions: (u32, u32)) -> Self {
        let same = |objects: &Objects| objects.iter().map(|(name, of)| (name.clone(), of.clone_ref(py))).collect();
        let plan = self.plan.part(cells.0..cells.1, repetitions.0..repetitions.1);
        Self { plan, schedulers: same(&self.schedulers), congestions: same(&self.congestions) }
    }

    /// The key of the build, the scenario, the options and the seeds: two plans of one identity have the same results.
    fn identity(&self) -> String {
        identity(&self.plan)
    }

    /// Shards of about so many runs, in the order of the cells: a range of the seeds of one cell, or several small cells.
    fn shards(&self, runs: usize) -> Vec<Shard> {
        let shard = |(number, part): (usize, Part)| Shard {
            number,
            cells: (part.cells.start, part.cells.end),
            repetitions: (part.repetitions.start, part.repetitions.end),
            runs: part.runs,
            file: part_file(number, &part, &self.plan),
        };
        divide(&self.plan.shape(), runs).into_iter().enumerate().map(shard).collect()
    }

    /// Does all runs that `outcomes` does not have, and adds them to it; without `outcomes`, all runs. `threads`: one per core
    /// if `None`. `progress` is called with the numbers of runs that are done and planned. If `known_only`, the first run that
    /// `outcomes` does not have ends them.
    ///
    /// Returns the results and whether they are complete: Ctrl-C ends the runs. Raises `RunFailed`, `PlugInError` if an
    /// object of Python raises.
    #[pyo3(signature = (outcomes=None, threads=None, progress=None, known_only=false))]
    fn run(
        &self,
        py: Python<'_>,
        outcomes: Option<&Outcomes>,
        threads: Option<NonZeroUsize>,
        progress: Option<Py<PyAny>>,
        known_only: bool,
    ) -> PyResult<(Results, bool)> {
        let results = self.carry_out(py, outcomes, threads, progress, &(), known_only)?;
        let is_complete = results.incomplete.is_none();
        Ok((Results(results), is_complete))
    }

    /// Does the runs, and writes the time series and the fates of the first `packets` packets of each row's first repetition
    /// into `folder`, as `run --out` does. Returns whether all are done.
    #[pyo3(signature = (folder, packets, threads=None))]
    fn follow(&self, py: Python<'_>, folder: PathBuf, packets: usize, threads: Option<NonZeroUsize>) -> PyResult<bool> {
        let (series, timeline) = (Some(folder.join("series")), Some((folder.join("timeline"), packets)));
        let wanted = Wanted { series, timeline: timeline.filter(|_| packets > 0), ..Wanted::default() };
        let watch = Watch::new(wanted, &()).map_err(|failure| errors::failure(py, &failure))?;
        let results = self.carry_out(py, None, threads, None, &watch, false)?;
        let is_complete = results.incomplete.is_none();
        watch.finish().map_or(Ok(is_complete), |failure| Err(errors::failure(py, &failure)))
    }
}

/// Counts runs, and lets `inner` listen.
struct Counting<'a> {
    inner: &'a dyn Observer,
    counts: Counts,
    /// Attends after each run on the thread that does all of them.
    at_once: Option<&'a Attendant<'a>>,
}

impl Observer for Counting<'_> {
    fn observe(&self, job: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
        self.inner.observe(job, run);
    }

    fn progress(&self, done: usize, planned: usize) {
        self.counts.set(done, planned);
        if let Some(attendant) = self.at_once {
            Python::attach(|py| attendant.attend(py, [done, planned]));
        }
    }
}

/// Virtual time with objects of Python as plug-ins.
struct Bench<'a> {
    plan: &'a Plan,
    fate: Fate,
}

impl Driver for Bench<'_> {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        if self.fate.is_stopped() {
            return Err(RunError::Interrupted);
        }
        let outcome = self.simulate(job, listener)?;
        if self.fate.is_stopped() { Err(RunError::Interrupted) } else { Ok(outcome) }
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
    fn carry_out(
        &self,
        py: Python<'_>,
        outcomes: Option<&Outcomes>,
        threads: Option<NonZeroUsize>,
        progress: Option<Py<PyAny>>,
        observer: &dyn Observer,
        known_only: bool,
    ) -> PyResult<RunResults> {
        let fate = Fate::new();
        if known_only {
            fate.stop();
        }
        let bench = Bench { plan: self, fate: fate.clone() };
        let knowing = outcomes.map(|outcomes| Knowing { outcomes, driver: &bench });
        let driver = Cached::new(knowing.as_ref().map_or(&bench as &dyn Driver, |knowing| knowing), None);
        let attendant = Attendant::new(progress.as_ref(), &fate);
        let counting = |at_once| Counting { inner: observer, counts: Counts::default(), at_once };
        let answer = if self.schedulers.is_empty() && self.congestions.is_empty() {
            let (counting, pool) = (counting(None), Threads::new(threads));
            let runner = Runner { driver: &driver, pool: &pool, observer: &counting };
            attendant.beside(py, &counting.counts, || runner.run_into(&self.plan, spooled(None)))
        } else {
            // Python runs on one thread at a time, so there is no use for another.
            let counting = counting(Some(&attendant));
            Some(Runner { driver: &driver, pool: &Serial, observer: &counting }.run_into(&self.plan, spooled(None)))
        };
        let (results, failure) =
            answer.ok_or_else(|| errors::error(py, "RunFailed", "a run panicked: this is a defect"))?;
        let error = attendant.take().or_else(|| ended_by(py, fate.take(), failure));
        // Ctrl-C leaves the results of the runs that were done.
        error.filter(|error| !error.is_instance_of::<PyKeyboardInterrupt>(py)).map_or(Ok(results), Err)
    }
}

/// The exception of a plug-in, or of the run that failed; none if runs were interrupted.
fn ended_by(py: Python<'_>, raised: Option<Raised>, failure: Option<RunFailure>) -> Option<PyErr> {
    match (raised, failure) {
        (Some(raised), failure) => {
            Some(raised_error(py, raised, &failure.map_or_else(String::new, |failure| failure.run)))
        }
        (None, failure) => {
            let failure = failure.filter(|failure| failure.error != RunError::Interrupted)?;
            Some(errors::error(py, "RunFailed", &failure.to_string()))
        }
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

/// The part of the document that says which version it has.
#[derive(serde::Deserialize)]
struct Begun {
    schema: Option<u32>,
    anabranch: Option<String>,
}

/// The text of a file, within the limit of results.
fn read(py: Python<'_>, file: &Path, inside: bool, help: &str) -> PyResult<String> {
    let text = match inside {
        true => folder::Folder::around(file).and_then(|(folder, name)| folder.read_within(RESULTS, 0, name)),
        false => read_within(RESULTS, 0, file),
    };
    let why = |error| format!("cannot read {}: {}{help}", file.display(), why(&error));
    text.map_err(|error| errors::error(py, "ResultsError", &why(error)))
}

/// The text of a file in a folder that may be a stranger's: through no link, and within the limit of results.
#[pyfunction]
pub fn read_text(py: Python<'_>, file: PathBuf) -> PyResult<String> {
    read(py, &file, true, "")
}

/// The document of `run --format json`.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Results(pub RunResults);

#[pymethods]
impl Results {
    /// Reads a document.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        let read = serde_json::from_str(text).map(Self);
        read.map_err(|error| errors::error(py, "ResultsError", &error.to_string()))
    }

    /// Reads the document in a file, which may be a stranger's. `inside`: through no link, as a folder of a stranger's may have one.
    #[staticmethod]
    fn read(py: Python<'_>, file: PathBuf, inside: bool) -> PyResult<Self> {
        let text = read(py, &file, inside, "; give a directory that `anabranch run --out` or `Results.save` wrote")?;
        let of_this = |why: String| errors::error(py, "ResultsError", &format!("{} {why}", file.display()));
        let begun = serde_json::from_str(&text).map_err(|error| {
            let what = if error.is_data() { "no document of results" } else { "no JSON document" };
            of_this(format!("is {what}: {error}"))
        });
        let begun: Begun = begun?;
        match begun.schema {
            Some(SCHEMA) => {}
            None => return Err(of_this("has no key `schema`: these are no results of anabranch".into())),
            Some(other) => {
                let made = begun.anabranch.unwrap_or_else(|| "another version".into());
                let ours = env!("CARGO_PKG_VERSION");
                let why = format!(
                    "has results of schema {other}, written by anabranch {made}; anabranch {ours} reads schema {SCHEMA}"
                );
                return Err(of_this(why));
            }
        }
        serde_json::from_str(&text).map(Self).map_err(|error| of_this(format!("cannot be read: {error}")))
    }

    /// The document.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The table that the command prints on a terminal.
    fn text(&self) -> String {
        visible(&results_table(&self.0)).into_owned()
    }

    /// Hash over the runs' digests.
    #[getter]
    fn digest(&self) -> &str {
        &self.0.digest
    }

    /// Writes `results.json`, `runs.csv`, `runs.parquet`, `summary.csv` and `comparisons.csv` into `folder`.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let written = folder::Folder::make(&folder).and_then(|folder| write_results(&folder, &self.0));
        written.map_err(|failure| errors::failure(py, &failure))
    }

    /// Writes `manifest.json` into `folder`: the results are those of `scenario`, called `source`, or of a scenario of which only this name
    /// and `text` are known. The work took so many seconds, and ended now.
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn write_manifest(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        scenario: Option<PyRef<'_, Checked>>,
        source: String,
        text: String,
        command: Vec<String>,
        wall_time_s: f64,
    ) -> PyResult<()> {
        let known = scenario.as_ref().map(|checked| &checked.0);
        let network = known.map(|loaded| Network::of(&loaded.document.scenario)).unwrap_or_default();
        let scenario = known.map_or_else(|| ScenarioText { text, ..ScenarioText::default() }, ScenarioText::of);
        let manifest = Manifest::new(&self.0, ScenarioText { source, ..scenario }, network, command);
        let wall_time = Duration::try_from_secs_f64(wall_time_s).unwrap_or_default();
        let written = folder::Folder::make(&folder).and_then(|folder| manifest.after(wall_time).write(&folder));
        written.map_err(|failure| errors::failure(py, &failure))
    }

    /// One row per run, with the columns of `runs.csv`.
    fn runs(&self) -> PyResult<Table> {
        Table::of_columns(Columns::of(&self.0).all())
    }
}

/// A results directory that is about to be filled. Files of earlier results stay until it is taken.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Folder(Mutex<Option<OutFolder>>);

#[pymethods]
impl Folder {
    /// Makes `folder` if need be; refuses it if files of another program would be lost, or, unless `force`, results of another scenario than
    /// that with this name and text.
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, name: String, text: String, force: bool) -> PyResult<Self> {
        let claimed = OutFolder::claim(&folder, &Owner::Scenario(name, text), force)
            .map_err(|failure| errors::failure(py, &failure))?;
        Ok(Self(Mutex::new(Some(claimed))))
    }

    /// Where everything is to be written first; `None` once it is taken.
    #[getter]
    fn beside(&self) -> Option<PathBuf> {
        locked(&self.0).as_ref().map(|folder| folder.beside().to_owned())
    }

    /// Puts what was written in the place of the earlier results.
    fn take(&self, py: Python<'_>) -> PyResult<()> {
        let taken = locked(&self.0).take().map(OutFolder::take);
        taken.map_or(Ok(()), |taken| taken.map(drop).map_err(|failure| errors::failure(py, &failure)))
    }
}

/// Version and digest of what decides a run's outcome.
#[pyfunction]
pub fn program() -> &'static str {
    PROGRAM
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
