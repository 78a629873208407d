//! Groups and links stand side by side, on a terminal and in a report.

use anabranch_report::of_run::{RunFolder, report};
use anabranch_report::text::results_table;
use anabranch_report::{Report, Table};
use anabranch_run::{Options, Plan, Results, Runner, Serial, Variant, VirtualTime};
use anabranch_scenario::{Document, scheduler};
use std::sync::Arc;

const NETWORK: &str = "duration = '1s'\nwarmup = '500ms'\nstart_jitter = '100ms'\nrepeat = 2\n[connection]\ncongestion = 'lia'\n\
    [[link]]\nname = 'cell'\nrate = '9mbit'\ndelay = '9ms'\n[[link]]\nname = 'spare'\nrate = '9mbit'\n\
    [[link]]\nname = 'dsl'\nrate = '3mbit'\ndelay = '3ms'\nper_pair = true\n\
    [[path]]\nname = 'wifi'\nroute = ['dsl']\n[[path]]\nname = 'lte'\nroute = ['cell']\n";
const GROUPS: &str = "[[group]]\nname = 'homes'\ncount = 2\n\
    [[group]]\nname = 'phones'\ncount = 3\npaths = ['lte']\nmptcp = false\ncongestion = 'reno'\n";

fn results(text: &str) -> Results {
    let document = Document::parse("test", text).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    let variant = Variant { cell: Vec::new(), scenario: Arc::new(document.scenario) };
    let schedulers = ["minrtt", "redundant"].map(|name| scheduler("test", name).unwrap()).to_vec();
    let plan = Plan::new(&[variant], &Options { schedulers, ..Options::default() });
    Runner { driver: &VirtualTime::default(), pool: &Serial, observer: &() }.run(&plan).unwrap()
}

fn table<'r>(report: &'r Report, id: &str) -> Option<&'r Table> {
    report.sections.iter().flat_map(|section| &section.tables).find(|table| table.id == id)
}

/// The lines of a table on a terminal that begin with a word.
fn lines<'t>(text: &'t str, word: &str) -> Vec<Vec<&'t str>> {
    let words = |line: &'t str| line.split_whitespace().collect::<Vec<_>>();
    text.lines().map(words).filter(|words| words.first() == Some(&word)).collect()
}

#[test]
fn each_group_has_a_row_per_scheduler_and_its_difference() {
    let results = results(&[NETWORK, GROUPS].concat());
    let text = results_table(&results);
    for group in ["homes", "phones"] {
        let rows = lines(&text, group);
        assert_eq!(rows.iter().map(|row| row[1]).collect::<Vec<_>>(), ["minrtt", "redundant"], "{text}");
        // The second has a difference from the first.
        assert!(rows[1].len() > rows[0].len(), "{text}");
    }
    assert!(text.contains("fairness") && text.contains("Mbit/s"), "{text}");
    let page = report(&results, RunFolder::default());
    let groups = table(&page, "groups").expect("a table of groups");
    let first: Vec<&str> = groups.rows.iter().map(|row| &*row[0]).collect();
    assert_eq!(first, ["homes", "homes", "phones", "phones"]);
    assert!(groups.columns.iter().any(|column| column.head == "goodput mean, Mbit/s"), "{:?}", groups.columns);
    let compared = table(&page, "comparisons").expect("comparisons");
    assert!(compared.rows.iter().flatten().any(|cell| cell.contains("homes")), "{compared:?}");
}

#[test]
fn links_that_carried_something_are_listed_the_busiest_first() {
    let results = results(&[NETWORK, GROUPS].concat());
    let text = results_table(&results);
    let cell = lines(&text, "cell");
    assert_eq!(cell.iter().map(|row| row[1]).collect::<Vec<_>>(), ["down", "up", "down", "up"], "{text}");
    let used: f64 = cell[0][4].parse().unwrap();
    assert!((50.0..=100.0).contains(&used), "{text}");
    assert!(lines(&text, "spare").is_empty() && lines(&text, "dsl").is_empty(), "{text}");
    let page = report(&results, RunFolder::default());
    assert_eq!(table(&page, "links").expect("a table of links").rows.len(), 4);
}

#[test]
fn one_pair_has_neither_table_on_a_terminal() {
    let results = results(NETWORK);
    let text = results_table(&results);
    assert!(!text.contains("fairness") && lines(&text, "cell").is_empty(), "{text}");
    let page = report(&results, RunFolder::default());
    assert!(table(&page, "groups").is_none());
    // Links are of any scenario.
    assert!(table(&page, "links").is_some());
}
