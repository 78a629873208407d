//! Signals that are the programs', not ours.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;

/// Holds signals back from this thread, and from those that it starts, as long as it lives. Programs that are started
/// meanwhile get them as ever.
#[derive(Debug)]
pub(super) struct Signals {
    /// The thread's own mask, to be restored.
    before: SigSet,
    arrived: SignalFd,
}

/// A terminal's keys and its hanging up, and what asks a process to end.
const HELD: [Signal; 4] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP];

impl Signals {
    pub fn hold() -> io::Result<Self> {
        let set: SigSet = HELD.into_iter().collect();
        let arrived = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        Ok(Self { before, arrived })
    }

    /// The next one that came.
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
        // One that came late would end this process as soon as it is let through.
        while self.next().is_some() {}
        let _ = self.before.thread_set_mask();
    }
}
