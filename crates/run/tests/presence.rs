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
    // Two seconds of waiting, one over one path, another over both.
    assert!((4.0..4.5).contains(&outcome.metrics["completion_s"]), "{}", outcome.metrics["completion_s"]);
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

/// The sender keeps to the other path from a round trip after the MP_PRIO on (RFC 8684 §3.3.8), until it is taken back.
#[test]
fn a_path_becomes_a_backup_and_carries_data_again() {
    const CHANGES: &str = "duration = '6s'\nwarmup = '0s'\n[[timeline]]\nat = '2s'\nset = 'path.b.backup'\nvalue = true\n\
        [[timeline]]\nat = '4s'\nset = 'path.b.backup'\nvalue = false\n";
    #[derive(Default)]
    struct Seen {
        /// Bytes sent over path b, per second.
        bytes: [u64; 6],
        /// When each host sent MP_PRIO, in ms, and whether it requested a backup.
        priorities: Vec<(u64, Side, bool)>,
    }
    impl Recorder for Seen {
        fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}

        fn packet(&mut self, now: Instant, host: Side, sent: bool, path: PathId, packet: &Packet) {
            let at = now.as_nanos() / 1_000_000;
            if !sent {
                return;
            }
            if let Some(second) = self.bytes.get_mut(at as usize / 1000).filter(|_| (host, path.0) == (Side::Server, 1))
            {
                *second += packet.segment.payload.len() as u64;
            }
            for option in packet.segment.options.mptcp() {
                if let MptcpOption::Prio { backup } = option {
                    self.priorities.push((at, host, *backup));
                }
            }
        }
    }
    let (top, changes) = CHANGES.split_once("[[").unwrap();
    let scenario = Document::parse("x.toml", &format!("{top}{TEXT}[[{changes}")).unwrap().scenario;
    let choice = Choice::Multipath(PlugIn { name: "minrtt".into(), parameters: Vec::new() });
    let congestion = scenario.congestion.clone();
    let job = Job { scenario: Arc::new(scenario), cell: Cell::default(), choice, congestion, seed: 1, curves: None };
    let mut seen = Seen::default();
    VirtualTime::default().run(&job, &mut seen).unwrap();
    let both = |at, backup| [(at, Side::Client, backup), (at, Side::Server, backup)];
    assert_eq!(seen.priorities, [both(2000, true), both(4000, false)].concat());
    let [_, before, first, last, again, _] = seen.bytes;
    assert!(before > 2_000_000 && first < before / 10 && last == 0 && again > before / 2, "{:?}", seen.bytes);
}

#[test]
fn money_is_spent_at_the_price_of_the_time() {
    const CHANGE: &str = "[[timeline]]\nat = '500ms'\nset = 'path.b.price'\nvalue = 0\n";
    let price = |rest: &str| run(scenario("", "price = '1/MB'", rest), "minrtt").0.metrics.get("price").copied();
    let (whole, part) = (price(BULK).unwrap(), price(&format!("{BULK}{CHANGE}")).unwrap());
    assert!(part > 0.0 && part < whole / 2.0, "{part} of {whole}");
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

/// The user requested the transfer before its path was there: the wait counts, as in the bound.
#[test]
fn a_transfer_that_waits_for_its_path_has_waited() {
    let scenario = || Arc::new(scenario("start = '2s'", "start = '2s'", BULK));
    let minrtt = Choice::Multipath(PlugIn { name: "minrtt".into(), parameters: Vec::new() });
    for choice in [Choice::Single(0), Choice::Single(1), minrtt] {
        let outcome = VirtualTime::default().run(&Job::of(scenario(), choice, 1), &mut ()).unwrap();
        let (time, ratio) = (outcome.metrics["completion_s"], outcome.metrics["oracle_ratio"]);
        assert!(time > 3.0 && ratio <= 1.0, "{time} s, {ratio}");
    }
}

#[test]
fn times_that_cannot_be_are_refused() {
    let said = |of_b: &str, rest: &str| {
        let text = TEXT.replace("'20ms'", &format!("'20ms'\n{of_b}"));
        Document::parse("x.toml", &format!("{rest}{text}{BULK}")).unwrap_err()[0].message.clone()
    };
    assert_eq!(said("start = '2s'\nstop = '1s'", ""), "this path goes before it appears");
    assert_eq!(said("start = '9s'", "duration = '5s'\n"), "this path appears after the end");
}
