//! Peekaboo: learns whether to wait for the fast path or to use the next one.

use crate::linucb::LinUcb;
use crate::pick::{fastest_live, no_choice};
use anabranch_plugin::registry::{Entry, Handle, Parameters, number, whole};
use anabranch_plugin::schedule::{PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, Instant, PathId, Rng};

page!(
    "\
# Idea

When the fast path is full and the next one is not, whether waiting pays off depends on the paths. Learn it: a contextual
bandit chooses between waiting and sending, and its reward is the data acknowledged soon afterwards.

# Rule

F is the path with the lowest RTT, S minRTT's choice while F is full. The context, with R the newest RTT samples,
f in flight, B the waiting data that the peer's window admits, in packets (at most w_F + w_S), in packets per ms:

```text
x = (w_F/R_F, w_S/R_S, f_F/R_F, f_S/R_S, B/R_F, B/R_S)
for each arm a of {wait, send}:  A_a = I, b_a = 0;  θ_a = A_a⁻¹·b_a;  score = θ_a·x + α·√(x·A_a⁻¹·x)
the larger score wins, a tie sends;  after a reward r:  A_a = A_a + x·xᵀ,  b_a = b_a + r·x

reward:  T = max(2·R_F, R_S), g = 1;  for each packet, on whichever path, that was sent after the decision and is
         acknowledged t after it, up to 3·T:  r = r + g/t;  then g = g·0.9, 0.7, 0.5 for t up to T, 2·T, 3·T
```

The first `learn` rewards are collected so. From then on α is 0 and the winner is followed with probability `follow_wait`
or `follow_send`, otherwise the other arm is (stochastic adjustment); learning continues.

After a decision to wait there is no other until F has room.

# When it helps

Paths whose delay and loss vary, where no fixed rule fits for long.

# When it hurts

Short transfers end before anything is learned. On steady paths, decisions that are not followed are costly: once it
waits, the slow path rests until F has room, so that at `follow_send` = 0.9 it sends ten packets on average per opening
of F's window. Where the fast path's window is one or two packets, that is nearly all the traffic. A packet's reward is
1/t: a slow path that delivers seconds later, behind a full queue, earns almost no reward, and its use is random.

# Departures

The paper's text was not available: the rule is that of its public ports, whose rewards differ; this one is the ns-3
port's, with packets in place of bytes. Only packets sent after the decision count, by the choice made here: earlier
packets arrive whatever the decision, and arrive first. `alpha`, `follow_wait` and `follow_send` are those of a public
port. Without a source, and chosen here: the 100 rewards of `learn`; a limit of 8 decisions observed at a time; a
decision whose g falls below 1/1000 is finished. (A decision beyond the limit is taken, but nothing is learned from it.)

Its random numbers come from one stream per connection, derived from the run's seed, and its knowledge ends with the
connection. With more than two paths S is minRTT's choice, which may be any path. A path without an RTT sample is used
without a decision.

# References

Wu, Alay, Brunstrom, Ferlin, Caso, Peekaboo: Learning-Based Multipath Scheduling for Dynamic Heterogeneous
Environments, IEEE Journal on Selected Areas in Communications 38(10), 2020. LinUCB: Li et al., A contextual-bandit
approach to personalized news article recommendation, WWW 2010.
"
);

const ALPHA: Handle<f64> = number("alpha", 0.75, 0.0..=100.0).about("weight of the uncertainty while learning");
const LEARN: Handle<u64> = whole("learn", 100, 0..=1_000_000_000)
    .unit("rewards")
    .about("rewards collected before decisions are adjusted at random instead of explored");
const FOLLOW_WAIT: Handle<f64> =
    number("follow_wait", 0.7, 0.0..=1.0).about("probability of waiting when waiting wins");
const FOLLOW_SEND: Handle<f64> =
    number("follow_send", 0.9, 0.0..=1.0).about("probability of sending when sending wins");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "peekaboo",
    aliases: &[],
    about: "learn whether to wait for the fast path or to use the next",
    page: PAGE,
    parameters: &[ALPHA.parameter, LEARN.parameter, FOLLOW_WAIT.parameter, FOLLOW_SEND.parameter],
    build: |p| Box::new(Peekaboo::new(p.into())),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Weight of the uncertainty while learning.
    pub alpha: f64,
    /// Rewards to collect before deciding.
    pub learn: u64,
    /// Probabilities of following `wait` and `send`.
    pub follow: [f64; 2],
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        let follow = [FOLLOW_WAIT.of(p), FOLLOW_SEND.of(p)];
        Self { alpha: ALPHA.of(p), learn: LEARN.of(p), follow }
    }
}

/// Entries of a context.
const FEATURES: usize = 6;
/// Decisions observed at a time.
const OBSERVED: usize = 8;
/// The arms, by their index.
const WAIT: usize = 0;
const SEND: usize = 1;

/// A decision whose reward is being collected.
#[derive(Clone, Copy, Debug)]
struct Trial {
    arm: usize,
    context: [f64; FEATURES],
    at: Instant,
    /// Rewards weigh less after each of these, and end after three.
    horizon: Duration,
    reward: f64,
    weight: f64,
}

/// A weight below this adds nothing relevant.
const LEAST_WEIGHT: f64 = 1e-3;

impl Trial {
    /// Packets were acknowledged, the newest of which was sent at `sent`.
    fn on_ack(&mut self, now: Instant, sent: Instant, packets: u32) {
        if sent < self.at {
            return;
        }
        let elapsed = now.since(self.at).max(Duration::from_micros(1));
        if elapsed > self.horizon * 3 {
            return;
        }
        let factor = match elapsed {
            t if t <= self.horizon => 0.9,
            t if t <= self.horizon * 2 => 0.7,
            _ => 0.5,
        };
        for _ in 0..packets {
            if self.weight < LEAST_WEIGHT {
                return;
            }
            self.reward += self.weight / (elapsed.as_secs_f64() * 1e3);
            self.weight *= factor;
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        self.weight < LEAST_WEIGHT || now.since(self.at) > self.horizon * 3
    }
}

/// Peekaboo.
#[derive(Debug)]
pub struct Peekaboo {
    config: Config,
    arms: [LinUcb<FEATURES>; 2],
    trials: Vec<Trial>,
    rewards: u64,
    /// The path for which it waits until that has room.
    waiting: Option<PathId>,
    rng: Rng,
}

/// The context of a decision, and the horizon of its reward. `None` without RTT samples.
fn context(view: &View, fast: &PathView, slow: &PathView) -> Option<([f64; FEATURES], Duration)> {
    let [fast_rtt, slow_rtt] = [fast, slow].map(|p| p.latest_rtt.or(p.srtt));
    let (fast_rtt, slow_rtt) = (fast_rtt?, slow_rtt?);
    let first = view.backlog().first().map_or(0, |first| first.start);
    let bytes = view.backlog().bytes().min(view.window_edge().saturating_sub(first));
    let windows = f64::from(fast.cwnd) + f64::from(slow.cwnd);
    let waiting = (bytes as f64 / f64::from(fast.mss.max(1))).min(windows);
    let per_ms = |packets: f64, rtt: Duration| packets / (rtt.as_secs_f64() * 1e3).max(1e-3);
    let x = [
        per_ms(f64::from(fast.cwnd), fast_rtt),
        per_ms(f64::from(slow.cwnd), slow_rtt),
        per_ms(f64::from(fast.in_flight), fast_rtt),
        per_ms(f64::from(slow.in_flight), slow_rtt),
        per_ms(waiting, fast_rtt),
        per_ms(waiting, slow_rtt),
    ];
    Some((x, (fast_rtt * 2).max(slow_rtt)))
}

impl Peekaboo {
    /// A scheduler before learning.
    pub fn new(config: Config) -> Self {
        let rng = Rng::stream(0, "peekaboo");
        Self { config, arms: [LinUcb::default(); 2], trials: Vec::new(), rewards: 0, waiting: None, rng }
    }

    /// The arm to pull.
    fn choose(&mut self, context: &[f64; FEATURES]) -> usize {
        let learning = self.rewards < self.config.learn;
        let alpha = if learning { self.config.alpha } else { 0.0 };
        let wins =
            if self.arms[WAIT].score(context, alpha) > self.arms[SEND].score(context, alpha) { WAIT } else { SEND };
        if learning || self.rng.chance(self.config.follow[wins]) { wins } else { 1 - wins }
    }

    /// Decides whether to wait instead of using `slow`.
    fn waits(&mut self, view: &View, fast: &PathView, slow: &PathView) -> bool {
        let Some((context, horizon)) = context(view, fast, slow) else { return false };
        let arm = self.choose(&context);
        if self.trials.len() < OBSERVED {
            self.trials.push(Trial { arm, context, at: view.now(), horizon, reward: 0.0, weight: 1.0 });
        }
        arm == WAIT
    }

    /// Learns from the trials that are over.
    fn learn(&mut self, now: Instant) {
        let (arms, rewards) = (&mut self.arms, &mut self.rewards);
        self.trials.retain(|trial| {
            if trial.is_over(now) {
                arms[trial.arm].learn(&trial.context, trial.reward);
                *rewards += 1;
            }
            !trial.is_over(now)
        });
    }
}

impl Scheduler for Peekaboo {
    fn seed(&mut self, rng: Rng) {
        self.rng = rng;
    }

    fn schedule(&mut self, round: &mut Round<'_>) {
        let Some(fast) = fastest_live(round).copied() else { return };
        if self.waiting.is_some_and(|path| path != fast.id || fast.eligible()) {
            self.waiting = None;
        }
        if no_choice(round) {
            round.fill(fast.id);
            return;
        }
        if fast.eligible() && !round.fill(fast.id) || self.waiting.is_some() {
            return;
        }
        self.learn(round.now());
        while let Some(slow) = round.fastest_eligible().copied() {
            if round.next_new(0, slow.mss).is_none_or(|next| next.end > round.window_edge()) {
                return;
            }
            let fast = round.path(fast.id).copied().unwrap_or(fast);
            if self.waits(round, &fast, &slow) {
                self.waiting = Some(fast.id);
                return;
            }
            round.send_next(slow.id);
        }
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, _view: &View) {
        if let SchedulerEvent::Ack { acked, .. } = event {
            let Some(rtt) = acked.rtt else { return };
            let sent = Instant::from_nanos(acked.now.since(Instant::ZERO + rtt).as_nanos());
            self.trials.iter_mut().for_each(|trial| trial.on_ack(acked.now, sent, acked.packets));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, MSS, path};

    const DEFAULT: Config = Config { alpha: 0.75, learn: 100, follow: [0.7, 0.9] };

    #[test]
    fn rewards_weigh_less_the_later_they_come() {
        // R = 20 and 60: T = 60. Packets of 1400 bytes at 20, 50 and 90 ms: 70 + 25.2 + 12.6 bytes per ms.
        let bench = Bench::new(&[path(0, 20, 10, 10), path(1, 60, 10, 0)]);
        let (context, horizon) = context(&bench.view, &bench.view.paths()[0], &bench.view.paths()[1]).unwrap();
        assert_eq!(horizon, Duration::from_millis(60));
        let mut trial = Trial { arm: SEND, context, at: Instant::ZERO, horizon, reward: 0.0, weight: 1.0 };
        let mut seen = Vec::new();
        for ms in [20, 50, 90, 150, 181] {
            trial.on_ack(Instant::from_millis(ms), Instant::ZERO, 1);
            seen.push(((trial.reward * 1400.0 * 10.0).round(), (trial.weight * 1000.0).round()));
        }
        let after_150 = (1400.0f64 * 0.567 / 150.0 + 107.8) * 10.0;
        assert_eq!(seen[..3], [(700.0, 900.0), (952.0, 810.0), (1078.0, 567.0)]);
        assert_eq!(seen[3], (after_150.round(), (283.5f64).round()));
        assert_eq!(seen[4], seen[3], "beyond 3·T");
        assert!(trial.is_over(Instant::from_millis(181)) && !trial.is_over(Instant::from_millis(180)));
    }

    #[test]
    fn rewards_are_awaited_for_two_fast_round_trips_or_a_slow_one() {
        for (fast, slow, expect) in [(20, 30, 40), (20, 60, 60)] {
            let bench = Bench::new(&[path(0, fast, 10, 10), path(1, slow, 10, 0)]);
            let (_, horizon) = context(&bench.view, &bench.view.paths()[0], &bench.view.paths()[1]).unwrap();
            assert_eq!(horizon, Duration::from_millis(expect));
        }
    }

    #[test]
    fn what_was_sent_before_the_decision_is_no_reward() {
        let at = Instant::from_millis(50);
        let horizon = Duration::from_millis(60);
        let mut trial = Trial { arm: WAIT, context: [0.0; FEATURES], at, horizon, reward: 0.0, weight: 1.0 };
        trial.on_ack(Instant::from_millis(51), Instant::from_millis(49), 10);
        assert_eq!(trial.reward, 0.0);
        trial.on_ack(Instant::from_millis(60), Instant::from_millis(50), 2);
        assert!((trial.reward - 0.19).abs() < 1e-12 && (trial.weight - 0.81).abs() < 1e-12);
    }

    #[test]
    fn the_context_is_in_packets_per_ms() {
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 50, 20, 5)]);
        bench.write(1000);
        let x = |bench: &Bench| context(&bench.view, &bench.view.paths()[0], &bench.view.paths()[1]).unwrap().0;
        assert_eq!(x(&bench), [0.5, 0.4, 0.5, 0.1, 1.5, 0.6], "both windows hold no more than 30");
        bench = Bench::with_window(&[path(0, 20, 10, 10), path(1, 50, 20, 5)], 10 * MSS);
        bench.write(1000);
        assert_eq!(x(&bench)[4..], [0.5, 0.2]);
        bench.view.path_mut(PathId(1)).unwrap().srtt = None;
        bench.view.path_mut(PathId(1)).unwrap().latest_rtt = None;
        assert!(context(&bench.view, &bench.view.paths()[0], &bench.view.paths()[1]).is_none());
    }

    /// A fast path that is full, a slow one with room.
    fn full_fast() -> Bench {
        let mut bench = Bench::new(&[path(0, 20, 10, 10), path(1, 60, 10, 0)]);
        bench.write(100);
        bench
    }

    /// A scheduler that has learned that `arm` pays off.
    fn convinced(config: Config, arm: usize) -> Peekaboo {
        let mut peekaboo = Peekaboo::new(config);
        let bench = full_fast();
        let (context, _) = context(&bench.view, &bench.view.paths()[0], &bench.view.paths()[1]).unwrap();
        for _ in 0..50 {
            peekaboo.arms[arm].learn(&context, 1.0);
            peekaboo.arms[1 - arm].learn(&context, 0.1);
        }
        peekaboo.rewards = 100;
        peekaboo
    }

    #[test]
    fn the_first_decision_is_a_tie_and_sends() {
        let mut bench = full_fast();
        let mut peekaboo = Peekaboo::new(DEFAULT);
        bench.round(&mut peekaboo);
        assert!(!bench.bound(1).is_empty());
        assert_eq!(peekaboo.trials[0].arm, SEND);
    }

    #[test]
    fn what_was_learned_is_followed_and_waiting_lasts_until_the_fast_path_has_room() {
        let certain = Config { follow: [1.0, 1.0], ..DEFAULT };
        let mut bench = full_fast();
        bench.round(&mut convinced(certain, SEND));
        assert_eq!(bench.bound(1).len(), 10);

        let mut bench = full_fast();
        let mut peekaboo = convinced(certain, WAIT);
        bench.round(&mut peekaboo);
        assert_eq!((bench.bound(1), peekaboo.waiting, peekaboo.trials.len()), (vec![], Some(PathId(0)), 1));
        bench.round(&mut peekaboo);
        assert_eq!(peekaboo.trials.len(), 1, "no other decision");
        bench.acked(0, 2);
        bench.round(&mut peekaboo);
        assert_eq!((bench.bound(0), peekaboo.trials.len()), (vec![0, 1], 2));
    }

    #[test]
    fn the_adjustment_is_at_random_and_reproducible() {
        let chosen = |arm, seed| {
            let mut peekaboo = convinced(DEFAULT, arm);
            peekaboo.seed(Rng::stream(seed, "test"));
            let bench = full_fast();
            let (x, _) = context(&bench.view, &bench.view.paths()[0], &bench.view.paths()[1]).unwrap();
            (0..1000).map(|_| peekaboo.choose(&x)).collect::<Vec<_>>()
        };
        for (arm, expect) in [(WAIT, 650..750), (SEND, 850..950)] {
            let [followed, not] = [arm, 1 - arm].map(|one| chosen(arm, 1).iter().filter(|arm| **arm == one).count());
            assert!(expect.contains(&followed), "{followed}");
            assert_eq!(followed + not, 1000, "there are two arms");
            assert_eq!(chosen(arm, 1), chosen(arm, 1));
            assert_ne!(chosen(arm, 1), chosen(arm, 2));
        }
    }

    #[test]
    fn rewards_are_gathered_for_a_bounded_number_of_decisions() {
        let mut peekaboo = Peekaboo::new(DEFAULT);
        let mut bench = full_fast();
        for n in 0..20 {
            bench.at(n);
            bench.round(&mut peekaboo);
            bench.send(1);
            bench.acked(1, bench.view.paths()[1].in_flight);
        }
        assert_eq!((peekaboo.trials.len(), peekaboo.rewards), (OBSERVED, 0));
        bench.write(100);
        for _ in 0..100 {
            bench.tell_ack(&mut peekaboo, 0, 45, 1);
        }
        bench.at(45);
        bench.round(&mut peekaboo);
        assert_eq!(peekaboo.rewards, OBSERVED as u64);
    }
}
