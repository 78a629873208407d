//! The results as tables.

use super::cells;
use super::rows::{Row, greatest, metrics};
use crate::describe::figure;
use crate::quantity::Quantity;
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
    let shown: Vec<&str> = SUMMARY.into_iter().filter(|metric| greatest(rows, metric) > 0.0).collect();
    let mut table = of_metrics(rows, &shown, |metric| metric.to_owned());
    (table.id, table.title) = ("summary".into(), "Means over all seeds".into());
    table
}

/// The metrics of the paths, a row a path of a row; none without paths.
pub fn paths(rows: &[Row<'_>]) -> Option<Table> {
    let all = metrics(rows);
    let parts = |metric: &'_ str| -> Option<(String, String)> {
        let (path, name) = metric.strip_prefix("path.")?.rsplit_once('.')?;
        Some((path.to_owned(), name.to_owned()))
    };
    let (mut paths, mut names): (Vec<String>, Vec<String>) = Default::default();
    for (path, name) in all.iter().filter_map(|metric| parts(metric)) {
        if !paths.contains(&path) {
            paths.push(path);
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut table = Table { id: "paths".into(), title: "Means of each path".into(), ..Table::default() };
    for path in &paths {
        let used: Vec<Row<'_>> =
            rows.iter().filter(|row| row.get(&format!("path.{path}.share")).is_some()).cloned().collect();
        let metrics: Vec<String> = names.iter().map(|name| format!("path.{path}.{name}")).collect();
        let metrics: Vec<&str> = metrics.iter().map(String::as_str).collect();
        let part = of_metrics(&used, &metrics, |metric| metric.rsplit('.').next().unwrap_or(metric).to_owned());
        if table.columns.is_empty() {
            table.columns = part.columns;
            table.columns.insert(1, Column::text("path"));
        }
        table.rows.extend(part.rows.into_iter().map(|mut row| {
            row.insert(1, path.clone());
            row
        }));
    }
    (!table.rows.is_empty()).then_some(table)
}

fn of_metrics(rows: &[Row<'_>], metrics: &[&str], plain: impl Fn(&str) -> String) -> Table {
    let naming = naming(rows);
    let quantities: Vec<Quantity> =
        metrics.iter().map(|metric| Quantity::of(&plain(metric), greatest(rows, metric))).collect();
    let mut columns: Vec<Column> = naming.iter().map(|(column, _)| column.clone()).collect();
    columns.extend(quantities.iter().map(|quantity| Column::numeric(&quantity.label)));
    let row = |row: &Row<'_>| {
        let mut cells: Vec<String> = naming.iter().map(|(_, of)| of(row)).collect();
        let value = |(metric, quantity): (&&str, &Quantity)| row.get(metric).map(|s| with_interval(s, quantity.per));
        cells.extend(metrics.iter().zip(&quantities).map(|pair| value(pair).unwrap_or_default()));
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
