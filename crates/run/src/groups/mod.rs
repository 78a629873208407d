//! Runs of a scenario with groups: many pairs of hosts in one world, each with a meter of its own.

mod cast;
mod figures;
mod ways;

use crate::job::{Job, RunError, RunOutcome};
use crate::links;
use crate::meters::Meters;
use crate::running::why;
use crate::values::Values;
use anabranch_sim::{Checks, FlowSetup, World};
use anabranch_trace::{Digest, Recorder, Tee};
use anabranch_units::Instant;
use cast::{Cast, Equipment};
use std::sync::atomic::AtomicBool;

/// The outcome of a job whose scenario has groups. The first pair of hosts is captured for a `listener`.
pub(crate) fn run(
    job: &Job,
    (checks, stop): (Checks, Option<&'static AtomicBool>),
    listener: Option<&mut dyn Recorder>,
    equip: impl FnOnce(&mut [FlowSetup]),
) -> Result<RunOutcome, RunError> {
    let (cast, Equipment { mut flows, meters, world }) = Cast::of(job, checks)?;
    if let Some(first) = flows.first_mut() {
        first.captured = listener.is_some();
    }
    let first = flows.len().min(1);
    equip(&mut flows[..first]);
    let mut world = World::new(world, flows);
    if let Some(stop) = stop {
        world.stop_when(stop);
    }
    let meters = Meters::new(meters);
    meters.marks().into_iter().for_each(|at| world.mark(at));
    let mut recorder = Tee(Tee(meters, Digest::new()), listener);
    let scenario = &*job.scenario;
    let until = scenario.duration.map_or(Instant::MAX, |d| Instant::ZERO + scenario.warmup + d);
    world.run(until, &mut recorder).map_err(|stuck| why(&scenario.name, world.now(), stuck))?;
    let Tee(Tee(meters, digest), _) = recorder;
    let metrics = meters.finish(world.now());
    let figures = figures::of(&cast, job, &metrics);
    let mut outcome = RunOutcome {
        metrics: figures.into_iter().collect::<Values>(),
        digest: digest.finish(),
        events: world.events(),
        finished: metrics.iter().all(|pair| pair.finished),
        ..RunOutcome::default()
    };
    let shared = (0..scenario.topology.links.len()).filter(|link| !scenario.per_pair.contains(link));
    links::add(&mut outcome, &world, cast.network(), shared);
    Ok(outcome)
}
