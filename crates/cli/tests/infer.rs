//! `anabranch infer`: the guide's example, shards, mistakes.

mod common;

use common::{errors, output};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The files of the guide's example, as the page has them.
fn example() -> tempfile::TempDir {
    let page = include_str!("../../../docs/infer.md");
    let mut blocks = page.split("```toml\n").skip(1).map(|block| block.split("```").next().expect("a block ends"));
    let folder = tempfile::tempdir().unwrap();
    for name in ["home.toml", "measured.toml"] {
        fs::write(folder.path().join(name), blocks.next().expect("two blocks")).unwrap();
    }
    folder
}

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

fn unknown<'a>(found: &'a Value, name: &str) -> &'a Value {
    found[0]["unknowns"].as_array().unwrap().iter().find(|unknown| unknown["unknown"] == name).unwrap()
}

/// The number in a value such as `12.3mbit`.
fn number(value: &Value) -> f64 {
    value.as_str().unwrap().trim_end_matches(char::is_alphabetic).parse().unwrap()
}

/// The values were measured with 12 Mbit/s and 20 ms of Wi-Fi, and a queue of 150 KB.
#[test]
fn the_guides_example_finds_what_was_measured() {
    let folder = example();
    let file = at(folder.path(), "measured.toml");
    let out = at(folder.path(), "out");
    let text = output(&["infer", &file, "--format", "json", "--out", &out]);
    let found: Value = serde_json::from_str(&text).unwrap();
    for (name, truth) in [("wifi-rate", 12.0), ("wifi-delay", 20.0)] {
        let unknown = unknown(&found, name);
        let [low, high] = [&unknown["ci95"][0], &unknown["ci95"][1]].map(number);
        assert!(low < truth && truth < high, "{unknown}");
        assert!(unknown["fixed"].as_f64().unwrap() > 0.3, "{unknown}");
    }
    let queue = unknown(&found, "lte-queue");
    let shares: Vec<f64> = queue["shares"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect();
    assert!(shares[1] > 0.8, "{shares:?}");
    for name in ["inference.json", "draws-measured.parquet", "report.html", "claims.csv"] {
        assert!(Path::new(&out).join(name).is_file(), "{name}");
    }
    assert_eq!(fs::read_to_string(Path::new(&out).join("inference.json")).unwrap(), text);
    // Nothing is run again, and the table says the same.
    let table = output(&["infer", &file, "--out", &out]);
    assert!(table.contains("wifi-rate") && table.contains("20 of 800 testbeds are kept"), "{table}");
}

#[test]
fn shards_make_the_whole() {
    let folder = example();
    let file = at(folder.path(), "measured.toml");
    let [a, b, whole] = ["a", "b", "whole"].map(|name| at(folder.path(), name));
    let draws = ["--draws", "16", "--keep", "4", "--format", "json"];
    let run = |more: &[&str]| output(&[&["infer", &file][..], &draws, more].concat());
    let alone = run(&[]);
    let told = run(&["--shard", "1/2", "--out", &a]);
    assert!(told.starts_with("Shard 1/2: ") && told.contains("runs are kept in"), "{told}");
    run(&["--shard", "2/2", "--out", &b]);
    assert_eq!(run(&["--from", &a, "--from", &b, "--out", &whole]), alone);
    // With all runs there, a shard has nothing left to make.
    assert_eq!(run(&["--shard", "2/2", "--from", &a, "--out", &b]), alone);
}

#[test]
fn mistakes_name_file_and_line() {
    let folder = example();
    let file = at(folder.path(), "measured.toml");
    let text = fs::read_to_string(&file).unwrap();
    for (from, to, said, line) in [
        ("path.wifi.rate", "path.wfi.rate", "no scenario has the key `path.wfi.rate`", ":8:"),
        ("\"60ms\"", "\"60mbit\"", "two numbers with the same unit", ":14:"),
        ("[\"50KB\", \"150KB\"", "[\"-50KB\", \"150KB\"", "-50KB cannot be", ":19:"),
        ("single:wifi", "single:wfi", "no draw has a value", ""),
        ("scale = \"log\"", "scale = \"logg\"", "`logg` is no scale", ":9:"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&file, text.replace(from, to)).unwrap();
        let code = if line.is_empty() { 1 } else { 2 };
        let errors = errors(&["infer", &file, "--draws", "2", "--keep", "1"], code);
        assert!(errors.contains(said) && errors.contains(line), "{said}: {errors}");
    }
    let (head, _) = text.split_once("[[anchor]]").unwrap();
    fs::write(&file, head).unwrap();
    assert!(errors(&["infer", &file], 2).contains("there is no anchor"));
    let stated = "[stated]\n\"path.wifi\" = \"the label\"\n[unsaid.";
    fs::write(&file, text.replacen("[unsaid.", stated, 1)).unwrap();
    let said = errors(&["infer", &file], 2);
    assert!(said.contains("contradicts the source, which states `path.wifi`: the label"), "{said}");
    assert!(errors(&["infer", "blset"], 2).contains("did you mean `blest`?"));
    assert!(errors(&["infer", "fdps", "--draws", "5", "--keep", "9"], 2).contains("9 of 5 testbeds cannot be kept"));
}
