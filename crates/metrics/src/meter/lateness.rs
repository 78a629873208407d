//! Frames that miss their deadline, and how long the user misses them.

use super::frames::FrameSchedule;
use crate::catalogue::names;
use anabranch_units::{Duration, Instant};

/// Frames of one connection and direction that come too late to be played out. Frame n is played out its deadline after it was due; a late
/// one is never, so that the user misses something until the next frame that is in time is played out.
#[derive(Clone, Debug, Default)]
pub(super) struct Lateness {
    /// Frames before this time do not count.
    begin: Instant,
    late: u64,
    /// Late frames in a row: when the first should have been played out, and when the next in time is, once that is known.
    gap: Option<(Instant, Option<Instant>)>,
    stalled: Duration,
    longest: Duration,
}

impl Lateness {
    pub fn restart(&mut self, at: Instant) {
        let open = self.gap.filter(|(_, until)| until.is_none());
        *self = Self { begin: at, gap: open.map(|(since, _)| (since.max(at), None)), ..Self::default() };
    }

    /// A frame that was to be played out at `play` is complete at `now`.
    pub fn on_frame(&mut self, now: Instant, play: Instant) {
        if now > play {
            self.miss(play, 1);
        } else if let Some((_, until @ None)) = &mut self.gap {
            *until = Some(play);
        }
    }

    /// `count` frames in a row come too late or never, the first of which was to be played out at `play`.
    fn miss(&mut self, play: Instant, count: u64) {
        self.late += if play >= self.begin { count } else { 0 };
        if !matches!(self.gap, Some((_, None))) {
            self.settle(Instant::MAX);
            self.gap = Some((play.max(self.begin), None));
        }
    }

    /// Counts the gap, which ends at `horizon` unless it ended before.
    fn settle(&mut self, horizon: Instant) {
        let Some((since, until)) = self.gap.take() else { return };
        let gap = until.unwrap_or(horizon).min(horizon).since(since);
        self.stalled += gap;
        self.longest = self.longest.max(gap);
    }

    /// All frames that were to be played out until `end`, of which `delivered` are complete; of a call that is over, all.
    pub fn finish(mut self, schedule: &FrameSchedule, first: Instant, delivered: u64, end: Instant) -> LateTotals {
        let Some(deadline) = schedule.deadline else { return LateTotals::default() };
        let play = |n: u64| first + schedule.pattern.at(n) + deadline;
        let all = schedule.count.unwrap_or(u64::MAX);
        // The last frame is played out until another one would be.
        let over = schedule.count.map(play);
        let horizon = over.map_or(end, |over| if delivered >= all { over } else { over.min(end) });
        let before = |at: Instant| schedule.pattern.due_before(first + deadline, at).min(all);
        let (from, to) = (before(self.begin), before(horizon));
        let missing = delivered.max(from);
        if missing < to {
            self.miss(play(missing), to - missing);
        }
        self.settle(horizon);
        LateTotals {
            frames: to.saturating_sub(from),
            late: self.late,
            stalled: self.stalled,
            longest: self.longest,
            time: horizon.since(self.begin.max(play(0))),
        }
    }
}

/// Late frames of one direction of all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LateTotals {
    /// Frames that were to be played out.
    frames: u64,
    late: u64,
    /// Time without a frame, of all.
    stalled: Duration,
    longest: Duration,
    /// Time in which frames were to be played out, of all.
    time: Duration,
}

impl LateTotals {
    pub fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.late += other.late;
        self.stalled += other.stalled;
        self.longest = self.longest.max(other.longest);
        self.time += other.time;
    }

    /// Values of both directions together and, where there are `both`, of each.
    pub fn values([down, up]: [Self; 2], both: bool) -> [(&'static str, Option<f64>); 13] {
        let mut all = down;
        all.add(up);
        let [own, other] = [down, up].map(|way| if both { way } else { Self::default() });
        [
            (names::LATE, all.late_ratio()),
            (names::LATE_DOWN, own.late_ratio()),
            (names::LATE_UP, other.late_ratio()),
            (
                names::LATE_PER_MINUTE,
                all.late_ratio().and(super::ratio(all.late as f64, all.time.as_secs_f64() / 60.0)),
            ),
            (names::STALL, all.seconds(all.stalled)),
            (names::STALL_DOWN, own.seconds(own.stalled)),
            (names::STALL_UP, other.seconds(other.stalled)),
            (names::STALL_RATIO, all.stall_ratio()),
            (names::STALL_RATIO_DOWN, own.stall_ratio()),
            (names::STALL_RATIO_UP, other.stall_ratio()),
            (names::FREEZE, all.seconds(all.longest)),
            (names::FREEZE_DOWN, own.seconds(own.longest)),
            (names::FREEZE_UP, other.seconds(other.longest)),
        ]
    }

    fn late_ratio(&self) -> Option<f64> {
        super::ratio(self.late as f64, self.frames as f64)
    }

    fn stall_ratio(&self) -> Option<f64> {
        super::ratio(self.stalled.as_secs_f64(), self.time.as_secs_f64())
    }

    /// `None` where no frame was to be played out.
    fn seconds(&self, time: Duration) -> Option<f64> {
        (self.frames > 0).then(|| time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::FramePattern;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Frames every 20 ms from 100 ms on, each played out 50 ms later: at 150, 170, 190, …
    fn schedule(count: Option<u64>) -> FrameSchedule {
        let ms = Duration::from_millis;
        FrameSchedule { pattern: FramePattern::steady(100, ms(20)), count, deadline: Some(ms(50)) }
    }

    /// Frames complete at these times; frames that count from `begin` until `end`: how many, late ones, and milliseconds of stalls, of the
    /// longest and of all.
    fn totals(arrivals: &[u64], count: Option<u64>, (begin, end): (u64, u64)) -> [u64; 5] {
        let mut late = Lateness::default();
        let (mut restarted, schedule) = (begin == 0, schedule(count));
        for (n, ms) in arrivals.iter().enumerate() {
            if !restarted && *ms >= begin {
                late.restart(at(begin));
                restarted = true;
            }
            late.on_frame(at(*ms), at(150 + 20 * n as u64));
        }
        let all = late.finish(&schedule, at(100), arrivals.len() as u64, at(end));
        [all.frames, all.late, all.stalled.as_millis(), all.longest.as_millis(), all.time.as_millis()]
    }

    #[test]
    fn a_frame_at_its_deadline_is_in_time() {
        assert_eq!(totals(&[150, 170, 190], None, (0, 191)), [3, 0, 0, 0, 41]);
        assert_eq!(totals(&[150, 171, 190], None, (0, 200)), [3, 1, 20, 20, 50]);
    }

    #[test]
    fn a_stall_lasts_until_the_next_frame_in_time_is_played_out() {
        // Frames 1 to 3, due for play-out at 170, 190 and 210, come at 215; so does frame 4, in time for 230. Frame 6, for 270, comes at 271.
        let arrivals = [120, 215, 215, 215, 215, 240, 271, 280];
        assert_eq!(totals(&arrivals, None, (0, 310)), [8, 4, 60 + 20, 60, 160]);
    }

    #[test]
    fn frames_whose_deadline_is_to_come_do_not_count() {
        // At 200 ms, 3 frames were to be played out; the others have time yet.
        assert_eq!(totals(&[120, 140, 160, 180], None, (0, 200)), [3, 0, 0, 0, 50]);
        // A stall counts up to the end, though the frame that ends it is there.
        assert_eq!(totals(&[120, 180, 185], None, (0, 180)), [2, 1, 10, 10, 30]);
    }

    #[test]
    fn frames_that_never_come_are_late() {
        // 150 in time; 170, 190, 210 and 230 never.
        assert_eq!(totals(&[120], None, (0, 250)), [5, 4, 80, 80, 100]);
        // Two gaps, the second without an end.
        assert_eq!(totals(&[160, 165], None, (0, 250)), [5, 4, 20 + 60, 60, 100]);
        assert_eq!(totals(&[], None, (0, 160)), [1, 1, 10, 10, 10]);
        assert_eq!(totals(&[], None, (0, 150)), [0; 5]);
    }

    #[test]
    fn a_call_that_is_over_counts_whole() {
        assert_eq!(totals(&[120, 140, 160], Some(3), (0, 160)), [3, 0, 0, 0, 60]);
        assert_eq!(totals(&[120, 140], Some(3), (0, 1000)), [3, 1, 20, 20, 60]);
    }

    #[test]
    fn what_was_to_be_played_out_in_the_warm_up_does_not_count() {
        // Frames 0 and 1, for 150 and 170, come at 185; measured from 180 on: the stall's last 10 ms count.
        assert_eq!(totals(&[185, 185, 186], None, (180, 210)), [1, 0, 10, 10, 30]);
        assert_eq!(totals(&[175, 176, 186], None, (176, 210)), [1, 0, 14, 14, 34]);
    }

    #[test]
    fn directions_add_up() {
        let way = |frames, late, ms| {
            let time = Duration::from_millis(ms);
            LateTotals { frames, late, stalled: time, longest: time, time: Duration::from_secs(30) }
        };
        let values = |both| LateTotals::values([way(60, 3, 60), way(40, 1, 20)], both).map(|(_, value)| value);
        let some = |values: [f64; 13]| values.map(Some);
        let ratio = [0.08 / 60.0, 0.06 / 30.0, 0.02 / 30.0];
        let each = [0.04, 0.05, 0.025, 4.0, 0.08, 0.06, 0.02, ratio[0], ratio[1], ratio[2], 0.06, 0.06, 0.02];
        assert_eq!(values(true), some(each));
        assert_eq!(values(false).iter().flatten().count(), 5);
    }
}
