//! An item and its results → its outcome.

use crate::anchor::{Weighed, told, weigh};
use crate::curves::mean_curves;
use crate::judge::judge;
use crate::outcome::{ItemOutcome, Judged, ReadingOutcome, Stand, Tested};
use crate::paper::Item;
use crate::reading::Reading;
use anabranch_run::{Results, RunRecord};

/// The reading that an item's scenario is.
const AS_WRITTEN: &str = "as written";

/// The runs of a reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran<'a> {
    /// The baselines alone.
    pub baselines: Option<&'a Results>,
    /// Every row.
    pub whole: Option<&'a Results>,
}

impl<'a> Ran<'a> {
    /// The runs, as far as there are any.
    pub fn runs(self) -> Option<&'a [RunRecord]> {
        self.whole.or(self.baselines).map(|results| results.runs.as_slice())
    }
}

/// Judges an item by `main`, its runs as written, and by what was run of each of its readings, in their order.
pub fn conclude(item: &Item, scenario: &str, main: &Results, readings: &[Ran<'_>]) -> ItemOutcome {
    let mut rows: Vec<String> = Vec::new();
    for run in &main.runs {
        if !rows.contains(&run.scheduler) {
            rows.push(run.scheduler.clone());
        }
    }
    let claims = judge(&item.claims, &main.runs, &item.rows, &[]);
    let runs = std::iter::once(Some(main.runs.as_slice())).chain(readings.iter().map(|ran| ran.runs()));
    let mut weighed = weigh(item, &runs.collect::<Vec<_>>()).into_iter();
    let as_written = of_reading(None, claims.clone(), weighed.next().unwrap_or_default());
    let others = item.readings.iter().zip(readings).zip(weighed).map(|((reading, ran), weighed)| {
        let judged = |whole: &Results| judge(&item.claims, &whole.runs, &item.rows, &reading.rows);
        of_reading(Some(reading), ran.whole.map_or_else(Vec::new, judged), weighed)
    });
    let runs_of = |name: Option<&str>| match name {
        None => Some((main.runs.as_slice(), &[][..])),
        Some(name) => item.readings.iter().zip(readings).find_map(|(reading, ran)| {
            let whole = ran.whole.filter(|_| reading.name == name)?;
            Some((whole.runs.as_slice(), reading.rows.as_slice()))
        }),
    };
    ItemOutcome {
        id: item.id.clone(),
        title: item.title.clone(),
        place: item.place.clone(),
        live: item.live,
        scenario: (item.scenario.clone(), scenario.to_owned()),
        rows,
        digest: main.digest.clone(),
        curves: mean_curves(&item.figures, &main.runs),
        summary: main.summary.clone(),
        figures: item.figures.clone(),
        anchors: told(item, &main.runs),
        claims,
        readings: std::iter::once(as_written).chain(others).collect(),
        findings: item.findings.iter().map(|finding| finding.check(&item.rows, &runs_of)).collect(),
    }
}

/// `claims` are empty where schedulers were not run.
fn of_reading(reading: Option<&Reading>, claims: Vec<Judged>, weighed: Weighed) -> ReadingOutcome {
    ReadingOutcome {
        name: reading.map_or_else(|| AS_WRITTEN.to_owned(), |reading| reading.name.clone()),
        why: reading.map_or_else(String::new, |reading| reading.why.clone()),
        set: reading.map_or_else(Vec::new, Reading::changes),
        open: reading.is_none_or(|reading| reading.open),
        post_hoc: reading.and_then(|reading| reading.post_hoc.clone()),
        anchors: weighed.ours,
        distance: weighed.distance,
        admissible: weighed.admissible,
        claims: claims.into_iter().map(tested).collect(),
    }
}

fn tested(judged: Judged) -> Tested {
    let Judged { ours, estimate, p, scatter, verdict, .. } = judged;
    Tested { ours, estimate, p, scatter, verdict, stand: Stand::NotTested }
}
