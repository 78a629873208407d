//! How long frames take from the application to the application.

use super::lateness::{LateTotals, Lateness};
use crate::{FrameTimes, Histogram};
use anabranch_units::{Duration, FramePattern, Instant};

/// Frames of an application, the first written when the connection is established.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameSchedule {
    /// When they are due after that, and their sizes.
    pub pattern: FramePattern,
    /// How many; `None` = without end.
    pub count: Option<u64>,
    /// From the time at which a frame is due to its play-out, if it is played out.
    pub deadline: Option<Duration>,
}

/// The delays of one connection's frames: from the time at which the application has a frame to write, to the
/// delivery of all its bytes in order.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    schedule: FrameSchedule,
    /// When the first frame was written.
    start: Option<Instant>,
    /// Frames delivered completely.
    delivered: u64,
    /// Frames of these that came before the measured time.
    before: u64,
    /// In nanoseconds.
    delays: Histogram,
    late: Lateness,
}

/// Results of the frames of one connection and direction.
#[derive(Debug)]
pub(super) struct FrameResults {
    pub delays: Histogram,
    /// Absent if none was written.
    pub times: Option<FrameTimes>,
    pub late: LateTotals,
}

impl Frames {
    pub fn new(schedule: FrameSchedule) -> Self {
        let (delays, late) = (Histogram::default(), Lateness::default());
        Self { schedule, start: None, delivered: 0, before: 0, delays, late }
    }

    pub fn on_written(&mut self, now: Instant) {
        self.start.get_or_insert(now);
    }

    /// When frame `n` was due.
    fn due(&self, n: u64) -> Option<Instant> {
        let exists = self.schedule.count.is_none_or(|count| n < count);
        self.start.filter(|_| exists).map(|start| start + self.schedule.pattern.at(n))
    }

    /// Everything below `end` is delivered.
    pub fn on_delivered(&mut self, now: Instant, end: u64) {
        while self.schedule.pattern.end(self.delivered) <= end
            && let Some(due) = self.due(self.delivered)
        {
            self.delays.add(now.since(due).as_nanos(), 1);
            if let Some(deadline) = self.schedule.deadline {
                self.late.on_frame(now, due + deadline);
            }
            self.delivered += 1;
        }
    }

    pub fn restart(&mut self, at: Instant) {
        self.late.restart(at);
        self.before = self.delivered;
        self.delays.clear();
    }

    /// The frames up to `end`. Of delays, a frame that is still under way counts with its age once that exceeds the mean of
    /// the delivered ones: it can only make the figures better than they are, and leaving it out would hide a stall.
    pub fn finish(mut self, end: Instant) -> FrameResults {
        let late = self.start.map(|first| self.late.clone().finish(&self.schedule, first, self.delivered, end));
        let mean = self.delays.mean().unwrap_or(0.0);
        while let Some(due) = self.due(self.delivered).filter(|due| *due < end) {
            let age = end.since(due).as_nanos();
            if age as f64 <= mean {
                break;
            }
            self.delays.add(age, 1);
            self.delivered += 1;
        }
        let times = self.start.map(|first| FrameTimes { first, counted: self.before..self.delivered });
        FrameResults { delays: self.delays, times, late: late.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn every_40_ms() -> FramePattern {
        FramePattern::steady(1000, Duration::from_millis(40))
    }

    fn due(results: &FrameResults) -> Vec<Instant> {
        results.times.as_ref().unwrap().due(&every_40_ms()).map(|(due, _)| due).collect()
    }

    fn frames(count: Option<u64>) -> Frames {
        let mut frames = Frames::new(FrameSchedule { pattern: every_40_ms(), count, deadline: None });
        frames.on_written(at(10));
        frames.on_written(at(50));
        frames
    }

    fn milliseconds(delays: &Histogram) -> (f64, f64) {
        (delays.mean().unwrap_or(0.0) / 1e6, delays.max().unwrap_or(0) as f64 / 1e6)
    }

    #[test]
    fn a_frame_counts_when_its_last_byte_is_there() {
        let mut frames = frames(Some(3));
        frames.on_delivered(at(20), 999);
        assert_eq!(frames.delays.mean(), None);
        frames.on_delivered(at(25), 1000);
        // Two at once: due at 50 and 90 ms.
        frames.on_delivered(at(130), 3000);
        assert_eq!(milliseconds(&frames.finish(at(1000)).delays), ((15.0 + 80.0 + 40.0) / 3.0, 80.0));
    }

    #[test]
    fn a_stall_at_the_end_is_not_hidden() {
        let mut frames = frames(None);
        frames.on_delivered(at(30), 1000);
        // Due at 50, 90, 130: of age 100, 60 and 20 ms, of which the last is not above the mean of 20 ms.
        let results = frames.finish(at(150));
        assert_eq!(milliseconds(&results.delays), ((20.0 + 100.0 + 60.0) / 3.0, 100.0));
        assert_eq!(due(&results), [at(10), at(50), at(90)]);
    }

    #[test]
    fn nothing_delivered_at_all_is_a_stall() {
        assert_eq!(milliseconds(&frames(Some(2)).finish(at(110)).delays), ((100.0 + 60.0) / 2.0, 100.0));
        let never = Frames::new(FrameSchedule { pattern: every_40_ms(), count: None, deadline: None });
        assert_eq!(never.finish(at(100)).delays.mean(), None);
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut frames = frames(None);
        frames.on_delivered(at(40), 1000);
        frames.restart(at(40));
        frames.on_delivered(at(60), 2000);
        let results = frames.finish(at(60));
        assert_eq!(milliseconds(&results.delays), (10.0, 10.0));
        assert_eq!(due(&results), [at(50)]);
    }
}
