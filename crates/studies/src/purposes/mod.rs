//! The purpose of each scheduler: the smallest network in which, by its paper, it does better than minRTT, or otherwise,
//! and whether it does here.

mod page;
mod table;

pub use page::page;
pub use table::{NETWORKS, PURPOSES};

use anabranch_metrics::{Paired, mean, names};
use anabranch_run::{Driver, Options, Plan, Pool, Repeat, RunRecord, Runner, Variant};
use anabranch_scenario::{NoFiles, Override, PlugIn, Scenario, Source};
use std::sync::Arc;

/// A network with its application, as a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Name of the file without `.toml`.
    pub name: &'static str,
    /// The scenario.
    pub text: &'static str,
    /// Networks around it: each with one key set otherwise, as `KEY=VALUE`.
    pub around: &'static [&'static str],
}

/// Which way the metric is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Up.
    More,
    /// Down.
    Less,
}

/// The verdict of a network's runs on the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The metric changes as the claim states, significantly (paired t, p < 0.05) or, where nothing is random, exactly.
    Shown,
    /// The source's claim is not shown.
    NotShown,
}

/// The purpose of a scheduler, and the network that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    /// Scheduler with its parameters.
    pub scheduler: &'static str,
    /// The scheduler that it is compared with.
    pub against: &'static str,
    /// The claim of its source.
    pub claim: &'static str,
    /// The source.
    pub source: &'static str,
    /// A [`Network`]'s name.
    pub network: &'static str,
    /// Metric of the connection, or `path.NAME.METRIC`.
    pub metric: &'static str,
    /// Which way.
    pub wants: Wants,
    /// The verdict that the test expects.
    pub verdict: Verdict,
    /// Why it is not shown; empty if it is.
    pub reason: &'static str,
}

/// The figures of one purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Purpose that was measured.
    pub purpose: &'static Purpose,
    /// Mean of the scheduler that it is compared with.
    pub theirs: f64,
    /// Mean of the scheduler.
    pub ours: f64,
    /// Difference of the scheduler's figures from the other's, seed by seed.
    pub difference: Paired,
    /// The verdict of these figures.
    pub verdict: Verdict,
    /// In how many of the networks around this one it is shown, too.
    pub around: usize,
}

/// A scheduler that keeps order may not lose more than a twentieth of the goodput by it: a single path never reorders.
const GOODPUT_KEPT: f64 = 0.95;
/// Pairs that a verdict takes where a network is random.
const PAIRS: usize = 10;

/// Runs every network of [`NETWORKS`] and those around it, each scheduler once.
///
/// # Errors
/// A scenario, a scheduler or a metric is not known, or a run failed.
pub fn measure(driver: &dyn Driver, pool: &dyn Pool) -> Result<Vec<Measured>, String> {
    let mut measured: Vec<Option<Measured>> = vec![None; PURPOSES.len()];
    for network in NETWORKS {
        let here = |(_, purpose): &(usize, &Purpose)| purpose.network == network.name;
        let places: Vec<(usize, &'static Purpose)> = PURPOSES.iter().enumerate().filter(here).collect();
        let purposes: Vec<&Purpose> = places.iter().map(|(_, purpose)| *purpose).collect();
        let runs = |overrides: &[Override]| Runs::of(network, overrides, &purposes, driver, pool);
        let whole = runs(&[])?;
        for (place, purpose) in &places {
            measured[*place] = Some(whole.measure(purpose)?);
        }
        let fewer = Override::new("around", "repeat", PAIRS.to_string());
        for other in network.around {
            let other = runs(&[Override::parse("around", other), fewer.clone()])?;
            for (place, purpose) in &places {
                let shown = other.measure(purpose)?.verdict == Verdict::Shown;
                measured[*place].iter_mut().for_each(|of| of.around += usize::from(shown));
            }
        }
    }
    let at = |(place, of): (usize, Option<Measured>)| of.ok_or(format!("{}: no such network", PURPOSES[place].network));
    measured.into_iter().enumerate().map(at).collect()
}

/// The runs of one network.
struct Runs {
    runs: Vec<RunRecord>,
    /// A scheduler as the table names it, as the results do.
    labels: Vec<(&'static str, String)>,
    random: bool,
}

impl Runs {
    fn of(
        network: &Network,
        overrides: &[Override],
        purposes: &[&Purpose],
        driver: &dyn Driver,
        pool: &dyn Pool,
    ) -> Result<Self, String> {
        let mut names: Vec<&'static str> = purposes.iter().flat_map(|p| [p.against, p.scheduler]).collect();
        names.sort_unstable();
        names.dedup();
        let schedulers = names.iter().map(|name| scheduler(name)).collect::<Result<Vec<_>, _>>()?;
        let labels = names.into_iter().zip(schedulers.iter().map(PlugIn::with_parameters)).collect();
        let variant = Variant { cell: Vec::new(), scenario: Arc::new(scenario(network, overrides)?) };
        let options =
            Options { schedulers, baselines: false, causes: false, repeat: Repeat::AsWritten, ..Options::default() };
        let plan = Plan::new(&[variant], &options);
        let random = plan.randomness().any(|random| random);
        let results = Runner { driver, pool, observer: &() }.run(&plan);
        let runs = results.map_err(|failure| format!("{}: {failure}", network.name))?.runs.to_vec();
        Ok(Self { runs, labels, random })
    }

    /// One value per seed.
    fn values(&self, scheduler: &str, metric: &str) -> Result<Vec<f64>, String> {
        let label = self.labels.iter().find(|(name, _)| *name == scheduler).map(|(_, label)| label.as_str());
        let runs = self.runs.iter().filter(|run| Some(run.scheduler.as_str()) == label);
        let value = |run: &RunRecord| run.values().find(|(name, _)| name == metric).map(|(_, value)| value);
        let missing = || format!("{scheduler}: a run without {metric}");
        runs.map(|run| value(run).filter(|_| run.finished).ok_or_else(missing)).collect()
    }

    fn measure(&self, purpose: &'static Purpose) -> Result<Measured, String> {
        let of =
            |metric| Ok::<_, String>((self.values(purpose.scheduler, metric)?, self.values(purpose.against, metric)?));
        let (ours, theirs) = of(purpose.metric)?;
        let pairs: Vec<(f64, f64)> = ours.iter().copied().zip(theirs.iter().copied()).collect();
        let nothing = || format!("{}: no runs", purpose.scheduler);
        let difference = Paired::of(&pairs).ok_or_else(nothing)?;
        let means = |(ours, theirs): &(Vec<f64>, Vec<f64>)| Some((mean(ours)?, mean(theirs)?));
        let (goodput, other) = means(&of(names::GOODPUT)?).ok_or_else(nothing)?;
        let (ours, theirs) = means(&(ours, theirs)).ok_or_else(nothing)?;
        let verdict = judge(purpose, &difference, goodput / other, self.random);
        Ok(Measured { purpose, theirs, ours, difference, verdict, around: 0 })
    }
}

fn judge(purpose: &Purpose, difference: &Paired, goodput_ratio: f64, random: bool) -> Verdict {
    let right = match purpose.wants {
        Wants::More => difference.mean_diff > 0.0,
        Wants::Less => difference.mean_diff < 0.0,
    };
    let enough = !random || difference.n >= PAIRS;
    let kept = !purpose.metric.starts_with("rbd_") || goodput_ratio >= GOODPUT_KEPT;
    if right && enough && difference.is_significant() && kept { Verdict::Shown } else { Verdict::NotShown }
}

fn scheduler(name: &str) -> Result<PlugIn, String> {
    anabranch_scenario::scheduler("the table of purposes", name).map_err(|wrong| format!("{name}: {wrong:?}"))
}

fn scenario(network: &Network, overrides: &[Override]) -> Result<Scenario, String> {
    let source = Source { name: network.name.into(), text: network.text.into() };
    let document = anabranch_scenario::read(&source, overrides, &NoFiles);
    Ok(document.map_err(|wrong| format!("{}: {wrong:?}", network.name))?.scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: Purpose = Purpose { metric: "rbd_mean_packets", wants: Wants::Less, ..PURPOSES[0] };
    const SPEED: Purpose = Purpose { metric: names::GOODPUT, wants: Wants::More, ..PURPOSES[0] };

    fn less(by: f64, n: usize, p: Option<f64>) -> Paired {
        Paired { n, mean_diff: -by, ci95: None, p }
    }

    #[test]
    fn a_verdict_takes_the_direction_a_p_value_and_ten_pairs() {
        let judge = |difference, random| judge(&ORDER, &difference, 1.0, random);
        assert_eq!(judge(less(1.0, 10, Some(0.04)), true), Verdict::Shown);
        for wrong in [less(-1.0, 10, Some(0.04)), less(1.0, 10, Some(0.06)), less(1.0, 9, Some(0.04))] {
            assert_eq!(judge(wrong, true), Verdict::NotShown);
        }
    }

    #[test]
    fn without_randomness_one_run_says_all() {
        assert_eq!(judge(&ORDER, &less(1.0, 1, None), 1.0, false), Verdict::Shown);
        assert_eq!(judge(&ORDER, &less(0.0, 1, None), 1.0, false), Verdict::NotShown);
        assert_eq!(judge(&ORDER, &less(1.0, 1, None), 1.0, true), Verdict::NotShown);
    }

    #[test]
    fn order_that_costs_goodput_does_not_count() {
        let of = |purpose, difference| judge(purpose, &difference, 0.94, true);
        assert_eq!(of(&ORDER, less(1.0, 10, Some(0.01))), Verdict::NotShown);
        assert_eq!(of(&SPEED, less(-1.0, 10, Some(0.01))), Verdict::Shown);
    }
}
