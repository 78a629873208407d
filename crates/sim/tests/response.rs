//! Long runs of congestion control: its response to random loss, and its share of a bottleneck.
//!
//! `cargo test --release -p anabranch-sim --test response -- --include-ignored --nocapture` prints the table of
//! `docs/lab/validation.md`.

mod common;

use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, LinkSpec, PathSpec, QueueSpec};
use anabranch_units::{Instant, PathId, Rate, Rng};
use common::{Delivered, Transfer, lossy, path};

const MSS: f64 = 1400.0;

/// Round-trip time in seconds: twice 50 ms, and a full packet's time on the wire.
fn rtt(kbit: f64) -> f64 {
    0.1 + 1480.0 * 8.0 / (kbit * 1000.0)
}

/// sqrt(3/(2p))·MSS/RTT in bytes per second: Mathis et al. 1997, eq 3 with every packet counted in the increase.
fn square_root(p: f64, rtt: f64) -> f64 {
    (1.5 / p).sqrt() * MSS / rtt
}

/// Padhye et al. 1998, eq 30, with b = 1 packet per increase.
fn pftk(p: f64, rtt: f64, rto: f64) -> f64 {
    let timeouts = rto * (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    MSS / (rtt * (2.0 * p / 3.0).sqrt() + timeouts)
}

/// Reno's goodput in bytes per second under Bernoulli loss, over `losses` expected losses.
fn reno_under(p: f64, losses: f64) -> f64 {
    let kbit = (square_root(p, 0.1) * 8.0 / 1000.0 * 5.0) as u64;
    let mut t = Transfer::new(vec![lossy("a", kbit, 50, 1000, p)]);
    t.congestion = "reno".into();
    t.settings.mptcp = false;
    let warm_up = 30.0;
    let seconds = losses / p / (square_root(p, 0.1) / MSS) * 1.2;
    let mut seen = Delivered { from: Instant::from_millis((warm_up * 1000.0) as u64), ..Delivered::default() };
    t.world().run(Instant::from_millis(((warm_up + seconds) * 1000.0) as u64), &mut seen).expect("a legal run");
    assert!(f64::from(seen.losses) > losses * 0.5, "{} losses", seen.losses);
    seen.bytes[0] as f64 / seconds / (1.0 - p)
}

#[test]
fn reno_follows_the_square_root_of_loss() {
    for p in [0.001, 0.003, 0.01] {
        let expected = square_root(p, rtt(square_root(p, 0.1) * 8.0 / 1000.0 * 5.0));
        let ratio = reno_under(p, 2000.0) / expected;
        println!("reno, p = {p}: {:.1} % of the square-root formula", ratio * 100.0);
        assert!((0.85..1.15).contains(&ratio), "p = {p}: {ratio}");
    }
}

#[test]
fn reno_follows_pftk_where_timeouts_matter() {
    for p in [0.02, 0.05] {
        let rtt = rtt(square_root(p, 0.1) * 8.0 / 1000.0 * 5.0);
        // Linux's least timeout is the round-trip time and 200 ms.
        let ratio = reno_under(p, 2000.0) / pftk(p, rtt, rtt + 0.2);
        println!("reno, p = {p}: {:.1} % of PFTK", ratio * 100.0);
        assert!((0.6..1.4).contains(&ratio), "p = {p}: {ratio}");
    }
}

const SHARED_KBIT: u64 = 10_000;

/// A path of 20 ms one way over the one shared link.
fn shared_path(name: &str) -> PathSpec {
    let mut p = path(name, 1, 20, 1);
    p.down.bottleneck = Bottleneck::shared(0);
    p.up.bottleneck = Bottleneck::shared(0);
    p
}

/// The rate of two subflows beside one Reno flow, as a share of half the link.
fn share(congestion: &str, seed: u64) -> f64 {
    // A queue as large as the path: 10 Mbit/s for 40 ms.
    let end = BottleneckSpec::new(CapacitySpec::Fixed(Rate::from_bps(SHARED_KBIT * 1000)), QueueSpec::Packets(34));
    let mut t = Transfer::new(["a", "b", "c"].map(shared_path).into());
    t.links = vec![LinkSpec { name: "link".into(), down: end.clone(), up: end, behind: None }];
    t.seed = seed;
    t.congestion = congestion.into();
    let mut coupled = t.flow(0, &[(PathId(0), false), (PathId(1), false)]);
    (t.congestion, t.settings.mptcp) = ("reno".into(), false);
    let mut single = t.flow(1, &[(PathId(2), false)]);
    let mut starts = Rng::stream(seed, "starts");
    coupled.start = Instant::from_millis(starts.below(5_000));
    single.start = Instant::from_millis(starts.below(5_000));
    let mut seen = Delivered { from: Instant::from_millis(30_000), ..Delivered::default() };
    t.world_of(vec![coupled, single]).run(Instant::from_millis(150_000), &mut seen).expect("a legal run");
    let half = SHARED_KBIT as f64 * 1000.0 / 8.0 / 2.0 * 120.0;
    seen.bytes[0] as f64 * 1480.0 / MSS / half
}

/// Controls that aim at one TCP's share where all subflows share a bottleneck.
const FAIR: [&str; 8] = ["lia", "olia", "balia", "coupled", "ewtcp", "epsilon", "mveno", "mpveno"];

/// Prints the shares of `congestion`; returns their mean.
fn mean_share(congestion: &str, seeds: u64) -> f64 {
    let shares: Vec<_> = (0..seeds).map(|seed| share(congestion, seed)).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let spread = shares.iter().fold((f64::MAX, 0.0_f64), |(low, high), s| (low.min(*s), high.max(*s)));
    println!("{congestion}: {mean:.2} of a fair share, {:.2} to {:.2}", spread.0, spread.1);
    mean
}

#[test]
#[ignore = "twenty million packets"]
fn coupled_subflows_take_one_share_of_a_bottleneck() {
    for congestion in FAIR {
        let mean = mean_share(congestion, 24);
        assert!((0.8..1.3).contains(&mean), "{congestion}: {mean}");
    }
}

#[test]
#[ignore = "ten million packets"]
fn others_take_what_their_pages_say() {
    let others = anabranch_congestion::all().iter().map(|e| e.name).filter(|name| !FAIR.contains(name));
    for congestion in others {
        let mean = mean_share(congestion, 12);
        match congestion {
            // They lose to Reno, which fills the queue.
            "vegas" | "wvegas" => assert!(mean < 0.95, "{congestion}: {mean}"),
            // As many shares as subflows, or more than one.
            _ => assert!(mean > 1.1, "{congestion}: {mean}"),
        }
    }
}
