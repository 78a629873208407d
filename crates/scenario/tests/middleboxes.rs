//! `middlebox`: read, written, changed, set, and refused where it is wrong.

mod common;

use anabranch_network::{
    Answer, Change, EcnSpec, ForgetSpec, MiddleboxSpec, OptionKind, OptionSet, Segments, StripSpec, ThinSpec,
};
use anabranch_scenario::{Document, Scenario};
use anabranch_units::{Direction, Duration};
use common::rendered;

const PATH: &str = "duration = '10s'\n[[path]]\nname = 'a'\nrate = '20mbit'\ndelay = '20ms'\n";

fn document(keys: &str) -> Document {
    Document::parse("x.toml", &format!("{PATH}{keys}")).unwrap_or_else(|errors| panic!("{}", rendered(&errors)))
}

/// The message of the only mistake.
fn mistake(keys: &str) -> String {
    rendered(&Document::parse("x.toml", &format!("{PATH}{keys}")).map(|_| keys).expect_err("is refused"))
}

fn boxes(scenario: &Scenario) -> [&[MiddleboxSpec]; 2] {
    let path = &scenario.topology.paths[0];
    [&path.down.middleboxes, &path.up.middleboxes]
}

#[test]
fn boxes_are_read_in_order_and_per_direction() {
    assert_eq!(boxes(&document("").scenario), [[]; 2]);
    let all = document(
        "middlebox = { down = [{ kind = 'strip', options = ['mp-join', 'add-addr'], on = 'syn' }, { kind = 'ecn' }], \
         up = [{ kind = 'thin-acks', every = 2, within = '3ms' }] }\n",
    );
    let options = OptionSet::from(OptionKind::Join).with(OptionKind::AddAddr);
    let down = [StripSpec { options, on: Segments::Syn }.into(), EcnSpec::default().into()];
    let up = [ThinSpec { every: 2, within: Duration::from_millis(3) }.into()];
    assert_eq!(boxes(&all.scenario), [&down[..], &up[..]]);
    let again = Document::parse("x.toml", &all.resolved()).unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    assert_eq!(again.scenario, all.scenario);
}

#[test]
fn every_kind_is_written_as_it_is_read() {
    for spec in MiddleboxSpec::all() {
        let needs = if spec.name() == "strip" { ", options = 'mptcp'" } else { "" };
        let all = document(&format!("middlebox = [{{ kind = '{}'{needs} }}]\n", spec.name()));
        assert_eq!(boxes(&all.scenario), [[spec]; 2]);
        let again = Document::parse("x.toml", &all.resolved()).unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
        assert_eq!(again.scenario, all.scenario);
    }
}

#[test]
fn a_timeline_replaces_them() {
    let text = "middlebox = [{ kind = 'forget', idle = '30s', answer = 'reset' }]\n[[timeline]]\nat = '1s'\n\
        set = 'path.a.middlebox'\nvalue = { down = [], up = [{ kind = 'forget', idle = '1s' }] }\n";
    let all = document(text);
    let changes: Vec<_> = all.scenario.network_changes().map(|(_, change)| change).collect();
    let forget = |seconds, answer| MiddleboxSpec::from(ForgetSpec { idle: Duration::from_secs(seconds), answer });
    assert_eq!(boxes(&all.scenario), [[forget(30, Answer::Reset)]; 2]);
    let expected = [
        Change::Middleboxes(0, Direction::Down, Vec::new()),
        Change::Middleboxes(0, Direction::Up, vec![forget(1, Answer::Silence)]),
    ];
    assert_eq!(changes, expected);
    let again = Document::parse("x.toml", &all.resolved()).unwrap_or_else(|errors| panic!("{}", rendered(&errors)));
    assert_eq!(again.scenario, all.scenario);
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let cases = [
        ("middlebox = [{ kind = 'strip', options = ['mp-joim'] }]", "6:43", "did you mean \"mp-join\"?"),
        ("middlebox = [{ kind = 'strip', options = [] }]", "6:42", "a box that removes nothing"),
        ("middlebox = [{ kind = 'stripe' }]", "6:23", "did you mean \"strip\"?"),
        ("middlebox = [{ options = 'mptcp' }]", "6:14", "`kind` is missing in path.middlebox"),
        ("middlebox = [{ kind = 'mss', most = 70000 }]", "6:37", "`path.middlebox.most` cannot be 70000"),
        ("middlebox = [{ kind = 'mss', idle = '1s' }]", "6:37", "`idle` means nothing for a middlebox of kind \"mss\""),
        ("middlebox = [{ kind = 'forget', idle = '0s' }]", "6:40", "is zero"),
        ("middlebox = [{ kind = 'thin-acks', every = 0 }]", "6:44", "cannot be 0"),
        ("middlebox = [{ kind = 'ecn', set = 'ect' }]", "6:36", "did you mean \"ect0\"?"),
        ("middlebox = 'strip'", "6:13", "`path.middlebox` cannot be a string"),
        ("middlebox = { kind = 'strip' }", "6:13", "expected a list of boxes"),
        ("middlebox = { downwards = [] }", "6:15", "keys are: down, up"),
        ("middlebox = [{ kind = 'terminator' }]", "6:23", "did you mean \"terminate\"?"),
        ("middlebox = [{ kind = 'terminate', buffer = 100 }]", "6:45", "expected a whole number from 1500 to"),
        ("middlebox = ['strip']", "6:14", "`path.middlebox` cannot be a string"),
    ];
    for (keys, place, message) in cases {
        let said = mistake(keys);
        assert!(said.contains(&format!("x.toml:{place}")) && said.contains(message), "{keys}:\n{said}");
    }
}
