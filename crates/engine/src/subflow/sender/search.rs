//! The search for the largest payload that a path carries, by data segments that are larger than the others (RFC 4821 §7, RFC 8899 §5.3).

use anabranch_units::{Duration, Instant, Range};

/// A finished search begins again so long after it began (RFC 8899 §5.1.1, PMTU_RAISE_TIMER; Linux `tcp_probe_interval`).
const AGAIN: Duration = Duration::from_secs(600);

/// The search ends when fewer bytes are in doubt (Linux `tcp_probe_threshold`).
const ENOUGH: u32 = 8;

/// A size whose fate stays unknown so often is taken for too large (RFC 8899 §5.1.2, MAX_PROBES).
const MAX_PROBES: u32 = 3;

/// Bounds of the payload that a path carries, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// The largest payload that arrived, and that of ordinary segments.
    low: u32,
    /// The largest that may be carried, as far as this search knows, and at all.
    high: u32,
    max: u32,
    /// The probe under way, in the subflow's sequence.
    probe: Option<Range>,
    /// Probes of the present size whose fate stayed unknown.
    unclear: u32,
    begun: Instant,
}

impl Search {
    /// A path carries `low` bytes, and `max` at most.
    pub fn begin(now: Instant, low: u32, max: u32) -> Self {
        Self { low, high: max, max: max.max(low), probe: None, unclear: 0, begun: now }
    }

    pub fn low(&self) -> u32 {
        self.low
    }

    pub fn max(&self) -> u32 {
        self.max
    }

    pub fn probe(&self) -> Option<Range> {
        self.probe
    }

    /// Payload of the probe to send now.
    pub fn next(&mut self, now: Instant) -> Option<u32> {
        if self.probe.is_some() {
            return None;
        }
        if now >= self.begun + AGAIN {
            *self = Self::begin(now, self.low, self.max);
        }
        let doubt = self.high.saturating_sub(self.low);
        match doubt {
            0 => None,
            // The timeouts may be of an outage, and no limit: RFC 4821 §7.3 leaves the order open.
            _ if self.high == self.max => Some(self.max),
            1..ENOUGH => None,
            _ => Some(self.low + doubt.div_ceil(2)),
        }
    }

    /// A segment with new data left.
    #[inline(always)]
    pub fn on_sent(&mut self, seq: Range) {
        if seq.len() > self.low.into() {
            self.probe = Some(seq);
        }
    }

    /// The probe arrived: ordinary segments have its payload from now on.
    pub fn on_arrived(&mut self) -> Option<u32> {
        self.low = self.probe.take()?.len() as u32;
        self.unclear = 0;
        Some(self.low)
    }

    /// The probe alone is lost: it was too large.
    pub fn on_lost(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.high = (probe.len() as u32 - 1).max(self.low);
            self.unclear = 0;
        }
    }

    /// The probe may be lost, and the reason may be congestion (RFC 4821 §7.6.3): the size is tried again, not for ever.
    pub fn on_unclear(&mut self) {
        self.unclear += 1;
        if self.unclear >= MAX_PROBES {
            self.on_lost();
        }
        self.probe = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes on a path that carries `carried` bytes of payload, each answered after 50 ms, until none is due; the time then.
    fn find(search: &mut Search, mut now: Instant, carried: u32) -> (Vec<u32>, Instant) {
        let mut sizes = Vec::new();
        while let Some(size) = search.next(now) {
            assert!(sizes.len() < 20, "the search does not end: {sizes:?}");
            sizes.push(size);
            search.on_sent(Range::new(1, 1 + u64::from(size)));
            assert_eq!(search.next(now), None, "one at a time");
            now += Duration::from_millis(50);
            if size <= carried {
                assert_eq!(search.on_arrived(), Some(size));
            } else {
                search.on_lost();
            }
        }
        (sizes, now)
    }

    #[test]
    fn the_doubt_is_halved_until_few_bytes_are_left() {
        for carried in 1024..1400 {
            let mut search = Search::begin(Instant::ZERO, 1024, 1400);
            let (sizes, _) = find(&mut search, Instant::ZERO, carried);
            assert!(search.low() <= carried && search.low() + ENOUGH > carried, "{carried}: {sizes:?}");
            assert!(sizes.len() <= 8, "{sizes:?}");
        }
    }

    #[test]
    fn a_path_that_was_only_interrupted_has_its_size_back_after_one_probe() {
        let mut search = Search::begin(Instant::ZERO, 1024, 1400);
        assert_eq!(find(&mut search, Instant::ZERO, 1400).0, [1400]);
        assert_eq!(search.next(Instant::from_millis(10_000_000)), None, "there is nothing to find");
    }

    #[test]
    fn larger_sizes_are_tried_again_ten_minutes_after_the_last_search_began() {
        let begun = Instant::from_millis(30_000);
        let mut search = Search::begin(begun, 1024, 1400);
        find(&mut search, begun, 1200);
        let found = search.low();
        assert_eq!(search.next(begun + Duration::from_millis(599_999)), None);
        // The path has grown meanwhile.
        assert_eq!(find(&mut search, begun + Duration::from_secs(600), 1400).0, [1400]);
        assert!((1193..=1200).contains(&found) && search.low() == 1400);
    }

    #[test]
    fn a_probe_of_unknown_fate_is_sent_three_times() {
        let mut search = Search::begin(Instant::ZERO, 1024, 1400);
        for _ in 0..3 {
            assert_eq!(search.next(Instant::ZERO), Some(1400));
            search.on_sent(Range::new(1, 1401));
            search.on_unclear();
        }
        assert_eq!(search.next(Instant::ZERO), Some(1024 + 188));
    }
}
