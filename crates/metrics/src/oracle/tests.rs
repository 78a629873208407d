use super::*;
use anabranch_network::{
    BehindChange, Bottleneck, BottleneckSpec, CapacitySpec, CapacityTrace, JitterSpec, LinkSpec, Network, PathSpec,
    QueueSpec, SlotsSpec,
};
use anabranch_units::Rate;
use proptest::prelude::*;
use std::sync::Arc;

const MBIT: u64 = 1_000_000;

const fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn bottleneck(capacity: CapacitySpec) -> BottleneckSpec {
    BottleneckSpec::new(capacity, QueueSpec::Packets(1000))
}

fn fixed(bps: u64) -> BottleneckSpec {
    bottleneck(CapacitySpec::Fixed(Rate::from_bps(bps)))
}

fn path(bottleneck: Bottleneck, delay: u64, loss: LossSpec) -> PathSpec {
    let way = |bottleneck, loss| WaySpec { loss, ..WaySpec::clean(bottleneck, Duration::from_millis(delay)) };
    PathSpec {
        name: String::new(),
        down: way(bottleneck, loss),
        up: way(Bottleneck::Own(fixed(100 * MBIT)), LossSpec::None),
    }
}

fn own(mbit: u64, delay: u64) -> PathSpec {
    path(Bottleneck::Own(fixed(mbit * MBIT)), delay, LossSpec::None)
}

fn network(paths: Vec<PathSpec>) -> Topology {
    Topology { paths, links: Vec::new() }
}

/// Segments of 1000 bytes and no header: payload share 1.
const BARE: SegmentSizes = SegmentSizes { mss: 1000, plain: 0, multipath: Some(0) };

/// All paths.
fn oracle(topology: &Topology, timeline: &Timeline) -> Oracle {
    let all: Vec<usize> = (0..topology.paths.len()).collect();
    Oracle::new(topology, timeline, &all, BARE, Direction::Down)
}

/// Sizes of segments of 1400 bytes over IPv4 with timestamps.
fn full_sizes() -> SegmentSizes {
    SegmentSizes { mss: 1400, plain: header_len(4, true, None), multipath: Some(header_len(4, true, Some(8))) }
}

/// Frames from `first` ms on.
fn frames(first: u64, count: u64) -> FrameTimes {
    FrameTimes { first: ms(first), counted: 0..count }
}

/// Frames of `size` bytes every `interval` ms.
fn every(interval: u64, size: u64) -> FramePattern {
    FramePattern::steady(size, Duration::from_millis(interval))
}

#[track_caller]
fn near(value: Option<f64>, expected: f64) {
    let value = value.expect("a bound");
    assert!((value - expected).abs() <= 1e-9 * expected, "{value} instead of {expected}");
}

#[test]
fn goodput_is_the_sum_of_rate_share_and_arrivals() {
    let wlan = path(Bottleneck::Own(fixed(25 * MBIT)), 25, LossSpec::Bernoulli(0.01));
    let topology = network(vec![wlan, own(5, 65)]);
    let oracle = Oracle::new(&topology, &[], &[0, 1], full_sizes(), Direction::Down);
    let share = 1400.0 / 1480.0;
    near(oracle.goodput(ms(60_000), ms(150_000)), 25e6 * share * 0.99 + 5e6 * share);
    assert_eq!(oracle.goodput(ms(5), ms(5)), None);
    // One path alone; one that does not exist.
    near(
        Oracle::new(&topology, &[], &[1], full_sizes(), Direction::Down).goodput(ms(0), ms(10)),
        5e6 * 1400.0 / 1452.0,
    );
    assert_eq!(Oracle::new(&topology, &[], &[7], full_sizes(), Direction::Down).goodput(ms(0), ms(10)), Some(0.0));
}

#[test]
fn overhead_and_corruption_take_their_part() {
    let mut one = own(10, 5);
    one.down.overhead = 200;
    one.down.corrupt = 0.25;
    near(oracle(&network(vec![one]), &[]).goodput(ms(0), ms(1000)), 10e6 * 1000.0 / 1200.0 * 0.75);
}

#[test]
fn a_change_that_changes_nothing_leaves_the_bounds() {
    let loss = LossSpec::Bernoulli(0.02);
    let topology = network(vec![path(Bottleneck::Own(fixed(7 * MBIT)), 20, loss), own(3, 45)]);
    let timeline = [(ms(300), Change::Loss(0, Direction::Down, loss))];
    let (steady, changed) = (oracle(&topology, &[]), oracle(&topology, &timeline));
    for size in [1, 14_000, 300_000, 10_000_000] {
        let times = [&steady, &changed].map(|oracle| oracle.completion(ms(3), size).expect("a bound").as_nanos());
        assert!(times[0].abs_diff(times[1]) <= 1, "{times:?} ns for {size} bytes");
    }
    near(steady.goodput(ms(100), ms(900)), changed.goodput(ms(100), ms(900)).expect("a bound"));
    // Before the handshake is over nothing arrives.
    assert!(steady.completion(ms(0), 1) > Some(Duration::from_millis(20 * 4)));
}

#[test]
fn bursty_loss_counts_in_the_long_run() {
    let loss = LossSpec::GilbertElliott { p: 0.1, r: 0.3, h: 0.5, k: 1.0 };
    let topology = network(vec![path(Bottleneck::Own(fixed(8 * MBIT)), 5, loss)]);
    near(oracle(&topology, &[]).goodput(ms(0), ms(1000)), 8e6 * 0.875);
}

#[test]
fn a_shared_link_counts_once_and_serves_the_better_path() {
    let link = LinkSpec { name: String::new(), down: fixed(10 * MBIT), up: fixed(10 * MBIT), behind: None };
    let shared = |loss| path(Bottleneck::shared(0), 10, loss);
    let topology = Topology {
        paths: vec![shared(LossSpec::Bernoulli(0.1)), shared(LossSpec::Bernoulli(0.02)), own(4, 10)],
        links: vec![link],
    };
    near(oracle(&topology, &[]).goodput(ms(0), ms(1000)), 10e6 * 0.98 + 4e6);
    // While the better path is down, the other one has the link.
    let mut down = topology.clone();
    down.paths[1].down.outages = vec![(ms(500), ms(2000))];
    near(oracle(&down, &[]).goodput(ms(0), ms(1000)), 10e6 * (0.98 + 0.9) / 2.0 + 4e6);
}

#[test]
fn changes_and_recordings_are_integrated() {
    let half = Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(4 * MBIT));
    let up = Change::Rate(Place::Path(0), Direction::Up, Rate::from_bps(MBIT));
    let lossy = Change::Loss(0, Direction::Down, LossSpec::Bernoulli(0.5));
    let timeline = [(ms(250), up), (ms(500), half), (ms(750), lossy)];
    let fixed = network(vec![own(8, 10)]);
    near(oracle(&fixed, &timeline).goodput(ms(0), ms(1000)), (8e6 * 2.0 + 4e6 + 2e6) / 4.0);
    // One opportunity per millisecond: 12 Mbit/s, whatever rate the timeline sets.
    let trace = CapacitySpec::Trace(Arc::new(CapacityTrace::new(vec![1])));
    let recorded = network(vec![path(Bottleneck::Own(bottleneck(trace)), 10, LossSpec::None)]);
    near(oracle(&recorded, &timeline[..2]).goodput(ms(1), ms(1001)), 12e6);
}

#[test]
fn completion_by_hand() {
    // 8 Mbit/s = 1000 bytes per millisecond. SYN, SYN/ACK, ACK: 30 ms; the first byte arrives after 40 ms.
    let one = network(vec![own(8, 10)]);
    let completes = |topology: &Topology, size| oracle(topology, &[]).completion(ms(7), size);
    assert_eq!(completes(&one, 10_000), Some(Duration::from_millis(50)));
    // The second path joins after one round trip of the first: its data arrives after 20 + 80 ms.
    let two = network(vec![own(8, 10), own(8, 20)]);
    assert_eq!(completes(&two, 60_000), Some(Duration::from_millis(100)));
    assert_eq!(completes(&two, 100_000), Some(Duration::from_millis(120)));
    // The order of the paths does not matter: the nearer one may open the connection.
    let reversed = network(vec![own(8, 20), own(8, 10)]);
    for size in [20_000, 60_000, 100_000] {
        assert_eq!(completes(&reversed, size), completes(&two, size));
    }
}

#[test]
fn the_best_first_path_depends_on_how_much_there_is_to_send() {
    // Path a: 8 Mbit/s, 10 ms each way. Path b: 80 Mbit/s, 100 ms up and no delay down: 200 ms of handshake.
    let (a, mut b) = (own(8, 10), own(80, 0));
    b.up.delay = Duration::from_millis(100);
    let topology = network(vec![a, b]);
    let completes = |size| oracle(&topology, &[]).completion(ms(0), size);
    // Opened on a, (t − 40) · 1000 bytes arrive by t ms from there: 150,000 before b begins.
    assert_eq!(completes(150_000), Some(Duration::from_millis(190)));
    // Opened on b, a's bytes arrive from 140 ms on and b's from 200 on: 60,000 by then, and 11,000 a millisecond after it.
    assert_eq!(completes(180_000), Some(Duration::from_millis(200) + Duration::from_nanos(10_909_091)));
}

#[test]
fn one_path_alone_needs_no_options_of_multipath_tcp() {
    // The second path, 1000 times as slow, adds less than the options of 28 bytes in 1,480 take.
    let paths = || network(vec![own(20, 10), path(Bottleneck::Own(fixed(20_000)), 10, LossSpec::None)]);
    let both = Oracle::new(&paths(), &[], &[0, 1], full_sizes(), Direction::Down);
    near(both.goodput(ms(0), ms(1000)), 20e6 * 1400.0 / 1452.0);
    let alone = Oracle::new(&paths(), &[], &[0], SegmentSizes { multipath: None, ..full_sizes() }, Direction::Down);
    assert_eq!(both.completion(ms(0), 1_000_000), alone.completion(ms(0), 1_000_000));
    let (frames, pattern) = ([frames(0, 10)], every(1, 10_000));
    assert_eq!(both.frame_delay(&frames, ms(900), &pattern), alone.frame_delay(&frames, ms(900), &pattern));
    // Options half as wide take 20 bytes.
    assert_eq!((header_len(4, true, Some(8)), header_len(6, false, Some(4)), header_len(4, true, None)), (80, 80, 52));
}

#[test]
fn outages_delay_completion() {
    let mut one = own(8, 10);
    one.down.outages = vec![(ms(45), ms(55))];
    let completes =
        |path: &PathSpec, timeline: &Timeline| oracle(&network(vec![path.clone()]), timeline).completion(ms(0), 10_000);
    // Of what left in the outage, only the packet that was in transmission at its end arrives.
    assert_eq!(completes(&one, &[]), Some(Duration::from_millis(59) - Duration::from_nanos(1)));
    // Where packets can be held back, nothing is sure.
    one.down.reorder.probability = 0.1;
    assert_eq!(completes(&one, &[]), Some(Duration::from_millis(50)));
    // Nor is a delay that may shrink: the least one counts.
    let shrinks = Change::Delay(0, Direction::Down, Duration::from_millis(5));
    assert_eq!(completes(&own(8, 10), &[(ms(1000), shrinks)]), Some(Duration::from_millis(40)));
}

#[test]
fn frames_by_hand() {
    // 8 Mbit/s, 10 ms: 4000 bytes take 14 ms.
    let topology = network(vec![own(8, 10)]);
    let delay = |timeline: &Timeline, end| {
        oracle(&topology, timeline).frame_delay(&[frames(100, 4)], ms(end), &every(40, 4000))
    };
    assert_eq!(delay(&[], 1000), Some(Duration::from_millis(14)));
    // Half as fast from 170 ms on: due at 100, 140, 180 and 220 ms, they take 14, 14, 18 and 18 ms; of which the last is
    // only 5 ms old at 225 ms.
    let half = [(ms(170), Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(4 * MBIT)))];
    assert_eq!(delay(&half, 1000), Some(Duration::from_millis(16)));
    assert_eq!(delay(&half, 225), Some(Duration::from_micros(12_750)));
    // Nothing passes: each counts with its age.
    let dead = network(vec![own(0, 10)]);
    assert_eq!(
        oracle(&dead, &[]).frame_delay(&[frames(100, 2)], ms(200), &every(40, 1)),
        Some(Duration::from_millis(80))
    );
    assert_eq!(oracle(&topology, &[]).frame_delay(&[], ms(200), &every(40, 1)), None);
    // Frames of 4000 and 8000 bytes take 14 and 18 ms.
    let mixed =
        FramePattern::new(Duration::from_millis(40), [(Duration::ZERO, 4000), (Duration::from_millis(5), 8000)]);
    let mean = oracle(&topology, &[]).frame_delay(&[frames(100, 4)], ms(1000), &mixed);
    assert_eq!(mean, Some(Duration::from_millis(16)));
}

#[test]
fn what_cannot_arrive_has_no_bound() {
    assert_eq!(oracle(&network(vec![own(0, 10)]), &[]).completion(ms(0), 1), None);
    let hole = path(Bottleneck::Own(fixed(MBIT)), 1, LossSpec::Bernoulli(1.0));
    assert_eq!(oracle(&network(vec![hole]), &[]).completion(ms(0), 1), None);
    assert_eq!(oracle(&network(vec![]), &[]).completion(ms(0), 1), None);
    // Losses that leave something through bound nothing.
    let lossy = path(Bottleneck::Own(fixed(8 * MBIT)), 10, LossSpec::Bernoulli(0.9));
    assert_eq!(oracle(&network(vec![lossy]), &[]).completion(ms(0), 10_000), Some(Duration::from_millis(50)));
}

/// A sender that knows everything: as soon as the handshakes allow, the first on path `opening`, it keeps every queue
/// filled. Gives the times at which bytes arrived, up to `end`.
fn saturate(topology: &Topology, timeline: &Timeline, opening: usize, end: u64) -> Vec<(Instant, u64)> {
    const SEGMENT: u32 = 1000;
    let starts = |i: usize| {
        let path = &topology.paths[i];
        let (first, own) = (&topology.paths[opening], topology.round_trip(path) + topology.delay(path, Direction::Up));
        let join = if i != opening { topology.round_trip(first) } else { Duration::ZERO };
        ms(0) + join + own
    };
    let mut network: Network<()> = Network::new(topology, 1);
    let (mut changes, mut arrived, mut bytes) = (timeline.iter().peekable(), Vec::new(), 0);
    for now in (0..end * 1000).step_by(100).map(|us| ms(0) + Duration::from_micros(us)) {
        while let Some((_, change)) = changes.next_if(|(at, _)| *at <= now) {
            network.apply(now, &mut (), change);
        }
        for i in (0..topology.paths.len()).filter(|i| now >= starts(*i)) {
            while network.queue_len(now, &mut (), i, Direction::Down).packets < 4 {
                network.send(now, &mut (), i, Direction::Down, SEGMENT, ());
            }
        }
        let due = network.poll_timeout();
        while network.poll_deliver(now, Direction::Down, now, &mut ()).is_some() {
            bytes += u64::from(SEGMENT);
            // It arrived at some time since the step before; `due` is the earliest.
            arrived.push((due.unwrap_or(now).min(now), bytes));
        }
    }
    arrived
}

fn any_path() -> impl Strategy<Value = PathSpec> {
    let loss = prop_oneof![Just(LossSpec::None), (0.0..0.2).prop_map(LossSpec::Bernoulli)];
    let outages = prop::collection::vec((50..300u64, 1..60u64), 0..2);
    let recorded = prop::collection::vec(0..20u64, 1..30).prop_map(|mut opportunities| {
        opportunities.sort_unstable();
        bottleneck(CapacitySpec::Trace(Arc::new(CapacityTrace::new(opportunities))))
    });
    let bottleneck = prop_oneof![
        (1..20u64).prop_map(|mbit| Bottleneck::Own(fixed(mbit * MBIT / 2))),
        recorded.prop_map(Bottleneck::Own),
        Just(Bottleneck::shared(0)),
        Just(Bottleneck::Route(vec![0, 1])),
        Just(Bottleneck::Route(vec![2, 1])),
    ];
    (bottleneck, 0..30u64, loss, outages).prop_map(|(bottleneck, delay, loss, outages)| {
        let mut path = path(bottleneck, delay, loss);
        path.down.outages = outages.into_iter().map(|(from, long)| (ms(from), ms(from + long))).collect();
        path
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nobody_is_faster_than_the_oracle(
        paths in prop::collection::vec(any_path(), 1..4),
        changes in prop::collection::vec((1..300u64, 1..20u64, 0..30u64, 0..7usize), 0..3),
        opening in any::<prop::sample::Index>(),
        cables in prop::collection::vec((1..12u64, prop::option::of(0..20u64)), 3),
    ) {
        let link = |(n, (mbit, delay)): (usize, (u64, Option<u64>))| {
            let rate = if n == 0 { 6 } else { mbit } * MBIT;
            let way = || WaySpec::clean(Bottleneck::Route(vec![]), Duration::from_millis(delay.unwrap_or(0)));
            // A link that changes has its parts from the beginning.
            let behind = (n == 1 || delay.is_some()).then(|| Box::new([way(), way()]));
            LinkSpec { behind, ..LinkSpec::new(&n.to_string(), fixed(rate), fixed(rate)) }
        };
        let topology = Topology { paths, links: cables.into_iter().enumerate().map(link).collect() };
        let mut timeline: Vec<_> = changes.into_iter().map(|(at, mbit, delay, kind)| {
            let rate = Rate::from_bps(mbit * MBIT);
            (ms(at), match kind {
                0 => Change::Rate(Place::Path(0), Direction::Down, rate),
                1 => Change::Rate(Place::Link(0), Direction::Down, rate),
                2 => {
                    let spread = Duration::from_millis(delay);
                    Change::Jitter(0, Direction::Down, JitterSpec { spread, free: mbit % 2 == 0, ..JitterSpec::NONE })
                }
                3 => {
                    let (every, step) = (Duration::from_millis(10 * mbit), Duration::from_millis(delay));
                    let slots = SlotsSpec { every, step, ..SlotsSpec::NONE };
                    Change::Radio(0, Direction::Down, RadioChange::Slots(slots))
                }
                4 => Change::Rate(Place::Link(1), Direction::Down, rate),
                5 => Change::Behind(1, Direction::Down, BehindChange::Delay(Duration::from_millis(delay))),
                _ => Change::Delay(0, Direction::Down, Duration::from_millis(delay)),
            })
        }).collect();
        timeline.sort_by_key(|(at, _)| *at);
        let oracle = oracle(&topology, &timeline);
        let arrived = saturate(&topology, &timeline, opening.index(topology.paths.len()), 350);
        for (when, bytes) in arrived.iter().step_by(arrived.len() / 20 + 1).chain(arrived.last()) {
            // Arrivals are known to the step of 100 µs.
            let known = when.since(ms(0)) + Duration::from_micros(100);
            let bound = oracle.completion(ms(0), *bytes).expect("it arrived");
            prop_assert!(bound <= known, "{bytes} bytes at {when}, bound {bound}");
        }
    }

    #[test]
    fn the_bound_is_tight(paths in prop::collection::vec((1..20u64, 0..30u64), 1..4)) {
        let topology = network(paths.iter().map(|(mbit, delay)| own(*mbit, *delay)).collect());
        // It opens on the path that brings most by then.
        let best = |opening| saturate(&topology, &[], opening, 350).last().copied();
        let (when, bytes) = (0..paths.len()).filter_map(best).max_by_key(|(_, bytes)| *bytes).expect("something arrives");
        // Less than a packet is under way on each path, and the sender looks every 100 µs.
        let rest: u64 = paths.iter().map(|(mbit, _)| 1000 + mbit * MBIT / 8 / 10_000).sum();
        let bound = oracle(&topology, &[]).completion(ms(0), bytes + rest + 1).expect("it arrives");
        prop_assert!(bound + Duration::from_micros(100) >= when.since(ms(0)), "{bytes} bytes at {when}, bound {bound}");
    }
}

/// An upload has the rate, losses and outages of the way up, and begins half a round trip before a download.
#[test]
fn an_upload_has_a_bound_of_its_own() {
    let mut only = own(80, 10);
    only.up = WaySpec { delay: Duration::from_millis(30), ..only.up };
    only.up.bottleneck = Bottleneck::Own(fixed(8 * MBIT));
    let topology = network(vec![only]);
    let of = |direction| Oracle::new(&topology, &[], &[0], BARE, direction).completion(ms(5), 1_000_000).unwrap();
    // SYN and SYN/ACK 40 ms, a megabyte at 8 Mbit/s a second, the way up 30 ms.
    assert_eq!(of(Direction::Up), Duration::from_millis(40 + 1000 + 30));
    // The third segment 30 ms more, the megabyte 100 ms, the way down 10 ms.
    assert_eq!(of(Direction::Down), Duration::from_millis(40 + 30 + 100 + 10));
    // A second path whose join takes two round trips of its own, from the first SYN/ACK on: 40 + 2 × 20 ms. From then on both
    // carry: 8 Mbit/s × (T − 70 ms) + 8 Mbit/s × (T − 90 ms) = 8 Mbit.
    let mut second = own(80, 10);
    second.up.bottleneck = Bottleneck::Own(fixed(8 * MBIT));
    let topology = network(vec![topology.paths[0].clone(), second]);
    let over_both = Oracle::new(&topology, &[], &[0, 1], BARE, Direction::Up);
    let first_on = |n: usize| Oracle { ways: vec![over_both.ways[n].clone()] };
    assert_eq!(first_on(0).completion(ms(5), 1_000_000).unwrap(), Duration::from_millis(580));
}
