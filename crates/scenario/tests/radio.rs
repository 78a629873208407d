//! `arq`, `aggregate`, `wake`, `slots`: read, written, changed, set, and refused where they are impossible.

mod common;

use anabranch_network::{ArqSpec, Change, RadioChange, RadioSpec, SlotsSpec, WakeSpec};
use anabranch_scenario::{Document, Scenario, swept};
use anabranch_units::{Direction, Duration};
use common::rendered;

const PATH: &str = "duration = '10s'\n[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '20ms'\n";

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn document(keys: &str) -> Document {
    Document::parse("x.toml", &format!("{PATH}{keys}")).unwrap_or_else(|errors| panic!("{}", rendered(&errors)))
}

/// The message of the only mistake.
fn mistake(keys: &str) -> String {
    rendered(&Document::parse("x.toml", &format!("{PATH}{keys}")).map(|_| keys).expect_err("is refused"))
}

fn layers(scenario: &Scenario) -> [RadioSpec; 2] {
    let path = &scenario.topology.paths[0];
    [path.down.radio, path.up.radio]
}

#[test]
fn layers_are_off_unless_written_and_read_per_direction() {
    assert_eq!(layers(&document("").scenario), [RadioSpec::NONE; 2]);
    let text = "arq = { loss = '10%', attempts = 4, delay = '8ms' }\naggregate = { down = '4ms' }\n\
        wake = { up = { idle = '10s', delay = '260ms' } }\n\
        slots = { down = { every = '15s', step = '8ms', loss = '20%', burst = '100ms' }, up = { every = '15s' } }\n";
    let all = document(text);
    let arq = ArqSpec { loss: 0.1, attempts: Some(4), delay: ms(8), free: false };
    let slots = SlotsSpec { every: ms(15_000), step: ms(8), loss: 0.2, burst: ms(100) };
    let down = RadioSpec { arq, aggregate: ms(4), wake: WakeSpec::NONE, slots };
    let wake = WakeSpec { idle: ms(10_000), delay: ms(260) };
    let up = RadioSpec { arq, wake, slots: SlotsSpec { every: ms(15_000), ..SlotsSpec::NONE }, ..RadioSpec::NONE };
    assert_eq!(layers(&all.scenario), [down, up]);
    let again = Document::parse("x.toml", &all.resolved()).unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    assert_eq!(again.scenario, all.scenario);
}

#[test]
fn a_timeline_a_sweep_and_set_change_them() {
    let text = "arq = { loss = '10%', delay = '8ms', order = 'free' }\n[[timeline]]\nat = '1s'\nset = 'path.a.arq'\n\
        value = { down = { loss = 0.5, attempts = 2, delay = '1ms' }, up = { loss = 0.0, delay = '0s' } }\n\
        [[timeline]]\nat = '2s'\nset = 'path.a.aggregate.down'\nvalue = '3ms'\n";
    let changes: Vec<_> = document(text).scenario.network_changes().map(|(_, change)| change).collect();
    let arq = ArqSpec { loss: 0.5, attempts: Some(2), delay: ms(1), free: false };
    let expected = [
        Change::Radio(0, Direction::Down, RadioChange::Arq(arq)),
        Change::Radio(0, Direction::Up, RadioChange::Arq(ArqSpec { loss: 0.0, delay: ms(0), ..ArqSpec::NONE })),
        Change::Radio(0, Direction::Down, RadioChange::Aggregate(ms(3))),
    ];
    assert_eq!(changes, expected);
    assert_eq!(swept("path.a.arq.loss", "5%").map(|swept| swept.number), Some(0.05));
    assert_eq!(swept("path.a.aggregate", "5ms").map(|swept| swept.number), Some(0.005));
}

#[test]
fn what_no_packet_survives_is_refused_where_it_stands() {
    for (keys, at, message) in [
        ("arq = { loss = '100%', delay = '8ms' }", "6:16", "an ARQ that never gives up delivers no packet"),
        ("arq = { loss = '10%' }", "6:7", "`delay` is missing in path.arq"),
        ("arq = { loss = '10%', delay = '8ms', attempts = 0 }", "6:49", "`path.arq.attempts` cannot be 0"),
        ("arq = '10%'", "6:7", "`path.arq` cannot be a string"),
        ("arq = { lose = '10%', delay = '8ms' }", "6:9", "there is no key `lose` in `path.arq`"),
        ("wake = { idle = '10s' }", "6:8", "`delay` is missing in path.wake"),
        ("slots = { every = '0s' }", "6:19", "`path.slots.every` is zero"),
        ("slots = { every = '15s', step = '21ms' }", "6:33", "a step of 21ms around a delay of 20ms"),
        ("slots = { every = '1s', loss = 0.1, burst = '2s' }", "6:45", "a beginning of 2s in a slot of 1s"),
        ("aggregate = '4'", "6:13", "`path.aggregate` has no unit"),
        (
            "slots = { every = '15s', step = '20ms' }\n[[timeline]]\nat = '1s'\nset = 'path.a.delay'\nvalue = '9ms'",
            "10:9",
            "a step of 20ms around a delay of 9ms",
        ),
    ] {
        let found = mistake(keys);
        assert!(found.contains(message) && found.contains(&format!("x.toml:{at}")), "{keys}: {found}");
    }
    document("arq = { loss = '100%', delay = '8ms', attempts = 3 }");
}
