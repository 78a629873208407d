//! The reference page of a name.

use crate::builtin;
use crate::failure::Failure;
use crate::list::LISTINGS;
use crate::model;
use crate::reference::{page, table};
use anabranch_engine::Scheduler;
use anabranch_metrics::{METRICS, MetricInfo, MetricRef};
use anabranch_plugin::registry::Entry;
use anabranch_report::text::COLUMNS;
use anabranch_scenario::{Key, NamedValue, Section};
use anabranch_schedulers::BuildError;
use anabranch_workload::abr;

/// Everything of this name, a page each; none if nothing has this name.
///
/// # Errors
/// A scheduler does not take the suffix.
pub fn pages(name: &str) -> Result<Vec<String>, Failure> {
    let mut pages = scheduler_pages(name)?;
    pages.extend(anabranch_congestion::find(name).map(|entry| page("congestion control", entry, &[])));
    pages.extend(abr::registry::find(name).map(|entry| page("bitrate adaptation", entry, &[])));
    // Metrics of a path may also be named as in results: `path.wlan.share`.
    let asked = MetricRef::parse(name);
    let fits = |metric: &&MetricInfo| metric.name == asked.name && (asked.path.is_none() || metric.per_path);
    pages.extend(METRICS.iter().filter(fits).map(metric_page));
    pages.extend(keys(name).into_iter().map(|key| {
        let (expected, default) = (key.form.expected(), key.default());
        let scope = key.scope().map_or(String::new(), |scope| format!("  applies  {scope}\n"));
        let kinds = key.kinds_between(" of ", "");
        let head = format!("{} (scenario key{kinds})\n\n{}\n", key.full_name(), key.about);
        format!("{head}\n  form     {expected}\n  default  {default}\n{scope}")
    }));
    let sections = Section::ALL.into_iter().filter(|section| !name.is_empty() && section.name() == name);
    pages.extend(sections.map(section_page));
    pages.extend(anabranch_scenario::words().filter(|word| word.name == name).map(|word| word_page(&word)));
    pages.extend(model::page(name));
    pages.extend(builtin::find(name).map(|text| format!("{name} (built-in scenario)\n\n{text}")));
    pages.extend(name.starts_with("single:").then(|| SINGLE.to_owned()));
    pages.extend((name == "sweep").then(|| SWEEP.to_owned()));
    if pages.is_empty() {
        pages.extend(METRICS.iter().filter(|metric| begins(metric.label, name)).map(metric_page));
        let columns = COLUMNS.iter().filter(|(heading, _)| begins(heading, name));
        pages.extend(columns.map(|(heading, about)| format!("{heading} (in tables)\n\n{about}\n")));
    }
    Ok(pages)
}

/// Whether a heading of a table begins with the words of `name`: `OFO` does `OFO mean`.
fn begins(heading: &str, name: &str) -> bool {
    let rest = heading.strip_prefix(name).filter(|_| !name.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn metric_page(metric: &MetricInfo) -> String {
    let MetricInfo { name, label, about, unit, per_path, .. } = metric;
    let unit = if unit.is_empty() { "a count or ratio" } else { unit };
    let kind = if *per_path { "metric of a path" } else { "metric" };
    format!("{name} ({kind}, {unit}; in tables: {label})\n\n{about}\n")
}

/// The same as one text; an error if there is nothing.
pub fn explain(name: &str) -> Result<String, Failure> {
    let pages = pages(name)?;
    if pages.is_empty() { Err(unknown(name)) } else { Ok(pages.join("\n")) }
}

const SWEEP: &str = "\
sweep (section [sweep], and `run --sweep`)

Every value of a key is run, and with several keys every combination: a cell. Each cell runs all
schedulers, congestion controls and seeds. In a scenario file:

  [sweep]
  scheduler = [\"minrtt\", \"blest\"]
  \"path.lte.delay\" = [\"30ms\", \"60ms\", \"120ms\"]

On the command line, where --sweep takes the place of the file's values of that key:

  --sweep path.lte.delay=30ms,60ms,120ms   as listed
  --sweep path.lte.delay=10ms..320ms*2     from 10 ms on, doubled each time, up to 320 ms
  --sweep path.lte.delay=10ms..100ms/4     4 values at equal distances: 10, 40, 70, 100 ms
  --sweep seed=1..9:2                      from 1 on, 2 more each time
  --sweep path.lte.delay=10ms,20ms --sweep path.lte.rate=5mbit,9mbit --zip
                                           two cells: the first values, the second values

Results name a cell's values as written (`cell`) and, where they are numbers, in SI units under the
key itself: 60ms is 0.06. A sweep over scheduler or congestion makes rows, not cells. A key that the
timeline sets cannot be swept.
";

const SINGLE: &str = "\
single:PATH (baseline)

The same scenario, seed and buffers over one path alone: plain TCP without MPTCP options, with the
single-path form of the congestion control (a coupled one becomes reno, vegas or veno; an uncoupled
one stays). aggregation_benefit and best_single_ratio hold multipath runs against it.
";

/// The scheduler's page, and after it that of its suffix; a suffix has a page of its own.
fn scheduler_pages(name: &str) -> Result<Vec<String>, Failure> {
    match anabranch_schedulers::resolve(name) {
        Ok(resolved) => {
            let suffix = resolved.suffix.map(|entry| page("scheduler suffix", entry, &[]));
            Ok(std::iter::once(page("scheduler", resolved.base, &suffixes(resolved.base))).chain(suffix).collect())
        }
        Err(error @ BuildError::NoSuffix { .. }) => {
            Err(Failure::unusable("anabranch::cli::no_suffix", error.to_string(), None))
        }
        Err(_) => {
            let suffix = anabranch_schedulers::suffixes().iter().find(|entry| entry.answers_to(name));
            Ok(suffix.map(|entry| page("scheduler suffix", entry, &[])).into_iter().collect())
        }
    }
}

/// The keys that `name` may mean, also as `--set` writes them: with the name of a path, a direction, a parameter behind.
fn keys(name: &str) -> Vec<&'static Key> {
    let found = anabranch_scenario::find_keys(name);
    let parts: Vec<&str> = name.split('.').collect();
    let list = |part: &str| Section::ALL.into_iter().any(|section| section.is_list() && section.name() == part);
    match &parts[..] {
        _ if !found.is_empty() => found,
        [_, .., "down" | "up"] => keys(&parts[..parts.len() - 1].join(".")),
        [section, _, key @ ..] if list(section) && !key.is_empty() => keys(&format!("{section}.{}", key.join("."))),
        _ => found,
    }
}

/// A section with its keys.
fn section_page(section: Section) -> String {
    let header = match (section.has_header(), section.is_list()) {
        (true, true) => format!("section [[{}]]", section.name()),
        (true, false) => format!("section [{}]", section.name()),
        (false, _) => "a table that is a key's value".to_owned(),
    };
    let rows = section
        .keys()
        .map(|key| [key.name.to_owned(), key.default().to_owned(), key.kinds_between("", ": ") + key.about]);
    let keys = table(KEY_COLUMNS, rows);
    format!("{} ({header})\n\n{}\n\n{keys}", section.name(), section.about())
}

/// A word that a key takes, with the keys that apply to it.
fn word_page(word: &NamedValue) -> String {
    let mut text = format!("{} (value of {})\n\n{}\n", word.name, word.key.full_name(), word.about());
    let keys = word.keys();
    if !keys.is_empty() {
        let rows = keys.into_iter().map(|(key, about)| [key.name, key.default(), about].map(str::to_owned));
        text += &format!("\n{}", table(KEY_COLUMNS, rows));
    }
    text
}

/// The columns of tables of keys.
const KEY_COLUMNS: [&str; 3] = ["key", "default", "meaning"];

/// Which suffixes a scheduler takes.
fn suffixes(entry: &Entry<dyn Scheduler>) -> Vec<String> {
    let names: Vec<&str> = anabranch_schedulers::suffixes().iter().map(|suffix| suffix.name).collect();
    let takes = anabranch_schedulers::takes_suffix(entry);
    takes.then(|| format!("may be followed by: {}", names.join(", "))).into_iter().collect()
}

fn unknown(name: &str) -> Failure {
    let keys: Vec<String> = anabranch_scenario::keys().iter().map(|key| key.full_name()).collect();
    let mut candidates: Vec<&str> = Vec::new();
    for entry in anabranch_schedulers::suffixes().iter().chain(anabranch_schedulers::all()) {
        candidates.extend(entry.aliases.iter().chain([&entry.name]));
    }
    for entry in anabranch_congestion::all() {
        candidates.extend(entry.aliases.iter().chain([&entry.name]));
    }
    for entry in abr::registry::all() {
        candidates.extend(entry.aliases.iter().chain([&entry.name]));
    }
    candidates.extend(model::names());
    candidates.extend(METRICS.iter().flat_map(|metric| [metric.name, metric.label]));
    candidates.extend(COLUMNS.iter().map(|(heading, _)| *heading));
    candidates.extend(anabranch_scenario::keys().iter().map(|key| key.name));
    candidates.extend(keys.iter().map(String::as_str));
    candidates.extend(Section::ALL.map(Section::name).into_iter().chain(["sweep"]));
    candidates.extend(anabranch_scenario::words().map(|word| word.name));
    candidates.extend(builtin::SCENARIOS.iter().map(|(name, _)| *name));
    let lists = LISTINGS.each_ref().map(|listing| format!("`anabranch list {}`", listing.name));
    Failure::unknown_word("page", name, &candidates, &format!("names are listed by {}", lists.join(", ")))
}
