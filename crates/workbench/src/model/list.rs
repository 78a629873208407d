//! The models with their parameters, and their reference pages.

use super::oracle;
use crate::reference::{PARAMETERS, model_page, model_parameter, model_parameters, text};
use anabranch_models::Model;
use indexmap::IndexMap;
use serde::Serialize;

/// The oracle's reference page.
const ORACLE: &str = include_str!("oracle.md");

/// Every model's name, with one line about it.
pub fn abouts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let closed = anabranch_models::all().iter().map(|model| (model.name, model.about));
    closed.chain([(oracle::NAME, oracle::ABOUT)])
}

/// All names.
pub fn names() -> Vec<&'static str> {
    abouts().map(|(name, _)| name).collect()
}

/// The reference page of the model of this name.
pub fn page(name: &str) -> Option<String> {
    let oracle = || {
        let (name, about, source) = (oracle::NAME, oracle::ABOUT, oracle::SOURCE);
        format!("{name} (model): {about}\nsource: {source}\n\n{}", text(ORACLE, "#"))
    };
    match anabranch_models::find(name) {
        Some(model) => Some(model_page(model)),
        None => (name == oracle::NAME).then(oracle),
    }
}

/// Every model with its parameters.
pub fn overview() -> String {
    let mut text = String::new();
    for model in anabranch_models::all() {
        text += &format!("{}: {}\nsource: {}\n\n", model.name, model.about, model.source);
        text += &model_parameters(model);
        text.push('\n');
    }
    text += &format!("{}: {}\nsource: {}\n\n", oracle::NAME, oracle::ABOUT, oracle::SOURCE);
    text + "takes a scenario, and with --set any key of it\n"
}

/// A model as `--format json` lists it.
#[derive(Serialize)]
struct Item {
    name: &'static str,
    about: &'static str,
    source: &'static str,
    parameters: Vec<IndexMap<&'static str, String>>,
    columns: Vec<IndexMap<&'static str, &'static str>>,
}

/// The same as JSON.
pub fn document() -> String {
    let of = |model: &'static Model| Item {
        name: model.name,
        about: model.about,
        source: model.source,
        parameters: model.parameters.iter().map(|p| PARAMETERS.into_iter().zip(model_parameter(p)).collect()).collect(),
        columns: model
            .columns
            .iter()
            .map(|column| [("column", column.name), ("unit", column.unit.symbol()), ("meaning", column.about)].into())
            .collect(),
    };
    let mut items: Vec<Item> = anabranch_models::all().iter().map(of).collect();
    let (name, about, source) = (oracle::NAME, oracle::ABOUT, oracle::SOURCE);
    items.push(Item { name, about, source, parameters: Vec::new(), columns: Vec::new() });
    // Strings only: this cannot fail.
    serde_json::to_string_pretty(&items).unwrap_or_default() + "\n"
}

/// The parameters of every model as CSV.
pub fn csv() -> String {
    let mut records = vec![["model"].iter().chain(&PARAMETERS).map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    for model in anabranch_models::all() {
        let of = |parameter| [model.name.to_owned()].into_iter().chain(model_parameter(parameter)).collect();
        records.extend(model.parameters.iter().map(of));
    }
    anabranch_report::csv_lines(&records)
}
