//! How well the simulator predicts what was measured: the same rows of two results, as ratios.

use anabranch_metrics::{MetricRef, Prominence, t_quantile};
use anabranch_run::{Estimate, Results, Summary};
use serde::{Deserialize, Serialize};

/// One main metric of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// A scheduler, or `single:PATH`.
    pub scheduler: String,
    /// The scenario was made of these measured runs: the ratio says how well it was made, and predicts nothing.
    #[serde(skip_serializing_if = "core::ops::Not::not", default)]
    pub fitted: bool,
    /// Congestion control.
    pub congestion: String,
    /// A metric's name.
    pub metric: String,
    /// On real links.
    pub measured: Estimate,
    /// In virtual time.
    pub simulated: Estimate,
    /// Mean measured ÷ mean simulated.
    pub ratio: f64,
    /// Lower end of its 95 % interval; absent if either mean varies and has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci95_low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ci95_high: Option<f64>,
}

impl Prediction {
    /// The main metrics of every row that both results have. Neither has a sweep. `is_fitted` says of a row's name whether the scenario
    /// was made of it.
    pub fn all(measured: &Results, simulated: &Results, is_fitted: impl Fn(&str) -> bool) -> Vec<Self> {
        let is_main = |entry: &&Summary| {
            let metric = MetricRef::parse(&entry.metric);
            metric.path.is_none() && metric.info().is_some_and(|info| info.prominence() == Prominence::Main)
        };
        let same = |a: &Summary, b: &Summary| {
            (&a.scheduler, &a.congestion, &a.metric) == (&b.scheduler, &b.congestion, &b.metric)
        };
        let other = |entry: &Summary| simulated.summary.iter().find(|other| same(entry, other));
        let pairs = measured.summary.iter().filter(is_main).filter_map(|entry| Some((entry, other(entry)?)));
        let of = |(measured, simulated): (&Summary, &Summary)| {
            Some(Self { fitted: is_fitted(&measured.scheduler), ..Self::of(measured, simulated)? })
        };
        pairs.filter_map(of).collect()
    }

    /// `None` if the simulated mean is zero.
    fn of(measured: &Summary, simulated: &Summary) -> Option<Self> {
        let ratio = Some(measured.mean / simulated.mean).filter(|ratio| ratio.is_finite())?;
        let (ci95_low, ci95_high) = interval(ratio, measured, simulated).unzip();
        let estimate =
            |of: &Summary| Estimate { n: of.n, mean: of.mean, ci95_low: of.ci95_low, ci95_high: of.ci95_high };
        Some(Self {
            scheduler: measured.scheduler.to_string(),
            fitted: false,
            congestion: measured.congestion.to_string(),
            metric: measured.metric.to_string(),
            measured: estimate(measured),
            simulated: estimate(simulated),
            ratio,
            ci95_low,
            ci95_high,
        })
    }
}

/// The 95 % interval of a ratio of means of independent runs of one scenario, which is taken as exact: the relative variances of both means add up (delta method), with the
/// degrees of freedom of Welch and Satterthwaite. A simulation without randomness has no variance, which leaves Student's interval.
fn interval(ratio: f64, measured: &Summary, simulated: &Summary) -> Option<(f64, f64)> {
    let relative = |of: &Summary| {
        let part = of.sd.filter(|_| of.ci95_low.is_some())? / of.mean;
        Some(part * part / of.n as f64)
    };
    let (ours, theirs) = (relative(measured)?, if simulated.deterministic { 0.0 } else { relative(simulated)? });
    let df = |part: f64, n: usize| if part > 0.0 { part * part / (n - 1) as f64 } else { 0.0 };
    let all = ours + theirs;
    let freedom = df(ours, measured.n) + df(theirs, simulated.n);
    let half = if all > 0.0 { t_quantile(0.05, all * all / freedom) * all.sqrt() * ratio } else { 0.0 };
    Some((ratio - half, ratio + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(n: usize, mean: f64, sd: Option<f64>) -> Summary {
        let name = |text: &str| text.into();
        Summary {
            scheduler: name("minrtt"),
            congestion: name("cubic"),
            cell: Default::default(),
            metric: name("goodput_bps"),
            n,
            mean,
            sd,
            ci95_low: sd.map(|sd| mean - sd),
            ci95_high: sd.map(|sd| mean + sd),
            median: mean,
            p95: mean,
            deterministic: sd.is_none(),
            unfinished: 0,
        }
    }

    #[track_caller]
    fn near(found: Option<f64>, expected: f64) {
        assert!((found.unwrap() - expected).abs() < 5e-4, "{found:?}, not {expected}");
    }

    #[test]
    fn against_a_simulation_without_randomness_it_is_students_interval() {
        // t(9) = 2.262; sd of the mean = 1/√10.
        let ratio = Prediction::of(&summary(10, 19.0, Some(1.0)), &summary(1, 20.0, None)).unwrap();
        near(Some(ratio.ratio), 0.95);
        let half = 2.2622 / 10f64.sqrt() / 20.0;
        near(ratio.ci95_low, 0.95 - half);
        near(ratio.ci95_high, 0.95 + half);
    }

    #[test]
    fn two_samples_of_one_kind_have_the_freedom_of_both() {
        // Equal relative variances: 18 degrees, t = 2.1009, √2 times the half of one sample.
        let ratio = Prediction::of(&summary(10, 20.0, Some(1.0)), &summary(10, 20.0, Some(1.0))).unwrap();
        near(ratio.ci95_high, 1.0 + 2.1009 * (2.0f64 / 10.0).sqrt() / 20.0);
    }

    #[test]
    fn one_run_has_no_interval_and_a_mean_of_zero_no_ratio() {
        let alone = Prediction::of(&summary(1, 20.0, None), &summary(1, 20.0, None)).unwrap();
        assert_eq!((alone.ratio, alone.ci95_low), (1.0, None));
        let drawn = Summary { deterministic: false, ..summary(1, 20.0, None) };
        assert_eq!(Prediction::of(&summary(5, 20.0, Some(1.0)), &drawn).unwrap().ci95_high, None);
        let few = Summary { ci95_low: None, ..summary(5, 20.0, Some(1.0)) };
        assert_eq!(Prediction::of(&few, &summary(1, 20.0, None)).unwrap().ci95_high, None);
        assert_eq!(Prediction::of(&summary(5, 20.0, Some(1.0)), &summary(1, 0.0, None)), None);
    }
}
