//! Many connections between two hosts: what one of them does costs nothing for the others.

mod common;

use anabranch_sim::{End, FlowSetup, Opening, Party, client_port};
use anabranch_units::{ConnId, Instant, PathId, Side};
use anabranch_workload::{BulkSink, BulkSource, Fault, Stream, Workload};
use common::{Transfer, path};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the calls of an application.
#[derive(Debug)]
struct Counted<W> {
    inner: W,
    calls: Arc<AtomicUsize>,
}

impl<W> Counted<W> {
    fn count(&self) -> &W {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &self.inner
    }

    fn count_mut(&mut self) -> &mut W {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &mut self.inner
    }
}

impl<W: Workload> Workload for Counted<W> {
    fn on_established(&mut self, now: Instant, io: &mut dyn Stream) {
        self.count_mut().on_established(now, io);
    }
    fn on_writable(&mut self, now: Instant, io: &mut dyn Stream) {
        self.count_mut().on_writable(now, io);
    }
    fn on_readable(&mut self, now: Instant, io: &mut dyn Stream) {
        self.count_mut().on_readable(now, io);
    }
    fn next_wakeup(&self) -> Option<Instant> {
        self.count().next_wakeup()
    }
    fn is_done(&self) -> bool {
        self.count().is_done()
    }
    fn fault(&self) -> Option<Fault> {
        self.count().fault()
    }
}

const SIZE: u64 = 50_000;

/// One end of flow number `n` between two hosts.
fn party(t: &Transfer, side: Side, n: u32, workload: Box<dyn Workload>) -> Party {
    let mut setup = t.setup(0, side, &[(PathId(0), false)]);
    setup.id = ConnId(n);
    let client = &mut setup.paths[0].tuple;
    let client = if side == Side::Client { &mut client.local } else { &mut client.remote };
    client.set_port(client_port(ConnId(n)));
    Party { setup, workload }
}

/// Calls of applications per flow, of `flows` between two hosts on a path that grows with their number.
fn calls_per_flow(flows: u32) -> usize {
    let t = Transfer::new(vec![path("a", 1000 * u64::from(flows), 10, 20 * flows)]);
    let calls = Arc::new(AtomicUsize::new(0));
    let workload = |side| -> Box<dyn Workload> {
        match side {
            Side::Client => Box::new(Counted { inner: BulkSink::new(Some(SIZE)), calls: calls.clone() }),
            Side::Server => Box::new(Counted { inner: BulkSource::new(Some(SIZE)), calls: calls.clone() }),
        }
    };
    let end = |side| End::Engine {
        parties: (0..flows).map(|n| party(&t, side, n, workload(side))).collect(),
        opening: Opening::AtOnce(flows as usize),
    };
    let flow = FlowSetup { awaited: true, ..FlowSetup::between(end(Side::Client), end(Side::Server), Vec::new()) };
    let mut world = t.world_of(vec![flow]);
    world.run(Instant::from_millis(60_000), &mut ()).expect("a legal run");
    assert_eq!(world.done(0, Side::Client), flows as usize);
    calls.load(Ordering::Relaxed) / flows as usize
}

#[test]
fn applications_are_called_for_what_concerns_them() {
    let (few, many) = (calls_per_flow(5), calls_per_flow(200));
    assert!(few > 50, "{few} calls per flow: nothing was counted");
    assert!(many < few + few / 2, "{few} calls per flow of 5, {many} per flow of 200");
}

/// A client that is served as soon as it is asked, and never ends.
#[derive(Debug)]
struct Served(Arc<AtomicUsize>);

impl Workload for Served {
    fn on_readable(&mut self, _now: Instant, _io: &mut dyn Stream) {}
    fn is_done(&self) -> bool {
        false
    }
    fn is_served(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
    fn fault(&self) -> Option<Fault> {
        None
    }
}

#[test]
fn connections_that_are_served_cost_nothing_when_another_opens() {
    const FLOWS: u32 = 200;
    let t = Transfer::new(vec![path("a", 1000 * u64::from(FLOWS), 10, 20 * FLOWS)]);
    let asked = Arc::new(AtomicUsize::new(0));
    let workload = |side| -> Box<dyn Workload> {
        match side {
            Side::Client => Box::new(Served(asked.clone())),
            Side::Server => Box::new(BulkSink::new(None)),
        }
    };
    let end = |side| End::Engine {
        parties: (0..FLOWS).map(|n| party(&t, side, n, workload(side))).collect(),
        opening: Opening::Served(2),
    };
    let flow = FlowSetup::between(end(Side::Client), end(Side::Server), Vec::new());
    let mut world = t.world_of(vec![flow]);
    world.run(Instant::from_millis(1000), &mut ()).expect("a legal run");
    let endpoint = world.endpoint(0, Side::Client).expect("an engine");
    assert_eq!(endpoint.len(), FLOWS as usize);
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked <= 2 * FLOWS as usize, "asked {asked} times for {FLOWS} connections");
}
