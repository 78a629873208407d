//! The results as tables.

use super::rows::{Main, greatest, metrics};
use super::{cells, groups};
use crate::describe::figure;
use crate::quantity::Quantity;
use crate::table::{Column, Table};
use anabranch_metrics::{MetricInfo, MetricRef, Prominence, names, shown_metrics};
use anabranch_run::{Comparison, ResultRow, Results, Summary};
use indexmap::IndexMap;

/// Rows that a table shows unasked, if it is not the summary.
pub(super) const FOLDED: usize = 20;

/// Rows that a table has at most.
pub(super) const MOST: usize = 1000;

/// The note of a table that would have `all` rows; `file` has all.
fn cut(all: usize, file: &str) -> String {
    if all <= MOST { String::new() } else { format!("{MOST} of {all} rows at most; {file} has all.") }
}

/// A column that identifies a row.
struct Naming {
    column: Column,
    of: fn(&ResultRow<'_>) -> String,
}

/// The columns before the figures.
fn naming(rows: &[ResultRow<'_>]) -> Vec<Naming> {
    let mut columns = vec![Naming { column: Column::text("scheduler"), of: |row| row.scheduler.to_owned() }];
    if rows.iter().any(|row| row.name != row.scheduler) {
        columns.push(Naming { column: Column::text("congestion"), of: |row| row.congestion.to_owned() });
    }
    if rows.iter().any(|row| !row.cell.is_empty()) {
        columns.push(Naming { column: Column::text("cell"), of: |row| cells::name(row.cell) });
    }
    columns.push(Naming { column: Column::numeric("n"), of: |row| row.n().to_string() });
    columns
}

/// The means of the main metric, then of the others, each with its interval.
pub fn summary(rows: &[ResultRow<'_>]) -> Table {
    let main = Main::all(rows);
    let owners = main.iter().filter_map(Main::application).map(Some).chain([None]);
    let summarised = |owner: Option<&str>| {
        let name = |info: &MetricInfo| match owner {
            Some(application) => MetricRef::of_application(application, info.name),
            None => info.name.to_owned(),
        };
        shown_metrics(Prominence::Summarised).map(name).collect::<Vec<_>>()
    };
    let others = owners.flat_map(summarised).filter(|name| main.iter().all(|main| main.name != *name));
    let shown = main.iter().map(|main| main.name.clone()).chain(others.filter(|name| greatest(rows, name) > 0.0));
    let columns: Vec<Measure> = shown.map(|name| Measure::of(greatest(rows, &name), name)).collect();
    let mut table = of_metrics(&rows[..rows.len().min(MOST)], &columns);
    (table.id, table.title) = ("summary".into(), "Means over all seeds".into());
    table.note = cut(rows.len(), "summary.csv");
    table
}

/// The metrics of the paths, a row per path of a row; none without paths.
pub fn paths(rows: &[ResultRow<'_>]) -> Option<Table> {
    let (mut paths, mut names): (Vec<&str>, Vec<&str>) = Default::default();
    for metric in metrics(rows).into_iter().map(MetricRef::parse) {
        let Some(path) = metric.path else { continue };
        if !paths.contains(&path) {
            paths.push(path);
        }
        if !names.contains(&metric.name) {
            names.push(metric.name);
        }
    }
    let of = |path: &str, name: &str| MetricRef::of_path(path, name).to_string();
    // One unit for all paths: they are in one column.
    let most = |name: &str| paths.iter().map(|path| greatest(rows, &of(path, name))).fold(0.0, f64::max);
    let mut table = Table { id: "paths".into(), title: "Means of each path".into(), ..Table::default() };
    let mut all = 0;
    for path in &paths {
        let share = of(path, names::SHARE);
        let used = || rows.iter().filter(|row| row.get(&share).is_some());
        all += used().count();
        let shown: Vec<ResultRow<'_>> = used().take(MOST / paths.len()).cloned().collect();
        let measure =
            |name: &&str| Measure { metric: of(path, name), quantity: Quantity::of_any_path(name, most(name)) };
        let columns: Vec<Measure> = names.iter().map(measure).collect();
        let mut part = of_metrics(&shown, &columns);
        part.columns.insert(1, Column::text("path"));
        part.rows.iter_mut().for_each(|row| row.insert(1, (*path).to_owned()));
        table.columns = part.columns;
        table.rows.extend(part.rows);
    }
    let n = same(&mut table, "n");
    table.title += &n.map(|n| format!(" (n = {n})")).unwrap_or_default();
    table.folded = table.rows.len() > FOLDED;
    table.note = if all > table.rows.len() { cut(all, "summary.csv") } else { String::new() };
    (!table.rows.is_empty()).then_some(table)
}

/// A column of means.
pub(super) struct Measure {
    /// Metric, by its name in results.
    pub metric: String,
    pub quantity: Quantity,
}

impl Measure {
    fn of(greatest: f64, metric: String) -> Self {
        let quantity = Quantity::of(&metric, greatest);
        Self { metric, quantity }
    }
}

/// A column per metric, in the unit that goes with it.
pub(super) fn of_metrics(rows: &[ResultRow<'_>], measures: &[Measure]) -> Table {
    let naming = naming(rows);
    let mut columns: Vec<Column> = naming.iter().map(|naming| naming.column.clone()).collect();
    columns.extend(measures.iter().map(|measure| Column::numeric(&measure.quantity.label)));
    let row = |row: &ResultRow<'_>| {
        let mut cells: Vec<String> = naming.iter().map(|naming| (naming.of)(row)).collect();
        let value = |measure: &Measure| row.get(&measure.metric).map(|s| with_interval(s, measure.quantity.per));
        cells.extend(measures.iter().map(|measure| value(measure).unwrap_or_default()));
        cells
    };
    Table { columns, rows: rows.iter().map(row).collect(), ..Table::default() }
}

fn with_interval(summary: &Summary, per: f64) -> String {
    let half = summary.half_width().map(|half| half / per);
    let mean = spread(summary.mean / per, half);
    // Then the row's n is not that of every metric.
    if summary.unfinished > 0 { format!("{mean}, n {}", summary.n) } else { mean }
}

/// `5.92 ± 0.24`: as many decimals as the interval's second digit needs; of a mean that varies little, five digits.
fn spread(mean: f64, half: Option<f64>) -> String {
    let decimals =
        |value: f64, digits: i32| (digits - 1 - libm::log10(value.abs()).floor() as i32).clamp(0, 9) as usize;
    match half.filter(|half| *half > 0.0 && half.is_finite()) {
        Some(half) => {
            let own = decimals(half, 2);
            let of_mean = if mean.abs() > 1e4 * half { decimals(mean, 5) } else { own };
            format!("{mean:.of_mean$} ± {half:.own$}")
        }
        None => figure(mean),
    }
}

fn is_compared(metric: &str) -> bool {
    let of = MetricRef::parse(metric);
    let is_shown = of.path.is_none() && of.info().is_some_and(|info| info.prominence() >= Prominence::Summarised);
    is_shown || groups::is_main(metric)
}

/// Paired differences in the metrics of the summary; none without pairs.
pub fn comparisons(results: &Results, rows: &[ResultRow<'_>]) -> Option<Table> {
    let shown = || results.comparisons.iter().filter(|c| is_compared(&c.metric));
    let mut quantities: IndexMap<&str, Quantity> = IndexMap::new();
    // Both lists go from cell to cell, so the reference is near that of the comparison before.
    let mut near = 0;
    let mut lines = Vec::new();
    for comparison in shown().take(MOST) {
        let metric = &*comparison.metric;
        let quantity = quantities.entry(metric).or_insert_with(|| Quantity::of(metric, greatest(rows, metric)));
        let reference = (near..rows.len()).chain(0..near).find(|&row| is_reference(&rows[row], comparison));
        near = reference.unwrap_or(near);
        lines.push(compared(comparison, reference.map(|row| &rows[row]), quantity));
    }
    let columns = [Column::text("row"), Column::text("against"), Column::text("congestion"), Column::text("cell")]
        .into_iter()
        .chain([Column::text("metric"), Column::numeric("difference"), Column::numeric("%"), Column::numeric("p (t)")])
        .chain([Column::numeric("p (Wilcoxon)"), Column::numeric("d_z"), Column::numeric("pairs")]);
    let mut table = Table {
        id: "comparisons".into(),
        title: "Differences between rows of one seed".into(),
        columns: columns.collect(),
        folded: lines.len() > FOLDED,
        rows: lines,
        note: cut(shown().count(), "comparisons.csv"),
    };
    for head in ["congestion", "cell", "pairs"] {
        let value = same(&mut table, head).filter(|value| !value.is_empty());
        table.title += &value.map(|value| format!(", {head} {value}")).unwrap_or_default();
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Takes the column `head` out if all rows have one value there, which it returns: what is said once leaves room.
fn same(table: &mut Table, head: &str) -> Option<String> {
    let place = table.columns.iter().position(|column| column.head == head)?;
    let value = table.rows.first()?.get(place)?.clone();
    if table.rows.iter().any(|row| row.get(place) != Some(&value)) {
        return None;
    }
    table.columns.remove(place);
    table.rows.iter_mut().for_each(|row| drop(row.remove(place)));
    Some(value)
}

/// True if `comparison` is with this row.
fn is_reference(row: &ResultRow<'_>, comparison: &Comparison) -> bool {
    (row.scheduler, row.congestion) == (&*comparison.b, &*comparison.congestion) && *row.cell == *comparison.cell
}

fn compared(comparison: &Comparison, reference: Option<&ResultRow<'_>>, quantity: &Quantity) -> Vec<String> {
    let Comparison { a, b, congestion, cell, metric, n, mean_diff, p, p_wilcoxon, effect_size, .. } = comparison;
    let half = comparison.half_width();
    let percent = reference.and_then(|row| row.get(metric)).map(|s| 100.0 / s.mean.abs()).filter(|p| p.is_finite());
    vec![
        a.to_string(),
        b.to_string(),
        congestion.to_string(),
        cells::name(&**cell),
        quantity.label.clone(),
        spread(mean_diff / quantity.per, half.map(|half| half / quantity.per)),
        percent.map(|percent| spread(mean_diff * percent, half.map(|half| half * percent))).unwrap_or_default(),
        p.map(p_value).unwrap_or_default(),
        p_wilcoxon.map(p_value).unwrap_or_default(),
        effect_size.map(|effect| format!("{effect:.2}")).unwrap_or_default(),
        n.to_string(),
    ]
}

/// A number for programs, too: `0.031`, `4e-7`.
fn p_value(p: f64) -> String {
    if p > 0.0 && p < 0.001 { format!("{p:.0e}") } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(metrics: &[(&str, &str, f64)]) -> Results {
        let summary = |(scheduler, metric, mean): &(&str, &str, f64)| {
            serde_json::json!({ "scheduler": scheduler, "congestion": "cubic", "cell": {}, "metric": metric,
                "n": 1, "mean": mean, "median": mean, "p95": mean })
        };
        let summaries: Vec<_> = metrics.iter().map(summary).collect();
        let document = serde_json::json!({ "schema": 1, "anabranch": "", "scenario": "", "digest": "", "runs": [],
            "summary": summaries, "comparisons": [] });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn the_paths_of_one_column_have_one_unit() {
        let results = results(&[
            ("minrtt", "path.wlan.share", 0.75),
            ("minrtt", "path.wlan.srtt_mean_s", 0.0419),
            ("minrtt", "path.3g.share", 0.25),
            ("minrtt", "path.3g.srtt_mean_s", 6.695),
        ]);
        let table = paths(&results.rows()).unwrap();
        let heads: Vec<&str> = table.columns.iter().map(|column| column.head.as_str()).collect();
        assert_eq!(heads, ["scheduler", "path", "share, %", "SRTT mean, s"]);
        assert_eq!(table.title, "Means of each path (n = 1)");
        assert_eq!(table.rows[0], ["minrtt", "wlan", "75", "0.0419"]);
        assert_eq!(table.rows[1], ["minrtt", "3g", "25", "6.695"]);
    }

    #[test]
    fn intervals_decide_how_many_decimals_there_are() {
        assert_eq!(spread(5.92431, Some(0.2412)), "5.92 ± 0.24");
        assert_eq!(spread(1083.4, Some(213.0)), "1083 ± 213");
        assert_eq!(spread(0.000_512, Some(0.000_031)), "0.000512 ± 0.000031");
        assert_eq!(spread(3.162_887_8, Some(0.000_004_8)), "3.1629 ± 0.0000048");
        assert_eq!(spread(4.8213, Some(0.0)), "4.821");
        assert_eq!(spread(4.8213, None), "4.821");
        assert_eq!([0.00041, 0.0312, 0.0].map(p_value), ["4e-4", "0.031", "0.000"]);
    }
}
