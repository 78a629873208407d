//! Recorded capacity in mahimahi's format.

use crate::CapacityTrace;
use anabranch_units::{Instant, Rate};
use core::fmt;

/// Why a text is not a capacity trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Line, from 1.
    pub line: usize,
    /// The fault.
    pub what: TraceFault,
}

/// A fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFault {
    /// Not a whole number of milliseconds.
    NotANumber,
    /// Earlier than the line before it.
    Descending,
    /// The text ends without an opportunity after time zero, so there is no period to repeat.
    NoPeriod,
}

impl fmt::Display for TraceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TraceFault::NotANumber => "not a whole number of milliseconds",
            TraceFault::Descending => "earlier than the line before it",
            TraceFault::NoPeriod => "the trace must last longer than zero milliseconds",
        })
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl core::error::Error for TraceError {}

impl CapacityTrace {
    /// Bytes that one opportunity carries.
    pub const BYTES: u64 = 1500;

    /// Reads mahimahi's format: one whole number of milliseconds per line, never descending. Blank lines are skipped.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut opportunities = Vec::new();
        let mut last = 0;
        let mut lines = 0;
        for (line, digits) in crate::recording::lines(text) {
            lines = line;
            if digits.is_empty() {
                continue;
            }
            let at: u64 = digits.parse().map_err(|_| TraceError { line, what: TraceFault::NotANumber })?;
            if at < last {
                return Err(TraceError { line, what: TraceFault::Descending });
            }
            last = at;
            opportunities.push(at);
        }
        if last == 0 {
            return Err(TraceError { line: lines.max(1), what: TraceFault::NoPeriod });
        }
        Ok(Self::new(opportunities))
    }

    /// Opportunities at ascending milliseconds, which repeat with the last of them as their period.
    pub fn new(opportunities: Vec<u64>) -> Self {
        let period = opportunities.last().copied().unwrap_or(0);
        Self { opportunities, period }
    }

    /// Milliseconds after which the trace repeats; zero if it has no opportunity after time zero.
    pub fn period_millis(&self) -> u64 {
        self.period
    }

    /// The same trace, begun `from` milliseconds after its beginning, before its end.
    #[must_use]
    pub fn begun_at(&self, from: u64) -> Self {
        let Self { opportunities, period } = self;
        if from == 0 || from >= *period {
            return self.clone();
        }
        // An opportunity at the beginning comes again at the end of the period.
        let (before, after) = opportunities.split_at(opportunities.partition_point(|at| *at <= from));
        let after = after.iter().map(|at| at - from);
        let before = before.iter().map(|at| at + period - from);
        Self { opportunities: after.chain(before).collect(), period: *period }
    }

    /// All opportunities over one period; zero without a period.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.opportunities.len() as u128 * u128::from(Self::BYTES) * 8;
        let bps = (bits * 1000).checked_div(self.period_millis().into()).unwrap_or(0);
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    /// Number of the first opportunity after `now`, counted over all repetitions, which is also the number of
    /// opportunities up to `now`.
    pub fn first_after(&self, now: Instant) -> u64 {
        let millis = now.as_nanos() / 1_000_000;
        let Some(round) = millis.checked_div(self.period_millis()) else { return 0 };
        let within = millis % self.period_millis();
        let before = self.opportunities.partition_point(|at| *at <= within) as u64;
        round.saturating_mul(self.opportunities.len() as u64).saturating_add(before)
    }

    /// Time of opportunity `number`; [`Instant::MAX`] without a period.
    pub(crate) fn time_of(&self, number: u64) -> Instant {
        let period = self.period_millis();
        if period == 0 {
            return Instant::MAX;
        }
        let count = self.opportunities.len() as u64;
        let within = self.opportunities[(number % count) as usize];
        Instant::from_nanos((number / count).saturating_mul(period).saturating_add(within).saturating_mul(1_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_may_begin_anywhere() {
        let trace = CapacityTrace::new(vec![2, 5, 5, 9, 10]);
        assert_eq!(trace.begun_at(3).opportunities, [2, 2, 6, 7, 9]);
        assert_eq!(trace.begun_at(5).opportunities, [4, 5, 7, 10, 10]);
        assert_eq!(trace.begun_at(2).opportunities, [3, 3, 7, 8, 10]);
        assert_eq!(trace.begun_at(10), trace);
        assert_eq!(trace.begun_at(99), trace);
        for from in 0..=10 {
            let begun = trace.begun_at(from);
            assert_eq!((begun.period_millis(), begun.mean_rate()), (10, trace.mean_rate()));
            // Every opportunity of three rounds after the beginning, at its own time.
            let times = |trace: &CapacityTrace, from: u64| {
                let all = (0..20).map(|n| trace.time_of(n).as_nanos() / 1_000_000).filter(|at| *at > from);
                all.map(|at| at - from).take(12).collect::<Vec<_>>()
            };
            assert_eq!(times(&begun, 0), times(&trace, from), "{from}");
        }
        assert_eq!(CapacityTrace::new(vec![]).begun_at(1).opportunities, [0u64; 0]);
    }

    #[test]
    fn traces_are_read_or_refused_by_line() {
        let trace = CapacityTrace::parse("0\n0\r\n 7\n\n12\n").unwrap();
        assert_eq!(trace.opportunities, [0, 0, 7, 12]);
        assert_eq!(trace.period_millis(), 12);
        assert_eq!(trace.mean_rate(), Rate::from_bps(4_000_000));
        let refused = |text| CapacityTrace::parse(text).map_err(|e| (e.line, e.what)).unwrap_err();
        assert_eq!(refused("1\n2\n-3\n"), (3, TraceFault::NotANumber));
        assert_eq!(refused("1\n2 ms\n"), (2, TraceFault::NotANumber));
        assert_eq!(refused("5\n\n4\n"), (3, TraceFault::Descending));
        assert_eq!(refused("0\n0\n"), (2, TraceFault::NoPeriod));
        assert_eq!(refused(""), (1, TraceFault::NoPeriod));
        assert_eq!(refused("99999999999999999999999"), (1, TraceFault::NotANumber));
    }
}
