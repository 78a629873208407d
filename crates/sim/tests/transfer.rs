//! Whole transfers.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

mod common;

use anabranch_sim::{Halt, Party, World};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{Duration, Instant, PathId, Range, Side};
use anabranch_workload::{Fault, Stream, Workload};
use common::{ADVERSARY, Delivered, Transfer, asked, ms, path};

/// Ten minutes of a sized transfer whose run does not end with its last byte.
fn to_the_end(t: &Transfer, seen: &mut Delivered) -> World {
    let all: Vec<_> = (0..t.paths.len()).map(|n| (PathId(n as u8), false)).collect();
    let mut flow = t.flow(0, &all);
    flow.awaited = false;
    let mut world = t.world_of(vec![flow]);
    assert_eq!(world.run(Instant::from_millis(600_000), seen), Ok(Halt::Time));
    world
}

fn both_closed(world: &World) -> bool {
    [Side::Client, Side::Server]
        .into_iter()
        .all(|side| world.endpoint(0, side).is_some_and(anabranch_engine::endpoint::Endpoint::is_empty))
}

#[test]
fn a_sized_transfer_ends_with_its_last_byte() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100)]);
    t.size = Some(1_000_000);
    let mut seen = Delivered { verbose: asked("SHOW").is_some(), ..Delivered::default() };
    let mut world = t.world();
    assert_eq!(world.run(Instant::from_millis(60_000), &mut seen), Ok(Halt::Done));
    assert_eq!(seen.bytes, [1_000_000]);
    assert!(world.now() < Instant::from_millis(1_500), "{}", world.now());
}

#[test]
fn two_paths_carry_more_than_one() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100), path("b", 10_000, 20, 100)]);
    t.size = Some(4_000_000);
    let mut seen = Delivered { verbose: asked("SHOW").is_some(), ..Delivered::default() };
    let mut world = t.world();
    assert_eq!(world.run(Instant::from_millis(60_000), &mut seen), Ok(Halt::Done));
    assert_eq!(seen.bytes, [4_000_000]);
    assert!(world.now() < Instant::from_millis(2_200), "{}", world.now());
    assert_eq!((seen.stalls, seen.timeouts), (0, 0));
}

#[test]
fn a_host_reads_the_counters_of_its_own_device() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100), path("b", 10_000, 20, 100)]);
    t.paths[1].down.device = true;
    let mut world = t.world();
    let mut last = 0;
    for at in [1000, 2000] {
        world.run(Instant::from_millis(at), &mut ()).expect("a legal run");
        let devices = |side| -> Vec<_> {
            let view = world.connection(0, side).expect("it is open").view();
            view.paths().iter().map(|p| p.device).collect()
        };
        assert_eq!(devices(Side::Client), [None, None]);
        let seen = devices(Side::Server);
        let device = seen[1].expect("the scenario says so");
        // 10 Mbit/s are 845 packets of 1480 bytes per second; a window beyond the path's own is in the queue.
        assert_eq!(seen[0], None);
        assert!((1..=101).contains(&device.queued), "{device:?}");
        assert!(device.sent > last && device.sent - last < 900, "{device:?}");
        last = device.sent;
    }
}

#[test]
fn what_has_a_size_is_one_message() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100)]);
    for (size, expect) in [(Some(1_000_000), vec![Range::new(0, 1_000_000)]), (None, vec![])] {
        t.size = size;
        let mut world = t.world();
        world.run(Instant::from_millis(300), &mut ()).expect("a legal run");
        let view = world.connection(0, Side::Server).expect("it is open").view();
        assert_eq!(view.messages().collect::<Vec<_>>(), expect);
    }
}

#[test]
fn both_ends_close_after_a_transfer() {
    for mptcp in [true, false] {
        let mut t = Transfer::new(vec![path("a", 10_000, 10, 100)]);
        t.size = Some(10_000);
        t.settings.mptcp = mptcp;
        assert!(both_closed(&to_the_end(&t, &mut Delivered::default())), "mptcp: {mptcp}");
    }
}

#[test]
fn a_path_that_returns_takes_over_from_one_that_died() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100), path("b", 10_000, 10, 100)]);
    t.size = Some(4_000_000);
    let (from, to) = (Instant::from_millis(1_000), Instant::from_millis(3_000));
    for (path, until) in t.paths.iter_mut().zip([to, Instant::MAX]) {
        path.down.outages.push((from, until));
        path.up.outages.push((from, until));
    }
    let mut world = t.world();
    assert_eq!(world.run(Instant::from_millis(60_000), &mut ()), Ok(Halt::Done));
    // Half of it was delivered before; the timeout that detects the end of the outage follows at most some 1.6 s later.
    assert!(world.now() < Instant::from_millis(7_000), "{}", world.now());
}

/// When the client got new data over path 0, and the longest time between two deliveries.
#[derive(Default)]
struct Failover {
    over: Vec<Instant>,
    last: Option<Instant>,
    longest: Duration,
}

impl Recorder for Failover {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        match *event {
            Event::DataArrived { new: 1.., .. } if origin.path == PathId(0) => self.over.push(now),
            Event::Delivered(_) => {
                self.longest = self.longest.max(now.since(self.last.replace(now).unwrap_or(now)));
            }
            _ => {}
        }
    }
}

#[test]
fn data_flows_around_a_silent_path_and_over_it_soon_after_its_return() {
    // Least delays of 10 and 30 ms, queues of 30 ms: the round trips are 80 and 100 ms at most.
    for silent in [0, 1] {
        let mut t = Transfer::new(vec![path("a", 20_000, 10, 50), path("b", 10_000, 30, 25)]);
        t.paths.swap(0, silent);
        t.size = Some(30_000_000);
        let (from, to) = (Instant::from_millis(3_000), Instant::from_millis(10_000));
        t.paths[0].down.outages.push((from, to));
        t.paths[0].up.outages.push((from, to));
        let mut seen = Failover::default();
        assert_eq!(t.world().run(Instant::from_millis(60_000), &mut seen), Ok(Halt::Done));
        // A retransmission timeout of the one and a round trip of the other would be 380 ms.
        assert!(seen.longest <= Duration::from_millis(300), "path {silent}: {}", seen.longest);
        let back = seen.over.iter().find(|now| **now >= to).expect("it is used again");
        assert!(back.since(to) <= Duration::from_millis(500 + 2 * 100), "path {silent}: {}", back.since(to));
    }
}

#[test]
fn pacing_waits_for_the_window_without_waking_up() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100)]);
    t.size = Some(1_000_000);
    t.settings.tcp.pacing = true;
    let mut world = t.world();
    assert_eq!(world.run(Instant::from_millis(60_000), &mut ()), Ok(Halt::Done));
    assert!(world.now() < Instant::from_millis(1_500), "{}", world.now());
    // 715 segments: each delivered, acknowledged, and awaited.
    assert!(world.events() < 4_000, "{}", world.events());
}

#[test]
fn a_scheduler_that_is_not_asked_does_not_wake_its_connection() {
    // Over one path no scheduler is called, so this scheduler's waiting time ends soon.
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100)]);
    t.size = Some(1_000_000);
    t.scheduler = ADVERSARY.into();
    let mut world = t.world();
    assert_eq!(world.run(Instant::from_millis(60_000), &mut ()), Ok(Halt::Done));
    assert!(world.events() < 4_000, "{}", world.events());
}

#[test]
fn the_end_of_the_stream_finds_a_way_around_a_dead_path() {
    let mut t = Transfer::new(vec![path("a", 10_000, 10, 100), path("b", 10_000, 10, 100)]);
    t.size = Some(200_000);
    t.settings.tcp.retries = 5;
    let mut seen = Delivered::default();
    assert!(both_closed(&to_the_end(&t, &mut seen)));
    // The client cannot detect it: it has sent no data that could time out.
    let dead = (seen.last, Instant::MAX);
    t.paths[0].down.outages.push(dead);
    t.paths[0].up.outages.push(dead);
    let mut seen = Delivered::default();
    assert!(both_closed(&to_the_end(&t, &mut seen)));
    assert_eq!(seen.bytes, [200_000]);
}

/// An application that requests a call every 10 ms, for ever, and counts the calls.
#[derive(Debug)]
struct Ticking(Instant, std::sync::Arc<std::sync::atomic::AtomicU32>);

impl Workload for Ticking {
    fn on_readable(&mut self, _now: Instant, io: &mut dyn Stream) {
        while io.read().is_some() {}
    }
    fn on_wakeup(&mut self, now: Instant, _io: &mut dyn Stream) {
        self.0 = now + ms(10);
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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

#[test]
fn an_application_is_not_called_when_its_connection_is_gone() {
    let t = Transfer::new(vec![path("a", 10_000, 10, 100)]);
    let mut flow = t.flow(0, &[(PathId(0), false)]);
    flow.stop = Some(Instant::from_millis(1_000));
    let ticks = std::sync::Arc::default();
    let setup = t.setup(0, Side::Client, &[(PathId(0), false)]);
    let workload = Box::new(Ticking(Instant::ZERO, std::sync::Arc::clone(&ticks)));
    flow.client = Party { setup, workload }.into();
    let mut world = t.world_of(vec![flow]);
    // Not called for ever at the same time.
    assert_eq!(world.run(Instant::from_millis(2_000), &mut Delivered::default()), Ok(Halt::Time));
    let ticks = ticks.load(std::sync::atomic::Ordering::Relaxed);
    assert!((95..=101).contains(&ticks), "{ticks}");
}
