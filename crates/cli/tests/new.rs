//! A new scheduler: what `anabranch new` writes into a checkout.

use assert_cmd::Command;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with the two files that a new scheduler's lines go into, and that of a crate in it.
struct Checkout {
    folder: tempfile::TempDir,
}

const FOLDER: &str = "crates/schedulers/src";

impl Checkout {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(FOLDER)).unwrap();
        for file in ["lib.rs", "registry.rs"] {
            fs::copy(ours(file), folder.path().join(FOLDER).join(file)).unwrap();
        }
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(FOLDER).join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// The exit code and output of `anabranch new scheduler NAME` in the folder `within`.
    fn new_scheduler(&self, within: &str, name: &str) -> (i32, String) {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        let output =
            command.current_dir(self.folder.path().join(within)).args(["new", "scheduler", name]).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }
}

/// A source file of the schedulers.
fn ours(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedulers/src").join(name)
}

/// The lines that `new` has and `old` has not.
fn added(old: &str, new: &str) -> Vec<String> {
    assert_eq!(new.lines().count(), old.lines().count() + 1);
    new.lines().filter(|line| !old.lines().any(|other| other == *line)).map(str::to_owned).collect()
}

#[test]
fn a_scheduler_is_begun_with_its_file_and_its_lines() {
    let checkout = Checkout::new();
    let (code, text) = checkout.new_scheduler(FOLDER, "my-rule");
    assert_eq!(code, 0, "{text}");
    assert!(
        ["crates/schedulers/src/my_rule.rs", "cargo test -p anabranch-schedulers", "minrtt,my-rule"]
            .iter()
            .all(|part| text.contains(part)),
        "{text}"
    );
    let ours = |name: &str| fs::read_to_string(ours(name)).unwrap();
    assert_eq!(added(&ours("lib.rs"), &checkout.read("lib.rs")), ["pub mod my_rule;"]);
    assert_eq!(
        added(&ours("registry.rs"), &checkout.read("registry.rs")),
        ["    (&crate::my_rule::ENTRY, Binds::Pull),"]
    );
    // The template is a module of the schedulers' own tests; this is the same but for its names.
    let source = checkout.read("my_rule.rs");
    let renamed = source.replace("MyRule", "Template").replace("\"my-rule\"", "\"template\"");
    assert_eq!(renamed.replace("//! my-rule:", "//! template:"), ours("template.rs"));
    assert!(!source.to_lowercase().contains("template"), "{source}");
    assert_eq!(fs::read_dir(checkout.file("")).unwrap().count(), 3, "nothing else is left");
}

#[test]
fn what_it_writes_is_formatted_rust() {
    let checkout = Checkout::new();
    assert_eq!(checkout.new_scheduler("", "aaa").0, 0);
    assert_eq!(checkout.new_scheduler("", "zzz-2").0, 0);
    let style = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rustfmt.toml");
    let mut rustfmt = Command::new("rustfmt");
    // It follows the modules of lib.rs, of which this folder has the new ones alone.
    let files = ["aaa.rs", "zzz_2.rs", "registry.rs"].map(|name| checkout.file(name));
    let Ok(ran) = rustfmt.args(["--check", "--edition", "2024", "--config-path"]).arg(style).args(files).output()
    else {
        eprintln!("SKIPPED: rustfmt is not here");
        return;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn a_name_that_cannot_be_is_refused_and_nothing_written() {
    let checkout = Checkout::new();
    let before = (checkout.read("lib.rs"), checkout.read("registry.rs"));
    for (name, why) in [
        ("My_Rule", "small letters and digits"),
        ("2fast", "must begin with a letter"),
        ("loop", "for something else"),
        ("blest", "there is a scheduler `blest` already"),
        ("lowrtt", "there is a scheduler `lowrtt` already"),
        ("registry", "exists already"),
    ] {
        let (code, text) = checkout.new_scheduler("", name);
        assert!(code == 2 && text.contains(why), "{name}: {text}");
    }
    assert_eq!((checkout.read("lib.rs"), checkout.read("registry.rs")), before);
    assert_eq!(fs::read_dir(checkout.file("")).unwrap().count(), 2);
    fs::write(checkout.file("registry.rs"), "// nothing\n").unwrap();
    assert!(checkout.new_scheduler("", "my-rule").1.contains("has no place for a new line"));
}

#[test]
fn outside_of_a_checkout_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let ran = command.current_dir(folder.path()).args(["new", "scheduler", "my-rule"]).output().unwrap();
    let text = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.code() == Some(2) && text.contains("this needs a checkout of the repository"), "{text}");
}
