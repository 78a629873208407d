//! The report of what `anabranch reproduce` found.

mod figures;

use crate::table::{Column, Table};
use crate::value::{MadeBy, Report, Section, Verdict};
use anabranch_reproduce::{ItemOutcome, Judged, PaperOutcome, Reproduction, Sensitive};
use indexmap::IndexSet;

/// What a reproduction's report needs besides its verdicts.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The program.
    pub made_by: MadeBy,
    /// `(key, value)`: how the results came about.
    pub settings: Vec<(String, String)>,
    /// Of all runs.
    pub seeds: Vec<u64>,
    /// Every scheduler's name, in the order of the registry.
    pub schedulers: Vec<String>,
}

/// The report of `reproduction`.
pub fn report(reproduction: &Reproduction, around: Around) -> Report {
    let items = || reproduction.papers.iter().flat_map(|paper| paper.items.iter().map(move |item| (paper, item)));
    let (title, source) = match &reproduction.papers[..] {
        [paper] => (format!("{}, reproduced", paper.title), format!("{}, {}. ", paper.authors, paper.venue)),
        papers => {
            let keys: Vec<&str> = papers.iter().map(|paper| paper.key.as_str()).collect();
            (format!("Reproduced: {}", keys.join(", ")), String::new())
        }
    };
    let quick = "A quick look: with three seeds, few differences can be told from luck.";
    let subtitle = source + if reproduction.quick { quick } else { "" };
    let text = |(paper, item): (&PaperOutcome, &ItemOutcome)| {
        (format!("papers/{}/{}", paper.key, item.scenario.0), item.scenario.1.clone())
    };
    // Several items may have one scenario.
    let scenario_texts: IndexSet<(String, String)> = items().map(text).collect();
    Report {
        title,
        subtitle: subtitle.trim().to_owned(),
        made_by: around.made_by,
        settings: around.settings,
        seeds: around.seeds,
        schedulers: around.schedulers,
        scenario_texts: scenario_texts.into_iter().collect(),
        verdicts: items().flat_map(|(paper, item)| verdicts(paper, item)).collect(),
        sections: items().map(|(paper, item)| of_item(paper, item)).collect(),
    }
}

fn verdicts(paper: &PaperOutcome, item: &ItemOutcome) -> Vec<Verdict> {
    let verdict = |(n, claim): (usize, &Judged)| Verdict {
        item: claim_id(paper, item, n),
        claim: claim.text.clone(),
        place: format!("{}, {}", paper.key, claim.place),
        published: claim.published.clone(),
        ours: claim.ours.clone(),
        verdict: claim.verdict,
        reason: claim.reason.clone().unwrap_or_default(),
    };
    item.claims.iter().enumerate().map(verdict).collect()
}

fn claim_id(paper: &PaperOutcome, item: &ItemOutcome, n: usize) -> String {
    format!("{} {} {}", paper.key, item.id, n + 1)
}

fn of_item(paper: &PaperOutcome, item: &ItemOutcome) -> Section {
    let id = format!("{}-{}", paper.key, item.id);
    let runs = item.summary.iter().map(|summary| summary.n).max().unwrap_or(0);
    let mut about = vec![format!("{} of {} ({}). Runs a row: {runs}.", item.place, paper.authors, paper.venue)];
    if item.live {
        about.push("By the clock, with a Linux kernel at the receiving end.".into());
    }
    Section {
        tables: sensitivity(item, &id).into_iter().collect(),
        id,
        title: format!("{} · {}: {}", paper.key, item.place, item.title),
        about,
        figures: figures::of(item),
        verdicts: (0..item.claims.len()).map(|n| claim_id(paper, item, n)).collect(),
    }
}

/// The claims under the item's own assumptions, and under each other.
fn sensitivity(item: &ItemOutcome, id: &str) -> Option<Table> {
    let assumptions = &item.sensitivity;
    let heads = assumptions.iter().map(|assumption| Column::text(assumption.name.clone()));
    let row = |(n, claim): (usize, &Judged)| {
        let other = |assumption: &Sensitive| {
            assumption.claims.get(n).map_or(String::new(), |(ours, verdict)| format!("{ours}: {verdict}"))
        };
        let own = format!("{}: {}", claim.ours, claim.verdict);
        [claim.text.clone(), own].into_iter().chain(assumptions.iter().map(other)).collect()
    };
    let note =
        |assumption: &Sensitive| format!("{}: {} ({}).", assumption.name, assumption.why, assumption.set.join(", "));
    (!assumptions.is_empty()).then(|| Table {
        id: format!("{id}-sensitivity"),
        title: "What moves it".into(),
        columns: [Column::text("claim"), Column::text("as assumed")].into_iter().chain(heads).collect(),
        rows: item.claims.iter().enumerate().map(row).collect(),
        note: assumptions.iter().map(note).collect::<Vec<_>>().join(" "),
        folded: false,
    })
}
