//! Any datagrams at both ends of a carrier, before and in a session: no panic, no reply longer than what it replies to, no
//! operation on the curve without a valid `mac1`, no packet out of what is forged; and the two texts that the carrier reads.
//!
//! A datagram is its end and its kind (one byte), its length (one byte) and its content. The fuzzer cannot guess an index, so
//! the bit 4 of the first byte puts the index of the session's keys into it.

#![no_main]

use anabranch_carrier::files::{self, KeyFile};
use anabranch_carrier::{Client, ClientSettings, Limits, Secret, Server, ServerSettings, StaticKey};
use anabranch_units::{Duration, Instant, PathId};
use chacha20::ChaCha20Rng;
use libfuzzer_sys::fuzz_target;
use rand_core::SeedableRng;
use std::net::SocketAddr;

const NOW: Instant = Instant::from_millis(1);
const HOME: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = files::authorized(text);
        let _ = KeyFile::parse(text);
    }
    let (mut client, mut server) = ends();
    let indices = data.first().filter(|first| **first & 128 != 0).map(|_| join(&mut client, &mut server));
    let mut rest = data.get(1..).unwrap_or_default();
    while let [kind, len, more @ ..] = rest {
        let (content, behind) = more.split_at(usize::from(*len).min(more.len()));
        rest = behind;
        play(&mut client, &mut server, *kind, content, indices);
    }
});

fn play(client: &mut Client, server: &mut Server, kind: u8, content: &[u8], indices: Option<[[u8; 4]; 2]>) {
    let to_server = kind & 8 == 0;
    let mut datagram = vec![kind & 7, 0, 0, 0];
    if let (Some(indices), true) = (indices, kind & 16 != 0) {
        datagram.extend_from_slice(&indices[usize::from(!to_server)]);
    }
    datagram.extend_from_slice(content);
    // The lengths that handshake messages have.
    match kind >> 5 {
        1 => datagram.resize(164, 0),
        2 => datagram.resize(92, 0),
        3 => datagram.resize(64, 0),
        _ => {}
    }
    let before = server.counters().multiplications + client.counters().multiplications;
    let mut packet = Vec::new();
    let arrived = if to_server {
        server.handle_datagram(NOW, HOME, &datagram, &mut packet).is_some()
    } else {
        client.handle_datagram(NOW, &datagram, &mut packet).is_some()
    };
    assert!(!arrived, "a forged packet");
    let sent = std::iter::from_fn(|| {
        server.poll_transmit().map(|(_, bytes)| bytes).or_else(|| Some(client.poll_transmit()?.1))
    });
    assert!(sent.map(|bytes| bytes.len()).max().unwrap_or(0) <= datagram.len());
    assert_eq!(server.counters().multiplications + client.counters().multiplications, before);
}

fn key(n: u8) -> KeyFile {
    KeyFile { key: StaticKey::new(Secret::new([n; 32])), preshared: Secret::new([n; 32]) }
}

fn ends() -> (Client, Server) {
    let random = |n| Box::new(ChaCha20Rng::from_seed([n; 32]));
    let KeyFile { key: own, preshared } = key(2);
    let admitted = files::Client { public: own.public(), preshared: preshared.clone(), name: "client".into() };
    let settings = ServerSettings { key: key(1).key, clients: vec![admitted], limits: Limits::default(), keep: Duration::ZERO };
    let client = ClientSettings { key: own, preshared, server: key(1).key.public(), epoch: 0 };
    (Client::new(client, random(2)), Server::new(settings, random(1)))
}

/// Makes a session; the indices of its keys, the server's first.
fn join(client: &mut Client, server: &mut Server) -> [[u8; 4]; 2] {
    let (mut indices, mut packet) = ([[0; 4]; 2], Vec::new());
    client.add_path(NOW, PathId(0));
    client.handle_timeout(NOW);
    for _ in 0..4 {
        while let Some((_, datagram)) = client.poll_transmit() {
            if datagram[0] == 4 {
                indices[0].copy_from_slice(&datagram[4..8]);
            }
            server.handle_datagram(NOW, HOME, &datagram, &mut packet);
        }
        while let Some((_, datagram)) = server.poll_transmit() {
            if datagram[0] == 4 {
                indices[1].copy_from_slice(&datagram[4..8]);
            }
            client.handle_datagram(NOW, &datagram, &mut packet);
        }
    }
    assert!(client.is_established());
    indices
}
