//! Runs that need not be made again: what a driver answered is kept in a file, by scenario, row, seed and program.

use crate::failure::Failure;
use anabranch_run::{Driver, Job, Plan, Refusal, RunError, RunOutcome};
use anabranch_scenario::{PlugIn, Scenario};
use anabranch_trace::Recorder;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_128;

/// A driver that remembers. Each outcome is a line of the file as soon as it is there, so that an interrupted command
/// loses only the runs under way.
pub struct Kept<'a> {
    driver: &'a dyn Driver,
    file: PathBuf,
    known: Mutex<HashMap<String, RunOutcome>>,
    sink: Mutex<Sink>,
}

/// Where lines go until one cannot be written.
struct Sink {
    file: File,
    error: Option<io::Error>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line<K, O> {
    key: K,
    outcome: O,
}

/// A panic elsewhere leaves nothing half done in here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl<'a> Kept<'a> {
    /// Reads what `file` keeps, if it is there. A line that is cut off, or of another form, counts as not there.
    pub fn open(driver: &'a dyn Driver, file: &Path) -> Result<Self, Failure> {
        let unwritable = |error| Failure::unwritable(file, &error);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(unwritable)?;
        }
        let mut known = HashMap::new();
        let mut whole = true;
        if let Ok(there) = File::open(file) {
            let mut reader = BufReader::new(there);
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                whole = line.ends_with('\n');
                if let Ok(Line { key, outcome }) = serde_json::from_str(&line) {
                    known.insert(key, outcome);
                }
                line.clear();
            }
        }
        let mut sink = OpenOptions::new().create(true).append(true).open(file).map_err(unwritable)?;
        if !whole {
            sink.write_all(b"\n").map_err(unwritable)?;
        }
        Ok(Self {
            driver,
            file: file.to_owned(),
            known: Mutex::new(known),
            sink: Mutex::new(Sink { file: sink, error: None }),
        })
    }

    /// Of an outcome that cannot be kept, nothing else is lost.
    fn keep(&self, key: String, outcome: &RunOutcome) {
        let line = serde_json::to_string(&Line { key: &key, outcome }).unwrap_or_default() + "\n";
        locked(&self.known).insert(key, outcome.clone());
        let mut sink = locked(&self.sink);
        if sink.error.is_none() {
            sink.error = sink.file.write_all(line.as_bytes()).err();
        }
    }

    /// Says why not all was kept.
    pub fn failure(&self) -> Option<Failure> {
        locked(&self.sink).error.as_ref().map(|error| Failure::unwritable(&self.file, error))
    }
}

impl Driver for Kept<'_> {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        self.driver.prepare(plan)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let key = key(job);
        if let Some(outcome) = locked(&self.known).get(&key) {
            return Ok(outcome.clone());
        }
        let outcome = self.driver.run(job, listener)?;
        self.keep(key, &outcome);
        Ok(outcome)
    }
}

/// A name for everything that decides a run's outcome: the job, but for the fields of its scenario that do not count, and
/// the program.
fn key(job: &Job) -> String {
    let mut job = job.clone();
    let nothing = || PlugIn { name: String::new(), parameters: Vec::new() };
    let scenario = Scenario {
        name: String::new(),
        seed: 0,
        repeat: 0,
        scheduler: nothing(),
        congestion: nothing(),
        ..(*job.scenario).clone()
    };
    job.scenario = Arc::new(scenario);
    job.cell.clear();
    format!("{:032x}", xxh3_128(format!("{PROGRAM} {job:?}").as_bytes()))
}

/// The program's version and the digest of the sources that decide a run's outcome: papers and reports may change.
const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("ANABRANCH_ENGINE"));

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_run::{Choice, Options, Repeat, Runner, Serial, Variant};
    use anabranch_scenario::Document;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts what it is asked, and fails from a certain run on.
    struct Counting {
        asked: AtomicUsize,
        until: usize,
    }

    impl Counting {
        fn new(until: usize) -> Self {
            Self { asked: AtomicUsize::new(0), until }
        }
        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }
    }

    impl Driver for Counting {
        fn run(&self, job: &Job, _: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
            if self.asked.fetch_add(1, Ordering::Relaxed) >= self.until {
                return Err(RunError::Interrupted);
            }
            let seed = job.seed as f64;
            let value = if matches!(job.choice, Choice::Single(_)) { 1.0 / (seed + 3.0) } else { seed };
            Ok(RunOutcome {
                metrics: [("goodput_bps".to_owned(), value)].into_iter().collect(),
                finished: true,
                ..RunOutcome::default()
            })
        }
    }

    fn plan(repeat: u32, loss: &str) -> Plan {
        let text = format!(
            "repeat = {repeat}\nduration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\nloss = \"{loss}\"\n"
        );
        let scenario = Document::parse("test", &text).expect("it is a scenario").scenario;
        let variant = Variant { cell: Vec::new(), scenario: Arc::new(scenario) };
        Plan::new(&[variant], &Options { repeat: Repeat::AsWritten, ..Options::default() })
    }

    fn run(driver: &dyn Driver, plan: &Plan) -> Option<String> {
        Runner { driver, pool: &Serial, observer: &() }.run(plan).ok().map(|results| results.to_json())
    }

    #[test]
    fn a_second_call_goes_on_where_the_first_was_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kept/runs.jsonl");
        let first = Counting::new(3);
        assert_eq!(run(&Kept::open(&first, &file).unwrap(), &plan(4, "1%")), None);
        // The line that was being written when the power failed.
        OpenOptions::new().append(true).open(&file).unwrap().write_all(b"{\"key\": \"ab").unwrap();
        let second = Counting::new(usize::MAX);
        let results = run(&Kept::open(&second, &file).unwrap(), &plan(4, "1%"));
        assert_eq!((second.asked(), results.is_some()), (8 - 3, true));
        // All is there now, and is what a driver without memory answers.
        let third = Counting::new(0);
        assert_eq!(run(&Kept::open(&third, &file).unwrap(), &plan(4, "1%")), results);
        assert_eq!(run(&Counting::new(usize::MAX), &plan(4, "1%")), results);
    }

    #[test]
    fn a_later_plan_of_the_same_call_makes_no_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let counting = Counting::new(usize::MAX);
        let kept = Kept::open(&counting, &folder.path().join("runs.jsonl")).unwrap();
        let first = run(&kept, &plan(3, "1%"));
        assert_eq!((run(&kept, &plan(3, "1%")), counting.asked()), (first, 6));
    }

    #[test]
    fn more_repetitions_use_the_first_ones_and_another_scenario_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("runs.jsonl");
        run(&Kept::open(&Counting::new(usize::MAX), &file).unwrap(), &plan(2, "1%"));
        let more = Counting::new(usize::MAX);
        run(&Kept::open(&more, &file).unwrap(), &plan(5, "1%"));
        assert_eq!(more.asked(), 6);
        let other = Counting::new(usize::MAX);
        run(&Kept::open(&other, &file).unwrap(), &plan(2, "2%"));
        assert_eq!(other.asked(), 4);
    }
}
