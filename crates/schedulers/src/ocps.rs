//! OCPS: feedback from acknowledgments corrects a forecast.

use crate::f2pdps::{self, F2pDps, HORIZON};
use crate::fps::{self, Fps, GROWTH};
use crate::skip::{Forecast, SkipAhead};
use anabranch_plugin::congestion::Acked;
use anabranch_plugin::registry::{Entry, Handle, Parameters, number};
use anabranch_plugin::schedule::{Outstanding, PathView, Scheduler, SchedulerEvent, View};
use anabranch_units::RecoveryPhase;
use anabranch_units::{Duration, Instant, PathId, Range};

page!(
    "\
# Idea

Offset compensation: a predictor (`fps` or `f2pdps`) computes how many packets N a path leaves to the faster ones.
Acknowledgments show afterwards whether data came too early or too late, and so which prediction was wrong in which
direction. An offset corrects the next N.

# Rule

A subflow's masters have a longer RTT, its slaves a shorter one. An acknowledgment of k shows that data of k arrived,
while earlier data is missing, which is in flight on another path h:

```text
h is a slave of k:   k's packet came too early    N_k was too large
h is a master of k:  h's packet came too late     N_h was too small
too large:  a = 2a if a > athresh, else a − 1         (a ≤ 0; the first is −1)
too small:  b = 2b if b < bthresh, else b + 1         (b ≥ 0; the first is +1)
on a change of direction the other offset is cleared, and half of it becomes its threshold (1 at least)
N' = max(0, N + a + b);  the path sends the unassigned segments N' + 1, N' + 2, …
```

# When it helps

Predictions that are wrong in the same way for a while: queues that build up, losses, asymmetric delays.

# When it hurts

It corrects by past errors, not by future ones, and the feedback of one round trip repeats itself.

# Departures

The printed algorithm doubles from zero, and does not state the initial thresholds (here: infinite) or how often an
offset changes: here once per `interval` round trips of the path that N belongs to. With 1, all feedback concerns data
sent after the last change, and little is gained; with 0, or once per burst (the data that one acknowledgment releases),
offsets diverge and the slow path starves. MPTCP acknowledges data only cumulatively, so only the first missing packet is
known: the one that k's own DATA_ACK names. It counts for the path that carried it first, and only if that was a single
path. There is no feedback while k or h repairs a loss, nor from data that h had at its last repair, nor for equal RTTs;
an undetected loss of h misleads it. All offsets are cleared when a path joins, leaves or times out. The predictor's own
rule replaces the clamp of N' to the unassigned data: a path with nothing behind its N waits.

# References

Ni, Xue, Hong, Zhang, Lu, OCPS: Offset compensation based packet scheduling mechanism for multipath TCP, ICC 2015,
algorithm 1.
"
);

const INTERVAL: Handle<f64> = number("interval", 0.25, 0.0..=100.0)
    .unit("RTT")
    .about("least time between two changes of a path's offset, in its own round trips");

/// `fps-ocps`.
pub const ENTRY_FPS: Entry<dyn Scheduler> = Entry {
    name: "fps-ocps",
    aliases: &[],
    about: "FPS corrected by observed reordering",
    page: PAGE,
    parameters: &[INTERVAL.parameter, GROWTH.parameter],
    build: |p| Box::new(SkipAhead::new(Ocps::new(Config::from(p), Fps::new(fps::Config::from(p))))),
};

/// `f2pdps-ocps`.
pub const ENTRY_F2PDPS: Entry<dyn Scheduler> = Entry {
    name: "f2pdps-ocps",
    about: "F²P-DPS corrected by observed reordering",
    parameters: &[INTERVAL.parameter, GROWTH.parameter, HORIZON.parameter],
    build: |p| Box::new(SkipAhead::new(Ocps::new(Config::from(p), F2pDps::new(f2pdps::Config::from(p))))),
    ..ENTRY_FPS
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Least time between two changes of a path's offset, in its smoothed RTTs.
    pub interval: f64,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { interval: INTERVAL.of(p) }
    }
}

/// The feedback on a path's last prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    TooLarge,
    TooSmall,
}

/// The limit of offsets, in packets.
const FARTHEST: i64 = 1 << 30;

/// The correction of one path's N.
#[derive(Clone, Copy, Debug)]
struct Offset {
    /// Applies after "too large"; negative or zero.
    a: i64,
    a_threshold: i64,
    /// Applies after "too small"; positive or zero.
    b: i64,
    b_threshold: i64,
    last: Option<Verdict>,
    /// When it last changed.
    changed: Option<Instant>,
}

impl Default for Offset {
    fn default() -> Self {
        Self { a: 0, a_threshold: -FARTHEST, b: 0, b_threshold: FARTHEST, last: None, changed: None }
    }
}

impl Offset {
    /// OCPS algorithm 1.
    fn judge(&mut self, verdict: Verdict) {
        let again = self.last.replace(verdict) == Some(verdict);
        match verdict {
            Verdict::TooLarge if again => {
                self.a = if self.a > self.a_threshold { self.a * 2 } else { (self.a - 1).max(-FARTHEST) };
            }
            Verdict::TooSmall if again => {
                self.b = if self.b < self.b_threshold { self.b * 2 } else { (self.b + 1).min(FARTHEST) };
            }
            Verdict::TooLarge => {
                if self.b > 0 {
                    self.b_threshold = (self.b / 2).max(1);
                }
                (self.a, self.b) = (-1, 0);
            }
            Verdict::TooSmall => {
                if self.a < 0 {
                    self.a_threshold = (self.a / 2).min(-1);
                }
                (self.a, self.b) = (0, 1);
            }
        }
    }
}

/// The state of a path's data.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// The last DATA_ACK received on it.
    data_ack: u64,
    /// The highest end of its data.
    given_end: u64,
    /// Part of its data below this offset was lost or delayed within the subflow: a hole there does not judge a
    /// prediction. Acknowledgments of slower paths report it long after the repair.
    repaired_below: u64,
}

/// A forecast with offsets.
#[derive(Clone, Debug)]
pub struct Ocps<F> {
    config: Config,
    base: F,
    offsets: [Offset; PathId::LIMIT],
    /// The data of each path, back to the oldest that an acknowledgment may still concern.
    given: Outstanding,
    tracks: [Track; PathId::LIMIT],
    /// The offset that changed last, for traces.
    newest: i64,
}

fn repairs_nothing(path: &PathView) -> bool {
    path.recovery == RecoveryPhase::Open
}

impl<F: Forecast> Ocps<F> {
    /// Corrects `base`, initially by zero.
    pub fn new(config: Config, base: F) -> Self {
        Self {
            config,
            base,
            offsets: [Offset::default(); PathId::LIMIT],
            given: Outstanding::default(),
            tracks: [Track::default(); PathId::LIMIT],
            newest: 0,
        }
    }

    /// The feedback of an acknowledgment on `by`, and the path whose N it concerns.
    fn verdict(&self, view: &View, by: PathId, acked: &Acked) -> Option<(PathId, Verdict)> {
        let missing = acked.data_ack.filter(|missing| *missing < acked.data_end)?;
        let given = self.given.at(missing).map(|(_, copies)| copies)?;
        let repaired = missing < self.tracks[given.first.index()].repaired_below;
        if given.first == by || given.paths != given.first.bit() || repaired {
            return None;
        }
        let early = view.path(by).filter(|p| repairs_nothing(p))?;
        let awaited = view.path(given.first).filter(|p| repairs_nothing(p))?;
        match awaited.srtt?.cmp(&early.srtt?) {
            core::cmp::Ordering::Less => Some((by, Verdict::TooLarge)),
            core::cmp::Ordering::Greater => Some((awaited.id, Verdict::TooSmall)),
            core::cmp::Ordering::Equal => None,
        }
    }

    /// `path` repairs a loss, or had a reordering.
    fn taint(&mut self, path: PathId) {
        let track = &mut self.tracks[path.index()];
        track.repaired_below = track.given_end;
    }

    fn on_ack(&mut self, view: &View, by: PathId, acked: &Acked) {
        if view.path(by).is_some_and(|p| !repairs_nothing(p)) {
            self.taint(by);
        }
        if let Some((path, verdict)) = self.verdict(view, by, acked) {
            let rtt = view.path(path).map_or(Duration::ZERO, PathView::rtt_or_max);
            let wait = rtt.as_nanos() as f64 * self.config.interval;
            let offset = &mut self.offsets[path.index()];
            if offset.changed.is_none_or(|at| view.now().since(at).as_nanos() as f64 >= wait) {
                offset.judge(verdict);
                offset.changed = Some(view.now());
                self.newest = offset.a + offset.b;
            }
        }
        self.tracks[by.index()].data_ack = acked.data_ack.unwrap_or(view.data_acked());
        // A silent path must not keep the list growing: its timeout ends that.
        let awaited = view.paths().iter().filter(|p| p.in_flight > 0 && p.recovery != RecoveryPhase::Loss);
        let oldest = awaited.map(|p| self.tracks[p.id.index()].data_ack).min();
        self.given.acked(oldest.map_or(view.data_acked(), |oldest| oldest.min(view.data_acked())));
    }

    fn reset(&mut self, path: PathId, view: &View) {
        self.offsets = [Offset::default(); PathId::LIMIT];
        self.newest = 0;
        self.tracks[path.index()].data_ack = view.data_acked();
    }
}

impl<F: Forecast> Forecast for Ocps<F> {
    fn begin(&mut self, view: &View) {
        self.base.begin(view);
    }

    fn delay(&self, path: &PathView) -> Duration {
        self.base.delay(path)
    }

    fn packets(&mut self, path: &PathView, lead: Duration) -> f64 {
        self.base.packets(path, lead)
    }

    fn correction(&self, path: PathId) -> i64 {
        let offset = &self.offsets[path.index()];
        self.base.correction(path) + offset.a + offset.b
    }

    fn on_bound(&mut self, path: PathId, range: Range) {
        self.base.on_bound(path, range);
        self.given.sent(path, range);
        let track = &mut self.tracks[path.index()];
        track.given_end = track.given_end.max(range.end);
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        self.base.on_event(event, view);
        match *event {
            SchedulerEvent::Ack { path, acked } => self.on_ack(view, path, acked),
            SchedulerEvent::Loss { path } => self.taint(path),
            SchedulerEvent::Timeout { path } | SchedulerEvent::PathUp { path } => self.reset(path, view),
            SchedulerEvent::PathDown { path } => {
                self.given = Outstanding::default();
                self.reset(path, view);
            }
            _ => {}
        }
    }

    fn values(&self) -> Option<(&'static str, f64)> {
        Some(("ocps.offset", self.newest as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};
    use Verdict::{TooLarge, TooSmall};

    const CONFIG: Config = Config { interval: 0.25 };

    #[test]
    fn offsets_double_and_then_go_by_one() {
        let mut offset = Offset::default();
        let mut seen = Vec::new();
        for verdict in [TooLarge; 4].into_iter().chain([TooSmall; 2]).chain([TooLarge; 4]) {
            offset.judge(verdict);
            seen.push((offset.a, offset.b));
            match seen.len() {
                5 => assert_eq!(offset.a_threshold, -4),
                7 => assert_eq!(offset.b_threshold, 1),
                _ => {}
            }
        }
        let expect = [(-1, 0), (-2, 0), (-4, 0), (-8, 0), (0, 1), (0, 2), (-1, 0), (-2, 0), (-4, 0), (-5, 0)];
        assert_eq!(seen, expect);
    }

    #[test]
    fn half_of_what_was_too_much_is_where_doubling_ends() {
        let mut offset = Offset::default();
        let verdicts = [TooSmall; 4].into_iter().chain([TooLarge]).chain([TooSmall; 5]);
        let seen: Vec<i64> = verdicts
            .map(|verdict| {
                offset.judge(verdict);
                offset.a + offset.b
            })
            .collect();
        assert_eq!(seen, [1, 2, 4, 8, -1, 1, 2, 4, 5, 6]);
    }

    #[test]
    fn offsets_end_somewhere() {
        let mut offset = Offset::default();
        (0..100).for_each(|_| offset.judge(TooLarge));
        assert_eq!(offset.a, -FARTHEST);
        (0..100).for_each(|_| offset.judge(TooSmall));
        assert_eq!(offset.b, FARTHEST);
    }

    #[derive(Debug)]
    struct Always(f64);

    impl Forecast for Always {
        fn packets(&mut self, _path: &PathView, _lead: Duration) -> f64 {
            self.0
        }
    }

    /// The slow path, of RTT 60, skips N' packets and sends three, which arrive after `truly` packets of the fast path,
    /// each time at the end of a slow round trip. Returns N' of each round.
    fn converge(base: f64, truly: usize, rounds: u64) -> Vec<i64> {
        let mut bench = Bench::new(&[path(0, 20, 20, 1), path(1, 60, 3, 1)]);
        let mut ocps = Ocps::new(CONFIG, Always(base));
        let mut seen = Vec::new();
        for round in 0..rounds {
            let n = (base as i64 + ocps.correction(PathId(1))).max(0);
            seen.push(n);
            // Numbered from 0: the slow path takes n to n + 2, the fast one the others.
            let n = n as u64;
            let numbers = |packets: &mut dyn Iterator<Item = u64>, id: u8| packets.map(|p| (id, p)).collect::<Vec<_>>();
            let fast = numbers(&mut (0..n).chain(n + 3..40), 0);
            let slow = numbers(&mut (n..n + 3), 1);
            let start = round * 40;
            let range = |p: u64| Range::new((start + p) * MSS, (start + p + 1) * MSS);
            fast.iter().chain(&slow).for_each(|&(id, p)| ocps.on_bound(PathId(id), range(p)));
            bench.write(40);
            bench.at(60 * round);
            let mut arrived: Vec<u64> = Vec::new();
            for &(id, p) in fast[..truly].iter().chain(&slow).chain(&fast[truly..]) {
                arrived.push(p);
                let missing = (0..).find(|p| !arrived.contains(p)).unwrap_or_default();
                let mut acked = Acked::default();
                (acked.packets, acked.data_end) = (1, range(p).end);
                acked.data_ack = Some(range(missing).start);
                bench.view.on_data_acked(range(missing).start);
                ocps.on_event(&SchedulerEvent::Ack { path: PathId(id), acked: &acked }, &bench.view);
            }
        }
        seen
    }

    #[test]
    fn wrong_predictions_are_corrected_in_a_few_rounds() {
        assert_eq!(converge(7.0, 5, 6), [7, 6, 5, 5, 5, 5]);
        assert_eq!(converge(3.0, 5, 6), [3, 4, 5, 5, 5, 5]);
        assert_eq!(converge(5.0, 5, 3), [5, 5, 5]);
        // After one doubling too many, it returns by one.
        assert_eq!(converge(2.0, 5, 7), [2, 3, 4, 6, 1, 3, 4]);
    }

    /// Path 0 holds packet 0 and path 1 packet 1; `by` acknowledges its own while 0 is missing, or path 1's is.
    fn seen(by: u8, missing: u64, change: impl FnOnce(&mut Bench, &mut Ocps<Always>)) -> Vec<i64> {
        let mut bench = Bench::new(&[path(0, 20, 10, 2), path(1, 60, 10, 2), path(2, 100, 10, 2)]);
        let mut ocps = Ocps::new(CONFIG, Always(5.0));
        for id in 0..3 {
            ocps.on_bound(PathId(id), Range::new(u64::from(id) * MSS, u64::from(id + 1) * MSS));
        }
        bench.write(3);
        change(&mut bench, &mut ocps);
        let mut acked = Acked::default();
        (acked.packets, acked.data_end, acked.data_ack) = (1, 3 * MSS, Some(missing * MSS));
        ocps.on_event(&SchedulerEvent::Ack { path: PathId(by), acked: &acked }, &bench.view);
        (0..3).map(|id| ocps.correction(PathId(id))).collect()
    }

    #[test]
    fn the_path_whose_prediction_was_wrong_is_corrected() {
        assert_eq!(seen(1, 0, |_, _| {}), [0, -1, 0], "its slave is late");
        assert_eq!(seen(2, 0, |_, _| {}), [0, 0, -1], "its slave is late");
        assert_eq!(seen(0, 1, |_, _| {}), [0, 1, 0], "its master is late");
        assert_eq!(seen(1, 1, |_, _| {}), [0, 0, 0], "its own");
        assert_eq!(seen(1, 3, |_, _| {}), [0, 0, 0], "nothing is missing");
    }

    #[test]
    fn offsets_change_once_in_an_interval() {
        let mut bench = Bench::new(&[path(0, 20, 10, 2), path(1, 60, 10, 2)]);
        let mut ocps = Ocps::new(CONFIG, Always(5.0));
        ocps.on_bound(PathId(0), Range::new(0, MSS));
        bench.write(2);
        let offsets = [0, 0, 14, 15, 16, 29, 30].map(|ms| {
            bench.at(ms);
            let mut acked = Acked::default();
            (acked.data_end, acked.data_ack) = (2 * MSS, Some(0));
            ocps.on_event(&SchedulerEvent::Ack { path: PathId(1), acked: &acked }, &bench.view);
            ocps.correction(PathId(1))
        });
        assert_eq!(offsets, [-1, -1, -1, -2, -2, -2, -4]);
    }

    #[test]
    fn a_hole_that_was_filled_meanwhile_is_a_hole() {
        // The slow path's acknowledgment arrives long after the fast one's has reported packet 0.
        assert_eq!(seen(1, 0, |bench, _| bench.view.on_data_acked(3 * MSS)), [0, -1, 0]);
    }

    #[test]
    fn losses_and_repeated_data_prove_nothing() {
        let phase = |id: u8, phase| {
            move |bench: &mut Bench, _: &mut Ocps<Always>| bench.view.path_mut(PathId(id)).unwrap().recovery = phase
        };
        assert_eq!(seen(1, 0, phase(0, RecoveryPhase::Recovery)), [0, 0, 0]);
        assert_eq!(seen(1, 0, phase(1, RecoveryPhase::Disorder)), [0, 0, 0]);
        let repeated = |_: &mut Bench, ocps: &mut Ocps<Always>| ocps.on_bound(PathId(2), Range::new(0, MSS));
        assert_eq!(seen(1, 0, repeated), [0, 0, 0]);
    }

    #[test]
    fn a_loss_proves_nothing_after_its_repair_either() {
        let lost = |bench: &mut Bench, ocps: &mut Ocps<Always>| {
            ocps.on_event(&SchedulerEvent::Loss { path: PathId(0) }, &bench.view);
        };
        assert_eq!(seen(1, 0, lost), [0, 0, 0]);
        let late = |bench: &mut Bench, ocps: &mut Ocps<Always>| {
            let phase = |bench: &mut Bench, phase| bench.view.path_mut(PathId(0)).unwrap().recovery = phase;
            phase(bench, RecoveryPhase::Disorder);
            ocps.on_event(&SchedulerEvent::Ack { path: PathId(0), acked: &Acked::default() }, &bench.view);
            phase(bench, RecoveryPhase::Open);
        };
        assert_eq!(seen(2, 0, late), [0, 0, 0]);
        let later = |bench: &mut Bench, ocps: &mut Ocps<Always>| {
            lost(bench, ocps);
            ocps.given = Outstanding::default();
            ocps.on_bound(PathId(0), Range::new(2 * MSS, 3 * MSS));
        };
        assert_eq!(seen(1, 2, later), [0, -1, 0], "given after the loss");
    }

    #[test]
    fn a_timeout_clears_the_offsets() {
        let bench = Bench::new(&[path(0, 20, 10, 2)]);
        let mut ocps = Ocps::new(CONFIG, Always(5.0));
        ocps.offsets[1].judge(TooSmall);
        ocps.on_event(&SchedulerEvent::Timeout { path: PathId(0) }, &bench.view);
        assert_eq!(ocps.correction(PathId(1)), 0);
    }

    #[test]
    fn what_no_acknowledgment_can_be_about_is_forgotten() {
        let mut bench = Bench::new(&[path(0, 20, 10, 1), path(1, 60, 10, 1)]);
        let mut ocps = Ocps::new(CONFIG, Always(5.0));
        bench.write(100);
        for p in 0..100 {
            ocps.on_bound(PathId((p % 2) as u8), Range::new(p * MSS, (p + 1) * MSS));
        }
        let mut ack = |bench: &Bench, id: u8, packets: u64| {
            let acked = Acked { data_ack: Some(packets * MSS), ..Acked::default() };
            ocps.on_event(&SchedulerEvent::Ack { path: PathId(id), acked: &acked }, &bench.view);
            ocps.given.bytes() / MSS
        };
        bench.view.on_data_acked(60 * MSS);
        assert_eq!(ack(&bench, 0, 60), 100, "path 1 has said nothing yet");
        assert_eq!(ack(&bench, 1, 40), 60);
        bench.view.path_mut(PathId(1)).unwrap().recovery = RecoveryPhase::Loss;
        assert_eq!(ack(&bench, 0, 60), 40);
    }

    /// Records the time of the round, and forecasts from it.
    #[derive(Debug, Default)]
    struct Clock(Instant);

    impl Forecast for Clock {
        fn begin(&mut self, view: &View) {
            self.0 = view.now();
        }

        fn delay(&self, path: &PathView) -> Duration {
            path.rtt_or_max() / 5
        }

        fn packets(&mut self, _path: &PathView, lead: Duration) -> f64 {
            (self.0 + lead).since(Instant::ZERO).as_millis() as f64
        }

        fn correction(&self, _path: PathId) -> i64 {
            3
        }
    }

    #[test]
    fn all_but_the_offset_is_the_forecast_that_it_corrects() {
        let mut bench = Bench::new(&[path(0, 20, 10, 2)]);
        let mut ocps = Ocps::new(CONFIG, Clock::default());
        bench.at(40);
        ocps.begin(&bench.view);
        assert_eq!(ocps.packets(&path(0, 20, 10, 2), Duration::from_millis(2)), 42.0);
        assert_eq!(ocps.delay(&path(0, 20, 10, 2)), Duration::from_millis(4));
        ocps.offsets[0].judge(TooSmall);
        assert_eq!(ocps.correction(PathId(0)), 3 + 1);
    }
}
