//! Queueing disciplines beside those of ns-3 3.44, on the same arrivals. `judges/ns3_queues.py` made the files.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read files")]

mod common;

use anabranch_network::{
    Bottleneck, BottleneckSpec, CakeSpec, CapacitySpec, CodelSpec, Discipline, DropTail, FqCodelSpec, Limit, Markable,
    Network, PieSpec, QueueSpec, RedSpec, Topology,
};
use anabranch_units::{Direction, Duration, Instant, Rate};
use common::{Log, path, way};
use std::fs;
use std::path::Path;

/// A packet with its number and its flow.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: usize,
    flow: u64,
}

impl Markable for Numbered {
    fn flow(&self) -> u64 {
        self.flow
    }
}

/// Arrival in nanoseconds, bytes, flow, and when it left; `None` = it was dropped.
type Row = (u64, u32, u64, Option<u64>);

fn vectors(name: &str) -> (Rate, Vec<Row>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ns3").join(name).with_extension("csv");
    let text = fs::read_to_string(file).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    let rate = Rate::from_bps(head.split_once(' ').unwrap().1.parse().unwrap());
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |n: usize| cells[n].parse().unwrap();
        (number(0), number(1) as u32, number(2), cells[3].parse().ok())
    };
    (rate, rows.lines().map(row).collect())
}

/// When each packet leaves a queue of this discipline.
fn replayed(discipline: Discipline, limit: Limit, rate: Rate, rows: &[Row]) -> Vec<Option<u64>> {
    let limit = match limit {
        Limit::Packets(packets) => DropTail::Packets(packets),
        _ => DropTail::UNLIMITED,
    };
    let queue = QueueSpec::Managed(discipline, limit);
    let own = Bottleneck::Own(BottleneckSpec::new(CapacitySpec::Fixed(rate), queue));
    let topology = Topology { paths: vec![path("a", way(own, Duration::ZERO))], links: vec![] };
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    let mut left = vec![None; rows.len()];
    let mut fetch = |network: &mut Network<Numbered>, log: &mut Log, now: Instant| {
        while let Some(due) = network.poll_timeout().filter(|due| *due <= now) {
            while let Some(delivery) = network.poll_deliver(due, Direction::Down, due, log) {
                left[delivery.item.number] = Some(due.as_nanos());
            }
        }
    };
    for (number, (at, size, flow, _)) in rows.iter().enumerate() {
        let now = Instant::from_nanos(*at);
        fetch(&mut network, &mut log, now);
        network.send(now, &mut log, 0, Direction::Down, *size, Numbered { number, flow: *flow });
    }
    fetch(&mut network, &mut log, Instant::from_nanos(u64::MAX - 1));
    left
}

/// Our number of drops over theirs, and our mean sojourn time over theirs.
fn agreement(name: &str, rows: &[Row], ours: &[Option<u64>]) -> (f64, f64) {
    let drops = |fates: &[Option<u64>]| fates.iter().filter(|fate| fate.is_none()).count() as f64;
    let mean = |fates: &[Option<u64>]| {
        let waits: Vec<f64> =
            rows.iter().zip(fates).filter_map(|(row, left)| Some(((*left)? - row.0) as f64)).collect();
        waits.iter().sum::<f64>() / waits.len() as f64
    };
    let theirs: Vec<Option<u64>> = rows.iter().map(|row| row.3).collect();
    let found = (drops(ours) / drops(&theirs), mean(ours) / mean(&theirs));
    println!(
        "{name}: {} packets, {} drops, ours/theirs {:.3}, sojourn {:.3}",
        rows.len(),
        drops(&theirs),
        found.0,
        found.1
    );
    found
}

fn judge(name: &str, discipline: Discipline, limit: Limit) {
    let (rate, mut rows) = vectors(name);
    if name == "cobalt" {
        // One queue there.
        rows.iter_mut().for_each(|row| row.2 = 0);
    }
    let (drops, sojourn) = agreement(name, &rows, &replayed(discipline, limit, rate, &rows));
    assert!((drops - 1.0).abs() < 0.1 && (sojourn - 1.0).abs() < 0.05, "{name}: {drops} {sojourn}");
}

/// ns-3 takes one step of Newton's method per drop in place of a square root, as Linux does: the second interval is 50 ms
/// there, 70.7 ms by RFC 8289. So single drops fall on other packets.
#[test]
fn codel_for_one_queue_and_for_each_flow_drops_as_often() {
    judge("codel", CodelSpec::default().into(), Limit::Packets(1000));
    judge("fq_codel", FqCodelSpec::default().into(), Limit::Packets(10_240));
}

#[test]
fn a_full_fq_codel_drops_from_the_fattest_flow() {
    judge("fq_codel_full", FqCodelSpec::default().into(), Limit::Packets(100));
}

#[test]
fn cobalt_drops_as_often() {
    judge("cobalt", CakeSpec::default().into(), Limit::Unlimited);
}

/// Both draw random numbers of their own.
#[test]
fn pie_and_red_drop_as_often() {
    let red = RedSpec { max_p: 0.02, wait: true, ..RedSpec::default() };
    judge("pie", PieSpec::default().into(), Limit::Packets(1000));
    judge("red", red.into(), Limit::Packets(1000));
}
