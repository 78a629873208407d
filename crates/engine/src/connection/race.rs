//! Where a client's connection opens: over one path, or in a race of several (RFC 8305 §5; draft-amend-tcpm-mptcp-robe,
//! RobE_SIM).
//!
//! Each candidate is a subflow of its own in SYN-SENT, which repeats its own SYN. Our key is in no SYN (RFC 8684 §3.1), so that
//! only the peer of the winner learns it.

use super::{Connection, PathSetup};
use crate::cx::Cx;
use crate::settings::{FirstPath, Settings};
use crate::subflow::Move;
use anabranch_trace::{CloseReason, PathState};
use anabranch_units::{Duration, Instant};
use std::collections::VecDeque;

/// The paths that wait for their SYN, at most as many as the connection has.
#[derive(Debug)]
pub(super) struct Race {
    /// Several paths were to be tried, and none has been answered.
    open: bool,
    waiting: VecDeque<PathSetup>,
    /// RFC 8305 §5: Connection Attempt Delay.
    delay: Duration,
    /// When the next one's turn is; `MAX` for none.
    next: Instant,
}

impl Default for Race {
    /// Nobody races.
    fn default() -> Self {
        Self { open: false, waiting: VecDeque::new(), delay: Duration::ZERO, next: Instant::MAX }
    }
}

impl Race {
    /// What `settings` make of a connection's paths. A backup goes last: it is for when no other answers.
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
        Self { open: waiting.len() > 1, waiting, delay: settings.race_delay, next: Instant::MAX }
    }

    /// The path whose turn it is first.
    pub fn favourite(&self) -> Option<&PathSetup> {
        self.waiting.front()
    }

    /// When another path is to be tried.
    pub fn next(&self) -> Instant {
        self.next
    }

    fn start(&mut self, now: Instant) -> Option<PathSetup> {
        let path = self.waiting.pop_front()?;
        self.next = if self.waiting.is_empty() { Instant::MAX } else { now + self.delay };
        Some(path)
    }

    /// It is not decided yet which path is the first.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// No further path is tried.
    pub fn stop(&mut self) {
        *self = Self::default();
    }
}

impl Connection {
    /// Sends a SYN over each path whose turn has come.
    pub(super) fn run_race(&mut self, cx: &mut Cx<'_>) {
        while self.race.next <= cx.now {
            self.open_next(cx);
        }
    }

    /// Sends a SYN over the next path; false if there is none.
    pub(super) fn open_next(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(path) = self.race.start(cx.now) else { return false };
        self.open_path(cx, path, false);
        true
    }

    /// Subflow `i` was answered first. All others are given up as RFC 9293 §3.10.5 does in SYN-SENT: a SYN/ACK that comes for
    /// one of them finds no connection, and is answered with a reset (§3.10.7.1). So the peer accepts one connection alone.
    /// Returns where the winner stands now.
    pub(super) fn win(&mut self, cx: &mut Cx<'_>, i: usize) -> usize {
        let (id, local) = (self.subflows[i].id, self.subflows[i].tuple.local);
        self.race.stop();
        let due = self.due;
        for i in (0..self.subflows.len()).rev().filter(|n| *n != i) {
            self.subflows[i].go(Move::Abort);
            self.drop_subflow(cx, i, PathState::Closed);
        }
        // None of them could carry anything.
        self.due = due;
        self.paths.decided(id);
        self.addresses.begin_at(local);
        0
    }

    /// A SYN of the connection to be was refused, or never answered. While others may be answered that is no end, and
    /// nothing is gained by waiting for the next one's turn.
    pub(super) fn first_failed(&mut self, cx: &mut Cx<'_>, why: CloseReason) {
        if !self.open_next(cx) && self.subflows.iter().all(|s| s.join) {
            self.end(cx, why);
        }
    }
}
