//! Packets that are larger than a path carries (RFC 1191, RFC 8201).

use crate::common::pair::{Fate, Pair};
use crate::common::{at, client_paths, mirror, pattern, setup};
use anabranch_engine::Settings;
use anabranch_engine::connection::{Connection, PathSetup};
use anabranch_trace::{Event, RecoveryPhase};
use anabranch_units::{Duration, Instant, PathId, SeqNumber, Side};
use anabranch_wire::Packet;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of a packet's IP, TCP headers and options with timestamps and a DSS of 8-byte numbers.
const HEADERS: u32 = 80;

/// A pair whose path 0 carries no packet above `mtu` bytes from `since` on, and what it has dropped.
fn narrow_pair(paths: u8, mtu: usize, since: Instant) -> (Pair, Rc<RefCell<Vec<Packet>>>) {
    let mut pair = Pair::new(paths, Settings::default(), Settings::default());
    let dropped = Rc::new(RefCell::new(Vec::new()));
    let seen = dropped.clone();
    pair.hook = Box::new(move |now, _, path, packet| {
        let fits = path != 0 || packet.len() <= mtu || now < since;
        if fits {
            Fate::Pass
        } else {
            seen.borrow_mut().push(packet.clone());
            Fate::Drop
        }
    });
    (pair, dropped)
}

fn mss(connection: &Connection, path: u8) -> u32 {
    connection.view().path(PathId(path)).expect("a path").mss
}

#[test]
fn what_a_router_dropped_leaves_again_in_parts_and_the_window_stays() {
    for paths in [1, 2] {
        let (mut pair, dropped) = narrow_pair(paths, 1000, at(300));
        pair.write(Side::Client, pattern(0, 600_000), false).run(at(301));
        let before = pair.client.connection().expect("open").view().path(PathId(0)).expect("a path").cwnd;
        let first = dropped.borrow().first().cloned().expect("larger than the path carries");
        pair.report_too_big(Side::Client, &first, 1000);
        let now = pair.client.connection().expect("open").view().path(PathId(0)).copied().expect("a path");
        assert_eq!((now.mss, now.cwnd), (1000 - HEADERS, before));
        let large = dropped.borrow().len();
        pair.run(at(4000));
        assert_eq!(dropped.borrow().len(), large, "nothing above the limit leaves any more");
        assert_eq!(pair.server.got, pattern(0, 600_000));
        assert!(!pair.client.log.0.iter().any(|(_, event)| matches!(event, Event::Timeout { .. })));
    }
}

#[test]
fn a_black_hole_makes_the_other_path_carry_the_data() {
    let (mut pair, dropped) = narrow_pair(2, 1000, at(300));
    pair.write(Side::Client, pattern(0, 600_000), false).run(at(20_000));
    assert!(!dropped.borrow().is_empty());
    assert_eq!(pair.server.got, pattern(0, 600_000));
    assert_eq!(mss(pair.client.connection().expect("open"), 0), Settings::default().mss);
}

#[test]
fn messages_that_no_router_can_have_sent_change_nothing() {
    let (mut pair, _) = narrow_pair(1, 9000, at(0));
    pair.write(Side::Client, pattern(0, 400_000), false).run(at(101));
    let full = Settings::default().mss;
    let sent = pair.last[0].clone().expect("it sends");
    let at_seq =
        |seq: SeqNumber| Packet { segment: anabranch_wire::Segment { seq, ..sent.segment.clone() }, ..sent.clone() };
    let nxt = sent.segment.seq.at(sent.segment.payload.len() as u64);
    // RFC 5927 §4.1: only what is under way
    for seq in [nxt, nxt.at(1 << 20), sent.segment.seq.at(u64::from(u32::MAX) - (1 << 24))] {
        pair.report_too_big(Side::Client, &at_seq(seq), 600);
        assert_eq!(mss(pair.client.connection().expect("open"), 0), full);
    }
    // A larger packet than ours would pass.
    pair.report_too_big(Side::Client, &sent, 1500);
    assert_eq!(mss(pair.client.connection().expect("open"), 0), full);
    // Less than any path carries is taken for the least.
    pair.report_too_big(Side::Client, &sent, 0);
    assert_eq!(mss(pair.client.connection().expect("open"), 0), 552 - HEADERS);
    pair.run(at(5000));
    assert_eq!(pair.server.got, pattern(0, 400_000));
}

#[test]
fn a_path_of_small_segments_asks_for_such_in_its_syn_and_join() {
    let narrow = |paths: Vec<PathSetup>| {
        let small = |path: PathSetup| PathSetup { mss: Some(700), ..path };
        paths.into_iter().map(small).collect::<Vec<_>>()
    };
    let mut pair = Pair::with(1, setup(Settings::default(), narrow(client_paths(2))), || {
        let known = client_paths(2).into_iter();
        setup(Settings::default(), known.map(|p| PathSetup { tuple: mirror(p.tuple), ..p }).collect())
    });
    let largest = Rc::new(RefCell::new([0; 2]));
    let seen = largest.clone();
    pair.hook = Box::new(move |_, side, _, packet| {
        let largest = &mut seen.borrow_mut()[usize::from(side == Side::Server)];
        *largest = packet.segment.payload.len().max(*largest);
        Fate::Pass
    });
    pair.run(at(200));
    pair.write(Side::Client, pattern(0, 100_000), false).write(Side::Server, pattern(0, 100_000), false);
    pair.run(at(3000));
    assert_eq!(*largest.borrow(), [700, 700]);
    assert_eq!((pair.server.got.len(), pair.client.got.len()), (100_000, 100_000));
}

/// Data that was bound to a path ahead of its window, is in flight or is lost is cut when the path's segments become smaller.
#[test]
fn a_smaller_mss_cuts_what_is_queued_and_in_flight() {
    let (mut pair, dropped) = narrow_pair(2, 800, at(150));
    pair.write(Side::Client, pattern(0, 500_000), false).run(at(150));
    pair.act(Side::Client, |c, _| c.set_mss(PathId(0), 800 - HEADERS));
    pair.run(at(20_000));
    assert_eq!(pair.server.got, pattern(0, 500_000));
    assert!(dropped.borrow().is_empty(), "packets that leave from then on fit");
}

/// Times and payloads of segments.
type Sizes = Rc<RefCell<Vec<(Instant, usize)>>>;

/// A pair whose sender probes, over a path that swallows packets above `mtu` bytes from 300 ms until `ends`; sizes of the client's payloads
/// above 1024 bytes, with their times.
fn black_hole(paths: u8, mtu: usize, ends: Instant) -> (Pair, Sizes) {
    let mut settings = Settings::default();
    settings.tcp.mtu_probing = true;
    // Of packets that leave at one moment RACK takes that with the lower sequence for the earlier, though it was the retransmission.
    settings.tcp.pacing = true;
    let mut pair = Pair::new(paths, settings.clone(), settings);
    let large = Rc::new(RefCell::new(Vec::new()));
    let seen = large.clone();
    pair.hook = Box::new(move |now, side, path, packet| {
        if side == Side::Client && path == 0 && packet.segment.payload.len() > 1024 {
            seen.borrow_mut().push((now, packet.segment.payload.len()));
        }
        let swallowed = path == 0 && packet.len() > mtu && (at(300)..ends).contains(&now);
        if swallowed { Fate::Drop } else { Fate::Pass }
    });
    (pair, large)
}

/// When segments became smaller: the fourth timeout in a row.
fn fall(pair: &Pair) -> Instant {
    let fourth = pair.client.log.0.iter().find(|(_, event)| matches!(event, Event::Timeout { n: 4 }));
    fourth.expect("a fall").0
}

#[test]
fn after_a_fall_larger_sizes_are_searched_and_the_window_does_not_pay() {
    let (mut pair, large) = black_hole(1, 1280, Instant::MAX);
    pair.write(Side::Client, pattern(0, 6_000_000), false).run(at(30_000));
    assert_eq!(pair.server.got, pattern(0, 6_000_000));
    let found = mss(pair.client.connection().expect("open"), 0);
    assert!((1280 - HEADERS - 7..=1280 - HEADERS).contains(&found), "{found}");
    let fallen = fall(&pair);
    let later: Vec<_> = large.borrow().iter().filter(|(when, _)| *when > fallen).copied().collect();
    let (first, probes) = (later[0].0, later.iter().filter(|(_, size)| *size > found as usize).count());
    // The size before, and halves of 376 bytes.
    assert!((1..=7).contains(&probes), "{probes}");
    let log = || pair.client.log.0.iter().filter(|(when, _)| *when > first);
    assert!(!log().any(|(_, event)| matches!(event, Event::Timeout { .. })));
    // A probe's own loss begins no fast recovery; that of its retransmission may, where packets leave at one moment.
    let recoveries = log().filter(|(_, event)| matches!(event, Event::Recovery(RecoveryPhase::Recovery))).count();
    assert!(recoveries < probes, "{recoveries} of {probes}");
}

#[test]
fn an_outage_is_no_limit_of_the_path() {
    let (mut pair, large) = black_hole(1, 0, at(8_000));
    pair.write(Side::Client, pattern(0, 3_000_000), false).run(at(40_000));
    assert_eq!(pair.server.got, pattern(0, 3_000_000));
    assert_eq!(mss(pair.client.connection().expect("open"), 0), Settings::default().mss);
    assert!(large.borrow().iter().any(|(when, _)| *when > at(8_000)));
}

/// RFC 8899 §5.1.1, PMTU_RAISE_TIMER; Linux `tcp_probe_interval`: ten minutes.
#[test]
fn a_path_that_carries_more_again_is_used_ten_minutes_after_the_fall() {
    let (mut pair, large) = black_hole(1, 1280, at(100_000));
    pair.write(Side::Client, pattern(0, 3_000_000), false).run(at(90_000));
    let (found, fallen) = (mss(pair.client.connection().expect("open"), 0), fall(&pair));
    let sent = large.borrow().len();
    let early = fallen + Duration::from_secs(590);
    pair.run(early).write(Side::Client, pattern(3_000_000, 1_000_000), false);
    pair.run(fallen + Duration::from_secs(599));
    assert!(large.borrow()[sent..].iter().all(|(_, size)| *size <= found as usize), "no probe before its time");
    pair.run(fallen + Duration::from_secs(601)).write(Side::Client, pattern(4_000_000, 3_000_000), false);
    pair.run(fallen + Duration::from_secs(700));
    assert_eq!(mss(pair.client.connection().expect("open"), 0), Settings::default().mss);
    assert_eq!(pair.server.got.len(), 7_000_000);
}

#[test]
fn without_probing_nothing_becomes_smaller() {
    let (mut pair, _) = narrow_pair(1, 1280, at(300));
    pair.write(Side::Client, pattern(0, 600_000), false).run(at(20_000));
    assert_eq!(mss(pair.client.connection().expect("open"), 0), Settings::default().mss);
    assert!(pair.server.got.len() < 600_000, "the hole swallows it");
}
