//! Advice for someone's own links: whether to use them together, by which scheduler, and on which one to open.

mod draws;
pub mod judge;
mod race;
mod uses;
mod words;

pub use uses::Use;

use crate::frontier::{MARGIN, with_first};
use anabranch_metrics::{mean, names};
use anabranch_run::{
    CellRecords, Driver, Failure, Labelled, Observer, Options, Plan, Pool, RunRecord, Runner, Variant,
};
use anabranch_scenario::{PlugIn, Scenario};
use anabranch_trace::Recorder;
use race::{DRAWS, Lead, ROUNDS, Racer, SAME, race};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// Schedulers that are preferred among equals: what Linux has, and the one whose behaviour is best known.
pub const PREFERRED: [&str; 2] = ["linux-default", "minrtt"];

/// Links and what they are for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The links; traffic and duration do not count. At least two paths.
    pub scenario: Scenario,
    /// Each gets advice of its own.
    pub uses: Vec<Use>,
    /// Those that race, at least one.
    pub schedulers: Vec<PlugIn>,
    /// Congestion control of all of them.
    pub congestion: PlugIn,
    /// Part of the input by which rates, delays and queues may differ from it: 0 to below 1.
    pub error: f64,
}

/// Advice on all uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// Version of the program that gave it.
    pub anabranch: String,
    /// Title of the links' scenario.
    pub links: String,
    /// Congestion control.
    pub congestion: String,
    /// Error of the input, see [`Question::error`].
    pub error: f64,
    /// Draws around the input, the input itself among them.
    pub draws: u32,
    /// One entry per use.
    pub uses: Vec<UseAdvice>,
}

/// Advice on one use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UseAdvice {
    /// The use.
    #[serde(rename = "for")]
    pub of: Use,
    /// The line that does best alone.
    pub best_single: String,
    /// Use all lines together.
    pub bond: bool,
    /// The scheduler to use; the best one if lines are not to be used together.
    pub scheduler: String,
    /// The line on which connections open.
    pub open_on: String,
    /// Opening on another line than the best single one is better, and the draws show it.
    pub open_matters: bool,
    /// Result ÷ that of the best single line − 1: mean over the draws.
    pub gain: f64,
    /// 95 % interval of `gain`.
    pub gain_ci95: (f64, f64),
    /// Draws in which it beats the best single line.
    pub wins: u32,
    /// Schedulers that do the same as `scheduler`, the best first.
    pub same: Vec<String>,
    /// The best of the others that stayed to the end, and its gain.
    pub runner_up: Option<(String, f64)>,
    /// The last one in the race, and its gain in the draws that it ran.
    pub worst: Option<(String, f64)>,
    /// Result ÷ the best possible over all lines; absent where there is no such bound.
    pub oracle_ratio: Option<f64>,
    /// Each line's part of the data.
    pub shares: Vec<(String, f64)>,
    /// Late frames per minute with `scheduler`, and over the best single line; of calls.
    pub late_per_minute: Option<(f64, f64)>,
    /// Price of a run with `scheduler`, and over the best single line; absent where nothing costs anything.
    pub price: Option<(f64, f64)>,
}

impl Question {
    /// Asks everything.
    ///
    /// # Errors
    /// A run failed or was interrupted.
    pub fn answer(&self, driver: &dyn Driver, pool: &dyn Pool, observer: &dyn Observer) -> Result<Advice, Failure> {
        let mut uses = Vec::new();
        for (place, of) in self.uses.iter().enumerate() {
            let asked = Asked { question: self, of: *of, driver, pool, observer, place, done: 0, single: 0 };
            uses.push(asked.answer()?);
        }
        Ok(Advice {
            anabranch: env!("CARGO_PKG_VERSION").to_owned(),
            links: self.scenario.name.clone(),
            congestion: self.congestion.name.clone(),
            error: self.error,
            draws: DRAWS,
            uses,
        })
    }

    /// Runs for one use, at most.
    fn most_runs(&self) -> usize {
        let (mut runs, mut before, mut field) = (0, 0, self.schedulers.len());
        for (until, most) in ROUNDS {
            runs += (until - before) as usize * field;
            (before, field) = (until, field.min(most));
        }
        let paths = self.scenario.topology.paths.len();
        runs + before as usize * (2 * paths - 1)
    }

    /// The drawn scenarios `draws` with `of`, opened on path `first`; each is a cell.
    fn variants(&self, of: Use, draws: Range<u32>, first: usize) -> Vec<Variant> {
        let variant = |number| {
            let drawn = draws::draw(&self.scenario, number, self.error);
            let scenario = Arc::new(of.over(&with_first(&drawn, first)));
            Variant { cell: vec![("draw".to_owned(), number.to_string())], scenario }
        };
        draws.map(variant).collect()
    }

    fn plan(&self, variants: &[Variant], schedulers: Vec<PlugIn>, baselines: bool) -> Plan {
        let congestions = vec![self.congestion.clone()];
        Plan::new(variants, &Options { schedulers, congestions, baselines, causes: false, ..Options::default() })
    }
}

/// One use, while it is asked.
struct Asked<'a> {
    question: &'a Question,
    of: Use,
    driver: &'a dyn Driver,
    pool: &'a dyn Pool,
    observer: &'a dyn Observer,
    /// Uses that were asked before.
    place: usize,
    /// Runs of this use so far.
    done: usize,
    /// The path that does best alone.
    single: usize,
}

/// Runs in the order of the draws.
type Runs = Vec<RunRecord>;

/// The path that opens the connection: its number, the values and runs with it, and whether it matters.
struct Opened {
    path: usize,
    values: Vec<f64>,
    runs: Runs,
    matters: bool,
}

impl Asked<'_> {
    fn answer(mut self) -> Result<UseAdvice, Failure> {
        let draws = 0..DRAWS;
        let singles = self.singles(draws.clone())?;
        let means = singles.iter().map(|runs| mean(&self.speeds(runs)).unwrap_or(0.0));
        self.single = means.enumerate().fold((0, -1.0), |best, (n, v)| if v > best.1 { (n, v) } else { best }).0;
        let bars = self.speeds(&singles[self.single]);
        let (racers, runs) = self.race(&bars)?;
        let mut order: Vec<&Racer> = racers.iter().filter(|racer| racer.runs).collect();
        order.sort_by(|a, b| b.mean().total_cmp(&a.mean()));
        let chosen = self.choose(&order);
        let runs = runs[chosen.number].clone();
        let own = Opened { path: self.single, values: chosen.values.clone(), runs, matters: false };
        let Opened { path, values, runs, matters } = self.open(chosen.number, own, &bars)?;
        Ok(self.advice(&racers, &order, chosen, (path, matters), &values, (&runs, &singles[self.single])))
    }

    /// The first of those that do the same as the best: a preferred one, if there is one.
    fn choose<'r>(&self, order: &[&'r Racer]) -> &'r Racer {
        let best = order[0];
        let is_preferred = |name: &str| {
            let same = |racer: &&&Racer| Lead::of(&racer.values, &best.values).mean >= -SAME;
            let named = |racer: &&&Racer| self.question.schedulers[racer.number].name == name;
            order.iter().filter(same).find(named).copied()
        };
        PREFERRED.iter().find_map(|name| is_preferred(name)).unwrap_or(best)
    }

    fn singles(&mut self, draws: Range<u32>) -> Result<Vec<Runs>, Failure> {
        let variants = self.question.variants(self.of, draws, 0);
        let plan = self.question.plan(&variants, self.question.schedulers[..1].to_vec(), true).baselines();
        let cells = self.run(&plan)?;
        let names = self.question.scenario.topology.paths.iter().map(|path| format!("single:{}", path.name));
        Ok(names.map(|name| of_row(&cells, &name)).collect())
    }

    /// All schedulers, and the runs of each.
    fn race(&mut self, bars: &[f64]) -> Result<(Vec<Racer>, Vec<Runs>), Failure> {
        let schedulers = &self.question.schedulers;
        let preferred = |plug_in: &PlugIn| PREFERRED.contains(&plug_in.with_parameters().as_str());
        let mut racers: Vec<Racer> =
            schedulers.iter().enumerate().map(|(n, plug_in)| Racer::new(n, preferred(plug_in))).collect();
        let mut runs: Vec<Runs> = vec![Vec::new(); schedulers.len()];
        race(&mut racers, |numbers, draws| {
            let asked: Vec<PlugIn> = numbers.iter().map(|n| schedulers[*n].clone()).collect();
            let cells = self.run(&self.question.plan(
                &self.question.variants(self.of, draws.clone(), self.single),
                asked,
                false,
            ))?;
            let of = |number: &usize| {
                let own = of_row(&cells, &schedulers[*number].with_parameters());
                let values = self.relative(&own, &bars[draws.start as usize..]);
                runs[*number].extend(own);
                values
            };
            Ok(numbers.iter().map(of).collect())
        })?;
        Ok((racers, runs))
    }

    /// Opens the connections of a scheduler on each other path; `own` is the outcome over the best single one.
    fn open(&mut self, number: usize, own: Opened, bars: &[f64]) -> Result<Opened, Failure> {
        let paths = self.question.scenario.topology.paths.len();
        let mut best = own;
        let plug_in = &self.question.schedulers[number];
        let single = self.single;
        for path in (0..paths).filter(|path| *path != single) {
            let variants = self.question.variants(self.of, 0..bars.len() as u32, path);
            let cells = self.run(&self.question.plan(&variants, vec![plug_in.clone()], false))?;
            let runs = of_row(&cells, &plug_in.with_parameters());
            let values = self.relative(&runs, bars);
            let lead = Lead::of(&values, &best.values);
            if lead.mean > SAME && lead.ends.0 > 0.0 {
                best = Opened { path, values, runs, matters: true };
            }
        }
        Ok(best)
    }

    fn advice(
        &self,
        racers: &[Racer],
        order: &[&Racer],
        chosen: &Racer,
        (opened, open_matters): (usize, bool),
        values: &[f64],
        (own, single): (&Runs, &Runs),
    ) -> UseAdvice {
        let name = |racer: &Racer| self.question.schedulers[racer.number].with_parameters();
        let path = |at: usize| self.question.scenario.topology.paths[at].name.clone();
        let gain = Lead::of(values, &vec![1.0; values.len()]);
        let is_same = |racer: &&&Racer| Lead::of(&racer.values, &chosen.values).is_same();
        let others = || order.iter().filter(|racer| racer.number != chosen.number);
        let other = |racer: &Racer| (name(racer), racer.mean() - 1.0);
        let last = racers.iter().min_by(|a, b| a.mean().total_cmp(&b.mean()));
        let metric = |runs: &Runs, metric: &str| {
            mean(&runs.iter().filter_map(|run| run.metrics.get(metric).copied()).collect::<Vec<_>>())
        };
        let share = |path: &String| {
            let of = |run: &RunRecord| run.paths.get(path)?.get(names::SHARE).copied();
            (path.clone(), mean(&own.iter().filter_map(of).collect::<Vec<_>>()).unwrap_or(0.0))
        };
        let paths: Vec<String> = (0..self.question.scenario.topology.paths.len()).map(path).collect();
        let price = metric(own, names::PRICE).zip(metric(single, names::PRICE));
        let is_call = self.of == Use::Calls;
        let late = metric(own, names::LATE_PER_MINUTE).zip(metric(single, names::LATE_PER_MINUTE));
        UseAdvice {
            of: self.of,
            best_single: paths[self.single].clone(),
            // The bytes of Multipath TCP's options are no gain that was lost; less than that gained is not worth a second line.
            bond: gain.ends.0 > 0.0 && gain.mean > SAME,
            scheduler: name(chosen),
            open_on: paths[opened].clone(),
            open_matters,
            gain: gain.mean,
            gain_ci95: gain.ends,
            wins: values.iter().filter(|value| **value > 1.0).count() as u32,
            same: others().filter(is_same).map(|racer| name(racer)).collect(),
            runner_up: others().find(|racer| !is_same(racer)).map(|racer| other(racer)),
            worst: last.filter(|last| Lead::of(&last.values, &chosen.values).mean < -MARGIN).map(other),
            // The bound is one of delays, of which a call needs no shorter ones than its deadline.
            oracle_ratio: metric(own, names::ORACLE_RATIO).filter(|_| !is_call),
            shares: paths.iter().map(share).collect(),
            late_per_minute: late.filter(|_| is_call),
            price: price.filter(|(a, b)| a.max(*b) > 0.0),
        }
    }

    fn speeds(&self, runs: &[RunRecord]) -> Vec<f64> {
        runs.iter().map(|run| self.of.speed(run)).collect()
    }

    /// Speeds against those of the best single line in the same draws. Where that does nothing, a result counts as 2, and none as 1.
    fn relative(&self, runs: &[RunRecord], bars: &[f64]) -> Vec<f64> {
        let of = |(speed, bar): (f64, &f64)| match (*bar > 0.0, speed > 0.0) {
            (true, _) => speed / bar,
            (false, true) => 2.0,
            (false, false) => 1.0,
        };
        self.speeds(runs).into_iter().zip(bars).map(of).collect()
    }

    fn run(&mut self, plan: &Plan) -> Result<Vec<CellRecords>, Failure> {
        let each = self.question.most_runs();
        let before = self.place * each + self.done;
        let part = Part { whole: self.observer, before, planned: each * self.question.uses.len() };
        self.done += plan.extent().0;
        Runner { driver: self.driver, pool: self.pool, observer: &part }.records(plan)
    }
}

/// The runs of the row of this name, one per cell.
fn of_row(cells: &[CellRecords], name: &str) -> Runs {
    let of = |cell: &CellRecords| cell.iter().flatten().find(|run| run.scheduler == name).cloned();
    cells.iter().filter_map(of).collect()
}

/// One plan among all of them.
struct Part<'a> {
    whole: &'a dyn Observer,
    before: usize,
    planned: usize,
}

impl Observer for Part<'_> {
    fn observe(&self, job: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
        self.whole.observe(job, run);
    }

    fn progress(&self, done: usize, _: usize) {
        self.whole.progress(self.before + done, self.planned);
    }
}

#[cfg(test)]
mod tests;
