//! Outcomes of runs that are done.

use crate::plan::Plan;
use anabranch_run::{Driver, Job, RunError, RunOutcome};
use anabranch_trace::Recorder;
use anabranch_workbench::division::run_name;
use anabranch_workbench::journal::Journal;
use anabranch_workbench::kept::run_once;
use anabranch_workbench::runs_table::{Written, value_names};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Outcomes of runs that are done, in a journal: another call, or another process, need not do them again. Objects of Python are known
/// by their names, so that outcomes serve one call of `run` only.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Outcomes(Journal);

#[pymethods]
impl Outcomes {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(Journal::temporary()?))
    }

    /// Lines of all of them, for another process.
    fn lines(&self) -> PyResult<Vec<u8>> {
        Ok(self.0.lines()?)
    }

    /// Adds those of [`Self::lines`].
    fn add(&self, lines: &[u8]) -> PyResult<()> {
        Ok(self.0.add(lines)?)
    }

    /// Adds the outcomes of all runs of `plan`, from the columns of the table that was written of them, in its order.
    fn add_table(&self, plan: &Plan, columns: &Bound<'_, PyDict>) -> PyResult<()> {
        fn cells<'py, T: FromPyObjectOwned<'py>>(columns: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<T>> {
            let column = columns.get_item(name)?;
            column.ok_or_else(|| PyValueError::new_err(format!("it has no column `{name}`")))?.extract()
        }
        let names: Vec<String> = columns.keys().extract()?;
        let values = value_names(&names).into_iter().map(|name| Ok((name.to_owned(), cells(columns, name)?)));
        let written = Written {
            digests: cells(columns, "digest")?,
            events: cells(columns, "events")?,
            finished: cells(columns, "finished")?,
            values: values.collect::<PyResult<_>>()?,
        };
        let outcomes = written.outcomes().unwrap_or_default();
        let jobs: Vec<Job> = plan.plan.runs().collect();
        if outcomes.len() != jobs.len() {
            return Err(PyValueError::new_err(format!("it has not one row for each of {} runs", jobs.len())));
        }
        jobs.iter().zip(&outcomes).for_each(|(job, outcome)| self.0.keep(run_name(job), outcome));
        self.0.with_error(|error| PyOSError::new_err(error.to_string())).map_or(Ok(()), Err)
    }
}

/// A driver with outcomes that are known.
pub struct Knowing<'a> {
    /// The outcomes.
    pub outcomes: &'a Outcomes,
    /// Makes the other runs.
    pub driver: &'a dyn Driver,
}

impl Driver for Knowing<'_> {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        run_once(&self.outcomes.0, run_name(job), self.driver, job, listener)
    }
}
