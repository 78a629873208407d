//! Two endpoints speak Multipath TCP over two paths. The program carries their packets and tells them the time: the engine has no
//! socket, clock or thread.

use anabranch_congestion::build as congestion;
use anabranch_engine::connection::{PathSetup, Setup};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_engine::{Cx, FourTuple};
use anabranch_schedulers::build as scheduler;
use anabranch_units::{Duration, Instant, PathId, Rng};
use bytes::Bytes;
use std::collections::BTreeMap;

const PORT: u16 = 5000;
/// One-way delays of the two paths.
const DELAYS: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(30)];
const DATA: usize = 1_000_000;

/// One host: its endpoint, its random numbers, and its connection, once there is one.
struct Host {
    endpoint: Endpoint,
    rng: Rng,
    handle: Option<Handle>,
}

impl Host {
    fn new(name: &str) -> Self {
        Self { endpoint: Endpoint::new(16), rng: Rng::stream(1, name), handle: None }
    }
}

/// Addresses of path `n`, as the client has them.
fn tuple(n: u8) -> FourTuple {
    FourTuple { local: ([10, n, 0, 1], 40_000).into(), remote: ([10, n, 0, 2], PORT).into() }
}

/// Both ends know the paths, so that both give them the same ids.
fn setup(server: bool) -> Setup {
    let ends = |n| match server {
        true => FourTuple { local: tuple(n).remote, remote: tuple(n).local },
        false => tuple(n),
    };
    Setup::new(
        scheduler("minrtt", &[]).expect("in the registry"),
        congestion("lia", &[]).expect("in the registry"),
        (0..2).map(|n| PathSetup::new(PathId(n), ends(n))).collect(),
    )
}

/// The server sends [`DATA`] bytes: how many arrived, and when.
fn run() -> (usize, Instant) {
    let (mut hosts, mut now) = ([Host::new("client"), Host::new("server")], Instant::ZERO);
    hosts[1].endpoint.listen(PORT, Box::new(|_| Some(setup(true))));
    let Host { endpoint, rng, handle } = &mut hosts[0];
    *handle = Some(endpoint.connect(&mut Cx { now, recorder: &mut (), rng }, setup(false)));
    // Packets on their way, by arrival and order.
    let (mut flying, mut sent, mut unwritten, mut got) = (BTreeMap::new(), 0u64, Bytes::from(vec![7; DATA]), 0);
    loop {
        for (n, host) in hosts.iter_mut().enumerate() {
            let Host { endpoint, rng, handle } = host;
            *handle = handle.or_else(|| endpoint.poll_accept());
            // The recorder `()` forgets every event.
            let cx = &mut Cx { now, recorder: &mut (), rng };
            if let Some(connection) = handle.and_then(|handle| endpoint.connection_mut(handle)) {
                if n == 1 && !unwritten.is_empty() {
                    // As much as the send buffer has room for.
                    let taken = connection.write(cx, unwritten.clone());
                    let _ = unwritten.split_to(taken);
                    if unwritten.is_empty() {
                        connection.finish(cx);
                    }
                }
                while let Some(bytes) = connection.read(cx) {
                    got += bytes.len();
                }
                if connection.read_finished() && n == 0 {
                    return (got, now);
                }
            }
            while let Some((path, packet)) = endpoint.poll_transmit(cx) {
                let delay = DELAYS[path.map_or(0, PathId::index)];
                flying.insert((now + delay, sent), (1 - n, packet));
                sent += 1;
            }
        }
        // What happens next: a packet arrives, or a timer is due.
        let timers = hosts.iter().filter_map(|host| host.endpoint.poll_timeout()).min();
        let arrival = flying.keys().next().map(|(at, _)| *at);
        now = timers.into_iter().chain(arrival).min().expect("something is due").max(now);
        if arrival.is_some_and(|at| at <= now)
            && let Some((_, (to, packet))) = flying.pop_first()
        {
            let Host { endpoint, rng, .. } = &mut hosts[to];
            endpoint.handle_packet(&mut Cx { now, recorder: &mut (), rng }, &packet);
        } else {
            for Host { endpoint, rng, .. } in &mut hosts {
                endpoint.handle_timeout(&mut Cx { now, recorder: &mut (), rng });
            }
        }
    }
}

fn main() {
    let (bytes, at) = run();
    println!("{bytes} bytes arrived within {at}");
}

#[test]
fn everything_arrives() {
    let (bytes, at) = run();
    assert_eq!(bytes, DATA);
    assert!(at > Instant::from_millis(40), "a handshake and a window take two round trips");
}
