//! A program in a namespace.

use crate::{LabError, Namespace};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A program that we started. It is ended when this value is dropped. Its number is ours until then, for it is not
/// reaped before: no signal can meet a stranger.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    /// It leads a process group of its own, all of which ends with it.
    group: bool,
}

/// How long a program may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

impl Program {
    /// Starts `command`, called `name`, in our own process group.
    pub fn start(namespace: &Namespace, command: &mut Command, name: &str) -> Result<Self, LabError> {
        Ok(Self { child: spawn(namespace, command, name)?, group: false })
    }

    /// Starts it as the leader of a group, which the terminal's keys do not reach.
    pub fn start_group(namespace: &Namespace, command: &mut Command, name: &str) -> Result<Self, LabError> {
        Ok(Self { child: spawn(namespace, command.process_group(0), name)?, group: true })
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Its exit code once it has ended: that of a shell, 128 and the signal's number if one ended it.
    pub fn exited(&self) -> Result<Option<u8>, LabError> {
        let how = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        loop {
            return match waitid(Id::Pid(self.pid()), how) {
                Ok(WaitStatus::Exited(_, code)) => Ok(Some(code as u8)),
                Ok(WaitStatus::Signaled(_, signal, _)) => Ok(Some(128 + signal as i32 as u8)),
                Ok(_) => Ok(None),
                Err(Errno::EINTR) => continue,
                Err(error) => Err(LabError::System { what: "waiting for a program".into(), source: error.into() }),
            };
        }
    }

    /// One that has ended does not mind.
    pub fn signal(&self, signal: Signal) {
        let _ = if self.group { killpg(self.pid(), signal) } else { kill(self.pid(), signal) };
    }

    /// Something of it still runs.
    fn runs(&self) -> bool {
        matches!(self.exited(), Ok(None)) || self.group && has_members(self.pid())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let begun = Instant::now();
        if self.runs() {
            self.signal(Signal::SIGTERM);
            while self.runs() && begun.elapsed() < GRACE {
                std::thread::sleep(LOOK);
            }
        }
        if self.runs() {
            self.signal(Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}

fn spawn(namespace: &Namespace, command: &mut Command, name: &str) -> Result<Child, LabError> {
    let child = namespace.enter(|| command.spawn())?;
    child.map_err(|source| LabError::Program { command: name.into(), source })
}

/// A process group has members that are not zombies.
fn has_members(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let stats = processes.flatten().filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    // proc_pid_stat(5): pid, name in brackets, state, parent, group.
    let mut members = stats.filter_map(|stat| {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        Some((fields.next()?.to_owned(), fields.nth(1)?.parse::<i32>().ok()?))
    });
    members.any(|(state, of)| of == group.as_raw() && state != "Z")
}
