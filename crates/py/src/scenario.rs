//! Scenarios: read and checked as the command line does.

use crate::errors;
use anabranch_scenario::{Code, Host, Override, Source};
use anabranch_workbench::builtin::{SCENARIOS, find};
use anabranch_workbench::load::Loaded;
use pyo3::prelude::*;
use std::path::PathBuf;

/// A scenario that was read and found to be without mistakes.
#[pyclass(frozen, module = "anabranch._native")]
pub struct Checked(pub Loaded);

fn overrides(set: Vec<(String, String)>) -> Vec<Override> {
    set.into_iter().map(|(key, value)| Override::new("set", key, value)).collect()
}

#[pymethods]
impl Checked {
    /// Reads a file, or the built-in scenario of this name.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, set: Vec<(String, String)>) -> PyResult<Self> {
        Loaded::read(&path, overrides(set)).map(Self).map_err(|failure| errors::failure(py, &failure))
    }

    /// Reads the text of a scenario; the files that it names are in `folder`.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        name: String,
        text: String,
        folder: PathBuf,
        set: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let loaded = Loaded::parse(Source { name, text }, &folder, overrides(set));
        loaded.map(Self).map_err(|failure| errors::failure(py, &failure))
    }

    /// The same where its files are not: `files` has their names and texts.
    #[staticmethod]
    fn again(
        py: Python<'_>,
        name: String,
        text: String,
        files: Vec<(String, String)>,
        set: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let loaded = Loaded::again(Source { name, text }, overrides(set), files);
        loaded.map(Self).map_err(|failure| errors::failure(py, &failure))
    }

    /// The files that it names, with their texts.
    #[getter]
    fn files(&self) -> Vec<(String, String)> {
        self.0.files.clone()
    }

    /// The file's name, or another one in messages if there is no file.
    #[getter]
    fn source(&self) -> &str {
        &self.0.source.name
    }

    /// As written.
    #[getter]
    fn text(&self) -> &str {
        &self.0.source.text
    }

    /// The whole scenario in TOML, with every default filled in.
    fn resolved(&self) -> String {
        self.0.document.resolved()
    }

    /// The keys that the sweep varies, with their values in TOML.
    #[getter]
    fn axes(&self) -> Vec<(String, Vec<String>)> {
        self.0.document.axes.clone()
    }

    /// The number of cells of the sweep; 1 without one.
    #[getter]
    fn cells(&self) -> usize {
        self.0.document.cells.len()
    }

    /// The seed of the first repetition, and the number of repetitions.
    #[getter]
    fn seeds(&self) -> (u64, u32) {
        (self.0.document.scenario.seed, self.0.document.scenario.repeat)
    }

    /// A host is a kernel, so that the scenario runs in real time.
    #[getter]
    fn is_real_time(&self) -> bool {
        let linux = |host| matches!(host, Host::Linux);
        self.0.document.cells.iter().any(|(_, s)| linux(s.hosts.sender) || linux(s.hosts.receiver))
    }
}

/// The built-in scenarios: names and texts.
#[pyfunction]
pub fn scenarios() -> Vec<(&'static str, &'static str)> {
    SCENARIOS.to_vec()
}

/// The text of a built-in scenario; `None` if there is none of this name.
#[pyfunction]
pub fn builtin(name: &str) -> Option<&'static str> {
    find(name)
}

/// The codes of mistakes in scenarios.
#[pyfunction]
pub fn codes() -> Vec<&'static str> {
    Code::ALL.map(Code::as_str).to_vec()
}
