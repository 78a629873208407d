//! A world whose time stands still is reported instead of running for ever.

mod common;

use anabranch_sim::{Halt, Party, Stuck};
use anabranch_units::{Instant, PathId, Side};
use anabranch_workload::{Fault, Stream, Workload};
use common::{Transfer, ms, path};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// From a certain time on it requests another call at once, again and again.
#[derive(Debug)]
struct AlwaysDue(Instant);

impl Workload for AlwaysDue {
    fn on_readable(&mut self, _now: Instant, io: &mut dyn Stream) {
        while io.read().is_some() {}
    }
    fn next_wakeup(&self) -> Option<Instant> {
        Some(self.0)
    }
    fn is_done(&self) -> bool {
        false
    }
    fn fault(&self) -> Option<Fault> {
        None
    }
}

/// A bulk transfer to a client that is always due from `at` on.
fn ends(at: Instant, until: Instant) -> (Result<Halt, Stuck>, Instant) {
    let transfer = Transfer::new(vec![path("a", 10_000, 10, 100), path("b", 10_000, 20, 100)]);
    let over = [(PathId(0), false), (PathId(1), false)];
    let mut flow = transfer.flow(0, &over);
    flow.client = Party { setup: transfer.setup(0, Side::Client, &over), workload: Box::new(AlwaysDue(at)) }.into();
    let mut world = transfer.world_of(vec![flow]);
    let ended = world.run(until, &mut ());
    (ended, world.now())
}

#[test]
fn a_host_that_is_always_due_is_named_with_the_time() {
    let at = Instant::ZERO + ms(500);
    let (ended, now) = ends(at, Instant::MAX);
    let Err(stuck @ Stuck::Still { flow: 0, side: Side::Client, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!(now, at);
    let text = stuck.to_string();
    assert!(text.contains("the client of flow 0") && text.contains("time stands still"), "{text}");
}

#[test]
fn the_same_world_goes_on_until_then() {
    let (ended, now) = ends(Instant::ZERO + ms(500), Instant::ZERO + ms(499));
    assert_eq!((ended, now), (Ok(Halt::Time), Instant::ZERO + ms(499)));
}

/// Requests the world's stop from its application, as a signal would from outside.
#[derive(Debug)]
struct Asks {
    every: u64,
    next: Instant,
}

static ASKED: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU32 = AtomicU32::new(0);

impl Workload for Asks {
    fn on_readable(&mut self, _now: Instant, io: &mut dyn Stream) {
        while io.read().is_some() {}
    }
    fn on_wakeup(&mut self, _now: Instant, _io: &mut dyn Stream) {
        self.next += ms(self.every);
        if CALLS.fetch_add(1, Ordering::Relaxed) == 1000 {
            ASKED.store(true, Ordering::Relaxed);
        }
    }
    fn next_wakeup(&self) -> Option<Instant> {
        Some(self.next)
    }
    fn is_done(&self) -> bool {
        false
    }
    fn fault(&self) -> Option<Fault> {
        None
    }
}

#[test]
fn a_world_that_is_asked_to_stop_stops_in_the_middle() {
    let transfer = Transfer::new(vec![path("a", 10_000, 10, 100)]);
    let over = [(PathId(0), false)];
    let mut flow = transfer.flow(0, &over);
    let workload = Box::new(Asks { every: 1, next: Instant::ZERO });
    flow.client = Party { setup: transfer.setup(0, Side::Client, &over), workload }.into();
    let mut world = transfer.world_of(vec![flow]);
    world.stop_when(&ASKED);
    assert_eq!(world.run(Instant::MAX, &mut ()), Err(Stuck::Asked));
    // A second of virtual time had passed; the request is not checked at every event.
    assert!((ms(1000)..ms(3000)).contains(&world.now().since(Instant::ZERO)), "{}", world.now());
}
