//! Groups of hosts side by side, and the links that they share.

use super::rows::{greatest, metrics};
use super::tables::{FOLDED, MOST, Measure, of_metrics};
use crate::quantity::Quantity;
use crate::table::{Column, Table};
use anabranch_run::ResultRow;

/// Metric by which groups are compared, by its name in a group.
pub(crate) const MAIN: &str = "goodput_mean_bps";

/// `group.homes.fairness` as `homes` and `fairness`: no group has a point in its name.
fn of_group(metric: &str) -> Option<(&str, &str)> {
    metric.strip_prefix("group.")?.split_once('.')
}

/// `link.core.down.utilisation` as `core`, `down` and `utilisation`.
fn of_link(metric: &str) -> Option<(&str, &str, &str)> {
    let mut parts = metric.strip_prefix("link.")?.splitn(3, '.');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

/// Whether a metric is the one by which groups are compared.
pub(crate) fn is_main(metric: &str) -> bool {
    of_group(metric).is_some_and(|(_, name)| name == MAIN)
}

/// The names of the groups that any of `rows` has.
pub(crate) fn names<'a>(rows: &[ResultRow<'a>]) -> Vec<&'a str> {
    metrics(rows).into_iter().filter(|metric| is_main(metric)).filter_map(of_group).map(|(group, _)| group).collect()
}

/// The main metric of a group.
pub(crate) fn main_of(group: &str) -> String {
    ["group", group, MAIN].join(".")
}

/// A row per group and row, those of a group next to each other; none without groups.
pub(crate) fn groups(rows: &[ResultRow<'_>]) -> Option<Table> {
    let groups = names(rows);
    let mut names: Vec<&str> = vec![MAIN];
    for (_, name) in metrics(rows).into_iter().filter_map(of_group) {
        // The sum is the mean of a pair times their number.
        if !names.contains(&name) && name != "goodput_bps" {
            names.push(name);
        }
    }
    let of = |group: &str, name: &str| ["group", group, name].join(".");
    let most = |name: &str| groups.iter().map(|group| greatest(rows, &of(group, name))).fold(0.0, f64::max);
    let mut table = Table { id: "groups".into(), title: "Means of each group".into(), ..Table::default() };
    for group in &groups {
        let measure =
            |name: &&str| Measure { metric: of(group, name), quantity: Quantity::of_any_path(name, most(name)) };
        let shown = &rows[..rows.len().min(MOST / groups.len())];
        let mut part = of_metrics(shown, &names.iter().map(measure).collect::<Vec<_>>());
        part.columns.insert(0, Column::text("group"));
        part.rows.iter_mut().for_each(|row| row.insert(0, (*group).to_owned()));
        table.columns = part.columns;
        table.rows.extend(part.rows);
    }
    table.note =
        "Goodput is per pair of hosts: mean, least and greatest. Fairness is Jain's index among the group's pairs."
            .into();
    table.folded = table.rows.len() > FOLDED;
    (!table.rows.is_empty()).then_some(table)
}

/// A row per row, link and direction that carried anything, the busiest links of a row first, at most `most` of a row; none without links.
pub(crate) fn links(rows: &[ResultRow<'_>], most: usize) -> Option<Table> {
    let mut table = Table { id: "links".into(), title: "Means of each link".into(), ..Table::default() };
    let mut all = 0;
    for row in &rows[..rows.len().min(MOST)] {
        let mean = |link: &str, way: &str, name: &str| row.get(&["link", link, way, name].join(".")).map(|s| s.mean);
        let of_use = |metric| of_link(metric).filter(|(.., name)| *name == "utilisation");
        let mut used: Vec<(&str, &str, f64)> = row
            .metrics()
            .filter_map(of_use)
            .map(|(link, way, name)| (link, way, mean(link, way, name).unwrap_or(0.0)))
            .filter(|(link, way, share)| *share > 0.0 || mean(link, way, "dropped_packets").unwrap_or(0.0) > 0.0)
            .collect();
        used.sort_by(|a, b| b.2.total_cmp(&a.2));
        all += used.len();
        for (link, way, _) in used.into_iter().take(most.min(MOST - table.rows.len().min(MOST))) {
            let of = |name: &str| {
                let metric = ["link", link, way, name].join(".");
                let quantity = Quantity {
                    per: if name == "utilisation" { 0.01 } else { 1.0 },
                    ..Quantity::of_any_path(name, 1.0)
                };
                Measure { metric, quantity }
            };
            let mut part =
                of_metrics(std::slice::from_ref(row), &["utilisation", "dropped_packets", "queue_max_packets"].map(of));
            let heads = ["used, %", "dropped packets", "most in queue"].map(Column::numeric);
            let own = part.columns.len() - heads.len();
            part.columns.splice(own.., heads);
            part.columns.splice(0..0, [Column::text("link"), Column::text("direction")]);
            part.rows[0].splice(0..0, [link.to_owned(), way.to_owned()]);
            table.columns = part.columns;
            table.rows.append(&mut part.rows);
        }
    }
    if all > table.rows.len() {
        table.note = format!("{} of {all} rows, the busiest; summary.csv has all.", table.rows.len());
    }
    table.folded = table.rows.len() > FOLDED;
    (!table.rows.is_empty()).then_some(table)
}
