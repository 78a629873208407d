//! The driver for real time.

use crate::exchange::{Ended, Exchange, Outside};
use crate::kernel::{Addresses, Application, Counters, KernelHost, KernelSettings, Line, Protocol};
use crate::{Clock, LabError};
use anabranch_metrics::Meter;
use anabranch_run::layout::{Layout, host, outcome};
use anabranch_run::{Driver, Emulation, Job, Live, RunError, RunOutcome};
use anabranch_scenario::Host;
use anabranch_sim::{Checks, PORT, World};
use anabranch_trace::{Digest, Recorder, Tee};
use anabranch_units::{Instant, Side};
use std::net::SocketAddr;

/// Runs jobs by the clock, one at a time: the machine cannot be shared.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealTime;

impl Driver for RealTime {
    fn run(&self, job: &Job, mut listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let plan = Layout::of(job)?;
        let world = World::new(plan.world(job, Checks::default()), plan.flows(job)?);
        let scenario = &*job.scenario;
        let until = scenario.duration.map_or(Instant::MAX, |d| Instant::ZERO + scenario.warmup + d);
        let mut recorder = Tee(Tee(Meter::new(plan.meter(job)), Digest::new()), &mut listener);
        let fault = |error: LabError| RunError::Fault { what: error.to_string() };
        let outside = outside(job, &plan).map_err(fault)?;
        let mut exchange = Exchange::new(world, outside);
        start(&mut exchange, job, &plan).map_err(fault)?;
        let ended = exchange.run(until, &mut recorder).map_err(fault)?;
        let now = match ended {
            Ended::Done => exchange.world.now(),
            Ended::Time => until,
        };
        let live = live(&exchange).map_err(fault)?;
        let Tee(Tee(meter, digest), _) = recorder;
        let mut metrics = meter.finish(now);
        plan.judge(job, &mut metrics);
        Ok(RunOutcome { live: Some(live), ..outcome(metrics, digest.finish(), exchange.world.events()) })
    }
}

pub(crate) fn addresses(job: &Job) -> Addresses {
    Addresses { v6: job.scenario.hosts.ip == 6, paths: job.scenario.topology.paths.len() }
}

fn settings(job: &Job, plan: &Layout) -> KernelSettings {
    let mut settings = job.scenario.settings.clone();
    settings.mptcp = plan.multipath;
    KernelSettings::new(&settings, &job.congestion.name)
}

/// The hosts that are kernels.
pub(crate) fn outside(job: &Job, plan: &Layout) -> Result<Vec<Outside>, LabError> {
    let sides = [Side::Client, Side::Server].into_iter().filter(|side| host(job, *side) == Host::Linux);
    sides
        .map(|side| {
            let backup = &job.scenario.backup;
            let host = KernelHost::new(side, addresses(job), &plan.over, backup, &settings(job, plan))?;
            Ok(Outside::new(side, host))
        })
        .collect()
}

/// Starts the applications on kernels, servers first, and then the clock.
fn start(exchange: &mut Exchange, job: &Job, plan: &Layout) -> Result<(), LabError> {
    exchange.clock = Clock::start();
    exchange.outside.sort_by_key(|outside| outside.side == Side::Client);
    for outside in &mut exchange.outside {
        let line = Line {
            side: outside.side,
            server: SocketAddr::new(addresses(job).server(), PORT),
            protocol: if plan.multipath { Protocol::Mptcp } else { Protocol::Tcp },
            congestion: job.congestion.name.clone(),
            clock: exchange.clock,
            start: plan.start(),
            at_once: 1,
        };
        let application = Application::start(&outside.host.namespace, line, vec![plan.workload(outside.side)])?;
        outside.applications.push(application);
    }
    Ok(())
}

/// What only a run in real time has to tell.
pub(crate) fn live(exchange: &Exchange) -> Result<Live, LabError> {
    let report = exchange.lateness.report();
    let mut live = Live {
        emulation: Emulation {
            packets: report.packets,
            late_median_s: report.median.as_secs_f64(),
            late_p99_s: report.p99.as_secs_f64(),
            late_max_s: report.max.as_secs_f64(),
            late_burst_packets: report.burst,
            device_drops: 0,
            accurate: report.is_accurate(),
        },
        ..Live::default()
    };
    for outside in &exchange.outside {
        let name = match outside.side {
            Side::Client => "client",
            Side::Server => "server",
        };
        let counted: Counters = outside.host.counted()?;
        live.counters.insert(name.into(), counted);
        live.settings.insert(name.into(), outside.host.settings.sysctls.iter().cloned().collect());
        live.emulation.device_drops += outside.host.device_drops()?;
    }
    live.emulation.accurate &= live.emulation.device_drops == 0;
    Ok(live)
}
