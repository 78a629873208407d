//! The trace of a path that was recorded: CSV, as `path.trace` reads it.

use crate::idle::IdleRtt;
use crate::record::{MOST, PathRecord, RecordedCapacity, SPACING, STEADY};
use anabranch_units::Duration;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Between challenges that lie further apart the path was not idle, or not looked at.
const PAUSE: Duration = Duration::from_secs(1);
/// Round-trip times that are so near to their median make no trace: a busy host delays packets as much.
const NEAR: Duration = Duration::from_millis(1);

/// Values of a column, each with the time from which it holds, and how long all of them last. Empty where there is no such column.
#[derive(Clone, Debug, Default)]
struct Column<T> {
    values: Vec<(Duration, T)>,
    lasts: Duration,
}

impl<T: Copy> Column<T> {
    /// Values, again and again until `end`.
    fn until(&self, end: Duration) -> impl Iterator<Item = (Duration, T)> + '_ {
        let rounds = self.values.first().map_or(0, |_| end.as_nanos().div_ceil(self.lasts.as_nanos().max(1)));
        let of = |round: u64| Duration::from_nanos(round * self.lasts.as_nanos());
        let all =
            (0..rounds).flat_map(move |round| self.values.iter().map(move |(at, value)| (of(round) + *at, *value)));
        all.filter(move |(at, _)| *at < end)
    }
}

impl PathRecord {
    /// The round trips of the idle path vary by more than a host does: one of ten is 10 % and 1 ms away from the median.
    pub fn delay_varies(&self) -> bool {
        let mut sorted: Vec<Duration> = self.idle.iter().map(|one| one.rtt).collect();
        sorted.sort_unstable();
        let Some(median) = sorted.get(sorted.len() / 2).copied() else { return false };
        let margin = NEAR.as_secs_f64().max(STEADY * median.as_secs_f64());
        let near = sorted.iter().filter(|rtt| (rtt.as_secs_f64() - median.as_secs_f64()).abs() <= margin).count();
        (near as f64) < MOST * sorted.len() as f64
    }

    /// Rate and round trip, as far as they vary, in CSV; `None` if neither does. Both begin at once although they were not seen at once, and
    /// the shorter one is repeated.
    pub fn trace(&self) -> Option<String> {
        let (rates, rtts) = (self.rates(), self.rtts());
        let end = rates.lasts.max(rtts.lasts);
        let mut lines: BTreeMap<Duration, (String, String)> = BTreeMap::new();
        for (at, rate) in rates.until(end) {
            lines.entry(at).or_default().0 = format!("{rate:.0}");
        }
        for (at, rtt) in rtts.until(end) {
            lines.entry(at).or_default().1 = format!("{:.3}", rtt.as_secs_f64() * 1e3);
        }
        let has = [("rate_bps_down", !rates.values.is_empty()), ("rtt_ms", !rtts.values.is_empty())];
        let mut text = "time_s".to_owned();
        has.iter().filter(|(_, has)| *has).for_each(|(name, _)| text = format!("{text},{name}"));
        for (at, (rate, rtt)) in &lines {
            let _ = write!(text, "\n{:.6}", at.as_secs_f64());
            for (value, _) in [rate, rtt].into_iter().zip(has).filter(|(_, (_, has))| *has) {
                let _ = write!(text, ",{value}");
            }
        }
        (!lines.is_empty()).then(|| text + "\n")
    }

    /// Steps of a capacity that varies.
    fn rates(&self) -> Column<f64> {
        let RecordedCapacity::Varying { step, rates, .. } = &self.capacity else { return Column::default() };
        let at = |n: usize| Duration::from_nanos(n as u64 * step.as_nanos());
        // Without a packet in all there is nothing to play.
        let is_any = rates.iter().any(|rate| *rate >= 1.0);
        let values = rates.iter().enumerate().filter(|_| is_any).map(|(n, rate)| (at(n), *rate)).collect();
        Column { values, lasts: at(rates.len()) }
    }

    /// Round trips that vary, one after another: pauses between series of challenges are left out.
    fn rtts(&self) -> Column<Duration> {
        let mut column = Column::default();
        if !self.delay_varies() {
            return column;
        }
        let mut before: Option<&IdleRtt> = None;
        for one in &self.idle {
            let gap = before.map_or(Duration::ZERO, |before| one.at.since(before.at));
            column.lasts += if gap > PAUSE { SPACING } else { gap };
            column.values.push((column.lasts, one.rtt));
            before = Some(one);
        }
        column.lasts += SPACING;
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_network::Recording;
    use anabranch_units::{Direction, Instant};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Challenges of these milliseconds after the beginning, with their round-trip times.
    fn record(capacity: RecordedCapacity, idle: &[(u64, u64)]) -> PathRecord {
        let idle =
            idle.iter().map(|(at, rtt)| IdleRtt { at: Instant::from_millis(1_000 + at), rtt: ms(*rtt) }).collect();
        let (seen, queue, largest_packet) = (ms(1_000), 90_000, 1_440);
        PathRecord { capacity, seen, queue, is_full: true, light: 1_000, lost: 0, idle, largest_packet }
    }

    fn varying() -> RecordedCapacity {
        RecordedCapacity::Varying { step: ms(100), rates: vec![2e7, 0.0, 5e6], left_out: 0 }
    }

    #[test]
    fn what_is_steady_has_no_trace() {
        let steady = record(RecordedCapacity::Constant(1e7), &[(0, 20), (30, 21), (60, 20), (90, 21)]);
        assert!(!steady.delay_varies() && steady.trace().is_none());
        assert_eq!(record(RecordedCapacity::Constant(1e7), &[]).trace(), None);
        let silent = RecordedCapacity::Varying { step: ms(100), rates: vec![0.0, 0.2], left_out: 0 };
        assert_eq!(record(silent, &[]).trace(), None);
    }

    #[test]
    fn rate_and_round_trip_share_a_time_and_the_shorter_is_repeated() {
        // Ten seconds pass between two series of challenges.
        let both = record(varying(), &[(0, 20), (50, 80), (10_050, 30)]);
        let text = both.trace().unwrap();
        assert_eq!(
            text,
            "time_s,rate_bps_down,rtt_ms\n0.000000,20000000,20.000\n0.050000,,80.000\n0.060000,,30.000\n\
             0.070000,,20.000\n0.100000,0,\n0.120000,,80.000\n0.130000,,30.000\n0.140000,,20.000\n\
             0.190000,,80.000\n0.200000,5000000,30.000\n0.210000,,20.000\n0.260000,,80.000\n0.270000,,30.000\n\
             0.280000,,20.000\n"
        );
        let trace = Recording::parse(&text).unwrap();
        assert!(trace.of(Direction::Down).rate.is_some() && trace.of(Direction::Up).rate.is_none());
        assert!(trace.of(Direction::Down).delay.is_some() && trace.of(Direction::Up).delay.is_some());
        assert!((text.len() as f64) < 3.0 * crate::record::bytes_per_step(ms(100)));
    }

    #[test]
    fn one_of_both_is_a_trace_of_its_own() {
        let rate = record(varying(), &[(0, 20)]).trace().unwrap();
        assert_eq!(rate, "time_s,rate_bps_down\n0.000000,20000000\n0.100000,0\n0.200000,5000000\n");
        let rtt = record(RecordedCapacity::AtLeast(1e6), &[(0, 20), (30, 40)]).trace().unwrap();
        assert_eq!(rtt, "time_s,rtt_ms\n0.000000,20.000\n0.030000,40.000\n");
        assert!(Recording::parse(&rate).is_ok() && Recording::parse(&rtt).is_ok());
    }
}
