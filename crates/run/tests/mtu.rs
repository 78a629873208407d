//! Paths that carry smaller packets than the others.

use anabranch_run::{Choice, Driver, Job, Options, Plan, RunOutcome, Variant, VirtualTime};
use anabranch_scenario::{Cell, Document, PlugIn, Scenario};
use anabranch_trace::{DropCause, Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::{Flags, Packet};
use std::sync::Arc;

fn scenario(of_b: &str, rest: &str) -> Scenario {
    let text = format!(
        "{rest}\n[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '10ms'\n[[path]]\nname = 'b'\nrate = '20mbit'\ndelay = \
         '20ms'\n{of_b}\n[[traffic]]\nkind = 'bulk'\nsize = '8MB'\n"
    );
    Document::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong:#?}")).scenario
}

/// The signs of path b's limit.
#[derive(Default)]
struct Seen {
    /// Bytes of the largest packet sent over it.
    largest: usize,
    /// The same since this time.
    since: Instant,
    /// The MSS options of the SYNs over it.
    offers: Vec<u16>,
    /// When packets were dropped because they were too large.
    refused: Vec<Instant>,
}

impl Recorder for Seen {
    fn record(&mut self, now: Instant, _origin: Origin, event: &Event) {
        if let Event::Link { what: LinkEvent::Dropped(DropCause::Mtu), .. } = event {
            self.refused.push(now);
        }
    }

    fn packet(&mut self, now: Instant, _host: Side, sent: bool, path: PathId, packet: &Packet) {
        if !sent || path != PathId(1) {
            return;
        }
        if now >= self.since {
            self.largest = self.largest.max(packet.len());
        }
        if packet.segment.flags.has(Flags::SYN) && !packet.segment.flags.has(Flags::ACK) {
            self.offers.extend(packet.segment.options.mss());
        }
    }
}

fn run_since(since_ms: u64, scenario: Scenario, choice: Choice) -> (RunOutcome, Seen) {
    let job = Job::of(Arc::new(scenario), choice, 1);
    let mut seen = Seen { since: Instant::from_millis(since_ms), ..Seen::default() };
    (VirtualTime::default().run(&job, &mut seen).unwrap(), seen)
}

fn minrtt() -> Choice {
    Choice::Multipath(PlugIn { name: "minrtt".into(), parameters: Vec::new() })
}

#[test]
fn an_interface_limits_segments_and_joins_ask_for_such() {
    let (outcome, seen) = run_since(0, scenario("mtu = 1280", ""), minrtt());
    assert_eq!((seen.largest, seen.refused.len()), (1280, 0));
    // RFC 9293 §3.7.1: the option does not count IP header, TCP header and options.
    assert_eq!(seen.offers, [1280 - 40]);
    assert!(outcome.paths["b"]["share"] > 0.4);
    let (_, wide) = run_since(0, scenario("mtu = 9000", ""), minrtt());
    assert_eq!((wide.largest, wide.offers), (1480, vec![1440]));
}

#[test]
fn a_router_that_says_so_costs_less_than_a_tenth_of_a_second() {
    for choice in [minrtt(), Choice::Single(1)] {
        let time = |of_b: &str| run_since(0, scenario(of_b, ""), choice.clone());
        let (whole, known, reported) = (time(""), time("mtu = 1280"), time("mtu = 1280\nmtu_signal = 'icmp'"));
        // The initial window, at most what was sent before the first message came after 20 ms.
        assert!((1..=20).contains(&reported.1.refused.len()), "{}", reported.1.refused.len());
        let times = [whole, known, reported].map(|(outcome, _)| outcome.metrics["completion_s"]);
        assert!(times[2] < times[1] + 0.1 && times[1] < 1.05 * times[0], "{choice:?}: {times:?}");
    }
}

#[test]
fn a_limit_that_comes_during_the_transfer_holds_from_then_on() {
    for (signal, some) in [("interface", false), ("icmp", true)] {
        let change = "[[timeline]]\nat = '1s'\nset = 'path.b.mtu'\nvalue = 1000";
        let of_b = format!("mtu = 1500\nmtu_signal = '{signal}'\n{change}");
        let (outcome, seen) = run_since(1200, scenario(&of_b, ""), minrtt());
        assert_eq!((seen.largest, seen.refused.is_empty()), (1000, !some), "{signal}");
        assert!(outcome.paths["b"]["share"] > 0.4, "{signal}: {}", outcome.paths["b"]["share"]);
    }
}

/// Packets over both paths, and the IP version of each.
#[derive(Default)]
struct Versions(std::collections::BTreeSet<(u8, bool)>);

impl Recorder for Versions {
    fn record(&mut self, _now: Instant, _origin: Origin, _event: &Event) {}

    fn packet(&mut self, _now: Instant, _host: Side, _sent: bool, path: PathId, packet: &Packet) {
        self.0.insert((path.0, packet.src.is_ipv6() && packet.dst.is_ipv6()));
    }
}

#[test]
fn one_connection_has_subflows_of_both_ip_versions() {
    for (rest, of_b, versions) in
        [("", "ip = 6", [(0, false), (1, true)]), ("hosts.ip = 6", "ip = 4", [(0, true), (1, false)])]
    {
        for choice in [minrtt(), Choice::Single(1)] {
            let alone = choice == Choice::Single(1);
            let job = Job::of(Arc::new(scenario(of_b, rest)), choice, 1);
            let mut seen = Versions::default();
            let outcome = VirtualTime::default().run(&job, &mut seen).unwrap();
            assert!(outcome.finished);
            assert_eq!(seen.0.into_iter().collect::<Vec<_>>(), if alone { &versions[1..] } else { &versions[..] });
        }
    }
}

#[test]
fn a_black_hole_gets_no_data_unless_the_sender_probes() {
    const HOLE: &str = "mtu = 1280\nmtu_signal = 'none'";
    let share = |rest: &str| run_since(0, scenario(HOLE, rest), minrtt()).0.paths["b"]["share"];
    assert!(share("") < 0.01, "the initial window alone");
    assert!(share("tcp.mtu_probing = true\ntcp.rto_min = '20ms'") > 0.05);
    let (alone, _) = run_since(0, scenario(HOLE, "tcp.mtu_probing = true"), Choice::Single(1));
    assert!(alone.finished);
    let rows = |of_b: &str, rest: &str| {
        let variant = Variant { cell: Cell::default(), scenario: Arc::new(scenario(of_b, rest)) };
        Plan::new(&[variant], &Options::default()).jobs().count()
    };
    assert_eq!((rows(HOLE, ""), rows(HOLE, "tcp.mtu_probing = true"), rows(HOLE, "duration = '5s'")), (2, 3, 3));
    let later = "mtu_signal = 'none'\n[[timeline]]\nat = '1s'\nset = 'path.b.mtu'\nvalue = 1280";
    assert_eq!(rows(later, ""), 2);
}
