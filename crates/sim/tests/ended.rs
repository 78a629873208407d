//! The memory that a connection leaves in its hosts while it is in TIME-WAIT. The only test of its process, because it counts every
//! allocation.

mod common;

use anabranch_sim::{End, FlowSetup, Opening, Party, World, client_port};
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_workload::{BulkSink, BulkSource, Workload};
use common::{Transfer, path};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SIZE: u64 = 100_000;

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// One end of connection number `n` between two hosts with two paths.
fn party(t: &Transfer, side: Side, n: u32) -> Party {
    let mut setup = t.setup(0, side, &[(PathId(0), false), (PathId(1), false)]);
    setup.id = ConnId(n);
    let first = &mut setup.paths[0].tuple;
    let client = if side == Side::Client { &mut first.local } else { &mut first.remote };
    client.set_port(client_port(ConnId(n)));
    let workload: Box<dyn Workload> = match side {
        Side::Client => Box::new(BulkSink::new(Some(SIZE))),
        Side::Server => Box::new(BulkSource::new(Some(SIZE))),
    };
    Party { setup, workload }
}

/// A world in which all of `count` connections have ended, ten at a time, in less than the time of TIME-WAIT.
fn ended(count: u32) -> World {
    let t = Transfer::new(["a", "b"].map(|name| path(name, 1_000_000, 5, 1000)).into());
    let end =
        |side| End::Engine { parties: (0..count).map(|n| party(&t, side, n)).collect(), opening: Opening::Served(10) };
    let flow = FlowSetup::between(end(Side::Client), end(Side::Server), Vec::new());
    let mut world = t.world_of(vec![flow]);
    world.run(Instant::from_millis(50_000), &mut ()).expect("a legal run");
    assert_eq!([Side::Client, Side::Server].map(|side| world.done(0, side)), [count as usize; 2]);
    world
}

/// Bytes that a world of `count` connections holds when all have ended, and how many ends of them are in TIME-WAIT.
fn left(count: u32) -> (usize, usize) {
    let before = held();
    let world = ended(count);
    let ends = |side| world.endpoint(0, side).expect("an engine").len();
    (held() - before, ends(Side::Client) + ends(Side::Server))
}

#[test]
fn little_is_left_of_a_connection_in_time_wait() {
    // The first world of a process allocates for all.
    left(1);
    // Powers of two: tables that double are as full in both.
    let ((few, _), (many, ends)) = (left(256), left(512));
    assert!(ends > 512, "{ends} ends of 512 connections are in TIME-WAIT: nothing was measured");
    let each = (many - few) / 256;
    assert!(each < 12_700, "{each} bytes per connection, with {ends} ends of 512 in TIME-WAIT");
}
