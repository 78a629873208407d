//! The near host's sending on one subflow: round trips, silence, what the subflow has delivered.

use super::half::Seen;
use super::quantiles::Quantiles;
use anabranch_units::{Duration, Instant, Range};
use std::collections::VecDeque;

/// Most segments, mappings or outages that are held.
const MOST: usize = 1 << 17;
const MOST_OUTAGES: usize = 1000;
/// Shortest silence that is an outage: the least retransmission timeout of Linux (`TCP_RTO_MIN`).
const LEAST: Duration = Duration::from_millis(200);

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    at: Instant,
    again: bool,
}

/// A time in which a path with data outstanding was silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    /// The last packet from the peer, or the oldest outstanding segment if that is later.
    pub from: Instant,
    /// The next packet from the peer.
    pub until: Option<Instant>,
    /// When its data was first sent on another path.
    pub rescued: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sending {
    sent: VecDeque<Sent>,
    /// Subflow offsets and the data in them, above what is acknowledged.
    mapped: VecDeque<(Range, Range)>,
    pub rtt: Quantiles,
    /// The peer reports a gap: cumulative acknowledgments are late then.
    gap: bool,
    heard: Instant,
    rescued: Option<Instant>,
    pub outages: Vec<Outage>,
    pub most_in_flight: u64,
}

impl Sending {
    /// A segment with payload left.
    pub fn sent(&mut self, now: Instant, seen: Seen) {
        if seen.payload.start < self.sent.back().map_or(0, |last| last.end) {
            let first = self.sent.partition_point(|sent| sent.end <= seen.payload.start);
            for sent in self.sent.range_mut(first..) {
                sent.again = true;
                if sent.end >= seen.payload.end {
                    break;
                }
            }
        }
        if self.sent.back().is_none_or(|last| seen.payload.end > last.end) && self.sent.len() < MOST {
            self.sent.push_back(Sent { end: seen.payload.end, at: now, again: seen.again });
        }
        let first = self.sent.front().map_or(seen.payload.end, |first| first.end);
        self.most_in_flight = self.most_in_flight.max(seen.payload.end.saturating_sub(first) + seen.payload.len());
    }

    /// Bytes of the data sequence left in the subflow's bytes from `seq` on.
    pub fn mapped(&mut self, seq: u64, data: Range) {
        let last = self.mapped.back().map_or(0, |(sub, _)| sub.end);
        if seq >= last && self.mapped.len() < MOST {
            self.mapped.push_back((Range::new(seq, seq + data.len()), data));
        }
    }

    /// A packet came; `acked`: the subflow's offset that it acknowledges. Returns the data that this delivers.
    pub fn heard(&mut self, now: Instant, acked: Option<u64>, sacks: bool) -> impl Iterator<Item = Range> + '_ {
        if let Some(outage) = self.silence(now) {
            self.note(Outage { until: Some(now), ..outage });
        }
        (self.heard, self.rescued) = (now, None);
        let upto = acked.unwrap_or(0);
        self.sample(now, upto);
        self.gap = sacks;
        core::iter::from_fn(move || {
            let (sub, data) = self.mapped.front_mut()?;
            let done = Range::new(sub.start, sub.end.min(upto));
            if done.is_empty() {
                return None;
            }
            let delivered = Range::new(data.start, data.start + done.len());
            (sub.start, data.start) = (done.end, delivered.end);
            if sub.is_empty() {
                self.mapped.pop_front();
            }
            Some(delivered)
        })
    }

    /// The round trip of the newest segment that is acknowledged, unless it or another was sent twice (Karn), or the
    /// acknowledgment waited for a gap.
    fn sample(&mut self, now: Instant, upto: u64) {
        let (mut newest, mut clean) = (None, !self.gap);
        while let Some(sent) = self.sent.front().filter(|sent| sent.end <= upto) {
            clean &= !sent.again;
            newest = Some(sent.at);
            self.sent.pop_front();
        }
        if let Some(at) = newest.filter(|_| clean) {
            self.rtt.add(now.since(at));
        }
    }

    /// Data of this subflow left on another path.
    pub fn rescued(&mut self, now: Instant) {
        if !self.sent.is_empty() {
            self.rescued.get_or_insert(now);
        }
    }

    /// The silence until now, if it is an outage: at least 200 ms and three of the longest round trips.
    fn silence(&self, now: Instant) -> Option<Outage> {
        let from = self.sent.front().filter(|_| self.heard > Instant::ZERO)?.at.max(self.heard);
        let most = self.rtt.max();
        let long = now.since(from) >= LEAST.max(most + most + most);
        long.then_some(Outage { from, until: None, rescued: self.rescued })
    }

    fn note(&mut self, outage: Outage) {
        if self.outages.len() < MOST_OUTAGES {
            self.outages.push(outage);
        }
    }

    /// The connection was seen until `now`.
    pub fn finish(&mut self, now: Instant) {
        if let Some(outage) = self.silence(now) {
            self.note(outage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(start: u64, end: u64, again: bool) -> Seen {
        Seen { payload: Range::new(start, end), again }
    }

    #[test]
    fn silence_with_data_outstanding_is_an_outage() {
        let at = Instant::from_millis;
        let mut s = Sending::default();
        s.sent(at(0), seen(0, 1, false));
        s.finish(at(900));
        assert_eq!(s.outages, [], "the peer was never heard");
        let _ = s.heard(at(901), Some(1), false).count();
        s.sent(at(1000), seen(1, 101, false));
        s.mapped(1, Range::new(500, 600));
        let delivered: Vec<_> = s.heard(at(1050), Some(51), false).collect();
        assert_eq!(delivered, [Range::new(500, 550)]);
        assert_eq!(s.heard(at(1060), Some(101), false).collect::<Vec<_>>(), [Range::new(550, 600)]);
        // Idle: no outage.
        s.sent(at(5000), seen(101, 201, false));
        s.rescued(at(5400));
        assert_eq!(s.heard(at(8000), Some(201), false).count(), 0);
        let outage = Outage { from: at(5000), until: Some(at(8000)), rescued: Some(at(5400)) };
        assert_eq!(s.outages, [outage]);
        s.sent(at(9000), seen(201, 301, false));
        s.finish(at(30_000));
        assert_eq!(s.outages[1], Outage { from: at(9000), until: None, rescued: None });
    }

    #[test]
    fn karn_no_sample_of_what_was_sent_twice() {
        let at = Instant::from_millis;
        let mut s = Sending::default();
        s.sent(at(0), seen(1, 101, false));
        s.sent(at(90), seen(1, 101, true));
        let _ = s.heard(at(100), Some(101), false).count();
        assert!(s.rtt.times().is_none());
        s.sent(at(200), seen(101, 201, false));
        let _ = s.heard(at(230), Some(201), false).count();
        assert_eq!(s.rtt.times().map(|t| t.min_s), Some(0.03));
    }
}
