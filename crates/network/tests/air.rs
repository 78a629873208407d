//! Media that several bottlenecks divide: airtime shares in closed form.

mod common;

use anabranch_network::{
    Bottleneck, BottleneckSpec, CapacitySpec, LinkSpec, MediumSpec, Network, PathSpec, QueueSpec, RadioSpec, Topology,
    WakeSpec, WaySpec,
};
use anabranch_units::{Direction, Duration, Instant, Rate};
use common::{Log, deliver, us, way};
use std::sync::Arc;

const MS: Duration = Duration::from_millis(1);
const SIDES: [Direction; 2] = [Direction::Down, Direction::Up];

fn air(overhead_us: u64, packets: u32) -> Arc<MediumSpec> {
    Arc::new(MediumSpec { name: "air".into(), overhead: Duration::from_micros(overhead_us), packets })
}

fn station(kbit: u64, medium: &Arc<MediumSpec>) -> BottleneckSpec {
    let capacity = CapacitySpec::Fixed(Rate::from_bps(kbit * 1000));
    BottleneckSpec { medium: Some(medium.clone()), ..BottleneckSpec::new(capacity, QueueSpec::Packets(1_000_000)) }
}

/// A path whose directions are two stations.
fn path(n: usize, kbit: [u64; 2], delays: [Duration; 2], medium: &Arc<MediumSpec>) -> PathSpec {
    let [down, up] = [0, 1].map(|n| way(Bottleneck::Own(station(kbit[n], medium)), delays[n]));
    PathSpec { name: format!("p{n}"), down, up }
}

/// Packets that have departed up to `until`, of each path down and up, with `packets` of `size` bytes waiting from the beginning.
fn saturated(topology: &Topology, sizes: &[[u32; 2]], packets: u32, until: Instant) -> Vec<[u64; 2]> {
    let (mut network, mut log) = (Network::new(topology, 1), Log::default());
    for n in 0..packets {
        for (path, sizes) in sizes.iter().enumerate() {
            SIDES.iter().zip(sizes).filter(|(_, size)| **size > 0).for_each(|(side, size)| {
                network.send(us(0), &mut log, path, *side, *size, n);
            });
        }
    }
    deliver(&mut network, &mut log, until);
    network.settle(until, &mut log);
    (0..sizes.len()).map(|path| SIDES.map(|side| network.departed(path, side))).collect()
}

/// The closed form: of saturated stations, each has L of its bits per cycle, which takes the overhead and L/rate of all of them.
#[test]
fn saturated_stations_have_as_many_turns_whatever_their_rates_are() {
    for (overhead, packets) in [(0, 1), (364, 1), (150, 8)] {
        let medium = air(overhead, packets);
        let paths = [[11_000, 11_000], [11_000, 1_000], [54_000, 5_500]];
        let sizes = [[1500, 1500], [1000, 1500], [500, 0]];
        let topology = Topology {
            paths: paths.iter().enumerate().map(|(n, rates)| path(n, *rates, [MS; 2], &medium)).collect(),
            links: vec![],
        };
        // Nanoseconds of a cycle: a turn of each station that has something to send.
        let stations = paths.iter().flatten().zip(sizes.iter().flatten()).filter(|(_, size)| **size > 0);
        let airtime = |(kbit, size): (&u64, &u32)| {
            overhead * 1_000 + u64::from(packets) * (u64::from(*size) * 8_000_000).div_ceil(*kbit)
        };
        let cycle: u64 = stations.map(airtime).sum();
        let cycles = 40;
        let until = Instant::from_nanos(cycles * cycle);
        for (path, departed) in saturated(&topology, &sizes, 400, until).into_iter().enumerate() {
            for (side, departed) in departed.into_iter().enumerate() {
                let expected = if sizes[path][side] == 0 { 0 } else { cycles * u64::from(packets) };
                assert!(departed.abs_diff(expected) <= 1, "{overhead} µs, path {path}: {departed}, not {expected}");
            }
        }
    }
}

/// Heusse et al. (INFOCOM 2003): a station of 1 Mbit/s makes those of 11 Mbit/s as slow as itself.
#[test]
fn a_slow_station_slows_all_of_them() {
    let medium = air(364, 1);
    let mbit = |slow: u64, stations: usize| {
        let mut rates = vec![[11_000, 11_000]; stations];
        rates[0][1] = slow;
        let paths = rates.iter().enumerate().map(|(n, rates)| path(n, *rates, [MS; 2], &medium)).collect();
        let sizes = vec![[0, 1500]; stations];
        let departed = saturated(&Topology { paths, links: vec![] }, &sizes, 6_000, Instant::from_millis(10_000));
        departed.iter().map(|[_, up]| *up as f64 * 12e3 / 10e6).collect::<Vec<_>>()
    };
    // Mbit/s: 12 kbit per cycle; a turn lasts 364 µs and 12 kbit by the rate.
    let [fast, slow] = [11.0, 1.0].map(|rate| 364e-6 + 12e3 / (rate * 1e6));
    for (of_one, stations) in [(11_000, 2), (1_000, 2), (1_000, 4)] {
        let first = if of_one == 1_000 { slow } else { fast };
        let expected = 12e-3 / (first + (stations as f64 - 1.0) * fast);
        for found in mbit(of_one, stations) {
            assert!((found / expected - 1.0).abs() < 2e-3, "{stations} stations: {found}, not {expected} Mbit/s");
        }
    }
}

/// Airtime that a station leaves is the others': with 2 Mbit/s of its own rate of 20 Mbit/s, the other one has nine tenths.
#[test]
fn a_station_with_little_to_send_leaves_the_air_to_the_others() {
    let medium = air(0, 1);
    let topology = Topology { paths: vec![path(0, [20_000, 20_000], [MS; 2], &medium)], links: vec![] };
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    (0..3_000).for_each(|n| network.send(us(0), &mut log, 0, Direction::Down, 1500, n));
    let (until, mut late) = (Instant::from_millis(1_000), 0);
    for n in 0..166u32 {
        let sent = us(6_000 * u64::from(n) + 1);
        deliver(&mut network, &mut log, sent);
        network.send(sent, &mut log, 0, Direction::Up, 1500, n);
        let came = deliver(&mut network, &mut log, sent + MS * 3);
        let at = came.iter().find(|(_, d)| d.direction == Direction::Up).map(|(at, _)| at.since(sent));
        // At most a packet of the other one before it: 600 µs, its own 600 µs, 1 ms of delay.
        late += u32::from(at.is_none_or(|at| at > Duration::from_micros(2_200)));
    }
    deliver(&mut network, &mut log, until);
    network.settle(until, &mut log);
    assert_eq!(late, 0);
    let down = network.departed(0, Direction::Down);
    assert!((1_498..=1_501).contains(&down), "{down} of 1666 less 166");
}

/// The shared link of an access point is one station; another link, which no path crosses, is that of a neighbour.
#[test]
fn a_link_is_one_station_however_many_paths_cross_it() {
    let medium = air(100, 1);
    let link = |name: &str| LinkSpec {
        name: name.into(),
        down: station(12_000, &medium),
        up: station(12_000, &medium),
        behind: None,
    };
    let across = |n: usize| {
        let end = || way(Bottleneck::shared(0), MS);
        PathSpec { name: format!("p{n}"), down: end(), up: end() }
    };
    let topology = Topology { paths: vec![across(0), across(1)], links: vec![link("ap"), link("neighbour")] };
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    for n in 0..1_000 {
        [0, 1].into_iter().for_each(|path| network.send(us(0), &mut log, path, Direction::Down, 1500, n));
        (0..2).for_each(|_| network.send_over_link(us(0), &mut log, 1, Direction::Up, 1500, 9));
    }
    let until = Instant::from_millis(1_100);
    deliver(&mut network, &mut log, until);
    network.settle(until, &mut log);
    // 1.1 ms per turn, every other one of the access point's.
    assert!(network.departed(0, Direction::Down).abs_diff(500) <= 1);
    assert_eq!(
        (network.departed(0, Direction::Down), network.departed(0, Direction::Up)),
        (log.departures().len() as u64, 0)
    );
}

/// Queues are evaluated late: the far ends' distance does not change when packets leave.
#[test]
fn the_delays_behind_do_not_change_the_turns() {
    let departures = |delays: [Duration; 2], exact: bool| {
        let medium = air(50, 2);
        let mut network =
            Network::new(&Topology { paths: vec![path(0, [9_000, 4_000], delays, &medium)], links: vec![] }, 1);
        let mut log = Log::default();
        for n in 0..500u32 {
            let now = us(u64::from(n) * 700);
            if exact {
                deliver(&mut network, &mut log, now);
            }
            network.send(now, &mut log, 0, SIDES[n as usize / 3 % 2], 300 + n, n);
        }
        let came = deliver(&mut network, &mut log, us(100_000_000)).len();
        network.settle(us(100_000_000), &mut log);
        assert!(!exact || came > 0);
        let mut departures = log.departures();
        departures.sort_unstable();
        departures
    };
    let near = departures([Duration::ZERO; 2], true);
    assert_eq!(near.len(), 500);
    for delays in [[MS * 200, Duration::ZERO], [Duration::ZERO, MS * 90], [MS * 30, MS * 31]] {
        assert_eq!(near, departures(delays, true));
        assert_eq!(near, departures(delays, false));
    }
}

/// Packets that waited for a sleeping device divide the medium in the order in which they pass, even if the driver is late.
#[test]
fn a_late_driver_gives_the_turns_in_order() {
    let departures = |exact: bool| {
        let medium = air(0, 1);
        let mut one = path(0, [12_000, 12_000], [MS * 5, MS * 20], &medium);
        let wake = WakeSpec { idle: Duration::from_secs(1), delay: MS * 30 };
        let radio = RadioSpec { wake, ..RadioSpec::NONE };
        one.up = WaySpec { radio, ..one.up };
        let mut network = Network::new(&Topology { paths: vec![one], links: vec![] }, 1);
        let mut log = Log::default();
        for n in 0..60u32 {
            let now = us(u64::from(n) * 900);
            if exact {
                deliver(&mut network, &mut log, now);
            }
            network.send(now, &mut log, 0, SIDES[n as usize % 2], 1500, n);
        }
        deliver(&mut network, &mut log, us(1_000_000));
        network.settle(us(1_000_000), &mut log);
        let mut of: Vec<_> =
            log.0.iter().map(|e| (e.0, e.2 as u8, format!("{:?}", e.4))).filter(|e| e.2 == "Departed").collect();
        of.sort();
        of
    };
    assert_eq!(departures(true), departures(false));
    assert_eq!(departures(true).len(), 60);
}
