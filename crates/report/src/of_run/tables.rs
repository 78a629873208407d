//! The results as tables.

use super::cells;
use super::rows::{Row, greatest, metrics};
use crate::describe::figure;
use crate::quantity::{Quantity, split_path};
use crate::table::{Column, Table};
use anabranch_run::{Comparison, Results, Summary};

/// Columns of the summary, as far as any row has them and they are not all zero.
const SUMMARY: [&str; 11] = [
    "goodput_bps",
    "completion_s",
    "app_delay_mean_s",
    "app_delay_p99_s",
    "best_single_ratio",
    "aggregation_benefit",
    "oracle_ratio",
    "ofo_mean_bytes",
    "reinjected_packets",
    "retransmitted_packets",
    "price",
];

/// Rows that a table shows unasked, if it is not the summary.
const FOLDED: usize = 20;

/// A column that tells what a row is.
type Naming = (Column, fn(&Row<'_>) -> String);

/// The columns before the figures.
fn naming(rows: &[Row<'_>]) -> Vec<Naming> {
    let mut columns: Vec<Naming> = vec![(Column::text("scheduler"), |row| row.scheduler.to_owned())];
    if rows.iter().any(|row| row.name != row.scheduler) {
        columns.push((Column::text("congestion"), |row| row.congestion.to_owned()));
    }
    if rows.iter().any(|row| !row.cell.is_empty()) {
        columns.push((Column::text("cell"), |row| cells::name(row.cell)));
    }
    columns.push((Column::numeric("n"), |row| row.n().to_string()));
    columns
}

/// One row a row, one column a metric, each mean with its interval.
pub fn summary(rows: &[Row<'_>]) -> Table {
    let shown = SUMMARY.into_iter().map(|metric| (metric, greatest(rows, metric))).filter(|(_, most)| *most > 0.0);
    let columns: Vec<(String, Quantity)> =
        shown.map(|(metric, most)| (metric.to_owned(), Quantity::of(metric, most))).collect();
    let mut table = of_metrics(rows, &columns);
    (table.id, table.title) = ("summary".into(), "Means over all seeds".into());
    table
}

/// The metrics of the paths, a row a path of a row; none without paths.
pub fn paths(rows: &[Row<'_>]) -> Option<Table> {
    let (mut paths, mut names): (Vec<&str>, Vec<&str>) = Default::default();
    for (name, path) in metrics(rows).into_iter().map(split_path) {
        let Some(path) = path else { continue };
        if !paths.contains(&path) {
            paths.push(path);
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of = |path: &str, name: &str| format!("path.{path}.{name}");
    // One unit for all paths: they stand in one column.
    let most = |name: &str| paths.iter().map(|path| greatest(rows, &of(path, name))).fold(0.0, f64::max);
    let quantities: Vec<Quantity> = names.iter().map(|name| Quantity::of(name, most(name))).collect();
    let mut table = Table { id: "paths".into(), title: "Means of each path".into(), ..Table::default() };
    for path in &paths {
        let used: Vec<Row<'_>> = rows.iter().filter(|row| row.get(&of(path, "share")).is_some()).cloned().collect();
        let columns: Vec<(String, Quantity)> =
            names.iter().map(|name| of(path, name)).zip(quantities.iter().cloned()).collect();
        let mut part = of_metrics(&used, &columns);
        part.columns.insert(1, Column::text("path"));
        part.rows.iter_mut().for_each(|row| row.insert(1, (*path).to_owned()));
        table.columns = part.columns;
        table.rows.extend(part.rows);
    }
    table.folded = table.rows.len() > FOLDED;
    (!table.rows.is_empty()).then_some(table)
}

/// A column a metric, in the unit that goes with it.
fn of_metrics(rows: &[Row<'_>], metrics: &[(String, Quantity)]) -> Table {
    let naming = naming(rows);
    let mut columns: Vec<Column> = naming.iter().map(|(column, _)| column.clone()).collect();
    columns.extend(metrics.iter().map(|(_, quantity)| Column::numeric(&quantity.label)));
    let row = |row: &Row<'_>| {
        let mut cells: Vec<String> = naming.iter().map(|(_, of)| of(row)).collect();
        let value = |(metric, quantity): &(String, Quantity)| row.get(metric).map(|s| with_interval(s, quantity.per));
        cells.extend(metrics.iter().map(|column| value(column).unwrap_or_default()));
        cells
    };
    Table { columns, rows: rows.iter().map(row).collect(), ..Table::default() }
}

fn with_interval(summary: &Summary, per: f64) -> String {
    let half = summary.ci95_low.zip(summary.ci95_high).map(|(low, high)| (high - low) / 2.0 / per);
    let mean = spread(summary.mean / per, half);
    // Then the row's n is not that of every metric.
    if summary.unfinished > 0 { format!("{mean}, n {}", summary.n) } else { mean }
}

/// `5.92 ± 0.24`: as many decimals as the interval's second digit needs; of a mean that hardly varies, five digits.
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

/// Paired differences in the metrics of the summary; none without pairs.
pub fn comparisons(results: &Results, rows: &[Row<'_>]) -> Option<Table> {
    let shown = results.comparisons.iter().filter(|c| SUMMARY.contains(&c.metric.as_str()));
    let rows: Vec<Vec<String>> = shown.map(|comparison| compared(comparison, rows)).collect();
    let columns = [Column::text("row"), Column::text("against"), Column::text("congestion"), Column::text("cell")]
        .into_iter()
        .chain([Column::text("metric"), Column::numeric("difference"), Column::numeric("%"), Column::numeric("p (t)")])
        .chain([Column::numeric("p (Wilcoxon)"), Column::numeric("d_z"), Column::numeric("pairs")]);
    (!rows.is_empty()).then(|| Table {
        id: "comparisons".into(),
        title: "Differences between rows of one seed".into(),
        columns: columns.collect(),
        folded: rows.len() > FOLDED,
        rows,
        note: String::new(),
    })
}

fn compared(comparison: &Comparison, rows: &[Row<'_>]) -> Vec<String> {
    let Comparison { a, b, congestion, cell, metric, n, mean_diff, ci95_low, ci95_high, p, p_wilcoxon, effect_size } =
        comparison;
    let quantity = Quantity::of(metric, greatest(rows, metric));
    let half = ci95_low.zip(*ci95_high).map(|(low, high)| (high - low) / 2.0);
    let reference =
        rows.iter().find(|row| (row.scheduler, row.congestion, row.cell) == (b.as_str(), congestion.as_str(), cell));
    let percent = reference.and_then(|row| row.get(metric)).map(|s| 100.0 / s.mean.abs()).filter(|p| p.is_finite());
    vec![
        a.clone(),
        b.clone(),
        congestion.clone(),
        cells::name(cell),
        quantity.label.clone(),
        spread(mean_diff / quantity.per, half.map(|half| half / quantity.per)),
        percent.map(|percent| spread(mean_diff * percent, half.map(|half| half * percent))).unwrap_or_default(),
        p.map(p_value).unwrap_or_default(),
        p_wilcoxon.map(p_value).unwrap_or_default(),
        effect_size.map(|effect| format!("{effect:.2}")).unwrap_or_default(),
        n.to_string(),
    ]
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("{p:.3}") }
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
        let table = paths(&super::super::rows::all(&results)).unwrap();
        let heads: Vec<&str> = table.columns.iter().map(|column| column.head.as_str()).collect();
        assert_eq!(heads, ["scheduler", "path", "n", "share", "SRTT mean, s"]);
        assert_eq!(table.rows[0], ["minrtt", "wlan", "1", "0.75", "0.0419"]);
        assert_eq!(table.rows[1], ["minrtt", "3g", "1", "0.25", "6.695"]);
    }

    #[test]
    fn intervals_decide_how_many_decimals_there_are() {
        assert_eq!(spread(5.92431, Some(0.2412)), "5.92 ± 0.24");
        assert_eq!(spread(1083.4, Some(213.0)), "1083 ± 213");
        assert_eq!(spread(0.000_512, Some(0.000_031)), "0.000512 ± 0.000031");
        assert_eq!(spread(3.162_887_8, Some(0.000_004_8)), "3.1629 ± 0.0000048");
        assert_eq!(spread(4.8213, Some(0.0)), "4.821");
        assert_eq!(spread(4.8213, None), "4.821");
        assert_eq!([0.0004, 0.0312].map(p_value), ["< 0.001", "0.031"]);
    }
}
