//! `connection.first_path` and `connection.race_delay`.

use anabranch_engine::{FirstPath, Settings};
use anabranch_scenario::Document;
use anabranch_units::{Duration, PathId};

/// Two paths with these names, and these keys of the connection.
fn settings(names: [&str; 2], keys: &str) -> Settings {
    let paths = names.map(|name| format!("[[path]]\nname = '{name}'\nrate = '25mbit'\ndelay = '25ms'\n")).concat();
    let text = format!("duration = '10s'\n[connection]\n{keys}\n{paths}");
    let document = Document::parse("test.toml", &text).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    let again = Document::parse("again.toml", &document.resolved()).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    assert_eq!(document.scenario.settings, again.scenario.settings);
    document.scenario.settings
}

fn first_path(names: [&str; 2], keys: &str) -> FirstPath {
    settings(names, keys).first_path
}

#[test]
fn a_connection_opens_where_it_is_told() {
    let names = ["wlan", "lte"];
    assert_eq!(first_path(names, ""), FirstPath::First);
    assert_eq!(first_path(names, "first_path = 'first'"), FirstPath::First);
    assert_eq!(first_path(names, "first_path = 'race'"), FirstPath::Race);
    // The path that opens does not change any id.
    assert_eq!(first_path(names, "first_path = 'wlan'"), FirstPath::On(PathId(0)));
    assert_eq!(first_path(names, "first_path = 'lte'"), FirstPath::On(PathId(1)));
}

#[test]
fn a_path_may_be_named_as_a_word_where_nobody_asks_for_the_word() {
    for names in [["first", "other"], ["other", "first"], ["race", "first"]] {
        assert_eq!(first_path(names, ""), FirstPath::First);
    }
    assert_eq!(first_path(["race", "other"], "first_path = 'other'"), FirstPath::On(PathId(1)));
    // The first path may be named `first`.
    assert_eq!(first_path(["first", "second"], "first_path = 'first'"), FirstPath::First);
}

#[test]
fn attempts_are_a_quarter_of_a_second_apart_unless_told_otherwise() {
    let delay = |keys| settings(["a", "b"], keys).race_delay;
    assert_eq!(delay(""), Duration::from_millis(250));
    assert_eq!(delay("race_delay = '0s'"), Duration::ZERO);
    assert_eq!(delay("race_delay = '10ms'"), Duration::from_millis(10));
    assert_eq!(delay("race_delay = '2s'"), Duration::from_secs(2));
}
