//! Where a client's connection opens: over one path, or in a race of several (RFC 8305 §5; draft-amend-tcpm-mptcp-robe,
//! RobE_SIM).
//!
//! Each candidate is a subflow of its own in SYN-SENT, which repeats its own SYN. Our key is in no SYN (RFC 8684 §3.1), so that
//! only the peer of the winner learns it.

use super::PathSetup;
use crate::deadlines::NEVER;
use crate::settings::{FirstPath, Settings};
use anabranch_units::{Duration, Instant};
use std::collections::VecDeque;

/// The paths that wait for their SYN, at most as many as the connection has.
#[derive(Debug)]
pub(crate) struct Race {
    /// Several paths were to be tried, and none has been answered.
    open: bool,
    waiting: VecDeque<PathSetup>,
    /// RFC 8305 §5: Connection Attempt Delay.
    delay: Duration,
    /// When the next one's turn is; `MAX` for none.
    next: Instant,
}

impl Default for Race {
    /// No path races.
    fn default() -> Self {
        Self { open: false, waiting: VecDeque::new(), delay: Duration::ZERO, next: NEVER }
    }
}

impl Race {
    /// The race over a connection's paths that `settings` define. A backup comes last: it is used if no other answers.
    pub fn of(settings: &Settings, paths: &[PathSetup]) -> Self {
        let order = match settings.first_path {
            FirstPath::First => paths.iter().take(1).collect(),
            FirstPath::On(id) => paths.iter().find(|path| path.id == id).or(paths.first()).into_iter().collect(),
            FirstPath::Race => {
                let mut order: Vec<_> = paths.iter().collect();
                order.sort_by_key(|path| path.backup);
                order
            }
        };
        let waiting: VecDeque<_> = order.into_iter().cloned().collect();
        let next = if waiting.is_empty() { NEVER } else { Instant::ZERO };
        Self { open: waiting.len() > 1, waiting, delay: settings.race_delay, next }
    }

    /// The path whose turn it is first.
    pub fn favourite(&self) -> Option<&PathSetup> {
        self.waiting.front()
    }

    /// When another path is to be tried.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// The next path, which is tried from `now` on.
    pub fn start(&mut self, now: Instant) -> Option<PathSetup> {
        let path = self.waiting.pop_front()?;
        self.next = if self.waiting.is_empty() { NEVER } else { now + self.delay };
        Some(path)
    }

    /// The race is not decided yet.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// No further path is tried.
    pub fn stop(&mut self) {
        *self = Self::default();
    }
}
