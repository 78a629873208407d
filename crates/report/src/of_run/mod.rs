//! The report of what `anabranch run` found.

mod answer;
pub(crate) mod cells;
mod contest;
mod figures;
mod gain;
pub(crate) mod groups;
mod network;
mod over_cells;
mod overlay;
mod recorded;
pub(crate) mod rows;
mod series;
mod shape;
mod tables;

pub use cells::name as cell_name;
pub use gain::Gain;
pub(crate) use network::picture as draw_network;
pub use network::{Network, PathShape};
pub use series::Series;

use crate::chart::Chart;
use crate::picture::Picture;
use crate::value::{Figure, MadeBy, Report, Section};
use anabranch_metrics::LEAST_RUNS;
use anabranch_recorders::Timeline;
use anabranch_run::{CellValues, ResultRow, Results};
use indexmap::{IndexMap, IndexSet};
use rows::Main;
use std::collections::BTreeSet;

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
    /// The paths, if they are known.
    pub network: Network,
    /// Series of the first run of each row.
    pub series: Vec<OfRow<Series>>,
    /// Timelines of the first run of each row.
    pub timelines: Vec<OfRow<Timeline>>,
    /// As [`Report::packets`].
    pub packets: Option<usize>,
}

/// A record of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfRow<T> {
    /// The row's name; of a file that belongs to no row, the file's.
    pub row: String,
    /// The sweep's cell in words; empty without a sweep.
    pub cell: String,
    /// The run's seed, if it is known.
    pub seed: Option<u64>,
    /// The record.
    pub record: T,
}

impl<T> OfRow<T> {
    /// `minrtt+pr, loss = 1%, seed 1`.
    fn title(&self) -> String {
        let seed = self.seed.map(|seed| format!("seed {seed}"));
        let parts = [Some(self.row.clone()), Some(self.cell.clone()), seed];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// The report of `results`.
pub fn report(results: &Results, folder: RunFolder) -> Report {
    let rows = results.rows();
    let seeds = results.runs.seeds();
    let figures::Placed { main, why, further } = figures::of_metrics(&rows);
    let sections = [
        summary(results, &rows, &folder.network, main),
        causes(&rows, why),
        over_time(&folder.series, &folder.network),
        timelines(folder.timelines),
        comparisons(results, &rows),
        (!further.is_empty()).then(|| section("further", "Further metrics", Vec::new(), further)),
    ];
    Report {
        title: results.scenario.clone(),
        subtitle: subtitle(&rows, &seeds),
        answer: answer::of(results, &rows),
        made_by: folder.made_by,
        settings: folder.settings,
        seeds,
        scenario_texts: vec![folder.scenario],
        schedulers: folder.schedulers,
        verdicts: Vec::new(),
        sections: sections.into_iter().flatten().collect(),
        packets: folder.packets,
    }
}

/// The packet timelines, if there are any; of too many the first.
pub fn timelines(timelines: Vec<OfRow<Timeline>>) -> Option<Section> {
    let about = "One panel per path: time across, place in the data upwards, one line per packet of payload. The line is thin while the \
                 packet is on the way and thicker while it waits at the receiver for earlier data (head-of-line blocking): \
                 first behind a gap of its own subflow; then, thickest, in the connection's out-of-order queue (OFO), which \
                 the metrics ofo_… measure. Zoom with the wheel, by dragging in the strip below, or with + and −; the \
                 buttons jump to the longest wait, and to losses and repetitions.";
    let mut about = vec![about.to_owned()];
    about.extend(left_out(timelines.len(), TIMELINES, "timeline/"));
    let figure = |timeline: OfRow<Timeline>| Figure {
        title: timeline.title(),
        caption: String::new(),
        group: String::new(),
        folded: false,
        chart: Chart::Timeline(timeline.record),
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
    let paths = rows.iter().filter(|row| row.kind().is_single()).count();
    let alone = (paths > 0).then(|| count(paths, "path") + " alone");
    let multipath = rows.iter().filter(|row| !row.kind().is_single());
    let schedulers: BTreeSet<&str> = multipath.map(|row| row.scheduler).collect();
    // With several congestion controls a scheduler has several rows.
    let rows = (rows.len() - paths != schedulers.len()).then(|| count(rows.len() - paths, "multipath row"));
    let parts = [Some(count(schedulers.len(), "scheduler")), rows, alone, Some(count(seeds.len(), "seed"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The head: what limited the runs, the network, the main chart and the means.
fn summary(results: &Results, rows: &[ResultRow<'_>], network: &Network, figures: Vec<Figure>) -> Option<Section> {
    let mut about: Vec<String> = network.direction_in_words().into_iter().collect();
    about.extend(unfinished(rows));
    about.extend(findings(results, rows));
    if rows.iter().any(|row| row.n() > 1) {
        about.push(format!(
            "Whiskers are the 95 % confidence interval of the mean over the seeds, ± its longer side. {}",
            too_few()
        ));
    }
    about.extend(one_run_suffices(rows));
    let mut section = section("summary", "Summary", about, figures);
    section.tables = vec![tables::summary(rows)];
    section.tables.extend(groups::groups(rows));
    section.tables.extend(groups::links(rows, usize::MAX));
    section.pictures.extend(draw_network(network).map(|_| Picture::Network(network.clone())));
    if let Some(gain) = Main::all(rows).first().and_then(|main| Gain::of(results, rows, main)) {
        // It says in one place what the bars of all cells say in many.
        section.pictures.push(Picture::Gain(gain));
        section.figures.iter_mut().for_each(|figure| figure.folded = true);
    }
    (!rows.is_empty()).then_some(section)
}

/// Where a mean has no interval, and why.
pub(crate) fn too_few() -> String {
    format!(
        "There is none where fewer than {LEAST_RUNS} runs have another value than the most frequent one: so few have hardly met the \
         rare events that decide a mean."
    )
}

/// The rows that were run once because nothing in them is random.
pub(crate) fn one_run_suffices(rows: &[ResultRow<'_>]) -> Option<String> {
    let cells: Vec<bool> = rows.chunk_by(|a, b| a.cell == b.cell).map(|cell| cell[0].deterministic()).collect();
    let fixed = cells.iter().filter(|deterministic| **deterministic).count();
    let place = match cells.len() {
        all if fixed == all => "nothing in the scenario is random".to_owned(),
        all => format!("nothing is random in {fixed} of {all} cells"),
    };
    (fixed > 0).then(|| format!("n = 1, deterministic: {place}, so one run suffices."))
}

/// Why: shares of the data, waiting, retransmissions; and each path's figures.
fn causes(rows: &[ResultRow<'_>], figures: Vec<Figure>) -> Option<Section> {
    let mut section = section("why", "Why", Vec::new(), figures);
    section.tables.extend(tables::paths(rows));
    (!section.figures.is_empty() || !section.tables.is_empty()).then_some(section)
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
                 and the effect size d_z. The answer above and the \
                 tables on a terminal correct for that number (Holm).";
    let mut section = section("comparisons", "Differences, seed by seed", vec![about.to_owned()], Vec::new());
    section.tables = vec![table];
    Some(section)
}

fn over_time(all: &[OfRow<Series>], network: &Network) -> Option<Section> {
    let cells: IndexSet<&str> = all.iter().map(|row| row.cell.as_str()).collect();
    let is_drawn = |row: &&OfRow<Series>| cells.get_index_of(row.cell.as_str()).is_some_and(|n| n < overlay::CELLS);
    let shown: Vec<OfRow<Series>> = all.iter().filter(is_drawn).take(SERIES).cloned().collect();
    let mut about = vec![
        "The first repetition of each row; the rows of one cell share a chart. Drag over a chart to zoom; all charts over time show the same \
         times. Press a name to hide or show it. Of several connections one is followed, the first unless --connection \
         named another."
            .to_owned(),
    ];
    about.extend(left_out(all.len(), shown.len(), "series/"));
    let figures = overlay::figures(&shown, network.warmup_s);
    (!figures.is_empty()).then(|| section("over-time", "Over time", about, figures))
}
