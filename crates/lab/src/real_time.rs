//! The driver for real time.

use crate::exchange::{Ended, Exchange, Outside};
use crate::kernel::{
    Addresses, Application, Changes, KernelHost, KernelSettings, Line, Protocol, Sampler, changes, facts, is_there,
};
use crate::seen::Seen;
use crate::{Clock, LabError, interrupt, readiness};
use anabranch_engine::FirstPath;
use anabranch_metrics::{Meter, RunMetrics};
use anabranch_run::layout::{Layout, host, outcome};
use anabranch_run::{CONNECTION, Driver, Emulation, Job, Live, Plan, Refusal, RunError, RunOutcome, witness};
use anabranch_scenario::Host;
use anabranch_sim::{Checks, PORT, World};
use anabranch_trace::{Digest, Recorder, Tee};
use anabranch_units::{Instant, Side};
use std::net::SocketAddr;

/// Runs jobs in real time, one at a time: the machine cannot be shared.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealTime;

impl Driver for RealTime {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        readiness::prepare(plan)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let plan = Layout::of_one(job)?;
        let mut flows = plan.flows(job)?;
        witness(&mut flows, job.scenario.topology.paths.len(), &*listener);
        let mut world = World::new(plan.world(job, Checks::default())?, flows);
        world.stop_when(interrupt::flag());
        run(job, &plan, world, listener).map_err(|error| match error {
            // A signal also ends the programs that this process started.
            _ if interrupt::is_asked() => RunError::Interrupted,
            error => RunError::Fault { what: format!("scenario `{}`: {error}", job.scenario.name) },
        })
    }
}

fn run(job: &Job, plan: &Layout, world: World, listener: &mut dyn Recorder) -> Result<RunOutcome, LabError> {
    let scenario = &*job.scenario;
    let until = scenario.duration.map_or(Instant::MAX, |d| Instant::ZERO + scenario.warmup + d);
    let mut outside = outside(job, plan)?;
    let sides: Vec<Side> = outside.iter().map(|outside| outside.side).collect();
    let recorder = Tee(Tee(Tee(Meter::new(plan.meter(job)), Digest::new()), plan.curves(job)), listener);
    let (mut recorder, mut known) = Seen::new(sides.iter().copied(), Layout::number, recorder);
    for outside in &mut outside {
        let place = known.iter().position(|(side, _)| *side == outside.side);
        outside.known = place.map(|place| known.swap_remove(place).1);
    }
    let mut exchange = Exchange::new(world, outside);
    start(&mut exchange, job, plan)?;
    let now = match exchange.run(until, &mut recorder)? {
        Ended::Done => exchange.world.now(),
        Ended::Time => until,
    };
    let live = live(&exchange, job)?;
    let Tee(Tee(Tee(meter, digest), drawn), _) = recorder.into_inner();
    let mut metrics = meter.finish(now);
    plan.judge(job, &mut metrics);
    let ways = job.scenario.direction().ways();
    leave_out(ways.iter().any(|way| sides.contains(&way.sender())), &mut metrics);
    let curves = drawn.map(|drawn| drawn.finish(&metrics)).unwrap_or_default();
    Ok(RunOutcome { curves, live: Some(live), ..outcome(&metrics, digest.finish(), exchange.world.events()) })
}

/// Metrics that neither a kernel's packets nor its `tcp_info` show would read as zero.
fn leave_out(kernel_sends: bool, metrics: &mut RunMetrics) {
    if kernel_sends {
        metrics.values.retain(|(name, _)| !["idle_restarts", "window_blocked_s"].contains(name));
    }
}

pub(crate) fn addresses(job: &Job) -> Addresses {
    Addresses { v6: (0..job.scenario.topology.paths.len()).map(|path| job.scenario.ip_of(path) == 6).collect() }
}

fn settings(job: &Job, plan: &Layout, side: Side) -> KernelSettings {
    let mut settings = job.scenario.settings.clone();
    settings.mptcp = plan.multipath;
    if side == Side::Server || plan.over.len() == 1 {
        // The client decides on which path a connection opens.
        settings.first_path = FirstPath::First;
    }
    let mtus = (0..job.scenario.topology.paths.len()).map(|path| job.scenario.interface_mtu_at(path, Instant::ZERO));
    KernelSettings { mtus: mtus.collect(), ..KernelSettings::new(&settings, &readiness::congestion(job)) }
}

/// The hosts that are kernels.
pub(crate) fn outside(job: &Job, plan: &Layout) -> Result<Vec<Outside>, LabError> {
    let sides = [Side::Client, Side::Server].into_iter().filter(|side| host(job, *side) == Host::Linux);
    sides
        .map(|side| {
            let backup: Vec<bool> = job.scenario.paths.iter().map(|path| path.backup).collect();
            let first = plan.opens_over(job);
            let mut over = plan.over.clone();
            if side == Side::Client {
                over.retain(|path| is_there(job, plan, *path));
            }
            over.sort_by_key(|path| *path != first);
            let host = KernelHost::new(side, addresses(job), &over, &backup, &settings(job, plan, side))?;
            Ok(Outside::new(side, host))
        })
        .collect()
}

/// Starts the applications on kernels, servers first, and then the clock.
fn start(exchange: &mut Exchange, job: &Job, plan: &Layout) -> Result<(), LabError> {
    exchange.clock = Clock::start();
    exchange.outside.sort_by_key(|outside| outside.side == Side::Client);
    let (addresses, first) = (addresses(job), plan.opens_over(job));
    for outside in &mut exchange.outside {
        let line = Line {
            side: outside.side,
            server: SocketAddr::new(addresses.server(first), PORT),
            mixed: plan.multipath && addresses.mixed(),
            protocol: if plan.multipath { Protocol::Mptcp } else { Protocol::Tcp },
            congestion: outside.host.settings.congestion.clone(),
            no_delay: !job.scenario.settings.tcp.nagle,
            clock: exchange.clock,
            start: plan.opens_at(job),
            opening: plan.opening().clone(),
            from: addresses.client(first),
        };
        outside.changes = host_changes(outside, job, plan, exchange.clock)?;
        let namespace = &outside.host.namespace;
        outside.sampler = Some(Sampler::start(namespace, exchange.clock)?);
        outside.applications.push(Application::start(namespace, line, plan.workloads(outside.side))?);
    }
    Ok(())
}

/// Changes on a host from now on: on a client those of its paths. A server's address is reached over all of them.
pub(crate) fn host_changes(
    outside: &Outside,
    job: &Job,
    plan: &Layout,
    clock: Clock,
) -> Result<Option<Changes>, LabError> {
    let changes = if outside.side == Side::Client { changes(job, plan) } else { Vec::new() };
    let first = plan.opens_over(job);
    (!changes.is_empty()).then(|| Changes::start(&outside.host, first, &changes, clock)).transpose()
}

/// The results that only a run in real time has.
pub(crate) fn live(exchange: &Exchange, job: &Job) -> Result<Live, LabError> {
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
        kernel: (!exchange.outside.is_empty()).then(facts::release),
        ..Live::default()
    };
    let paths = &job.scenario.topology.paths;
    for Outside { side, host, subflows, .. } in &exchange.outside {
        let name = match side {
            Side::Client => "client",
            Side::Server => "server",
        };
        live.counters.insert(name.into(), host.counted()?);
        live.settings.insert(name.into(), host.listed()?.into_iter().collect());
        // The first connection's; totals over all connections are in the metrics.
        let first = subflows.last.iter().filter(|((connection, _), _)| *connection == CONNECTION);
        let named = first.map(|((_, path), info)| (paths[*path].name.clone(), info.clone()));
        live.tcp_info.insert(name.into(), named.collect());
        live.emulation.device_drops += host.device_drops()?;
        for what in &host.settings.not_applied {
            if !live.not_applied.contains(what) {
                live.not_applied.push(what.clone());
            }
        }
    }
    live.emulation.accurate &= live.emulation.device_drops == 0;
    Ok(live)
}
