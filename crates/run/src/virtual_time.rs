//! The driver for virtual time: both hosts are engines, the network is modelled, no clock is read.

use crate::driver::Driver;
use crate::groups;
use crate::job::{Job, RunError, RunOutcome};
use crate::layout::{Layout, unsupported};
use crate::running::Running;
use crate::witness::witness;
use anabranch_metrics::RunMetrics;
use anabranch_scenario::Host;
use anabranch_sim::{Checks, FlowSetup, World};
use anabranch_trace::{Recorder, Tee};
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
    /// the flows under test, one per application; of groups, that of the first pair.
    ///
    /// # Errors
    /// As [`Driver::run`].
    pub fn run_with(
        &self,
        job: &Job,
        listener: &mut dyn Recorder,
        equip: impl FnOnce(&mut [FlowSetup]),
    ) -> Result<RunOutcome, RunError> {
        // The recorder is a type for each kind of run: without a listener there is none.
        let listener = Some(listener).filter(|listener| listener.is_listening());
        if !job.scenario.groups.is_empty() {
            return groups::run(job, (self.checks, self.stop), listener, equip);
        }
        let plan = Layout::of(job)?;
        // Curves are drawn from events, not from packets.
        let captured = listener.is_some();
        match (plan.curves(job), listener) {
            (None, None) => Ok(self.measure(job, plan, (), captured, equip)?.0),
            (None, Some(listener)) => Ok(self.measure(job, plan, listener, captured, equip)?.0),
            (Some(mut drawn), listener) => {
                let (mut outcome, metrics) = self.measure(job, plan, Tee(&mut drawn, listener), captured, equip)?;
                outcome.curves = drawn.finish(&metrics);
                Ok(outcome)
            }
        }
    }

    /// As [`Self::run_with`], for a caller that advances the run itself. The job's curves are not drawn.
    ///
    /// # Errors
    /// As [`Driver::run`], for what is known before the run.
    pub fn begin<R: Recorder>(
        &self,
        job: &Job,
        listener: R,
        equip: impl FnOnce(&mut [FlowSetup]),
    ) -> Result<Running<R>, RunError> {
        let (plan, captured) = (Layout::of(job)?, listener.is_listening());
        self.set_up(job, plan, listener, captured, equip)
    }

    fn set_up<R: Recorder>(
        &self,
        job: &Job,
        plan: Layout,
        listener: R,
        captured: bool,
        equip: impl FnOnce(&mut [FlowSetup]),
    ) -> Result<Running<R>, RunError> {
        let hosts = &job.scenario.hosts;
        if hosts.sender == Host::Linux || hosts.receiver == Host::Linux {
            return Err(unsupported("a Linux host in virtual time"));
        }
        let mut flows = plan.flows(job)?;
        flows.iter_mut().for_each(|flow| flow.captured &= captured);
        let own = plan.applications().len();
        equip(&mut flows[..own]);
        witness(&mut flows, job.scenario.topology.paths.len(), &listener);
        let mut world = World::new(plan.world(job, self.checks)?, flows);
        if let Some(stop) = self.stop {
            world.stop_when(stop);
        }
        Ok(Running::new(job, plan, world, listener))
    }

    fn measure(
        &self,
        job: &Job,
        plan: Layout,
        listener: impl Recorder,
        captured: bool,
        equip: impl FnOnce(&mut [FlowSetup]),
    ) -> Result<(RunOutcome, RunMetrics), RunError> {
        let mut running = self.set_up(job, plan, listener, captured, equip)?;
        running.advance(Instant::MAX)?;
        let (outcome, metrics, _) = running.finish();
        Ok((outcome, metrics))
    }
}
