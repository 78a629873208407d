//! Packets of hosts outside the world.

use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, LossSpec, PathSpec, QueueSpec, Topology, WaySpec};
use anabranch_sim::{Checks, Content, End, FlowSetup, Raw, World, WorldSetup};
use anabranch_units::{Duration, Instant, Rate, Side};
use anabranch_wire::{Gso, GsoKind, Packet, Segment, VnetHeader};
use bytes::Bytes;

/// A world with one path between two hosts outside.
fn world(mbit: u64, queue: QueueSpec, loss: LossSpec) -> World {
    let capacity = CapacitySpec::Fixed(Rate::from_bps(mbit * 1_000_000));
    let bottleneck = Bottleneck::Own(BottleneckSpec::new(capacity, queue));
    let way = WaySpec { loss, ..WaySpec::clean(bottleneck, Duration::from_millis(5)) };
    let path = PathSpec { name: "path".into(), down: way.clone(), up: way };
    let setup = WorldSetup {
        topology: Topology { paths: vec![path], links: Vec::new() },
        seed: 1,
        timeline: Vec::new(),
        sources: Vec::new(),
        checks: Checks::default(),
    };
    World::new(setup, vec![FlowSetup::between(End::Outside, End::Outside, Vec::new())])
}

/// Thirty segments of 1000 bytes in one packet, as a device with offload hands it over.
fn large() -> Raw {
    let payload: Vec<u8> = (0..30_000_u32).map(|n| (n % 251) as u8).collect();
    let segment = Segment { payload: Bytes::from(payload), ..Segment::default() };
    let gso = Gso { kind: GsoKind::TCP_V4, header_len: 40, size: 1000 };
    let bytes = Packet { segment, ..Packet::default() }.emit().into();
    Raw { bytes, left: VnetHeader { checksum: Some((20, 16)), gso: Some(gso) } }
}

/// The packets of it that arrive, and their times.
fn carried(mut world: World) -> Vec<(Instant, Content)> {
    world.inject(0, Side::Server, 0, large(), &mut ());
    world.run(Instant::from_millis(1000), &mut ()).expect("a world that goes on");
    std::iter::from_fn(|| world.poll_outside()).map(|out| (out.at, out.content)).collect()
}

fn payload(arrived: &[(Instant, Content)]) -> Vec<u8> {
    let of = |(_, content): &(Instant, Content)| match content {
        Content::Segment(packet) => packet.segment.payload.to_vec(),
        Content::Raw(raw) => raw.parse().expect("a segment").segment.payload.to_vec(),
    };
    arrived.iter().flat_map(of).collect()
}

#[test]
fn a_queue_of_packets_counts_the_segments_of_a_large_one() {
    let arrived = carried(world(10, QueueSpec::Packets(10), LossSpec::None));
    // One in transmission, ten behind it; the rest is dropped. Each takes its own 832 us.
    assert_eq!(payload(&arrived), payload(&[(Instant::ZERO, Content::Raw(large()))])[..11_000]);
    let times: Vec<u64> = arrived.iter().map(|(at, _)| at.as_nanos() / 1000).collect();
    assert_eq!((times.len(), times[0], times[10]), (11, 5_832, 14_152));
}

#[test]
fn each_segment_of_a_large_packet_has_its_own_luck() {
    let arrived = carried(world(1_000_000, QueueSpec::Bytes(1 << 20), LossSpec::Bernoulli(0.3)));
    assert!((10..29).contains(&arrived.len()), "{}", arrived.len());
}

#[test]
fn where_nothing_counts_packets_a_large_one_stays_whole() {
    let arrived = carried(world(1_000_000, QueueSpec::Bytes(1 << 20), LossSpec::None));
    assert!(matches!(&arrived[..], [(_, Content::Raw(raw))] if *raw == large()));
    // But on a slow path the first segment does not wait for the last one.
    assert_eq!(carried(world(1_000, QueueSpec::Bytes(1 << 20), LossSpec::None)).len(), 30);
}

#[test]
fn what_is_under_way_is_counted_by_where_it_goes_and_since_when() {
    let mut world = world(1, QueueSpec::Packets(100), LossSpec::None);
    let (first, later) = (Instant::from_millis(1), Instant::from_millis(2));
    let raw = || Raw::from(Bytes::from(vec![0; 1000]));
    let count = |world: &World, side, until| world.under_way_to(0, side, until);
    for at in [first, first, later] {
        world.run(at, &mut ()).expect("a world that goes on");
        world.inject(0, Side::Client, 0, raw(), &mut ());
    }
    // Each takes 8 ms to leave and 5 ms to arrive.
    assert_eq!([first, later].map(|until| count(&world, Side::Server, until)), [2, 3]);
    assert_eq!(count(&world, Side::Client, later), 0);
    world.run(Instant::from_millis(15), &mut ()).expect("a world that goes on");
    assert_eq!([first, later].map(|until| count(&world, Side::Server, until)), [1, 2]);
    world.run(Instant::from_millis(100), &mut ()).expect("a world that goes on");
    assert_eq!(count(&world, Side::Server, later), 0);
}
