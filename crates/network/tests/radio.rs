//! The layers under a link, at the level of the network: closed forms, and the packets of every bottleneck.

mod common;

use anabranch_network::{
    ArqSpec, Bottleneck, Change, CodelSpec, DropTail, JitterSpec, LinkSpec, Network, QueueSpec, RadioChange, RadioSpec,
    SlotsSpec, Topology, WakeSpec, WaySpec,
};
use anabranch_trace::DropCause;
use anabranch_units::{Direction, Duration, Instant};
use common::{Log, bottleneck, deliver, path, us, way};

const MS: Duration = Duration::from_millis(1);
const ARQ: ArqSpec = ArqSpec { loss: 0.2, attempts: Some(6), delay: Duration::from_millis(8), free: false };

/// A path with these layers over its own queue, its own CoDel, and a link.
fn topologies(radio: RadioSpec) -> [Topology; 3] {
    let codel = QueueSpec::Managed(CodelSpec::default().into(), DropTail::Packets(100_000));
    let of = |bottleneck| WaySpec { radio, ..way(bottleneck, MS * 10) };
    let alone = |queue| Topology { paths: vec![path("a", of(Bottleneck::Own(bottleneck(queue))))], links: vec![] };
    let end = || bottleneck(QueueSpec::Packets(100_000));
    let link = LinkSpec { name: "l".into(), down: end(), up: end(), behind: None };
    let shared = Topology { paths: vec![path("a", of(Bottleneck::shared(0)))], links: vec![link] };
    [alone(QueueSpec::Packets(100_000)), alone(codel), shared]
}

/// Sends a packet of 15 bytes per `every` microseconds; number and delay of each that arrives, in microseconds.
fn steady(topology: &Topology, packets: u32, every: u64, log: &mut Log) -> Vec<(u32, u64)> {
    let mut network = Network::new(topology, 7);
    let mut arrived = vec![];
    for n in 0..packets {
        let now = us(every * u64::from(n));
        arrived.extend(deliver(&mut network, log, now));
        network.send(now, log, 0, Direction::Down, 15, n);
    }
    arrived.extend(deliver(&mut network, log, Instant::from_millis(10_000_000)));
    assert_eq!(network.in_flight(), 0);
    let delay = |at: Instant, n: u32| at.as_nanos() / 1000 - every * u64::from(n);
    arrived.into_iter().map(|(at, d)| (d.item, delay(at, d.item))).collect()
}

#[test]
fn arq_turns_loss_into_delay_at_every_bottleneck() {
    for topology in topologies(RadioSpec { arq: ArqSpec { free: true, ..ARQ }, ..RadioSpec::NONE }) {
        let (mut log, n) = (Log::default(), 50_000u32);
        let arrived = steady(&topology, n, 100, &mut log);
        let lost = log.drops(DropCause::Loss).len();
        assert_eq!(arrived.len() + lost, n as usize);
        let near = |count: usize, p: f64| {
            let n = f64::from(n);
            assert!((count as f64 - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt() + 1.0, "{count}, {}", n * p);
        };
        near(lost, ARQ.residual_loss());
        for k in 0..6u64 {
            // 10 µs of transmission, 10 ms of delay, 8 ms per retry.
            let found = arrived.iter().filter(|(_, delay)| *delay == 10_010 + 8_000 * k).count();
            near(found, 0.8 * libm::pow(0.2, k as f64));
        }
        assert!(!arrived.is_sorted(), "packets overtake");
    }
}

/// Kept in order, a packet waits for all before it. Of packets T apart, the one that is i packets back has arrived within x of this
/// one's first attempt with the probability that it had at most (x + i·T)/d failures: the product over i is the distribution.
#[test]
fn arq_in_order_delays_as_the_product_of_its_predecessors() {
    let (every, packets) = (1_500, 200_000);
    for topology in topologies(RadioSpec { arq: ArqSpec { attempts: None, ..ARQ }, ..RadioSpec::NONE }) {
        let arrived = steady(&topology, packets, every, &mut Log::default());
        assert!(arrived.len() == packets as usize && arrived.is_sorted_by_key(|(n, _)| *n));
        for x in [0, 500, 2_000, 3_500, 6_500, 8_000, 12_500, 16_000] {
            let failures = |i: u64| (x + i * every) / 8_000;
            let expected: f64 = (0..200).map(|i| 1.0 - libm::pow(0.2, failures(i) as f64 + 1.0)).product();
            let found = arrived.iter().filter(|(_, delay)| *delay <= 10_010 + x).count() as f64 / f64::from(packets);
            assert!((found - expected).abs() < 0.006, "{x} µs: {found}, not {expected}");
        }
    }
}

#[test]
fn a_sleeping_device_holds_packets_before_the_queue() {
    let wake = WakeSpec { idle: Duration::from_secs(1), delay: MS * 300 };
    for topology in topologies(RadioSpec { wake, ..RadioSpec::NONE }) {
        let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
        (0..5).for_each(|n| network.send(us(2_000 * n), &mut log, 0, Direction::Down, 1500, n as u32));
        assert_eq!((network.in_flight(), network.queue_len(us(9_000), &mut log, 0, Direction::Down).packets), (5, 0));
        // Awake after 300 ms; then one packet per millisecond, as the rate has it.
        let arrived = deliver(&mut network, &mut log, us(1_000_000));
        let times: Vec<_> = arrived.iter().map(|(at, d)| (d.item, at.as_nanos() / 1000)).collect();
        assert_eq!(times, (0..5).map(|n| (n, 311_000 + 1_000 * u64::from(n))).collect::<Vec<_>>());
        // An acknowledgment keeps it awake; after more than a second of idling it sleeps again.
        network.send(us(1_000_000), &mut log, 0, Direction::Up, 40, 9);
        deliver(&mut network, &mut log, us(1_900_000));
        network.send(us(1_900_000), &mut log, 0, Direction::Down, 1500, 10);
        network.send(us(2_900_001), &mut log, 0, Direction::Down, 1500, 11);
        let times: Vec<_> =
            deliver(&mut network, &mut log, us(9_000_000)).iter().map(|(at, _)| at.as_nanos() / 1000).collect();
        assert_eq!(times, [1_911_000, 3_211_001]);
    }
}

#[test]
fn aggregated_packets_arrive_together() {
    for topology in topologies(RadioSpec { aggregate: MS * 4, ..RadioSpec::NONE }) {
        let arrived = steady(&topology, 20_000, 500, &mut Log::default());
        let mut times: Vec<u64> = arrived.iter().map(|(n, delay)| 500 * u64::from(*n) + delay).collect();
        times.dedup();
        assert!(times.windows(2).all(|two| two[1] - two[0] == 4_000), "eight packets per release");
        let mean = arrived.iter().map(|(_, delay)| *delay as f64).sum::<f64>() / 20_000.0;
        // Half the time between releases; the phase of eight packets within it is worth a quarter of a millisecond at most.
        assert!((mean - 12_010.0).abs() <= 251.0, "{mean}");
    }
}

#[test]
fn slots_change_the_delay_and_lose_packets_at_their_beginning() {
    let slots = SlotsSpec { every: MS * 1_000, step: MS * 5, loss: 0.5, burst: MS * 100 };
    for topology in topologies(RadioSpec { slots, ..RadioSpec::NONE }) {
        let (mut log, n) = (Log::default(), 60_000u32);
        let arrived = steady(&topology, n, 1_000, &mut log);
        let lost = log.drops(DropCause::Loss);
        assert_eq!(arrived.len() + lost.len(), n as usize);
        // Half of a tenth of all.
        assert!((2_700..3_300).contains(&lost.len()), "{}", lost.len());
        let mut delays: Vec<u64> = arrived.iter().map(|(_, delay)| *delay).collect();
        assert!(delays.iter().all(|delay| (5_010..=15_010).contains(delay)));
        delays.dedup();
        // At a step down, packets arrive together with the last of the slot before.
        assert!((60..500).contains(&delays.len()), "{}", delays.len());
    }
}

#[test]
fn layers_change_while_packets_are_under_way_and_none_is_forgotten() {
    for topology in topologies(RadioSpec::NONE) {
        let (mut network, mut log) = (Network::new(&topology, 2), Log::default());
        let wake = WakeSpec { idle: MS, delay: MS * 50 };
        let changes = [
            RadioChange::Arq(ArqSpec { loss: 1.0, attempts: Some(2), ..ARQ }),
            RadioChange::Wake(wake),
            RadioChange::Arq(ArqSpec::NONE),
            RadioChange::Aggregate(MS * 20),
            RadioChange::Slots(SlotsSpec { every: MS * 30, step: MS * 10, loss: 1.0, burst: MS }),
            RadioChange::Wake(WakeSpec::NONE),
            RadioChange::Slots(SlotsSpec::NONE),
            RadioChange::Aggregate(Duration::ZERO),
        ];
        let mut arrived = vec![];
        for (n, change) in changes.into_iter().enumerate() {
            let now = us(10_000 * (n as u64 + 1));
            arrived.extend(deliver(&mut network, &mut log, now));
            network.apply(now, &mut log, &Change::Radio(0, Direction::Down, change));
            (0..5).for_each(|k| network.send(now, &mut log, 0, Direction::Down, 1500, 10 * n as u32 + k));
        }
        arrived.extend(deliver(&mut network, &mut log, us(10_000_000)));
        let items: Vec<u32> = arrived.iter().map(|(_, d)| d.item).collect();
        assert!(items.is_sorted() && network.in_flight() == 0);
        let lost = log.drops(DropCause::Loss).len();
        assert_eq!(items.len() + lost, 40);
        assert!(lost >= 5 && items.iter().all(|item| *item >= 10), "the first five failed twice: {items:?}");
    }
}

/// The draws of ARQ are its own: with it, jitter has the same draws.
#[test]
fn layers_do_not_move_the_draws_of_others() {
    let jitter = JitterSpec { spread: MS * 5, free: true, ..JitterSpec::NONE };
    let delays = |arq| {
        let own = Bottleneck::Own(bottleneck(QueueSpec::Packets(1000)));
        let down = WaySpec { jitter: jitter.clone(), radio: RadioSpec { arq, ..RadioSpec::NONE }, ..way(own, MS * 10) };
        let topology = Topology { paths: vec![path("a", down)], links: vec![] };
        let mut all = steady(&topology, 1_000, 100, &mut Log::default());
        all.sort_unstable();
        all
    };
    let arq = ArqSpec { free: true, attempts: None, ..ARQ };
    for ((n, with), (m, without)) in delays(arq).into_iter().zip(delays(ArqSpec::NONE)) {
        assert!(n == m && (with - without) % 8_000 == 0, "{with} {without}");
    }
}
