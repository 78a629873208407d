//! Measured runs over real sockets, on the loopback interface; no privilege is needed.

#[path = "../../link/tests/common/mod.rs"]
mod link;

use anabranch_carrier::files::KeyFile;
use anabranch_link::{LinkError, PeerError, Server, SessionSettings, secrets};
use anabranch_measure::{MeasurementService, MeasurementSession, RealLinks};
use anabranch_run::{Failure, Options, Plan, Results, Runner, Serial, Variant};
use anabranch_scenario::{Document, PlugIn};
use anabranch_units::Duration;
use link::{admit, stop};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

/// Opens a session over these interfaces with a server that admits `admitted`, and uses it.
fn with_session<T>(
    client: KeyFile,
    admitted: &KeyFile,
    interfaces: &[&str],
    act: impl FnOnce(Result<MeasurementSession, LinkError>) -> T,
) -> T {
    let (server, local) = (secrets::new_key(), "127.0.0.1:0".parse().unwrap());
    let service = Box::new(MeasurementService::default());
    let mut host = Server::listen(local, server.key.clone(), vec![admit(admitted, "laptop")], vec![service]).unwrap();
    let (address, stopped) = (host.local().unwrap(), stop());
    let flag = stopped.clone();
    let serving = thread::spawn(move || host.run(&flag, None).unwrap());
    let interfaces = interfaces.iter().map(|name| (*name).to_owned()).collect();
    let done = act(MeasurementSession::open(SessionSettings {
        key: client,
        server: server.key.public(),
        address,
        interfaces,
    }));
    stopped.store(true, Ordering::Relaxed);
    serving.join().unwrap();
    done
}

fn same(key: &KeyFile) -> KeyFile {
    KeyFile::parse(&key.text()).unwrap()
}

/// Runs a scenario over two paths of the loopback interface.
fn measured(scenario: &str, schedulers: &[&str]) -> Result<Results, Failure> {
    measured_with(1080, scenario, schedulers)
}

fn measured_with(mss: u32, scenario: &str, schedulers: &[&str]) -> Result<Results, Failure> {
    measured_on(&format!("mss = {mss}"), scenario, schedulers)
}

fn measured_on(connection: &str, scenario: &str, schedulers: &[&str]) -> Result<Results, Failure> {
    let client = secrets::new_key();
    with_session(same(&client), &client, &["lo", "lo"], |session| {
        let path = |name| format!("[[path]]\nname = \"{name}\"\nrate = \"1gbit\"\ndelay = \"1ms\"\n");
        let text = format!("duration = \"60s\"\n[connection]\n{connection}\n{}{}{scenario}", path("a"), path("b"));
        let document = Document::parse("test", &text).unwrap();
        let driver = RealLinks::new(session.unwrap(), document.resolved());
        let named = |name: &&str| PlugIn { name: (*name).to_owned(), parameters: Vec::new() };
        let schedulers = schedulers.iter().map(named).collect();
        let options = Options { schedulers, real_time: true, ..Options::default() };
        let variant = Variant { cell: Vec::new(), scenario: Arc::new(document.scenario) };
        let plan = Plan::new(&[variant], &options);
        Runner { driver: &driver, pool: &Serial, observer: &() }.run(&plan)
    })
}

#[test]
fn runs_have_the_metrics_of_both_ends() {
    let results = measured("[[traffic]]\nkind = \"bulk\"\nsize = \"4MiB\"\n", &["roundrobin", "blest"]).unwrap();
    assert_eq!(results.runs.len(), 4, "two schedulers, two single paths");
    for run in results.runs.rows().flat_map(|row| row.records().collect::<Vec<_>>()) {
        assert!(run.finished && run.metrics.get("completion_s").is_some_and(|time| *time > 0.0), "{run:?}");
        assert_eq!(run.paths.len(), if run.scheduler.starts_with("single") { 1 } else { 2 });
        assert!(!run.metrics.contains_key("oracle_ratio"), "nobody knows the capacity");
        let of = |name| run.paths.values().map(move |path| *path.get(name).unwrap());
        // Known to the server alone. The clocks of both ends agree within half a round trip, which on a busy machine is long enough
        // for a part of the data: that part is then sent after the end.
        assert!(of("sent_bytes").sum::<f64>() >= 0.5 * 4.0 * 1024.0 * 1024.0, "{run:?}");
        assert!(of("idle_rtt_s").all(|rtt| rtt > 0.0) && of("idle_loss_ratio").all(|lost| lost < 1.0), "{run:?}");
    }
}

#[test]
fn every_kind_of_traffic_has_its_measure() {
    let of = |traffic: &str| {
        let results = measured(&format!("[[traffic]]\n{traffic}\n"), &["minrtt"]).unwrap();
        results.runs.rows().next().unwrap().records().next().unwrap().metrics
    };
    let frames = of("kind = \"frames\"\nsize = \"5KB\"\ninterval = \"10ms\"\ncount = 20");
    assert!(frames.get("app_delay_mean_s").is_some_and(|delay| *delay > 0.0), "{frames:?}");
    let request = of("kind = \"request\"\nsize = \"10KB\"\ncount = 20");
    assert!(request.get("response_mean_s").is_some_and(|time| *time > 0.0), "{request:?}");
    let web = of("kind = \"web\"\nsize = \"500KB\"\nobjects = 20");
    assert!(web.get("completion_s").is_some_and(|time| *time > 0.0), "{web:?}");
}

#[test]
fn data_flow_either_way_and_both_ways() {
    for (direction, bytes) in [("up", 2.0), ("both", 4.0)] {
        let traffic = format!("[[traffic]]\nkind = \"bulk\"\nsize = \"2MiB\"\ndirection = \"{direction}\"\n");
        let results = measured(&traffic, &["minrtt"]).unwrap();
        assert_eq!(results.runs.len(), 3, "a scheduler, two single paths");
        for run in results.runs.rows().flat_map(|row| row.records().collect::<Vec<_>>()) {
            assert!(run.finished, "{direction}: {run:?}");
            assert_eq!(run.metrics["delivered_bytes"], bytes * 1024.0 * 1024.0, "{direction}");
            assert_eq!(run.metrics.contains_key("goodput_up_bps"), direction == "both");
        }
    }
}

const BULK: &str = "[[traffic]]\nkind = \"bulk\"\nsize = \"1MiB\"\n";

/// Every run delivers all bytes.
fn assert_whole(results: &Results) {
    for run in results.runs.rows().flat_map(|row| row.records().collect::<Vec<_>>()) {
        assert!(run.finished, "{run:?}");
    }
}

#[test]
fn every_scheduler_works() {
    let all: Vec<&str> = anabranch_schedulers::all().iter().map(|entry| entry.name).collect();
    let results = measured(BULK, &all).unwrap();
    assert_eq!(results.runs.len(), all.len() + 2, "and two single paths");
    assert_whole(&results);
}

#[test]
fn every_congestion_control_works() {
    for entry in anabranch_congestion::all() {
        let connection = format!("mss = 1080\ncongestion = \"{}\"", entry.name);
        let results =
            measured_on(&connection, BULK, &["minrtt"]).unwrap_or_else(|error| panic!("{connection}: {error}"));
        assert_eq!(results.runs.len(), 3, "{connection}");
        assert_whole(&results);
    }
}

#[test]
fn a_path_is_surveyed_before_the_runs() {
    let client = secrets::new_key();
    let found =
        with_session(same(&client), &client, &["lo"], |session| session.unwrap().survey(Duration::from_secs(1)))
            .unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].goodput_bps > 1e6 && !found[0].rtt.is_zero() && found[0].loss < 1.0, "{found:?}");
}

#[test]
fn what_the_server_refuses_says_why() {
    let failed = measured("[[traffic]]\nkind = \"bulk\"\nflows = 2000\n", &["minrtt"]).unwrap_err().to_string();
    assert!(failed.contains("2000 connections (at most 1000) on real links"), "{failed}");
}

#[test]
fn segments_that_a_path_does_not_take_are_refused() {
    let failed = measured_with(8_000, "[[traffic]]\nkind = \"bulk\"\n", &["minrtt"]).unwrap_err().to_string();
    assert!(failed.contains("8000 bytes are too large for lo") && failed.contains("connection.mss="), "{failed}");
}

#[test]
fn who_is_not_admitted_gets_advice() {
    let (client, other) = (secrets::new_key(), secrets::new_key());
    let refused = with_session(client, &other, &["lo"], |session| session.map(drop)).unwrap_err();
    assert!(matches!(refused, LinkError::Peer(PeerError::NoHandshake { .. })), "{refused}");
    assert!(refused.help().is_some_and(|help| help.contains("--authorize")), "{refused:?}");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let client = secrets::new_key();
    let refused = with_session(same(&client), &client, &["lo", "no-such-link"], |session| session.map(drop));
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("through no-such-link: No such device"), "{said}");
}
