//! Measured results beside those of the simulator.

use super::plain::{plain_table, print_table};
use anabranch_metrics::MetricInfo;
use anabranch_run::Estimate;
use anabranch_studies::Prediction;

/// A row per scheduler, congestion control and main metric.
pub fn prediction_table(predictions: &[Prediction]) -> String {
    let header = ["", "congestion", "metric", "measured", "n", "simulated", "n", "measured ÷ simulated"];
    let mut table = plain_table(header.map(str::to_owned).into());
    for prediction in predictions {
        table.add_row(row(prediction));
    }
    print_table(&table)
}

fn row(prediction: &Prediction) -> [String; 8] {
    let info = MetricInfo::of_run(&prediction.metric);
    let (per, decimals) = info.map_or((1.0, 3), |info| (info.scale.per, info.scale.decimals));
    let mean = |of: &Estimate| match of.half_width() {
        Some(half) if half > 0.0 => format!("{:.decimals$} ± {:.decimals$}", of.mean / per, half / per),
        _ => format!("{:.decimals$}", of.mean / per),
    };
    let fitted = if prediction.fitted { ", fitted" } else { "" };
    let ratio = match prediction.ci95_low.zip(prediction.ci95_high) {
        Some((low, high)) => format!("{:.3} ({low:.3} to {high:.3}){fitted}", prediction.ratio),
        None => format!("{:.3}{fitted}", prediction.ratio),
    };
    [
        prediction.scheduler.clone(),
        prediction.congestion.clone(),
        info.map_or(prediction.metric.clone(), |info| info.label_in(info.scale)),
        mean(&prediction.measured),
        prediction.measured.n.to_string(),
        mean(&prediction.simulated),
        prediction.simulated.n.to_string(),
        ratio,
    ]
}
