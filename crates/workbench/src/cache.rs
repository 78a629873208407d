//! Runs of single paths, which no scheduler changes: each is made once, by this command or an earlier one.

use crate::folder::Folder;
use crate::input::Limit;
use crate::journal::{Journal, locked};
use crate::kept::named;
use anabranch_run::{Choice, Driver, Identities, Job, Plan, Refusal, RunError, RunOutcome, reused};
use anabranch_trace::Recorder;
use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The variable that, set and not empty, means `--no-cache` for every command.
const WITHOUT: &str = "ANABRANCH_NO_CACHE";
/// The directories of the cache: one in that of the user's caches, and one in it.
const FOLDERS: [&str; 2] = ["anabranch", "baselines"];
/// The ending of its files. Each has the runs of one scenario over one path with one congestion control.
const ENDING: &str = ".jsonl";
/// The size of all files together, and so of each: the oldest go.
const LIMIT: Limit = Limit::of("the cache", 256);
/// Journals that are open at a time.
const ROWS: usize = 16;

/// The directory of the user's caches (XDG Base Directory Specification); `None` if there is none, or the environment wants none.
pub fn cache_folder() -> Option<PathBuf> {
    let of = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if of(WITHOUT).is_some() {
        return None;
    }
    let home = || Some(of("HOME").filter(|home| home.is_dir())?.join(".cache"));
    // One that is relative counts as not set.
    of("XDG_CACHE_HOME").filter(|folder| folder.is_absolute()).or_else(home)
}

/// A driver that makes no run of a single path twice.
pub struct Cached<'a> {
    driver: &'a dyn Driver,
    /// The directory of the user's caches, where another command finds what this one made.
    path: Option<&'a Path>,
    /// The directory of baselines in it, opened.
    folder: OnceLock<Option<Folder>>,
    /// Journal of this command, where files of that directory cannot be opened.
    own: OnceLock<Option<Arc<Journal>>>,
    /// The journals that were used last, by [`Identity::row`](anabranch_run::Identity::row).
    journals: Mutex<VecDeque<(u128, Option<Arc<Journal>>)>>,
    /// Runs that are being made: a second thread that needs one waits for it.
    making: Mutex<BTreeMap<u128, Arc<Mutex<()>>>>,
    /// Bytes that were written since the directory was trimmed.
    written: AtomicU64,
    identities: Identities,
}

impl<'a> Cached<'a> {
    /// `driver`, and what it made for other commands with the same directory of caches.
    pub fn new(driver: &'a dyn Driver, path: Option<&'a Path>) -> Self {
        let (folder, own, journals, making) = (OnceLock::new(), OnceLock::new(), Mutex::default(), Mutex::default());
        let (written, identities) = (AtomicU64::new(0), Identities::default());
        Self { driver, path, folder, own, journals, making, written, identities }
    }

    /// The directory, if it can be had: nothing is lost without it.
    fn folder(&self) -> Option<&Folder> {
        let open =
            || FOLDERS.iter().try_fold(Folder::make(self.path?).ok()?, |around, name| around.make_own(name).ok());
        self.folder.get_or_init(open).as_ref()
    }

    /// The journal of a row: in the directory, unless another command is writing that file. `None` if nothing can be written anywhere.
    fn journal(&self, row: u128) -> Option<Arc<Journal>> {
        let mut journals = locked(&self.journals);
        let known = journals.iter().position(|(known, _)| *known == row).and_then(|at| journals.remove(at));
        let (_, journal) = known.unwrap_or_else(|| (row, self.open(row)));
        journals.push_back((row, journal.clone()));
        if journals.len() > ROWS {
            journals.pop_front();
        }
        journal
    }

    fn open(&self, row: u128) -> Option<Arc<Journal>> {
        let name = format!("{:032x}{ENDING}", named(row));
        let is_read = |folder: &&Folder| folder.content(&name).is_none_or(|(bytes, _)| bytes <= LIMIT.bytes());
        let common = self.folder().filter(is_read).and_then(|folder| Journal::open(folder, &name).ok());
        let own = || self.own.get_or_init(|| Journal::temporary().ok().map(Arc::new)).clone();
        common.map(Arc::new).or_else(own)
    }

    /// Writes an outcome into the journal, and removes old files for it.
    fn keep(&self, journal: &Journal, name: u128, outcome: &RunOutcome) {
        let before = journal.length();
        // An outcome without `measured` cannot serve another job.
        if outcome.measured.is_none() || before >= LIMIT.bytes() || journal.has(name) {
            return;
        }
        journal.keep(name, outcome);
        let bytes = journal.length().saturating_sub(before);
        if self.written.fetch_add(bytes, Ordering::Relaxed) + bytes > LIMIT.bytes() / 4 {
            self.trim();
        }
    }

    /// The outcome of the run `name`, made only if no journal of its row has it.
    fn run_once(
        &self,
        job: &Job,
        listener: &mut dyn Recorder,
        (row, name): (u128, u128),
    ) -> Result<RunOutcome, RunError> {
        let journal = self.journal(row);
        // An outcome has no events: who listens to them needs the run.
        let known = journal.as_ref().filter(|_| !listener.is_listening()).and_then(|journal| journal.find(name));
        if let Some(known) = known {
            return reused(known, job);
        }
        let outcome = self.driver.run(job, listener)?;
        journal.iter().for_each(|journal| self.keep(journal, name, &outcome));
        Ok(outcome)
    }

    fn trim(&self) {
        self.written.store(0, Ordering::Relaxed);
        if let Some(folder) = self.folder.get().and_then(Option::as_ref) {
            trim(folder, LIMIT.bytes());
        }
    }
}

impl Driver for Cached<'_> {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        self.driver.prepare(plan)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        if !matches!(job.choice, Choice::Single(_)) {
            return self.driver.run(job, listener);
        }
        let identity = self.identities.of(job);
        let name = named(identity.name());
        let turn = locked(&self.making).entry(name).or_default().clone();
        let turn = locked(&turn);
        let outcome = self.run_once(job, listener, (identity.row, name));
        drop(turn);
        locked(&self.making).remove(&name);
        outcome
    }
}

impl Drop for Cached<'_> {
    fn drop(&mut self) {
        self.trim();
    }
}

/// Removes the files that were written first, until those that are left have at most so many bytes. Files of other names stay.
fn trim(folder: &Folder, most: u64) {
    let is_own = |name: &PathBuf| {
        let name = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        name.is_some_and(|name| name.len() == 32 && u128::from_str_radix(name, 16).is_ok())
    };
    let names = folder.names().unwrap_or_default().into_iter().filter(is_own);
    let mut files: Vec<_> = names.filter_map(|name| Some((folder.content(&name)?, name))).collect();
    files.sort_by_key(|((_, written), _)| *written);
    let mut bytes: u64 = files.iter().map(|((bytes, _), _)| bytes).sum();
    for ((length, _), name) in files {
        if bytes <= most {
            break;
        }
        // It may be gone, or stay: the next command tries again.
        let _ = folder.remove(name);
        bytes -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_oldest_files_go_and_those_of_other_names_stay() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(path.path()).unwrap();
        let own = |n: u64| format!("{n:032x}{ENDING}");
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for n in 0..5 {
            fs::write(path.path().join(own(n)), [b'x'; 100]).unwrap();
            let file = File::options().write(true).open(path.path().join(own(n))).unwrap();
            // The third is the oldest.
            file.set_modified(old + Duration::from_secs((n + 2) % 5)).unwrap();
        }
        for other in ["mine.jsonl", "notes"] {
            fs::write(path.path().join(other), [b'x'; 1000]).unwrap();
        }
        trim(&folder, 500);
        assert_eq!(folder.names().unwrap().len(), 7);
        trim(&folder, 299);
        let left: Vec<_> = folder.names().unwrap();
        assert_eq!(left, [own(1), own(2), "mine.jsonl".into(), "notes".into()].map(PathBuf::from));
    }
}
