//! Closed-form models, and the oracle of a scenario.

mod list;
mod oracle;
mod questions;
mod show;

use crate::failure::Failure;
use anabranch_models::Model;
use anabranch_run::Bound;
use questions::Questions;
use show::Rows;
use std::path::Path;

pub use list::{abouts, names, page};

/// A question to a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// Name of the model; without it, all of them with their parameters.
    pub name: Option<&'a str>,
    /// For the oracle only: a scenario file, or the name of a built-in scenario.
    pub scenario: Option<&'a Path>,
    /// Parameters as `KEY=VALUE`; of the oracle, keys of the scenario.
    pub set: &'a [String],
    /// Parameters that vary, as `KEY=VALUES`.
    pub sweep: &'a [String],
}

/// Rows that can be printed.
pub struct Answer(Kind);

enum Kind {
    Models,
    Bounds(Vec<Bound>),
    Rows(&'static Model, Questions<'static>, Rows),
}

impl Question<'_> {
    /// The models, or the values of one of them.
    ///
    /// # Errors
    /// There is no such model or parameter; a value is out of range; the scenario cannot be read.
    pub fn answer(&self) -> Result<Answer, Failure> {
        let Some(name) = self.name else { return self.all().map(Answer) };
        if name == oracle::NAME {
            return oracle::bounds_of(self).map(Kind::Bounds).map(Answer);
        }
        let Some(model) = anabranch_models::find(name) else {
            return Err(Failure::unknown_word("model", name, &names(), "`anabranch model` lists them"));
        };
        if let Some(scenario) = self.scenario {
            let message = format!("`{name}` takes no scenario, as in `{}`", scenario.display());
            let help = Some(format!("`--set {}=…` sets a parameter", model.parameters[0].name));
            return Err(Failure::unusable("anabranch::cli::no_scenario", message, help));
        }
        let questions = Questions::read(model, self.set, self.sweep)?;
        let rows = show::rows(model, &questions)?;
        Ok(Answer(Kind::Rows(model, questions, rows)))
    }

    fn all(&self) -> Result<Kind, Failure> {
        let Some(text) = self.set.first().or(self.sweep.first()) else { return Ok(Kind::Models) };
        let message = format!("no model is named to take `{text}`");
        let help = Some("`anabranch model` lists them".into());
        Err(Failure::unusable("anabranch::cli::no_model", message, help))
    }
}

impl Answer {
    /// A table to read.
    pub fn table(&self) -> String {
        match &self.0 {
            Kind::Models => list::overview(),
            Kind::Bounds(bounds) => oracle::table(bounds),
            Kind::Rows(model, questions, rows) => show::table(model, questions, rows),
        }
    }

    /// One JSON document, in SI units.
    pub fn json(&self) -> String {
        match &self.0 {
            Kind::Models => list::document(),
            // Words and finite numbers only: this cannot fail.
            Kind::Bounds(bounds) => serde_json::to_string_pretty(bounds).unwrap_or_default() + "\n",
            Kind::Rows(model, questions, rows) => show::document(model, questions, rows),
        }
    }

    /// One line per row, in SI units.
    pub fn csv(&self) -> String {
        match &self.0 {
            Kind::Models => list::csv(),
            Kind::Bounds(bounds) => oracle::csv(bounds),
            Kind::Rows(model, questions, rows) => show::csv(model, questions, rows),
        }
    }
}
