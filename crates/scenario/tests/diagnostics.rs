//! Every kind of mistake, as users see it: `tests/data/scenario/NAME.toml` and its message in `NAME.txt`.
//!
//! A line `#! --set KEY=VALUE` in a file is an override. After an intended change of texts, renew them with
//! `BLESS=1 cargo test -p anabranch-scenario --test diagnostics`, and read the difference.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on a host with files")]

mod common;

use anabranch_scenario::{Code, Diagnostic, Override, Source, read};
use common::{Folder, data, files, rendered};
use std::fs;

fn overrides(text: &str) -> Vec<Override> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("#! "));
    lines.filter_map(|line| line.split_once(' ')).map(|(origin, set)| Override::parse(origin, set)).collect()
}

fn mistakes(name: &str) -> Vec<Diagnostic> {
    let path = data().join(name);
    let text = fs::read_to_string(&path).unwrap();
    let overrides = overrides(&text);
    let source = Source { name: name.into(), text };
    read(&source, &overrides, &Folder(data())).map(|_| name).expect_err("this file is wrong")
}

#[test]
fn every_mistake_is_told_as_reviewed() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut differing = Vec::new();
    for path in files(&data()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = rendered(&mistakes(name));
        let expected = path.with_extension("txt");
        if bless {
            fs::write(&expected, &text).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != text {
            differing.push(format!("{name}:\n{text}"));
        }
    }
    assert!(differing.is_empty(), "differs from the reviewed text:\n{}", differing.join("\n"));
}

#[test]
fn every_kind_of_mistake_has_a_file() {
    let found: Vec<Code> = files(&data())
        .iter()
        .flat_map(|path| mistakes(path.file_name().unwrap().to_str().unwrap()))
        .map(|diagnostic| diagnostic.code)
        .collect();
    let lacking: Vec<_> = Code::ALL.into_iter().filter(|code| !found.contains(code)).collect();
    assert!(lacking.is_empty(), "no file shows {lacking:?}");
}

#[test]
fn mistakes_come_in_the_order_of_the_file_and_underline_a_token() {
    for path in files(&data()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let in_file: Vec<_> = mistakes(name).into_iter().filter(|d| d.source_name() == name).collect();
        assert!(in_file.windows(2).all(|pair| pair[0].at.start <= pair[1].at.start), "{name}");
        for diagnostic in in_file {
            assert!(text.get(diagnostic.at.clone()).is_some(), "{name}: {diagnostic:?}");
        }
    }
}
