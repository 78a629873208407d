//! A program in a namespace, with its keeper.

use super::keeper::{self, Orders};
use crate::{LabError, Namespace};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp};
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A started program. It and its descendants are ended when this value is dropped.
#[derive(Debug)]
pub(super) struct Program {
    /// Reaped at the very end, so that no signal can hit a reused process id.
    keeper: Child,
    report: PipeReader,
    /// The keeper's report so far.
    told: String,
    /// The report has ended.
    silent: bool,
    code: Option<u8>,
}

/// The way in which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A program with the terminal, in this process's group.
    Foreground,
    /// Without input, as the leader of a group that the terminal's keys do not reach; its output goes to standard
    /// error.
    Background,
}

/// Milliseconds to wait for the keeper's first line between checks that it still runs.
const LOOK: u8 = 10;
/// The exit code of a killed program, in the form of a shell.
const KILLED: u8 = 128 + Signal::SIGKILL as u8;

impl Program {
    /// Starts the program `line[0]`, called `name`, with the rest as its arguments.
    ///
    /// To be called by a thread that lives as long as the program.
    pub fn start(
        namespace: &Namespace,
        place: Place,
        line: &[OsString],
        environment: Vec<(String, String)>,
        name: &str,
    ) -> Result<Self, LabError> {
        let refused = |source| LabError::Program { command: name.into(), source };
        let (report, writer) = io::pipe().map_err(refused)?;
        // `None` where the group's leader is out of sight, in a container.
        let group = Some(getpgrp().as_raw()).filter(|group| *group > 0);
        let own = std::process::id();
        let orders = Orders {
            namespace: namespace.path().into(),
            report: format!("/proc/{own}/fd/{}", writer.as_raw_fd()).into(),
            shell: own as i32,
            group: if place == Place::Background { Some(0) } else { group },
        };
        let mut command = Command::new("/proc/self/exe");
        command.arg0(keeper::NAME).args(orders.arguments()).args(line).envs(environment);
        if orders.group.is_some() {
            command.process_group(0);
        }
        if place == Place::Background {
            command.stdin(Stdio::null()).stdout(io::stderr());
        }
        let keeper = command.spawn().map_err(refused)?;
        let mut program = Self { keeper, report, told: String::new(), silent: false, code: None };
        let told = program.wait_for_a_word().map_err(refused)?;
        drop(writer);
        match told.strip_prefix("failed ").map(str::parse) {
            None => Ok(program),
            Some(error) => Err(refused(error.map_or(io::ErrorKind::NotFound.into(), io::Error::from_raw_os_error))),
        }
    }

    fn signal_keeper(&self, signal: Signal) {
        // A signal to an ended process has no effect.
        let _ = kill(Pid::from_raw(self.keeper.id() as i32), signal);
    }

    /// The keeper's first line. This process still holds the pipe's other end, so only the keeper's exit shows that
    /// there will be none.
    fn wait_for_a_word(&mut self) -> io::Result<String> {
        loop {
            let ended = self.keeper.try_wait()?.is_some();
            if let Some(word) = self.next_word(LOOK)? {
                return Ok(word);
            }
            if ended {
                return Err(io::Error::other("its keeper ended before it began"));
            }
        }
    }

    /// The next line of the report, if it comes within `patience` milliseconds.
    fn next_word(&mut self, patience: u8) -> io::Result<Option<String>> {
        loop {
            if let Some((word, rest)) = self.told.split_once('\n') {
                let (word, rest) = (word.to_owned(), rest.to_owned());
                self.told = rest;
                return Ok(Some(word));
            }
            if self.silent || !self.is_readable(patience)? {
                return Ok(None);
            }
            let mut bytes = [0; 64];
            match self.report.read(&mut bytes) {
                Ok(0) => self.silent = true,
                Ok(len) => self.told += &String::from_utf8_lossy(&bytes[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn is_readable(&self, milliseconds: u8) -> io::Result<bool> {
        let mut polled = [PollFd::new(self.report.as_fd(), PollFlags::POLLIN)];
        match poll(&mut polled, PollTimeout::from(milliseconds)) {
            Ok(count) => Ok(count > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The exit code of a program that has ended, in the form of a shell: 128 and the signal's number if a signal ended it. Its
    /// descendants may still run.
    pub fn exited(&mut self) -> Result<Option<u8>, LabError> {
        if self.code.is_none() {
            let word = self.next_word(0).map_err(LabError::system("waiting for a program"))?;
            self.code = match word {
                Some(word) => Some(word.strip_prefix("ended ").and_then(|code| code.parse().ok()).unwrap_or(KILLED)),
                // The keeper was killed.
                None if self.silent => Some(KILLED),
                None => None,
            };
        }
        Ok(self.code)
    }

    /// Passes a signal on to it.
    pub fn signal(&self, signal: Signal) {
        self.signal_keeper(signal);
    }

    /// Requests the end of everything that it left behind.
    pub fn end(&self) {
        self.signal_keeper(keeper::END);
    }

    /// Nothing of it is left.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.keeper.try_wait(), Ok(None))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !self.is_gone() {
            self.end();
        }
        let _ = self.keeper.wait();
    }
}
