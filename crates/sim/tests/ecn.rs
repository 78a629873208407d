//! Explicit congestion notification between two engines, across queues that mark (RFC 3168).

mod common;

use anabranch_network::{Bottleneck, BottleneckSpec, CodelSpec, Discipline, DropTail, QueueSpec, RedSpec, Threshold};
use anabranch_trace::{CloseReason, Digest, DropCause, Event, LinkEvent, Origin, Recorder, SendKind, Tee};
use anabranch_units::{Direction, Instant, PathId, Rng, Side};
use anabranch_wire::{Ecn, Flags, Packet};
use common::random::random_transfer;
use common::{Delivered, Transfer, path};

/// Far longer than any of the random networks needs.
const LIMIT: Instant = Instant::from_millis(2 * 3600 * 1000);

/// Marks, their consequences, and the bits of packets.
#[derive(Debug, Default)]
struct Marks {
    marked: usize,
    dropped: usize,
    /// Windows reduced because of a mark, and packets that report a reduction.
    reduced: usize,
    reported: usize,
    retransmitted: usize,
    /// Pure acknowledgments that are ECN-capable, and new data that is not.
    wrong: usize,
    ended: Vec<CloseReason>,
}

impl Recorder for Marks {
    fn record(&mut self, _now: Instant, _origin: Origin, event: &Event) {
        match event {
            Event::Link { what: LinkEvent::Marked, .. } => self.marked += 1,
            Event::Link { what: LinkEvent::Dropped(DropCause::Aqm), .. } => self.dropped += 1,
            Event::Marked => self.reduced += 1,
            Event::DataSent { kind: SendKind::Retransmission, .. } => self.retransmitted += 1,
            Event::Closed(why) => self.ended.push(*why),
            _ => {}
        }
    }

    fn packet(&mut self, _now: Instant, _host: Side, sent: bool, _path: PathId, packet: &Packet) {
        let segment = &packet.segment;
        if sent {
            self.reported += usize::from(segment.flags.has(Flags::ACK | Flags::CWR));
            self.wrong += usize::from(segment.payload.is_empty() && segment.ecn != Ecn::NotEct);
        }
    }
}

/// The queues of all paths are managed and mark; what is not capable is dropped.
fn managed(mut transfer: Transfer, rng: &mut Rng) -> Transfer {
    let mut manage = |own: &mut BottleneckSpec| {
        let limit = own.queue.limit();
        own.queue = match rng.chance(0.5) {
            true => QueueSpec::Managed(CodelSpec { ecn: true, ..CodelSpec::default() }.into(), limit),
            false => QueueSpec::Managed(RedSpec { ecn: true, weight: 0.1, ..RedSpec::default() }.into(), limit),
        };
    };
    for way in transfer.paths.iter_mut().flat_map(|path| [&mut path.down, &mut path.up]) {
        if let Bottleneck::Own(own) = &mut way.bottleneck {
            manage(own);
        }
    }
    transfer.settings.tcp.ecn = true;
    transfer
}

/// One path of 8 Mbit/s and 20 ms each way behind `queue`, for one flow of plain TCP without end.
fn lone(queue: QueueSpec, ecn: bool, congestion: &str) -> Transfer {
    let mut link = path("a", 8_000, 20, 1000);
    if let Bottleneck::Own(own) = &mut link.down.bottleneck {
        own.queue = queue;
    }
    let mut transfer = Transfer::new(vec![link]);
    (transfer.congestion, transfer.settings.mptcp, transfer.settings.tcp.ecn) = (congestion.into(), false, ecn);
    transfer
}

/// A minute of it, and the delivered share of the rate.
fn minute(transfer: &Transfer) -> (Marks, f64) {
    let mut seen = Tee(Delivered::default(), Marks::default());
    transfer.world().run(Instant::from_millis(60_000), &mut seen).expect("a legal run");
    let Tee(delivered, marks) = seen;
    (marks, delivered.bytes[0] as f64 * 8.0 / (60.0 * 8e6))
}

const LIMITED: DropTail = DropTail::Packets(1000);

fn codel(ecn: bool) -> QueueSpec {
    QueueSpec::Managed(CodelSpec { ecn, ..CodelSpec::default() }.into(), LIMITED)
}

fn red(ecn: bool) -> QueueSpec {
    QueueSpec::Managed(
        RedSpec { min: Threshold::packets(10.0), mean_packet: 1452, ecn, ..RedSpec::default() }.into(),
        LIMITED,
    )
}

#[test]
fn marks_slow_a_sender_down_without_a_loss() {
    for queue in [codel(true), red(true)] {
        for congestion in ["reno", "cubic", "lia", "olia", "veno"] {
            let (marks, share) = minute(&lone(queue, true, congestion));
            assert!(marks.marked > 10 && marks.reduced > 10, "{congestion}: {marks:?}");
            // Slow start may overshoot RED's upper threshold, beyond which packets are dropped.
            let steady = matches!(queue.discipline(), Some(Discipline::Codel(_)));
            assert!(!steady || (marks.dropped, marks.retransmitted) == (0, 0), "{congestion}: {marks:?}");
            assert!(marks.reduced <= marks.marked && marks.reported >= marks.reduced - 1, "{congestion}: {marks:?}");
            assert_eq!(marks.wrong, 0);
            assert!(share > 0.7, "{congestion}: {share}");
        }
    }
}

#[test]
fn who_does_not_speak_it_meets_drops_and_whoever_does_is_not_marked_by_a_queue_that_does_not() {
    let (deaf, _) = minute(&lone(codel(true), false, "reno"));
    assert!(deaf.marked == 0 && deaf.reduced == 0 && deaf.dropped > 10, "{deaf:?}");
    let (alone, _) = minute(&lone(codel(false), true, "reno"));
    assert!(alone.marked == 0 && alone.reduced == 0 && alone.dropped > 10, "{alone:?}");
}

/// A rate-based control knows the path's rate, and ignores marks as it ignores single losses; the peer still learns by CWR that it
/// need not repeat them.
#[test]
fn bbr_is_told_and_goes_on() {
    let (marks, share) = minute(&lone(codel(true), true, "bbr"));
    assert!(marks.marked > 10 && marks.reported > 10 && share > 0.8, "{share}: {marks:?}");
}

#[test]
fn a_seed_makes_a_marked_run_and_bytes_carry_what_values_do() {
    let digest = |ecn, wire| {
        let mut transfer = lone(red(true), ecn, "cubic");
        transfer.checks.wire = wire;
        let mut digest = Digest::new();
        transfer.world().run(Instant::from_millis(20_000), &mut digest).expect("a legal run");
        digest.finish()
    };
    assert_eq!(digest(true, false), digest(true, false));
    assert_eq!(digest(true, false), digest(true, true));
    assert_ne!(digest(true, false), digest(false, false));
}

/// Over random networks with losses, outages and changes: every byte arrives, once and in order (the sink verifies it), and both ends
/// close in order, or the handshake fails.
#[test]
fn marking_networks_deliver_everything() {
    let mut marked = 0;
    for seed in 0..150u64 {
        let schedulers = ["minrtt", "roundrobin", "blest", "redundant", "ecf"];
        let congestion = ["reno", "cubic", "lia", "olia", "balia", "bbr", "wvegas"];
        let pick = |names: &[&'static str]| names[seed as usize % names.len()];
        let transfer = random_transfer(seed, pick(&schedulers), pick(&congestion));
        let transfer = managed(transfer, &mut Rng::stream(seed, "marking"));
        let all: Vec<_> = (0..transfer.paths.len()).map(|n| (PathId(n as u8), false)).collect();
        let mut flow = transfer.flow(0, &all);
        flow.awaited = false;
        let mut seen = Tee(Delivered::default(), Marks::default());
        let mut world = transfer.world_of(vec![flow]);
        while world.now() < LIMIT && seen.1.ended.len() < 2 {
            let until = world.now() + common::ms(10_000);
            world.run(until, &mut seen).unwrap_or_else(|stuck| panic!("seed {seed}: {stuck}"));
        }
        let Tee(delivered, marks) = seen;
        let bytes = delivered.bytes.first().copied().unwrap_or(0);
        let finished = marks.ended == [CloseReason::Finished; 2];
        assert!(finished && Some(bytes) == transfer.size || bytes == 0, "seed {seed}: {bytes} bytes, {marks:?}");
        assert_eq!((marks.wrong, delivered.stalls), (0, 0), "seed {seed}");
        marked += marks.marked;
    }
    assert!(marked > 300, "{marked}");
}

/// A mark on one path does not concern another one.
#[test]
fn a_mark_is_of_its_path() {
    let mut transfer = Transfer::new(vec![path("a", 8_000, 20, 1000), path("b", 8_000, 20, 1000)]);
    if let Bottleneck::Own(own) = &mut transfer.paths[0].down.bottleneck {
        own.queue = codel(true);
    }
    transfer.settings.tcp.ecn = true;
    #[derive(Default)]
    struct Paths([usize; 2], [usize; 2]);
    impl Recorder for Paths {
        fn record(&mut self, _now: Instant, origin: Origin, event: &Event) {
            match event {
                Event::Link { direction: Direction::Down, what: LinkEvent::Marked, .. } => {
                    self.0[origin.path.index()] += 1
                }
                Event::Marked => self.1[origin.path.index()] += 1,
                _ => {}
            }
        }
    }
    let mut seen = Paths::default();
    transfer.world().run(Instant::from_millis(20_000), &mut seen).expect("a legal run");
    let Paths([a, b], [reduced, other]) = seen;
    assert!(a > 5 && reduced > 5, "{a} {reduced}");
    assert_eq!((b, other), (0, 0));
}
