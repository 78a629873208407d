//! How far a connection is from its end.

use crate::deadlines::NEVER;
use anabranch_units::{Duration, Instant};

/// How long a connection without any subflow waits for one, as Linux's `net.mptcp.close_timeout`.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

/// How far a connection is from its end.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// It has ended; subflows may be left.
    pub closed: bool,
    /// Without any subflow since.
    pub orphaned: Option<Instant>,
    /// The peer closes subflows because both streams have ended, since.
    pub closing: Option<Instant>,
    /// Subflows that came into use and were lost, and how far the streams had come with the last of them.
    losses: u32,
    streams: u64,
}

impl Ends {
    /// Subflows that came into use and were lost since either stream last moved: both together stand at `streams`.
    pub fn losses(&mut self, streams: u64) -> u32 {
        if streams != self.streams {
            (self.streams, self.losses) = (streams, 0);
        }
        self.losses
    }

    /// Another one was lost, since [`Self::losses`] was asked.
    pub fn add_loss(&mut self) {
        self.losses += 1;
    }

    /// When a connection without subflows is given up.
    pub fn deadline(&self) -> Instant {
        self.orphaned.map_or(NEVER, |since| since + ORPHAN_TIMEOUT)
    }
}
