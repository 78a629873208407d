//! The work of the commands `explain`, `list`, `model`, `compare`, `reproduce`, `infer`, `rerun` and `report`.

use crate::errors;
use crate::waiting::attended;
use anabranch_run::{Driver, Job, Plan, Refusal, RunError, RunOutcome};
use anabranch_trace::Recorder;
use anabranch_units::Duration;
use anabranch_workbench::cache::Cached;
use anabranch_workbench::compare::Request as Comparison;
use anabranch_workbench::drivers::Drivers;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::infer::{self, Request as Inference, Study};
use anabranch_workbench::list::Listing;
use anabranch_workbench::making::{Filing, Repetitions};
use anabranch_workbench::model::Question;
use anabranch_workbench::reproduce::{self, Request as Reproduction};
use anabranch_workbench::visible::visible;
use anabranch_workbench::{explain, papers, rerun as again, results_folder};
use pyo3::prelude::*;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

/// Columns of verdicts where no terminal says how many it has.
const WIDTH: u16 = 118;

/// Real time needs privileges and a process of its own.
struct NoRealTime;

impl Driver for NoRealTime {
    fn prepare(&self, _: &Plan) -> Result<(), Refusal> {
        let what = "hosts in real time need the command `anabranch`".to_owned();
        let help = "leave out realtime, hosts.sender and hosts.receiver for virtual time".to_owned();
        Err(Refusal::Missing { what, help: Some(help) })
    }

    fn run(&self, _: &Job, _: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        Err(RunError::Unsupported { what: "hosts in real time".into() })
    }
}

fn no_preflight(_: Duration) -> Box<dyn Driver> {
    Box::new(NoRealTime)
}

/// An exception with all that went wrong, as the command prints it.
fn raised(py: Python<'_>, wrong: &[Failure]) -> PyErr {
    let text: String = wrong.iter().map(|failure| failure.render(false)).collect();
    errors::error(py, "CommandError", &format!("\n{}", text.trim_end()))
}

fn answered<T>(py: Python<'_>, answer: Result<T, Failure>) -> PyResult<T> {
    answer.map_err(|failure| raised(py, &[failure]))
}

/// The reference page of a name.
#[pyfunction]
pub fn page(py: Python<'_>, name: &str) -> PyResult<String> {
    answered(py, explain::explain(name))
}

/// A list of names as a JSON array of objects.
#[pyfunction]
pub fn listed(py: Python<'_>, what: &str) -> PyResult<String> {
    answered(py, Listing::find(what).and_then(Listing::json))
}

/// The rows of a model as CSV; `set` and `sweep` are as options take them.
#[pyfunction]
pub fn model(
    py: Python<'_>,
    name: &str,
    scenario: Option<PathBuf>,
    set: Vec<String>,
    sweep: Vec<String>,
) -> PyResult<String> {
    let question = Question { name: Some(name), scenario: scenario.as_deref(), set: &set, sweep: &sweep };
    answered(py, question.answer().map(|answer| answer.csv()))
}

/// Compares schedulers over a grid: the standings as text, then the documents in JSON, CSV and SVG.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn compare(
    py: Python<'_>,
    schedulers: Vec<String>,
    congestions: Vec<String>,
    traffic: Vec<String>,
    grid: Option<PathBuf>,
    quick: bool,
    repeat: Option<NonZeroU32>,
    jobs: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String, String, String)> {
    let (schedulers, congestions, traffic) = (&schedulers[..], &congestions[..], &traffic[..]);
    let grid = grid.as_deref();
    let request = Comparison { schedulers, congestions, traffic, grid, quick, repeat, jobs, ..Comparison::default() };
    let ended = attended(py, progress.as_ref(), |driver, progress| {
        let cached = Cached::new(driver, None);
        let ended = request.run(&request.grid()?, &cached, progress)?;
        let found = &ended.found;
        let documents = (visible(&found.text()).into_owned(), found.json(), found.csv(), found.picture());
        Ok((documents, ended.close()))
    })?;
    let (documents, wrong) = answered(py, ended)?;
    if wrong.is_empty() { Ok(documents) } else { Err(raised(py, &wrong)) }
}

/// Runs a paper's items again, and writes the results and the report into `out`: the verdicts as text.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn reproduced(
    py: Python<'_>,
    paper: PathBuf,
    item: Option<String>,
    quick: bool,
    repeat: Option<NonZeroU32>,
    readings: bool,
    out: PathBuf,
    jobs: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let request = Reproduction {
        paper: &paper,
        item: item.as_deref(),
        live: false,
        quick,
        readings,
        repeat: repeat.map(|count| Repetitions::Count(count.get())),
        jobs,
        out: &out,
        force: false,
    };
    let ended = attended(py, progress.as_ref(), |driver, progress| {
        let cached = Cached::new(driver, None);
        let drivers = Drivers { virtual_time: &cached, real_time: &NoRealTime, preflight: no_preflight, cache: None };
        reproduce::reproduce(&papers::find(request.paper)?, &request, &drivers, progress)
    })?;
    let ended = answered(py, ended)?;
    if ended.wrong.is_empty() { Ok(visible(&ended.text(WIDTH)).into_owned()) } else { Err(raised(py, &ended.wrong)) }
}

/// Infers what testbeds leave open, and writes results and report into `out`, if given: the tables as text, then the document in JSON, and
/// the claims in CSV.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub fn inferred(
    py: Python<'_>,
    source: PathBuf,
    draws: Option<NonZeroUsize>,
    keep: Option<NonZeroUsize>,
    out: Option<PathBuf>,
    force: bool,
    jobs: Option<NonZeroUsize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String, String)> {
    let out = out.as_deref();
    let request = Inference { source: &source, draws, keep, jobs, out, force, shard: None, from: &[] };
    let ended = attended(py, progress.as_ref(), |driver, progress| {
        infer::infer(&Study::find(&request)?, &request, &Cached::new(driver, None), progress)
    })?;
    let ended = answered(py, ended)?;
    let documents = (visible(&ended.text(WIDTH)).into_owned(), ended.json(), ended.claims());
    if ended.wrong.is_empty() { Ok(documents) } else { Err(raised(py, &ended.wrong)) }
}

/// Makes the runs of a results directory again, and writes them into `out`, if given: whether every byte is the same, and what
/// differs.
#[pyfunction]
pub fn rerun(
    py: Python<'_>,
    folder: PathBuf,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(bool, String)> {
    let filing = Filing { out: out.as_deref(), ..Filing::default() };
    let made = attended(py, progress.as_ref(), |driver, progress| {
        again::rerun(&folder, &filing, &Cached::new(driver, None), progress)
    })?;
    let (made, verdict) = answered(py, made)?;
    if made.wrong.is_empty() { Ok((verdict.is_same, verdict.text)) } else { Err(raised(py, &made.wrong)) }
}

/// Writes the report of a results directory into it.
#[pyfunction]
pub fn write_report(py: Python<'_>, folder: PathBuf) -> PyResult<()> {
    answered(py, results_folder::make_report(&folder, None, &()))
}
