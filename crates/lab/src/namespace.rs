//! Network namespaces without a name.

use crate::{LabError, tool};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::os::fd::AsRawFd;
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
        self.enter(|| tool::run(program, arguments, input))?
    }
}

/// A thread can change its namespace without changing the process's.
fn on_a_thread<R: Send>(work: impl FnOnce() -> std::io::Result<R> + Send) -> std::io::Result<R> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().spawn_scoped(scope, work)?;
        worker.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread of the laboratory panicked")))
    })
}
