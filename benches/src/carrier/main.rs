//! `carrier`: the speed of the carrier's cryptography on one core. Datagrams sealed and opened, and what a forged one costs.

use anabranch_carrier::files::{self, KeyFile};
use anabranch_carrier::{Client, ClientSettings, Limits, Secret, Server, ServerSettings, StaticKey};
use anabranch_units::{Duration, Instant, PathId};
use chacha20::ChaCha20Rng;
use cpu_time::ProcessTime;
use rand_core::{Rng as _, SeedableRng as _};
use std::net::SocketAddr;

const PATH: PathId = PathId(0);
const ROUNDS: u32 = 200_000;
/// A packet of the largest size that Ethernet leaves.
const PACKET: usize = 1_440;

fn key(n: u8) -> KeyFile {
    KeyFile { key: StaticKey::new(Secret::new([n; 32])), preshared: Secret::new([n; 32]) }
}

fn random(n: u8) -> Box<ChaCha20Rng> {
    Box::new(ChaCha20Rng::from_seed([n; 32]))
}

fn home() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1))
}

/// Both ends with a session whose path has found its MTU.
fn joined() -> (Client, Server) {
    let KeyFile { key: own, preshared } = key(2);
    let admitted = files::Client { public: own.public(), preshared: preshared.clone(), name: "client".into() };
    let settings =
        ServerSettings { key: key(1).key, clients: vec![admitted], limits: Limits::default(), keep: Duration::ZERO };
    let mut server = Server::new(settings, random(1));
    let settings = ClientSettings { key: own, preshared, server: key(1).key.public(), epoch: 0 };
    let (mut client, mut packet) = (Client::new(settings, random(2)), Vec::new());
    client.add_path(Instant::ZERO, PATH);
    for n in 0..10 {
        let now = Instant::from_millis(n);
        client.handle_timeout(now);
        server.handle_timeout(now);
        while let Some((_, datagram)) = client.poll_transmit() {
            server.handle_datagram(now, home(), &datagram, &mut packet);
        }
        while let Some((_, datagram)) = server.poll_transmit() {
            client.handle_datagram(now, &datagram, &mut packet);
        }
    }
    (client, server)
}

/// Microseconds of CPU per call.
fn timed(what: &str, mut act: impl FnMut(u32)) {
    let begun = ProcessTime::now();
    (0..ROUNDS).for_each(&mut act);
    let each = begun.elapsed().as_secs_f64() / f64::from(ROUNDS);
    println!("{what:<34} {:>6.2} µs  {:>6.2} Gbit/s", each * 1e6, PACKET as f64 * 8e-9 / each);
}

fn main() {
    let (mut client, mut server) = joined();
    let (now, addresses) = (Instant::from_millis(10), client.addresses());
    let mut packet = vec![0x45; PACKET];
    packet[12..16].copy_from_slice(&addresses.client(PATH).octets());
    packet[16..20].copy_from_slice(&addresses.server().octets());
    let (mut datagram, mut plain) = (Vec::new(), Vec::new());
    timed("seal", |_| client.send(now, PATH, &packet, &mut datagram).expect("the path carries it"));
    timed("seal and open", |_| {
        client.send(now, PATH, &packet, &mut datagram).expect("the path carries it");
        assert!(server.handle_datagram(now, home(), &datagram, &mut plain).is_some());
    });
    let mut rng = random(3);
    let mut initiation = [0; 164];
    rng.fill_bytes(&mut initiation);
    initiation[..4].copy_from_slice(&[1, 0, 0, 0]);
    let before = server.counters().multiplications;
    timed("a forged first message", |n| {
        initiation[8..12].copy_from_slice(&n.to_le_bytes());
        server.handle_datagram(now, home(), &initiation, &mut plain);
    });
    let mut stray = datagram.clone();
    timed("a datagram for no keys", |n| {
        stray[4..8].copy_from_slice(&n.to_le_bytes());
        server.handle_datagram(now, home(), &stray, &mut plain);
    });
    let mut forged = datagram;
    timed("a forged datagram of known keys", |n| {
        forged[8..12].copy_from_slice(&(u32::MAX - n).to_le_bytes());
        server.handle_datagram(now, home(), &forged, &mut plain);
    });
    assert_eq!(server.counters().multiplications, before, "none of them costs an operation on the curve");
}
