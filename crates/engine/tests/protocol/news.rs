//! Which connections of an endpoint have something to tell.

use crate::common::{SERVER_PORT, at, client_paths, pattern, setup, tcp};
use anabranch_engine::Cx;
use anabranch_engine::connection::PathSetup;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_units::{Instant, Rng};
use std::collections::BTreeSet;

/// A client and a server with so many connections between them, which a packet reaches at once.
struct Hosts {
    now: Instant,
    rng: Rng,
    ends: [Endpoint; 2],
    client: Vec<Handle>,
}

impl Hosts {
    fn new(connections: u16) -> Self {
        let mut hosts = Self {
            now: at(1),
            rng: Rng::stream(1, "news"),
            ends: [Endpoint::default(), Endpoint::default()],
            client: Vec::new(),
        };
        let server = |tuple| setup(tcp(), vec![PathSetup { tuple, ..client_paths(1).remove(0) }]);
        hosts.ends[1].listen(SERVER_PORT, Box::new(move |tuple| Some(server(tuple))));
        hosts.client = (0..connections).map(|n| hosts.connect(n)).collect();
        hosts
    }

    fn connect(&mut self, n: u16) -> Handle {
        let mut paths = client_paths(1);
        paths[0].tuple.local.set_port(2000 + n);
        let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rng };
        self.ends[0].connect(&mut cx, setup(tcp(), paths))
    }

    /// Lets time pass for both ends, and carries packets until there are no more.
    fn exchange(&mut self, ms: u64) {
        self.now = at(ms);
        let mut cx = Cx { now: self.now, recorder: &mut (), rng: &mut self.rng };
        let [client, server] = &mut self.ends;
        client.handle_timeout(&mut cx);
        server.handle_timeout(&mut cx);
        let mut any = true;
        while core::mem::take(&mut any) {
            while let Some((_, packet)) = client.poll_transmit(&mut cx) {
                any = true;
                server.handle_packet(&mut cx, &packet);
            }
            while let Some((_, packet)) = server.poll_transmit(&mut cx) {
                any = true;
                client.handle_packet(&mut cx, &packet);
            }
        }
    }

    /// The client's connections that [`Endpoint::poll_news`] names, each once, by their places in `client`.
    fn news(&mut self) -> BTreeSet<usize> {
        let mut all = BTreeSet::new();
        while let Some(handle) = self.ends[0].poll_news() {
            let place = self.client.iter().position(|client| *client == handle).expect("one of ours");
            assert!(all.insert(place), "{place} is named twice");
        }
        all
    }

    /// Takes all events of a client's connection; returns how many there were.
    fn take_events(&mut self, place: usize) -> usize {
        let handle = self.client[place];
        core::iter::from_fn(|| self.ends[0].poll_event(handle)).count()
    }
}

#[test]
fn a_connection_with_unread_events_is_named_once_until_something_happens() {
    let mut hosts = Hosts::new(3);
    hosts.exchange(2);
    assert_eq!(hosts.news(), BTreeSet::from([0, 1, 2]));
    assert_eq!(hosts.news(), BTreeSet::new());
    // Unread events alone do not name it again.
    hosts.exchange(3);
    assert_eq!(hosts.news(), BTreeSet::new());
    assert!((0..3).all(|place| hosts.take_events(place) > 0));
    let accepted: Vec<Handle> = core::iter::from_fn(|| hosts.ends[1].poll_accept()).collect();
    let mut cx = Cx { now: hosts.now, recorder: &mut (), rng: &mut hosts.rng };
    let second = hosts.ends[1].connection_mut(accepted[1]).expect("it exists");
    second.write(&mut cx, pattern(0, 100));
    hosts.exchange(4);
    assert_eq!(hosts.news(), BTreeSet::from([1]));
    assert_eq!(hosts.take_events(1), 1);
}

#[test]
fn a_connection_whose_events_were_read_is_not_named() {
    let mut hosts = Hosts::new(3);
    hosts.exchange(2);
    assert!(hosts.take_events(1) > 0);
    assert_eq!(hosts.news(), BTreeSet::from([0, 2]));
}

#[test]
fn a_connection_that_is_gone_is_not_named() {
    let mut hosts = Hosts::new(2);
    hosts.exchange(2);
    assert_eq!(hosts.news(), BTreeSet::from([0, 1]));
    (0..2).for_each(|place| {
        hosts.take_events(place);
    });
    let accepted: Vec<Handle> = core::iter::from_fn(|| hosts.ends[1].poll_accept()).collect();
    let mut cx = Cx { now: hosts.now, recorder: &mut (), rng: &mut hosts.rng };
    for handle in accepted {
        hosts.ends[1].connection_mut(handle).expect("it exists").abort(&mut cx);
    }
    hosts.exchange(3);
    assert!(hosts.take_events(0) > 0);
    hosts.exchange(4);
    assert!(hosts.ends[0].connection(hosts.client[0]).is_none(), "it was reset and read");
    assert_eq!(hosts.news(), BTreeSet::from([1]));
}

#[test]
fn what_time_brings_is_news() {
    let mut hosts = Hosts::new(1);
    let handle = hosts.client[0];
    let closed = |hosts: &Hosts| hosts.ends[0].connection(handle).is_none_or(|connection| connection.is_closed());
    // No packet reaches a server: the SYN is given up.
    while !closed(&hosts) {
        assert_eq!(hosts.news(), BTreeSet::new(), "at {}", hosts.now);
        let mut cx = Cx { now: hosts.now, recorder: &mut (), rng: &mut hosts.rng };
        while hosts.ends[0].poll_transmit(&mut cx).is_some() {}
        hosts.now = hosts.ends[0].poll_timeout().expect("a timer");
        let mut cx = Cx { now: hosts.now, recorder: &mut (), rng: &mut hosts.rng };
        hosts.ends[0].handle_timeout(&mut cx);
    }
    assert_eq!(hosts.news(), BTreeSet::from([0]));
}
