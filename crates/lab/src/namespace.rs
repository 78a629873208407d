//! Network namespaces without a name.

use crate::LabError;
use nix::sched::{CloneFlags, setns, unshare};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::thread;

/// A network namespace. It lives as long as this value, a process, a socket or a device in it: nothing remains after
/// the process ends, however it ends.
#[derive(Debug)]
pub struct Namespace(File);

/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

impl Namespace {
    /// A new namespace, with a loopback device that is down.
    ///
    /// # Errors
    /// The system refuses: CAP_SYS_ADMIN is required.
    pub fn new() -> Result<Self, LabError> {
        let made = on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(std::io::Error::from)?;
            File::open(OWN)
        });
        made.map(Self)
            .map_err(|error| LabError::Privilege { what: format!("no network namespace can be made: {error}") })
    }

    /// A file for `nsenter --net=FILE`, valid as long as this value lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs `work` on a thread inside. Sockets and devices opened there, and processes started there, belong to the
    /// namespace.
    ///
    /// # Errors
    /// The thread cannot enter the namespace.
    pub fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, LabError> {
        let entered = on_a_thread(|| {
            setns(&self.0, CloneFlags::CLONE_NEWNET).map_err(std::io::Error::from)?;
            Ok(work())
        });
        entered.map_err(LabError::system("entering a network namespace"))
    }

    /// Runs `work` on a detached thread inside.
    ///
    /// # Errors
    /// The system has no file or thread left.
    pub fn spawn<R: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<thread::JoinHandle<Result<R, LabError>>, LabError> {
        let file = self.0.try_clone().map_err(LabError::system("keeping a network namespace"))?;
        let inside = move || {
            let entered = setns(&file, CloneFlags::CLONE_NEWNET).map_err(std::io::Error::from);
            entered.map_err(LabError::system("entering a network namespace"))?;
            Ok(work())
        };
        thread::Builder::new().name(name.into()).spawn(inside).map_err(LabError::system("starting a thread"))
    }

    /// Runs a program inside to its end with `input`; returns its output.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub fn command(&self, program: &str, arguments: &[&str], input: &str) -> Result<String, LabError> {
        let line = || format!("{program} {}", arguments.join(" "));
        let run = || {
            let mut child = Command::new(program)
                .env("PATH", search_path())
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(input.as_bytes())?;
            }
            child.wait_with_output()
        };
        let output = self.enter(run)?.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::Tool { program: program.into() },
            _ => LabError::System { what: format!("`{}`", line()), source: error },
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(LabError::Command { command: line(), output: String::from_utf8_lossy(&output.stderr).into_owned() })
    }
}

/// The search path of programs, with the administrators' directories, which are not on every user's PATH.
fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    path.push(":/usr/sbin:/sbin");
    path
}

/// A thread can change its namespace without changing the process's.
fn on_a_thread<R: Send>(work: impl FnOnce() -> std::io::Result<R> + Send) -> std::io::Result<R> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().spawn_scoped(scope, work)?;
        worker.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread of the laboratory panicked")))
    })
}
