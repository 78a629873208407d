//! The proxy's end of its keeper.

use super::keeper::NAME;
use super::protocol::{InterfaceStates, KeeperConfig, KeeperMessage, NetworkReady};
use anabranch_link::LinkError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A keeper. Dropped, it takes the network back, which is waited for.
#[derive(Debug)]
pub(super) struct KeeperHandle {
    keeper: Child,
    report: ChildStdout,
    /// Output of the keeper that is not read yet, up to a line that is not whole.
    text: Vec<u8>,
}

fn gone() -> LinkError {
    LinkError::Network { what: "the process that keeps the network of --native has ended".to_owned(), help: None }
}

impl KeeperHandle {
    /// A keeper without orders. The thread's namespace is its own.
    pub fn start() -> Result<Self, LinkError> {
        let mut command = Command::new("/proc/self/exe");
        // In a group of its own, which the terminal's keys do not reach.
        command.arg0(NAME).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().map_err(LinkError::system("starting the keeper"))?;
        let report = keeper.stdout.take().ok_or_else(gone)?;
        Ok(Self { keeper, report, text: Vec::new() })
    }

    /// Has it set the network up.
    pub fn set_up(&mut self, config: &KeeperConfig) -> Result<NetworkReady, LinkError> {
        let line = serde_json::to_string(config).unwrap_or_default() + "\n";
        let input = self.keeper.stdin.as_mut().ok_or_else(gone)?;
        input.write_all(line.as_bytes()).map_err(|_| gone())?;
        loop {
            if let Some(line) = self.line() {
                return match line? {
                    KeeperMessage::Ready(ready) => Ok(ready),
                    KeeperMessage::Failed { what, help } => Err(LinkError::Network { what, help }),
                    KeeperMessage::Interfaces(_) => Err(gone()),
                };
            }
            self.read()?;
        }
    }

    /// The interfaces' state, if it has changed.
    ///
    /// # Errors
    /// The keeper has ended: no process follows the interfaces.
    pub fn look(&mut self) -> Result<Option<InterfaceStates>, LinkError> {
        let mut last = None;
        loop {
            while let Some(line) = self.line() {
                match line? {
                    KeeperMessage::Interfaces(states) => last = Some(states),
                    KeeperMessage::Failed { what, help } => return Err(LinkError::Network { what, help }),
                    KeeperMessage::Ready(_) => return Err(gone()),
                }
            }
            let mut polled = [PollFd::new(self.report.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, PollTimeout::ZERO) {
                Ok(1..) => self.read()?,
                // Interrupted, or nothing is there.
                _ => return Ok(last),
            }
        }
    }

    fn read(&mut self) -> Result<(), LinkError> {
        let mut bytes = [0; 4_096];
        match self.report.read(&mut bytes) {
            Ok(0) => Err(gone()),
            Ok(len) => {
                self.text.extend_from_slice(&bytes[..len]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(LinkError::system("reading what the keeper says")(error)),
        }
    }

    fn line(&mut self) -> Option<Result<KeeperMessage, LinkError>> {
        let end = self.text.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.text.drain(..=end).collect();
        Some(serde_json::from_slice(&line).map_err(|_| gone()))
    }
}

impl Drop for KeeperHandle {
    fn drop(&mut self) {
        // The end of its input.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
