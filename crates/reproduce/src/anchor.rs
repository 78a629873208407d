//! Which readings of a set-up the paper's own baselines admit.

use crate::claim::{Claim, Kind};
use crate::item_row::ItemRow;
use crate::judge::judge;
use crate::outcome::Anchor;
use crate::paper::Item;
use anabranch_run::{Estimate, RunRecord};

/// A reading is admissible if its distance is at most this much above the least.
const TOLERANCE: f64 = 0.05;

/// A reading beside the published values of the baselines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weighed {
    /// Ours of each anchor, in its unit; empty if the reading was not run.
    pub ours: Vec<Option<Estimate>>,
    /// Root mean square of the logarithms of ours over the published; `None` without runs or anchors.
    pub distance: Option<f64>,
    /// Claims are judged in it.
    pub admissible: bool,
}

/// Weighs an item as written, then each of its readings: the runs of at least the anchors' rows, if there are any, and the
/// rows that it has. A change of a stated value is no reading; without anchors every reading is admissible.
pub fn weigh(item: &Item, runs: &[Option<&[RunRecord]>]) -> Vec<Weighed> {
    let readings = std::iter::once(None).chain(item.readings.iter().map(Some));
    let open: Vec<bool> = readings.clone().map(|reading| reading.is_none_or(|reading| reading.open)).collect();
    let mut weighed: Vec<Weighed> = Vec::new();
    for (reading, runs) in readings.zip(runs) {
        let rows: &[ItemRow] = reading.map_or(&[], |reading| &reading.rows);
        weighed.push(runs.map_or_else(Weighed::default, |runs| distance(&item.anchors, runs, &item.rows, rows)));
    }
    let candidates = || weighed.iter().zip(&open).filter(|(_, open)| **open);
    let least = candidates().filter_map(|(weighed, _)| weighed.distance).reduce(f64::min);
    for (n, (weighed, open)) in weighed.iter_mut().zip(&open).enumerate() {
        weighed.admissible = *open
            && match (least, weighed.distance) {
                (Some(least), Some(distance)) => distance <= least + TOLERANCE,
                (Some(_), None) => false,
                (None, _) => item.anchors.is_empty() || n == 0,
            };
    }
    weighed
}

fn distance(anchors: &[Claim], runs: &[RunRecord], rows: &[ItemRow], instead: &[ItemRow]) -> Weighed {
    let ours: Vec<Option<Estimate>> =
        judge(anchors, runs, rows, instead).into_iter().map(|judged| judged.estimate).collect();
    let logarithm =
        |(anchor, ours): (&Claim, &Option<Estimate>)| Some(libm::log(ours.as_ref()?.mean / published(anchor)));
    let logarithms: Option<Vec<f64>> = anchors.iter().zip(&ours).map(logarithm).collect();
    let distance = logarithms
        .filter(|all| !all.is_empty())
        .map(|all| (all.iter().map(|ln| ln * ln).sum::<f64>() / all.len() as f64).sqrt());
    Weighed { ours, distance: distance.filter(|distance| distance.is_finite()), admissible: false }
}

/// The published value of an anchor.
pub fn published(anchor: &Claim) -> f64 {
    match anchor.kind {
        Kind::Value { published, .. } => published,
        _ => f64::NAN,
    }
}

/// The anchors as outcomes have them.
pub(crate) fn told(item: &Item, runs: &[RunRecord]) -> Vec<Anchor> {
    let judged = judge(&item.anchors, runs, &item.rows, &[]);
    let anchor = |(claim, judged): (&Claim, crate::outcome::Judged)| Anchor {
        text: judged.text,
        place: judged.place,
        metric: judged.metric,
        unit: judged.unit,
        scale: judged.scale,
        of: judged.of,
        published: published(claim),
    };
    item.anchors.iter().zip(judged).map(anchor).collect()
}
