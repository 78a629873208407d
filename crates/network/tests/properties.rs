//! Properties of any network under any traffic.

mod common;

use anabranch_network::{
    ArqSpec, Bottleneck, BottleneckSpec, BucketSpec, CapacitySpec, CapacityTrace, Change, DelayDistribution,
    Discipline, DropTail, JitterSpec, LinkSpec, LossSpec, MediumSpec, Network, PathSpec, Place, QueueSpec, RadioChange,
    RadioSpec, RedSpec, ReorderSpec, SlotsSpec, Threshold, Topology, Value, WakeSpec, WaySpec,
};
use anabranch_trace::{DropCause, LinkEvent};
use anabranch_units::{Direction, Duration, Instant, Rate};
use common::{Log, bottleneck, deliver, next, path, us, way};
use proptest::prelude::*;
use std::sync::Arc;

const END: Instant = Instant::from_millis(100_000_000);

fn any_capacity() -> impl Strategy<Value = CapacitySpec> {
    let trace = prop::collection::vec(0u64..60, 1..20).prop_map(|mut opportunities| {
        opportunities.push(60);
        opportunities.sort_unstable();
        CapacitySpec::Trace(Arc::new(CapacityTrace::new(opportunities)))
    });
    let fixed = (100_000u64..50_000_000).prop_map(|bps| CapacitySpec::Fixed(Rate::from_bps(bps)));
    prop_oneof![2 => fixed, 2 => trace, 1 => any_bucket().prop_map(CapacitySpec::Bucket)]
}

fn any_limit() -> impl Strategy<Value = DropTail> {
    prop_oneof![(0u32..20).prop_map(DropTail::Packets), (0u64..30_000).prop_map(DropTail::Bytes)]
}

/// Without random disciplines, whose draws depend on the bottleneck's name.
fn any_queue() -> impl Strategy<Value = QueueSpec> {
    let times = (1u64..20_000, 1u64..50_000);
    let steady: Vec<Discipline> = Discipline::all().filter(|discipline| !discipline.is_random()).collect();
    (any_limit(), times, 0..3usize, 0..steady.len()).prop_map(move |(limit, (target, interval), kind, n)| {
        match (limit, kind) {
            (limit, 0) => {
                let mut discipline = steady[n];
                for parameter in discipline.parameters() {
                    match (parameter.name, parameter.value) {
                        ("target", Value::Time(time)) => *time = Duration::from_micros(target),
                        ("interval" | "update", Value::Time(time)) => *time = Duration::from_micros(interval),
                        _ => {}
                    }
                }
                QueueSpec::Managed(discipline, limit)
            }
            (DropTail::Packets(packets), _) => QueueSpec::Packets(packets),
            (DropTail::Bytes(bytes), _) => QueueSpec::Bytes(bytes),
        }
    })
}

fn any_bottleneck() -> impl Strategy<Value = BottleneckSpec> {
    (any_capacity(), any_queue(), prop::option::weighted(0.2, any_bucket()))
        .prop_map(|(capacity, queue, police)| BottleneckSpec { police, ..BottleneckSpec::new(capacity, queue) })
}

fn any_bucket() -> impl Strategy<Value = BucketSpec> {
    (100_000u64..50_000_000, 1_500u64..50_000).prop_map(|(bps, burst)| BucketSpec { rate: Rate::from_bps(bps), burst })
}

fn any_loss() -> impl Strategy<Value = LossSpec> {
    prop_oneof![
        Just(LossSpec::None),
        (0.0..0.5).prop_map(LossSpec::Bernoulli),
        (0.0..0.3, 0.1..1.0, 0.0..0.5, 0.9..1.0).prop_map(|(p, r, h, k)| LossSpec::GilbertElliott { p, r, h, k }),
    ]
}

/// Nearly always wider than the delay.
fn any_jitter() -> impl Strategy<Value = JitterSpec> {
    use DelayDistribution::{Normal, Pareto, ParetoNormal, Uniform};
    let distribution = prop_oneof![Just(Uniform), Just(Normal), Just(Pareto), Just(ParetoNormal)];
    let spread = prop_oneof![3 => Just(0u64), 1 => 1u64..50_000];
    (spread, 0.0..1.0, distribution, any::<bool>()).prop_map(|(spread, correlation, distribution, free)| JitterSpec {
        spread: Duration::from_micros(spread),
        correlation,
        distribution,
        free,
    })
}

fn any_arq() -> impl Strategy<Value = ArqSpec> {
    let attempts = prop_oneof![Just(None), (1u16..5).prop_map(Some)];
    (0.0..0.9, attempts, 0u64..20_000).prop_map(|(loss, attempts, delay)| ArqSpec {
        loss,
        attempts,
        delay: Duration::from_micros(delay),
        free: false,
    })
}

/// One layer under a link, on or off.
fn any_layer() -> impl Strategy<Value = RadioChange> {
    let time = |most: u64| prop_oneof![Just(0), 0..most].prop_map(Duration::from_micros);
    let slots = (time(100_000), time(20_000), 0.0..1.0, time(30_000));
    prop_oneof![
        any_arq().prop_map(RadioChange::Arq),
        time(10_000).prop_map(RadioChange::Aggregate),
        (time(50_000), time(90_000)).prop_map(|(idle, delay)| RadioChange::Wake(WakeSpec { idle, delay })),
        slots.prop_map(|(every, step, loss, burst)| RadioChange::Slots(SlotsSpec { every, step, loss, burst })),
    ]
}

fn any_radio() -> impl Strategy<Value = RadioSpec> {
    let of = |layers: Vec<RadioChange>| layers.into_iter().fold(RadioSpec::NONE, RadioSpec::with);
    prop_oneof![2 => Just(RadioSpec::NONE), 1 => prop::collection::vec(any_layer(), 1..5).prop_map(of)]
}

fn any_way() -> impl Strategy<Value = WaySpec> {
    let bottleneck = prop_oneof![any_bottleneck().prop_map(Bottleneck::Own), Just(Bottleneck::shared(0))];
    // Duplicates always or never, so that they can be counted.
    let faults = (any_loss(), prop_oneof![Just(0.0), Just(0.2)], prop_oneof![Just(0.0), Just(1.0)], 0.0..0.2);
    let outages = prop::collection::vec((0u64..100_000, 0u64..30_000), 0..3);
    (bottleneck, (0u64..50_000, any_jitter(), any_radio()), -60i32..60, faults, outages).prop_map(
        |(bottleneck, (delay, jitter, radio), overhead, faults, outages)| {
            let (loss, reorder, duplicate, corrupt) = faults;
            WaySpec {
                mtu: None,
                reports_mtu: true,
                bottleneck,
                delay: Duration::from_micros(delay),
                jitter,
                radio,
                recorded_delay: None,
                recorded_loss: None,
                device: false,
                overhead,
                loss,
                reorder: ReorderSpec { probability: reorder, by: Duration::from_millis(7) },
                duplicate,
                corrupt,
                outages: outages.into_iter().map(|(from, len)| (us(from), us(from + len))).collect(),
                middleboxes: Vec::new(),
            }
        },
    )
}

/// A topology with RED in place of drop-tail.
fn with_red(mut topology: Topology, red: RedSpec) -> Topology {
    let turn = |bottleneck: &mut BottleneckSpec| {
        if bottleneck.queue.discipline().is_none() {
            bottleneck.queue = QueueSpec::Managed(red.into(), bottleneck.queue.limit());
        }
    };
    for way in topology.paths.iter_mut().flat_map(|path| [&mut path.down, &mut path.up]) {
        if let Bottleneck::Own(own) = &mut way.bottleneck {
            turn(own);
        }
    }
    topology.links.iter_mut().flat_map(|link| [&mut link.down, &mut link.up]).for_each(turn);
    topology
}

fn any_red() -> impl Strategy<Value = RedSpec> {
    let shape = (0.0..5.0, 0.0..10.0, 0.0..1.0, 0.0..1.0, 1u32..3000);
    (shape, any::<[bool; 3]>()).prop_map(|((min, more, max_p, weight, mean_packet), [in_bytes, gentle, wait])| {
        let unit = if in_bytes { 1000.0 } else { 1.0 };
        let [min, max] = [min * unit, (min + more) * unit].map(|amount| Threshold { amount, in_bytes });
        RedSpec { min, max, max_p, weight, gentle, wait, ecn: false, mean_packet }
    })
}

fn any_managed() -> impl Strategy<Value = Topology> {
    let media = prop_oneof![1 => Just(vec![]), 1 => prop::collection::vec(0usize..3, 8)];
    (any_topology(), any_red(), any::<bool>(), media, 1u32..4).prop_map(|(topology, red, turn, media, packets)| {
        on_air(if turn { with_red(topology, red) } else { topology }, &media, packets)
    })
}

/// A topology whose bottlenecks divide media by number; 0 is none.
fn on_air(mut topology: Topology, media: &[usize], packets: u32) -> Topology {
    let ways = topology.paths.iter_mut().flat_map(|path| [&mut path.down, &mut path.up]);
    let owns = ways.filter_map(|way| match &mut way.bottleneck {
        Bottleneck::Own(own) => Some(own),
        Bottleneck::Route(_) => None,
    });
    let links = topology.links.iter_mut().flat_map(|link| [&mut link.down, &mut link.up]);
    for (bottleneck, medium) in owns.chain(links).zip(media).filter(|(_, medium)| **medium > 0) {
        let (name, overhead) = (format!("m{medium}"), Duration::from_micros(50));
        bottleneck.medium = Some(Arc::new(MediumSpec { name, overhead, packets }));
    }
    topology
}

fn any_topology() -> impl Strategy<Value = Topology> {
    let paths = prop::collection::vec((any_way(), any_way()), 1..4);
    (paths, any_bottleneck(), any_bottleneck()).prop_map(|(paths, down, up)| Topology {
        paths: paths
            .into_iter()
            .enumerate()
            .map(|(n, (down, up))| PathSpec { name: format!("p{n}"), down, up })
            .collect(),
        links: vec![LinkSpec { name: "l".into(), down, up, behind: None }],
    })
}

/// An action of a driver, and microseconds since the previous one.
#[derive(Clone, Debug)]
enum Deed {
    Send(usize, Direction, u32),
    Cross(Direction, u32),
    /// Cross traffic of the first path.
    CrossPath(Direction, u32),
    Change(Change),
}

fn any_deeds(changes: bool) -> impl Strategy<Value = Vec<(u64, Deed)>> {
    let direction = || prop_oneof![Just(Direction::Down), Just(Direction::Up)];
    let rate = || (100_000u64..50_000_000).prop_map(Rate::from_bps);
    let place = || prop_oneof![(0usize..9).prop_map(Place::Path), Just(Place::Link(0))];
    let change = prop_oneof![
        (0usize..9, direction(), rate()).prop_map(|(path, d, rate)| Change::Rate(Place::Path(path), d, rate)),
        (direction(), rate()).prop_map(|(d, rate)| Change::Rate(Place::Link(0), d, rate)),
        (0usize..9, direction(), 0u64..80_000).prop_map(|(path, d, delay)| Change::Delay(
            path,
            d,
            Duration::from_micros(delay)
        )),
        (0usize..9, direction(), any_loss()).prop_map(|(path, d, loss)| Change::Loss(path, d, loss)),
        (0usize..9, direction(), any_layer()).prop_map(|(path, d, layer)| Change::Radio(path, d, layer)),
        (place(), direction(), 1_500u64..50_000).prop_map(|(place, d, burst)| Change::Burst(place, d, burst)),
        (place(), direction(), any_bucket()).prop_map(|(place, d, bucket)| Change::Police(place, d, bucket)),
        (place(), direction(), any_limit()).prop_map(|(place, d, limit)| Change::Queue(place, d, limit)),
        (0usize..9, direction(), 0u64..30_000).prop_map(|(path, d, by)| {
            Change::Reorder(path, d, ReorderSpec { probability: 0.3, by: Duration::from_micros(by) })
        }),
    ];
    let send = (0usize..9, direction(), 0u32..3000).prop_map(|(path, d, size)| Deed::Send(path, d, size));
    let cross = (direction(), 40u32..3000).prop_map(|(d, size)| Deed::Cross(d, size));
    let cross_path = (direction(), 40u32..3000).prop_map(|(d, size)| Deed::CrossPath(d, size));
    let weight = u32::from(changes);
    let deed = prop_oneof![20 => send, 2 => cross, weight * 2 => cross_path, weight => change.prop_map(Deed::Change)];
    prop::collection::vec((prop_oneof![3 => Just(0u64), 5 => 0u64..3000, 1 => 0u64..50_000], deed), 1..200)
}

/// The change with its path index reduced to an existing path.
fn within(change: &Change, paths: usize) -> Change {
    let mut change = change.clone();
    if let Some(path) = change.path_mut() {
        *path %= paths;
    }
    change
}

/// Time, path, direction, item, corrupted.
type Arrived = (Instant, usize, Direction, u32, bool);

/// Runs `deeds`; items are numbers in order of sending. `exact`: polls whenever something is due, otherwise at each
/// deed.
fn run(topology: &Topology, deeds: &[(u64, Deed)], exact: bool) -> (Log, Vec<Arrived>) {
    let mut network = Network::new(topology, 7);
    let (mut log, mut arrived, mut now, mut item) = (Log::default(), vec![], us(0), 0);
    let fetch = |network: &mut Network<u32>, log: &mut Log, until, arrived: &mut Vec<Arrived>| {
        if exact {
            let got = deliver(network, log, until);
            arrived.extend(got.into_iter().map(|(at, d)| (at, d.path, d.direction, d.item, d.corrupted)));
        } else {
            let got = core::iter::from_fn(|| next(network, until, log));
            arrived.extend(got.map(|d| (until, d.path, d.direction, d.item, d.corrupted)));
        }
    };
    let copies = topology.paths.iter().any(|p| p.down.duplicate.max(p.up.duplicate) > 0.0);
    for (gap, deed) in deeds {
        now += Duration::from_micros(*gap);
        fetch(&mut network, &mut log, now, &mut arrived);
        match deed {
            Deed::Send(path, direction, size) => {
                network.send(now, &mut log, path % topology.paths.len(), *direction, *size, item);
                item += 1;
            }
            Deed::Cross(direction, size) => network.send_over_link(now, &mut log, 0, *direction, *size, 1),
            Deed::CrossPath(direction, size) => network.send_over_path(now, &mut log, 0, *direction, *size, 1),
            Deed::Change(change) => network.apply(now, &mut log, &within(change, topology.paths.len())),
        }
        // Each packet sent has arrived, was dropped or is under way.
        let lost = |cause| cause != DropCause::Corruption;
        let drops = log.0.iter().filter(|e| matches!(e.4, LinkEvent::Dropped(cause) if lost(cause))).count();
        let crossed = |(_, deed): &(u64, Deed)| matches!(deed, Deed::CrossPath(..));
        assert!(copies || deeds.iter().any(crossed) || item as usize == arrived.len() + drops + network.in_flight());
    }
    fetch(&mut network, &mut log, END, &mut arrived);
    network.settle(END, &mut log);
    assert_eq!((network.poll_timeout(), network.in_flight()), (None, 0));
    (log, arrived)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_packet_arrives_or_is_dropped_for_a_cause(topology in any_managed(), deeds in any_deeds(true)) {
        let (log, arrived) = run(&topology, &deeds, true);
        for (path, direction) in (0..topology.paths.len()).flat_map(|p| [(p, Direction::Down), (p, Direction::Up)]) {
            let spec = &topology.paths[path];
            let spec = spec.way(direction);
            let count = |wanted: fn(LinkEvent) -> bool| {
                log.0.iter().filter(|e| (usize::from(e.1), e.2) == (path, direction) && wanted(e.4)).count()
            };
            let sent = deeds
                .iter()
                .filter(|(_, d)| match d {
                    Deed::Send(p, d, _) => (p % topology.paths.len(), *d) == (path, direction),
                    Deed::CrossPath(d, _) => (0, *d) == (path, direction),
                    Deed::Cross(..) | Deed::Change(_) => false,
                })
                .count();
            // Cross traffic ends behind the bottleneck.
            let all_travel = path > 0 || !deeds.iter().any(|(_, d)| matches!(d, Deed::CrossPath(..)));
            let came: Vec<_> = arrived.iter().filter(|a| (a.1, a.2) == (path, direction)).collect();
            let enqueued = count(|e| matches!(e, LinkEvent::Enqueued { .. }));
            let departed = count(|e| e == LinkEvent::Departed);
            let full = count(|e| e == LinkEvent::Dropped(DropCause::Queue));
            let managed = count(|e| e == LinkEvent::Dropped(DropCause::Aqm));
            let policed = count(|e| e == LinkEvent::Dropped(DropCause::Police));
            prop_assert_eq!(sent, departed + full + managed + policed);
            // Some disciplines drop packets that waited, too: at the head, or to make room for others.
            prop_assert!((departed..=departed + managed + full).contains(&enqueued));
            let copies = if spec.duplicate > 0.0 { 2 } else { 1 };
            let survivors = departed - count(|e| e == LinkEvent::Dropped(DropCause::Loss));
            let done = came.len() + count(|e| e == LinkEvent::Dropped(DropCause::Outage));
            prop_assert!(survivors * copies == done || !all_travel && survivors * copies > done);
            let corrupted = came.iter().filter(|a| a.4).count();
            prop_assert_eq!(corrupted, count(|e| e == LinkEvent::Dropped(DropCause::Corruption)));
            // Nothing arrives during an outage, and without reordering packets arrive in order.
            prop_assert!(came.iter().all(|a| spec.outages.iter().all(|(from, to)| a.0 < *from || a.0 >= *to)));
            let holds_back = |deed: &Deed| match deed {
                Deed::Change(Change::Reorder(p, d, _)) => (p % topology.paths.len(), *d) == (path, direction),
                _ => false,
            };
            let in_order = spec.reorder.probability == 0.0 && !deeds.iter().any(|(_, deed)| holds_back(deed));
            prop_assert!(!in_order || spec.jitter.free || came.is_sorted_by_key(|a| a.3));
            prop_assert!(came.is_sorted_by_key(|a| a.0));
        }
    }

    #[test]
    fn runs_repeat_and_events_are_in_order(topology in any_managed(), deeds in any_deeds(true)) {
        let (log, arrived) = run(&topology, &deeds, true);
        prop_assert_eq!(&(&log, &arrived), &(&run(&topology, &deeds, true).0, &run(&topology, &deeds, true).1));
        // Events at a queue's head are recorded late.
        let late = |what| matches!(what, LinkEvent::Departed | LinkEvent::Dropped(DropCause::Aqm));
        let others: Vec<_> = log.0.iter().filter(|e| !late(e.4)).collect();
        prop_assert!(others.is_sorted_by_key(|e| e.0));
    }

    #[test]
    fn a_bottleneck_of_its_own_is_a_shared_one_with_one_path(topology in any_topology(), deeds in any_deeds(true)) {
        // Departures are known in advance at the one bottleneck and found later at the other.
        let mut shared = topology.clone();
        for (n, path) in shared.paths.iter_mut().enumerate() {
            let own = |way: &mut WaySpec| match core::mem::replace(&mut way.bottleneck, Bottleneck::shared(n + 1)) {
                Bottleneck::Own(own) => own,
                route @ Bottleneck::Route(_) => {
                    way.bottleneck = route;
                    bottleneck(QueueSpec::Packets(0))
                }
            };
            shared.links.push(LinkSpec::new(&format!("l{n}"), own(&mut path.down), own(&mut path.up)));
        }
        // A layer applies to packets that join the way: known in advance, they have done so before.
        let deeds: Vec<_> = deeds
            .into_iter()
            .filter(|(_, deed)| !matches!(deed, Deed::Change(Change::Radio(..))))
            .collect();
        let moved = |deed: &Deed| {
            let mut deed = deed.clone();
            if let Deed::Change(change) = &mut deed
                && let Some(place) = change.bottleneck_mut()
                && let Place::Path(path) = *place
            {
                *place = Place::Link(path % topology.paths.len() + 1);
            }
            deed
        };
        let moved: Vec<_> = deeds.iter().map(|(gap, deed)| (*gap, moved(deed))).collect();
        let sorted = |mut log: Log| {
            log.0.sort_by_key(|e| (e.0, e.1, e.2 as u8, format!("{:?}", (e.3, e.4))));
            log
        };
        let ((log, arrived), (same, there)) = (run(&topology, &deeds, true), run(&shared, &moved, true));
        prop_assert_eq!(arrived, there);
        prop_assert_eq!(sorted(log), sorted(same));
    }

    #[test]
    fn a_lazy_driver_loses_nothing(topology in any_managed(), deeds in any_deeds(true)) {
        // Only losses that depend on the time of a change differ: the lazy driver's changes are on time, too.
        let (exact, lazy) = (run(&topology, &deeds, true).1, run(&topology, &deeds, false).1);
        // It looks for those of one direction after those of the other.
        let items = |arrived: &[Arrived]| {
            let mut items: Vec<_> = arrived.iter().map(|a| (a.1, a.2, a.3, a.4)).collect();
            items.sort_by_key(|(_, direction, ..)| *direction);
            items
        };
        prop_assert_eq!(items(&exact), items(&lazy));
    }

    #[test]
    fn luck_depends_on_the_packet_alone(
        loss in any_loss(),
        first in prop::collection::vec((0u64..3000, 40u32..1500), 150),
        second in prop::collection::vec((0u64..3000, 40u32..1500), 150),
    ) {
        // The same packets by number, at other times and sizes, with other impairments beside the loss.
        let mut spec = way(Bottleneck::Own(bottleneck(QueueSpec::Packets(1000))), Duration::from_millis(3));
        spec.loss = loss;
        let mut other = spec.clone();
        other.reorder = ReorderSpec { probability: 0.3, by: Duration::from_millis(4) };
        other.corrupt = 0.1;
        let survivors = |down: &WaySpec, packets: &[(u64, u32)]| {
            let topology = Topology { paths: vec![path("a", down.clone())], links: vec![] };
            let deeds: Vec<_> =
                packets.iter().map(|(gap, size)| (*gap, Deed::Send(0, Direction::Down, *size))).collect();
            let mut items: Vec<_> = run(&topology, &deeds, true).1.into_iter().map(|a| a.3).collect();
            items.sort_unstable();
            items
        };
        prop_assert_eq!(survivors(&spec, &first), survivors(&other, &second));
    }

    /// Comparison with the textbook recursion: departure = max(arrival, previous departure) + size/rate.
    #[test]
    fn droptail_is_lindleys_queue(
        bps in 100_000u64..50_000_000,
        limit in 0usize..20,
        delays in prop::collection::vec(0u64..50_000, 3),
        deeds in any_deeds(false),
    ) {
        let spec = BottleneckSpec::new(CapacitySpec::Fixed(Rate::from_bps(bps)), QueueSpec::Packets(limit as u32));
        let over = |n: usize| way(Bottleneck::shared(0), Duration::from_micros(delays[n]));
        let topology = Topology {
            paths: (0..3).map(|n| PathSpec { name: format!("p{n}"), down: over(n), up: over(n) }).collect(),
            links: vec![LinkSpec { name: "l".into(), down: spec.clone(), up: spec, behind: None }],
        };
        let (mut now, mut item, mut expected) = (us(0), 0, vec![]);
        // Times at which accepted packets begin transmission and leave.
        let mut accepted: [Vec<(Instant, Instant)>; 2] = Default::default();
        for (gap, deed) in &deeds {
            now += Duration::from_micros(*gap);
            let (direction, size) = match deed {
                Deed::Send(_, direction, size) | Deed::Cross(direction, size) => (*direction, *size),
                Deed::CrossPath(..) | Deed::Change(_) => unreachable!(),
            };
            let accepted = &mut accepted[direction as usize];
            let free = accepted.last().map_or(us(0), |(_, leaves)| *leaves);
            let waiting = accepted.iter().filter(|(starts, _)| *starts > now).count();
            let leaves = now.max(free) + Rate::from_bps(bps).time_for(size.into());
            let taken = free <= now || waiting < limit;
            if taken {
                accepted.push((now.max(free), leaves));
            }
            if let Deed::Send(path, ..) = deed {
                let path = path % 3;
                if taken {
                    expected.push((leaves + Duration::from_micros(delays[path]), item, path, direction));
                }
                item += 1;
            }
        }
        // Packets of both directions that arrive at one time: each direction in its order.
        expected.sort_unstable_by_key(|(at, item, _, direction)| (*at, *direction as u8, *item));
        let got: Vec<_> = run(&topology, &deeds, true).1.into_iter().map(|a| (a.0, a.3, a.1, a.2)).collect();
        prop_assert_eq!(got, expected);
    }
}
