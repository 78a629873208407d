//! Segments of a video as its viewer gets them.

use crate::catalogue::names;
use anabranch_units::{Duration, Instant, Playback, PlaybackRule};

/// A video in segments, each of which the client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoSchedule {
    /// Segments, and when the player plays.
    pub rule: PlaybackRule,
    /// Live: playing time that is there when the player begins.
    pub live: Option<Duration>,
}

/// Weight of a change of quality between neighbouring segments: λ of Yin et al., SIGCOMM 2015, §7 (balanced).
const CHANGE: f64 = 1.0;
/// Weight of a second of stalls, and of start-up, where quality is the rate in Mbit/s: μ = μs = 3000 there, in kbit/s.
const WAIT: f64 = 3.0;

/// The segments of one connection.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    schedule: VideoSchedule,
    playback: Playback,
    /// When the measured time began.
    begin: Instant,
    /// When the first segment was requested.
    opened: Option<Instant>,
    /// Rate of the segment under way, and where it ends in the stream.
    under_way: Option<(f64, u64)>,
    end: u64,
    /// Rate of the last complete one.
    last: Option<f64>,
    totals: Tally,
}

/// Segments that were complete in the measured time. Rates in bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Tally {
    segments: u64,
    rates: f64,
    switches: u64,
    changes: f64,
}

impl Segments {
    pub fn new(schedule: VideoSchedule) -> Self {
        let (playback, begin, totals) = (Playback::new(schedule.rule), Instant::ZERO, Tally::default());
        Self { schedule, playback, begin, opened: None, under_way: None, end: 0, last: None, totals }
    }

    /// The client requests a segment.
    pub fn on_requested(&mut self, now: Instant, bps: u64, size: u64) {
        self.opened.get_or_insert(now);
        self.end += size;
        self.under_way = Some((bps as f64, self.end));
    }

    /// Everything below `end` is delivered.
    pub fn on_delivered(&mut self, now: Instant, end: u64) {
        let Some((rate, _)) = self.under_way.take_if(|(_, until)| end >= *until) else { return };
        self.playback.on_segment(now);
        let change = self.last.replace(rate).map_or(0.0, |last| (rate - last).abs());
        self.totals.segments += 1;
        self.totals.rates += rate;
        self.totals.changes += change;
        self.totals.switches += u64::from(change > 0.0);
    }

    pub fn restart(&mut self, at: Instant) {
        self.playback.restart(at);
        (self.begin, self.totals) = (at, Tally::default());
    }

    /// All up to `end`, of a connection that its client opened at `started`.
    pub fn finish(mut self, started: Option<Instant>, end: Instant) -> VideoTotals {
        self.playback.advance(end);
        let times = self.playback.totals();
        let begun = self.playback.begun();
        let waited = |from: Instant| begun.unwrap_or(end).since(from);
        let connections = u64::from(started.is_some());
        let started = started.unwrap_or(end);
        let latency = self.opened.zip(self.schedule.live).filter(|_| begun.is_some() && !self.playback.is_over());
        let Tally { segments, rates, switches, changes } = self.totals;
        VideoTotals {
            connections,
            playing: u64::from(begun.is_some()),
            startup: waited(started),
            startup_counted: waited(started.max(self.begin)),
            played: times.played,
            stalled: times.stalled,
            longest: times.longest,
            live: u64::from(latency.is_some()),
            latency: latency.map_or(Duration::ZERO, |(opened, there)| {
                (end.since(opened) + there).saturating_sub(self.playback.position())
            }),
            segments,
            rates,
            switches,
            changes,
        }
    }
}

/// Segments of all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct VideoTotals {
    connections: u64,
    /// Those on which play began.
    playing: u64,
    startup: Duration,
    /// The part of it in the measured time.
    startup_counted: Duration,
    played: Duration,
    stalled: Duration,
    longest: Duration,
    /// Those that are live and play, and how far they are behind.
    live: u64,
    latency: Duration,
    segments: u64,
    rates: f64,
    switches: u64,
    changes: f64,
}

impl VideoTotals {
    pub fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.playing += other.playing;
        self.startup += other.startup;
        self.startup_counted += other.startup_counted;
        self.played += other.played;
        self.stalled += other.stalled;
        self.longest = self.longest.max(other.longest);
        self.live += other.live;
        self.latency += other.latency;
        self.segments += other.segments;
        self.rates += other.rates;
        self.switches += other.switches;
        self.changes += other.changes;
    }

    pub fn values(&self) -> [(&'static str, Option<f64>); 9] {
        let seconds = |time: Duration| (self.playing > 0).then(|| time.as_secs_f64());
        let mean = |sum: Duration, of: u64| super::ratio(sum.as_secs_f64(), of as f64);
        let per_segment = |sum: f64| super::ratio(sum, self.segments as f64);
        [
            (names::STALL, seconds(self.stalled)),
            (
                names::STALL_RATIO,
                mean(self.stalled, 1)
                    .and_then(|stalled| super::ratio(stalled, (self.stalled + self.played).as_secs_f64())),
            ),
            (names::FREEZE, seconds(self.longest)),
            (names::QOE, per_segment(self.quality())),
            (names::BITRATE, per_segment(self.rates)),
            (names::SWITCHES, per_segment(0.0).map(|_| self.switches as f64)),
            (names::STARTUP, mean(self.startup, self.connections)),
            (names::PLAYED, mean(self.played, self.connections)),
            (names::LIVE_LATENCY, mean(self.latency, self.live)),
        ]
    }

    /// Yin et al., SIGCOMM 2015, eq. 5, with q(R) = R in Mbit/s: Σ q(R_k) − λ Σ |q(R_k+1) − q(R_k)| − μ Σ stalls − μs · start-up.
    fn quality(&self) -> f64 {
        let waits = (self.stalled + self.startup_counted).as_secs_f64();
        (self.rates - CHANGE * self.changes) / 1e6 - WAIT * waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn segments(count: Option<u64>, live: Option<u64>) -> Segments {
        let secs = Duration::from_secs;
        let rule = PlaybackRule { segment: secs(4), start_at: secs(4), resume_at: secs(4), count };
        Segments::new(VideoSchedule { rule, live: live.map(secs) })
    }

    /// Segments with their rates in kbit/s, requests and ends in seconds.
    fn watch(segments: &mut Segments, all: &[(u64, u64, u64)]) {
        for (kbit, requested, complete) in all {
            segments.on_requested(at(requested * 1000), kbit * 1000, kbit * 500);
            let end = segments.end;
            segments.on_delivered(at(complete * 1000 - 1), end - 1);
            segments.on_delivered(at(complete * 1000), end);
        }
    }

    fn values(totals: &VideoTotals) -> [Option<f64>; 9] {
        totals.values().map(|(_, value)| value)
    }

    /// The ten segments of `anabranch_units::Playback`'s vector (Yin et al., §3.1), with rates, after a connection opened at 0:
    /// startup 2 s, stalls 2 + 2 + 1 = 5 s, all played at 47 s.
    ///
    /// ```text
    /// rates     0.3  0.75  1.2  1.85  2.85  1.2  0.75  0.75  0.3  0.3  Mbit/s, sum 10.25
    /// changes       0.45  0.45 0.65  1.0   1.65 0.45  0    0.45  0     sum 5.1, seven changes
    /// QoE = 10.25 − 1 · 5.1 − 3 · 5 − 3 · 2 = −15.85; per segment −1.585
    /// ```
    #[test]
    fn ten_segments_as_worked_out_by_hand() {
        let mut one = segments(Some(10), None);
        let kbit = [300, 750, 1200, 1850, 2850, 1200, 750, 750, 300, 300];
        let times = [(0, 2), (2, 3), (3, 4), (6, 7), (10, 20), (20, 26), (26, 30), (30, 35), (35, 37), (37, 38)];
        let all: Vec<_> = kbit.into_iter().zip(times).map(|(kbit, (requested, end))| (kbit, requested, end)).collect();
        watch(&mut one, &all);
        let totals = one.finish(Some(at(0)), at(60_000));
        let expected = [5.0, 5.0 / 45.0, 2.0, -1.585, 1.025e6, 7.0, 2.0, 40.0];
        for (value, expected) in values(&totals).iter().zip(expected) {
            assert!((value.unwrap() - expected).abs() < 1e-9, "{value:?} {expected}");
        }
        assert_eq!(values(&totals)[8], None);
    }

    /// Pensieve's linear QoE (SIGCOMM 2017, §5.1) has the same sums, with 4.3 for a second of stalls and nothing for start-up:
    /// 10.25 − 5.1 − 4.3 · 5 = −16.35 for the segments above. The sums are those that this meter keeps.
    #[test]
    fn the_sums_are_those_of_pensieve_too() {
        let mut one = segments(Some(3), None);
        watch(&mut one, &[(300, 0, 1), (1200, 1, 7), (750, 7, 8)]);
        let totals = one.finish(Some(at(0)), at(100_000));
        // Empty at 5, the second at 7: a stall of 2 s. 2.25 − (0.9 + 0.45) − 4.3 · 2 = −7.7.
        let linear = (totals.rates - totals.changes) / 1e6 - 4.3 * totals.stalled.as_secs_f64();
        assert!((linear + 7.7).abs() < 1e-9, "{linear}");
    }

    #[test]
    fn a_video_that_never_begins_has_a_startup_so_far_alone() {
        let mut one = segments(None, None);
        one.on_requested(at(100), 300_000, 150_000);
        one.on_delivered(at(500), 149_999);
        let totals = one.finish(Some(at(0)), at(9000));
        assert_eq!(values(&totals), [None, None, None, None, None, None, Some(9.0), Some(0.0), None]);
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut one = segments(None, None);
        watch(&mut one, &[(300, 0, 1)]);
        one.restart(at(3000));
        watch(&mut one, &[(750, 3, 7)]);
        // Of the stall from 5 to 7 s all counts; of the startup nothing.
        let totals = one.finish(Some(at(0)), at(8000));
        let qoe = 0.75 - 0.45 - 6.0;
        assert_eq!(
            values(&totals),
            [Some(2.0), Some(0.4), Some(2.0), Some(qoe), Some(750e3), Some(1.0), Some(1.0), Some(3.0), None]
        );
    }

    /// Two segments are there at the beginning, 8 s behind; startup and stalls make it more: 1 + 2.
    #[test]
    fn a_live_video_falls_behind_by_startup_and_stalls() {
        let mut one = segments(None, Some(8));
        watch(&mut one, &[(300, 0, 1), (300, 1, 7)]);
        assert_eq!(values(&one.clone().finish(Some(at(0)), at(8000)))[8], Some(11.0));
        let mut two = one.finish(Some(at(0)), at(8000));
        two.add(VideoTotals { connections: 1, startup: Duration::from_secs(8), ..VideoTotals::default() });
        assert_eq!((values(&two)[6], values(&two)[8]), (Some(4.5), Some(11.0)));
    }
}
