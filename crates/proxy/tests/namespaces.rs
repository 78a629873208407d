//! Proxied connections over two interfaces that come and go, between two namespaces. Needs root; SKIPPED without.

mod common;
#[path = "../../link/tests/common/mod.rs"]
mod link;

use common::{connect, credentials, with_proxy_for, with_proxy_on};
use link::ground::Ground;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

const RATE: &str = "20mbit";
const SIZE: u64 = 16 << 20;
/// So many requests take a second and more at the rate of their test.
const REQUESTS: usize = 150;

/// The bytes of a stream from here on.
fn stream(from: u64, len: usize) -> Vec<u8> {
    (from..).take(len).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 11) as u8).collect()
}

/// Reads a stream to its end, with a look at each step. Returns its length.
fn verify(program: &mut impl Read, mut at: impl FnMut(u64)) -> u64 {
    let (mut got, mut piece) = (0, vec![0; 1 << 16]);
    loop {
        let len = program.read(&mut piece).unwrap();
        if len == 0 {
            return got;
        }
        assert!(piece[..len] == stream(got, len), "at {got}");
        got += len as u64;
        at(got);
    }
}

/// The server sends so many bytes of it to the first program that comes.
fn serve(ground: &Ground, size: u64) {
    ground.on_server(move || {
        let target = TcpListener::bind("10.99.9.1:8080").unwrap();
        let (mut program, _) = target.accept().unwrap();
        (0..size).step_by(1 << 16).for_each(|from| program.write_all(&stream(from, 1 << 16)).unwrap());
    });
}

/// Programs see nothing of interfaces that come and go: neither of one that is pulled, nor of one that comes up later.
#[test]
fn a_proxied_download_outlives_interfaces_and_uses_new_ones() {
    let Some(ground) = Ground::new(Some(RATE)) else { return };
    serve(&ground, SIZE);
    ground.remove(1);
    // Each download is longer than what the others carry: it ends only if the one that is left is used.
    let steps: [(u64, &(dyn Fn() + Sync)); 4] = [
        (1 << 20, &|| ground.join(1, Some(RATE))),
        (6 << 20, &|| ground.cut(0)),
        (9 << 20, &|| ground.raise(0)),
        (12 << 20, &|| ground.remove(1)),
    ];
    with_proxy_on(&ground, |proxy, host| {
        let mut program = connect(proxy.socks, &host.to_string(), 8080, None).unwrap();
        let mut step = 0;
        let got = verify(&mut program, |got| {
            if let Some((_, act)) = steps.get(step).filter(|(at, _)| got >= *at) {
                act();
                step += 1;
            }
        });
        assert_eq!((got, step), (SIZE, steps.len()));
    });
}

/// Segments follow the MTU of their path: two paths have different ones, and one path's falls during a download. Those that were made before
/// reach it in two pieces. How soon that is, `crates/carrier/tests/session.rs` says in virtual time.
#[test]
fn a_proxied_download_outlives_a_path_that_becomes_narrow() {
    let size = 28 << 20;
    for others in [true, false] {
        let Some(ground) = Ground::new(Some(RATE)) else { return };
        serve(&ground, size);
        if others {
            ground.resize(1, 1_400)
        } else {
            ground.remove(1)
        }
        with_proxy_on(&ground, |proxy, host| {
            let mut program = connect(proxy.socks, &host.to_string(), 8080, None).unwrap();
            let mut narrow = None;
            let got = verify(&mut program, |got| {
                if got >= 4 << 20 && narrow.is_none() {
                    ground.resize(0, 1_280);
                    narrow = Some(proxy.paths()[0].received_bytes);
                }
            });
            assert_eq!(got, size);
            let after = proxy.paths()[0].received_bytes - narrow.unwrap();
            assert!(after > 1 << 20, "the path is used on: {after} bytes");
        });
    }
}

/// Requests that are on their way when their interface goes down reach the server over the other one: nothing of them has arrived.
#[test]
fn requests_that_begin_outlive_the_interface_that_carries_them() {
    let Some(ground) = Ground::new(Some("1mbit")) else { return };
    ground.on_server(|| {
        let target = TcpListener::bind("10.99.9.1:8080").unwrap();
        let mut held = Vec::new();
        target.incoming().for_each(|program| held.push(program.unwrap()));
    });
    with_proxy_on(&ground, |proxy, host| {
        let request = || connect(proxy.socks, &host.to_string(), 8080, None).map(drop);
        let refused: Vec<u8> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..REQUESTS).map(|_| scope.spawn(request)).collect();
            std::thread::sleep(std::time::Duration::from_millis(300));
            ground.cut(0);
            all.into_iter().filter_map(|request| request.join().unwrap().err()).collect()
        });
        assert_eq!(refused, [0; 0], "of {REQUESTS}; {:?}", proxy.status().counters);
    });
}

/// A host in the network of a port fills it without a word. Programs of this host, and of another one, are served as before.
#[test]
fn a_host_without_a_password_locks_no_other_out() {
    let Some(ground) = Ground::new(None) else { return };
    anabranch_link::raise_file_limit();
    ground.on_server(|| {
        let listener = TcpListener::bind("0.0.0.0:8080").unwrap();
        listener.incoming().for_each(|program| program.unwrap().write_all(b"hello").unwrap());
    });
    with_proxy_for(credentials(), &ground, |proxy, host| {
        let port = proxy.socks.port();
        // It has the address to which it connects.
        let silent: Vec<TcpStream> = (0..4_300).map(|_| TcpStream::connect(("10.99.0.1", port)).unwrap()).collect();
        let other = (Ipv4Addr::new(10, 99, 1, 1), port).into();
        for at in [[proxy.socks; 10], [other; 10]].as_flattened() {
            let mut program = connect(*at, &host.to_string(), 8080, Some(("ann", "secret"))).unwrap();
            let mut text = String::new();
            program.read_to_string(&mut text).unwrap();
            assert_eq!(text, "hello");
        }
        assert!(proxy.status().counters["crowded out"] >= silent.len() as u64 - 65);
    });
}
