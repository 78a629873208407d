//! Where connections open, in virtual time: `connection.first_path`.

use anabranch_run::{Choice, Driver, Job, RunOutcome, VirtualTime};
use anabranch_scenario::{Document, PlugIn};
use anabranch_sim::Checks;
use anabranch_trace::{Event, Origin, PathState, Recorder};
use anabranch_units::{ConnId, Instant, PathId, Side};
use std::sync::Arc;

/// A far first path and a near second one; what differs is added to `[connection]`.
fn job(keys: &str, traffic: &str, choice: Choice) -> Job {
    let paths = "[[path]]\nname = 'far'\nrate = '10mbit'\ndelay = '100ms'\n\
                 [[path]]\nname = 'near'\nrate = '10mbit'\ndelay = '10ms'\n\
                 [[path]]\nname = 'third'\nrate = '10mbit'\ndelay = '40ms'\n";
    let text = format!("[connection]\n{keys}\n{paths}[[traffic]]\n{traffic}");
    let scenario = Document::parse("first", &text).unwrap().cells.remove(0).1;
    Job::of(Arc::new(scenario), choice, 1)
}

fn minrtt() -> Choice {
    Choice::Multipath(PlugIn { name: "minrtt".into(), parameters: Vec::new() })
}

/// First subflows and SYNs of clients, and what servers opened.
#[derive(Default)]
struct Heard {
    connected: Vec<(Instant, ConnId, PathId)>,
    syns: Vec<(Instant, PathId)>,
    joined: Vec<(ConnId, PathId)>,
    accepted: Vec<(ConnId, PathId)>,
}

impl Recorder for Heard {
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        match (origin.host, event) {
            (Some(Side::Client), Event::Connected(true)) => self.connected.push((now, origin.connection, origin.path)),
            (Some(Side::Client), Event::ControlSent { flags: 2, .. }) => self.syns.push((now, origin.path)),
            (Some(Side::Client), Event::Path(PathState::Established)) => {
                self.joined.push((origin.connection, origin.path));
            }
            (Some(Side::Server), Event::Connected(true)) => self.accepted.push((origin.connection, origin.path)),
            _ => {}
        }
    }
}

fn run(keys: &str, traffic: &str) -> (RunOutcome, Heard) {
    let mut heard = Heard::default();
    let outcome = VirtualTime::default().run(&job(keys, traffic, minrtt()), &mut heard).unwrap();
    (outcome, heard)
}

const BULK: &str = "kind = 'bulk'\nsize = '2MB'";
const FAR: PathId = PathId(0);
const NEAR: PathId = PathId(1);
const THIRD: PathId = PathId(2);

#[test]
fn a_connection_opens_on_the_path_that_is_named() {
    let mut times = Vec::new();
    for (keys, path) in
        [("", FAR), ("first_path = 'first'", FAR), ("first_path = 'near'", NEAR), ("first_path = 'third'", THIRD)]
    {
        let (outcome, heard) = run(keys, BULK);
        assert_eq!((heard.syns[0], heard.connected[0].2), ((Instant::ZERO, path), path), "{keys}");
        assert_eq!(heard.accepted, [(ConnId(0), path)], "{keys}");
        // The other two are joined, under the numbers that the scenario gives them.
        assert_eq!(outcome.metrics["syns_sent"], 3.0);
        let mut paths: Vec<PathId> = heard.joined.iter().map(|(_, path)| *path).collect();
        paths.sort();
        assert_eq!(paths, [FAR, NEAR, THIRD]);
        times.push(outcome.metrics["completion_s"]);
    }
    assert!(times[0] == times[1] && times[2] < times[3] && times[3] < times[0], "{times:?}");
}

#[test]
fn a_race_opens_on_the_path_that_answers_first() {
    // At once: the nearest wins. 50 ms apart: it answers at 70 ms, and the third has not been tried by then.
    for (delay, syns, opened) in [("0s", 5.0, 20), ("50ms", 4.0, 70)] {
        let (outcome, heard) = run(&format!("first_path = 'race'\nrace_delay = '{delay}'"), BULK);
        let (at, id, path) = heard.connected[0];
        assert_eq!((id, path, heard.connected.len()), (ConnId(0), NEAR, 1));
        assert_eq!((at.as_nanos() / 1_000_000, outcome.metrics["syns_sent"]), (opened, syns));
        assert_eq!(heard.accepted, [(ConnId(0), NEAR)]);
        assert_eq!(heard.joined.len(), 3);
        assert!(outcome.finished);
    }
    // With RFC 8305's delay the first path answers in time.
    let (outcome, heard) = run("first_path = 'race'", BULK);
    assert_eq!((heard.connected[0].2, outcome.metrics["syns_sent"]), (FAR, 3.0));
}

#[test]
fn every_connection_of_a_page_races_for_itself() {
    let page = "kind = 'web'\nsize = '200KiB'\nobjects = 20";
    let (outcome, heard) = run("first_path = 'race'\nrace_delay = '0s'", page);
    assert!(outcome.finished && outcome.metrics["completion_s"] < run("", page).0.metrics["completion_s"]);
    let connections: Vec<ConnId> = heard.accepted.iter().map(|(id, _)| *id).collect();
    assert_eq!(connections, (0..6).map(ConnId).collect::<Vec<_>>());
    // Three candidates each, and two joins.
    assert_eq!(outcome.metrics["syns_sent"], 30.0);
}

#[test]
fn one_path_has_no_choice() {
    // A baseline is the same whatever the connection under test does.
    for path in 0..3 {
        let single = |keys: &str| VirtualTime::default().run(&job(keys, BULK, Choice::Single(path)), &mut ()).unwrap();
        let usual = single("").digest;
        assert_eq!(single("first_path = 'race'").digest, usual);
        assert_eq!(single("first_path = 'near'").digest, usual);
    }
}

#[test]
fn a_race_is_deterministic_and_survives_the_wire() {
    let keys = "first_path = 'race'\nrace_delay = '0s'";
    let digest = |checks| VirtualTime { checks, stop: None }.run(&job(keys, BULK, minrtt()), &mut ()).unwrap().digest;
    assert_eq!(digest(Checks::default()), digest(Checks { wire: true }));
}
