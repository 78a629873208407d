//! All scripts against the engine, in virtual time; wrong scripts fail.

mod common;

use anabranch_conformance::script::{EngineWord, Script};
use anabranch_conformance::suite;
use common::{RIGHT, WRONG, with};

/// Each script's expectation for the engine holds.
#[test]
fn the_engine_does_what_the_scripts_say() {
    let root = suite::root();
    let files = suite::files(&root).expect("the suite can be read");
    assert!(!files.is_empty());
    let failures: Vec<String> = files.iter().filter_map(|file| held(&root, file).err()).collect();
    assert!(failures.is_empty(), "{} of {} scripts:\n\n{}", failures.len(), files.len(), failures.join("\n"));
}

fn held(root: &std::path::Path, file: &str) -> Result<(), String> {
    let script = suite::load(root, file)?;
    let played = suite::on_the_engine(&script);
    match (&script.engine, played) {
        (EngineWord::Passes, played) => played.map(drop),
        (EngineWord::Fails(_) | EngineWord::LeavesOut(_), Err(_)) => Ok(()),
        (word, Ok(_)) => Err(format!("{file}: it passes now; take the line away that says otherwise: {word:?}\n")),
    }
}

fn played(text: &str) -> Result<(), String> {
    let script = Script::parse("test.script", text).expect("a script");
    suite::on_the_engine(&script).map(drop)
}

#[test]
fn a_right_script_passes() {
    assert_eq!(played(RIGHT), Ok(()));
}

#[test]
fn a_wrong_script_fails() {
    for (line, instead, why) in WRONG {
        let failure = played(&with(line, instead)).expect_err(instead);
        assert!(failure.contains(why), "{instead}: {failure}");
    }
}

#[test]
fn a_failure_shows_what_came_and_what_led_to_it() {
    let failure = played(&with("> .  1:1(0) ack 101", "> .  1:1(0) ack 102")).expect_err("a wrong number");
    let expected = "\
test.script:12
  expected  +0      > .  1:1(0) ack 102
  came      +0 > . 1:1(0) ack 101 win 65535
            ack 101, not 102
  so far
     0.000000 +0      listen
     0.000000 < S 0:0(0) win 65535 <mss 1000>
     0.000000 > S. 0:0(0) ack 1 win 65535 <mss 1460>
     0.010000 < . 1:1(0) ack 1 win 65535
     0.010000 +0      accept
     0.020000 < P. 1:101(100) ack 1 win 65535
     0.020000 > . 1:1(0) ack 101 win 65535
";
    assert_eq!(failure, expected);
}
