//! Reference pages of schedulers, congestion controls, bitrate adaptation and models: one in a terminal, all of them as a Markdown document; and the
//! documents of all keys, metrics and built-in scenarios.

mod lists;

pub use lists::{keys, metrics, opening, scenarios};

use anabranch_models::Model;
use anabranch_plugin::registry::{Entry, Kind, Parameter};
use anabranch_workload::abr;
use std::fmt::Write as _;

/// The columns of tables of parameters.
pub const PARAMETERS: [&str; 5] = ["parameter", "default", "range", "unit", "meaning"];

/// The page of one entry. `kind` is said beside its name; `notes` are lines below it.
pub fn page<T: ?Sized>(kind: &str, entry: &Entry<T>, notes: &[String]) -> String {
    let mut text = format!("{} ({kind}): {}\n", entry.name, entry.about);
    if !entry.aliases.is_empty() {
        let _ = writeln!(text, "also: {}", entry.aliases.join(", "));
    }
    notes.iter().for_each(|note| text += &format!("{note}\n"));
    text += "\n";
    text + &body(entry, "#")
}

/// The page of a closed-form model.
pub fn model_page(model: &Model) -> String {
    let about = format!("{} (model): {}\nsource: {}\n\n", model.name, model.about, model.source);
    let columns =
        model.columns.iter().map(|column| [column.name.to_owned(), column.unit.symbol().into(), column.about.into()]);
    about
        + &text(model.page, "#")
        + "\n# Parameters\n\n"
        + &model_parameters(model)
        + "\n# Columns\n\n"
        + &table(["column", "unit", "meaning"], columns)
}

/// The table of a model's parameters.
pub fn model_parameters(model: &Model) -> String {
    table(PARAMETERS, model.parameters.iter().map(model_parameter))
}

/// A model's parameter under the headings of [`PARAMETERS`].
pub fn model_parameter(parameter: &anabranch_models::Parameter) -> [String; 5] {
    let (default, range) = (parameter.show(parameter.default), parameter.expected());
    [parameter.name.to_owned(), default, range, parameter.unit.symbol().into(), parameter.about.into()]
}

/// The text of the page and the table of parameters, under headings of the same level.
fn body<T: ?Sized>(entry: &Entry<T>, level: &str) -> String {
    let mut text = text(entry.page, level);
    if !entry.parameters.is_empty() {
        text += &format!("\n{level} Parameters\n\n");
        text += &parameters(entry.parameters);
    }
    text
}

/// A page with its headings at `level`, each with a blank line below.
pub fn text(page: &str, level: &str) -> String {
    let (mut code, mut below_heading) = (false, false);
    let mut text = String::new();
    for line in page.trim().lines() {
        code ^= line.starts_with("```");
        match line.trim_start_matches('#') {
            heading if heading.len() < line.len() && !code => {
                text += &format!("{level}{heading}\n\n");
                below_heading = true;
                continue;
            }
            "" if below_heading => {}
            _ => text += &format!("{line}\n"),
        }
        below_heading = false;
    }
    text
}

fn parameters(list: &[Parameter]) -> String {
    let rows = list.iter().map(|parameter| {
        let Parameter { name, kind, default, min, max, unit, about } = *parameter;
        let (default, range) = match kind {
            Kind::Flag => ((default != 0.0).to_string(), "true, false".into()),
            Kind::Number | Kind::Whole => (default.to_string(), format!("{min} to {max}")),
        };
        [format!("`{name}`"), default, range, unit.into(), about.into()]
    });
    table(PARAMETERS, rows)
}

/// A Markdown table whose columns, but for the last, are also in line as plain text.
pub fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    // A bar would end the cell.
    let rows: Vec<[String; N]> = rows.map(|row| row.map(|cell| cell.replace('|', "\\|"))).collect();
    let head = head.map(str::to_owned);
    let mut widths = [0; N];
    for row in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(row).take(N - 1) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let rule = widths.map(|width| "-".repeat(width.max(3)));
    let mut text = String::new();
    for row in [&head, &rule].into_iter().chain(&rows) {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} ")).collect();
        text += &format!("|{}|\n", cells.join("|"));
    }
    text
}

/// All schedulers, then the suffixes.
pub fn schedulers() -> String {
    let all = anabranch_schedulers::all();
    let suffix = |entry| if anabranch_schedulers::takes_suffix(entry) { "yes" } else { "" };
    let rows = all.iter().map(|entry| [link(entry.name), also(entry), suffix(entry).into(), entry.about.into()]);
    let mut text = head("Schedulers", "schedulers", SCHEDULERS);
    text += &table(["name", "also", "+pr, +or", "what it does"], rows);
    all.iter().chain(anabranch_schedulers::suffixes()).for_each(|entry| text += &section(entry));
    text
}

/// All congestion controls.
pub fn congestion() -> String {
    let all = anabranch_congestion::all();
    let alone = |name| match anabranch_congestion::single_path_form(name) {
        form if form == name => String::new(),
        form => form.to_owned(),
    };
    let rows = all.iter().map(|entry| [link(entry.name), also(entry), alone(entry.name), entry.about.into()]);
    let mut text = head("Congestion controls", "congestion", CONGESTION);
    text += &table(["name", "also", "alone", "what it does"], rows);
    all.iter().for_each(|entry| text += &section(entry));
    text
}

/// All rules of bitrate adaptation.
pub fn abrs() -> String {
    let all = abr::registry::all();
    let rows = all.iter().map(|entry| [link(entry.name), also(entry), entry.about.into()]);
    let mut text = head("Bitrate adaptation", "abrs", ABRS);
    text += &table(["name", "also", "what it does"], rows);
    all.iter().for_each(|entry| text += &section(entry));
    text
}

const ABRS: &str = "\
A video in segments is there at several rates, its ladder. Bitrate adaptation (ABR) chooses the rate of each segment when the player
requests it. A scenario names the rule as `abr = \"NAME\"` of `[[traffic]]` with `kind = \"video\"`. Parameters follow as `NAME(PARAMETER=VALUE, …)` or as
`{ kind = \"NAME\", PARAMETER = VALUE, … }`; `--set traffic.abr=NAME` sets another one. [Applications](applications.md#video) has the
player around it.
";

const SCHEDULERS: &str = "\
A scheduler decides which bytes travel on which subflow, and when nothing is sent. `anabranch run FILE --scheduler NAME`
runs one, a scenario names it as `scheduler = \"NAME\"`. Parameters follow as `NAME(PARAMETER=VALUE, …)`, in a scenario also as
`{ kind = \"NAME\", PARAMETER = VALUE, … }`; `--set scheduler.PARAMETER=VALUE` sets one. `[[timeline]]` with
`set = \"connection.scheduler\"` lets another one take over while data flows. Where the table says so, `+pr` or `+or` may follow
the name. Each page says how the scheduler uses the paths' `price`, `cap` and `weight`.
";

const CONGESTION: &str = "\
Congestion control decides how much may be in flight on each subflow. `anabranch run FILE --congestion NAME` runs one, a
scenario names it as `congestion = \"NAME\"`. Parameters follow as `NAME(PARAMETER=VALUE, …)`, in a scenario also as
`{ kind = \"NAME\", PARAMETER = VALUE, … }`; `--set congestion.PARAMETER=VALUE` sets one. It cannot change while a connection
lives: its windows are the state of the subflows. Over several subflows, an algorithm that computes each subflow's window
independently is uncoupled. *Alone* names the algorithm that a coupled one is compared with on a single path, if it is another.
";

fn head(title: &str, what: &str, about: &str) -> String {
    format!("# {title}\n\n<!-- Written by `anabranch explain --all {what}`. -->\n\n{about}\n")
}

fn section<T: ?Sized>(entry: &Entry<T>) -> String {
    let about = format!("\n## {}\n\n*{}*\n\n", entry.name, entry.about);
    about + &body(entry, "###")
}

fn link(name: &str) -> String {
    format!("[{name}](#{})", name.replace('+', ""))
}

fn also<T: ?Sized>(entry: &Entry<T>) -> String {
    entry.aliases.join(", ")
}
