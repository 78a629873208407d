//! The native half of the Python package `anabranch`: it hands scenarios, runs and tables over, and has no logic of its own.

mod errors;
mod inputs;
mod outcomes;
mod plan;
mod plugins;
mod scenario;
mod seam;
mod session;
mod studies;
mod table;
mod waiting;

use pyo3::prelude::*;

/// `anabranch._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<inputs::Inputs>()?;
    module.add_class::<plan::Folder>()?;
    module.add_class::<outcomes::Outcomes>()?;
    module.add_class::<plan::Plan>()?;
    module.add_class::<plan::Results>()?;
    module.add_class::<plan::Shard>()?;
    module.add_class::<plugins::Acked>()?;
    module.add_class::<plugins::Event>()?;
    module.add_class::<plugins::PyWindow>()?;
    module.add_class::<scenario::Checked>()?;
    module.add_class::<seam::Path>()?;
    module.add_class::<seam::Round>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(plan::main_metric, module)?)?;
    module.add_function(wrap_pyfunction!(plan::program, module)?)?;
    module.add_function(wrap_pyfunction!(plan::read_text, module)?)?;
    module.add_function(wrap_pyfunction!(plan::schema, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::builtin, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::codes, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::scenarios, module)?)?;
    module.add_function(wrap_pyfunction!(session::facts, module)?)?;
    module.add_function(wrap_pyfunction!(studies::compare, module)?)?;
    module.add_function(wrap_pyfunction!(studies::inferred, module)?)?;
    module.add_function(wrap_pyfunction!(studies::listed, module)?)?;
    module.add_function(wrap_pyfunction!(studies::model, module)?)?;
    module.add_function(wrap_pyfunction!(studies::page, module)?)?;
    module.add_function(wrap_pyfunction!(studies::reproduced, module)?)?;
    module.add_function(wrap_pyfunction!(studies::rerun, module)?)?;
    module.add_function(wrap_pyfunction!(studies::write_report, module)?)?;
    Ok(())
}
