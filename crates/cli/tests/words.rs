//! Help, lists, explanations, checks, and what is said of mistakes.

mod common;

use common::{ask, errors, output};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Every command, as the help lists it.
fn commands() -> Vec<String> {
    let help = output(&["--help"]);
    let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| line.starts_with(char::is_alphabetic)).filter_map(|line| line.split(' ').next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn without_arguments_there_is_a_tour_with_three_commands() {
    let tour = output(&[]);
    assert_eq!(tour.lines().filter(|line| line.starts_with("  anabranch ")).count(), 3);
    assert!(tour.lines().all(|line| line.chars().count() <= 100), "{tour}");
}

#[test]
fn every_command_has_help_with_an_example() {
    let commands = commands();
    assert!(commands.len() > 20 && commands.iter().any(|command| command == "run"), "{commands:?}");
    for command in commands {
        let help = output(&[&command, "--help"]);
        assert!(help.contains("Example") && help.contains(&format!("  anabranch {command}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
}

/// The output of `COMMAND --help` on a terminal with this number of columns.
fn help_in(columns: &str, command: &str) -> String {
    let mut ran = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let ran = ran.args([command, "--help"]).env("COLUMNS", columns).assert().success();
    String::from_utf8(ran.get_output().stdout.clone()).unwrap()
}

#[test]
fn help_is_wrapped_once_and_examples_not_at_all() {
    for command in commands().iter().filter(|command| *command != "completions") {
        let (narrow, wide) = (help_in("80", command), help_in("100", command));
        for line in wide.lines().filter(|line| line.starts_with("  anabranch") || line.starts_with("  ANABRANCH")) {
            assert!(narrow.lines().any(|other| other == line), "{command}: {line}");
        }
        for (text, columns) in [(narrow, 80), (wide, 100)] {
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{text}");
            // In a paragraph the next line's first word has no room in this one.
            for pair in lines.windows(2).filter(|pair| pair.iter().all(|line| line.starts_with(char::is_alphanumeric)))
            {
                let first = pair[1].split(' ').next().unwrap_or_default();
                let together = pair[0].chars().count() + 1 + first.chars().count();
                assert!(
                    together > columns || pair[0].ends_with(':'),
                    "{command}, {columns} columns:\n{}\n{}",
                    pair[0],
                    pair[1]
                );
            }
        }
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
    // A beginning leads to what begins so.
    assert!(errors(&["explain", "completion_"], 2).contains("did you mean `completion_s`?"));
    let text = errors(&["explain", "ofo_m"], 2);
    assert!(text.contains("did you mean `ofo_max_bytes` or `ofo_mean_bytes`?"), "{text}");
}

#[test]
fn every_heading_of_results_is_explained() {
    let table = output(&["run", "wifi-lte", "--scheduler", "minrtt,blest", "--repeat", "2", "--set", "duration=1s"]);
    for name in ["goodput", "n", "against", "× best path", "benefit", "of oracle", "OFO mean", "PR", "% on", "±", "*"]
    {
        let shown = name.split(' ').all(|word| table.contains(word));
        assert!(shown || ["PR", "*"].contains(&name), "{name}: {table}");
        let page = output(&["explain", name]);
        assert!(page.contains("in tables"), "{name}: {page}");
    }
    assert!(output(&["explain", "OFO"]).contains("ofo_mean_bytes (metric, byte; in tables: OFO mean)"));
}

#[test]
fn a_scenario_file_that_is_not_there_has_a_neighbour() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lab.toml"), "").unwrap();
    for typed in ["lab.tml", "lap.toml", "lba.toml", "lab"] {
        let said = errors(&["run", folder.path().join(typed).to_str().unwrap()], 2).replace(['\n', ' '], "");
        assert!(said.contains("didyoumean`") && said.contains("/lab.toml`?"), "{said}");
    }
    // A name that is far from every file may be that of a built-in scenario.
    let said = errors(&["run", folder.path().join("wifi-ltee.toml").to_str().unwrap()], 2);
    assert!(said.contains("the built-in scenario `wifi-lte`?"), "{said}");
}

#[test]
fn serve_alone_names_what_it_can_serve() {
    let said = errors(&["serve"], 2);
    assert!(["--measure", "--proxy", "--native"].iter().all(|service| said.contains(service)), "{said}");
}

#[test]
fn sections_and_keys_as_they_are_set_are_explained() {
    let cross = output(&["explain", "cross"]);
    assert!(cross.starts_with("cross (section [[cross]])\n\nother flows, alike"), "{cross}");
    for section in ["cross", "timeline", "path", "tcp", "traffic"] {
        let page = output(&["explain", section]);
        let keys = anabranch_scenario::Section::ALL.into_iter().find(|s| s.name() == section).unwrap().keys();
        assert!(
            keys.clone().count() > 2 && keys.clone().all(|key| page.contains(&format!("\n| {} ", key.name))),
            "{page}"
        );
    }
    for (name, key) in [
        ("path.wifi.loss", "path.loss"),
        ("path.wifi.loss.down", "path.loss"),
        ("link.core.rate.up", "link.rate"),
        ("path.loss.p", "path.loss.p"),
    ] {
        let page = output(&["explain", name]);
        assert!(page.starts_with(&format!("{key} (scenario key)")), "{name}: {page}");
    }
    // Of some kinds alone.
    let page = output(&["explain", "path.3g.queue.min"]);
    assert!(page.starts_with("path.queue.min (scenario key of red)"), "{page}");
    let page = output(&["explain", "cross.0.rate"]);
    assert!(page.starts_with("cross.rate (scenario key of udp, udp-onoff)"), "{page}");
    assert!(errors(&["explain", "path.wifi.los"], 2).contains("there is no page `path.wifi.los`"));
    // A bare number with a point is a fraction, quoted or not.
    assert!(output(&["explain", "path.loss"]).contains("or a fraction with a point, such as 0.01 or \"0.01\""));
}

#[test]
fn words_that_keys_take_are_explained() {
    let web = output(&["explain", "web"]);
    assert!(web.starts_with("web (value of traffic.kind)\n\nthe client requests a page's objects"), "{web}");
    assert!(["| objects ", "| sizes "].iter().all(|key| web.contains(key)) && !web.contains("| interval "), "{web}");
    for (word, key) in [
        ("bulk", "traffic.kind"),
        ("frames", "traffic.kind"),
        ("request", "traffic.kind"),
        ("red", "path.queue.kind"),
        ("gilbert-elliott", "path.loss.kind"),
        ("race", "connection.first_path"),
        ("truesize", "tcp.buffer_accounting"),
    ] {
        let page = output(&["explain", word]);
        assert!(page.contains(&format!("{word} (value of {key})\n\n")), "{page}");
    }
    // A name that is also a key has both pages.
    assert!(output(&["explain", "request"]).contains("traffic.request (scenario key of video, request, web)"));
    assert!(errors(&["explain", "framse"], 2).contains("did you mean `frames`?"));
    assert!(errors(&["explain", "zzzzzzzzzz"], 2).contains("`anabranch list keys`"));
}

#[test]
fn lists_of_schedulers_have_parameters_in_brackets() {
    let text = output(&["run", "wifi-lte", "--scheduler", "minrtt,blest(delta=0.01, lambda=2),blest", "--repeat", "1"]);
    for row in ["minrtt", "blest(lambda=2,delta=0.01)", "blest"] {
        assert!(text.lines().any(|line| line.split("  ").next() == Some(row)), "{row}: {text}");
    }
    let text = errors(&["run", "wifi-lte", "--scheduler", "minrtt,blest(lamda=2)"], 2);
    assert!(text.contains("blest(lamda=2)") && text.contains("did you mean `lambda`?"), "{text}");
    let text = errors(&["run", "wifi-lte", "--scheduler", "blest(lambda_min=3,lambda_max=2)"], 2);
    assert!(text.contains("`lambda_min` is above `lambda_max`"), "{text}");
    let text = errors(&["run", "wifi-lte", "--congestion", "cubic(betta=0.5),lia"], 2);
    assert!(text.contains("did you mean `beta`?"), "{text}");
    // A table is one element, too.
    output(&["check", "wifi-lte", "--set", "scheduler.rtt_guard=2"]);
    output(&["run", "wifi-lte", "--scheduler", "{ kind = 'blest', delta = 0.01, lambda = 2 },rr", "--repeat", "1"]);
}

#[test]
fn numbers_that_are_none_are_told_what_is_wanted() {
    let count = "expected a whole number from 1 to 1000000";
    for (arguments, wanted) in [
        (&["run", "wifi-lte", "--seed", "x"][..], "expected a whole number from 0 to 9223372036854775807"),
        (&["run", "wifi-lte", "--seed", "18446744073709551615"], "too large; expected a whole number from 0 to"),
        (&["run", "wifi-lte", "--jobs", "0"], "too small; expected a whole number from 1 to 1024"),
        (&["run", "wifi-lte", "--repeat", "some"], "expected a whole number from 1 to 1000000, or `auto`"),
        (&["run", "wifi-lte", "--repeat", "99999999999"], "too large; expected a whole number from 1 to 1000000, or"),
        (&["run", "wifi-lte", "--out", "x", "--timeline", "-"], "expected a whole number from 0 to"),
        (&["run", "wifi-lte", "--out", "x", "--connection", "0"], "too small; expected a whole number from 1 to"),
        (&["demo", "--repeat", "0"], count),
        (&["compare", "--repeat", "y"], count),
        (&["parity", "wifi-lte", "--repeat", "1000001"], count),
        (&["reproduce", "fdps", "--repeat", "99999999999"], "too large; expected a whole number from 1 to 1000000, or"),
        (&["parity", "wifi-lte", "--jobs", "y"], "expected a whole number from 1 to 1024"),
    ] {
        let text = errors(arguments, 2);
        assert!(text.contains(wanted), "{text}");
    }
    // The message quotes the user's text.
    let text = errors(&["run", "wifi-lte", "--set", "foo"], 2);
    assert!(text.contains("foo") && !text.contains("foo="), "{text}");
}

#[test]
fn all_mistakes_of_a_command_line_are_told_at_once() {
    let text = errors(&["run", "wifi-lte", "--scheduler", "blets,minrt"], 2);
    assert_eq!(text.matches("anabranch::scenario::unknown_scheduler").count(), 2, "{text}");
}

#[test]
fn lists_come_as_tables_and_as_json() {
    for (what, name) in [
        ("schedulers", "minrtt"),
        ("congestion", "olia"),
        ("abrs", "bola"),
        ("scenarios", "wifi-lte"),
        ("metrics", "goodput_bps"),
        ("keys", "path.loss"),
        ("models", "delayed-start"),
    ] {
        assert!(output(&["list", what]).lines().any(|line| line.starts_with(name)), "{what}");
        let items: Value = serde_json::from_str(&output(&["list", what, "--format", "json"])).unwrap();
        let items = items.as_array().unwrap();
        assert!(items.iter().any(|item| item["name"] == name), "{what}");
        assert!(items.iter().all(|item| item["about"].as_str().is_some_and(|about| !about.is_empty())), "{what}");
    }
    assert!(errors(&["list", "schedulars"], 2).contains("schedulers"));
    let keys: Value = serde_json::from_str(&output(&["list", "keys", "--format", "json"])).unwrap();
    let loss = keys.as_array().unwrap().iter().find(|key| key["name"] == "path.loss").unwrap();
    assert_eq!(loss["default"], "0%");
    assert!(loss["form"].as_str().unwrap().starts_with("a probability"), "{loss}");
    assert!(output(&["list", "models"]).contains("oracle"));
}

#[test]
fn everything_listed_is_explained() {
    for what in ["schedulers", "congestion", "abrs", "scenarios", "metrics", "keys", "models"] {
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
    let loss = output(&["explain", "path.loss"]);
    assert!(
        loss.contains("path.loss (scenario key)") && loss.contains("applies  down (server to client) alone"),
        "{loss}"
    );
    assert!(output(&["explain", "path.delay"]).contains("applies  both"));
    assert!(!output(&["explain", "tcp.retries"]).contains("applies"));
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
    for entry in anabranch_workload::abr::registry::all() {
        check_form(entry.name, entry.page);
    }
}

#[test]
fn the_documents_of_all_pages_are_as_generated() {
    for what in ["schedulers", "congestion", "abrs"] {
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
fn documents_have_every_key_metric_command_and_scenario() {
    let metrics = anabranch_metrics::METRICS.iter().map(|metric| metric.name.to_owned()).collect();
    let keys: Vec<String> = anabranch_scenario::keys().iter().map(|key| key.full_name()).collect();
    for (what, names) in [("metrics", metrics), ("keys", keys)] {
        let text = output(&["explain", "--all", what]);
        let rows: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|row| row.0).collect();
        let lost: Vec<&String> = names.iter().filter(|name| !rows.contains(&name.as_str())).collect();
        assert!(lost.is_empty(), "{what} lacks {lost:?}");
    }
    // Words of a key are listed with it.
    assert!(output(&["explain", "--all", "keys"]).contains("\n| `gilbert-elliott` "));
    let text = output(&["explain", "--all", "commands"]);
    let mut lost = commands();
    lost.retain(|name| !text.contains(&format!("\n## anabranch {name}\n\n```text\n")));
    assert!(lost.is_empty() && text.contains("\n### anabranch key new\n"), "commands lack {lost:?}");
    assert!(!text.contains("# anabranch help"));
    let scenarios = output(&["explain", "--all", "scenarios"]);
    let page = output(&["explain", "wifi-lte"]);
    let (_, text) = page.split_once("\n\n").unwrap();
    assert!(scenarios.contains("\n## wifi-lte\n\n") && scenarios.contains(text.trim_end()));
}

#[test]
fn documents_have_every_entry_once_and_links_that_lead_somewhere() {
    for what in ["schedulers", "congestion", "abrs"] {
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
    for name in ["no/such/file.toml", "nope.toml"] {
        let text = errors(&["run", name], 2);
        assert!(text.contains(&format!("cannot read {name}: no such file")), "{text}");
    }
    assert!(errors(&["run", "wifi-ltee.toml"], 2).contains("did you mean the built-in scenario `wifi-lte`?"));
    assert!(errors(&["check", folder.path().to_str().unwrap()], 2).contains("it is a directory"));
    let empty = folder.path().join("empty.toml");
    for text in ["", "# nothing yet\n"] {
        std::fs::write(&empty, text).unwrap();
        let told = errors(&["check", empty.to_str().unwrap()], 2);
        assert_eq!(told.matches("anabranch::").count(), 1, "{told}");
        assert!(
            ["a scenario needs a [[path]] and an end", "[[path]]\n", "rate = "].iter().all(|part| told.contains(part)),
            "{told}"
        );
    }
}

#[test]
fn words_that_are_something_else_are_told_what() {
    assert!(errors(&["wifi-lte"], 2).contains("`anabranch run wifi-lte` runs this scenario"));
    assert!(!errors(&["wifi-ltee"], 2).contains("anabranch run"));
    assert!(errors(&["run", "wifi-lte", "--warmup", "0s"], 2).contains("`warmup` is a key of scenarios"));
    assert!(!errors(&["run", "wifi-lte", "--nonsense"], 2).contains("key of scenarios"));
    assert!(errors(&["explain", "demo"], 2).contains("anabranch demo --help"));
    assert!(errors(&["explain", "pr"], 2).contains("did you mean `PR`?"));
    assert!(errors(&["run", "wifi-lte", "--duration", "-5s"], 2).contains("`duration`"));
    assert!(errors(&["run", "wifi-lte", "--seed", "-1"], 2).contains("expected a whole number from 0"));
    assert!(errors(&["report", "nowhere"], 2).contains("cannot read nowhere/results.json: no such file"));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let text = errors(&["run", "wifi-lte", "--preflight", "--no-preflight"], 2);
    assert!(text.contains("'--preflight' cannot be used with '--no-preflight'"), "{text}");
}

#[cfg(unix)]
#[test]
fn names_of_files_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.toml"));
    std::fs::write(&file, output(&["check", "wifi-lte"])).unwrap();
    let answer = |words: &[&std::ffi::OsStr]| {
        let mut ran = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        ran.args(words).assert().success().get_output().stdout.clone()
    };
    let checked = String::from_utf8(answer(&["check".as_ref(), file.as_ref()])).unwrap();
    assert!(checked.contains("[[path]]"), "{checked}");
    let out = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    let run = ["run".as_ref(), file.as_ref(), "--duration".as_ref(), "1s".as_ref(), "--out".as_ref(), out.as_ref()];
    answer(&run);
    assert!(out.join("results.json").is_file());
}

#[test]
fn completions_know_the_options() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(output(&["completions", shell]).contains("ANABRANCH_COMPLETE"), "{shell}");
    }
    assert_eq!(ask(&["completions", "tcsh"]).code, 2);
}

/// Words that a shell is offered for the last of `words`.
fn offered(words: &[&str]) -> Vec<String> {
    let mut asked = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    asked.env("ANABRANCH_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let asked = asked.env("_CLAP_IFS", "\n").args(["--", "anabranch"]).args(words).assert().success();
    let text = String::from_utf8(asked.get_output().stdout.clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn completions_know_schedulers_scenarios_keys_and_papers() {
    assert_eq!(offered(&["run", "--scheduler", "minrtt,bles"]), ["minrtt,blest", "minrtt,blest-linux"]);
    assert!(offered(&["run", "wifi-lt"]).contains(&"wifi-lte".to_owned()));
    assert_eq!(offered(&["check", "--set", "path.wifi.ra"]), ["path.wifi.rate="]);
    assert_eq!(offered(&["run", "--sweep", "connection.recv_b"]), ["connection.recv_buffer="]);
    assert_eq!(offered(&["reproduce", "fdp"]), ["fdps"]);
    assert_eq!(offered(&["explain", "ofo_mean_b"]), ["ofo_mean_bytes"]);
}

#[test]
fn a_manual_page_per_command() {
    let folder = tempfile::tempdir().unwrap();
    assert!(output(&["man", &folder.path().to_string_lossy()]).ends_with("anabranch.1\n"));
    for command in commands() {
        let page = std::fs::read_to_string(folder.path().join(format!("anabranch-{command}.1"))).unwrap();
        assert!(page.contains(".SH DESCRIPTION") && page.contains("Example"), "{command}: {page}");
    }
}

#[test]
fn unknown_papers_and_items_have_a_neighbour() {
    assert!(errors(&["reproduce", "blset"], 2).contains("did you mean `blest`?"));
    assert!(errors(&["reproduce", "blest", "tabel4"], 2).contains("did you mean `table4`?"));
    // Capitals do not count.
    assert!(errors(&["reproduce", "BLEST", "Tabel4"], 2).contains("did you mean `table4`?"));
    assert!(errors(&["reproduce", "ALL", "a1"], 2).contains("an item belongs to one paper"));
    assert!(errors(&["reproduce", "all", "a1"], 2).contains("an item belongs to one paper"));
    // Said before the work.
    let text = errors(&["reproduce", "fdps", "--update", "Cargo.toml", "--quick"], 2);
    assert!(text.contains("has no place for the table"), "{text}");
    assert!(
        ["<!-- reproduction summary -->", "<!-- reproduction -->"].iter().all(|mark| text.contains(mark)),
        "{text}"
    );
}
