//! The report of what `anabranch run` folder.

pub(crate) mod cells;
mod figures;
mod gain;
pub(crate) mod rows;
mod series;
mod tables;

pub use series::Series;

use crate::chart::Chart;
use crate::value::{Figure, MadeBy, Report, Section};
use anabranch_run::{CellValues, ResultRow, Results};
use anabranch_trace::Timeline;
use indexmap::IndexMap;

/// Rows whose series are shown; for the others the page refers to `series/`.
const SERIES: usize = 40;

/// Findings about what limited the runs that are shown.
const FINDINGS: usize = 8;

/// Timelines that are shown.
const TIMELINES: usize = 12;

/// The contents of a results directory.
#[derive(Clone, Debug, Default)]
pub struct RunFolder {
    /// The program.
    pub made_by: MadeBy,
    /// `(key, value)`: how the results came about.
    pub settings: Vec<(String, String)>,
    /// Name and text of the scenario.
    pub scenario: (String, String),
    /// Every scheduler's name, in the order of the registry.
    pub schedulers: Vec<String>,
    /// By the names of their files.
    pub series: Vec<(String, Series)>,
    /// By the names of their files.
    pub timelines: Vec<(String, Timeline)>,
}

/// The report of `results`.
pub fn report(results: &Results, folder: RunFolder) -> Report {
    let rows = results.rows();
    let seeds = results.runs.seeds();
    let sections = [
        summary(results, &rows),
        limits(results, &rows),
        comparisons(results, &rows),
        paths(&rows),
        over_time(&folder.series),
    ];
    let mut sections: Vec<Section> = sections.into_iter().flatten().collect();
    sections.extend(timelines(folder.timelines));
    Report {
        title: results.scenario.clone(),
        subtitle: subtitle(&rows, &seeds),
        made_by: folder.made_by,
        settings: folder.settings,
        seeds,
        scenario_texts: vec![folder.scenario],
        schedulers: folder.schedulers,
        verdicts: Vec::new(),
        sections,
    }
}

/// The packet timelines, if there are any; of too many the first.
pub fn timelines(timelines: Vec<(String, Timeline)>) -> Option<Section> {
    let about = "One line per packet of payload, at the height of its place in the data: thin while it is on the way, then thicker \
                 while it waits at the receiver for earlier data (head-of-line blocking): first, where an earlier segment of its own \
                 subflow is missing, in that subflow; then, thickest, in the connection's out-of-order queue (OFO), which the \
                 metrics ofo_… measure. The colour is the path's; where there are more \
                 packets than pixels, each path has lanes of its own, pale for packets on the way. Zoom with the wheel, by \
                 dragging in the strip below, or with + and −.";
    let mut about = vec![about.to_owned()];
    about.extend(left_out(timelines.len(), TIMELINES, "timeline/"));
    let figure = |(name, timeline)| Figure {
        title: name,
        caption: String::new(),
        folded: false,
        chart: Chart::Timeline(timeline),
    };
    let mut figures: Vec<Figure> = timelines.into_iter().take(TIMELINES).map(figure).collect();
    // The first is open, so that one sees what there is.
    figures.iter_mut().skip(1).for_each(|figure| figure.folded = true);
    (!figures.is_empty()).then(|| section("timelines", "Packet timelines", about, figures))
}

fn section(id: &str, title: &str, about: Vec<String>, figures: Vec<Figure>) -> Section {
    Section { id: id.into(), title: title.into(), about, figures, ..Section::default() }
}

fn left_out(all: usize, shown: usize, folder: &str) -> Option<String> {
    (all > shown).then(|| format!("The first {shown} of {all} are shown; all are in {folder}."))
}

fn subtitle(rows: &[ResultRow<'_>], seeds: &[u64]) -> String {
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}", count(rows.len(), "row"), count(seeds.len(), "seed"))
}

fn summary(results: &Results, rows: &[ResultRow<'_>]) -> Option<Section> {
    let mut about = Vec::new();
    if rows.iter().any(|row| row.n() > 1) {
        about.push("± is the half-width of the 95 % interval of the mean over n seeds (Student's t).".to_owned());
    }
    if rows.iter().any(ResultRow::deterministic) {
        about.push("n = 1, deterministic: nothing in the scenario is random, so one run suffices.".to_owned());
    }
    about.extend(unfinished(rows));
    let mut section = section("summary", "Summary", about, figures::of_metrics(rows));
    section.tables = vec![tables::summary(rows)];
    if let Some(map) = gain::picture(results, rows, rows::main_metric(rows)) {
        // It says in one place what the bars of all cells say in many.
        section.pictures.push(map);
        section.figures.iter_mut().for_each(|figure| figure.folded = true);
    }
    (!rows.is_empty()).then_some(section)
}

/// The transfers that did not end: per row; of a row of many cells, in how many of them.
pub(crate) fn unfinished(rows: &[ResultRow<'_>]) -> Vec<String> {
    let cells = rows.chunk_by(|a, b| a.cell == b.cell).count();
    let mut found: IndexMap<&str, (usize, usize, usize)> = IndexMap::new();
    let mut lines = Vec::new();
    for row in rows {
        let (sum, all, at) = found.entry(&row.name).or_default();
        let is_any = row.unfinished() > 0;
        (*sum, *all, *at) = (*sum + row.unfinished(), *all + row.n(), *at + usize::from(is_any));
        let line = || format!("{}: {} of {} transfers did not finish.", row.full_name(), row.unfinished(), row.n());
        lines.extend(is_any.then(line));
    }
    found.retain(|_, (sum, ..)| *sum > 0);
    let line = |(name, (sum, all, at)): (&str, (usize, usize, usize))| {
        format!("{name}: {sum} of {all} transfers did not finish, in {at} of {cells} cells.")
    };
    if cells <= cells::APART { lines } else { found.into_iter().map(line).collect() }
}

/// The findings about the limits of the runs.
fn limits(results: &Results, rows: &[ResultRow<'_>]) -> Option<Section> {
    let findings = findings(results, rows);
    (!findings.is_empty()).then(|| section("limits", "What limited the runs", findings, Vec::new()))
}

/// Each finding; of a sweep, in how many of its cells it holds.
pub(crate) fn findings(results: &Results, rows: &[ResultRow<'_>]) -> Vec<String> {
    let cells = rows.chunk_by(|a, b| a.cell == b.cell).count();
    if cells <= 1 {
        return results.diagnosis.iter().map(|one| one.text.clone()).collect();
    }
    let mut found: Vec<(&str, Vec<&CellValues>)> = Vec::new();
    for one in &results.diagnosis {
        match found.iter_mut().find(|(summary, _)| *summary == one.summary) {
            // Those of one cell are next to each other.
            Some((_, at)) if at.last() == Some(&&one.cell) => {}
            Some((_, at)) => at.push(&one.cell),
            None => found.push((&one.summary, vec![&one.cell])),
        }
    }
    let text = |(summary, at): &(&str, Vec<&CellValues>)| match at[..] {
        [cell] => format!("In the cell {}: {summary}.", cells::name(cell)),
        _ => format!("In {} of {cells} cells: {summary}.", at.len()),
    };
    let more = found.len().saturating_sub(FINDINGS);
    let mut texts: Vec<String> = found.iter().take(FINDINGS).map(text).collect();
    texts.extend((more > 0).then(|| format!("{more} more findings are in the JSON document under `diagnosis`.")));
    texts
}

fn comparisons(results: &Results, rows: &[ResultRow<'_>]) -> Option<Section> {
    let table = tables::comparisons(results, rows)?;
    let about = "Differences run by run between rows of one seed, so of the same losses: mean with 95 % interval, p values of the \
                 paired t test and of Wilcoxon's signed-rank test, two-sided and not corrected for the number of comparisons, \
                 and the effect size d_z.";
    let mut section = section("comparisons", "Comparisons", vec![about.to_owned()], Vec::new());
    section.tables = vec![table];
    Some(section)
}

fn paths(rows: &[ResultRow<'_>]) -> Option<Section> {
    let table = tables::paths(rows)?;
    let mut section = section("paths", "Paths", Vec::new(), Vec::new());
    section.tables = vec![table];
    Some(section)
}

fn over_time(all: &[(String, Series)]) -> Option<Section> {
    let shown = &all[..all.len().min(SERIES)];
    let columns: usize = shown.iter().map(|(_, series)| series.columns()).sum();
    let mut about = vec![
        "The first repetition of each row: the mean within each step, and the band between the least and the greatest sample \
         of 10 ms. Of several connections one is followed, the first unless --connection named another."
            .to_owned(),
    ];
    about.extend(left_out(all.len(), SERIES, "series/"));
    let figure = |(i, (name, series)): (usize, &(String, Series))| Figure {
        title: name.clone(),
        caption: String::new(),
        folded: i > 0,
        chart: Chart::TimeSeries(series.chart(columns)),
    };
    let figures: Vec<Figure> = shown.iter().enumerate().map(figure).collect();
    (!figures.is_empty()).then(|| section("over-time", "Over time", about, figures))
}
