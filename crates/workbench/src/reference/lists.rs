//! Reference documents of what has one line each: scenario keys, metrics, built-in scenarios.

use super::{head, table};
use crate::builtin;
use anabranch_metrics::{Better, METRICS, MetricInfo};
use anabranch_scenario::{Key, NamedValue, Section};

/// The beginning of a document whose first section follows.
pub fn opening(title: &str, what: &str, about: &str) -> String {
    head(title, what, about).trim_end().to_owned() + "\n"
}

/// All keys of a scenario file, section by section, with the words that they take.
pub fn keys() -> String {
    opening("Scenario keys", "keys", KEYS) + &Section::ALL.map(section).join("")
}

fn section(section: Section) -> String {
    let title = match (section.name(), section.has_header(), section.is_list()) {
        ("", ..) => "Before the first header".to_owned(),
        (name, false, _) => format!("{name} as a table"),
        (name, true, false) => format!("[{name}]"),
        (name, true, true) => format!("[[{name}]]"),
    };
    let rows = section.keys().map(|key| {
        let name = format!("`{}`{}", key.full_name(), key.kinds_between(" (", ")"));
        let scope = key.scope().unwrap_or_default();
        [name, key.form.expected(), key.default().into(), scope.into(), key.about.to_owned()]
    });
    let keys = table(["key", "value", "default", "directions of a plain value", "meaning"], rows);
    format!("\n## {title}\n\n{}\n\n{keys}{}", sentence(section.about()), words(section))
}

/// A sentence, with a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str())).unwrap_or_default()
}

/// The words that keys of a section take.
fn words(section: Section) -> String {
    let rows: Vec<_> = anabranch_scenario::words().filter(|word| word.key.section == section).map(word).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}", table(["word", "of key", "meaning", "with keys"], rows.into_iter()))
}

fn word(word: NamedValue) -> [String; 4] {
    let of = |key: &Key| format!("`{}`", key.name);
    let keys: Vec<String> = word.keys().into_iter().map(|(key, _)| of(key)).collect();
    [format!("`{}`", word.name), of(word.key), word.about().to_owned(), keys.join(", ")]
}

/// All metrics.
pub fn metrics() -> String {
    let list = |per_path| {
        let rows = METRICS.iter().filter(|metric| metric.per_path == per_path).map(metric);
        table(["name", "shown as", "unit", "better", "definition"], rows)
    };
    let (of_run, of_path) = (list(false), list(true));
    opening("Metrics", "metrics", METRICS_ABOUT)
        + &format!("\n## Of a connection or a run\n\n{of_run}\n## Of a path\n\n{of_path}")
}

fn metric(metric: &MetricInfo) -> [String; 5] {
    let better = match metric.better {
        Some(Better::Higher) => "more",
        Some(Better::Lower) => "less",
        None => "",
    };
    let name = format!("`{}`", metric.name);
    [name, metric.label.into(), metric.unit.into(), better.into(), metric.about.into()]
}

/// All built-in scenarios with their texts.
pub fn scenarios() -> String {
    let one = |(name, text): &(&str, &str)| {
        format!("\n## {name}\n\n{}.\n\n```toml\n{}\n```\n", builtin::about(text), text.trim_end())
    };
    opening("Built-in scenarios", "scenarios", SCENARIOS) + &builtin::SCENARIOS.iter().map(one).collect::<String>()
}

const KEYS: &str = "\
Every key of a scenario file. `--set KEY=VALUE` sets one on the command line, with the name of a path, link or the like in its place:
`--set path.wifi.loss=2%`. `anabranch explain KEY` prints a key's line, `anabranch check FILE` a scenario with every default filled in.
";

const METRICS_ABOUT: &str = "\
Every value that a run is measured by. Results have the *name*; tables and charts have what it is *shown as*. *Better* says which end is the
good one, where one is. In results a metric of a path is `path.NAME.METRIC`. A metric that does not apply to a run is absent there.
";

const SCENARIOS: &str = "\
Scenarios that the program has. Their names take the place of a file: `anabranch run wifi-lte`. `anabranch explain NAME` prints one.
";
