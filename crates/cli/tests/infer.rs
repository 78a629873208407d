//! `anabranch infer`: the guide's example, shards, mistakes.

use anabranch_cli::{Answer, Drivers, answer};
use anabranch_run::VirtualTime;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The answer of `anabranch ARGUMENTS`, simulated.
fn ask(arguments: &[&str]) -> Answer {
    let arguments = std::iter::once(&"anabranch").chain(arguments).map(|argument| argument.into());
    let simulated = VirtualTime::default();
    let drivers = Drivers {
        virtual_time: &simulated,
        real_time: &simulated,
        preflight: |_| Box::new(VirtualTime::default()),
        cache: None,
    };
    answer(arguments, &drivers, false)
}

/// The output of a command that succeeds.
#[track_caller]
fn output(arguments: &[&str]) -> String {
    let Answer { output, errors, code } = ask(arguments);
    assert_eq!((errors.as_str(), code), ("", 0));
    output
}

/// The diagnostic of a command that cannot use its input.
#[track_caller]
fn errors(arguments: &[&str]) -> String {
    let Answer { output, errors, code } = ask(arguments);
    assert_eq!((output.as_str(), code), ("", 2), "{errors}");
    errors
}

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
    assert!(table.contains("wifi-rate") && table.contains("40 of 800 testbeds are kept"), "{table}");
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
    // With the first round there, a shard makes its part of the second.
    let told = run(&["--shard", "2/2", "--from", &a, "--out", &b]);
    assert!(told.starts_with("Shard 2/2: "), "{told}");
    // With all runs there, it has nothing left to make.
    assert_eq!(run(&["--shard", "2/2", "--from", &whole, "--out", &b]), alone);
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
        ("single:wifi", "single:wfi", "no draw has a value", ":8:"),
        ("scale = \"log\"", "scale = \"logg\"", "`logg` is no scale", ":9:"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&file, text.replace(from, to)).unwrap();
        let errors = errors(&["infer", &file, "--draws", "2", "--keep", "1"]);
        assert!(errors.contains(said) && errors.contains(line), "{said}: {errors}");
    }
    let (head, _) = text.split_once("[[anchor]]").unwrap();
    fs::write(&file, head).unwrap();
    assert!(errors(&["infer", &file]).contains("there is no anchor"));
    let stated = "[stated]\n\"path.wifi\" = \"the label\"\n[unsaid.";
    fs::write(&file, text.replacen("[unsaid.", stated, 1)).unwrap();
    let said = errors(&["infer", &file]);
    assert!(said.contains("contradicts the source, which states `path.wifi`: the label"), "{said}");
    assert!(errors(&["infer", "blset"]).contains("did you mean `blest`?"));
    assert!(errors(&["infer", "fdps", "--draws", "5", "--keep", "9"]).contains("9 of 5 testbeds cannot be kept"));
}
