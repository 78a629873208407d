//! Sums over the receiver's events.

use crate::{Arrivals, Disorder};
use anabranch_units::{Duration, Instant, PathId, Range};
use std::collections::VecDeque;

/// One connection's receiver.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Bytes delivered in the measured time.
    pub delivered: u64,
    pub duplicate: u64,
    /// The out-of-order queue of each subflow that had one, in bytes.
    queues: Vec<u64>,
    pub arrivals: Arrivals,
    pub outage: Outage,
}

impl Receiver {
    pub fn new(mss: u32, threshold: Option<u64>) -> Self {
        Self {
            delivered: 0,
            duplicate: 0,
            queues: Vec::new(),
            arrivals: Arrivals::new(mss, threshold),
            outage: Outage::default(),
        }
    }

    #[inline(always)]
    pub fn on_arrived(&mut self, data: Range, new: u64, disorder: &mut Disorder) {
        self.duplicate += data.len().saturating_sub(new);
        self.arrivals.arrive(data, disorder);
    }

    /// The out-of-order queue of the subflow on `path` has this many bytes from now on. Returns the sum over all subflows.
    pub fn on_queue(&mut self, path: PathId, bytes: u64) -> u64 {
        if self.queues.len() <= path.index() {
            self.queues.resize(path.index() + 1, 0);
        }
        self.queues[path.index()] = bytes;
        self.queues.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    #[inline(always)]
    pub fn on_delivered(&mut self, now: Instant, data: Range) {
        self.delivered += data.len();
        self.outage.on_delivered(now, data.end);
    }

    pub fn restart(&mut self, now: Instant) {
        self.delivered = 0;
        self.duplicate = 0;
        self.outage.restart(now);
    }
}

/// The longest time without delivery while data waited.
#[derive(Clone, Debug, Default)]
pub(super) struct Outage {
    /// Bytes written up to the last delivery.
    written: u64,
    /// Times and ends of later writes: the sender may be ahead of the receiver.
    later: VecDeque<(Instant, u64)>,
    delivered: u64,
    /// Since when data has waited without any delivery.
    waiting: Option<Instant>,
    /// The last delivery.
    last: Instant,
    longest: Duration,
}

impl Outage {
    /// The sender's application has written up to this offset.
    pub fn on_written(&mut self, now: Instant, end: u64) {
        match self.later.back_mut() {
            Some((at, last)) if *at == now => *last = end,
            _ => self.later.push_back((now, end)),
        }
        if self.waiting.is_none() && end > self.delivered {
            // The delivery may come first where the receiver is ahead.
            self.waiting = Some(now.max(self.last));
        }
    }

    fn on_delivered(&mut self, now: Instant, end: u64) {
        (self.longest, self.last) = (self.longest(now), now);
        self.delivered = self.delivered.max(end);
        while let Some((_, end)) = self.later.pop_front_if(|(at, _)| *at <= now) {
            self.written = end;
        }
        let next = || self.later.front().map(|(at, _)| *at);
        self.waiting = if self.written > self.delivered { Some(now) } else { next() };
    }

    fn restart(&mut self, now: Instant) {
        self.longest = Duration::ZERO;
        self.waiting = self.waiting.map(|_| now);
    }

    pub fn longest(&self, now: Instant) -> Duration {
        self.longest.max(self.waiting.map_or(Duration::ZERO, |since| now.since(since)))
    }
}
