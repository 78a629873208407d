//! Failures as exceptions of `anabranch.errors`.

use anabranch_workbench::failure::Failure;
use miette::Report;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exception that `make` of `anabranch.errors` returns for `arguments`.
fn made<'py>(py: Python<'py>, make: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let errors = py.import(intern!(py, "anabranch.errors"));
    let made = errors.and_then(|errors| errors.getattr(make)).and_then(|make| make.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An exception of the class `class` with this text.
pub fn error(py: Python<'_>, class: &str, text: &str) -> PyErr {
    made(py, class, (text,))
}

/// As `error`, with what it came from.
pub fn error_from(py: Python<'_>, class: &str, text: &str, cause: PyErr) -> PyErr {
    let error = error(py, class, text);
    error.set_cause(py, Some(cause));
    error
}

/// The diagnostics of a command that failed.
pub fn failure(py: Python<'_>, failure: &Failure) -> PyErr {
    let reports = match failure {
        Failure::Unusable(reports) => reports.as_slice(),
        Failure::Failed(report) | Failure::Interrupted(report) => std::slice::from_ref(report),
    };
    let diagnostics: PyResult<Vec<Bound<'_, PyDict>>> = reports.iter().map(|report| described(py, report)).collect();
    diagnostics
        .map_or_else(|error| error, |diagnostics| made(py, "of_diagnostics", (failure.render(false), diagnostics)))
}

fn described<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("code", report.code().map(|code| code.to_string()))?;
    described.set_item("message", report.to_string())?;
    described.set_item("help", report.help().map(|help| help.to_string()))?;
    Ok(described)
}
