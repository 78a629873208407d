//! The effect of active queue management on the queue that TCP builds.

mod common;

use anabranch_network::{Bottleneck, CodelSpec, Discipline, DropTail, QueueSpec, RedSpec, Threshold};
use anabranch_trace::{Digest, DropCause, Event, LinkEvent, Origin, Recorder, Tee};
use anabranch_units::{Direction, Instant, PathId};
use common::{Delivered, Transfer, path};
use std::collections::VecDeque;

/// Delays and queue lengths of packets to the client, from a time on.
#[derive(Debug, Default)]
struct Seen {
    from: Instant,
    /// When each packet inside arrived.
    inside: VecDeque<Instant>,
    /// Seconds from arrival to departure.
    stays: Vec<f64>,
    lengths: Vec<f64>,
    /// Early drops are at the head, of packets that are inside.
    at_head: bool,
    early: usize,
    full: usize,
}

impl Recorder for Seen {
    fn record(&mut self, now: Instant, _origin: Origin, event: &Event) {
        let Event::Link { direction: Direction::Down, what, .. } = event else { return };
        let counts = now >= self.from;
        match what {
            LinkEvent::Enqueued { queue_packets, .. } => {
                self.inside.push_back(now);
                self.lengths.extend(counts.then_some(f64::from(*queue_packets)));
            }
            LinkEvent::Departed => {
                let came = self.inside.pop_front().expect("what leaves has come");
                self.stays.extend(counts.then_some(now.since(came).as_secs_f64()));
            }
            LinkEvent::Dropped(DropCause::Aqm) => {
                self.early += usize::from(counts);
                if self.at_head {
                    self.inside.pop_front();
                }
            }
            LinkEvent::Dropped(_) => self.full += usize::from(counts),
            LinkEvent::Marked => {}
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// 8 Mbit/s and 20 ms in each direction behind `queue`, for Reno.
fn transfer(queue: QueueSpec) -> Transfer {
    let mut link = path("a", 8_000, 20, 1000);
    if let Bottleneck::Own(own) = &mut link.down.bottleneck {
        own.queue = queue;
    }
    let mut t = Transfer::new(vec![link]);
    (t.congestion, t.settings.mptcp) = ("reno".into(), false);
    t
}

/// Two minutes of several flows after the first 20 s; with the delivered share of the rate.
fn run(queue: QueueSpec, flows: u32) -> (Seen, f64) {
    let (from, at_head) = (Instant::from_millis(20_000), matches!(queue.discipline(), Some(Discipline::Codel(_))));
    let mut seen = Tee(Delivered { from, ..Delivered::default() }, Seen { from, at_head, ..Seen::default() });
    let t = transfer(queue);
    let flows = (0..flows).map(|n| t.flow(n, &[(PathId(0), false)])).collect();
    t.world_of(flows).run(Instant::from_millis(140_000), &mut seen).expect("a legal run");
    let Tee(delivered, seen) = seen;
    (seen, delivered.bytes.iter().sum::<u64>() as f64 / (1e6 * 120.0) * 1452.0 / 1400.0)
}

#[test]
fn codel_keeps_the_standing_delay_near_its_target() {
    let limit = DropTail::Packets(1000);
    let (unmanaged, _) = run(QueueSpec::Packets(1000), 1);
    let (codel, share) = run(QueueSpec::Managed(CodelSpec::default().into(), limit), 1);
    // Reno fills a queue of 1000 packets: more than a second.
    println!("drop-tail: {:.1} ms mean stay", mean(&unmanaged.stays) * 1e3);
    assert!(mean(&unmanaged.stays) > 0.5, "{}", mean(&unmanaged.stays));
    // A packet's stay is its wait and its own transmission of 1.45 ms. Each drop halves a window that exceeds the
    // path's own round trip by a few milliseconds, so the mean is about the target, and the least of any 200 ms is
    // below.
    let wait = mean(&codel.stays) - 0.001_452;
    println!("CoDel: {:.2} ms mean wait, {} drops, {:.1} % of the rate", wait * 1e3, codel.early, share * 100.0);
    assert!((0.001..0.010).contains(&wait), "{wait}");
    assert!(codel.early > 10 && codel.full == 0, "{} {}", codel.early, codel.full);
    assert!(share > 0.8, "{share}");
}

#[test]
fn red_keeps_the_mean_queue_between_its_thresholds() {
    let spec = RedSpec { min: Threshold::packets(10.0), mean_packet: 1452, ..RedSpec::default() };
    let (red, share) = run(QueueSpec::Managed(spec.into(), DropTail::Packets(1000)), 4);
    let length = mean(&red.lengths);
    println!("RED: {length:.1} packets, {} early drops, {:.1} % of the rate", red.early, share * 100.0);
    assert!((10.0..30.0).contains(&length), "{length}");
    assert!(red.early > 10 && red.full == 0, "{} {}", red.early, red.full);
    assert!(share > 0.9, "{share}");
}

#[test]
fn a_seed_makes_a_managed_run() {
    let digest = |queue, seed, wire| {
        let mut t = transfer(queue);
        (t.seed, t.checks.wire) = (seed, wire);
        let mut digest = Digest::new();
        t.world().run(Instant::from_millis(30_000), &mut digest).expect("a legal run");
        digest.finish()
    };
    let limit = DropTail::Packets(1000);
    let (red, codel) =
        (QueueSpec::Managed(RedSpec::default().into(), limit), QueueSpec::Managed(CodelSpec::default().into(), limit));
    assert_eq!(digest(red, 1, false), digest(red, 1, true));
    assert_ne!(digest(red, 1, false), digest(red, 2, false));
    assert_eq!(digest(codel, 1, false), digest(codel, 1, true));
}
