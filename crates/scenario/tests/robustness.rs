//! No text makes the reader panic, and every accepted text is printed and read back.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests run on a host with files and an environment"
)]

mod common;

use anabranch_scenario::{Code, Document, NoFiles, Override, Source, read};
use common::{files, root};
use miette::Diagnostic as _;
use proptest::prelude::*;
use std::fs;

/// Reads a text, and prints the result.
fn exercise(text: &str, overrides: &[Override]) {
    let source = Source { name: "fuzz.toml".into(), text: text.into() };
    match read(&source, overrides, &NoFiles) {
        Ok(document) => {
            let again = Document::parse("again.toml", &document.resolved()).unwrap_or_else(|e| panic!("{e:#?}"));
            assert_eq!(document.scenario, again.scenario);
        }
        Err(wrong) => {
            assert!(!wrong.is_empty());
            for diagnostic in &wrong {
                // The count of further mistakes alone has no place.
                let labels = diagnostic.labels();
                assert_eq!(labels.is_none(), diagnostic.code == Code::MoreMistakes, "{diagnostic:?}");
                for label in labels.into_iter().flatten() {
                    let shown = diagnostic.source_code().unwrap().read_span(label.inner(), 1, 1);
                    assert!(shown.is_ok(), "{diagnostic:?} points outside of its source");
                }
            }
        }
    }
}

/// Fragments of scenario files.
fn fragment() -> impl Strategy<Value = String> {
    let words: Vec<String> = anabranch_scenario::keys().iter().map(|key| key.name.to_string()).collect();
    let marks = [
        "[[path]]\n",
        "[",
        "]",
        "{",
        "}",
        "=",
        " = ",
        "\"",
        "'",
        ",",
        "\n",
        ".",
        "#",
        "\"1%\"",
        "\"25ms\"",
        "\"1bdp\"",
        "-1",
        "9999999999999999999",
        "1e400",
        "nan",
        "true",
        "2024-01-01",
        "[sweep]\n",
        "\"25mbit\"",
        "kind = \"red\"",
        "µ",
        "\u{0}",
    ];
    prop_oneof![
        prop::sample::select(words),
        prop::sample::select(marks.map(String::from).to_vec()),
        "\\PC{0,6}",
        "[0-9]{1,25}[a-zA-Z%]{0,5}",
    ]
}

fn shipped() -> Vec<String> {
    files(&root().join("scenarios")).iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Blanks around a value are no part of it, and of a value of blanks alone nothing is left.
#[test]
fn blanks_around_an_override_are_nothing() {
    let text = fs::read_to_string(root().join("scenarios/handover.toml")).unwrap();
    for (key, value) in [("seed", "   "), (" seed ", "\u{a0}\u{2003}\n"), ("seed", " 7\t"), ("", "  "), (" ", "")] {
        exercise(&text, &[Override::new("--set", key, value)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_is_read_or_refused(text in "\\PC{0,200}") {
        exercise(&text, &[]);
    }

    #[test]
    fn fragments_are_read_or_refused(parts in prop::collection::vec(fragment(), 0..60)) {
        exercise(&parts.concat(), &[]);
    }

    /// One value of a valid scenario replaced: this goes deeper than random text.
    #[test]
    fn damaged_scenarios_are_read_or_refused(
        which in any::<prop::sample::Index>(),
        line in any::<prop::sample::Index>(),
        junk in prop::collection::vec(fragment(), 0..4),
        keep_key in any::<bool>(),
    ) {
        let texts = shipped();
        let mut lines: Vec<&str> = which.get(&texts[..]).lines().collect();
        let line = line.index(lines.len());
        let key = lines[line].split_once('=').map_or("", |(key, _)| key);
        let replaced = if keep_key { format!("{key}= {}", junk.concat()) } else { junk.concat() };
        lines[line] = &replaced;
        exercise(&lines.join("\n"), &[]);
    }

    #[test]
    fn arbitrary_overrides_are_applied_or_refused(
        which in any::<prop::sample::Index>(),
        keys in prop::collection::vec(prop::collection::vec(fragment(), 1..5), 1..4),
        values in prop::collection::vec(fragment(), 4),
    ) {
        let texts = shipped();
        let set: Vec<_> = keys.iter().zip(&values).map(|(key, value)| Override::new("--set", key.join("."), value)).collect();
        exercise(&texts[which.index(texts.len())], &set);
    }

    /// Every key, set to anything, in its place.
    #[test]
    fn every_key_takes_or_refuses_anything(
        index in any::<prop::sample::Index>(),
        value in prop_oneof![fragment(), "[0-9]{1,4}(\\.[0-9]{1,3})?(ns|us|ms|s|bit|kbit|mbit|B|KB|MiB|p|bdp|%)?", Just("{ down = 1 }".to_string())],
        direction in prop::sample::select(vec!["", ".down", ".up", ".kind", ".p.q"]),
    ) {
        let text = fs::read_to_string(root().join("scenarios/handover.toml")).unwrap();
        let key = index.get(anabranch_scenario::keys()).full_name();
        let key = if let Some(rest) = key.strip_prefix("path.") { format!("path.wifi.{rest}") } else { key };
        exercise(&text, &[Override::new("--set", format!("{key}{direction}"), value)]);
    }
}
