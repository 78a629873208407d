//! `anabranch model`

use crate::args::{Format, ModelArguments};
use anabranch_workbench::failure::Failure;
use anabranch_workbench::model::Question;

/// The models, or the values of one of them.
pub fn model(arguments: &ModelArguments) -> Result<String, Failure> {
    let ModelArguments { name, scenario, set, sweep, format } = arguments;
    let answer = Question { name: name.as_deref(), scenario: scenario.as_deref(), set, sweep }.answer()?;
    Ok(match format {
        Format::Table => answer.table(),
        Format::Json => answer.json(),
        Format::Csv => answer.csv(),
    })
}
