//! How far a connection is from its end.

use crate::deadlines::NEVER;
use anabranch_units::{Duration, Instant};

/// How long a connection without any subflow waits for one, as Linux's `net.mptcp.close_timeout`.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(60);

/// How far a connection is from its end.
#[derive(Debug, Default)]
pub(super) struct Lifetime {
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

impl Lifetime {
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

    /// The state of a connection that has not ended, judged by its streams and subflows at `now`.
    pub fn verdict(&mut self, facts: &Facts, now: Instant) -> Verdict {
        if facts.sent_all && facts.received_all && facts.subflows_over {
            return Verdict::Finished;
        }
        if facts.hears {
            self.orphaned = None;
        } else if facts.multipath {
            // A subflow that still sends is bounded by its own timers.
            if facts.sends || self.orphaned.is_none() {
                self.orphaned = Some(now);
            } else if self.deadline() <= now {
                // RFC 8684 §3.3.3: closed with FINs and without a DATA_FIN, it is over after a timeout.
                return Verdict::TimedOut;
            }
        } else if facts.alone {
            return Verdict::NeverOpened;
        }
        Verdict::GoesOn
    }
}

/// Facts about a connection that may have come to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub multipath: bool,
    /// The peer has acknowledged our stream, its end included; the peer's has come, its end included.
    pub sent_all: bool,
    pub received_all: bool,
    /// No subflow is anything but closed, in TIME-WAIT or about to be reset.
    pub subflows_over: bool,
    /// Some subflow may still bring something of the peer's.
    pub hears: bool,
    /// Some subflow may still carry what is not delivered.
    pub sends: bool,
    /// There is no subflow.
    pub alone: bool,
}

/// The verdict on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    GoesOn,
    Finished,
    TimedOut,
    /// Its first subflows have failed.
    NeverOpened,
}
