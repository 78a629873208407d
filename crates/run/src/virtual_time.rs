//! The driver for virtual time: both hosts are engines, the network is modelled, no clock is read.

use crate::driver::Driver;
use crate::job::{Job, RunError, RunOutcome};
use crate::layout::{Layout, outcome, unsupported};
use anabranch_metrics::{Meter, RunMetrics};
use anabranch_scenario::Host;
use anabranch_sim::{Checks, FlowSetup, Stuck, World};
use anabranch_trace::{Digest, Recorder, Tee};
use anabranch_units::Instant;
use std::sync::atomic::AtomicBool;

/// Runs jobs in virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualTime {
    /// Extra checks.
    pub checks: Checks,
    /// Set from outside, it interrupts a run in the middle.
    pub stop: Option<&'static AtomicBool>,
}

impl Driver for VirtualTime {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        self.run_with(job, listener, |_| {})
    }
}

impl VirtualTime {
    /// As [`Driver::run`], for plug-ins that are in no registry: `equip` may replace the schedulers and congestion controls of
    /// the flows, the first of which has the connections under test.
    ///
    /// # Errors
    /// As [`Driver::run`].
    pub fn run_with(
        &self,
        job: &Job,
        listener: &mut dyn Recorder,
        equip: impl FnOnce(&mut [FlowSetup]),
    ) -> Result<RunOutcome, RunError> {
        let scenario = &*job.scenario;
        if scenario.hosts.sender == Host::Linux || scenario.hosts.receiver == Host::Linux {
            return Err(unsupported("a Linux host in virtual time"));
        }
        let plan = Layout::of(job)?;
        // The recorder is a type for each kind of run: without a listener there is none.
        let listener = Some(listener).filter(|listener| listener.is_listening());
        // Curves are drawn from events, not from packets.
        let captured = listener.is_some();
        match (plan.curves(job), listener) {
            (None, None) => Ok(self.measure(job, &plan, (), captured, equip)?.0),
            (None, Some(listener)) => Ok(self.measure(job, &plan, listener, captured, equip)?.0),
            (Some(mut drawn), listener) => {
                let (mut outcome, metrics) = self.measure(job, &plan, Tee(&mut drawn, listener), captured, equip)?;
                outcome.curves = drawn.finish(&metrics);
                Ok(outcome)
            }
        }
    }

    fn measure(
        &self,
        job: &Job,
        plan: &Layout,
        listener: impl Recorder,
        captured: bool,
        equip: impl FnOnce(&mut [FlowSetup]),
    ) -> Result<(RunOutcome, RunMetrics), RunError> {
        let scenario = &*job.scenario;
        let mut flows = plan.flows(job)?;
        flows.iter_mut().for_each(|flow| flow.captured &= captured);
        equip(&mut flows);
        let mut world = World::new(plan.world(job, self.checks)?, flows);
        let mut recorder = Tee(Tee(Meter::new(plan.meter(job)), Digest::new()), listener);
        let until = scenario.duration.map_or(Instant::MAX, |d| Instant::ZERO + scenario.warmup + d);
        if let Some(stop) = self.stop {
            world.stop_when(stop);
        }
        let ended = world.run(until, &mut recorder);
        let (events, now) = (world.events(), world.now());
        let Tee(Tee(meter, digest), _) = recorder;
        ended.map_err(|stuck| why(&scenario.name, now, stuck))?;
        let mut metrics = meter.finish(now);
        plan.judge(job, &mut metrics);
        Ok((outcome(&metrics, digest.finish(), events), metrics))
    }
}

/// The run's seed stands in its name already.
fn why(scenario: &str, now: Instant, stuck: Stuck) -> RunError {
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
