//! The standings and the choices as Markdown.

use super::choice::choices;
use super::table::{notes, ratio};
use super::{by_loss, extent, interval, members, percent, placed};
use crate::table::markdown_table;
use anabranch_studies::frontier::{CellScore, Comparison, Frontier, Standing, portfolio};
use std::fmt::Write as _;

/// The schedulers whose ties the page counts.
const COUSINS: [&str; 4] = ["minrtt", "stms", "kim2012", "fdps"];
/// Members of the portfolio of schedulers that together come nearest to the best of each cell.
const TEAM: usize = 5;

/// Everything but the cells: for each congestion control the choice, the standings, and the losses.
pub fn standings(comparison: &Comparison) -> String {
    let mut text = notes(comparison) + "\n";
    for frontier in &comparison.frontiers {
        let _ = write!(text, "\n### With {}\n\n{}\n\n", frontier.congestion, extent(frontier, comparison));
        text += &choices(frontier);
        let _ = write!(text, "\nRatio to the oracle, in percent:\n\n{}", ratios(frontier));
        let _ = write!(text, "\nAgainst the best of each cell:\n\n{}", losses(frontier));
        let _ = write!(text, "\n{}\n", team(frontier));
        text += &prices(frontier);
    }
    let _ = write!(text, "\n### Alike\n\n{}", alike(comparison));
    text
}

fn ratios(frontier: &Frontier) -> String {
    let keys = |of: fn(&Standing) -> Vec<&String>| {
        frontier.standings.first().map(of).unwrap_or_default().into_iter().cloned().collect::<Vec<String>>()
    };
    let (parts, traffic) = (keys(|s| s.by_part.keys().collect()), keys(|s| s.by_traffic.keys().collect()));
    let mut header = ["scheduler", "all ± seeds", "path sets"].map(str::to_owned).to_vec();
    header.extend(parts.iter().map(|part| format!("{part} grid")));
    header.extend(traffic.iter().cloned());
    let line = |standing: &Standing| {
        let mut line = vec![standing.scheduler.clone(), ratio(standing), interval(standing.ratio_over_sets)];
        let of = |map: &indexmap::IndexMap<String, f64>, key| map.get(key).map(|v| percent(*v)).unwrap_or_default();
        line.extend(parts.iter().map(|part| of(&standing.by_part, part)));
        line.extend(traffic.iter().map(|traffic| of(&standing.by_traffic, traffic)));
        line
    };
    markdown_table(&header, 1, frontier.standings.iter().map(line))
}

fn losses(frontier: &Frontier) -> String {
    let header = ["scheduler", "lacks %", "path sets", "median", "near %", "slower than one path %", "rank", "last %"];
    let header = header.map(str::to_owned).into_iter().chain(["most".to_owned(), "most in".to_owned()]);
    let line = |standing: &Standing| {
        let loss = &standing.loss;
        let share = |count: usize| format!("{:.0}", count as f64 / standing.cells.max(1) as f64 * 100.0);
        let mut line = vec![standing.scheduler.clone(), percent(loss.mean), interval(loss.over_sets)];
        line.extend([percent(loss.median), format!("{:.0}", loss.near * 100.0)]);
        let places = [share(standing.slower), format!("{:.1}", standing.rank), share(standing.last)];
        line.extend(places.map(|place| placed(standing, place)));
        line.extend([percent(loss.worst), loss.worst_in.clone()]);
        line
    };
    markdown_table(&header.collect::<Vec<_>>(), 1, by_loss(frontier).into_iter().map(line))
}

fn team(frontier: &Frontier) -> String {
    format!(
        "A portfolio, one scheduler for each kind of network, takes these, one after the other (and the best of those so far \
         lacks, in percent): {}.",
        members(&portfolio(&frontier.cells, TEAM))
    )
}

/// The price of each scheduler as a part of minRTT's, where a path costs something.
fn prices(frontier: &Frontier) -> String {
    let cells: Vec<&CellScore> = frontier.cells.iter().filter(|cell| cell.is_priced()).collect();
    let Some(first) = cells.first() else { return String::new() };
    let mut header = vec!["scheduler".to_owned()];
    header.extend(cells.iter().map(|cell| format!("{}: price (lacks)", cell.traffic)));
    let spent = |cell: &CellScore, name: &str| cell.entry(name).and_then(|entry| entry.price);
    let line = |name: &str| {
        let of = |cell: &&CellScore| {
            let own = spent(cell, name).zip(spent(cell, "minrtt")).map(|(own, all)| own / all * 100.0);
            let lacks = cell.entry(name).map(|entry| percent(cell.loss(entry))).unwrap_or_default();
            own.map_or(String::new(), |own| format!("{own:.0} ({lacks})"))
        };
        core::iter::once(name.to_owned()).chain(cells.iter().map(of)).collect::<Vec<_>>()
    };
    let mut order: Vec<&str> = first.schedulers().map(|entry| entry.scheduler.as_str()).collect();
    let total = |name: &str| cells.iter().filter_map(|cell| spent(cell, name)).sum::<f64>();
    order.sort_by(|a, b| total(a).total_cmp(&total(b)));
    let heading = format!(
        "\nWhat is spent on paths that cost money ({}), in percent of what minRTT spends, and in brackets what the scheduler \
         lacks of the best; the cheapest first:\n\n",
        first.paths
    );
    heading + &markdown_table(&header, 1, order.into_iter().map(line))
}

/// How often the schedulers that lead with loss-based congestion control tie.
fn alike(comparison: &Comparison) -> String {
    let header = ["congestion", "cells in which all tie %", "mean distance %"].map(str::to_owned);
    let line = |frontier: &Frontier| {
        let cells: Vec<&CellScore> =
            frontier.cells.iter().filter(|cell| COUSINS.iter().all(|name| cell.entry(name).is_some())).collect();
        let tied = cells.iter().filter(|cell| cell.tie(&COUSINS)).count();
        let distance = |cell: &CellScore| {
            let ratios = COUSINS.iter().filter_map(|name| cell.entry(name)).map(|entry| entry.ratio());
            let (low, high) = ratios.fold((f64::INFINITY, 0.0_f64), |(low, high), r| (low.min(r), high.max(r)));
            if high > 0.0 { 1.0 - low / high } else { 0.0 }
        };
        let n = cells.len().max(1) as f64;
        let mean = cells.iter().map(|cell| distance(cell)).sum::<f64>() / n;
        vec![frontier.congestion.clone(), format!("{:.0}", tied as f64 / n * 100.0), percent(mean)]
    };
    let table = markdown_table(&header, 1, comparison.frontiers.iter().map(line));
    format!(
        "{}: in how many cells none beats another, and how far the worst of them is from the best.\n\n{table}",
        COUSINS.join(", ")
    )
}
