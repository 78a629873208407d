//! DAPS: a plan over the least common multiple of the forward delays.

use crate::pick::{Ahead, admits, by_rtt, live, no_choice, takes_ahead};
use crate::plan::Plan;
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag, milliseconds, whole};
use anabranch_plugin::schedule::{PathView, Repeat, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, PathId, Range};

page!(
    "\
# Idea

Assign the segments to paths over one least common multiple of the paths' forward delays, so that they
arrive in order.

# Rule

For each path: D = R/2 rounded to a multiple of `round`, C = its window. L = lcm of all D. Path j emits a block of
C_j segments at m·D_j, m = 0 … L/D_j − 1. Blocks are sorted by arrival (ties: the smaller D, then the lower
id) and numbered in that order: this is the plan. Arrival is

```text
daps, daps-pull:  (m + 1)·D     as printed in the paper
daps-ack:         (2m + 1)·D    as acknowledgments clock it, one window per 2·D
```

`daps` queues each segment with its path at once, also beyond that path's window, plan after plan, until the
peer's window is used up. In `daps-pull` and `daps-ack` nothing is bound ahead: a path sends its own blocks in order,
as its window permits, and nothing else, and a new plan is made when all blocks are handed out.

With `retransmit`, when the peer's window blocks new data, the lowest data that the fastest path has not carried is
retransmitted on it.

# When it helps

Stable delays and windows, and bulk data: few segments wait for others at the receiver.

# When it hurts

The plan ignores all events until it is consumed. Every path is used although the fast one might suffice,
which costs applications with little data much delay. A path that is slower than planned holds up the rest: in `daps` all
data that the window admits is bound by then; in the other forms a path that has sent its share idles.

# Departures

The printed algorithm numbers segments in the transmit loop only, which gives every path the same numbers;
here blocks are numbered when planned. Departure times are not enforced: windows and ACKs pace the blocks. D is at most
`horizon` times the least D, and so is L, because the product of co-prime delays is huge. When a path fails or gives data
back, `daps` takes all queues back and plans again; in the other forms its blocks are dropped, and their data goes to the
next in the plan. While a path has no RTT sample, minRTT decides.

# References

Kuhn et al., DAPS, ICC 2014; algorithm 1 in Ferlin et al., BLEST, IFIP Networking 2016. The authors' kernel
module, mptcp_daps.c: `round` is its round_delay, `smooth` its smooth_cwnd.
"
);

const ROUND: Handle<Duration> = milliseconds("round", 0.0, 0.0..=10_000.0)
    .about("forward delays are rounded to multiples of this; 0 = of the least delay; the authors used 4");
const HORIZON: Handle<u64> = whole("horizon", 64, 1..=1024).about("the plan spans at most this many least delays");
const SMOOTH: Handle<bool> = flag("smooth", true).about("plan with windows averaged over round trips (gain 1/8)");
const RETRANSMIT: Handle<bool> =
    flag("retransmit", true).about("when the peer's window is full, retransmit the lowest data on the fastest path");

/// `daps`: arrivals as printed, queues as in the authors' module.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "daps",
    aliases: &[],
    about: "plan segments over the least common multiple of the delays",
    page: PAGE,
    parameters: &[ROUND.parameter, HORIZON.parameter, SMOOTH.parameter, RETRANSMIT.parameter],
    build: |p| Box::new(Daps::new(Config { form: Form::Module, ..Config::from(p) })),
};

/// `daps-pull`: nothing is bound ahead.
pub const ENTRY_PULL: Entry<dyn Scheduler> = Entry {
    name: "daps-pull",
    about: "DAPS whose paths pull their segments of the plan, as their windows permit",
    build: |p| Box::new(Daps::new(Config { form: Form::Pull, ..Config::from(p) })),
    ..ENTRY
};

/// `daps-ack`: arrivals as acknowledgments clock them.
pub const ENTRY_ACK: Entry<dyn Scheduler> = Entry {
    name: "daps-ack",
    about: "DAPS that pulls, with one window per round trip instead of per forward delay",
    build: |p| Box::new(Daps::new(Config { form: Form::AckClocked, ..Config::from(p) })),
    ..ENTRY
};

/// The plan's formula, and when it binds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As printed; bound at once.
    Module,
    /// As printed; bound when a window has room.
    Pull,
    /// A path emits one window per round trip instead of per forward delay; bound when a window has room.
    AckClocked,
}

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The plan's formula, and when it binds data.
    pub form: Form,
    /// Forward delays are rounded to multiples of this; zero = of the least delay.
    pub round: Duration,
    /// The plan spans at most this many least delays; at least 1.
    pub horizon: u64,
    /// Whether averaged windows make the plan.
    pub smooth: bool,
    /// Whether to retransmit when the peer's window is full.
    pub retransmit: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self {
            form: Form::Module,
            round: ROUND.of(p),
            horizon: HORIZON.of(p),
            smooth: SMOOTH.of(p),
            retransmit: RETRANSMIT.of(p),
        }
    }
}

/// An input of a plan: a path with its forward delay in ticks and its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Source {
    path: PathId,
    delay: u64,
    window: u64,
    /// When its next block arrives; never after the last.
    arrival: u64,
    /// Blocks not yet placed.
    blocks: u64,
}

/// DAPS.
#[derive(Clone, Debug)]
pub struct Daps {
    config: Config,
    plan: Plan,
    ahead: Ahead,
    /// Averaged windows; zero = none yet.
    windows: [f64; PathId::LIMIT],
    /// Kept between plans for its memory.
    sources: Vec<Source>,
    /// While the peer's window is full: the fastest path, and the offset below which it carries everything.
    repeated: Option<(PathId, u64)>,
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Orders the blocks of all sources by arrival; the sources' delays are at least 1.
fn arrange(sources: &mut [Source], horizon: u64, ack_clocked: bool, plan: &mut Plan) {
    let Some(least) = sources.iter().map(|s| s.delay).min() else { return };
    let span = least.saturating_mul(horizon);
    // The product of co-prime delays may be huge: stop at the horizon.
    let lcm = sources.iter().fold(1, |l: u64, s| (l / gcd(l, s.delay)).saturating_mul(s.delay).min(span));
    for s in sources.iter_mut() {
        s.delay = s.delay.min(span);
        s.arrival = s.delay;
        s.blocks = lcm / s.delay;
    }
    while let Some(s) = sources.iter_mut().filter(|s| s.blocks > 0).min_by_key(|s| (s.arrival, s.delay, s.path)) {
        s.blocks -= 1;
        s.arrival += if ack_clocked { 2 * s.delay } else { s.delay };
        plan.push(s.path, s.window);
    }
}

impl Daps {
    /// Without a plan.
    pub fn new(config: Config) -> Self {
        let windows = [0.0; PathId::LIMIT];
        Self { config, plan: Plan::default(), ahead: Ahead::default(), windows, sources: Vec::new(), repeated: None }
    }

    /// Plans for all paths that may get data now, or be waited for.
    fn make_plan(&mut self, view: &View, plan: &mut Plan) {
        let ahead = self.config.form == Form::Module;
        let serves = |p: &&PathView| if ahead { takes_ahead(p) && admits(view, p) } else { live(view, p) };
        let known = || view.candidates().filter(serves).filter_map(|p| Some((p, p.srtt? / 2)));
        let least = known().map(|(_, delay)| delay.as_nanos()).min().unwrap_or(1);
        let tick = if self.config.round.is_zero() { least } else { self.config.round.as_nanos() }.max(1);
        self.sources.clear();
        for (p, delay) in known() {
            let average = &mut self.windows[p.id.index()];
            let window = if self.config.smooth && *average > 0.0 { (*average + 0.5) as u64 } else { p.cwnd.into() };
            let delay = (delay.as_nanos().saturating_add(tick / 2) / tick).max(1);
            self.sources.push(Source { path: p.id, delay, window: window.max(1), arrival: 0, blocks: 0 });
        }
        arrange(&mut self.sources, self.config.horizon, self.config.form == Form::AckClocked, plan);
    }

    /// Queues the data that the peer's window admits, one plan after the other.
    fn push(&mut self, round: &mut Round<'_>, plan: &mut Plan) {
        while !round.backlog().is_empty() {
            let takes = |p: &PathView| takes_ahead(p) && admits(round, p);
            if !plan.next().and_then(|on| round.path(on)).is_some_and(takes) {
                if !round.candidates().any(takes) {
                    return;
                }
                plan.clear();
                self.make_plan(round, plan);
            }
            if plan.next().and_then(|on| self.ahead.enqueue(round, on)).is_none() {
                return;
            }
            plan.advance();
        }
    }

    /// Retransmits, on the fastest path with room, the lowest data that it has not carried.
    fn retransmit(&mut self, round: &mut Round<'_>) {
        if !round.window_blocked() {
            self.repeated = None;
            return;
        }
        while let Some(fast) = round.fastest_eligible().copied() {
            // Only the path itself adds to its data, so below the mark nothing is left to do.
            let from = self.repeated.filter(|(path, _)| *path == fast.id).map_or(0, |(_, mark)| mark);
            let missing = round.outstanding().from(from).find(|(_, copies)| !copies.on(fast.id));
            let Some((run, _)) = missing else { return };
            let start = run.start.max(from);
            let segment = Range::new(start, run.end.min(start + u64::from(fast.mss)));
            if !round.repeat(fast.id, segment, Repeat::Opportunistic) {
                return;
            }
            self.repeated = Some((fast.id, segment.end));
        }
    }
}

impl Scheduler for Daps {
    fn schedule(&mut self, round: &mut Round<'_>) {
        if self.config.form == Form::Module && self.ahead.recall(round, takes_ahead) {
            self.plan.clear();
        }
        if no_choice(round) || round.candidates().any(|p| p.srtt.is_none()) {
            self.plan.clear();
            by_rtt(round);
            self.ahead.note_bound(round);
        } else {
            let mut plan = core::mem::take(&mut self.plan);
            match self.config.form {
                Form::Module => self.push(round, &mut plan),
                Form::Pull | Form::AckClocked => plan.follow(round, |view, plan| self.make_plan(view, plan)),
            }
            self.plan = plan;
        }
        if self.config.retransmit {
            self.retransmit(round);
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        match event {
            SchedulerEvent::Ack { path, acked } if acked.round_ended => {
                let Some(p) = view.path(*path) else { return };
                let (average, window) = (&mut self.windows[path.index()], f64::from(p.cwnd));
                *average = if *average > 0.0 { *average + (window - *average) / 8.0 } else { window };
            }
            SchedulerEvent::PathUp { path } | SchedulerEvent::PathDown { path } => {
                self.windows[path.index()] = 0.0;
                self.repeated = None;
            }
            _ => {}
        }
    }

    fn state(&self, put: &mut dyn FnMut(&'static str, Option<PathId>, f64)) {
        self.plan.left(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Run;
    use crate::testing::{Bench, MSS, path};
    use anabranch_plugin::congestion::Acked;
    use anabranch_units::RecoveryPhase;

    const MODULE: Config =
        Config { form: Form::Module, round: Duration::from_millis(1), horizon: 64, smooth: true, retransmit: true };
    const PULL: Config = Config { form: Form::Pull, ..MODULE };

    /// (path, first, last) of each run, numbered from 1.
    fn plan(delays: &[u64], windows: &[u64], horizon: u64, ack_clocked: bool) -> Vec<(u8, u64, u64)> {
        let source = |(i, (delay, window)): (usize, (&u64, &u64))| Source {
            path: PathId(i as u8),
            delay: *delay,
            window: *window,
            arrival: 0,
            blocks: 0,
        };
        let mut sources: Vec<_> = delays.iter().zip(windows).enumerate().map(source).collect();
        let mut plan = Plan::default();
        arrange(&mut sources, horizon, ack_clocked, &mut plan);
        let number = |next: &mut u64, run: Run| {
            *next += run.segments;
            Some((run.path.0, *next - run.segments + 1, *next))
        };
        plan.runs().iter().scan(0, |next, run| number(next, *run)).collect()
    }

    #[test]
    fn plans() {
        assert_eq!(plan(&[1, 10], &[1, 1], 64, false), [(0, 1, 10), (1, 11, 11)]);
        assert_eq!(plan(&[2, 3], &[1, 1], 64, false), [(0, 1, 1), (1, 2, 2), (0, 3, 4), (1, 5, 5)]);
        assert_eq!(plan(&[1, 10], &[10, 5], 64, false), [(0, 1, 100), (1, 101, 105)]);
        let three = [(0, 1, 4), (1, 5, 5), (0, 6, 9), (1, 10, 10), (2, 11, 13)];
        assert_eq!(plan(&[2, 4, 8], &[2, 1, 3], 64, false), three);
        assert_eq!(plan(&[10, 30], &[4, 4], 64, true), [(0, 1, 8), (1, 9, 12), (0, 13, 16)]);
    }

    #[test]
    fn co_prime_and_enormous_delays_end_at_the_horizon() {
        // lcm(41, 137) = 5617 > 4·41 = 164: three blocks of 41, one of 137.
        assert_eq!(plan(&[41, 137], &[1, 1], 4, false), [(0, 1, 3), (1, 4, 4), (0, 5, 5)]);
        assert_eq!(plan(&[1, u64::MAX], &[1, 1], 4, false), [(0, 1, 4), (1, 5, 5)]);
    }

    #[test]
    fn the_modules_form_queues_as_far_as_the_peers_window_admits() {
        // Delays of 10 and 30 ms, windows of 2 and 3: six segments, three, and the same again.
        let mut bench = Bench::with_window(&[path(0, 20, 2, 0), path(1, 60, 3, 0)], 14 * MSS);
        bench.write(20);
        let mut daps = Daps::new(MODULE);
        bench.round(&mut daps);
        assert_eq!(bench.bound(0), [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13]);
        assert_eq!(bench.bound(1), [6, 7, 8]);
    }

    #[test]
    fn a_path_that_fails_gives_its_queue_back_to_a_new_plan() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 60, 3, 0)]);
        bench.write(12);
        let mut daps = Daps::new(MODULE);
        bench.round(&mut daps);
        assert_eq!(bench.bound(0), [0, 1, 2, 3, 4, 5, 9, 10, 11]);
        bench.view.path_mut(PathId(0)).unwrap().recovery = RecoveryPhase::Loss;
        bench.round(&mut daps);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], (0..12).collect()));
    }

    #[test]
    fn each_path_sends_what_it_owns() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 60, 3, 0)]);
        bench.write(20);
        let mut daps = Daps::new(PULL);
        bench.round(&mut daps);
        assert_eq!((bench.send(0), bench.send(1)), (vec![0, 1], vec![6, 7, 8]));
        // The slow path is acknowledged first, but waits, because the plan is not finished.
        bench.acked(1, 3);
        bench.round(&mut daps);
        assert_eq!(bench.bound(1), []);
        bench.acked(0, 2);
        bench.round(&mut daps);
        assert_eq!((bench.send(0), bench.bound(1)), (vec![2, 3], vec![]));
        bench.acked(0, 2);
        bench.round(&mut daps);
        // 4 and 5 end the plan; the next one begins at 9 and gives the slow path 15 to 17.
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![4, 5], vec![15, 16, 17]));
    }

    #[test]
    fn a_path_that_fails_loses_its_part_of_the_plan() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 60, 3, 0), path(2, 20, 2, 0)]);
        bench.write(10);
        let mut daps = Daps::new(PULL);
        bench.round(&mut daps);
        assert_eq!((bench.send(0), bench.send(2)), (vec![0, 1], vec![2, 3]));
        bench.view.path_mut(PathId(0)).unwrap().recovery = RecoveryPhase::Loss;
        bench.acked(2, 2);
        bench.round(&mut daps);
        // Path 0 owned 4, 5 and 8, 9; path 2 owned 6, 7.
        assert_eq!(bench.bound(2), [4, 5]);
    }

    #[test]
    fn windows_are_averaged_over_round_trips() {
        let mut bench = Bench::new(&[path(0, 20, 8, 0), path(1, 60, 3, 0)]);
        let mut daps = Daps::new(PULL);
        let ended = Acked { round_ended: true, ..Acked::default() };
        let ack = SchedulerEvent::Ack { path: PathId(0), acked: &ended };
        daps.on_event(&ack, &bench.view);
        bench.view.path_mut(PathId(0)).unwrap().cwnd = 40;
        daps.on_event(&ack, &bench.view);
        let mut plan = Plan::default();
        daps.make_plan(&bench.view, &mut plan);
        assert_eq!(plan.runs()[0], Run { path: PathId(0), segments: 3 * 12 });
    }

    #[test]
    fn a_full_window_is_freed_through_the_fastest_path() {
        let mut bench = Bench::with_window(&[path(0, 20, 2, 0), path(1, 60, 3, 0)], 9 * MSS);
        bench.write(20);
        let mut daps = Daps::new(PULL);
        for _ in 0..3 {
            bench.round(&mut daps);
            let sent = bench.send(0).len() as u32;
            bench.send(1);
            bench.acked(0, sent);
        }
        assert!(bench.view.window_blocked());
        bench.round(&mut daps);
        assert_eq!(bench.send(0), [6, 7]);
        bench.acked(0, 2);
        bench.round(&mut daps);
        assert_eq!(bench.send(0), [8]);
        bench.acked(0, 1);
        bench.round(&mut daps);
        assert_eq!(bench.send(0), []);
    }

    #[test]
    fn without_samples_it_is_min_rtt() {
        let mut bench = Bench::new(&[path(0, 20, 2, 0), path(1, 60, 3, 0)]);
        bench.view.path_mut(PathId(1)).unwrap().srtt = None;
        bench.write(4);
        bench.round(&mut Daps::new(PULL));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1], vec![2, 3]));
    }
}
