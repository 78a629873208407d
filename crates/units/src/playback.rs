//! Buffer of a player of segments.

use crate::{Duration, Instant};

/// Segments of a video, and when a player plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaybackRule {
    /// Playing time of a segment; above zero.
    pub segment: Duration,
    /// Playing time in the buffer from which on the player begins.
    pub start_at: Duration,
    /// Playing time in the buffer from which on it plays again after a stall.
    pub resume_at: Duration,
    /// Segments of the whole video; `None` = without end.
    pub count: Option<u64>,
}

/// A player's buffer over time, in playing time: it grows by a segment when that is complete, and shrinks while the player plays.
#[derive(Clone, Debug)]
pub struct Playback {
    rule: PlaybackRule,
    /// Complete segments.
    arrived: u64,
    /// The buffer at `at`.
    level: Duration,
    at: Instant,
    state: State,
    begun: Option<Instant>,
    totals: PlaybackTotals,
    /// Length of the present stall, so far.
    stall: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was played yet.
    Waiting,
    Playing,
    /// The buffer ran empty.
    Stalled,
    /// All was played.
    Over,
}

/// Times since a player began, or since [`Playback::restart`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaybackTotals {
    /// Time in which the player played.
    pub played: Duration,
    /// Time in which it waited with an empty buffer after it had begun.
    pub stalled: Duration,
    /// Longest such wait.
    pub longest: Duration,
}

impl Playback {
    /// An empty buffer.
    pub fn new(rule: PlaybackRule) -> Self {
        let (totals, stall) = (PlaybackTotals::default(), Duration::ZERO);
        let (level, at) = (Duration::ZERO, Instant::ZERO);
        Self { rule, arrived: 0, level, at, state: State::Waiting, begun: None, totals, stall }
    }

    /// A segment is complete.
    pub fn on_segment(&mut self, now: Instant) {
        // Yin et al., SIGCOMM 2015, eq. 3: B' = (B − d/C)₊ + L.
        self.advance(now);
        self.arrived += 1;
        self.level += self.rule.segment;
        let enough = match self.state {
            State::Waiting => self.rule.start_at,
            State::Stalled => self.rule.resume_at,
            State::Playing | State::Over => return,
        };
        if self.level >= enough || self.has_all() {
            self.state = State::Playing;
            self.begun.get_or_insert(now);
            self.stall = Duration::ZERO;
        }
    }

    /// Plays until `now`. Times before the last one change nothing.
    pub fn advance(&mut self, now: Instant) {
        let time = now.since(self.at);
        self.at = self.at.max(now);
        match self.state {
            State::Playing if time <= self.level => {
                self.level = self.level.saturating_sub(time);
                self.totals.played += time;
            }
            State::Playing => {
                let rest = time.saturating_sub(self.level);
                self.totals.played += self.level;
                self.level = Duration::ZERO;
                self.state = if self.has_all() { State::Over } else { State::Stalled };
                self.stalled(rest);
            }
            _ => self.stalled(time),
        }
    }

    /// Counts `time` where it is a stall.
    fn stalled(&mut self, time: Duration) {
        if self.state == State::Stalled {
            self.stall += time;
            self.totals.stalled += time;
            self.totals.longest = self.totals.longest.max(self.stall);
        }
    }

    fn has_all(&self) -> bool {
        self.rule.count.is_some_and(|count| self.arrived >= count)
    }

    /// Totals count from `at` on.
    pub fn restart(&mut self, at: Instant) {
        self.advance(at);
        (self.totals, self.stall) = (PlaybackTotals::default(), Duration::ZERO);
    }

    /// Playing time in the buffer, at the last time given.
    pub fn level(&self) -> Duration {
        self.level
    }

    /// Playing time of all that was played, in the whole.
    pub fn position(&self) -> Duration {
        (self.rule.segment * self.arrived).saturating_sub(self.level)
    }

    /// All was played.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// When the buffer is at most `level`, if no segment comes: now at the earliest. A player that does not play has no such time while it
    /// has more.
    pub fn falls_to(&self, level: Duration) -> Option<Instant> {
        let over = self.level.saturating_sub(level);
        (over.is_zero() || self.state == State::Playing).then(|| self.at + over)
    }

    /// Time at which the player began.
    pub fn begun(&self) -> Option<Instant> {
        self.begun
    }

    /// Times up to the last time given.
    pub fn totals(&self) -> PlaybackTotals {
        self.totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn player(start_at: u64, resume_at: u64, count: Option<u64>) -> Playback {
        Playback::new(PlaybackRule { segment: MS(4000), start_at: MS(start_at), resume_at: MS(resume_at), count })
    }

    /// Ten segments of 4 s, one after the other, by Yin et al., SIGCOMM 2015, §3.1, with L = 4 and Bmax = 12, on paper. T is the download
    /// time d/C, B the buffer at the request, (T − B)₊ the stall, B' = (B − T)₊ + 4, Δt = (B' + 4 − 12)₊ (as the next segment needs room:
    /// eq. 4 for the segment that is to come).
    ///
    /// ```text
    ///  k    T   request    B  complete  stall   B'   Δt
    ///  1    2      0       0      2       –     4    0     startup 2
    ///  2    1      2       4      3       0     7    0
    ///  3    1      3       7      4       0    10    2
    ///  4    1      6       8      7       0    11    3
    ///  5   10     10       8     20       2     4    0
    ///  6    6     20       4     26       2     4    0
    ///  7    4     26       4     30       0     4    0
    ///  8    5     30       4     35       1     4    0
    ///  9    2     35       4     37       0     6    0
    /// 10    1     37       6     38       0     9    –
    /// ```
    /// All is played at 38 + 9 = 47 = 2 (startup) + 5 (stalls) + 40 (ten segments).
    #[test]
    fn ten_segments_as_worked_out_by_hand() {
        let mut player = player(4000, 4000, Some(10));
        let (mut now, mut rows) = (at(0), Vec::new());
        for seconds in [2, 1, 1, 1, 10, 6, 4, 5, 2, 1] {
            player.advance(now);
            let (asked, before, stalled) = (now, player.level(), player.totals().stalled);
            now += MS(seconds * 1000);
            player.on_segment(now);
            let stall = player.totals().stalled.saturating_sub(stalled);
            rows.push([asked.since(at(0)), before, stall, player.level()].map(|time| time.as_millis() / 1000));
            now = player.falls_to(MS(8000)).unwrap();
        }
        let expected = [
            [0, 0, 0, 4],
            [2, 4, 0, 7],
            [3, 7, 0, 10],
            [6, 8, 0, 11],
            [10, 8, 2, 4],
            [20, 4, 2, 4],
            [26, 4, 0, 4],
            [30, 4, 1, 4],
            [35, 4, 0, 6],
            [37, 6, 0, 9],
        ];
        assert_eq!(rows, expected);
        player.advance(at(60_000));
        assert_eq!(player.begun(), Some(at(2000)));
        assert_eq!(player.totals(), PlaybackTotals { played: MS(40_000), stalled: MS(5000), longest: MS(2000) });
    }

    #[test]
    fn a_player_begins_and_resumes_by_its_rules() {
        let mut player = player(6000, 8000, Some(4));
        player.on_segment(at(1000));
        assert_eq!((player.begun(), player.falls_to(MS(0)), player.falls_to(MS(4000))), (None, None, Some(at(1000))));
        player.on_segment(at(2000));
        assert_eq!(player.begun(), Some(at(2000)));
        // Empty at 10 s; a segment at 11 s is not enough. The last one at 13 s would be, also alone.
        player.on_segment(at(11_000));
        player.advance(at(12_000));
        assert_eq!((player.level(), player.totals().stalled), (MS(4000), MS(2000)));
        player.on_segment(at(13_000));
        player.advance(at(21_000));
        assert_eq!(player.totals(), PlaybackTotals { played: MS(16_000), stalled: MS(3000), longest: MS(3000) });
        player.restart(at(22_000));
        player.advance(at(30_000));
        assert_eq!(player.totals(), PlaybackTotals::default());
    }

    proptest! {
        /// Startup, stalls and play are all the time there is, until all is played.
        #[test]
        fn times_add_up(
            gaps in prop::collection::vec(0u64..20_000, 1..30),
            (start, resume) in (0u64..12_000, 0u64..12_000),
            tail in 0u64..200_000,
        ) {
            let mut player = player(start, resume, Some(gaps.len() as u64));
            let mut now = at(0);
            for gap in &gaps {
                now += MS(*gap);
                player.on_segment(now);
            }
            now += MS(tail);
            player.advance(now);
            let PlaybackTotals { played, stalled, longest } = player.totals();
            let startup = player.begun().unwrap().since(at(0));
            prop_assert!(longest <= stalled);
            let whole = MS(4000 * gaps.len() as u64);
            prop_assert_eq!(played + player.level(), whole);
            prop_assert_eq!(played, player.position());
            if played < whole {
                prop_assert_eq!(startup + stalled + played, now.since(at(0)));
            }
        }
    }
}
