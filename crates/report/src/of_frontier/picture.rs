//! The loss of each scheduler, by kind of paths and application, in colours.

use super::by_loss;
use crate::heat::{ColourScale, Heat, HeatRow, svg};
use anabranch_studies::frontier::{Advice, Comparison, Frontier};

/// A loss of half the best is as deep as colours go.
const DEEPEST: f64 = 50.0;

/// One panel per congestion control; the schedulers by their mean loss, the best on the left.
pub fn picture(comparison: &Comparison) -> String {
    let panels: Vec<Heat> = comparison.frontiers.iter().map(panel).collect();
    svg(&panels, &ColourScale { label: "lacks of the best scheduler, %".into(), most: DEEPEST })
}

fn panel(frontier: &Frontier) -> Heat {
    let columns: Vec<String> = by_loss(frontier).into_iter().map(|standing| standing.scheduler.clone()).collect();
    let row = |advice: &Advice| HeatRow {
        group: advice.kind.clone(),
        label: advice.traffic.clone(),
        values: columns.iter().map(|name| advice.losses.get(name).map(|loss| loss * 100.0)).collect(),
    };
    Heat { title: format!("With {}", frontier.congestion), rows: frontier.advice.iter().map(row).collect(), columns }
}
