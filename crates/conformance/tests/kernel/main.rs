//! All scripts against this machine's Linux kernel: each script's expectation for it holds.
//!
//! `cargo test -p anabranch-conformance --test kernel -- WORD…` plays those whose file name contains one of the words.
//! Where namespaces and TUN devices cannot be made, or the kernel has no MPTCP, the test says SKIPPED and passes.

#[path = "../common/mod.rs"]
mod common;
mod host;
mod settings;

use anabranch_conformance::play::play;
use anabranch_conformance::script::{KernelWord, Script};
use anabranch_conformance::suite;
use anabranch_lab::kernel::facts;
use anabranch_lab::privilege;
use host::KernelHost;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Scripts that are played at once; they wait most of the time.
const AT_ONCE: usize = 8;
/// How often a script is played until its expectation holds.
const ATTEMPTS: u32 = 3;
/// The time limit of all scripts together.
const MOST_TIME: Duration = Duration::from_secs(360);

/// The outcome of a script.
struct Outcome {
    /// Why its expectation does not hold.
    wrong: Option<String>,
    /// How often it was played, and why the expectation failed.
    attempts: u32,
    before: Vec<String>,
}

fn main() -> ExitCode {
    if let Err(why) = privilege::acquire() {
        println!("SKIPPED: {why}");
        return ExitCode::SUCCESS;
    }
    if !facts::has_mptcp() {
        println!("SKIPPED: this kernel does not speak Multipath TCP");
        return ExitCode::SUCCESS;
    }
    let mistaken = mistaken();
    mistaken.iter().for_each(|why| println!("{why}"));
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let root = suite::root();
    let mut files = suite::files(&root).expect("the suite can be read");
    files.retain(|file| words.is_empty() || words.iter().any(|word| file.contains(word)));
    let begun = Instant::now();
    let (next, failed, again) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = held(&root, file);
                    if outcome.attempts > 1 {
                        let text = format!("{file}, {} times:\n{}", outcome.attempts, outcome.before.join("\n"));
                        again.lock().expect("nobody panics").push(text);
                    }
                    failed.lock().expect("nobody panics").extend(outcome.wrong);
                }
            });
        }
    });
    let (failed, again) = (failed.into_inner().unwrap_or_default(), again.into_inner().unwrap_or_default());
    let took = begun.elapsed();
    failed.iter().for_each(|why| println!("{why}"));
    again.iter().for_each(|file| println!("played again: {file}"));
    println!(
        "{} scripts against Linux {}, {} failed, {:.1} s",
        files.len(),
        facts::release(),
        failed.len(),
        took.as_secs_f64()
    );
    let late = took > MOST_TIME && words.is_empty();
    if late {
        println!("the suite takes longer than {} s", MOST_TIME.as_secs());
    }
    ExitCode::from(u8::from(late || !failed.is_empty() || !mistaken.is_empty()))
}

/// Defects of the player: a correct script that fails, a wrong one that passes.
fn mistaken() -> Vec<String> {
    let play =
        |text: &str| Script::parse("test.script", text).map_err(|error| error.to_string()).and_then(|s| played(&s));
    let right = (0..ATTEMPTS).map(|_| play(common::RIGHT)).find(Result::is_ok).is_none();
    let right = right.then(|| "a right script fails against the kernel".to_owned());
    let passes = |(line, instead, _): &(&str, &str, &str)| {
        play(&common::with(line, instead))
            .is_ok()
            .then(|| format!("a wrong script passes against the kernel: {instead}"))
    };
    right.into_iter().chain(common::WRONG.iter().filter_map(passes)).collect()
}

/// Plays a script until its expectation for the kernel holds.
fn held(root: &std::path::Path, file: &str) -> Outcome {
    let script = match suite::load(root, file) {
        Ok(script) => script,
        Err(why) => return Outcome { wrong: Some(why), attempts: 1, before: Vec::new() },
    };
    let (mut attempts, mut before) = (0, Vec::new());
    loop {
        attempts += 1;
        let wrong = match (&script.kernel, attempts) {
            (KernelWord::Skipped(_), _) => return Outcome { wrong: None, attempts, before },
            (KernelWord::Passes, _) => played(&script).err(),
            (KernelWord::Differs(why), _) => {
                played(&script).is_ok().then(|| format!("{file}: it passes, but should differ, because {why}"))
            }
        };
        if wrong.is_none() || attempts == ATTEMPTS {
            return Outcome { wrong, attempts, before };
        }
        before.extend(wrong);
    }
}

fn played(script: &Script) -> Result<(), String> {
    let mut host = KernelHost::new(script).map_err(|error| format!("{}: {error}", script.file))?;
    play(script, &mut host).map(drop).map_err(|failure| failure.to_string())
}
