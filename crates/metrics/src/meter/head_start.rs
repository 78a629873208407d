//! The first path's packets before another path delivers anything.

use anabranch_trace::{Origin, WindowChange};
use anabranch_units::{ConnId, Duration, Instant, PathId, Range};
use std::collections::VecDeque;

/// The delayed start of a connection's second path (Chen and Towsley, section IV): Δ is the time from the first data
/// packet that arrives over the first path to the first that arrives over another.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadStart {
    /// The connection, until everything is known; `None` costs nothing.
    open: Option<ConnId>,
    mss: u64,
    /// Samples of the sender since the receiver's last event: each host's events may be ahead of the other's.
    pending: VecDeque<(Instant, PathId, Duration)>,
    /// The first path, and since when it delivers.
    first: Option<(PathId, Instant)>,
    second: Option<(PathId, Instant)>,
    /// Data packets that arrived over the first path within Δ.
    packets: u64,
    /// RTT samples of the first path within Δ.
    samples: u64,
    sum: Duration,
    /// RTT of the second path's first data packet.
    rtt: Option<Duration>,
}

impl HeadStart {
    /// The head start of `connection`, if there is one; packets are counted as segments of `mss` bytes.
    pub fn new(connection: Option<ConnId>, mss: u32) -> Self {
        Self { open: connection, mss: u64::from(mss.max(1)), ..Self::default() }
    }

    /// The sender's window, with a sample of the RTT perhaps, changed.
    #[inline(always)]
    pub fn on_window(&mut self, now: Instant, origin: Origin, window: &WindowChange) {
        if self.open == Some(origin.connection)
            && let Some(rtt) = window.rtt
        {
            self.note(now, origin.path, rtt);
        }
    }

    /// Data arrived at the receiver.
    #[inline(always)]
    pub fn on_arrived(&mut self, now: Instant, origin: Origin, data: Range) {
        if self.open == Some(origin.connection) && !data.is_empty() {
            // A kernel's packet may be several segments.
            self.on_packets(now, origin.path, data.len().div_ceil(self.mss));
        }
    }

    #[inline(never)]
    fn on_packets(&mut self, now: Instant, path: PathId, packets: u64) {
        self.settle(now);
        if self.second.is_some() {
            return;
        }
        if self.first.get_or_insert((path, now)).0 == path {
            self.packets += packets;
        } else {
            self.second = Some((path, now));
        }
    }

    #[inline(never)]
    fn note(&mut self, now: Instant, path: PathId, rtt: Duration) {
        self.pending.push_back((now, path, rtt));
    }

    /// Counts the samples from before a time up to which all arrivals are known.
    pub fn settle(&mut self, before: Instant) {
        while self.open.is_some()
            && let Some((at, path, rtt)) = self.pending.pop_front_if(|(at, ..)| *at < before)
        {
            self.on_sample(at, path, rtt);
        }
    }

    fn on_sample(&mut self, now: Instant, path: PathId, rtt: Duration) {
        let delivers = |of: Option<(PathId, Instant)>| of.is_some_and(|(of, since)| of == path && now >= since);
        if delivers(self.second) {
            self.rtt = Some(rtt);
            self.open = None;
            self.pending = VecDeque::new();
        } else if delivers(self.first) && self.second.is_none_or(|(_, since)| now < since) {
            self.samples += 1;
            self.sum += rtt;
        }
    }

    /// Packets of the head start; `None` if no other path ever delivered.
    pub fn packets(&self) -> Option<f64> {
        self.second.map(|_| self.packets as f64)
    }

    /// γ: the RTT of the second path's first data packet ÷ mean RTT of the first path within Δ.
    pub fn rtt_ratio(&self) -> Option<f64> {
        let mean = (self.samples > 0).then(|| self.sum.as_secs_f64() / self.samples as f64)?;
        self.rtt.filter(|_| mean > 0.0).map(|rtt| rtt.as_secs_f64() / mean)
    }
}
