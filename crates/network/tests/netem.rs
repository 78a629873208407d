//! The limit that counts packets in propagation.

mod common;

use anabranch_network::{Bottleneck, DropTail, LinkSpec, LossSpec, NetemSpec, Network, QueueSpec, Topology};
use anabranch_trace::DropCause;
use anabranch_units::{Direction, Duration};
use common::{Log, bottleneck, deliver, path, us, way};

const MS: Duration = Duration::from_millis(1);
const END: u64 = 1_000_000;

fn netem(limit: DropTail) -> QueueSpec {
    QueueSpec::Managed(NetemSpec.into(), limit)
}

/// A path of 12 Mbit/s, on which a packet of 1500 bytes takes 1 ms, and 10 ms.
fn topology(queue: QueueSpec) -> Topology {
    Topology { paths: vec![path("a", way(Bottleneck::Own(bottleneck(queue)), MS * 10))], links: vec![] }
}

/// Sends a packet of 1500 bytes at each of these milliseconds; returns when packets arrived and were dropped.
fn sent(topology: &Topology, at: impl IntoIterator<Item = u64>) -> (Vec<u64>, Vec<u64>) {
    let (mut network, mut log) = (Network::new(topology, 1), Log::default());
    let mut arrived = vec![];
    for (item, ms) in (0_u32..).zip(at) {
        arrived.extend(deliver(&mut network, &mut log, us(ms * 1000)));
        network.send(us(ms * 1000), &mut log, 0, Direction::Down, 1500, item);
    }
    arrived.extend(deliver(&mut network, &mut log, us(END)));
    let whole = |us: u64| us / 1000;
    let arrived = arrived.into_iter().map(|(at, _)| whole(at.as_nanos() / 1000)).collect();
    (arrived, log.drops(DropCause::Queue).into_iter().map(whole).collect())
}

#[test]
fn packets_in_transmission_and_in_propagation_count() {
    // At 4 ms three packets are in propagation, which a plain queue does not see; the first leaves at 11 ms.
    let (arrived, dropped) = sent(&topology(netem(DropTail::Packets(3))), [0, 1, 2, 4, 5, 10, 11, 11, 12]);
    assert_eq!((arrived, dropped), (vec![11, 12, 13, 22, 23], vec![4, 5, 10, 11]));
    let (arrived, dropped) = sent(&topology(QueueSpec::Packets(3)), [0, 1, 2, 4, 5, 10, 11, 11, 12]);
    assert_eq!((arrived.len(), dropped), (9, vec![]));
}

#[test]
fn a_burst_fills_the_limit_with_the_packet_in_transmission() {
    let (arrived, dropped) = sent(&topology(netem(DropTail::Packets(3))), [0; 5]);
    assert_eq!((arrived, dropped), (vec![11, 12, 13], vec![0, 0]));
    // A plain queue holds one more.
    assert_eq!(sent(&topology(QueueSpec::Packets(3)), [0; 5]).0, [11, 12, 13, 14]);
}

#[test]
fn a_limit_in_bytes_counts_the_bytes_of_all_of_them() {
    assert_eq!(sent(&topology(netem(DropTail::Bytes(4499))), [0, 1, 2]).1, [2]);
    assert_eq!(sent(&topology(netem(DropTail::Bytes(4500))), [0, 1, 2, 3]).1, [3]);
}

#[test]
fn a_path_that_holds_nothing_carries_a_packet_whatever_the_limit() {
    assert_eq!(sent(&topology(netem(DropTail::Packets(0))), [0, 1, 11]), (vec![11, 22], vec![1]));
}

#[test]
fn a_shared_link_counts_what_is_on_all_of_its_paths() {
    let over = |name, ms| path(name, way(Bottleneck::shared(0), MS * ms));
    let link = LinkSpec {
        name: "l".into(),
        down: bottleneck(netem(DropTail::Packets(2))),
        up: bottleneck(QueueSpec::Packets(9)),
        behind: None,
    };
    let topology = Topology { paths: vec![over("a", 10), over("b", 50)], links: vec![link] };
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    for (at, path) in [(0, 0), (1, 1), (2, 0), (10, 0), (12, 0), (13, 1)] {
        deliver(&mut network, &mut log, us(at * 1000));
        network.send(us(at * 1000), &mut log, path, Direction::Down, 1500, 0);
    }
    deliver(&mut network, &mut log, us(END));
    // One is on path a until 11 ms, one on path b until 52 ms.
    assert_eq!(log.drops(DropCause::Queue), [2000, 10_000, 13_000]);
}

#[test]
fn a_packet_held_back_counts_until_it_arrives_and_a_lost_one_until_it_would_have() {
    let mut topology = topology(netem(DropTail::Packets(1)));
    topology.paths[0].down.loss = LossSpec::Bernoulli(1.0);
    assert_eq!(sent(&topology, [0, 10, 11]), (vec![], vec![10]));
    topology.paths[0].down.loss = LossSpec::None;
    topology.paths[0].down.reorder = anabranch_network::ReorderSpec { probability: 1.0, by: MS * 5 };
    assert_eq!(sent(&topology, [0, 11, 15, 16]), (vec![16, 32], vec![11, 15]));
}

#[test]
fn nothing_changes_if_the_limit_is_never_reached() {
    let at = [0, 0, 0, 1, 2, 9, 9, 30];
    assert_eq!(sent(&topology(netem(DropTail::Packets(50))), at), sent(&topology(QueueSpec::Packets(50)), at));
}
