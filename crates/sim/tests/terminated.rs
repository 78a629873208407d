//! Connections that a box splits: over any network all bytes arrive, or both ends have an error.

mod common;

use anabranch_engine::endpoint::Endpoint;
use anabranch_network::{Change, LossSpec, MiddleboxSpec, PathSpec, ReorderSpec, SplitSpec, TerminateSpec};
use anabranch_sim::{Halt, World};
use anabranch_units::{Direction, Duration, Instant, PathId, Rng, Side};
use common::{Delivered, Transfer, path};

fn terminate(buffer: u32) -> MiddleboxSpec {
    TerminateSpec { buffer, ..TerminateSpec::default() }.into()
}

/// A transfer of so many bytes over one path, and what the client got of it.
fn run(path: PathSpec, size: u64, seed: u64, changes: Vec<(Instant, Change)>) -> (Delivered, World) {
    let mut transfer = Transfer::new(vec![path]);
    (transfer.size, transfer.seed, transfer.timeline) = (Some(size), seed, changes);
    let mut flow = transfer.flow(0, &[(PathId(0), false)]);
    (flow.awaited, flow.may_fail) = (false, true);
    let (mut world, mut seen) = (transfer.world_of(vec![flow]), Delivered::default());
    world.run(Instant::from_millis(900_000), &mut seen).expect("a legal run");
    (seen, world)
}

fn closed(world: &World) -> [bool; 2] {
    [Side::Client, Side::Server].map(|side| world.endpoint(0, side).is_some_and(Endpoint::is_empty))
}

#[test]
fn bytes_delivered_are_bytes_written_over_any_network() {
    for seed in 0..60 {
        let mut draw = Rng::stream(seed, "terminated");
        let mut pick = |bound: u64| draw.below(bound);
        let mut way = path("a", 1000 + 1000 * pick(30), 1 + pick(60), 5 + pick(200) as u32);
        let box_of = terminate(1500 + pick(200_000) as u32);
        // One box, one per direction, or one among others.
        match pick(4) {
            0 => way.down.middleboxes = vec![box_of],
            1 => way.up.middleboxes = vec![box_of],
            2 => (way.down.middleboxes, way.up.middleboxes) = (vec![box_of], vec![box_of]),
            _ => way.down.middleboxes = vec![SplitSpec { size: 400 }.into(), box_of],
        }
        for of in [&mut way.down, &mut way.up] {
            of.loss = LossSpec::Bernoulli(pick(8) as f64 / 100.0);
            of.reorder = ReorderSpec { probability: pick(3) as f64 / 100.0, by: Duration::from_millis(pick(20)) };
            of.duplicate = pick(3) as f64 / 100.0;
        }
        let size = 1 + pick(600_000);
        let (seen, world) = run(way, size, seed, Vec::new());
        assert_eq!((seen.bytes, closed(&world)), (vec![size], [true; 2]), "seed {seed}");
    }
}

#[test]
fn both_ends_hear_when_bytes_die_with_the_box() {
    for (at, buffer) in [(300, 20_000), (700, 262_144), (701, 1 << 20)] {
        let mut way = path("a", 5000, 20, 50);
        way.down.middleboxes = vec![terminate(buffer)];
        let change = Change::Middleboxes(0, Direction::Down, vec![terminate(buffer)]);
        let (seen, world) = run(way, 3_000_000, 1, vec![(Instant::from_millis(at), change)]);
        assert!(seen.bytes[0] < 3_000_000 && seen.bytes[0] > 10_000, "{:?}", seen.bytes);
        assert_eq!(closed(&world), [true; 2], "at {at} ms");
    }
}

#[test]
fn a_split_connection_fills_its_path() {
    let mut way = path("a", 10_000, 20, 60);
    way.down.middleboxes = vec![terminate(262_144)];
    let mut transfer = Transfer::new(vec![way]);
    transfer.size = Some(5_000_000);
    let mut world = transfer.world();
    let mut seen = Delivered::default();
    assert_eq!(world.run(Instant::from_millis(60_000), &mut seen), Ok(Halt::Done));
    // 4 s at the whole rate; NewReno without SACK repeats one packet per round trip.
    assert!(world.now() < Instant::from_millis(5000), "{}", world.now());
}
