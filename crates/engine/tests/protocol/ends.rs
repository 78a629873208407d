//! The connection that gets a packet, among many (RFC 9293 §3.10.7.1).

use crate::common::{SERVER_PORT, at, client_paths, setup, tcp};
use anabranch_engine::Cx;
use anabranch_engine::connection::PathSetup;
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_units::Rng;
use core::net::{Ipv4Addr, SocketAddr};
use std::collections::BTreeSet;

const CLIENTS: usize = 300;

/// Clients with addresses at random, so that some share a place in any table, and one port.
fn clients(rng: &mut Rng) -> Vec<SocketAddr> {
    let addresses: BTreeSet<u32> =
        core::iter::repeat_with(|| 0x0b00_0000 | rng.bits() as u32 >> 8).take(CLIENTS).collect();
    assert_eq!(addresses.len(), CLIENTS);
    addresses.into_iter().map(|bits| SocketAddr::new(Ipv4Addr::from_bits(bits).into(), 2000)).collect()
}

/// Carries packets until there are no more, and checks that each reaches the connection of its addresses.
fn exchange(cx: &mut Cx<'_>, ends: &mut [Endpoint; 2]) {
    loop {
        let mut sent = 0;
        for from in [0, 1] {
            while let Some((_, packet)) = ends[from].poll_transmit(cx) {
                sent += 1;
                let to = &mut ends[1 - from];
                let handle = to.handle_packet(cx, &packet).expect("each has a connection");
                let connection = to.connection(handle).expect("it exists");
                let tuple = connection.subflows().next().expect("it has a subflow").1;
                assert_eq!((tuple.local.ip(), tuple.remote.ip()), (packet.dst, packet.src));
            }
        }
        if sent == 0 {
            return;
        }
    }
}

#[test]
fn connections_that_differ_in_the_address_alone_get_their_own_packets() {
    let mut ends = [Endpoint::default(), Endpoint::default()];
    let server = |tuple| setup(tcp(), vec![PathSetup { tuple, ..client_paths(1).remove(0) }]);
    ends[1].listen(SERVER_PORT, Box::new(move |tuple| Some(server(tuple))));
    let mut rng = Rng::stream(1, "ends");
    let addresses = clients(&mut rng);
    let mut cx = Cx { now: at(1), recorder: &mut (), rng: &mut rng };
    let clients: Vec<Handle> = addresses
        .iter()
        .map(|address| {
            let mut paths = client_paths(1);
            paths[0].tuple.local = *address;
            ends[0].connect(&mut cx, setup(tcp(), paths))
        })
        .collect();
    exchange(&mut cx, &mut ends);
    // More than once: the subflows that had packets lately are looked up in another way.
    for _ in 0..3 {
        for (n, handle) in clients.iter().enumerate() {
            let bytes = (n as u16).to_be_bytes().to_vec().into();
            ends[0].connection_mut(*handle).expect("it exists").write(&mut cx, bytes);
        }
        exchange(&mut cx, &mut ends);
    }
    let accepted: Vec<Handle> = core::iter::from_fn(|| ends[1].poll_accept()).collect();
    assert_eq!(accepted.len(), clients.len());
    for handle in accepted {
        let connection = ends[1].connection_mut(handle).expect("it exists");
        let remote = connection.subflows().next().expect("it has a subflow").1.remote;
        let mut got = Vec::new();
        while let Some(bytes) = connection.read(&mut cx) {
            got.extend_from_slice(&bytes);
        }
        assert_eq!(got.len(), 6);
        assert!(got.chunks(2).all(|pair| addresses[usize::from(u16::from_be_bytes([pair[0], pair[1]]))] == remote));
    }
}
