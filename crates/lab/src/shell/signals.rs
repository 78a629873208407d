//! Signals for the programs, blocked in this process.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;

/// Blocks signals on this thread, and on threads that it starts, as long as it lives. Programs started meanwhile
/// receive them.
#[derive(Debug)]
pub(super) struct Signals {
    /// The thread's own mask, to be restored.
    before: SigSet,
    arrived: SignalFd,
}

/// The terminal's keys and its hang-up, and the request to end.
const HELD: [Signal; 4] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP];

impl Signals {
    pub fn hold() -> io::Result<Self> {
        let set: SigSet = HELD.into_iter().collect();
        let arrived = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Self { before, arrived })
    }

    /// The next signal.
    pub fn next(&self) -> Option<Signal> {
        loop {
            match self.arrived.read_signal() {
                Ok(Some(signal)) => return Signal::try_from(signal.ssi_signo as i32).ok(),
                Err(Errno::EINTR) => {}
                _ => return None,
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // A late signal would end this process once it is unblocked.
        while self.next().is_some() {}
        let _ = self.before.thread_set_mask();
    }
}
