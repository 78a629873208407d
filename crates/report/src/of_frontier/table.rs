//! The standings for a terminal.

use super::{extent, interval, percent, placed};
use crate::text::{plain_table, print_table};
use anabranch_run::knows_rates;
use anabranch_studies::frontier::{Comparison, Frontier, Standing};

/// The meaning of the columns.
const NOTES: &str = "\
Ratio: mean over all cells (path set × application) of what was reached ÷ the oracle's bound, in percent, ± its 95 %
interval over the seeds; sets: its 95 % interval over path sets, by bootstrap; then by application. Lacks: mean over the
cells of what is missing from the best scheduler of the cell, in percent of it; near: cells in which that is 2 % or less.
Slower: cells in which the best path alone is faster by more than 2.5 % (and paired t test, p < 0.05 after Holm's
correction for the schedulers of the cell); Multipath TCP's options alone take 1.9 %. Rank: mean place; schedulers tie in
a cell unless they differ by more than 0.5 % and the paired t test says p < 0.05, and those that tie share their places.
Last: cells in which it is the worst, or ties with it.
single:best is the best path alone, in plain TCP.";

/// Where some scheduler knows the true rates.
const KNOWN: &str = "
known-rates+NAME is no published scheduler, for it knows the paths' rates: it has no place, and is never the best of a cell.";

/// The meaning of the columns that there are.
pub fn notes(comparison: &Comparison) -> String {
    let mut standings = comparison.frontiers.iter().flat_map(|frontier| &frontier.standings);
    let known = standings.any(|standing| knows_rates(&standing.scheduler));
    NOTES.to_owned() + if known { KNOWN } else { "" }
}

/// The standings to read.
pub fn text(comparison: &Comparison) -> String {
    let tables = comparison.frontiers.iter().map(|frontier| {
        let mut table = plain_table(header(frontier));
        frontier.standings.iter().for_each(|standing| {
            table.add_row(line(standing));
        });
        format!("{}\n\n{}\n", extent(frontier, comparison), print_table(&table))
    });
    tables.collect::<String>() + &notes(comparison) + "\n"
}

fn header(frontier: &Frontier) -> Vec<String> {
    let traffic = frontier.standings.first().into_iter().flat_map(|s| s.by_traffic.keys().cloned());
    let mut header = ["scheduler", "ratio %", "sets"].map(str::to_owned).to_vec();
    header.extend(traffic);
    header.extend(["lacks", "near %", "slower", "rank", "last"].map(str::to_owned));
    header
}

fn line(standing: &Standing) -> Vec<String> {
    let mut line = vec![standing.scheduler.clone(), ratio(standing), interval(standing.ratio_over_sets)];
    line.extend(standing.by_traffic.values().map(|ratio| percent(*ratio)));
    line.extend([percent(standing.loss.mean), format!("{:.0}", standing.loss.near * 100.0)]);
    let places = [standing.slower.to_string(), format!("{:.1}", standing.rank), standing.last.to_string()];
    line.extend(places.map(|place| placed(standing, place)));
    line
}

/// The mean with its interval over the seeds.
pub fn ratio(standing: &Standing) -> String {
    let mean = percent(standing.ratio.mean);
    let half = standing.ratio.half_width().map(|half| half * 100.0);
    half.map_or(mean.clone(), |half| format!("{mean} ± {half:.1}"))
}
