//! Which scheduler for which paths and application.

use super::{percent, some};
use crate::table::markdown_table;
use anabranch_studies::frontier::{Advice, BEST_SINGLE, Frontier};
use indexmap::IndexSet;

/// How many names a field of the table has room for.
const NAMES: usize = 2;
/// Shown beside the leader.
const USUAL: [&str; 2] = ["minrtt", "linux-default"];

/// The best choices by kind and application, and the losses of the leader, the usual schedulers and one path.
pub fn choices(frontier: &Frontier) -> String {
    let mut text =
        "What to choose: the schedulers whose mean over the path sets of the kind lacks least (within half a part in \
                    a hundred of the best), and what the first of them lacks, in percent:\n\n"
            .to_owned();
    text += &table(frontier, |advice| {
        let least = advice.best.first().and_then(|name| advice.losses.get(name)).copied().unwrap_or(0.0);
        if advice.all_alike() {
            "all alike".into()
        } else {
            format!("{} ({})", some(&advice.best, NAMES), percent(least))
        }
    });
    let leader = frontier.leader().map(|standing| standing.scheduler.as_str());
    let others = leader.into_iter().chain(USUAL).chain([BEST_SINGLE]).collect::<IndexSet<_>>();
    for name in others {
        text += &format!("\nWhat {name} lacks there, in percent:\n\n");
        text += &table(frontier, |advice| advice.losses.get(name).map(|loss| percent(*loss)).unwrap_or_default());
    }
    text
}

/// Kinds down, applications across.
fn table(frontier: &Frontier, field: impl Fn(&Advice) -> String) -> String {
    let kinds: IndexSet<(&str, usize)> = frontier.advice.iter().map(|a| (a.kind.as_str(), a.sets)).collect();
    let traffic: IndexSet<&str> = frontier.advice.iter().map(|advice| advice.traffic.as_str()).collect();
    let mut header = vec!["paths".to_owned(), "sets".to_owned()];
    header.extend(traffic.iter().map(|name| (*name).to_owned()));
    let line = |(kind, sets): &(&str, usize)| {
        let of = |traffic: &&str| {
            let advice = frontier.advice.iter().find(|advice| advice.kind == *kind && advice.traffic == **traffic);
            advice.map(&field).unwrap_or_default()
        };
        [(*kind).to_owned(), sets.to_string()].into_iter().chain(traffic.iter().map(of)).collect()
    };
    markdown_table(&header, 1, kinds.iter().map(line))
}
