//! The values of a model, as a table, as JSON, as CSV.

use super::questions::{MOST, Questions, too_many};
use crate::failure::Failure;
use anabranch_models::{Column, Model, Parameter, Range, Unit};
use anabranch_report::text::{plain_table, print_table};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

/// One row of numbers, with the values of the parameters that vary.
struct Answer {
    swept: Vec<f64>,
    row: Vec<f64>,
}

/// The answers to all questions.
pub struct Rows(Vec<Answer>);

/// Evaluates a model; an error if there are too many rows.
pub fn rows(model: &Model, questions: &Questions<'_>) -> Result<Rows, Failure> {
    let mut answers = Vec::new();
    for values in &questions.values {
        let swept: Vec<f64> = questions.swept.iter().map(|parameter| parameter.of(values)).collect();
        answers.extend((model.evaluate)(values).into_iter().map(|row| Answer { swept: swept.clone(), row }));
        if answers.len() > MOST {
            return Err(too_many());
        }
    }
    Ok(Rows(answers))
}

/// The parameters that do not vary.
fn fixed<'m>(model: &'m Model, questions: &Questions<'_>) -> impl Iterator<Item = &'m Parameter> {
    let fixed = |parameter: &&Parameter| questions.swept.iter().all(|swept| swept.name != parameter.name);
    model.parameters.iter().filter(fixed)
}

/// The rows as a table.
pub fn table(model: &Model, questions: &Questions<'_>, Rows(answers): &Rows) -> String {
    let values = &questions.values[0];
    let settings: Vec<String> = fixed(model, questions)
        .map(|parameter| format!("{}={}", parameter.name, parameter.show(parameter.of(values))))
        .collect();
    let mut header: Vec<String> = questions.swept.iter().map(|parameter| parameter.name.to_owned()).collect();
    header.extend(model.columns.iter().map(heading));
    let mut table = plain_table(header);
    let numbers =
        |at: usize| answers.iter().map(move |answer| scaled(&model.columns[at], answer.row[at])).collect::<Vec<_>>();
    let decimals: Vec<usize> = (0..model.columns.len()).map(|at| decimals(&numbers(at))).collect();
    let cell = |at: usize, value: f64| format!("{:.*}", decimals[at], scaled(&model.columns[at], value));
    for answer in answers {
        let swept = questions.swept.iter().zip(&answer.swept).map(|(parameter, value)| parameter.show(*value));
        table.add_row(swept.chain(answer.row.iter().enumerate().map(|(at, value)| cell(at, *value))));
    }
    format!("{}: {}\n{}\n\n{}", model.name, model.about, settings.join(" "), print_table(&table))
        + &format!("\n`anabranch explain {}` says what these are.\n", model.name)
}

/// The words of the column's name, with its unit below.
fn heading(column: &Column) -> String {
    let name = column.name.trim_end_matches("_packets").trim_end_matches("_s").replace('_', " ");
    let unit = match column.unit {
        Unit::Time => "ms",
        Unit::Probability => "%",
        unit => unit.symbol(),
    };
    if name == unit { name } else { format!("{name}\n{unit}") }
}

/// A number in the unit of its heading.
fn scaled(column: &Column, value: f64) -> f64 {
    match column.unit {
        Unit::Time => value * 1e3,
        Unit::Probability => value * 100.0,
        _ => value,
    }
}

/// Decimals that show the greatest of `values` with four digits and small ones with two, as far as four decimals do, if they
/// are not all whole.
fn decimals(values: &[f64]) -> usize {
    const MOST: i32 = 9;
    const MOST_OF_SMALL: i32 = 4;
    if values.iter().all(|value| value.fract() == 0.0) {
        return 0;
    }
    // The power of ten, as `{:e}` writes it.
    let exponent = |value: f64| format!("{value:.3e}").split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let sizes = values.iter().map(|value| value.abs());
    let greatest = exponent(sizes.clone().fold(0.0, f64::max));
    let least = exponent(sizes.filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min));
    usize::try_from((3 - greatest).max((1 - least).min(MOST_OF_SMALL)).min(MOST)).unwrap_or(0)
}

/// A parameter's value in JSON and CSV: the word, or the number in SI units.
fn plain(parameter: &Parameter, value: f64) -> Value {
    match parameter.range {
        Range::Words(_) => parameter.show(value).into(),
        Range::Whole(..) => (value as u64).into(),
        Range::Real(..) => value.into(),
    }
}

/// The document that `--format json` prints.
#[derive(Serialize)]
struct Document {
    model: &'static str,
    /// Those that do not vary.
    parameters: IndexMap<&'static str, Value>,
    rows: Vec<IndexMap<&'static str, Value>>,
}

/// The rows as JSON.
pub fn document(model: &Model, questions: &Questions<'_>, Rows(answers): &Rows) -> String {
    let values = &questions.values[0];
    let row = |answer: &Answer| {
        let swept = questions.swept.iter().zip(&answer.swept);
        let swept = swept.map(|(parameter, value)| (parameter.name, plain(parameter, *value)));
        swept
            .chain(model.columns.iter().zip(&answer.row).map(|(column, value)| (column.name, (*value).into())))
            .collect()
    };
    let document = Document {
        model: model.name,
        parameters: fixed(model, questions).map(|p| (p.name, plain(p, p.of(values)))).collect(),
        rows: answers.iter().map(row).collect(),
    };
    // Names and finite numbers: this cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

/// The rows as CSV.
pub fn csv(model: &Model, questions: &Questions<'_>, Rows(answers): &Rows) -> String {
    let swept = questions.swept.iter().map(|parameter| parameter.name);
    let mut records = vec![swept.chain(model.columns.iter().map(|column| column.name)).map(str::to_owned).collect()];
    records.extend(answers.iter().map(|answer| {
        let swept =
            questions.swept.iter().zip(&answer.swept).map(|(parameter, value)| match plain(parameter, *value) {
                Value::String(word) => word,
                number => number.to_string(),
            });
        swept.chain(answer.row.iter().map(f64::to_string)).collect()
    }));
    anabranch_report::csv_lines(&records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_decimals_in_common() {
        assert_eq!(decimals(&[139.0, 493.0]), 0);
        assert_eq!(decimals(&[139.0, 268.591]), 1);
        assert_eq!(decimals(&[0.719, 0.203, 0.0111]), 4);
        assert_eq!(decimals(&[95.66, 0.0384]), 3);
        assert_eq!(decimals(&[123_456.5]), 0);
        assert_eq!(decimals(&[1.5, 3e-20, 0.0]), 4);
        assert_eq!(decimals(&[3.2e-5, 1.5e-6]), 8);
    }
}
