//! How good advice is: its regret over path sets that it knows only by numbers with errors.

use super::{Question, Use, UseAdvice, draws, of_row};
use crate::frontier::with_first;
use anabranch_metrics::mean;
use anabranch_run::{Driver, Failure, Options, Plan, Pool, Runner, Variant};
use anabranch_scenario::{Document, PlugIn, Scenario};
use anabranch_units::Rng;
use std::sync::Arc;

/// Seed of the path sets, fixed before the first run.
const SEED: u64 = 20_271;
/// Real lines waver by this part from run to run.
const WAVERS: f64 = 0.02;
/// Draws by which choices are judged. Their seeds are none of the advice's.
const JUDGED_FROM: u32 = 10_000;

/// A path set: the numbers that hold, and those that were typed in.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The paths as they are.
    pub truth: Scenario,
    /// The same with errors.
    pub typed: Scenario,
}

/// The regret of one advice.
#[derive(Clone, Debug)]
pub struct Regret {
    /// The advice.
    pub advice: UseAdvice,
    /// The best of all schedulers, or the best path alone.
    pub best: String,
    /// 1 − the advised choice's result ÷ the best one's.
    pub regret: f64,
    /// 1 − the advised choice's result ÷ that of the best path alone; below zero for a gain.
    pub below_single: f64,
}

/// `count` path sets of two or three paths: rates of 1 to 40 Mbit/s, delays of 5 to 150 ms, queues of half to four bandwidth-delay
/// products, on every second path losses of 0.01 to 2 %. Typed rates, delays and queues err by up to `error`, losses by three times that.
///
/// # Panics
/// Never: every set is a scenario.
pub fn sets(count: u32, error: f64) -> Vec<Judged> {
    let set = |number: u32| {
        let mut rng = Rng::stream(SEED, &format!("set {number}"));
        let paths = 2 + u32::from(rng.chance(0.3));
        let text: String = (0..paths).map(|path| path_text(path, &mut rng)).collect();
        let text = format!(
            "name = 'set {number}'\nduration = '10s'\nseed = {}\nstart_jitter = '1s'\n{text}",
            1 + number * 100
        );
        let truth = Document::parse("set", &text).expect("a scenario").scenario;
        // Draw 1 of another seed: as good as any.
        let other = Scenario { seed: SEED + u64::from(number), ..truth.clone() };
        let typed = Scenario { seed: truth.seed, repeat: truth.repeat, ..draws::draw(&other, 1, error) };
        Judged { truth, typed }
    };
    (0..count).map(set).collect()
}

fn path_text(path: u32, rng: &mut Rng) -> String {
    let mut between = |low: f64, high: f64| low * libm::pow(high / low, rng.unit());
    let (rate, delay) = (between(1e6, 40e6), between(5.0, 150.0));
    let (queue, loss) = (between(0.5, 4.0), between(0.01, 2.0));
    let loss = if rng.chance(0.5) { loss } else { 0.0 };
    format!(
        "[[path]]\nname = 'p{path}'\nrate = '{rate:.0}bit'\ndelay = '{:.0}us'\nqueue = '{queue:.2}bdp'\nloss = '{loss:.3}%'\n",
        1e3 * delay
    )
}

impl Judged {
    /// Obtains advice on the typed numbers, and judges it on the paths as they are, over `seeds` runs of each choice.
    ///
    /// # Errors
    /// A run failed.
    pub fn regret(
        &self,
        (of, schedulers, congestion): (Use, &[PlugIn], &PlugIn),
        (error, seeds): (f64, u32),
        (driver, pool): (&dyn Driver, &dyn Pool),
    ) -> Result<Regret, Failure> {
        let (schedulers, congestion) = (schedulers.to_vec(), congestion.clone());
        let uses = vec![of];
        let question = Question { scenario: self.typed.clone(), uses, schedulers, congestion, error };
        let advice = question.answer(driver, pool, &())?.uses.remove(0);
        let place = |name: &str| self.truth.topology.paths.iter().position(|path| path.name == name).unwrap_or(0);
        let mut openings = vec![place(&advice.best_single), place(&advice.open_on)];
        openings.dedup();
        let mut results = Vec::new();
        for (n, first) in openings.into_iter().enumerate() {
            results.push((first, self.results(&question, first, n == 0, seeds, (driver, pool))?));
        }
        Ok(judged(advice, &results, place))
    }

    /// Mean speed of each scheduler, opened on path `first`, and of each path alone.
    fn results(
        &self,
        question: &Question,
        first: usize,
        baselines: bool,
        seeds: u32,
        (driver, pool): (&dyn Driver, &dyn Pool),
    ) -> Result<Vec<(String, f64)>, Failure> {
        let of = question.uses[0];
        let variant = |number: u32| {
            let drawn = draws::draw(&self.truth, number, WAVERS);
            let scenario = Arc::new(of.over(&with_first(&drawn, first)));
            Variant { cell: vec![("draw".to_owned(), number.to_string())], scenario }
        };
        let variants: Vec<Variant> = (JUDGED_FROM..JUDGED_FROM + seeds).map(variant).collect();
        let (schedulers, congestions) = (question.schedulers.clone(), vec![question.congestion.clone()]);
        let options = Options { schedulers, congestions, baselines, causes: false, ..Options::default() };
        let cells = Runner { driver, pool, observer: &() }.records(&Plan::new(&variants, &options))?;
        let names = question.schedulers.iter().map(PlugIn::with_parameters);
        let singles = self.truth.topology.paths.iter().map(|path| format!("single:{}", path.name));
        let speed = |name: String| {
            let speeds: Vec<f64> = of_row(&cells, &name).iter().map(|run| of.speed(run)).collect();
            Some((name, mean(&speeds)?))
        };
        Ok(names.chain(singles).filter_map(speed).collect())
    }
}

/// `results` has the means by the path on which connections open; the paths alone stand in the first.
fn judged(advice: UseAdvice, results: &[(usize, Vec<(String, f64)>)], place: impl Fn(&str) -> usize) -> Regret {
    let all = || results.iter().flat_map(|(_, rows)| rows);
    let most = |of: &dyn Fn(&str) -> bool| {
        let own = all().filter(|(name, _)| of(name));
        own.fold(
            (String::new(), 0.0),
            |best, (name, speed)| if *speed > best.1 { (name.clone(), *speed) } else { best },
        )
    };
    let (best, highest) = most(&|_| true);
    let single = most(&|name| name.starts_with("single:")).1;
    let (name, first) = match advice.bond {
        true => (advice.scheduler.clone(), place(&advice.open_on)),
        false => (format!("single:{}", advice.best_single), results[0].0),
    };
    let here = results.iter().find(|(at, _)| *at == first).and_then(|(_, rows)| rows.iter().find(|(n, _)| *n == name));
    let own = here.map_or(0.0, |(_, speed)| *speed);
    let behind = |other: f64| if other > 0.0 { 1.0 - own / other } else { 0.0 };
    Regret { regret: behind(highest), below_single: behind(single), best, advice }
}
