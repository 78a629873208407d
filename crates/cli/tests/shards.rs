//! Parts of a sweep on several machines, brought together.

mod common;

use common::{ask, errors, output};
use std::fs;
use std::path::Path;

const SCENARIO: &str = "name = 'two'\nrepeat = 3\nduration = '10s'\n[[path]]\nname = 'wlan'\ntrace = 'steady.trace'\ndelay = '25ms'\nloss = '1%'\n\
    [[path]]\nname = '3g'\nrate = '5mbit'\ndelay = '65ms'\n[[traffic]]\nkind = 'bulk'\n";

/// A file and a trace in a directory.
fn scenario() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("steady.trace"), "1\n2\n3\n4\n").unwrap();
    let file = folder.path().join("two.toml");
    fs::write(&file, SCENARIO).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (folder, name)
}

fn arguments<'a>(file: &'a str, out: &'a str) -> Vec<&'a str> {
    let sweep = ["--sweep", "path.3g.delay=65ms..260ms*2", "--scheduler", "minrtt,blest(delta=0.01)"];
    [&["run", file, "--out", out][..], &sweep].concat()
}

fn same(a: &Path, b: &Path) {
    for name in ["results.json", "runs.csv", "runs.parquet"] {
        assert!(fs::read(a.join(name)).unwrap() == fs::read(b.join(name)).unwrap(), "{name} differs");
    }
}

#[test]
fn three_shards_make_the_whole() {
    let (folder, file) = scenario();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = place("whole");
    let printed = output(&arguments(&file, &whole));
    let shards = ["1/3", "2/3", "3/3"];
    let places: Vec<String> = (1..=3).map(|n| place(&format!("s{n}"))).collect();
    let told = |n: usize| output(&[&arguments(&file, &places[n])[..], &["--shard", shards[n]]].concat());
    assert_eq!(told(0), format!("Shard 1/3: 12 runs are kept in {}.\n", places[0]));
    let merged = place("merged");
    let merge = |order: &[usize]| -> Vec<&str> {
        let folders = order.iter().map(|n| places[*n].as_str());
        ["merge"].into_iter().chain(folders).chain(["--out", &merged]).collect()
    };
    // The others are not made yet.
    let text = errors(&merge(&[0]), 2);
    assert!(text.contains("shard 2/3, 3/3 is missing"), "{text}");
    told(1);
    told(2);
    let text = errors(&["merge", &places[0], &places[1], &places[2], "--out", &places[1]], 2);
    assert!(text.contains("is a shard"), "{text}");
    let text = errors(&arguments(&file, &places[1]), 2);
    assert!(text.contains("is a shard"), "{text}");
    // The trace is among what was kept.
    fs::remove_file(folder.path().join("steady.trace")).unwrap();
    assert_eq!(output(&merge(&[2, 0, 1])), printed);
    same(Path::new(&whole), Path::new(&merged));
    // A shard that lost runs.
    let journal = Path::new(&places[1]).join("kept/virtual-time.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, &text[..text.len() / 2]).unwrap();
    let text = errors(&merge(&[2, 0, 1]), 2);
    assert!(text.contains("are in none of the shards"), "{text}");
}

#[test]
fn shards_of_other_runs_are_refused() {
    let (folder, file) = scenario();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b, out) = (place("a"), place("b"), place("out"));
    output(&["run", &file, "--out", &a, "--shard", "1/2"]);
    output(&["run", &file, "--out", &b, "--shard", "2/2", "--seed", "7"]);
    let text = errors(&["merge", &a, &b, "--out", &out], 2);
    assert!(text.contains("shards of different runs"), "{text}");
    let text = errors(&["run", &file, "--out", &a, "--shard", "1/2", "--seed", "7"], 2);
    assert!(text.contains("holds a shard of other runs"), "{text}");
    // The same again does nothing twice.
    output(&["run", &file, "--out", &a, "--shard", "1/2"]);
    let text = errors(&["merge", &a, &place("nowhere"), "--out", &out], 2);
    assert!(text.contains("shard.json") && text.contains("no such file"), "{text}");
    fs::write(Path::new(&b).join("shard.json"), "{}").unwrap();
    assert!(errors(&["merge", &a, &b, "--out", &out], 2).contains("missing field"));
    let other =
        fs::read_to_string(Path::new(&a).join("shard.json")).unwrap().replace("\"program\": \"", "\"program\": \"9");
    fs::write(Path::new(&b).join("shard.json"), other).unwrap();
    assert!(errors(&["merge", &a, &b, "--out", &out], 2).contains("made by another build"));
}

#[test]
fn a_shard_is_one_of_several_in_virtual_time() {
    let (folder, file) = scenario();
    let out = folder.path().join("out");
    let told = |more: &[&str]| errors(&[&["run", &file, "--out", out.to_str().unwrap()][..], more].concat(), 2);
    for word in ["0/3", "4/3", "1/0", "3", "a/b", "1/99999999"] {
        assert!(told(&["--shard", word]).contains("--shard"), "{word}");
    }
    assert!(told(&["--shard", "1/2", "--repeat", "auto"]).contains("needs the results of all shards"));
    assert!(told(&["--shard", "1/2", "--receiver", "linux"]).contains("follow the clock"));
    assert!(ask(&["run", &file, "--shard", "1/2"]).errors.contains("--out"));
}
