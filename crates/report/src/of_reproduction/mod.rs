//! The report of `anabranch reproduce`.

mod csv;
mod figures;
mod markdown;
pub mod stands;
mod text;
mod words;

pub use self::csv::claims_csv;
pub use markdown::{screens_markdown, summary_markdown};
pub use stands::Panel;
pub(crate) use stands::svg;
pub use text::text;
pub use words::{CLAIMS_CSV, picture, picture_name};

use crate::picture::Picture;
use crate::table::{Column, Table};
use crate::value::{MadeBy, Report, Section, Verdict};
use anabranch_reproduce::{Anchor, Class, ItemOutcome, Judged, PaperOutcome, ReadingOutcome, Reproduction, Tested};
use anabranch_run::Estimate;
use indexmap::IndexSet;

/// The parts of a reproduction's report besides its verdicts.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// The program.
    pub made_by: MadeBy,
    /// `(key, value)`: how the results came about.
    pub settings: Vec<(String, String)>,
    /// Seeds of all runs.
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
    let quick = "A quick look: with three seeds, few differences are significant.";
    let subtitle = source + if reproduction.quick { quick } else { "" };
    let text = |(paper, item): (&PaperOutcome, &ItemOutcome)| {
        (format!("papers/{}/{}", paper.key, item.scenario.0), item.scenario.1.clone())
    };
    // Several items may have one scenario.
    let scenario_texts: IndexSet<(String, String)> = items().map(text).collect();
    let verdicts: Vec<Verdict> = items().flat_map(|(paper, item)| verdicts(paper, item)).collect();
    Report {
        title,
        subtitle: subtitle.trim().to_owned(),
        answer: answer(&verdicts).into_iter().collect(),
        made_by: around.made_by,
        settings: around.settings,
        seeds: around.seeds,
        schedulers: around.schedulers,
        scenario_texts: scenario_texts.into_iter().collect(),
        verdicts,
        sections: items().map(|(paper, item)| of_item(paper, item)).collect(),
        packets: None,
    }
}

/// How many of the claims stand; none without claims.
fn answer(verdicts: &[Verdict]) -> Option<String> {
    let count = |classes: &[Class]| verdicts.iter().filter(|verdict| classes.contains(&verdict.class)).count();
    let size = count(&[Class::InSize]);
    let direction = count(&[Class::Direction]);
    let (some, none) = (count(&[Class::UnderSome]), count(&[Class::UnderNone]));
    let judged = size + direction + some + none;
    let other = verdicts.len() - judged;
    let rest = match other {
        0 => String::new(),
        _ => format!(" Of the other {other} these runs decide nothing, for the reasons given."),
    };
    (!verdicts.is_empty()).then(|| {
        format!(
            "Of {} claims, these runs decide {judged}: {size} reproduce in size, {direction} in direction only, {some} under some \
             readings of the paper, {none} under none.{rest}",
            verdicts.len()
        )
    })
}

fn verdicts(paper: &PaperOutcome, item: &ItemOutcome) -> Vec<Verdict> {
    let verdict = |(n, claim): (usize, &Judged)| Verdict {
        item: claim_id(paper, item, n),
        claim: claim.text.clone(),
        place: format!("{}, {}", paper.key, claim.place),
        published: claim.published.clone(),
        ours: claim.ours.clone(),
        class: claim.class,
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
    let mut about = vec![format!("{} of {} ({}). Runs per row: {runs}.", item.place, paper.authors, paper.venue)];
    if item.live {
        about.push("In real time, with a Linux kernel at the receiving end.".into());
    }
    let anchored = !item.anchors.is_empty();
    let picture = (item.readings.len() > 1).then(|| Picture::Claims(stands::panel(item)));
    Section {
        tables: anchored.then(|| anchors(item, &id)).into_iter().chain(readings(item, &id)).collect(),
        pictures: picture.into_iter().collect(),
        id,
        title: format!("{} · {}: {}", paper.key, item.place, item.title),
        about,
        figures: figures::of(item),
        verdicts: (0..item.claims.len()).map(|n| claim_id(paper, item, n)).collect(),
    }
}

/// Published values of the baselines beside ours, in every reading.
fn anchors(item: &ItemOutcome, id: &str) -> Table {
    let weighed: Vec<&ReadingOutcome> = item.readings.iter().filter(|reading| !reading.anchors.is_empty()).collect();
    let head = |reading: &&ReadingOutcome| {
        let mark = if reading.admissible { " (admissible)" } else { "" };
        Column::text(format!("{}{mark}", reading.name))
    };
    let row = |(n, anchor): (usize, &Anchor)| {
        let ours = |reading: &&ReadingOutcome| beside(reading.anchors.get(n).and_then(Option::as_ref), anchor);
        let published = format!("{} {}", anchor.published, anchor.unit);
        [anchor.text.clone(), published].into_iter().chain(weighed.iter().map(ours)).collect()
    };
    let distance = |reading: &&ReadingOutcome| reading.distance.map_or("—".into(), |d| format!("{d:.3}"));
    let last = ["distance".to_owned(), String::new()].into_iter().chain(weighed.iter().map(distance)).collect();
    Table {
        id: format!("{id}-anchors"),
        title: "Baselines, published and ours (ratio)".into(),
        columns: ["anchor", "published"].map(Column::text).into_iter().chain(weighed.iter().map(head)).collect(),
        rows: item.anchors.iter().enumerate().map(row).chain([last]).collect(),
        note: "Distance: root mean square of the logarithms of the ratios. Admissible: within 0.05 of the least."
            .into(),
        folded: false,
    }
}

/// `0.43 (1.02)`
fn beside(ours: Option<&Estimate>, anchor: &Anchor) -> String {
    ours.map_or("—".into(), |ours| format!("{:.4} ({:.2})", ours.mean, ours.mean / anchor.published))
}

/// The claims in every reading in which schedulers were run.
fn readings(item: &ItemOutcome, id: &str) -> Option<Table> {
    let run: Vec<&ReadingOutcome> = item.judged_readings().collect();
    let row = |(n, claim): (usize, &Judged)| {
        let tested = |tested: &Tested| format!("{}: {}", tested.ours, tested.stand);
        let ours = |reading: &&ReadingOutcome| reading.claims.get(n).map_or(String::new(), tested);
        [claim.text.clone(), claim.published.clone()].into_iter().chain(run.iter().map(ours)).collect()
    };
    let note = |reading: &&ReadingOutcome| format!("{}: {} ({}).", reading.name, reading.why, reading.set.join(", "));
    let heads = run.iter().map(|reading| Column::text(reading.name.clone()));
    (run.len() > 1).then(|| Table {
        id: format!("{id}-readings"),
        title: "Claims in every reading".into(),
        columns: ["claim", "published"].map(Column::text).into_iter().chain(heads).collect(),
        rows: item.claims.iter().enumerate().map(row).collect(),
        note: run.iter().skip(1).map(note).collect::<Vec<_>>().join(" "),
        folded: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Chart;
    use serde_json::{Value, json};

    fn summary(metric: &str, mean: f64) -> Value {
        json!({ "scheduler": "minrtt", "congestion": "lia", "cell": {}, "metric": metric, "n": 20, "mean": mean,
            "median": mean, "p95": mean })
    }

    fn item(id: &str, figures: Value) -> Value {
        json!({ "id": id, "title": "Bulk", "place": "Figures 3, 8", "live": false, "scenario": ["bulk", "text"],
            "rows": ["minrtt"], "digest": "", "curves": [], "figures": figures, "anchors": [], "claims": [], "readings": [], "findings": [],
            "summary": [summary("ofo_mean_bytes", 2048.0), summary("path.cell.srtt_mean_s", 0.25)] })
    }

    fn reproduced(figures: Value) -> Report {
        let paper = json!({ "key": "blest", "title": "BLEST", "authors": "Ferlin et al.", "venue": "Networking 2016",
            "in_short": "", "conclusion": "", "claims_digest": "", "p_limit": 0.05, "items": [item("fig3", figures), item("fig8", json!([]))] });
        let document = json!({ "anabranch": "0.1.0", "quick": true, "papers": [paper] });
        let around = Around { seeds: vec![1, 2, 3], ..Around::default() };
        report(&serde_json::from_value(document).unwrap(), around)
    }

    #[test]
    fn a_report_says_where_its_figures_come_from() {
        let report = reproduced(json!([]));
        assert!(report.subtitle.starts_with("Ferlin et al., Networking 2016. A quick look: "), "{}", report.subtitle);
        assert_eq!(report.scenario_texts, [("papers/blest/bulk".to_owned(), "text".to_owned())]);
        assert_eq!(report.seeds, [1, 2, 3]);
        assert_eq!(report.sections[0].about, ["Figures 3, 8 of Ferlin et al. (Networking 2016). Runs per row: 20."]);
    }

    #[test]
    fn both_axes_of_a_scatter_are_in_the_units_that_they_name() {
        let models = json!([["equation", [[1024.0, 0.5]]]]);
        let (x, metric) = ("ofo_mean_bytes", "path.cell.srtt_mean_s");
        let figure = json!([{ "kind": "scatter", "x": x, "metric": metric, "models": models }]);
        let figure = &reproduced(figure).sections[0].figures[0];
        let Chart::Scatter(chart) = &figure.chart else { panic!("{:?}", figure.chart) };
        assert_eq!(
            (figure.title.as_str(), figure.caption.as_str()),
            ("SRTT mean of path cell, ms", "As in Figures 3, 8.")
        );
        assert_eq!((chart.x.label.as_str(), chart.y.label.as_str()), ("OFO mean, KiB", "SRTT mean of path cell, ms"));
        assert_eq!((chart.sets[0].points[0], chart.models[0].points[0]), ((2.0, 250.0), (1.0, 500.0)));
    }

    #[test]
    fn the_head_counts_what_the_runs_decide() {
        let verdict = |class| Verdict {
            item: String::new(),
            claim: String::new(),
            place: String::new(),
            published: String::new(),
            ours: String::new(),
            class,
            reason: String::new(),
        };
        let verdicts = [Class::InSize, Class::InSize, Class::Direction, Class::UnderNone, Class::Open].map(verdict);
        assert_eq!(
            answer(&verdicts).unwrap(),
            "Of 5 claims, these runs decide 4: 2 reproduce in size, 1 in direction only, 0 under some readings of the paper, 1 \
             under none. Of the other 1 these runs decide nothing, for the reasons given."
        );
        assert_eq!(answer(&[]), None);
    }
}
