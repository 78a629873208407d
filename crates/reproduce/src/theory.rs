//! Claims about the paper's equations: what they give, and how well what we found follows them.

use crate::assessment::{Assessment, NoValue, decimals, interval, within};
use crate::claim::{Claim, Point, Side, Statistic};
use crate::cycle::{Cycle, cycles};
use crate::prediction::{Prediction, r_squared};
use crate::samples::{Samples, Stretch};
use anabranch_metrics::mean;
use anabranch_run::Estimate;

/// The value that equations give.
pub(crate) fn model(
    claim: &Claim,
    by: &Prediction,
    (published, band): (f64, (f64, f64)),
) -> Result<Assessment, NoValue> {
    let value = by.value(&[])? / claim.unit.scale;
    let places = decimals(published.abs().min(value.abs()));
    let ours = format!("{value:.places$} {}", claim.unit.name).trim_end().to_owned() + ", by the equation";
    Ok(Assessment::plain(ours, Estimate::of(&[value]), within(value, band)))
}

/// R² of the means of cells on what the model gives for them.
pub(crate) fn fit(
    claim: &Claim,
    of: &Side,
    to: &Prediction,
    (points, measured): (&[Point], &[(String, String)]),
    band: (f64, f64),
    samples: &Samples<'_>,
) -> Result<Assessment, NoValue> {
    let mean_of = |metric: &str, at: &[(String, String)]| {
        let values: Vec<f64> = samples.of(of, metric, at)?.into_iter().map(|(_, value)| value).collect();
        mean(&values).ok_or_else(|| NoValue::from(format!("{metric} has no value")))
    };
    let mut pairs = Vec::new();
    for point in points {
        let mut set = point.set.clone();
        for (parameter, metric) in measured {
            set.push((parameter.clone(), mean_of(metric, &point.at)?));
        }
        pairs.push((to.value(&set)?, mean_of(&claim.metric, &point.at)?));
    }
    let found = r_squared(&pairs).ok_or("one side does not vary")?;
    let ours = format!("{found:.3}, {} points", pairs.len());
    Ok(Assessment::plain(ours, Estimate::of(&[found]), within(found, band)))
}

/// Something of the cycles of a curve: one value per run, the mean over its cycles.
pub(crate) fn cycle(
    claim: &Claim,
    of: &Side,
    statistic: &Statistic,
    (published, band): (f64, (f64, f64)),
    samples: &Samples<'_>,
) -> Result<Assessment, NoValue> {
    let mut values = Vec::new();
    for curve in samples.curves(of, &claim.metric, &claim.at)? {
        let of_cycle = |cycle: &Cycle| match statistic {
            Statistic::Length => Ok(Some(cycle.length * curve.step / claim.unit.scale)),
            Statistic::Fall => Ok(Some(cycle.fall / claim.unit.scale)),
            Statistic::Fit(to) => rise_fit(cycle, &curve, to),
        };
        let found = cycles(&curve.values).iter().map(of_cycle).collect::<Result<Vec<_>, String>>()?;
        values.extend(mean(&found.into_iter().flatten().collect::<Vec<_>>()));
    }
    let estimate = Estimate::of(&values).ok_or_else(|| format!("{} does not fall and rise again", claim.metric))?;
    let ours = interval(&estimate, decimals(published.abs().min(estimate.mean.abs())), claim.unit.name);
    Ok(Assessment::plain(ours, Some(estimate), within(estimate.mean, band)))
}

/// R² of a cycle's rise on the model, which is a straight line between its rows; the time goes from the trough on.
fn rise_fit(cycle: &Cycle, curve: &Stretch, to: &Prediction) -> Result<Option<f64>, String> {
    let rows = to.columns(&[], &["time_s", &to.column])?;
    let at = |time: f64| {
        let pair = rows.windows(2).find(|pair| time <= pair[1][0])?;
        let share = (time - pair[0][0]) / (pair[1][0] - pair[0][0]);
        Some(pair[0][1] + share * (pair[1][1] - pair[0][1]))
    };
    let pair = |(step, value): (usize, &f64)| Some((at(step as f64 * curve.step)?, *value));
    Ok(r_squared(&cycle.rise.iter().enumerate().filter_map(pair).collect::<Vec<_>>()))
}
