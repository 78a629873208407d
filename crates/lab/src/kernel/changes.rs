//! Changes of a client that is a kernel, while a run lasts: paths that come and go, and which of them are backups.

use super::host::batch;
use super::{ClientPath, KernelHost};
use crate::{Clock, LabError, tool};
use anabranch_run::Job;
use anabranch_run::layout::Layout;
use anabranch_scenario::Presence;
use anabranch_units::Instant;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

/// A change of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// The path appears, as a backup or not.
    Comes(bool),
    /// The path goes.
    Goes,
    /// The path is a backup from now on, or none.
    Backup(bool),
}

/// Whether a client has the path when it is set up: it is there at the beginning, or the first connection waits for it.
pub fn is_there(job: &Job, plan: &Layout, path: usize) -> bool {
    path == plan.opens_over(job) || job.scenario.paths[path].presence.at(plan.start())
}

/// The changes of a job's paths for a client that is a kernel, in order. Plain TCP uses no other path and withdraws none.
pub fn changes(job: &Job, plan: &Layout) -> Vec<(Instant, usize, PathChange)> {
    let mut changes = Vec::new();
    for path in plan.over.iter().copied().filter(|_| plan.multipath) {
        let Presence { start, stop } = job.scenario.paths[path].presence;
        let there = is_there(job, plan, path);
        let comes = start.filter(|start| !there && *start > plan.start());
        let backup = |at| job.scenario.options_at(path, at).backup;
        changes.extend(comes.map(|at| (at, path, PathChange::Comes(backup(at)))));
        let mut before = job.scenario.paths[path].backup;
        for (at, options) in job.scenario.option_changes(path) {
            let lasts = (there || comes.is_some_and(|comes| comes < at)) && stop.is_none_or(|stop| at < stop);
            if lasts && options.backup != before {
                changes.push((at, path, PathChange::Backup(options.backup)));
            }
            before = options.backup;
        }
        changes.extend(stop.filter(|_| there || comes.is_some()).map(|at| (at, path, PathChange::Goes)));
    }
    // Of one time, what comes is there before something goes.
    changes.sort_by_key(|(at, _, change)| (*at, *change == PathChange::Goes));
    changes
}

/// A thread that makes changes at their times, until this value is dropped.
#[derive(Debug)]
pub struct Changes {
    failed: Receiver<LabError>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), LabError>>>,
}

impl Changes {
    /// Makes `changes`, which are in order, on `host`, whose first path is `first`.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(
        host: &KernelHost,
        first: usize,
        changes: &[(Instant, usize, PathChange)],
        clock: Clock,
    ) -> Result<Self, LabError> {
        let scripts: Vec<(Instant, bool, String)> = changes
            .iter()
            .map(|(at, path, change)| (*at, host.addresses.v6[*path], script(host, *path, first, *change)))
            .collect();
        let (tell, failed) = channel();
        let (stop, stopped) = channel();
        let thread = host.namespace.spawn("paths", move || {
            for (at, v6, script) in scripts {
                let left = std::time::Duration::from_nanos(at.since(clock.now()).as_nanos());
                if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                if let Err(error) = tool::run("ip", &batch(v6), &script) {
                    let _ = tell.send(error);
                    return;
                }
            }
        })?;
        Ok(Self { failed, stop: Some(stop), thread: Some(thread) })
    }

    /// # Errors
    /// A change has failed.
    pub fn check(&self) -> Result<(), LabError> {
        self.failed.try_recv().map_or(Ok(()), Err)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Failures were reported.
            let _ = thread.join();
        }
    }
}

fn script(host: &KernelHost, path: usize, first: usize, change: PathChange) -> String {
    let client = ClientPath::new(&host.addresses, path, first);
    let mut script = String::new();
    match change {
        PathChange::Comes(backup) => client.comes(&host.settings, backup, &mut script),
        PathChange::Goes => client.goes(&host.settings, &mut script),
        PathChange::Backup(backup) => client.set_backup(backup, &mut script),
    }
    script
}
