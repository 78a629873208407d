//! Routes over several links: times by hand, and what holds of any route.

mod common;

use anabranch_network::{
    BehindChange, Bottleneck, BottleneckSpec, BucketSpec, CapacitySpec, Change, Delivery, LinkSpec, LossSpec,
    MediumSpec, Network, PathSpec, Place, QueueSpec, ReorderSpec, Topology, WakeSpec, WaySpec,
};
use anabranch_trace::{DropCause, LinkEvent};
use anabranch_units::{Direction, Duration, Instant, Rate, Rng};
use common::{Log, deliver, us};
use proptest::prelude::*;
use std::sync::Arc;

const END: Instant = Instant::from_millis(100_000_000);

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// A bottleneck of so many kbit/s and packets.
fn end(kbit: u64, packets: u32) -> BottleneckSpec {
    BottleneckSpec::new(CapacitySpec::Fixed(Rate::from_bps(kbit * 1000)), QueueSpec::Packets(packets))
}

/// The part of a link behind its bottleneck.
fn cable(delay: u64) -> WaySpec {
    WaySpec::clean(Bottleneck::Route(Vec::new()), micros(delay))
}

/// A link of so many kbit/s, packets and microseconds, both directions.
fn link(name: &str, kbit: u64, packets: u32, delay: u64) -> LinkSpec {
    let behind = Some(Box::new([cable(delay), cable(delay)]));
    LinkSpec { behind, ..LinkSpec::new(name, end(kbit, packets), end(kbit, packets)) }
}

/// A path over these links, in the order of the way down, with so many microseconds of its own.
fn over(name: &str, links: &[usize], delay: u64) -> PathSpec {
    let way = |links: Vec<usize>| WaySpec::clean(Bottleneck::Route(links), micros(delay));
    let back = links.iter().rev().copied().collect();
    PathSpec { name: name.into(), down: way(links.to_vec()), up: way(back) }
}

/// Nanoseconds at which packets of a path arrive in a direction.
fn arrivals(got: &[(Instant, Delivery<u32>)], path: usize, direction: Direction) -> Vec<u64> {
    let of = got.iter().filter(|(_, delivery)| (delivery.path, delivery.direction) == (path, direction));
    of.map(|(at, _)| at.as_nanos()).collect()
}

#[test]
fn three_links_delay_a_packet_by_the_sum_of_their_parts() {
    // 1500 bytes take 1 ms, 4 ms and 2 ms; 5 + 7 + 11 ms on the links and 3 ms on the path.
    let links = vec![link("a", 12_000, 9, 5_000), link("b", 3_000, 9, 7_000), link("c", 6_000, 9, 11_000)];
    let topology = Topology { paths: vec![over("p", &[0, 1, 2], 3_000)], links };
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    for n in 0..3 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, n);
    }
    let got = deliver(&mut network, &mut log, END);
    // The narrowest link, b, spaces them by 4 ms: the others are idle when they come.
    let first = 1_000_000 + 5_000_000 + 4_000_000 + 7_000_000 + 2_000_000 + 11_000_000 + 3_000_000;
    assert_eq!(arrivals(&got, 0, Direction::Down), [first, first + 4_000_000, first + 8_000_000]);
    // The path's queue events are those of b: the packets come every millisecond from 6 ms on.
    assert_eq!(log.queues(), [(0, 0), (1, 1500), (2, 3000)]);
    assert_eq!(log.departures(), [10_000, 14_000, 18_000]);
    // The way back goes over c, b and a: 40 bytes take 26⅔ µs, 53⅓ µs and 106⅔ µs, each rounded up.
    network.send(us(50_000), &mut log, 0, Direction::Up, 40, 9);
    let got = deliver(&mut network, &mut log, END);
    let times = [6_000, 3_000, 12_000].map(|kbit| Rate::from_bps(kbit * 1000).time_for(40).as_nanos());
    assert_eq!(arrivals(&got, 0, Direction::Up), [50_000_000 + times.iter().sum::<u64>() + 26_000_000]);
}

#[test]
fn a_router_reports_its_mtu_after_the_delay_of_the_way_back() {
    let mut path = over("p", &[0, 1], 3_000);
    path.down.mtu = Some(1000);
    let topology = Topology { paths: vec![path], links: vec![link("a", 1000, 9, 5_000), link("b", 1000, 9, 7_000)] };
    let network = Network::<u32>::new(&topology, 1);
    let refused = network.refuse(us(1_000), &mut Log::default(), 0, Direction::Down, 1500);
    assert_eq!(refused, Some(anabranch_network::Refused { mtu: 1000, reported: Some(us(16_000)) }));
}

#[test]
fn each_link_drops_at_its_own_queue_and_says_so() {
    // Five packets at once; a has room for all, b for one that waits, and takes twice as long.
    let links = vec![link("a", 12_000, 9, 1_000), link("b", 6_000, 1, 1_000)];
    let topology = Topology { paths: vec![over("p", &[0, 1], 0)], links };
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    for n in 0..5 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, n);
    }
    let got = deliver(&mut network, &mut log, END);
    // At b: 2, 3, 4, 5, 6 ms; b is free at 4 and 6 ms. The fourth finds one in transmission until 6 and one waiting.
    let items: Vec<u32> = got.iter().map(|(_, delivery)| delivery.item).collect();
    assert_eq!(items, [0, 1, 2, 4]);
    assert_eq!(arrivals(&got, 0, Direction::Down), [5_000_000, 7_000_000, 9_000_000, 11_000_000]);
    assert_eq!(log.drops(DropCause::Queue), [5_000]);
    let [a, b] = [0, 1].map(|link| network.link_counts(link, Direction::Down));
    assert_eq!((a.packets, a.drops.total(), a.queue_max), (5, 0, 4));
    assert_eq!((b.packets, b.bytes, b.drops.queue, b.drops.total(), b.queue_max), (4, 6000, 1, 1, 1));
    assert_eq!(network.link_counts(1, Direction::Up).packets, 0);
}

#[test]
fn behind_an_md1_queue_an_equal_server_never_keeps_a_packet_waiting() {
    let topology = |links: &[usize]| Topology {
        paths: vec![over("p", links, 0)],
        links: vec![link("a", 12_000, 1_000_000, 0), link("b", 12_000, 1_000_000, 0)],
    };
    // Poisson arrivals that use nine tenths of a server whose service takes 1 ms.
    let times = |links: &[usize]| {
        let (mut network, mut log, mut rng) =
            (Network::new(&topology(links), 1), Log::default(), Rng::stream(7, "poisson"));
        let (mut now, mut got) = (us(0), Vec::new());
        for n in 0..20_000 {
            now += Duration::from_nanos((rng.exponential() * 1e6 / 0.9) as u64);
            got.extend(deliver(&mut network, &mut log, now));
            network.send(now, &mut log, 0, Direction::Down, 1500, n);
        }
        got.extend(deliver(&mut network, &mut log, END));
        arrivals(&got, 0, Direction::Down)
    };
    let (one, two) = (times(&[0]), times(&[0, 1]));
    let later: Vec<u64> = one.iter().map(|at| at + 1_000_000).collect();
    assert!(later == two, "a packet waited at the second server");
}

#[test]
fn the_lookahead_is_the_least_delay_behind_a_link() {
    let links = vec![link("a", 1000, 9, 5_000), link("b", 1000, 9, 7_000), link("c", 1000, 9, 2_000)];
    let lookahead =
        |paths: Vec<PathSpec>| Network::<u32>::new(&Topology { paths, links: links.clone() }, 1).lookahead();
    let of = |links: &[usize], own| lookahead(vec![over("p", links, own)]);
    // One after the other: from the last link on, down and up.
    assert_eq!(of(&[0, 1], 0), micros(5_000));
    assert_eq!(of(&[0], 0), micros(5_000));
    assert_eq!(of(&[0, 1, 2], 1_000), micros(3_000));
    // On the way up, q ends behind b, 4 ms before its host, where p continues to a.
    assert_eq!(lookahead(vec![over("p", &[0, 1], 1_000), over("q", &[1], 4_000)]), micros(4_000));
    assert_eq!(lookahead(vec![over("p", &[0, 1], 1_000), over("q", &[1], 0)]), Duration::ZERO);
    assert_eq!(lookahead(vec![over("p", &[0, 1], 1_000), over("r", &[2], 0)]), micros(2_000));
    // The medium of a station couples both directions.
    let mut on_air = links.clone();
    let medium = MediumSpec { name: "air".into(), overhead: micros(50), packets: 1 };
    on_air[0].down.medium = Some(Arc::new(medium));
    let topology = Topology { paths: vec![over("p", &[0, 1], 0)], links: on_air };
    assert_eq!(Network::<u32>::new(&topology, 1).lookahead(), Duration::ZERO);
}

#[test]
fn a_change_behind_a_link_counts_for_packets_that_leave_it_later() {
    let topology = Topology {
        paths: vec![over("p", &[0, 1], 0)],
        links: vec![link("a", 12_000, 9, 5_000), link("b", 12_000, 9, 0)],
    };
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    network.send(us(0), &mut log, 0, Direction::Down, 1500, 0);
    network.send(us(0), &mut log, 0, Direction::Down, 1500, 1);
    let change = Change::Behind(0, Direction::Down, BehindChange::Delay(micros(9_000)));
    network.apply(us(1_500), &mut log, &change);
    let got = deliver(&mut network, &mut log, END);
    // The first left a at 1 ms, the second at 2 ms.
    assert_eq!(arrivals(&got, 0, Direction::Down), [7_000_000, 12_000_000]);
    let lost = Change::Behind(1, Direction::Down, BehindChange::Loss(LossSpec::Bernoulli(1.0)));
    network.apply(us(20_000), &mut log, &lost);
    network.send(us(20_000), &mut log, 0, Direction::Down, 1500, 2);
    assert_eq!(deliver(&mut network, &mut log, END), []);
    assert_eq!((log.drops(DropCause::Loss), network.link_counts(1, Direction::Down).drops.loss), (vec![31_000], 1));
}

#[test]
fn cross_traffic_leaves_behind_its_last_link() {
    let topology = Topology {
        paths: vec![over("p", &[0, 1, 2], 0), over("cross", &[0, 1], 0)],
        links: vec![link("a", 12_000, 9, 0), link("b", 12_000, 9, 0), link("c", 12_000, 9, 0)],
    };
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    network.send_over_path(us(0), &mut log, 1, Direction::Down, 1500, 5);
    network.send(us(0), &mut log, 0, Direction::Down, 1500, 0);
    let got = deliver(&mut network, &mut log, END);
    assert_eq!(arrivals(&got, 0, Direction::Down), [4_000_000], "it waits once, behind the other");
    let packets = [0, 1, 2].map(|link| network.link_counts(link, Direction::Down).packets);
    assert_eq!(packets, [2, 2, 1]);
}

fn any_cable() -> impl Strategy<Value = WaySpec> {
    let loss = prop_oneof![2 => Just(0.0), 1 => 0.0..0.3];
    let delay = prop_oneof![1 => Just(0u64), 3 => 0u64..20_000];
    let jitter = prop_oneof![2 => Just(0u64), 1 => 0u64..5_000];
    (delay, loss, any::<bool>(), 0.0..0.2, prop_oneof![2 => Just(0.0), 1 => Just(0.2)], jitter).prop_map(
        |(delay, loss, holds, corrupt, duplicate, spread)| {
            let mut way = cable(delay);
            way.loss = if loss > 0.0 { LossSpec::Bernoulli(loss) } else { LossSpec::None };
            way.reorder = ReorderSpec { probability: if holds { 0.2 } else { 0.0 }, by: micros(3_000) };
            way.corrupt = if holds { corrupt } else { 0.0 };
            way.duplicate = duplicate;
            way.jitter.spread = micros(spread.min(delay));
            way
        },
    )
}

fn any_link() -> impl Strategy<Value = LinkSpec> {
    let side = || (500u64..50_000, 0u32..12, any::<bool>(), any_cable());
    (side(), side(), prop::option::weighted(0.2, 2_000u64..20_000)).prop_map(|(down, up, police)| {
        let made = |(kbit, packets, managed, _): &(u64, u32, bool, WaySpec)| {
            let mut end = end(*kbit, *packets);
            if *managed {
                let codel = anabranch_network::CodelSpec::default();
                end.queue = QueueSpec::Managed(codel.into(), anabranch_network::DropTail::Packets(*packets));
            }
            end.police = police.map(|burst| BucketSpec { rate: Rate::from_bps(5_000_000), burst });
            end
        };
        let behind = Some(Box::new([down.3.clone(), up.3.clone()]));
        LinkSpec { behind, ..LinkSpec::new("", made(&down), made(&up)) }
    })
}

/// Links, and paths over any of them in any order; some end at hosts whose device sleeps.
fn any_topology() -> impl Strategy<Value = Topology> {
    let paths = prop::collection::vec((prop::collection::vec(0usize..5, 1..5), 0u64..9_000, 0u32..10), 1..5);
    let air = prop_oneof![3 => Just(0usize), 1 => 1usize..5];
    (prop::collection::vec(any_link(), 1..5), paths, air).prop_map(|(mut links, paths, air)| {
        for (n, link) in links.iter_mut().enumerate() {
            link.name = format!("l{n}");
            if n < air {
                let medium = Arc::new(MediumSpec { name: "air".into(), overhead: micros(50), packets: 2 });
                (link.down.medium, link.up.medium) = (Some(medium.clone()), Some(medium));
            }
        }
        let count = links.len();
        let path = |(n, (route, delay, sleeps)): (usize, (Vec<usize>, u64, u32))| {
            let mut crossed: Vec<usize> = Vec::new();
            route.into_iter().map(|link| link % count).for_each(|link| {
                if !crossed.contains(&link) {
                    crossed.push(link);
                }
            });
            let mut path = over(&format!("p{n}"), &crossed, delay);
            if sleeps == 0 {
                path.down.radio.wake = WakeSpec { idle: micros(5_000), delay: micros(2_000) };
            }
            path
        };
        Topology { paths: paths.into_iter().enumerate().map(path).collect(), links }
    })
}

/// Microseconds since the last packet, path or link, direction, bytes; every eighth is cross traffic.
fn any_packets() -> impl Strategy<Value = Vec<(u64, usize, bool, u32)>> {
    prop::collection::vec(
        (prop_oneof![2 => Just(0u64), 5 => 0u64..2_000], 0usize..40, any::<bool>(), 40u32..1500),
        1..150,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_packet_arrives_once_or_is_dropped_at_a_link(topology in any_topology(), packets in any_packets()) {
        let (mut network, mut log) = (Network::new(&topology, 3), Log::default());
        let (mut now, mut got, mut sent) = (us(0), Vec::new(), 0);
        for (n, (gap, of, down, size)) in packets.iter().enumerate() {
            now += micros(*gap);
            got.extend(deliver(&mut network, &mut log, now));
            let direction = if *down { Direction::Down } else { Direction::Up };
            if of % 8 == 7 {
                network.send_over_link(now, &mut log, of % topology.links.len(), direction, *size, 1);
            } else {
                network.send(now, &mut log, of % topology.paths.len(), direction, *size, n as u32);
                sent += 1;
            }
        }
        got.extend(deliver(&mut network, &mut log, END));
        network.settle(END, &mut log);
        prop_assert_eq!((network.poll_timeout(), network.in_flight()), (None, 0));
        let drops = log.0.iter().filter(|event| matches!(event.4, LinkEvent::Dropped(_))).count();
        let copies = topology.links.iter().flat_map(|link| link.behind.iter().flat_map(|behind| behind.iter()));
        let duplicates = copies.map(|way| way.duplicate).fold(0.0, f64::max) > 0.0;
        let ended = got.len() + drops;
        prop_assert!(ended == sent || duplicates && ended > sent, "{} of {}", ended, sent);
        // Links have dropped all of that, beside cross traffic, which has no events.
        let counts = (0..topology.links.len()).flat_map(|link| {
            [Direction::Down, Direction::Up].map(|direction| network.link_counts(link, direction))
        });
        let crossed = packets.iter().any(|(_, of, ..)| of % 8 == 7);
        let dropped: u64 = counts.map(|counts| counts.drops.total()).sum();
        prop_assert!(dropped as usize == drops || crossed && dropped as usize > drops);
        // Where nothing reorders, a path keeps the order of its packets.
        let free = topology.links.iter().flat_map(|link| link.behind.iter().flat_map(|behind| behind.iter()));
        if free.map(|way| way.reorder.probability).fold(0.0, f64::max) == 0.0 && !duplicates {
            for path in 0..topology.paths.len() {
                for direction in [Direction::Down, Direction::Up] {
                    let of = got.iter().filter(|(_, d)| (d.path, d.direction) == (path, direction));
                    prop_assert!(of.map(|(_, d)| d.item).is_sorted());
                }
            }
        }
    }

    #[test]
    fn what_arrives_within_the_lookahead_is_known(topology in any_topology(), packets in any_packets()) {
        // One driver asks at each time; the other takes arrivals of one lookahead at once, as a host does that runs ahead.
        let outcome = |ahead: bool| {
            let (mut network, mut log) = (Network::new(&topology, 3), Log::default());
            let mut got: [Vec<(Instant, u32)>; 2] = Default::default();
            let mut sends: Vec<_> = Vec::new();
            let mut now = us(0);
            for (n, (gap, of, down, size)) in packets.iter().enumerate() {
                now += micros(*gap);
                sends.push((now, *of, if *down { Direction::Down } else { Direction::Up }, *size, n as u32));
            }
            let mut rest = &sends[..];
            loop {
                let next = rest.first().map_or(Instant::MAX, |send| send.0).min(network.poll_timeout().unwrap_or(Instant::MAX));
                if next == Instant::MAX {
                    break;
                }
                let window = if ahead { network.lookahead() } else { Duration::ZERO };
                let until = next + Duration::from_nanos(window.as_nanos().saturating_sub(1));
                for (direction, got) in [Direction::Down, Direction::Up].into_iter().zip(&mut got) {
                    while network.due(direction) <= until {
                        let at = network.due(direction);
                        match network.poll_deliver(at, direction, next, &mut log) {
                            Some(delivery) => got.push((at, delivery.item)),
                            None => continue,
                        }
                    }
                }
                let count = rest.iter().take_while(|send| send.0 <= until).count();
                for direction in [Direction::Down, Direction::Up] {
                    for (at, of, _, size, n) in rest[..count].iter().filter(|send| send.2 == direction) {
                        if of % 8 == 7 {
                            network.send_over_link(*at, &mut log, of % topology.links.len(), direction, *size, 1);
                        } else {
                            network.send(*at, &mut log, of % topology.paths.len(), direction, *size, *n);
                        }
                    }
                }
                rest = &rest[count..];
            }
            network.settle(END, &mut log);
            let mut drops: Vec<_> = log.0.iter().filter(|e| matches!(e.4, LinkEvent::Dropped(_))).copied().collect();
            drops.sort_by_key(|drop| (drop.0, drop.1, drop.2 as usize, drop.3));
            (got, drops)
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }

    #[test]
    fn a_delay_of_the_only_link_is_a_delay_of_the_path(kbit in 500u64..9_000, delay in 0u64..9_000, packets in any_packets()) {
        let outcome = |on_link: bool| {
            let (behind, own) = if on_link { (delay, 0) } else { (0, delay) };
            let mut links = vec![link("a", kbit, 5, behind)];
            if !on_link {
                links[0].behind = None;
            }
            let topology = Topology { paths: vec![over("p", &[0], own)], links };
            let (mut network, mut log, mut now) = (Network::new(&topology, 3), Log::default(), us(0));
            let mut got = Vec::new();
            for (n, (gap, _, down, size)) in packets.iter().enumerate() {
                now += micros(*gap);
                got.extend(deliver(&mut network, &mut log, now));
                let direction = if *down { Direction::Down } else { Direction::Up };
                network.send(now, &mut log, 0, direction, *size, n as u32);
            }
            got.extend(deliver(&mut network, &mut log, END));
            network.apply(now, &mut log, &Change::Queue(Place::Link(0), Direction::Down, anabranch_network::DropTail::Packets(1)));
            (got, log.drops(DropCause::Queue))
        };
        prop_assert_eq!(outcome(true), outcome(false));
    }
}
