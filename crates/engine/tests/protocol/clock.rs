//! Clocks of 32 bits on connections that last: timestamps count milliseconds, and wrap after 49.7 days (RFC 7323 §5.4).

use crate::common::pair::Pair;
use crate::common::solo::{Build, Solo};
use crate::common::{at, pattern, plain_stamps, tcp};
use anabranch_engine::{Settings, TcpSettings};
use anabranch_trace::Violation;
use anabranch_units::Side;
use anabranch_wire::{Segment, Timestamps};

const DAY: u64 = 86_400_000;
/// Milliseconds after which the clock has wrapped.
const WRAP: u64 = 1 << 32;

fn stamped(settings: Settings) -> Settings {
    Settings { tcp: TcpSettings { timestamps: true, ..settings.tcp }, ..settings }
}

/// Both sides write `bytes` now, and have read them a while later.
fn exchange(pair: &mut Pair, from: &mut u64, bytes: usize) {
    for side in [Side::Client, Side::Server] {
        pair.write(side, pattern(*from, bytes), false);
    }
    let now = pair.now.as_nanos() / 1_000_000;
    pair.run(at(now + 60_000));
    *from += bytes as u64;
    for party in [&pair.client, &pair.server] {
        assert_eq!(party.got.len() as u64, *from, "{now} ms");
        assert_eq!(party.closed(), None, "{now} ms");
    }
}

#[test]
fn a_connection_outlives_the_timestamp_clock() {
    for settings in [stamped(tcp()), stamped(plain_stamps())] {
        let mut pair = Pair::new(2, settings.clone(), settings);
        let mut from = 0;
        // Just before the wrap and across it; after an idle time in which the peer's clock has gone half its way and more
        // (RFC 7323 §5.5); across the next wrap.
        let times = [0, WRAP - 100_000, WRAP - 1, WRAP + 10 * DAY, WRAP + 40 * DAY, 2 * WRAP - 50, 2 * WRAP + 100_000];
        for time in times {
            pair.run(at(time));
            exchange(&mut pair, &mut from, 200_000);
        }
        for party in [&pair.client, &pair.server] {
            assert!(!party.log.violated(Violation::OldTimestamp));
        }
        // Round trips are measured after the wrap as before.
        let paths = pair.client.connection().expect("open").view().paths().to_vec();
        assert!(paths.iter().all(|p| p.srtt.is_some_and(|srtt| srtt.as_millis() < 100)), "{paths:?}");
        for side in [Side::Client, Side::Server] {
            pair.act(side, |c, cx| c.finish(cx));
        }
        let now = pair.now.as_nanos() / 1_000_000;
        pair.run(at(now + 300_000));
        assert!(pair.client.got == pattern(0, from as usize) && pair.server.got == pattern(0, from as usize));
        assert!(pair.client.endpoint.is_empty() && pair.server.endpoint.is_empty());
    }
}

#[test]
fn a_connection_may_be_idle_for_any_time() {
    let settings = stamped(plain_stamps());
    for days in [20, 24, 25, 30, 45, 49, 50, 60, 75, 100] {
        let mut pair = Pair::new(2, settings.clone(), settings.clone());
        let mut from = 0;
        exchange(&mut pair, &mut from, 50_000);
        pair.run(at(days * DAY));
        exchange(&mut pair, &mut from, 50_000);
        assert!(!pair.client.log.violated(Violation::OldTimestamp), "{days} days");
    }
}

fn stamp(mut s: Segment, val: u32) -> Segment {
    s.options.set_timestamps(Timestamps { val, ecr: 1 });
    s
}

#[test]
fn what_an_idle_peer_said_is_forgotten_and_what_it_says_next_counts() {
    // RFC 7323 §5.5: after 24 days the last value says nothing. The next one is kept, and protects again.
    let mut h = Solo::server(stamped(tcp()));
    h.send(stamp(h.syn(0), 3_000_000_000)).clear();
    h.send(stamp(h.seg(1, 1).data(b"a"), 3_000_000_000)).clear();
    h.at(25 * DAY);
    h.send(stamp(h.seg(2, 1).data(b"b"), 1_000_000_000));
    assert_eq!(h.read(), b"ab");
    assert_eq!(h.sent.back().and_then(|(_, p)| p.segment.options.timestamps()).map(|t| t.ecr), Some(1_000_000_000));
    h.send(stamp(h.seg(3, 1).data(b"c"), 999_999_999));
    assert_eq!(h.read(), b"");
    assert!(h.log.violated(Violation::OldTimestamp));
}
