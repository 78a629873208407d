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

impl Ran<'_> {
    /// The runs, as far as there are any.
    pub fn runs(self) -> Option<Vec<RunRecord>> {
        self.whole.or(self.baselines).map(|results| results.runs.to_vec())
    }
}

/// Judges an item by `main`, its runs as written, and by what was run of each of its readings, in their order.
pub fn conclude(item: &Item, scenario: &str, main: &Results, readings: &[Ran<'_>]) -> ItemOutcome {
    let mut rows: Vec<String> = Vec::new();
    for row in main.runs.rows() {
        if !rows.iter().any(|known| **known == **row.scheduler()) {
            rows.push(row.scheduler().to_string());
        }
    }
    let own = main.runs.to_vec();
    let others: Vec<Option<Vec<RunRecord>>> = readings.iter().map(|ran| ran.runs()).collect();
    let claims = judge(&item.claims, &own, &item.rows, &[]);
    let all: Vec<Option<&[RunRecord]>> =
        std::iter::once(Some(own.as_slice())).chain(others.iter().map(Option::as_deref)).collect();
    let mut weighed = weigh(item, &all).into_iter();
    let as_written = of_reading(None, claims.clone(), weighed.next().unwrap_or_default());
    // Of each reading, the runs of every row.
    let wholes = readings.iter().zip(&others).map(|(ran, runs)| runs.as_deref().filter(|_| ran.whole.is_some()));
    let of_readings = item.readings.iter().zip(wholes);
    let read = of_readings.clone().zip(weighed).map(|((reading, whole), weighed)| {
        let judged = |runs| judge(&item.claims, runs, &item.rows, &reading.rows);
        of_reading(Some(reading), whole.map_or_else(Vec::new, judged), weighed)
    });
    let runs_of = |name: Option<&str>| match name {
        None => Some((own.as_slice(), &[][..])),
        Some(name) => of_readings
            .clone()
            .find_map(|(reading, whole)| Some((whole.filter(|_| reading.name == name)?, reading.rows.as_slice()))),
    };
    ItemOutcome {
        id: item.id.clone(),
        title: item.title.clone(),
        place: item.place.clone(),
        live: item.live,
        scenario: (item.scenario.clone(), scenario.to_owned()),
        rows,
        digest: main.digest.clone(),
        curves: mean_curves(&item.figures, &own),
        summary: main.summary.clone(),
        figures: item.figures.clone(),
        anchors: told(item, &own),
        claims,
        readings: std::iter::once(as_written).chain(read).collect(),
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

/// A claim as it was judged by the runs of one reading.
pub(crate) fn tested(judged: Judged) -> Tested {
    let Judged { ours, estimate, p, scatter, pairs, verdict, .. } = judged;
    Tested { ours, estimate, p, scatter, pairs, verdict, stand: Stand::NotTested }
}
