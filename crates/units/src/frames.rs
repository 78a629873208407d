//! Frames that an application makes at known times.

use crate::{Duration, Instant};
use core::fmt::Debug;
use std::sync::Arc;

/// Times and sizes of an endless row of frames, as a pattern that repeats; frame 0 is the first, at offset 0 of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramePattern {
    /// From a pattern's beginning to that of the next; above zero.
    period: Duration,
    /// Bytes of a pattern; above zero.
    bytes: u64,
    /// At least one.
    frames: Arc<[Frame]>,
}

/// One frame of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    /// When it is due, after the pattern's beginning.
    at: Duration,
    /// Bytes of the pattern up to its end.
    end: u64,
}

impl FramePattern {
    /// Frames of `size` bytes, one per `interval`; of both at least 1 byte and 1 ns.
    pub fn steady(size: u64, interval: Duration) -> Self {
        Self::new(interval, [(Duration::ZERO, size)])
    }

    /// Frames with time after the pattern's beginning and size, in order of time, repeated every `period`; without any, one of a byte.
    pub fn new(period: Duration, frames: impl IntoIterator<Item = (Duration, u64)>) -> Self {
        let mut end = 0_u64;
        let mut frames: Vec<Frame> = frames
            .into_iter()
            .map(|(at, size)| {
                end = end.saturating_add(size.max(1));
                Frame { at, end }
            })
            .collect();
        if frames.is_empty() {
            frames.push(Frame { at: Duration::ZERO, end: 1 });
        }
        debug_assert!(frames.is_sorted_by_key(|frame| frame.at) && frames.last().is_some_and(|last| last.at <= period));
        Self { period: period.max(Duration::from_nanos(1)), bytes: end.max(1), frames: frames.into() }
    }

    /// Full patterns before frame `n`, and its place in its own.
    fn place(&self, n: u64) -> (u64, Frame) {
        let each = self.frames.len() as u64;
        (n / each, self.frames[(n % each) as usize])
    }

    /// When frame `n` is due, after frame 0's pattern began.
    pub fn at(&self, n: u64) -> Duration {
        let (before, frame) = self.place(n);
        self.period * before + frame.at
    }

    /// Bytes of the stream before frame `n`.
    pub fn begin(&self, n: u64) -> u64 {
        n.checked_sub(1).map_or(0, |last| self.end(last))
    }

    /// Bytes of the stream up to the end of frame `n`.
    pub fn end(&self, n: u64) -> u64 {
        let (before, frame) = self.place(n);
        self.bytes.saturating_mul(before).saturating_add(frame.end)
    }

    /// Bytes of frame `n`.
    pub fn size(&self, n: u64) -> u64 {
        self.end(n).saturating_sub(self.begin(n))
    }

    /// How many frames are due within `time` of the beginning, its last moment included.
    pub fn due_by(&self, time: Duration) -> u64 {
        let before = time.as_nanos() / self.period.as_nanos();
        let rest = Duration::from_nanos(time.as_nanos() % self.period.as_nanos());
        let due = self.frames.partition_point(|frame| frame.at <= rest) as u64;
        before.saturating_mul(self.frames.len() as u64).saturating_add(due)
    }

    /// How many frames are due before `now`, if the pattern begins at `first`.
    pub fn due_before(&self, first: Instant, now: Instant) -> u64 {
        let time = now.since(first);
        if time.is_zero() { 0 } else { self.due_by(time.saturating_sub(Duration::from_nanos(1))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_pattern_repeats() {
        let pattern = FramePattern::new(MS(40), [(MS(0), 80), (MS(0), 1000), (MS(20), 80)]);
        let seen: Vec<_> = (0..7).map(|n| (pattern.at(n).as_millis(), pattern.size(n), pattern.end(n))).collect();
        let expected = [
            (0, 80, 80),
            (0, 1000, 1080),
            (20, 80, 1160),
            (40, 80, 1240),
            (40, 1000, 2240),
            (60, 80, 2320),
            (80, 80, 2400),
        ];
        assert_eq!(seen, expected);
        assert_eq!([0, 19, 20, 39, 40, 60].map(|ms| pattern.due_by(MS(ms))), [2, 2, 3, 3, 5, 6]);
        let start = Instant::from_millis(7);
        let before = |ms| pattern.due_before(start, start + MS(ms));
        assert_eq!([before(0), before(1), before(20), before(21), before(40), before(41)], [0, 2, 2, 3, 3, 5]);
    }

    #[test]
    fn sizes_and_times_of_zero_are_lifted() {
        let pattern = FramePattern::steady(0, Duration::ZERO);
        assert_eq!((pattern.size(5), pattern.at(5)), (1, Duration::from_nanos(5)));
        assert_eq!(FramePattern::new(MS(1), []).end(1), 2);
        assert_eq!(FramePattern::steady(u64::MAX, MS(1)).end(9), u64::MAX, "no overflow");
    }
}
