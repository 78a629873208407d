//! The keeper: a process of this program between the shell and a program that it runs. It ends every process that the
//! program starts, and it ends when the shell does, however that ends.
//!
//! A program may start others in new sessions whose parents end at once: they become the keeper's children
//! (`PR_SET_CHILD_SUBREAPER`). A shell that is killed cannot clean up, but the kernel signals the keeper
//! (`PR_SET_PDEATHSIG`). So no process remains in the namespaces, and the namespaces vanish with the last one.

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, getppid};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The program name that makes this process a keeper.
pub(super) const NAME: &str = "anabranch-keeper";
/// Requests the end of all remaining processes.
pub(super) const END: Signal = Signal::SIGUSR2;
/// The shell is gone.
const ORPHANED: Signal = Signal::SIGUSR1;

/// The time that programs have to end after the request.
const GRACE: Duration = Duration::from_secs(2);
/// The time that the kernel has to end killed processes.
const DYING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);

/// A keeper's command line, in this order; then the program and its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Orders {
    /// The file of the network namespace.
    pub namespace: OsString,
    /// The file that it reports to.
    pub report: OsString,
    /// Process id of the shell.
    pub shell: i32,
    /// The process group of the program: 0 for a new one, `None` for the keeper's.
    pub group: Option<i32>,
}

impl Orders {
    pub fn arguments(&self) -> Vec<OsString> {
        let group = self.group.map_or("same".into(), |group| group.to_string());
        vec![self.namespace.clone(), self.report.clone(), self.shell.to_string().into(), group.into()]
    }

    fn read(arguments: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let (namespace, report) = (arguments.next()?, arguments.next()?);
        let mut number = || arguments.next().and_then(|text| text.to_str()?.parse().ok());
        Some(Self { namespace, report, shell: number()?, group: number() })
    }
}

/// Runs as a keeper if this process was started as one; returns its exit code. To be called first of all.
pub fn keep(mut arguments: impl Iterator<Item = OsString>) -> Option<u8> {
    if arguments.next().as_deref() != Some(OsStr::new(NAME)) {
        return None;
    }
    let done = Orders::read(&mut arguments).ok_or(Errno::EINVAL.into()).and_then(|orders| {
        let report = OpenOptions::new().write(true).open(&orders.report)?;
        run(&orders, report, arguments)
    });
    Some(u8::from(done.is_err()))
}

fn run(orders: &Orders, mut report: File, mut line: impl Iterator<Item = OsString>) -> io::Result<()> {
    // Under another name than the shell's, so that `killall` of the shell does not end the keeper.
    let _ = prctl::set_name(c"keeper");
    prctl::set_child_subreaper(true)?;
    // The terminal's signals are for the program; the keeper reads its own below.
    let signals = SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_CLOEXEC)?;
    SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    prctl::set_pdeathsig(ORPHANED)?;
    if getppid().as_raw() != orders.shell {
        // The shell was gone before.
        return Ok(());
    }
    setns(File::open(&orders.namespace)?, CloneFlags::CLONE_NEWNET)?;
    let mut command = Command::new(line.next().unwrap_or_default());
    command.args(line);
    if let Some(group) = orders.group {
        command.process_group(group);
    }
    let mut program = match command.spawn() {
        Ok(child) => {
            tell(&mut report, "started");
            Some(Pid::from_raw(child.id() as i32))
        }
        Err(error) => {
            tell(&mut report, &format!("failed {}", error.raw_os_error().unwrap_or(Errno::ENOENT as i32)));
            return Ok(());
        }
    };
    loop {
        let Ok(Some(signal)) = signals.read_signal() else { continue };
        match Signal::try_from(signal.ssi_signo as i32) {
            Ok(Signal::SIGCHLD) => {
                if let Some(code) = reap(program) {
                    program = None;
                    tell(&mut report, &format!("ended {code}"));
                }
            }
            Ok(ORPHANED) => return end(Duration::ZERO),
            Ok(END) => return end(GRACE),
            Ok(asked @ (Signal::SIGTERM | Signal::SIGHUP)) => {
                if let Some(program) = program {
                    let leads = orders.group == Some(0);
                    let _ = if leads { killpg(program, asked) } else { kill(program, asked) };
                }
            }
            _ => {}
        }
    }
}

/// Writes a line to the shell, in one piece. The shell may be gone, which a signal reports.
fn tell(report: &mut File, line: &str) {
    let _ = report.write_all(format!("{line}\n").as_bytes());
}

/// Reaps ended children; returns the exit code of `program` if it is among them, in the form of a shell.
fn reap(program: Option<Pid>) -> Option<u8> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, exit)) if Some(pid) == program => code = Some(exit as u8),
            Ok(WaitStatus::Signaled(pid, signal, _)) if Some(pid) == program => code = Some(128 + signal as i32 as u8),
            Ok(WaitStatus::StillAlive) | Err(_) => return code,
            Ok(_) => {}
        }
    }
}

/// Ends every remaining process: requests it, and kills after `grace`.
fn end(grace: Duration) -> io::Result<()> {
    let begun = Instant::now();
    if !grace.is_zero() {
        signal_all(Signal::SIGTERM);
    }
    while has_children() && begun.elapsed() < grace {
        std::thread::sleep(LOOK);
    }
    let begun = Instant::now();
    // Processes may start others meanwhile.
    while has_children() && begun.elapsed() < DYING {
        signal_all(Signal::SIGKILL);
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Children are left. Without any there are no descendants either, because orphans become children of the keeper.
fn has_children() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return true,
            Err(Errno::ECHILD) => return false,
            _ => {}
        }
    }
}

fn signal_all(signal: Signal) {
    for pid in descendants(getpid()) {
        // A signal to an ended process has no effect. Its id cannot be reused, because its parent has not yet reaped
        // it, or is this process.
        let _ = kill(pid, signal);
    }
}

/// All descendants of `of`.
fn descendants(of: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, parent) in fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| parent(&entry.path()))
    {
        children.entry(parent).or_default().push(pid);
    }
    let (mut found, mut next) = (Vec::new(), vec![of.as_raw()]);
    while let Some(pid) = next.pop() {
        let own = children.remove(&pid).unwrap_or_default();
        found.extend(own.iter().copied().map(Pid::from_raw));
        next.extend(own);
    }
    found
}

/// A process's id and its parent's. proc_pid_stat(5): pid, name in brackets, state, parent.
fn parent(process: &Path) -> Option<(i32, i32)> {
    let pid = process.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_given() {
        for group in [None, Some(0), Some(77)] {
            let orders = Orders { namespace: "/proc/1/fd/3".into(), report: "/proc/1/fd/4".into(), shell: 1, group };
            let mut line = orders.arguments().into_iter().chain([OsString::from("sh"), "-c".into()]);
            assert_eq!(Orders::read(&mut line), Some(orders));
            assert_eq!(line.collect::<Vec<_>>(), ["sh", "-c"]);
        }
        assert_eq!(keep(["anabranch", "shell"].map(OsString::from).into_iter()), None);
        // Not the shell's command line.
        assert_eq!(keep([OsString::from(NAME)].into_iter()), Some(1));
    }

    #[test]
    fn descendants_are_found_through_those_between() {
        let script = "sh -c 'sleep 100; true' & echo; wait";
        let mut child = Command::new("sh").args(["-c", script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        let pid = Pid::from_raw(child.id() as i32);
        // The inner shell and its program.
        while descendants(pid).len() < 2 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(LOOK);
        }
        let all = descendants(getpid());
        let inner = descendants(pid);
        assert!(inner.len() == 2 && all.contains(&pid) && inner.iter().all(|pid| all.contains(pid)));
        inner.into_iter().for_each(|pid| kill(pid, Signal::SIGKILL).unwrap());
        child.wait().unwrap();
    }
}
