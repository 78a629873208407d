//! All scripts against the engine, in virtual time; and that a wrong script fails.

use anabranch_conformance::script::{EngineWord, Script};
use anabranch_conformance::suite;

/// What a script says of the engine holds.
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
        (EngineWord::Passes, played) => played,
        (EngineWord::Fails(_) | EngineWord::LeavesOut(_), Err(_)) => Ok(()),
        (word, Ok(())) => Err(format!("{file}: it passes now; take the line away that says otherwise: {word:?}\n")),
    }
}

const RIGHT: &str = "\
# Data is acknowledged.
clause  rfc9293 3.10.7.4
kernel  passes
set     mptcp off

+0      listen
+0      < S  0:0(0) win 65535 <mss 1000>
+0      > S. 0:0(0) ack 1 <mss 1460>
+0.01   < .  1:1(0) ack 1 win 65535
+0      accept
+0.01   < P. 1:101(100) ack 1 win 65535
+0      > .  1:1(0) ack 101
+0      read 100
+0      write 300
+0      > P. 1:301(300) ack 101
+0.01   < .  101:101(0) ack 301 win 65535
+0      quiet 1
";

fn played(text: &str) -> Result<(), String> {
    let script = Script::parse("test.script", text).expect("a script");
    suite::on_the_engine(&script)
}

/// The script with one line changed.
fn with(line: &str, instead: &str) -> String {
    assert_eq!(RIGHT.matches(line).count(), 1, "{line}");
    RIGHT.replace(line, instead)
}

#[test]
fn a_right_script_passes() {
    assert_eq!(played(RIGHT), Ok(()));
}

#[test]
fn a_wrong_script_fails() {
    let wrong = [
        // A wrong number, length, flag, window, option; a packet that is missing, one too many, one too late.
        ("> .  1:1(0) ack 101", "> .  1:1(0) ack 102", "ack 101, not 102"),
        ("> P. 1:301(300) ack 101", "> P. 2:302(300) ack 101", "seq 1, not 2"),
        ("> P. 1:301(300) ack 101", "> P. 1:302(301) ack 101", "length 300, not 301"),
        ("> P. 1:301(300) ack 101", "> F. 1:301(300) ack 101", "flags P., not F."),
        ("ack 1 <mss 1460>", "ack 1 win 1 <mss 1460>", "not 1"),
        ("ack 1 <mss 1460>", "ack 1 <mss 1461>", "<mss 1460>, not <mss 1461>"),
        ("ack 1 <mss 1460>", "ack 1 <mss *, sackOK>", "no <sackOK>"),
        ("ack 1 <mss 1460>", "ack 1", "<mss 1460> besides"),
        ("+0      > .  1:1(0) ack 101\n", "", "length 0, not 300"),
        ("+0      > .  1:1(0) ack 101", "+0 > . 1:1(0) ack 101\n+0 > . 1:1(0) ack 101", "nothing up to"),
        ("+0      > P. 1:301(300) ack 101", "+0.2    > P. 1:301(300) ack 101", "too early"),
        ("+0      quiet 1", "+0.01   < . 101:201(100) ack 301\n+0 quiet 1", "a packet that no line has"),
        ("+0      quiet 1", "+0.01   < . 101:201(100) ack 301", "a packet that no line has"),
        ("+0      read 100", "+0      read 101", "100 bytes, then nothing"),
        ("+0      read 100", "+0      read \"x\"", "byte 0 of the stream"),
        ("+0      read 100", "+0      read 100\n+0 read end", "nothing to read"),
        ("(300) ack 101\n", "(300) ack 101 payload from 1\n", "payload byte 0"),
        ("+0      write 300", "+0      multipath\n+0 write 300", "multipath: false"),
    ];
    for (line, instead, why) in wrong {
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
