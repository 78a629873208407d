//! The examples of the README, of the guide and of the concepts, and what other documents print, work as they are.

use assert_cmd::Command;
use std::path::{Path, PathBuf};

/// A page of the repository.
fn page(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The commands in a page's ```console blocks, without the prompt.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ ")).collect()
}

#[test]
fn every_command_succeeds_and_prints() {
    let concepts = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/concepts")).expect("pages");
    let concepts = concepts.map(|entry| format!("docs/concepts/{}", entry.expect("a page").file_name().display()));
    let others = [("README.md", 5), ("docs/guide.md", 3), ("docs/sweeps.md", 2)];
    let others = others.map(|(name, least)| (name.to_owned(), least));
    for (name, least) in others.into_iter().chain(concepts.map(|name| (name, 1))) {
        let page = page(&name);
        let examples = examples(&page);
        assert!(examples.len() >= least, "{name}: {examples:?}");
        for example in examples {
            let mut words = example.split_whitespace();
            assert_eq!(words.next(), Some("anabranch"), "{example}");
            let ran = Command::cargo_bin("anabranch").expect("the binary").args(words).assert().success();
            assert!(!ran.get_output().stdout.is_empty(), "{example}");
        }
    }
}

/// A column of the run that a page's live figure shows, with `changes` to its scenario.
fn figure(name: &str, column: &str, changes: &[&str]) -> f64 {
    let page = page(&format!("docs/concepts/{name}.md"));
    let fragment = page.split("<!-- live: ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a figure");
    let part = |key: &'static str| fragment.split('&').filter_map(move |pair| pair.strip_prefix(key));
    let sets = part("set=").chain(changes.iter().copied()).flat_map(|pair| ["--set", pair]);
    let words =
        ["run", part("preset=").next().expect("a preset"), "--repeat", "1", "--no-baselines", "--format", "csv"];
    let ran = Command::cargo_bin("anabranch").expect("the binary").args(words).args(sets).assert().success();
    let text = String::from_utf8(ran.get_output().stdout.clone()).expect("text");
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let at = rows.next().and_then(|head| head.iter().position(|one| *one == column)).expect(column);
    rows.next().expect("a run")[at].parse().expect(column)
}

#[test]
fn the_live_figures_show_what_the_sentences_below_them_say() {
    let delivered = |control| {
        let control = format!("connection.congestion={control}");
        figure("coupled-congestion-control", "goodput_bps", &[&control]) * 60.0 / 8e6
    };
    let (reno, lia) = (delivered("reno"), delivered("lia"));
    assert!((78.0..82.0).contains(&reno) && (69.0..72.0).contains(&lia), "{reno} {lia} MB");

    let share = |changes: &[&str]| figure("scheduler", "path.left.share", changes);
    let (far, turns) = ("path.left.delay=150ms", "connection.scheduler=roundrobin");
    assert!(share(&[]) > 0.98 && share(&[far]) < 0.02);
    for share in [share(&[turns]), share(&[turns, far])] {
        assert!((0.45..0.55).contains(&share), "{share}");
    }

    let goodput = |change| figure("receive-window", "goodput_bps", &[change]);
    let ratio = goodput("connection.recv_buffer=2MiB") / goodput("connection.recv_buffer=128KiB");
    assert!((1.7..2.1).contains(&ratio), "{ratio}");
    let waiting = |scheduler| figure("head-of-line-blocking", "ofo_mean_bytes", &[scheduler]);
    assert!(waiting("connection.scheduler=blest") < 1000.0 && waiting("connection.scheduler=minrtt") > 40_000.0);

    assert!(figure("failover", "outage_s", &[]) < 0.3);
    assert!(figure("failover", "outage_s", &["connection.early_rescue=false"]) > 0.35);
}

/// Readers give a README some minutes: 12,000 characters.
#[test]
fn the_readme_is_short() {
    let length = page("README.md").chars().count();
    assert!(length <= 12_000, "README.md has {length} characters");
}

/// One page until the first release: 8 KB.
#[test]
fn the_changelog_is_one_page() {
    let bytes = page("CHANGELOG.md").len();
    assert!(bytes <= 8192, "CHANGELOG.md has {bytes} bytes");
}

#[test]
fn the_scenario_is_valid_and_shows_the_difference_that_is_told() {
    let text = page("README.md");
    let toml = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a scenario");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("readme.toml");
    std::fs::write(&file, toml).expect("it can be written");
    Command::cargo_bin("anabranch").expect("the binary").arg("check").arg(&file).assert().success();
    let goodput = |scheduler: &str, changes: &[&str]| {
        let words = ["--scheduler", scheduler, "--repeat", "3", "--no-baselines", "--format", "csv"];
        let sets = changes.iter().flat_map(|change| ["--set", change]);
        let mut run = Command::cargo_bin("anabranch").expect("the binary");
        let ran = run.arg("run").arg(&file).args(words).args(sets).assert().success();
        let text = String::from_utf8(ran.get_output().stdout.clone()).expect("text");
        let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let at = rows.next().and_then(|head| head.iter().position(|one| *one == "goodput_bps")).expect("goodput");
        let values: Vec<f64> = rows.map(|row| row[at].parse().expect("a number")).collect();
        values.iter().sum::<f64>() / values.len() as f64 / 1e6
    };
    assert!(text.contains("BLEST reaches 18 Mbit/s where\nMinRTT has 24"));
    let (minrtt, blest) = (goodput("minrtt", &[]), goodput("blest", &[]));
    assert!((23.0..25.0).contains(&minrtt) && (17.0..19.0).contains(&blest), "{minrtt}, {blest}");
    let wide = ["connection.recv_buffer=16MiB"];
    assert_eq!(goodput("minrtt", &wide), goodput("blest", &wide));
}

/// Every text that is published: README and CONTRIBUTING, docs, scenarios, papers.
fn published() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = ["docs", "scenarios", "papers"].map(|name| root.join(name)).to_vec();
    let mut files = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("it is a folder").map(Result::unwrap) {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    let text = |file: PathBuf| Some((file.clone(), std::fs::read_to_string(file).ok()?));
    files.into_iter().filter_map(text).collect()
}

/// `daps(round=4)` and the like: what begins with a plug-in's name and has parameters in brackets.
fn expressions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices('(').filter_map(|(at, _)| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-+_".contains(c);
        let begin = text[..at].char_indices().rev().take_while(|(_, c)| is_name(*c)).last()?.0;
        let inside = &text[at + 1..at + text[at..].find(')')?];
        let parameters = inside.split(',').all(|part| {
            let (key, value) = part.split_once('=').unwrap_or_default();
            let is_word = |word: &str, more: &str| {
                let is_part = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
                !word.is_empty() && word.chars().all(is_part)
            };
            is_word(key.trim(), "_") && is_word(value.trim(), ".-")
        });
        parameters.then_some((&text[begin..at], &text[begin..at + inside.len() + 2]))
    })
}

#[test]
fn every_plug_in_with_parameters_that_documents_print_can_be_given() {
    let mut found = 0;
    for (file, text) in published() {
        for (name, expression) in expressions(&text) {
            let read = match (anabranch_schedulers::resolve(name).is_ok(), anabranch_congestion::find(name)) {
                (true, _) => anabranch_scenario::scheduler("the document", expression),
                (false, Some(_)) => anabranch_scenario::congestion("the document", expression),
                (false, None) => continue,
            };
            assert!(read.is_ok(), "{}: {expression}: {read:?}", file.display());
            found += 1;
        }
    }
    assert!(found >= 3, "found {found}");
}

#[test]
fn a_flag_is_a_word_or_one_of_two_digits() {
    let read = |text: &str| anabranch_scenario::scheduler("--scheduler", text).ok();
    let digits = read("daps(round=4,retransmit=0)").expect("documents have printed it so");
    assert_eq!(Some(&digits), read("daps(round=4,retransmit=false)").as_ref());
    assert_eq!(Some(&digits), read(&digits.with_parameters()).as_ref());
    assert!(read("daps(retransmit=2)").is_none());
}
