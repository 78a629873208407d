//! The cost of the choice of the first path.

use super::percent;
use crate::table::markdown_table;
use anabranch_studies::frontier::Opened;
use indexmap::IndexMap;

/// A cell in which the worst first path costs more than this part of what the best one gives.
const DEAR: f64 = 0.1;

/// A table by scheduler and application: the result with the best first path of each cell, with the scenario's, with the worst.
pub fn first_path(opened: &[Opened]) -> String {
    let mut groups: IndexMap<(&str, &str), Vec<&Opened>> = IndexMap::new();
    for cell in opened {
        groups.entry((&cell.scheduler, &cell.traffic)).or_default().push(cell);
    }
    let header = [
        "scheduler",
        "application",
        "cells",
        "best first path",
        "as written",
        "worst",
        "worst costs %",
        "cells > 10 %",
        "most",
        "most in",
    ];
    let line = |((scheduler, traffic), cells): (&(&str, &str), &Vec<&Opened>)| {
        let n = cells.len().max(1) as f64;
        let mean = |value: &dyn Fn(&Opened) -> f64| cells.iter().map(|cell| value(cell)).sum::<f64>() / n;
        let cost = |cell: &Opened| if cell.best() > 0.0 { 1.0 - cell.worst() / cell.best() } else { 0.0 };
        let dear = cells.iter().filter(|cell| cost(cell) > DEAR).count();
        let most = cells.iter().max_by(|a, b| cost(a).total_cmp(&cost(b)));
        let ratios =
            [mean(&Opened::best), mean(&|cell| cell.ratios.first().copied().unwrap_or(0.0)), mean(&Opened::worst)];
        let mut line = vec![(*scheduler).to_owned(), (*traffic).to_owned(), cells.len().to_string()];
        line.extend(ratios.map(percent));
        line.extend([percent(mean(&cost)), dear.to_string()]);
        line.extend(
            [most.map(|cell| percent(cost(cell))), most.map(|cell| cell.paths.clone())].map(Option::unwrap_or_default),
        );
        line
    };
    let table = markdown_table(&header.map(str::to_owned), 2, groups.iter().map(line));
    format!(
        "Mean ratio to the oracle, in percent, when each cell is opened on its best path, on the one written first, on its worst; \
         and what the worst costs against the best.\n\n{table}"
    )
}
