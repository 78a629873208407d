//! The queues of delay-based and rate-based controls, and the link's utilisation.
//!
//! `cargo test --release -p anabranch-sim --test queues -- --nocapture` prints the tables of `docs/lab/validation.md`.

mod common;

use anabranch_network::PathSpec;
use anabranch_trace::{Event, LinkEvent, Origin, Recorder, Tee};
use anabranch_units::{Direction, Instant, PathId};
use common::{Delivered, Transfer, lossy, path};

const MSS: f64 = 1400.0;
/// A packet of plain TCP with timestamps.
const PACKET: f64 = 1452.0;

/// The length of a path's queue towards the client, at the arrival of packets, from a time on.
#[derive(Debug, Default)]
struct Queue {
    from: Instant,
    path: PathId,
    lengths: Vec<u32>,
    dropped: u32,
}

impl Recorder for Queue {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        match event {
            Event::Link { direction: Direction::Down, what, .. } if now >= self.from && origin.path == self.path => {
                match what {
                    LinkEvent::Enqueued { queue_packets, .. } => self.lengths.push(*queue_packets),
                    LinkEvent::Departed => {}
                    LinkEvent::Dropped(_) => self.dropped += 1,
                    LinkEvent::Marked => {}
                }
            }
            _ => {}
        }
    }
}

impl Queue {
    fn mean(&self) -> f64 {
        self.lengths.iter().map(|n| f64::from(*n)).sum::<f64>() / self.lengths.len() as f64
    }

    /// The 95th percentile of the length.
    fn usual(&mut self) -> u32 {
        self.lengths.sort_unstable();
        self.lengths[self.lengths.len() * 95 / 100]
    }
}

/// The measurements of a run after its first seconds.
#[derive(Debug)]
struct Shown {
    /// Goodput as a share of the link's capacity without random loss.
    share: f64,
    mean: f64,
    usual: u32,
    dropped: f64,
}

/// A minute of `congestion` over plain TCP on `link` of `mbit` with a loss probability of `loss`; after 20 s.
fn run(congestion: &str, link: PathSpec, mbit: u64, loss: f64) -> Shown {
    run_after(20_000, congestion, link, mbit, loss)
}

/// The same, after `warm_up` ms.
fn run_after(warm_up: u64, congestion: &str, link: PathSpec, mbit: u64, loss: f64) -> Shown {
    let mut t = Transfer::new(vec![link]);
    t.congestion = congestion.into();
    t.settings.mptcp = false;
    let from = Instant::from_millis(warm_up);
    let mut seen = Tee(Delivered { from, ..Delivered::default() }, Queue { from, ..Queue::default() });
    t.world().run(Instant::from_millis(warm_up + 60_000), &mut seen).expect("a legal run");
    let Tee(delivered, mut queue) = seen;
    let possible = mbit as f64 * 1e6 / 8.0 * 60.0 * MSS / PACKET * (1.0 - loss);
    let shown = Shown {
        share: delivered.bytes[0] as f64 / possible,
        mean: queue.mean(),
        usual: queue.usual(),
        dropped: f64::from(queue.dropped) / queue.lengths.len() as f64,
    };
    println!(
        "{congestion}, {mbit} Mbit/s, loss {loss}: {:.1} % of the rate, {:.1} packets queued, {} usually, {:.2} % dropped",
        shown.share * 100.0,
        shown.mean,
        shown.usual,
        shown.dropped * 100.0
    );
    shown
}

/// Packets that a path of `mbit` and 20 ms in each direction holds.
fn bdp(mbit: u64) -> f64 {
    mbit as f64 * 1e6 / 8.0 * 0.04 / PACKET
}

#[test]
fn vegas_queues_between_alpha_and_beta() {
    for mbit in [2, 10, 50] {
        // Slow start ends with hundreds of packets too many, of which one leaves per round trip.
        let shown = run_after(100_000, "vegas", path("a", mbit * 1000, 20, 1000), mbit, 0.0);
        assert!(shown.share > 0.97, "{shown:?}");
        // Between alpha and beta, counted in whole packets by the least of a round: less than beta + 1; and every
        // second packet meets the other one of its pair, because the receiver acknowledges two at a time.
        assert!((2.0..5.0 + 1.0).contains(&shown.mean), "{shown:?}");
        assert_eq!(shown.dropped, 0.0);
    }
}

#[test]
fn wvegas_shares_its_packets_by_rate() {
    let mut t = Transfer::new(vec![path("a", 20_000, 20, 1000), path("b", 5_000, 20, 1000)]);
    t.congestion = "wvegas".into();
    let from = Instant::from_millis(100_000);
    let queue = |id| Queue { from, path: PathId(id), ..Queue::default() };
    let mut seen = Tee(Delivered { from, ..Delivered::default() }, Tee(queue(0), queue(1)));
    t.world().run(Instant::from_millis(160_000), &mut seen).expect("a legal run");
    let Tee(delivered, Tee(fast, slow)) = seen;
    let share = delivered.bytes[0] as f64 / (25e6 / 8.0 * 60.0 * MSS / 1480.0);
    let (fast, slow) = (fast.mean(), slow.mean());
    println!("wvegas, 20 + 5 Mbit/s: {:.1} % of both rates, {fast:.1} and {slow:.1} packets queued", share * 100.0);
    assert!(share > 0.9, "{share}");
    // Of ten packets, eight and two; fewer while a queue is drained, and half a packet more because of pairs.
    assert!((4.0..9.0).contains(&fast) && (1.0..3.5).contains(&slow), "{fast} and {slow}");
}

#[test]
fn bbr_fills_a_link_with_a_shallow_queue() {
    for mbit in [2, 10, 50] {
        let shown = run("bbr", path("a", mbit * 1000, 20, (bdp(mbit) * 0.3).max(4.0) as u32), mbit, 0.0);
        assert!(shown.share > 0.85, "{shown:?}");
    }
}

#[test]
fn bbr_fills_a_link_with_random_loss() {
    for mbit in [2, 10, 50] {
        let shown = run("bbr", lossy("a", mbit * 1000, 20, bdp(mbit) as u32, 0.01), mbit, 0.01);
        assert!(shown.share > 0.85, "{shown:?}");
    }
}

#[test]
fn bbr_keeps_a_deep_queue_short() {
    for mbit in [2, 10, 50] {
        let shown = run("bbr", path("a", mbit * 1000, 20, (bdp(mbit) * 20.0) as u32), mbit, 0.0);
        assert!(shown.share > 0.9 && shown.dropped == 0.0, "{shown:?}");
        assert!(f64::from(shown.usual) < 1.5 * bdp(mbit), "{shown:?}");
    }
}

#[test]
fn bbr_fills_two_paths_of_a_connection() {
    for (fast, slow) in [(5, 50), (10, 100)] {
        let buffered = |name, delay| path(name, 10_000, delay, (10 * 1000 * delay * 2 / 8 / 1452) as u32);
        let mut t = Transfer::new(vec![buffered("a", fast), buffered("b", slow)]);
        t.congestion = "bbr".into();
        let mut seen = Delivered { from: Instant::from_millis(20_000), ..Delivered::default() };
        t.world().run(Instant::from_millis(80_000), &mut seen).expect("a legal run");
        // Headers of Multipath TCP are 80 bytes.
        let share = seen.bytes[0] as f64 / (20e6 / 8.0 * 60.0 * MSS / 1480.0);
        println!("bbr, 10 + 10 Mbit/s, {fast} ms + {slow} ms: {:.1} % of both rates", share * 100.0);
        assert!(share > 0.9, "{fast} ms + {slow} ms: {share}");
    }
}

#[test]
fn cubic_shows_what_these_tests_can_tell() {
    let deep = run("cubic", path("a", 10_000, 20, (bdp(10) * 20.0) as u32), 10, 0.0);
    assert!(f64::from(deep.usual) > 5.0 * bdp(10), "{deep:?}");
    let random = run("cubic", lossy("a", 50_000, 20, bdp(50) as u32, 0.01), 50, 0.01);
    assert!(random.share < 0.5, "{random:?}");
}
