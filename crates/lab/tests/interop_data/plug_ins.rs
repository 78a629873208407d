//! Every scheduler and congestion control, as sender.

use crate::common::{alone, path};
use crate::transfer::{BOTH, EXCUSED, MIB, Outcome, each, plan, sysctl, transfer};
use anabranch_engine::Scheduler;
use anabranch_network::LossSpec;
use anabranch_plugin::registry::Entry;
use anabranch_sim::{Switch, WorldChange};
use anabranch_trace::{Event, PathState, SchedulerName};
use anabranch_units::{Duration, Instant, PathId, Side};
use std::sync::Arc;

const PATIENCE: Duration = Duration::from_secs(60);

/// The kernel sends, too: once it has finished writing it accepts and makes no further subflows.
const TWO_WAYS: &[(u64, u64)] = &[(2 * MIB, 6 * MIB)];

/// The second path was used.
fn joined(outcome: &Outcome) -> bool {
    let established = Event::Path(PathState::Established);
    outcome.notes.events.iter().any(|(_, path, event)| *path == PathId(1) && *event == established)
}

/// Every scheduler of the registry, with each suffix that it takes, from the engine to the kernel over two different
/// paths.
#[test]
fn every_scheduler_sends_to_the_kernel() {
    let Some(_alone) = alone() else { return };
    let bare = anabranch_schedulers::all().iter().map(|entry| entry.name.to_owned());
    let names: Vec<String> = bare.chain(["minrtt+pr".to_owned(), "minrtt+or".to_owned()]).collect();
    assert!(names.len() > 10);
    let cases = names.into_iter().flat_map(|name| BOTH.map(|engine| (engine, name.clone())));
    each(cases, 8, |(engine, name): (Side, String)| {
        let mut plan = plan(engine, 2);
        plan.paths = vec![path("fast", 50, 5), path("slow", 10, 40)];
        plan.paths[1].down.loss = LossSpec::Bernoulli(0.005);
        plan.scheduler = name;
        // A busy machine may join when the kernel has finished writing.
        let joins = (0..3).any(|_| {
            let outcome = transfer(&plan, TWO_WAYS, 1, PATIENCE);
            outcome.assert_clean(EXCUSED);
            joined(&outcome)
        });
        assert!(joins, "{}", plan.scheduler);
    });
}

/// FDPS compares forward delays where all paths of the kernel show one clock, and nowhere else.
#[test]
fn forward_delays_are_compared_by_one_clock_of_the_kernel() {
    let Some(_alone) = alone() else { return };
    // 1: a separate offset per pair of addresses. 2: none.
    let cases = BOTH.into_iter().flat_map(|engine| [(1, false), (2, true)].map(|case| (engine, case)));
    each(cases, 4, |(engine, (stamps, measured))| {
        let mut plan = plan(engine, 2);
        plan.paths = vec![path("near", 20, 10), path("far", 20, 30)];
        plan.scheduler = "fdps".into();
        sysctl(&mut plan, "net.ipv4.tcp_timestamps", stamps);
        let outcome = transfer(&plan, TWO_WAYS, 1, PATIENCE);
        outcome.assert_clean(EXCUSED);
        assert!(joined(&outcome));
        let says = |micro| Event::SchedulerValue { name: "fdps.measured", micro };
        assert_eq!(outcome.notes.has(|event| *event == says(1_000_000)), measured, "{stamps}");
        assert!(outcome.notes.has(|event| *event == says(0)));
    });
}

/// The schedulers take over from each other within one transfer.
#[test]
fn schedulers_take_over_while_the_kernel_receives() {
    let Some(_alone) = alone() else { return };
    let switch = |entry: &&'static Entry<dyn Scheduler>| {
        let entry: &'static Entry<dyn Scheduler> = entry;
        let (name, make) = (entry.name, Arc::new(|| entry.build(&[])));
        WorldChange::Scheduler(0, Switch { name: SchedulerName { base: name, suffix: "" }, make })
    };
    let all = anabranch_schedulers::all();
    each(BOTH, 2, |engine| {
        let mut plan = plan(engine, 2);
        plan.paths = vec![path("fast", 50, 5), path("slow", 10, 40)];
        plan.paths[1].down.loss = LossSpec::Bernoulli(0.005);
        let times = (0..).map(|n| Instant::from_millis(200 + 25 * n));
        plan.timeline = times.zip(all.iter().map(switch)).collect();
        let outcome = transfer(&plan, &[(12 * MIB, 0)], 1, PATIENCE);
        outcome.assert_clean(EXCUSED);
        let taken = outcome.notes.events.iter().filter(|(_, _, event)| matches!(event, Event::Scheduler(_)));
        assert_eq!(taken.count(), all.len());
    });
}

/// Every congestion control of the registry, from the engine to the kernel.
#[test]
fn every_congestion_control_sends_to_the_kernel() {
    let Some(_alone) = alone() else { return };
    let names = anabranch_congestion::all().iter().map(|entry| entry.name);
    let cases = names.flat_map(|name| BOTH.map(|engine| (engine, name)));
    each(cases, 8, |(engine, name)| {
        let mut plan = plan(engine, 2);
        plan.paths = vec![path("one", 40, 5), path("two", 20, 20)];
        for path in &mut plan.paths {
            path.down.loss = LossSpec::Bernoulli(0.005);
            path.up.loss = LossSpec::Bernoulli(0.005);
        }
        plan.congestion = name.into();
        let outcome = transfer(&plan, &[(2 * MIB, 0)], 1, PATIENCE);
        outcome.assert_clean(EXCUSED);
    });
}

/// The kernel's congestion controls, from the kernel to the engine: MPTCP and plain TCP.
#[test]
fn every_kernel_congestion_control_sends_to_the_engine() {
    let Some(_alone) = alone() else { return };
    let known = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = std::fs::read_to_string(known).expect("the kernel's congestion controls");
    assert!(known.contains("reno"), "{known}");
    let cases = known.split_whitespace().flat_map(|name| BOTH.map(|engine| (engine, name)));
    each(cases, 4, |(engine, name)| {
        for mut plan in [plan(engine, 2), crate::transfer::plain(engine)] {
            for path in &mut plan.paths {
                path.down.loss = LossSpec::Bernoulli(0.005);
                path.up.loss = LossSpec::Bernoulli(0.005);
            }
            plan.kernel_congestion = name.into();
            let outcome = transfer(&plan, &[(0, 2 * MIB)], 1, PATIENCE);
            outcome.assert_clean(EXCUSED);
        }
    });
}
