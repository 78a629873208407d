//! Engines over carriers over real sockets, on the loopback interface; no privilege is needed.

mod common;

use anabranch_link::secrets;
use anabranch_units::{Duration, PathId};
use common::{MSS, Receiver, Sender, admit, settle, stop};
use std::sync::atomic::Ordering;
use std::thread;

fn local() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

const SIZE: u64 = 8 << 20;
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn a_download_over_two_paths_has_every_byte() {
    let (server, client) = (secrets::new_key(), secrets::new_key());
    let sender = Sender::new(local(), &server, vec![admit(&client, "laptop")], "minrtt", SIZE, MSS);
    let (address, stopped) = (sender.address(), stop());
    let flag = stopped.clone();
    let serving = thread::spawn(move || sender.run(&flag));
    let mut receiver = Receiver::new(client, server.key.public(), address, &["lo", "lo"]);
    assert!(receiver.join());
    settle(&mut receiver.driver, Duration::from_millis(100));
    let got = receiver.download(2, MSS, LIMIT, |_, _| {});
    stopped.store(true, Ordering::Relaxed);
    let sender = serving.join().unwrap();
    assert!(got.finished && got.bytes == SIZE, "{got:?}");
    let counters = receiver.driver.link.counters();
    assert_eq!((counters.forged, counters.foreign, counters.unknown_contents), (0, 0, 0), "{counters:?}");
    for path in [PathId(0), PathId(1)] {
        assert!(receiver.driver.link.path(path).unwrap().heard.is_some(), "both paths are in use");
        assert!(sender.driver.link.address(anabranch_carrier::PeerId(0), path).is_some_and(|(_, proven)| proven));
    }
    assert_eq!((receiver.driver.unread(), sender.driver.unread()), (0, 0));
}

#[test]
fn two_clients_have_engines_of_their_own() {
    let server = secrets::new_key();
    let keys = [secrets::new_key(), secrets::new_key()];
    let admitted = keys.iter().zip(["a", "b"]).map(|(key, name)| admit(key, name)).collect();
    let sender = Sender::new(local(), &server, admitted, "roundrobin", SIZE / 4, MSS);
    let (address, stopped) = (sender.address(), stop());
    let flag = stopped.clone();
    let serving = thread::spawn(move || sender.run(&flag));
    let downloads = keys.map(|key| {
        let public = server.key.public();
        thread::spawn(move || {
            let mut receiver = Receiver::new(key, public, address, &["lo"]);
            assert!(receiver.join());
            let addresses = receiver.driver.link.addresses();
            (receiver.download(1, MSS, LIMIT, |_, _| {}), addresses)
        })
    });
    let [(a, at_a), (b, at_b)] = downloads.map(|download| download.join().unwrap());
    stopped.store(true, Ordering::Relaxed);
    let sender = serving.join().unwrap();
    assert!(a.finished && b.finished, "{a:?} {b:?}");
    assert_ne!(at_a, at_b);
    assert_eq!(sender.driver.link.counters().handshakes, 2);
}

#[test]
fn a_key_that_is_not_authorised_gets_no_session() {
    let (server, client) = (secrets::new_key(), secrets::new_key());
    let sender = Sender::new(local(), &server, vec![admit(&secrets::new_key(), "other")], "minrtt", SIZE, MSS);
    let (address, stopped) = (sender.address(), stop());
    let flag = stopped.clone();
    let serving = thread::spawn(move || sender.run(&flag));
    let mut receiver = Receiver::new(client, server.key.public(), address, &["lo"]);
    settle(&mut receiver.driver, Duration::from_millis(500));
    stopped.store(true, Ordering::Relaxed);
    let counters = serving.join().unwrap().driver.link.counters();
    assert!(!receiver.driver.link.is_established());
    assert!(counters.unauthorized > 0 && counters.handshakes == 0, "{counters:?}");
}
