//! A run is a function of its seed, bit for bit.

mod common;

use anabranch_network::{Bottleneck, MediumSpec};
use anabranch_sim::Checks;
use anabranch_trace::{Digest, Event, Origin, Recorder};
use anabranch_units::{Duration, Instant, PathId, Side};
use common::random::random_transfer;
use common::{Transfer, lossy, path};
use std::sync::Arc;

/// Networks per test.
const SEEDS: u64 = 60;
const SCHEDULERS: [&str; 5] = ["minrtt+pr", "blest", "redundant", "roundrobin", "peekaboo"];

fn transfer(seed: u64) -> Transfer {
    let congestion = anabranch_congestion::all()[seed as usize / 4 % 4].name;
    random_transfer(seed, SCHEDULERS[seed as usize % SCHEDULERS.len()], congestion)
}

fn digest(transfer: &Transfer) -> String {
    let mut digest = Digest::new();
    transfer.world().run(Instant::from_millis(20_000), &mut digest).expect("a legal run");
    digest.finish()
}

#[test]
fn the_same_seed_gives_the_same_run_in_any_order() {
    let once: Vec<_> = (0..SEEDS).map(|seed| digest(&transfer(seed))).collect();
    for seed in (0..SEEDS).rev() {
        assert_eq!(digest(&transfer(seed)), once[seed as usize], "seed {seed}");
    }
}

#[test]
fn other_seeds_give_other_runs() {
    // One network throughout: only its random draws differ.
    let mut t = Transfer::new(vec![lossy("a", 5_000, 10, 50, 0.01), lossy("b", 5_000, 30, 50, 0.01)]);
    t.size = Some(1_000_000);
    let runs = (0..SEEDS).map(|seed| digest(&Transfer { seed, ..t.clone() }));
    let mut different: Vec<_> = runs.collect();
    different.sort();
    different.dedup();
    assert_eq!(different.len() as u64, SEEDS);
}

#[test]
fn writing_and_reading_every_packet_changes_nothing() {
    for seed in 0..SEEDS {
        let plain = transfer(seed);
        let written = Transfer { checks: Checks { wire: true }, ..plain.clone() };
        assert_eq!(digest(&written), digest(&plain), "seed {seed}");
    }
}

#[test]
fn a_scheduler_that_draws_lots_changes_nobody_elses_luck() {
    let keys = |scheduler: &str| {
        let mut t = Transfer::new(vec![path("a", 5_000, 10, 50), path("b", 5_000, 30, 50)]);
        t.scheduler = scheduler.into();
        let mut world = t.world();
        world.run(Instant::from_millis(3000), &mut ()).expect("a legal run");
        [Side::Client, Side::Server].map(|side| world.connection(0, side).and_then(|c| c.token()).expect("a token"))
    };
    assert_eq!(keys("peekaboo"), keys("minrtt"));
}

/// A digest of the events at the hosts of one connection.
struct Of(u32, Digest);

impl Recorder for Of {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        if origin.host.is_some() && origin.connection.0 == self.0 {
            self.1.record(now, origin, event);
        }
    }
}

#[test]
fn the_order_in_which_flows_are_listed_does_not_matter() {
    let t = Transfer {
        paths: (0..4).map(|n| path(&format!("p{n}"), 5_000, 5 + 10 * n, 30)).collect(),
        size: Some(300_000),
        ..transfer(7)
    };
    // Two connections that share nothing except the world.
    let over = |first: u8| [(PathId(first), false), (PathId(first + 1), false)];
    for flow in [0, 1] {
        let digest_of = |swapped: bool| {
            let mut flows = vec![t.flow(0, &over(0)), t.flow(1, &over(2))];
            if swapped {
                flows.reverse();
            }
            let mut of = Of(flow, Digest::new());
            t.world_of(flows).run(Instant::from_millis(60_000), &mut of).expect("a legal run");
            of.1.finish()
        };
        assert_eq!(digest_of(false), digest_of(true), "flow {flow}");
    }
}

/// The directions of a path, and all paths, divide one medium: what one side sends delays the other at once.
#[test]
fn hosts_on_shared_air_do_not_run_ahead_of_each_other() {
    for seed in 0..SEEDS {
        let mut transfer = Transfer { size: Some(100_000), ..transfer(seed) };
        let medium = Arc::new(MediumSpec { name: "air".into(), overhead: Duration::from_micros(100), packets: 1 });
        for way in transfer.paths.iter_mut().flat_map(|path| [&mut path.down, &mut path.up]) {
            if let Bottleneck::Own(own) = &mut way.bottleneck {
                own.medium = Some(medium.clone());
            }
        }
        let outcome = |needed| {
            let (mut world, mut order) = (transfer.world(), Order::new(needed));
            let halt = world.run(Instant::from_millis(20_000), &mut order).expect("a legal run");
            (halt, world.now(), world.events(), order.back, order.digest.finish())
        };
        let ahead = outcome(false);
        assert_eq!((&ahead, ahead.3), (&outcome(true), 0), "seed {seed}");
    }
}

/// A digest, and how often an event comes after a later one.
struct Order {
    needed: bool,
    last: Instant,
    back: u32,
    digest: Digest,
}

impl Order {
    fn new(needed: bool) -> Self {
        Self { needed, last: Instant::ZERO, back: 0, digest: Digest::new() }
    }
}

impl Recorder for Order {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        self.digest.record(now, origin, event);
        if origin.host.is_some() {
            self.back += u32::from(now < self.last);
            self.last = now;
        }
    }

    fn needs_order(&self) -> bool {
        self.needed
    }
}

#[test]
fn hosts_that_run_ahead_of_each_other_do_what_they_do_one_by_one() {
    let mut jumps = 0;
    for seed in 0..10 * SEEDS {
        let transfer = Transfer { size: Some(50_000 << (seed % 6)), ..transfer(seed) };
        let outcome = |needed| {
            let (mut world, mut order) = (transfer.world(), Order::new(needed));
            let halt = world.run(Instant::from_millis(20_000), &mut order).expect("a legal run");
            ((halt, world.now(), world.events(), order.digest.finish()), order.back)
        };
        let ((ahead, back), (one_by_one, none)) = (outcome(false), outcome(true));
        assert_eq!((ahead, none), (one_by_one, 0), "seed {seed}");
        jumps += back;
    }
    assert!(jumps > 10_000, "hosts were hardly ever ahead: {jumps}");
}
