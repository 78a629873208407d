//! Everything from which the runs of a results directory are made.

use crate::errors;
use crate::plan::{Results, options};
use crate::scenario::Checked;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::folder::Folder;
use anabranch_workbench::inputs::{self, INPUTS, Object, Whole};
use anabranch_workbench::verdict::Earlier;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// Name, class, source, state.
type Kept = (String, String, Option<String>, Option<String>);

/// `inputs.json`.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Inputs(inputs::Inputs);

fn opened(py: Python<'_>, folder: &Path) -> PyResult<Folder> {
    Folder::open(folder)
        .map_err(|error| errors::error(py, "ResultsError", &format!("cannot read {}: {error}", folder.display())))
}

/// A failure to read results.
fn unreadable(py: Python<'_>, failure: &Failure) -> PyErr {
    errors::error(py, "ResultsError", failure.render(false).trim())
}

#[pymethods]
impl Inputs {
    /// Inputs of runs that are made now; `objects` has those of `schedulers` and `congestions` that are no names.
    #[staticmethod]
    fn of(
        py: Python<'_>,
        scenario: &Checked,
        schedulers: Vec<Bound<'_, PyAny>>,
        congestions: Vec<Bound<'_, PyAny>>,
        baselines: bool,
        auto: bool,
        objects: Vec<Kept>,
    ) -> PyResult<Self> {
        let (options, ..) = options(py, &schedulers, &congestions, (baselines, auto))?;
        let object = |(name, class, source, state)| Object { name, class, source, state };
        Ok(Self(inputs::Inputs::new(Whole::of(&scenario.0, &options), objects.into_iter().map(object).collect())))
    }

    /// Those of a results directory.
    #[staticmethod]
    fn read(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        inputs::Inputs::read(&opened(py, &folder)?).map(Self).map_err(|failure| unreadable(py, &failure))
    }

    /// Writes `inputs.json` into `folder`.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let written = Folder::make(&folder).and_then(|folder| folder.write(INPUTS, self.0.to_json()));
        written.map_err(|failure| errors::failure(py, &failure))
    }

    /// Compares `results` with those of the directory `folder`: whether every byte is the same, and what differs.
    fn compare(&self, py: Python<'_>, folder: PathBuf, results: &Results) -> PyResult<(bool, String)> {
        let earlier = Earlier::read(&opened(py, &folder)?).map_err(|failure| unreadable(py, &failure))?;
        let verdict = earlier.compare(&self.0, &results.0);
        Ok((verdict.is_same, verdict.text))
    }

    /// The scenario's file or name.
    #[getter]
    fn source(&self) -> &str {
        &self.0.whole.source
    }

    /// The scenario.
    #[getter]
    fn text(&self) -> &str {
        &self.0.whole.text
    }

    /// The files that it names, with their texts.
    #[getter]
    fn files(&self) -> Vec<(String, String)> {
        self.0.whole.files.clone()
    }

    /// Settings from outside: keys and values.
    #[getter]
    fn settings(&self) -> Vec<(String, String)> {
        self.0.whole.overrides.iter().map(|set| (set.key.clone(), set.value.clone())).collect()
    }

    /// Schedulers by name; empty = the scenario's.
    #[getter]
    fn schedulers(&self) -> Vec<String> {
        self.0.whole.schedulers.clone()
    }

    /// Congestion controls by name; empty = the scenario's.
    #[getter]
    fn congestions(&self) -> Vec<String> {
        self.0.whole.congestions.clone()
    }

    /// Every path runs alone, too.
    #[getter]
    fn baselines(&self) -> bool {
        self.0.whole.baselines
    }

    /// Repetitions are added until the results are narrow enough.
    #[getter]
    fn auto(&self) -> bool {
        self.0.whole.auto
    }

    /// Schedulers and congestion controls that are objects of Python.
    #[getter]
    fn objects(&self) -> Vec<Kept> {
        let objects = self.0.plug_ins.iter().cloned();
        objects.map(|Object { name, class, source, state }| (name, class, source, state)).collect()
    }
}
