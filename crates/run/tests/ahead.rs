//! Hosts that run ahead of each other have the outcome of a run whose events are handled one by one.

mod common;

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{NoFiles, PlugIn, Source, read};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Duration, Instant};
use std::sync::Arc;

/// Needs both hosts' events in one order.
struct InOrder;

impl Recorder for InOrder {
    fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}
}

fn outcomes(job: &Job) -> [RunOutcome; 2] {
    let mut recorders: [&mut dyn Recorder; 2] = [&mut (), &mut InOrder];
    recorders.each_mut().map(|recorder| VirtualTime::default().run(job, *recorder).unwrap())
}

#[test]
fn every_scenario_has_the_same_outcome() {
    let files = common::scenarios();
    assert!(files.len() > 150, "{} files", files.len());
    let schedulers = anabranch_schedulers::all().iter().cycle();
    for ((n, (file, mut scenario)), scheduler) in (0..).zip(files).zip(schedulers) {
        let most = Duration::from_secs(4);
        scenario.duration = Some(scenario.duration.unwrap_or(most).min(most));
        scenario.warmup = scenario.warmup.min(Duration::from_secs(1));
        let choice = Choice::Multipath(PlugIn { name: scheduler.name.into(), parameters: Vec::new() });
        let [ahead, in_order] = outcomes(&Job::of(Arc::new(scenario), choice, n));
        assert_eq!(ahead, in_order, "{} with {}", file.display(), scheduler.name);
    }
}

/// Outcomes of a scenario over one path of 12 Mbit/s; a packet of 1500 bytes takes a millisecond.
fn over_one_path(top: &str, delay: &str, rest: &str, seed: u64) -> [RunOutcome; 2] {
    let text = format!(
        "{top}\n[connection]\nmptcp = false\ncongestion = 'reno'\nmss = 1448\n[[path]]\nname = 'a'\nrate = '12mbit'\nqueue = '200p'\n\
         delay = '{delay}'\n{rest}"
    );
    outcomes(&job(&text, seed))
}

fn job(text: &str, seed: u64) -> Job {
    let source = Source { name: "x".into(), text: text.into() };
    let scenario = read(&source, &[], &NoFiles).unwrap_or_else(|wrong| panic!("{wrong:#?}")).scenario;
    let choice = Choice::Multipath(scenario.scheduler.clone());
    Job::of(Arc::new(scenario), choice, seed)
}

#[test]
fn what_an_upload_delivers_before_the_first_syn_does_not_count() {
    for size in [200_000, 300_001, 500_000] {
        let rest = format!(
            "[[cross]]\nkind = 'tcp'\npath = 'a'\ndirection = 'up'\n[[traffic]]\nkind = 'bulk'\nsize = {size}\n"
        );
        let [ahead, in_order] = over_one_path("start = '1s'", "20ms", &rest, 1);
        assert_eq!(ahead, in_order, "{size}");
    }
}

#[test]
fn a_packet_that_leaves_at_the_moment_of_the_last_byte_counts() {
    for size in [300_001, 500_000] {
        let cross = "[[cross]]\nkind = 'udp'\npath = 'a'\nrate = '12mbit'\npacket = 1500\n";
        let [ahead, in_order] =
            over_one_path("", "10ms", &format!("{cross}[[traffic]]\nkind = 'bulk'\nsize = {size}\n"), 1);
        assert_eq!(ahead, in_order, "{size}");
    }
}

/// Two paths with losses, so that round-trip times are known of a path that has delivered nothing in order.
const LOSSY: &str = "duration = '500ms'\n[[path]]\nname = 'a'\nrate = '6mbit'\ndelay = '7ms'\nloss = '5%'\n\
    [[path]]\nname = 'b'\nrate = '12mbit'\ndelay = '20ms'\nloss = '10%'\n[[traffic]]\nkind = 'bulk'\n";

#[test]
fn a_head_start_ends_with_the_arrival_on_another_path() {
    for seed in 0..200 {
        let [ahead, in_order] = outcomes(&job(LOSSY, seed));
        assert_eq!(ahead, in_order, "seed {seed}");
    }
}

#[test]
fn a_run_that_ends_within_a_part_has_its_last_departures() {
    let text = "[[path]]\nname = 'a'\nrate = '12mbit'\ndelay = '10ms'\n[[cross]]\nkind = 'udp'\npath = 'a'\nrate = '6mbit'\n\
        [[traffic]]\nkind = 'bulk'\nsize = '300KB'\n";
    let job = job(text, 1);
    let whole = VirtualTime::default().run(&job, &mut ()).unwrap();
    let mut running = VirtualTime::default().begin(&job, (), |_| {}).unwrap();
    let mut parts = (1..).map(|n| Instant::from_millis(7 * n));
    while running.advance(parts.next().unwrap()).unwrap() {}
    assert_eq!(running.finish().0, whole);
}
