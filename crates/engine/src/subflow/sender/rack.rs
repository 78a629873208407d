//! RACK: loss detection by time (RFC 8985 §6).

use super::retransmit::{Mark, RetransmitQueue, Sent};
use anabranch_units::{Duration, Instant};
use std::collections::VecDeque;

/// Recoveries for which a widened reordering window is kept (§6.2 step 4).
const PERSIST: u32 = 16;

/// State of RACK.
#[derive(Debug, Default)]
pub(crate) struct Rack {
    /// When the most recently sent delivered segment was sent, its end, and its RTT.
    newest: Option<(Instant, u64)>,
    rtt: Duration,
    min_rtt: Option<Duration>,
    /// Highest end delivered.
    forward: u64,
    reordering_seen: bool,
    multiplier: u64,
    persist: u32,
    /// A DSACK widens the window at most once per round trip.
    dsack_round: Option<u64>,
    /// Transmissions in order of time: when, which segment, its end, the how-manieth. Outdated ones are skipped.
    order: VecDeque<(Instant, u64, u64, u32)>,
}

impl Rack {
    pub fn new() -> Self {
        Self { multiplier: 1, ..Self::default() }
    }

    /// A segment left, for the `times`th time.
    pub fn on_sent(&mut self, now: Instant, start: u64, end: u64, times: u32) {
        self.order.push_back((now, start, end, times));
    }

    /// A segment was delivered (§6.2 steps 1-3). `echo`: when the segment that the peer echoes was sent.
    pub fn on_delivered(&mut self, now: Instant, sent: &Sent, echo: Option<Instant>) {
        let rtt = now.since(sent.sent_at);
        if sent.transmissions > 1 {
            // Step 2: the acknowledgment may be of an earlier transmission.
            let earlier = echo.is_some_and(|at| at < floor_to_tick(sent.sent_at));
            if earlier || self.min_rtt.is_some_and(|min| rtt < min) {
                return;
            }
        } else {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            // Step 3: an original that comes after a later one
            self.reordering_seen |= sent.seq.end < self.forward;
        }
        self.forward = self.forward.max(sent.seq.end);
        if self.newest.is_none_or(|newest| (sent.sent_at, sent.seq.end) > newest) {
            self.newest = Some((sent.sent_at, sent.seq.end));
            self.rtt = rtt;
        }
    }

    /// A DSACK: the reordering window was too small (§6.2 step 4).
    pub fn on_dsack(&mut self, una: u64, nxt: u64) {
        if self.dsack_round.is_none_or(|round| una >= round) {
            self.dsack_round = Some(nxt);
            self.multiplier += 1;
            self.persist = PERSIST;
        }
    }

    /// A recovery ended.
    pub fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }

    /// §6.2 step 4
    fn window(&self, recovering: bool, sacked: u64, srtt: Duration) -> Duration {
        if !self.reordering_seen && (recovering || sacked >= 3) {
            return Duration::ZERO;
        }
        (self.min_rtt.unwrap_or(Duration::ZERO) / 4 * self.multiplier).min(srtt)
    }

    /// Marks what was sent long enough before the newest delivered segment (§6.2 step 5). Returns how many were marked,
    /// and when to look again.
    pub fn detect(
        &mut self,
        now: Instant,
        queue: &mut RetransmitQueue,
        recovering: bool,
        srtt: Duration,
    ) -> (u32, Option<Instant>) {
        let sacked = queue.sacked().count() as u64 + queue.sacked().bytes() / 1000;
        let window = self.window(recovering, sacked, srtt);
        let mut marked = 0;
        while let Some((at, start, end, times)) = self.order.front().copied() {
            let current = start >= queue.una()
                && queue.find(start).is_some_and(|s| s.mark == Mark::Flying && s.transmissions == times);
            if !current {
                self.order.pop_front();
                continue;
            }
            // Only what was sent before the newest delivered one can be judged.
            if self.newest.is_none_or(|newest| (at, end) >= newest) {
                return (marked, None);
            }
            let due = at + self.rtt + window;
            if due > now {
                return (marked, Some(due));
            }
            self.order.pop_front();
            marked += u32::from(queue.lose(start));
        }
        (marked, None)
    }

    /// On a retransmission timeout: the first segment, and all that were sent long enough ago (§6.3).
    pub fn mark_on_timeout(&mut self, now: Instant, queue: &mut RetransmitQueue, srtt: Duration) -> u32 {
        let window = self.window(true, 0, srtt);
        let first = queue.una();
        let due: Vec<u64> = queue
            .iter()
            .filter(|s| s.mark == Mark::Flying && (s.seq.start <= first || s.sent_at + self.rtt + window <= now))
            .map(|s| s.seq.start)
            .collect();
        due.into_iter().filter(|start| queue.lose(*start)).count() as u32
    }

    /// All loss marks were taken back: the segments are judged again.
    pub fn rebuild(&mut self, queue: &RetransmitQueue) {
        let flying = queue.iter().filter(|s| s.mark == Mark::Flying);
        let mut order: Vec<_> = flying.map(|s| (s.sent_at, s.seq.start, s.seq.end, s.transmissions)).collect();
        order.sort_unstable();
        self.order = order.into();
    }
}

/// Timestamps tick in milliseconds: compare times as they would have been sent.
pub(super) fn floor_to_tick(at: Instant) -> Instant {
    Instant::from_nanos(at.as_nanos() / 1_000_000 * 1_000_000)
}
