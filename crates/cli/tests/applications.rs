//! Several applications at once, as users see them.

mod common;

use common::{errors, output};

const SHORT: [&str; 7] = ["run", "call-beside-backup", "--repeat", "3", "--duration", "12s", "--scheduler"];

#[test]
fn the_others_are_compared_with_the_reference() {
    let table = output(&[&SHORT[..], &["minrtt,redundant", "--reference", "redundant"]].concat());
    let rows: Vec<&str> =
        table.lines().filter(|line| line.starts_with("minrtt") || line.starts_with("redundant")).collect();
    assert!(table.contains("redundant %") && rows[0].starts_with("redundant"), "{table}");
    assert!(rows[1].starts_with("minrtt") && !rows[0].contains('+') && rows[1].contains('+'), "{table}");
}

#[test]
fn a_reference_is_one_scheduler_and_runs_in_any_case() {
    let table = output(&[&SHORT[..], &["redundant", "--reference", "minrtt", "--no-baselines"]].concat());
    assert!(table.contains("minrtt %"), "{table}");
    assert!(errors(&[&SHORT[..], &["minrtt", "--reference", "all"]].concat(), 2).contains("single one"));
    assert!(errors(&[&SHORT[..], &["minrtt", "--reference", "minrt"]].concat(), 2).contains("minrtt"));
    assert!(errors(&["run", "wifi-lte", "--reference", "minrtt"], 2).contains("--scheduler"));
}

/// A key of one application by its name.
#[test]
fn an_application_is_set_by_its_name() {
    let checked = output(&[
        "check",
        "call-beside-backup",
        "--set",
        "traffic.call.video=2mbit",
        "--set",
        "traffic.backup.stop=30s",
    ]);
    assert!(checked.contains("video = \"2mbit\"") && checked.contains("stop = \"30s\""), "{checked}");
    let wrong = errors(&["check", "call-beside-backup", "--set", "traffic.cal.video=2mbit"], 2);
    assert!(wrong.contains("`traffic.call`"), "{wrong}");
}
