//! Finished runs are kept: what a driver answered is in a journal, by everything that decides it.

use crate::beside::meant;
use crate::failure::{Failure, Salvage};
use crate::folder::Folder;
use crate::input::why;
use crate::journal::{Journal, each_line, line_name, locked};
use anabranch_run::{Driver, Identities, Job, Plan, Refusal, RunError, RunOutcome, reused};
use anabranch_trace::Recorder;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

/// A driver that remembers. Each outcome is in the journal as soon as it is there, so that an interrupted command loses only the runs
/// under way; a power failure, those of the last second.
pub struct Kept<'a> {
    driver: &'a dyn Driver,
    /// Where the journal is.
    folder: Folder,
    name: &'static str,
    journal: Journal,
    /// The runs that this command requested.
    requested: Mutex<HashSet<u128>>,
    identities: Identities,
    /// The runs follow the clock.
    real_time: bool,
    _syncing: Syncing,
}

/// The directory of journals, in that of `--out`.
const FOLDER: &str = "kept";

/// Lines are on the disk, and not only in the system's memory, after this time.
const SYNC: Duration = Duration::from_millis(500);

/// Puts a file's new lines on the disk, until it is dropped.
struct Syncing {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncing {
    fn of(file: File) -> Self {
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            let mut synced = 0;
            let mut is_last = false;
            while !is_last {
                is_last = stopped.recv_timeout(SYNC) != Err(RecvTimeoutError::Timeout);
                let length = file.metadata().map_or(0, |file| file.len());
                if length != synced {
                    // A disk that fails says so to the next who writes.
                    let _ = file.sync_data();
                    synced = length;
                }
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// `driver`, or the journal in front of it.
pub fn through<'d>(journal: Option<&'d Kept<'_>>, driver: &'d dyn Driver) -> &'d dyn Driver {
    journal.map_or(driver, |journal| journal)
}

/// The fate of finished runs, with a journal or without.
pub fn salvage(journal: Option<&Kept<'_>>) -> Salvage {
    if journal.is_some() { Salvage::Kept } else { Salvage::Printed }
}

impl<'a> Kept<'a> {
    /// The file's name for runs in virtual time.
    pub const VIRTUAL: &'static str = "virtual-time.jsonl";

    /// The journal in the directory of `--out`: of runs in virtual time or of those that follow the clock.
    pub fn in_folder(folder: &Path, driver: &'a dyn Driver, real_time: bool) -> Result<Self, Failure> {
        let name = if real_time { "real-time.jsonl" } else { Self::VIRTUAL };
        Ok(Self { real_time, ..Self::open(driver, Folder::make(folder)?.make_inner(FOLDER)?, name)? })
    }

    /// The same where `--out` need not be given.
    pub fn in_out(out: Option<&Path>, driver: &'a dyn Driver, real_time: bool) -> Result<Option<Self>, Failure> {
        out.map(|folder| Self::in_folder(folder, driver, real_time)).transpose()
    }

    /// Ends the journal's use: reports why not all was kept, and removes this command's runs if nothing else went wrong.
    pub fn close(self, wrong: &mut Vec<Failure>) {
        wrong.extend(self.failure());
        if wrong.is_empty() {
            wrong.extend(self.remove().err());
        }
    }

    /// Opens the journal `name`, which no other command is writing.
    pub fn open(driver: &'a dyn Driver, folder: Folder, name: &'static str) -> Result<Self, Failure> {
        let path = folder.path().join(name);
        let journal = Journal::open(&folder, name).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => Failure::unusable(
                "anabranch::cli::in_use",
                format!("another command is writing {}", meant(&path).display()),
                Some("wait for it, or give another --out".into()),
            ),
            _ => Failure::unwritable(&path, &error),
        })?;
        let syncing = Syncing::of(journal.file().map_err(|error| Failure::unwritable(&path, &error))?);
        let (requested, identities) = (Mutex::default(), Identities::default());
        Ok(Self { driver, folder, name, journal, requested, identities, real_time: false, _syncing: syncing })
    }

    /// The name of a run, which another version of the program does not know. Of runs that follow the clock no two are the same.
    fn name(&self, job: &Job) -> u128 {
        match self.real_time {
            true => xxh3_128(format!("{PROGRAM} {job:?}").as_bytes()),
            false => named(self.identities.of(job).with_seed(job.seed).name()),
        }
    }

    /// Says why not all was kept.
    pub fn failure(&self) -> Option<Failure> {
        let path = self.folder.path().join(self.name);
        self.journal.with_error(|error| Failure::unwritable(&path, error))
    }

    /// True if the outcome of `job` is there.
    pub fn has(&self, job: &Job) -> bool {
        self.journal.has(self.name(job))
    }

    /// Adds what the journal in virtual time of another command keeps, whose directory is `folder`.
    pub fn add(&self, folder: &Path) -> Result<(), Failure> {
        let unreadable = |error: io::Error| {
            let path = folder.join(FOLDER).join(Self::VIRTUAL);
            let message = format!("cannot read {}: {}", path.display(), why(&error));
            Failure::unusable("anabranch::cli::unreadable", message, Some("give a directory that --shard wrote".into()))
        };
        let opened = Folder::open(folder).and_then(|folder| folder.inner(FOLDER)?.file(Self::VIRTUAL));
        self.journal.add(opened.map_err(unreadable)?).map_err(unreadable)?;
        self.failure().map_or(Ok(()), Err)
    }

    /// Another command keeps runs in it, too.
    fn is_shared(&self) -> bool {
        self.journal.has_others(&locked(&self.requested))
    }

    /// Puts a file without the runs of this command in the place of this one.
    fn remove_own(&self) -> Result<(), Failure> {
        let is_others = |line: &[u8]| line_name(line).is_some_and(|name| !locked(&self.requested).contains(&name));
        self.folder.write_durably(self.name, |others| {
            each_line(
                self.folder.file(self.name)?,
                |line| if is_others(line) { others.write_all(line) } else { Ok(()) },
            )
        })
    }

    /// Removes the runs of this command, which stand in its results; with the last run the file, and its directory if that is
    /// empty.
    fn remove(self) -> Result<(), Failure> {
        if self.is_shared() {
            return self.remove_own();
        }
        let path = self.folder.path();
        self.folder.remove(self.name).map_err(|error| Failure::unwritable(&path.join(self.name), &error))?;
        // It stays where another journal is in it.
        let _ = std::fs::remove_dir(path);
        Ok(())
    }
}

impl Driver for Kept<'_> {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        self.driver.prepare(plan)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let name = self.name(job);
        locked(&self.requested).insert(name);
        run_once(&self.journal, name, self.driver, job, listener)
    }
}

/// The outcome of `job`, whose name is `name`: that of the journal, or else the driver's, which the journal then keeps.
pub fn run_once(
    journal: &Journal,
    name: u128,
    driver: &dyn Driver,
    job: &Job,
    listener: &mut dyn Recorder,
) -> Result<RunOutcome, RunError> {
    // An outcome has no events: who listens to them needs the run.
    if let Some(outcome) = journal.find(name).filter(|_| !listener.is_listening()) {
        return reused(outcome, job);
    }
    let outcome = driver.run(job, listener)?;
    journal.keep(name, &outcome);
    Ok(outcome)
}

/// The program's version and the digest of the sources that decide a run's outcome: papers and reports may change.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("ANABRANCH_ENGINE"));

/// `identity`, by which another version of the program finds nothing.
pub fn named(identity: u128) -> u128 {
    xxh3_128(format!("{PROGRAM} {identity:032x}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_run::{Choice, Options, Repeat, Runner, Serial, Variant};
    use anabranch_scenario::Document;
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::sync::Arc;
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

    const NAME: &str = "runs.jsonl";

    fn open<'a>(driver: &'a dyn Driver, folder: &Path) -> Kept<'a> {
        Kept::open(driver, Folder::make(folder).unwrap(), NAME).unwrap()
    }

    fn plan(repeat: u32, loss: &str) -> Plan {
        let text = format!(
            "repeat = {repeat}\nduration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\nloss = \"{loss}\"\n"
        );
        let scenario = Document::parse("test", &text).expect("it is a scenario").scenario;
        let variant = Variant { cell: Vec::new(), scenario: Arc::new(scenario) };
        Plan::new(&[variant], &Options { repeat: Repeat::AsWritten, causes: false, ..Options::default() })
    }

    fn run(driver: &dyn Driver, plan: &Plan) -> Option<String> {
        Runner { driver, pool: &Serial, observer: &() }.run(plan).ok().map(|results| results.to_json())
    }

    #[test]
    fn a_second_call_goes_on_where_the_first_was_stopped() {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("kept");
        let file = folder.join(NAME);
        let first = Counting::new(3);
        assert_eq!(run(&open(&first, &folder), &plan(4, "1%")), None);
        // The line that was being written when the power failed.
        OpenOptions::new().append(true).open(&file).unwrap().write_all(b"{\"key\": \"ab").unwrap();
        let second = Counting::new(usize::MAX);
        let results = run(&open(&second, &folder), &plan(4, "1%"));
        assert_eq!((second.asked(), results.is_some()), (8 - 3, true));
        // All is there now, and is what a driver without memory answers.
        let third = Counting::new(0);
        assert_eq!(run(&open(&third, &folder), &plan(4, "1%")), results);
        assert_eq!(run(&Counting::new(usize::MAX), &plan(4, "1%")), results);
    }

    #[test]
    fn a_damaged_line_is_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(NAME);
        let results = run(&open(&Counting::new(usize::MAX), folder.path()), &plan(4, "1%"));
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 8);
        let place = text.find("goodput_bps\":").unwrap() + 13;
        // One digit of the first outcome.
        let other = if text.as_bytes()[place] == b'7' { "8" } else { "7" };
        fs::write(&file, format!("{}{other}{}", &text[..place], &text[place + 1..])).unwrap();
        let again = Counting::new(usize::MAX);
        assert_eq!(run(&open(&again, folder.path()), &plan(4, "1%")), results);
        assert_eq!(again.asked(), 1);
    }

    #[test]
    fn a_later_plan_of_the_same_call_makes_no_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let counting = Counting::new(usize::MAX);
        let kept = open(&counting, folder.path());
        let first = run(&kept, &plan(3, "1%"));
        assert_eq!((run(&kept, &plan(3, "1%")), counting.asked()), (first, 6));
    }

    #[test]
    fn more_repetitions_use_the_first_ones_and_another_scenario_none() {
        let folder = tempfile::tempdir().unwrap();
        run(&open(&Counting::new(usize::MAX), folder.path()), &plan(2, "1%"));
        let more = Counting::new(usize::MAX);
        run(&open(&more, folder.path()), &plan(5, "1%"));
        assert_eq!(more.asked(), 6);
        let other = Counting::new(usize::MAX);
        run(&open(&other, folder.path()), &plan(2, "2%"));
        assert_eq!(other.asked(), 4);
    }
}
