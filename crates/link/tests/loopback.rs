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

mod measured {
    use super::*;
    use anabranch_link::measure::{RealLinks, Reach, Session};
    use anabranch_link::{Host, LinkError, Unmet};
    use anabranch_run::{Options, Plan, Results, Runner, Serial, Variant};
    use anabranch_scenario::{Document, PlugIn};
    use std::sync::Arc;

    const TWO_PATHS: &str = "mss = 1080\n[[path]]\nname = \"a\"\nrate = \"1gbit\"\ndelay = \"1ms\"\n[[path]]\nname = \"b\"\nrate = \"1gbit\"\ndelay = \"1ms\"\n";

    /// Runs a scenario over two paths of the loopback interface.
    fn measured(scenario: &str, schedulers: &[&str]) -> Results {
        let (server, client) = (secrets::new_key(), secrets::new_key());
        let mut host = Host::listen(local(), server.key.clone(), vec![admit(&client, "laptop")]).unwrap();
        let (address, stopped) = (host.local().unwrap(), stop());
        let flag = stopped.clone();
        let serving = thread::spawn(move || host.run(&flag).unwrap());
        let interfaces = vec!["lo".to_owned(); 2];
        let session = Session::open(Reach { key: client, server: server.key.public(), address, interfaces }).unwrap();
        let text = format!("[connection]\n{TWO_PATHS}{scenario}");
        let document = Document::parse("test", &text).unwrap();
        let driver = RealLinks::new(session, document.resolved());
        let named = |name: &&str| PlugIn { name: (*name).to_owned(), parameters: Vec::new() };
        let schedulers = schedulers.iter().map(named).collect();
        let options = Options { schedulers, real_time: true, ..Options::default() };
        let variant = Variant { cell: Vec::new(), scenario: Arc::new(document.scenario) };
        let plan = Plan::new(&[variant], &options);
        let results = Runner { driver: &driver, pool: &Serial, observer: &() }.run(&plan).unwrap();
        stopped.store(true, Ordering::Relaxed);
        serving.join().unwrap();
        results
    }

    #[test]
    fn runs_have_the_metrics_of_both_ends() {
        let results = measured("[[traffic]]\nkind = \"bulk\"\nsize = \"4MiB\"\n", &["roundrobin", "blest"]);
        assert_eq!(results.runs.len(), 4, "two schedulers, two single paths");
        for row in results.runs.rows() {
            for run in row.records() {
                assert!(run.finished && run.metrics.get("completion_s").is_some_and(|time| *time > 0.0), "{run:?}");
                // Known to the server alone: what it sent.
                let sent: f64 = run.paths.values().map(|path| path.get("sent_bytes").unwrap()).sum();
                assert!(sent >= 4.0 * 1024.0 * 1024.0, "{run:?}");
                assert!(run.paths.values().all(|path| *path.get("idle_rtt_s").unwrap() > 0.0 && path.get("idle_loss_ratio") == Some(&0.0)));
                assert!(!run.metrics.contains_key("oracle_ratio"), "nobody knows the capacity");
                assert_eq!(run.paths.len(), if run.scheduler.starts_with("single") { 1 } else { 2 });
            }
        }
    }
}
