//! Exact times, computed by hand.

mod common;

use anabranch_network::{
    Bottleneck, BottleneckSpec, BucketSpec, CapacitySpec, CapacityTrace, Change, DropTail, JitterSpec, LinkSpec,
    LossSpec, Network, PathSpec, Place, QueueSpec, Recorded, Recording, Refused, ReorderSpec, Topology, WaySpec,
};
use anabranch_trace::{DropCause, LinkEvent};
use anabranch_units::{Direction, Duration, Instant, Rate};
use common::{Log, bottleneck, deliver, next, path, us, way};
use std::sync::Arc;

const MS: Duration = Duration::from_millis(1);

fn one_path(down: anabranch_network::WaySpec) -> Topology {
    Topology { paths: vec![path("a", down)], links: vec![] }
}

fn droptail(queue: QueueSpec, delay: Duration) -> Topology {
    one_path(way(Bottleneck::Own(bottleneck(queue)), delay))
}

/// Arrivals as (microseconds, item).
fn arrivals(network: &mut Network<u32>, log: &mut Log) -> Vec<(u64, u32)> {
    let all = deliver(network, log, Instant::from_millis(1_000_000));
    all.into_iter().map(|(at, d)| (at.as_nanos() / 1000, d.item)).collect()
}

#[test]
fn droptail_counts_packets_without_the_one_in_transmission() {
    let mut network = Network::new(&droptail(QueueSpec::Packets(2), MS * 10), 1);
    let mut log = Log::default();
    for item in 0..5 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, item);
    }
    // At exactly 1 ms the first leaves before the next one arrives.
    network.send(us(1000), &mut log, 0, Direction::Down, 750, 5);
    let waiting = network.queue_len(us(1000), &mut log, 0, Direction::Down);
    assert_eq!((waiting.packets, waiting.bytes, waiting.busy), (2, 2250, true));
    assert_eq!([Direction::Down, Direction::Up].map(|way| network.departed(0, way)), [1, 0]);
    assert_eq!(arrivals(&mut network, &mut log), [(11_000, 0), (12_000, 1), (13_000, 2), (13_500, 5)]);
    assert_eq!(log.departures(), [1000, 2000, 3000, 3500]);
    assert_eq!(log.drops(DropCause::Queue), [0, 0]);
    assert_eq!(log.queues(), [(0, 0), (1, 1500), (2, 3000), (2, 2250)]);
    assert!(log.0.iter().all(|e| e.1 == 0 && e.2 == Direction::Down));
}

#[test]
fn droptail_counts_bytes() {
    let mut network = Network::new(&droptail(QueueSpec::Bytes(2000), MS), 1);
    let mut log = Log::default();
    // The first is in transmission; 1500 wait; 501 do not fit, 500 do; then not one more byte does.
    for (item, size) in [3000, 1500, 501, 500, 1].into_iter().enumerate() {
        network.send(us(0), &mut log, 0, Direction::Down, size, item as u32);
    }
    assert_eq!(arrivals(&mut network, &mut log), [(3000, 0), (4000, 1), (4333, 3)]);
    assert_eq!(log.queues(), [(0, 0), (1, 1500), (2, 2000)]);
    assert_eq!(log.drops(DropCause::Queue).len(), 2);
}

#[test]
fn a_queue_without_room_still_transmits() {
    let mut network = Network::new(&droptail(QueueSpec::Packets(0), MS), 1);
    let mut log = Log::default();
    for (item, at) in [0, 999, 1000].into_iter().enumerate() {
        network.send(us(at), &mut log, 0, Direction::Down, 1500, item as u32);
    }
    assert_eq!(arrivals(&mut network, &mut log), [(2000, 0), (3000, 2)]);
}

#[test]
fn overhead_counts_and_may_be_negative() {
    for (overhead, size, arrives) in [(38, 1462, 2000), (-500, 2000, 2000), (-500, 100, 1000)] {
        let mut topology = droptail(QueueSpec::Packets(9), MS);
        topology.paths[0].down.overhead = overhead;
        let mut network = Network::new(&topology, 1);
        let mut log = Log::default();
        network.send(us(0), &mut log, 0, Direction::Down, size, 0);
        assert_eq!(arrivals(&mut network, &mut log), [(arrives, 0)]);
        assert!(log.0.iter().all(|e| e.3 == size.saturating_add_signed(overhead)));
    }
}

#[test]
fn a_rate_change_meets_the_packet_in_transmission() {
    let mut network = Network::new(&droptail(QueueSpec::Packets(9), MS * 5), 1);
    let mut log = Log::default();
    for item in 0..3 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, item);
    }
    // Packet 1 is half sent; its other half and packet 2 go at a third of the rate.
    let slower = Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(4_000_000));
    network.apply(us(1500), &mut log, &slower);
    assert_eq!(network.poll_timeout(), Some(us(6000)));
    assert_eq!(arrivals(&mut network, &mut log), [(6000, 0), (8000, 1), (11_000, 2)]);
    assert_eq!(log.departures(), [1000, 3000, 6000]);
}

/// The same for a path's own queue and for a shared one.
#[test]
fn a_shorter_queue_keeps_what_waits_and_admits_no_more() {
    let own = (droptail(QueueSpec::Packets(9), MS), Place::Path(0));
    let mut behind = droptail(QueueSpec::Packets(9), MS);
    let Bottleneck::Own(bottleneck) = &behind.paths[0].down.bottleneck else { panic!("a queue of its own") };
    behind.links = vec![LinkSpec { name: "l".into(), down: bottleneck.clone(), up: bottleneck.clone(), behind: None }];
    behind.paths[0].down.bottleneck = Bottleneck::shared(0);
    for (topology, place) in [own, (behind, Place::Link(0))] {
        let mut network = Network::new(&topology, 1);
        let mut log = Log::default();
        let send = |network: &mut Network<u32>, log: &mut Log, at, item| {
            network.send(us(at), log, 0, Direction::Down, 1500, item);
        };
        (0..4).for_each(|item| send(&mut network, &mut log, 0, item));
        network.apply(us(100), &mut log, &Change::Queue(place, Direction::Down, DropTail::Packets(2)));
        // Three wait; at 2500 one does.
        send(&mut network, &mut log, 200, 4);
        send(&mut network, &mut log, 2500, 5);
        let arrived: Vec<u32> = arrivals(&mut network, &mut log).into_iter().map(|(_, item)| item).collect();
        assert_eq!(arrived, [0, 1, 2, 3, 5]);
    }
}

#[test]
fn packets_are_held_back_from_a_change_on() {
    let mut network = Network::new(&droptail(QueueSpec::Packets(9), MS), 1);
    let mut log = Log::default();
    network.send(us(0), &mut log, 0, Direction::Down, 1500, 0);
    assert_eq!(arrivals(&mut network, &mut log), [(2000, 0)]);
    let all = ReorderSpec { probability: 1.0, by: MS * 5 };
    network.apply(us(3000), &mut log, &Change::Reorder(0, Direction::Down, all));
    network.send(us(4000), &mut log, 0, Direction::Down, 1500, 1);
    assert_eq!(arrivals(&mut network, &mut log), [(11_000, 1)]);
}

#[test]
fn a_rate_of_zero_stops_until_it_rises() {
    let mut network = Network::new(&droptail(QueueSpec::Packets(9), MS * 5), 1);
    let mut log = Log::default();
    let rate = |bps| Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(bps));
    network.apply(us(0), &mut log, &rate(0));
    network.send(us(0), &mut log, 0, Direction::Down, 1500, 7);
    network.send(us(0), &mut log, 0, Direction::Down, 1500, 8);
    assert_eq!(network.poll_timeout(), None);
    assert_eq!(next(&mut network, Instant::MAX, &mut log), None);
    network.apply(us(50_000), &mut log, &rate(12_000_000));
    assert_eq!(arrivals(&mut network, &mut log), [(56_000, 7), (57_000, 8)]);
}

#[test]
fn a_longer_delay_spaces_and_a_shorter_one_keeps_the_order() {
    let mut network = Network::new(&droptail(QueueSpec::Packets(9), MS * 10), 1);
    let mut log = Log::default();
    for item in 0..4 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, item);
    }
    let delay = |ms| Change::Delay(0, Direction::Down, MS * ms);
    // Packet 0 left at 1 ms with a delay of 10 ms, packet 1 at 2 ms with 20, packet 2 at 3 ms with 15, packet 3 with 1.
    network.apply(us(1500), &mut log, &delay(20));
    network.apply(us(2500), &mut log, &delay(15));
    network.apply(us(3500), &mut log, &delay(1));
    network.send(us(30_000), &mut log, 0, Direction::Down, 1500, 4);
    assert_eq!(arrivals(&mut network, &mut log), [(11_000, 0), (22_000, 1), (22_000, 2), (22_000, 3), (32_000, 4)]);
}

#[test]
fn a_trace_drains_as_mahimahi_does() {
    let trace = Arc::new(CapacityTrace::parse("10\n20\n20\n35\n").unwrap());
    let mut spec = bottleneck(QueueSpec::Packets(99));
    spec.capacity = CapacitySpec::Trace(trace);
    assert_eq!(spec.capacity.initial_rate(), Rate::from_bps(1_371_428));
    let mut network = Network::new(&one_path(way(Bottleneck::Own(spec), MS)), 1);
    let mut log = Log::default();
    // Three share the first opportunity; 1600 need both of 20 ms and leave 1400, which are lost because no packet
    // waits.
    for (item, (at, size)) in
        [(0, 500), (0, 500), (9999, 500), (10_000, 1600), (20_000, 1400), (21_000, 101)].into_iter().enumerate()
    {
        network.send(us(at), &mut log, 0, Direction::Down, size, item as u32);
    }
    // 35 ms: 1400 and 100 of 101 bytes; one byte at 45 ms, the first opportunity of the second round.
    assert_eq!(
        arrivals(&mut network, &mut log),
        [(11_000, 0), (11_000, 1), (11_000, 2), (21_000, 3), (36_000, 4), (46_000, 5)]
    );
    // A rate cannot be set on recorded capacity: the next opportunities are 80 (= 2·35+10) and 90.
    network.apply(us(75_000), &mut log, &Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(1)));
    network.send(us(75_000), &mut log, 0, Direction::Down, 1501, 6);
    assert_eq!(arrivals(&mut network, &mut log), [(91_000, 6)]);
}

#[test]
fn paths_of_a_shared_link_overtake_each_other() {
    let link = LinkSpec {
        name: "l".into(),
        down: bottleneck(QueueSpec::Packets(5)),
        up: bottleneck(QueueSpec::Packets(5)),
        behind: None,
    };
    let over = |name: &str, ms| -> PathSpec {
        let way = way(Bottleneck::shared(0), MS * ms);
        PathSpec { up: way.clone(), ..path(name, way) }
    };
    let mut network = Network::new(&Topology { paths: vec![over("far", 50), over("near", 2)], links: vec![link] }, 1);
    let mut log = Log::default();
    network.send(us(0), &mut log, 0, Direction::Down, 1500, 0);
    network.send(us(0), &mut log, 1, Direction::Down, 1500, 1);
    network.send_over_link(us(0), &mut log, 0, Direction::Down, 3000, 1);
    network.send_over_path(us(0), &mut log, 0, Direction::Down, 1500, 1);
    network.send(us(0), &mut log, 1, Direction::Down, 1500, 2);
    network.send(us(0), &mut log, 0, Direction::Down, 1500, 3);
    network.send(us(0), &mut log, 1, Direction::Down, 1500, 4);
    // The other direction has its own queue.
    network.send(us(0), &mut log, 1, Direction::Up, 1500, 5);
    assert_eq!(arrivals(&mut network, &mut log), [(3000, 5), (4000, 1), (8000, 2), (51_000, 0), (57_000, 3)]);
    // Packet 4 found five waiting; cross traffic of the path has events, that of the link has none.
    assert_eq!(log.drops(DropCause::Queue), [0]);
    assert_eq!(log.queues(), [(0, 0), (1, 1500), (3, 6000), (4, 7500), (5, 9000), (0, 0)]);
    let of_far = log.0.iter().filter(|e| e.1 == 0 && e.4 == LinkEvent::Departed).count();
    assert_eq!((of_far, log.departures().len()), (3, 6));
    // A link's rate changes for all its paths.
    network.apply(us(60_000), &mut log, &Change::Rate(Place::Link(0), Direction::Down, Rate::from_bps(1_200_000)));
    network.apply(us(60_000), &mut log, &Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(9)));
    network.send(us(60_000), &mut log, 1, Direction::Down, 1500, 6);
    assert_eq!(arrivals(&mut network, &mut log), [(72_000, 6)]);
}

#[test]
fn simultaneous_arrivals_come_in_order_of_sending() {
    let down = || way(Bottleneck::Own(bottleneck(QueueSpec::Packets(9))), MS * 3);
    let topology = Topology { paths: vec![path("a", down()), path("b", down()), path("c", down())], links: vec![] };
    let mut network = Network::new(&topology, 1);
    let mut log = Log::default();
    for (item, path) in [2, 0, 1, 1, 0, 2].into_iter().enumerate() {
        network.send(us(0), &mut log, path, Direction::Down, 1500, item as u32);
    }
    let items: Vec<_> = arrivals(&mut network, &mut log).into_iter().map(|(_, item)| item).collect();
    assert_eq!(items, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_held_back_packet_is_overtaken_and_a_copy_follows_its_original() {
    let mut topology = droptail(QueueSpec::Packets(99), MS);
    topology.paths[0].down.reorder = anabranch_network::ReorderSpec { probability: 0.5, by: MS * 2 };
    topology.paths[0].down.duplicate = 1.0;
    let mut network = Network::new(&topology, 1);
    let mut log = Log::default();
    for item in 0..40 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, item);
    }
    let got = arrivals(&mut network, &mut log);
    assert_eq!(got.len(), 80);
    let mut late = 0;
    for pair in got.chunks(2) {
        assert_eq!(pair[0], pair[1], "a copy arrives with its original");
        let (at, item) = pair[0];
        // On time is 1 ms after departure at item+1 ms.
        let nominal = u64::from(item) * 1000 + 2000;
        assert!(at == nominal || at == nominal + 2000);
        late += u32::from(at != nominal);
    }
    assert!((10..30).contains(&late));
    assert!(got.is_sorted_by_key(|(at, _)| *at));
    assert!(!got.is_sorted_by_key(|(_, item)| *item), "nothing was overtaken");
}

#[test]
fn outages_and_corruption_have_their_causes() {
    let mut topology = droptail(QueueSpec::Packets(99), MS);
    topology.paths[0].down.outages = vec![(us(3000), us(5000))];
    topology.paths[0].down.corrupt = 1.0;
    let mut network = Network::new(&topology, 1);
    let mut log = Log::default();
    for item in 0..5 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, item);
    }
    let got = deliver(&mut network, &mut log, us(100_000));
    assert!(got.iter().all(|(_, d)| d.corrupted && d.path == 0 && d.direction == Direction::Down));
    assert_eq!(got.iter().map(|(_, d)| d.item).collect::<Vec<_>>(), [0, 3, 4]);
    assert_eq!(log.drops(DropCause::Outage), [3000, 4000]);
    assert_eq!(log.drops(DropCause::Corruption), [2000, 5000, 6000]);
}

#[test]
fn loss_may_begin_and_end_while_it_runs() {
    let mut network = Network::new(&droptail(QueueSpec::Packets(99), MS), 1);
    let mut log = Log::default();
    for item in 0..6 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, item);
    }
    let mut got = vec![];
    for (at, loss) in [(3500, LossSpec::Bernoulli(1.0)), (5500, LossSpec::None), (9000, LossSpec::None)] {
        got.extend(deliver(&mut network, &mut log, us(at)).into_iter().map(|(_, d)| d.item));
        network.apply(us(at), &mut log, &Change::Loss(0, Direction::Down, loss));
    }
    assert_eq!(got, [0, 1, 4, 5]);
    assert_eq!(log.drops(DropCause::Loss), [4000, 5000]);
}

#[test]
fn loss_that_begins_late_meets_the_same_luck() {
    let half = LossSpec::Bernoulli(0.5);
    let survivors = |before: LossSpec| {
        let mut topology = droptail(QueueSpec::Packets(999), MS);
        topology.paths[0].down.loss = before;
        let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
        let mut got = vec![];
        for half_time in [0, 500_000] {
            for item in 0..100 {
                network.send(us(half_time), &mut log, 0, Direction::Down, 1500, item);
            }
            got = deliver(&mut network, &mut log, us(half_time + 400_000)).into_iter().map(|(_, d)| d.item).collect();
            network.apply(us(half_time + 400_000), &mut log, &Change::Loss(0, Direction::Down, half));
        }
        got
    };
    let always = survivors(half);
    assert!((30..70).contains(&always.len()));
    assert_eq!(survivors(LossSpec::None), always);
}

#[test]
fn a_late_driver_gets_the_same_in_the_same_order() {
    let topology = droptail(QueueSpec::Packets(9), MS);
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    for item in 0..5 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, item);
    }
    let items: Vec<_> = core::iter::from_fn(|| next(&mut network, us(1_000_000), &mut log)).map(|d| d.item).collect();
    assert_eq!(items, [0, 1, 2, 3, 4]);
    assert_eq!(log.departures(), [1000, 2000, 3000, 4000, 5000]);
}

#[test]
fn settling_tells_what_has_left_and_nothing_more() {
    let (mut network, mut log) = (Network::new(&droptail(QueueSpec::Packets(9), MS * 100), 1), Log::default());
    for item in 0..5 {
        network.send(us(0), &mut log, 0, Direction::Down, 1500, item);
    }
    network.settle(us(2999), &mut log);
    assert_eq!(log.departures(), [1000, 2000]);
}

/// Deliveries of 200 packets of 15 bytes, 100 µs apart, over 10 ms with this jitter; number and time in microseconds.
fn jittered(jitter: &JitterSpec, queue: QueueSpec) -> Vec<(u32, u64)> {
    let way = WaySpec { jitter: jitter.clone(), ..way(Bottleneck::Own(bottleneck(queue)), MS * 10) };
    let mut network = Network::new(&Topology { paths: vec![path("a", way)], links: vec![] }, 3);
    let mut log = Log::default();
    for n in 0..200 {
        network.send(us(100 * u64::from(n)), &mut log, 0, Direction::Down, 15, n);
    }
    deliver(&mut network, &mut log, us(1_000_000)).into_iter().map(|(at, d)| (d.item, at.as_nanos() / 1000)).collect()
}

#[test]
fn jitter_keeps_the_order_unless_it_is_free() {
    let kept = JitterSpec { spread: MS * 5, ..JitterSpec::NONE };
    let free = JitterSpec { free: true, ..kept.clone() };
    let codel = QueueSpec::Managed(anabranch_network::CodelSpec::default().into(), DropTail::Packets(1000));
    for queue in [QueueSpec::Packets(1000), codel] {
        let (in_order, mut free) = (jittered(&kept, queue), jittered(&free, queue));
        assert!(in_order.is_sorted() && in_order.len() == 200);
        assert!(!free.is_sorted(), "a packet overtakes");
        free.sort_unstable();
        let mut latest = 0;
        for ((n, at), (m, kept_at)) in free.iter().zip(&in_order) {
            // 10 µs of transmission; the same draws, of which order makes the running maximum.
            let sent = 100 * u64::from(*n) + 10;
            latest = latest.max(*at);
            assert!(n == m && *kept_at == latest && (sent + 5_000..=sent + 15_000).contains(at), "{n}: {at} {kept_at}");
        }
    }
}

#[test]
fn a_change_of_rate_or_jitter_keeps_every_packet() {
    let free = JitterSpec { spread: MS * 5, free: true, ..JitterSpec::NONE };
    let way = WaySpec { jitter: free.clone(), ..way(Bottleneck::Own(bottleneck(QueueSpec::Packets(1000))), MS * 10) };
    let mut network = Network::new(&Topology { paths: vec![path("a", way)], links: vec![] }, 3);
    let mut log = Log::default();
    (0..30).for_each(|n| network.send(us(0), &mut log, 0, Direction::Down, 1500, n));
    let mut arrived: Vec<_> = deliver(&mut network, &mut log, us(12_000)).into_iter().map(|(_, d)| d.item).collect();
    // 18 packets wait: at a tenth of the rate each takes 10 ms, more than the jitter is wide but for neighbours.
    network.apply(us(12_000), &mut log, &Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(1_200_000)));
    network.apply(
        us(12_000),
        &mut log,
        &Change::Jitter(0, Direction::Down, JitterSpec { free: false, ..free.clone() }),
    );
    (30..35).for_each(|n| network.send(us(12_000), &mut log, 0, Direction::Down, 1500, n));
    network.apply(us(12_000), &mut log, &Change::Jitter(0, Direction::Down, JitterSpec::NONE));
    network.send(us(12_000), &mut log, 0, Direction::Down, 1500, 35);
    let late = deliver(&mut network, &mut log, us(1_000_000));
    // 12 packets and 23 more at 10 ms each, then 10 ms without jitter, but never before one that is there already.
    assert!(late.last().is_some_and(|(at, d)| d.item == 35 && *at >= us(12_000 + 240_000 + 10_000)));
    arrived.extend(late.into_iter().map(|(_, d)| d.item));
    arrived.sort_unstable();
    assert_eq!(arrived, (0..36).collect::<Vec<u32>>());
}

#[test]
fn a_policer_drops_what_exceeds_it_and_a_shaper_keeps_it() {
    // 12 kbit in a burst, then a packet of 1500 bytes per millisecond at twice the policer's rate.
    let bucket = BucketSpec { rate: Rate::from_bps(6_000_000), burst: 3000 };
    let policed = BottleneckSpec { police: Some(bucket), ..bottleneck(QueueSpec::Packets(100)) };
    let shaped = BottleneckSpec::new(CapacitySpec::Bucket(bucket), QueueSpec::Packets(100));
    let codel = QueueSpec::Managed(anabranch_network::CodelSpec::default().into(), DropTail::Packets(100));
    let run = |spec: &BottleneckSpec| {
        let mut network = Network::new(&one_path(way(Bottleneck::Own(spec.clone()), MS * 10)), 1);
        let mut log = Log::default();
        (0..8).for_each(|n| network.send(us(1000 * u64::from(n)), &mut log, 0, Direction::Down, 1500, n));
        network.apply(us(8_000), &mut log, &Change::Rate(Place::Path(0), Direction::Down, Rate::from_bps(3_000_000)));
        (arrivals(&mut network, &mut log), log)
    };
    // 3000, 2250, 1500, 750, 1500, 750, … bytes are there on arrival.
    let (passed, log) = run(&policed);
    assert_eq!(passed.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [0, 1, 2, 4, 6]);
    assert_eq!(log.drops(DropCause::Police), [3000, 5000, 7000]);
    // Two at once, then one per 2 ms; from 8 ms on one per 4 ms.
    let expected = [0, 1000, 2000, 4000, 6000, 8000, 12_000, 16_000];
    for queue in [QueueSpec::Packets(100), codel] {
        let (passed, log) = run(&BottleneckSpec { queue, ..shaped.clone() });
        assert_eq!(log.departures(), expected, "{queue:?}");
        assert_eq!(passed.len(), 8);
    }
}

#[test]
fn a_rate_becomes_a_shaper_and_a_policer_appears() {
    let codel = QueueSpec::Managed(anabranch_network::CodelSpec::default().into(), DropTail::Packets(100));
    for queue in [QueueSpec::Packets(100), codel] {
        let mut network = Network::new(&droptail(queue, MS), 1);
        let mut log = Log::default();
        let send = |network: &mut Network<u32>, log: &mut Log, at, n| {
            (0..n).for_each(|item| network.send(us(at), log, 0, Direction::Down, 1500, item));
        };
        send(&mut network, &mut log, 0, 2);
        // While a packet is under way there is nothing to keep: the bucket is empty at 2 ms and has 1500 bytes at 3 ms.
        network.apply(us(500), &mut log, &Change::Burst(Place::Path(0), Direction::Down, 3000));
        send(&mut network, &mut log, 3000, 2);
        let police = BucketSpec { rate: Rate::from_bps(1_200_000), burst: 1500 };
        network.apply(us(9_000), &mut log, &Change::Police(Place::Path(0), Direction::Down, police));
        send(&mut network, &mut log, 9000, 3);
        send(&mut network, &mut log, 19_000, 1);
        let _ = arrivals(&mut network, &mut log);
        assert_eq!(log.departures(), [1000, 2000, 3000, 4000, 9000, 19_000], "{queue:?}");
        assert_eq!(log.drops(DropCause::Police), [9000, 9000], "{queue:?}");
    }
}

#[test]
fn a_recording_has_the_rate_the_delay_and_the_loss_of_each_moment() {
    // 12, 6, 12 Mbit/s; 10, 30, 10 ms by departure; everything is lost that arrives from 18 to 40 ms.
    let text =
        "time_s,rate_mbps,delay_ms,loss\n0,12,10,0\n0.01,6,30,0\n0.018,,,1\n0.02,12,10,1\n0.04,12,10,0\n0.1,12,10,0\n";
    let recording = Recording::parse(text).unwrap();
    let Recorded { rate, delay, loss } = recording.down;
    let codel = QueueSpec::Managed(anabranch_network::CodelSpec::default().into(), DropTail::Packets(100));
    for queue in [QueueSpec::Packets(100), codel] {
        let capacity = CapacitySpec::Steps(rate.clone().unwrap());
        let own = Bottleneck::Own(BottleneckSpec::new(capacity, queue));
        let down = WaySpec { recorded_delay: delay.clone(), recorded_loss: loss.clone(), ..way(own, MS) };
        let mut network = Network::new(&one_path(down), 1);
        let mut log = Log::default();
        for (at, n) in [(0, 0), (8000, 1), (9500, 2), (19_000, 3), (28_000, 4)] {
            network.send(us(at), &mut log, 0, Direction::Down, 1500, n);
        }
        // Half a packet of the third at each rate; none arrives before the third, which was slower.
        assert_eq!(arrivals(&mut network, &mut log), [(11_000, 0), (41_000, 2), (41_000, 3), (41_000, 4)], "{queue:?}");
        assert_eq!(log.departures(), [1000, 9000, 11_000, 20_500, 29_000], "{queue:?}");
        assert_eq!(log.drops(DropCause::Loss), [19_000], "{queue:?}");
    }
}

#[test]
fn a_packet_above_the_mtu_is_dropped_and_reported_after_the_other_directions_delay() {
    let mut down = way(Bottleneck::Own(bottleneck(QueueSpec::Packets(9))), MS * 10);
    (down.mtu, down.reports_mtu) = (Some(1300), true);
    let mut topology = one_path(down);
    topology.paths[0].up.delay = MS * 7;
    let mut network: Network<u32> = Network::new(&topology, 1);
    let mut log = Log::default();
    let refuse = |network: &Network<u32>, log: &mut Log, size| network.refuse(us(3000), log, 0, Direction::Down, size);
    assert_eq!(refuse(&network, &mut log, 1300), None);
    let refused = Refused { mtu: 1300, reported: Some(us(10_000)) };
    assert_eq!(refuse(&network, &mut log, 1301), Some(refused));
    assert_eq!(log.drops(DropCause::Mtu), [3000]);
    assert_eq!(network.refuse(us(3000), &mut log, 0, Direction::Up, 9000), None);
    network.apply(us(3000), &mut log, &Change::Mtu(0, Direction::Down, 1400));
    assert_eq!(refuse(&network, &mut log, 1400), None);
    topology.paths[0].down.reports_mtu = false;
    assert_eq!(refuse(&Network::new(&topology, 1), &mut log, 1301), Some(Refused { reported: None, ..refused }));
}
