//! `anabranch model`

mod list;
mod oracle;
mod questions;
mod show;

use crate::args::ModelArguments;
use crate::failure::Failure;
use questions::Questions;

pub use list::{abouts, names, page};

/// The models, or the values of one of them.
pub fn model(arguments: &ModelArguments) -> Result<String, Failure> {
    let Some(name) = &arguments.name else { return list::list(arguments) };
    if name == oracle::NAME {
        return oracle::oracle(arguments);
    }
    let Some(model) = anabranch_models::find(name) else {
        return Err(Failure::unknown_word("model", name, &names(), "`anabranch model` lists them"));
    };
    if let Some(scenario) = &arguments.scenario {
        let message = format!("`{name}` takes no scenario, as in `{}`", scenario.display());
        let help = Some(format!("`--set {}=…` sets a parameter", model.parameters[0].name));
        return Err(Failure::unusable("anabranch::cli::no_scenario", message, help));
    }
    let questions = Questions::read(model, &arguments.set, &arguments.sweep)?;
    show::answers(model, &questions, arguments.format)
}
