//! `connection.first_path` in real time, with a kernel at either end: events that the kernels' packets show too.

use crate::common::alone;
use anabranch_lab::RealTime;
use anabranch_run::{Driver, Options, Plan, RunOutcome, Variant};
use anabranch_scenario::{Host, NoFiles, Override, Source, read, scheduler};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::{ConnId, Instant, PathId, Side};
use std::sync::Arc;

/// Three connections, one after the other, over a far first path and a near second one.
const SCENARIO: &str = r#"
name = "a far first path"
[connection]
congestion = "cubic"
race_delay = "0s"
[[path]]
name = "far"
rate = "8mbit"
delay = "100ms"
[[path]]
name = "near"
rate = "8mbit"
delay = "10ms"
[[traffic]]
kind = "web"
size = 60000
objects = 6
connections = 3
"#;

/// The client's first SYNs, and the first subflows as either host has them.
#[derive(Default)]
struct Heard {
    syns: Vec<(ConnId, PathId)>,
    first: [Vec<(ConnId, PathId)>; 2],
}

impl Recorder for Heard {
    fn record(&mut self, _now: Instant, origin: Origin, event: &Event) {
        let one = (origin.connection, origin.path);
        match (origin.host, event) {
            (Some(Side::Client), Event::ControlSent { flags: 2, again: false }) => self.syns.push(one),
            (Some(Side::Client), Event::Connected(true)) => self.first[0].push(one),
            (Some(Side::Server), Event::Connected(true)) => self.first[1].push(one),
            _ => {}
        }
    }
}

fn run(sender: Host, receiver: Host, first_path: &str) -> (RunOutcome, Heard) {
    let source = Source { name: "a scenario".into(), text: SCENARIO.into() };
    let set = [Override::new("the test", "connection.first_path", first_path)];
    let (cell, mut scenario) = read(&source, &set, &NoFiles).expect("a valid scenario").cells.remove(0);
    (scenario.hosts.sender, scenario.hosts.receiver) = (sender, receiver);
    let name = if sender == Host::Linux { "linux-default" } else { "minrtt" };
    let schedulers = vec![scheduler("the test", name).expect("a scheduler")];
    let options = Options { schedulers, real_time: true, baselines: false, ..Options::default() };
    let plan = Plan::new(&[Variant { cell, scenario: Arc::new(scenario) }], &options);
    RealTime.prepare(&plan).expect("this machine can");
    let job = plan.jobs().next().expect("there is a row");
    let mut heard = Heard::default();
    let outcome = RealTime.run(&job, &mut heard).expect("a run that ends in order");
    heard.first.iter_mut().for_each(|first| first.sort());
    (outcome, heard)
}

const NEAR: PathId = PathId(1);

fn all_on(path: PathId) -> Vec<(ConnId, PathId)> {
    (0..3).map(|n| (ConnId(n), path)).collect()
}

#[test]
fn connections_open_on_the_path_that_is_named_whoever_the_hosts_are() {
    let Some(_alone) = alone() else { return };
    use Host::{Engine, Linux};
    for (sender, receiver) in [(Engine, Linux), (Linux, Engine), (Linux, Linux)] {
        let (outcome, heard) = run(sender, receiver, "near");
        assert!(outcome.finished);
        assert_eq!(heard.first, [all_on(NEAR), all_on(NEAR)], "{sender:?} {receiver:?}");
        assert_eq!(heard.syns[0], (ConnId(0), NEAR));
    }
}

#[test]
fn a_kernel_is_seen_to_accept_the_winners_alone() {
    let Some(_alone) = alone() else { return };
    let (outcome, heard) = run(Host::Linux, Host::Engine, "race");
    assert!(outcome.finished);
    assert_eq!(heard.first, [all_on(NEAR), all_on(NEAR)]);
    // Two candidates each, and the joins for which there was time.
    assert!(heard.syns.len() >= 6 && outcome.metrics["syns_sent"] >= 6.0);
    let live = outcome.live.expect("a run by the clock");
    let counted = |name: &str| live.counters["server"].get(name).copied().unwrap_or(0);
    assert_eq!((counted("MPTcpExtMPCapableSYNRX"), counted("MPTcpExtMPCapableACKRX")), (6, 3));
}

#[test]
fn a_kernel_client_does_not_race_and_says_so() {
    let Some(_alone) = alone() else { return };
    let (outcome, heard) = run(Host::Engine, Host::Linux, "race");
    assert_eq!(heard.first[0], all_on(PathId(0)));
    let told = outcome.live.expect("a run by the clock").not_applied;
    assert!(told.iter().any(|what| what.starts_with("connection.first_path")), "{told:?}");
}
