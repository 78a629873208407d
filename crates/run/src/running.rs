//! A run in virtual time that its caller advances, part by part.

use crate::job::{Job, RunError, RunOutcome};
use crate::layout::{Layout, measured, outcome};
use crate::links;
use crate::meters::Meters;
use anabranch_metrics::{Meter, RunMetrics};
use anabranch_sim::{Halt, Stuck, World};
use anabranch_trace::{Digest, Recorder, Tee};
use anabranch_units::Instant;

/// A run that has begun. Its outcome does not depend on the parts in which it is advanced.
#[derive(Debug)]
pub struct Running<R> {
    job: Job,
    plan: Layout,
    world: World,
    recorder: Tee<Tee<Tee<Meter, Digest>, Option<Meters>>, R>,
    until: Instant,
}

impl<R: Recorder> Running<R> {
    pub(crate) fn new(job: &Job, plan: Layout, mut world: World, listener: R) -> Self {
        let scenario = &*job.scenario;
        let meter = Meter::new(plan.meter(job));
        meter.marks().for_each(|at| world.mark(at));
        let meters = Some(Meters::new(plan.meters(job))).filter(|_| plan.applications().len() > 1);
        meters.iter().flat_map(Meters::marks).for_each(|at| world.mark(at));
        let recorder = Tee(Tee(Tee(meter, Digest::new()), meters), listener);
        let until = scenario.duration.map_or(Instant::MAX, |d| Instant::ZERO + scenario.warmup + d);
        Self { job: job.clone(), plan, world, recorder, until }
    }

    /// The time of the newest event.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// The recorder that listens.
    pub fn listener(&mut self) -> &mut R {
        &mut self.recorder.1
    }

    /// Runs up to `to`. False: the run is over, and [`Self::finish`] has its outcome.
    ///
    /// # Errors
    /// The run cannot continue.
    pub fn advance(&mut self, to: Instant) -> Result<bool, RunError> {
        let is_last = to >= self.until || self.world.poll_timeout() == Instant::MAX;
        let halt = match is_last {
            true => self.world.run(self.until, &mut self.recorder),
            false => self.world.advance(to, &mut self.recorder),
        };
        match halt {
            Ok(halt) => Ok(!is_last && halt == Halt::Time),
            Err(stuck) => Err(why(&self.job.scenario.name, self.world.now(), stuck)),
        }
    }

    /// The outcome without curves, its metrics, and the recorder that listened.
    pub fn finish(self) -> (RunOutcome, RunMetrics, R) {
        let (events, now) = (self.world.events(), self.world.now());
        let Tee(Tee(Tee(meter, digest), meters), listener) = self.recorder;
        let mut metrics = meter.finish(now);
        self.plan.judge(&self.job, &mut metrics);
        let measured = Some(measured(&metrics));
        let mut outcome = RunOutcome { measured, ..outcome(&metrics, digest.finish(), events) };
        let each = self.plan.applications().iter().zip(meters.into_iter().flat_map(|all| all.finish(now)));
        // One that starts later measures nothing.
        for (application, own) in each.filter(|(application, _)| application.start() < self.until) {
            outcome.finished &= own.finished;
            outcome.metrics.extend(&application.name, &own.values);
        }
        links::add(&mut outcome, &self.world, self.plan.network(), 0..self.job.scenario.topology.links.len());
        (outcome, metrics, listener)
    }
}

/// The run's seed stands in its name already.
pub(crate) fn why(scenario: &str, now: Instant, stuck: Stuck) -> RunError {
    match stuck {
        Stuck::Asked => RunError::Interrupted,
        stuck => RunError::Fault { what: format!("scenario `{scenario}` at {now}: {stuck}") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Side;

    #[test]
    fn a_world_that_stands_still_is_told_with_scenario_time_and_host() {
        let still = Stuck::Still { flow: 0, side: Side::Server, rounds: 9, packets: 3 };
        let text = why("both out", Instant::from_millis(5020), still).to_string();
        let parts =
            ["the run failed", "`both out`", "at 5.020000000 s", "the server of flow 0", "9 timer rounds", "defect"];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert_eq!(why("both out", Instant::ZERO, Stuck::Asked), RunError::Interrupted);
    }
}
