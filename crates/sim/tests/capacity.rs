//! Plain TCP and Multipath TCP fill a path without loss.
//!
//! The fastest link takes millions of packets:
//! `cargo test --release -p anabranch-sim --test capacity -- --include-ignored --nocapture`.

mod common;

use anabranch_network::PathSpec;
use anabranch_trace::{Event, Origin, Recorder, Tee};
use anabranch_units::{Duration, Instant, PathId, Side};
use anabranch_wire::Packet;
use common::{Delivered, Transfer, path};

/// Bytes of headers and options of a full data packet, as emitted.
#[derive(Debug, Default)]
struct Headers(usize);

impl Recorder for Headers {
    fn record(&mut self, _: Instant, _: Origin, _: &Event) {}
    fn packet(&mut self, _: Instant, host: Side, sent: bool, _: PathId, packet: &Packet) {
        if sent && host == Side::Server && packet.segment.payload.len() == 1400 {
            self.0 = packet.len() - 1400;
        }
    }
}

/// A path whose queue is as large as its bandwidth-delay product, and at least ten packets.
fn buffered(name: &str, mbit: u64, one_way_us: u64) -> PathSpec {
    let packets = (mbit * one_way_us * 2).div_ceil(8 * 1452);
    let mut p = path(name, mbit * 1000, 0, packets.max(10) as u32);
    p.down.delay = Duration::from_micros(one_way_us);
    p.up.delay = Duration::from_micros(one_way_us);
    p
}

/// Goodput after `warm_up` seconds, over `seconds`, as a share of the paths' capacity.
fn filled(t: &Transfer, mbit: u64, warm_up: u64, seconds: u64) -> f64 {
    let mut seen =
        Tee(Delivered { from: Instant::from_millis(warm_up * 1000), ..Delivered::default() }, Headers::default());
    t.world().run(Instant::from_millis((warm_up + seconds) * 1000), &mut seen).expect("a legal run");
    let Tee(delivered, Headers(headers)) = seen;
    assert_eq!(headers, if t.settings.mptcp { 80 } else { 52 });
    let possible = mbit as f64 * 1e6 / 8.0 * 1400.0 / (1400 + headers) as f64 * seconds as f64;
    delivered.bytes[0] as f64 / possible
}

fn one_path(mbit: u64) {
    for congestion in ["reno", "cubic"] {
        for mptcp in [false, true] {
            let mut t = Transfer::new(vec![buffered("a", mbit, 10_000)]);
            t.congestion = congestion.into();
            t.settings.mptcp = mptcp;
            let share = filled(&t, mbit, 10, 60);
            println!("{mbit} Mbit/s, {congestion}, mptcp {mptcp}: {:.2} %", share * 100.0);
            assert!((0.99..1.01).contains(&share), "{mbit} Mbit/s, {congestion}, mptcp {mptcp}: {share}");
        }
    }
}

#[test]
fn one_mbit() {
    one_path(1);
}

#[test]
fn ten_mbit() {
    one_path(10);
}

#[test]
fn a_hundred_mbit() {
    one_path(100);
}

#[test]
#[ignore = "20 million packets"]
fn a_thousand_mbit() {
    one_path(1000);
}

#[test]
fn two_unequal_paths_add_up() {
    // As round trips, and as one-way delays.
    for (fast, slow) in [(5_000, 50_000), (10_000, 100_000)] {
        let t = Transfer::new(vec![buffered("a", 10, fast), buffered("b", 10, slow)]);
        let share = filled(&t, 20, 30, 60);
        println!("10 + 10 Mbit/s, {fast} us + {slow} us one way: {:.2} %", share * 100.0);
        assert!((0.95..1.01).contains(&share), "{fast} us + {slow} us: {share}");
    }
}

/// The least share of two idle paths for a congestion control that does not fill them. COUPLED takes half of both
/// windows from the path that loses a packet, and returns it at one packet per round trip of both.
const LESS: [(&str, f64); 1] = [("coupled", 0.7)];

#[test]
fn every_congestion_control_uses_two_idle_paths() {
    for entry in anabranch_congestion::all() {
        let mut t = Transfer::new(vec![buffered("a", 20, 20_000), buffered("b", 5, 20_000)]);
        t.congestion = entry.name.into();
        let share = filled(&t, 25, 60, 60);
        println!("20 + 5 Mbit/s, {}: {:.1} %", entry.name, share * 100.0);
        let least = LESS.iter().find(|(name, _)| *name == entry.name).map_or(0.95, |(_, least)| *least);
        assert!((least..1.01).contains(&share), "{}: {share}", entry.name);
    }
}
