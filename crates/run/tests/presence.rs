//! Paths that appear and go while a transfer runs.

use anabranch_run::{Choice, Driver, Job, Options, Plan, RunOutcome, Variant, VirtualTime};
use anabranch_scenario::{Cell, Document, PlugIn, Scenario};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::{Flags, MptcpOption, Packet};
use std::sync::Arc;

const TEXT: &str =
    "[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '10ms'\n[[path]]\nname = 'b'\nrate = '20mbit'\ndelay = '20ms'\n";

fn scenario(of_a: &str, of_b: &str, rest: &str) -> Scenario {
    let text = TEXT
        .replace("delay = '10ms'", &format!("delay = '10ms'\n{of_a}"))
        .replace("'20ms'", &format!("'20ms'\n{of_b}"));
    let text = if rest.starts_with('[') { format!("{text}{rest}") } else { format!("{rest}\n{text}") };
    Document::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong:#?}")).scenario
}

/// The segments that the client sends: when, over which path, and what of joining and leaving they carry.
#[derive(Default)]
struct Sent(Vec<(u64, u8, &'static str)>);

impl Recorder for Sent {
    fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}

    fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
        let segment = &packet.segment;
        let removes = segment.options.mptcp().iter().any(|option| matches!(option, MptcpOption::RemoveAddr(_)));
        let what = match (segment.flags.has(Flags::SYN), segment.flags.has(Flags::RST), removes) {
            (true, _, _) => "SYN",
            (_, true, _) => "RST",
            (_, _, true) => "REMOVE_ADDR",
            _ => return,
        };
        if (host, sent) == (Side::Client, true) {
            self.0.push((now.as_nanos() / 1_000_000, path.0, what));
        }
    }
}

fn run(scenario: Scenario, scheduler: &str) -> (RunOutcome, Vec<(u64, u8, &'static str)>) {
    let choice = Choice::Multipath(PlugIn { name: scheduler.into(), parameters: Vec::new() });
    let job = Job::of(Arc::new(scenario), choice, 1);
    let mut sent = Sent::default();
    (VirtualTime::default().run(&job, &mut sent).unwrap(), sent.0)
}

const BULK: &str = "[[traffic]]\nkind = 'bulk'\nsize = '8MB'\n";

/// Not after a SYN's back-off, as after an outage from the beginning.
#[test]
fn a_path_that_appears_is_joined_at_once() {
    let (outcome, sent) = run(scenario("", "start = '1s'", BULK), "minrtt");
    assert_eq!(sent, [(0, 0, "SYN"), (1000, 1, "SYN")]);
    assert!(outcome.paths["b"]["share"] > 0.2);
    let (_, hidden) = run(scenario("", "outage = [['0s', '1s']]", BULK), "minrtt");
    assert!(hidden.iter().any(|(at, path, what)| (*path, *what) == (1, "SYN") && *at < 1000), "{hidden:?}");
}

#[test]
fn a_path_that_goes_is_withdrawn_and_its_data_arrives_over_the_other() {
    let (outcome, sent) = run(scenario("stop = '1s'", "", BULK), "minrtt");
    let after: Vec<_> = sent.iter().filter(|(at, ..)| *at >= 1000).collect();
    assert!(after.iter().any(|(at, path, what)| (*at, *path, *what) == (1000, 1, "REMOVE_ADDR")), "{sent:?}");
    assert!(outcome.metrics["completion_s"] < 4.0);
}

#[test]
fn without_any_path_the_connection_opens_with_the_first_that_appears() {
    let (outcome, sent) = run(scenario("start = '3s'", "start = '2s'", BULK), "minrtt");
    assert_eq!(sent[..2], [(2000, 1, "SYN"), (3000, 0, "SYN")]);
    // From the first SYN: a second over one path, another over both.
    assert!((2.0..2.5).contains(&outcome.metrics["completion_s"]), "{}", outcome.metrics["completion_s"]);
}

#[test]
fn a_path_may_come_while_the_other_goes() {
    let (outcome, sent) = run(scenario("stop = '1s'", "start = '1500ms'", BULK), "blest");
    assert!(sent.iter().any(|(at, path, what)| (*at, *path, *what) == (1500, 1, "SYN")), "{sent:?}");
    assert!(outcome.paths["b"]["share"] > 0.2);
}

#[test]
fn every_scheduler_finishes_over_paths_that_come_and_go() {
    for entry in anabranch_schedulers::all() {
        let (outcome, _) = run(scenario("stop = '900ms'", "start = '400ms'", BULK), entry.name);
        assert!(outcome.metrics["completion_s"] > 0.0, "{}", entry.name);
    }
}

#[test]
fn no_baseline_of_a_sized_transfer_uses_a_path_that_goes() {
    let rows = |rest: &str| {
        let variant = Variant { cell: Cell::default(), scenario: Arc::new(scenario("stop = '1s'", "", rest)) };
        let plan = Plan::new(&[variant], &Options::default());
        plan.jobs().map(|job| job.choice).collect::<Vec<_>>()
    };
    assert_eq!(rows(BULK)[1..], [Choice::Single(1)]);
    assert_eq!(rows("duration = '5s'").len(), 3);
}

#[test]
fn times_that_cannot_be_are_refused() {
    let said = |of_b: &str, rest: &str| {
        let text = TEXT.replace("'20ms'", &format!("'20ms'\n{of_b}"));
        Document::parse("x.toml", &format!("{rest}{text}{BULK}")).unwrap_err()[0].message.clone()
    };
    assert_eq!(said("start = '2s'\nstop = '1s'", ""), "this path goes before it appears");
    assert_eq!(said("start = '9s'", "duration = '5s'\n"), "this path appears after the end");
    assert_eq!(said("start = '1s'", "hosts.receiver = 'linux'\n"), "a Linux host's paths are there from the beginning");
}
