//! Memory does not grow with simulated time. The only test of its process, because it counts every allocation.

mod common;

use anabranch_units::Instant;
use common::{Transfer, lossy};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn held() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

#[test]
fn ten_times_the_time_needs_no_more_memory() {
    let t = Transfer::new(vec![lossy("a", 10_000, 10, 50, 0.001), lossy("b", 5_000, 40, 50, 0.001)]);
    let before = held();
    let mut world = t.world();
    let mut after = |seconds: u64| {
        world.run(Instant::from_millis(seconds * 1000), &mut ()).expect("a legal run");
        held() - before
    };
    // Buffers have reached their full size by then.
    let short = (1..=10).map(|n| after(3 * n)).max().expect("ten samples");
    let long = (1..=10).map(|n| after(270 + 3 * n)).max().expect("ten samples");
    assert!(short > 10_000, "{short} bytes: nothing was measured");
    assert!(long < short + short / 4, "{short} bytes after 30 s, {long} after 300 s");
}
