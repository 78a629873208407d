//! Help, lists, explanations, checks, and what is said of mistakes.

mod common;

use common::{ask, errors, output};
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn without_arguments_there_is_a_tour_with_three_commands() {
    let tour = output(&[]);
    assert_eq!(tour.lines().filter(|line| line.starts_with("  anabranch ")).count(), 3);
    assert!(tour.lines().all(|line| line.chars().count() <= 100), "{tour}");
}

#[test]
fn every_command_has_help_with_an_example() {
    let help = output(&["--help"]);
    for command in
        ["demo", "run", "shell", "check", "list", "explain", "model", "parity", "reproduce", "report", "completions"]
    {
        assert!(help.contains(command), "{command}");
        let help = output(&[command, "--help"]);
        assert!(help.contains("Example") && help.contains(&format!("  anabranch {command}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}

#[test]
fn misspelt_words_have_a_neighbour() {
    assert!(errors(&["explian"], 2).contains("'explain'"));
    assert!(errors(&["explain", "blets"], 2).contains("did you mean `blest`?"));
    assert!(errors(&["explain", "delayed-strat"], 2).contains("did you mean `delayed-start`?"));
    assert!(errors(&["explain", "goodputbps"], 2).contains("did you mean `goodput_bps`?"));
    assert!(errors(&["run", "wifi-ltee"], 2).contains("did you mean `wifi-lte`?"));
    assert!(errors(&["run", "wifi-lte", "--scheduler", "minrtt,blets"], 2).contains("blest"));
    assert!(errors(&["run", "wifi-lte", "--congestion", "ollia"], 2).contains("olia"));
    assert!(errors(&["run", "wifi-lte", "--set", "path.wifi.los=2%"], 2).contains("loss"));
    assert!(errors(&["explain", "zzzzzzzzzz"], 2).contains("anabranch list"));
}

#[test]
fn all_mistakes_of_a_command_line_are_told_at_once() {
    let text = errors(&["run", "wifi-lte", "--scheduler", "blets,minrt"], 2);
    assert_eq!(text.matches("anabranch::scenario::unknown_scheduler").count(), 2, "{text}");
}

#[test]
fn lists_come_as_tables_and_as_json() {
    for (what, name) in
        [("schedulers", "minrtt"), ("congestion", "olia"), ("scenarios", "wifi-lte"), ("metrics", "goodput_bps")]
    {
        assert!(output(&["list", what]).lines().any(|line| line.starts_with(name)), "{what}");
        let items: Value = serde_json::from_str(&output(&["list", what, "--format", "json"])).unwrap();
        let items = items.as_array().unwrap();
        assert!(items.iter().any(|item| item["name"] == name), "{what}");
        assert!(items.iter().all(|item| item["about"].as_str().is_some_and(|about| !about.is_empty())), "{what}");
    }
    assert!(errors(&["list", "schedulars"], 2).contains("schedulers"));
}

#[test]
fn everything_listed_is_explained() {
    for what in ["schedulers", "congestion", "scenarios", "metrics"] {
        let items: Value = serde_json::from_str(&output(&["list", what, "--format", "json"])).unwrap();
        for item in items.as_array().unwrap() {
            let name = item["name"].as_str().unwrap();
            assert!(output(&["explain", name]).starts_with(name), "{name}");
        }
    }
}

#[test]
fn explanations_know_suffixes_keys_and_paths() {
    assert!(output(&["explain", "+pr"]).starts_with("+pr (scheduler suffix)"));
    assert!(output(&["explain", "+or"]).starts_with("+or (scheduler suffix)"));
    let both = output(&["explain", "lowrtt+pr"]);
    assert!(both.starts_with("minrtt (scheduler)") && both.contains("\n+pr (scheduler suffix)"), "{both}");
    let blest = output(&["explain", "blest"]);
    assert!(["# Idea", "# References", "# Parameters", "delta"].iter().all(|part| blest.contains(part)), "{blest}");
    assert!(output(&["explain", "rto_min"]).starts_with("tcp.rto_min (scenario key)"));
    assert!(output(&["explain", "path.loss"]).contains("path.loss (scenario key)"));
    assert!(output(&["explain", "path.wlan.share"]).starts_with("share (metric of a path"));
    assert!(output(&["explain", "single:wlan"]).contains("plain TCP"));
    assert!(errors(&["explain", "redundant+pr"], 2).contains("redundant"));
    assert!(blest.contains("may be followed by: +pr, +or"));
    assert!(!output(&["explain", "redundant"]).contains("may be followed"));
}

#[test]
fn parameters_stand_in_a_table_with_defaults_ranges_and_units() {
    let page = output(&["explain", "roundrobin"]);
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(
        table,
        [
            "| parameter      | default | range       | unit    | meaning |",
            "| -------------- | ------- | ----------- | ------- | --- |",
            "| `quantum`      | 1       | 1 to 65535  | packets | consecutive segments on one path (the kernel's num_segments) |",
            "| `cwnd_limited` | true    | true, false |         | pass over a path whose window is full; if not, wait for it |",
        ]
    );
}

/// Headings in their order, each with something below it; code and tables closed.
fn check_form(name: &str, page: &str) {
    let headings: Vec<&str> =
        page.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim()).collect();
    let expected = ["Idea", "Rule", "When it helps", "When it hurts", "Departures", "References"];
    assert_eq!(headings, expected, "{name}");
    assert_eq!(page.matches("```").count() % 2, 0, "{name}: a block of code is not closed");
    for text in page.split("# ").skip(1) {
        let (heading, below) = text.split_once('\n').unwrap_or((text, ""));
        let below = below.trim_end_matches('#').trim();
        assert!(below.len() > 3, "{name}: {heading} is empty");
        assert!(below.ends_with(['.', '?', ')', '`', '>']), "{name}: {heading} ends in mid-sentence");
    }
}

#[test]
fn every_page_has_the_same_form() {
    for entry in anabranch_schedulers::all().iter().chain(anabranch_schedulers::suffixes()) {
        check_form(entry.name, entry.page);
    }
    for entry in anabranch_congestion::all() {
        check_form(entry.name, entry.page);
    }
}

#[test]
fn the_documents_of_all_pages_are_as_generated() {
    for what in ["schedulers", "congestion"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/{what}.md"));
        let committed = fs::read_to_string(file).unwrap_or_default();
        let generated = output(&["explain", "--all", what]);
        let renew = format!("cargo run -- explain --all {what} > docs/{what}.md");
        assert!(committed == generated, "docs/{what}.md is out of date; renew it with `{renew}`");
    }
    assert!(errors(&["explain"], 2).contains("NAME"));
    assert!(errors(&["explain", "blest", "--all", "schedulers"], 2).contains("cannot be used with"));
}

#[test]
fn documents_have_every_entry_once_and_links_that_lead_somewhere() {
    for what in ["schedulers", "congestion"] {
        let text = output(&["explain", "--all", what]);
        let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        for link in text.lines().filter_map(|line| line.strip_prefix("| [")?.split_once(']')) {
            assert_eq!(sections.iter().filter(|name| **name == link.0).count(), 1, "{}", link.0);
        }
        let listed: Value = serde_json::from_str(&output(&["list", what, "--format", "json"])).unwrap();
        assert!(listed.as_array().unwrap().iter().all(|item| sections.contains(&item["name"].as_str().unwrap())));
    }
}

#[test]
fn check_prints_a_scenario_that_reads_back() {
    let resolved = output(&["check", "wifi-lte", "--set", "seed=77"]);
    assert!(resolved.contains("seed = 77"), "{resolved}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &resolved).unwrap();
    assert_eq!(output(&["check", file.path().to_str().unwrap()]), resolved);
}

#[test]
fn bad_files_are_underlined_and_missing_ones_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[[path]]\nname = \"a\"\nrate = \"10mbps\"\ndealy = \"5ms\"\n").unwrap();
    let text = errors(&["check", file.to_str().unwrap()], 2);
    assert!(
        ["bad.toml:3:", "bad.toml:4:", "10mbps", "dealy", "delay"].iter().all(|part| text.contains(part)),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "no colour unless asked");
    assert!(errors(&["run", "no/such/file.toml"], 2).contains("no/such/file.toml"));
    assert!(errors(&["check", folder.path().to_str().unwrap()], 2).contains("cannot read"));
}

#[test]
fn completions_know_the_options() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(output(&["completions", shell]).contains("no-baselines"), "{shell}");
    }
    assert_eq!(ask(&["completions", "tcsh"]).code, 2);
}

#[test]
fn unknown_papers_and_items_have_a_neighbour() {
    assert!(errors(&["reproduce", "blset"], 2).contains("did you mean `blest`?"));
    assert!(errors(&["reproduce", "blest", "tabel4"], 2).contains("did you mean `table4`?"));
    assert!(errors(&["reproduce", "all", "a1"], 2).contains("an item belongs to one paper"));
    // Said before the work.
    let text = errors(&["reproduce", "fdps", "--update", "Cargo.toml", "--quick"], 2);
    assert!(text.contains("has no place for the table"), "{text}");
}
