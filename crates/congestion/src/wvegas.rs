//! wVegas, weighted Vegas (Cao et al.): Vegas on each subflow, coupled by the number of packets that each may queue.

use crate::SinglePath;
use crate::delay::{Delays, share};
use crate::flows::{Flow, Flows, view_of};
use crate::reno::halved;
use crate::vegas::{GAMMA, LEAST, Vegas};
use crate::window::{MIN_SSTHRESH, begins_episode};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss, Window};
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag, number};
use anabranch_plugin::schedule::{PathView, RecoveryPhase};
use anabranch_units::{Duration, Instant, PathId};

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "wvegas",
    aliases: &["weighted-vegas"],
    about: "Weighted Vegas: shares a number of queued packets among the subflows by their rates",
    page: PAGE,
    parameters: &[TOTAL_ALPHA.parameter, INITIAL_ALPHA.parameter, GAMMA.parameter, DRAIN_EARLY.parameter],
    build: |parameters| Box::new(WeightedVegas::new(parameters)),
};

const TOTAL_ALPHA: Handle<f64> =
    number("total_alpha", 10.0, 0.0..=1000.0).unit("packets").about("queued packets of all subflows together");
const INITIAL_ALPHA: Handle<f64> = number("initial_alpha", 2.0, 0.0..=1000.0)
    .unit("packets")
    .about("queued packets of a subflow before its rate is known, and the least");
const DRAIN_EARLY: Handle<bool> = flag("drain_early", false)
    .about("drain in any round, as the Linux module does, not only with alpha packets queued");

const PAGE: &str = "\
## Idea
Vegas equalises the number of packets that each flow keeps in a queue. Give every subflow a share of one total, in
proportion to its rate: traffic moves to the paths with the least queueing, and congestion becomes equal before any loss.

## Rule
Once per round trip with at least three RTT samples: base = least RTT ever, rtt = mean RTT of the round,
diff = floor(w (rtt - base) / rtt).
Slow start: if diff > gamma, w = min(w, floor(w base / rtt) + 1) and ssthresh = min(ssthresh, w); else doubling every round.
Congestion avoidance: if diff >= alpha_r: rate_r = w / rtt, alpha_r = max(initial_alpha, floor(total_alpha rate_r / sum of
rates)). Then w -= 1 if diff > alpha_r, w += 1 if diff < alpha_r; at least 2.
Draining, in rounds with diff >= alpha_r: q = rtt - base, qmin = least q since the last draining; if q >= 2 qmin:
w = floor(w base / (2 rtt)), and qmin is reset.
Reno applies to a round with fewer samples, and until a recovery is over; after it alpha_r and the weight are reset.
Loss, ECN mark and timeout as Reno. One subflow alone is Vegas with its own alpha and beta.

## When it helps
On paths with long queues and no other traffic: it shifts load by delay, earlier than losses would.

## When it hurts
Beside loss-based traffic it starves, as Vegas does. With a few packets in flight, delayed acknowledgments look like
queues.

## Departures
The Linux module compares q in every round, also before alpha_r packets are queued. Then the delay of one packet behind
another, on an empty path, soon doubles, and the window is halved again and again: of idle paths of 20 and 5 Mbit/s it
used 13 % in virtual time (`drain_early` restores that). The module gives a lone subflow total_alpha; a connection with
one path would then differ from its baseline. Draining is computed exactly; the module's 16-bit factor turns 30 packets
at a fifth into 5, not 6. ssthresh becomes w, not w - 1: the module still counts w = ssthresh as slow start. The least
RTT is reset on an idle restart only.

## References
Y. Cao, M. Xu, X. Fu, \"Delay-based congestion control for multipath TCP\", ICNP 2012; the out-of-tree Linux module.
";

/// One instance serves all subflows of a connection.
#[derive(Clone, Debug)]
pub struct WeightedVegas {
    total_alpha: f64,
    initial_alpha: f64,
    gamma: f64,
    drain_early: bool,
    flows: Flows<Weighted>,
}

/// The state of a subflow.
#[derive(Clone, Debug)]
struct Weighted {
    vegas: Vegas,
    /// Packets that the subflow may queue.
    alpha: f64,
    /// Packets per second when alpha was last computed.
    rate: Option<f64>,
    /// Least queueing delay since the last draining.
    least_queue: Option<Duration>,
}

impl Weighted {
    fn new(gamma: f64, alpha: f64) -> Self {
        Self { vegas: Vegas::with_gamma(gamma), alpha, rate: None, least_queue: None }
    }

    /// Resets the coupled state, and keeps the measurements of the path.
    fn restart(&mut self, alpha: f64) {
        self.vegas.restart();
        (self.alpha, self.rate, self.least_queue) = (alpha, None, None);
    }

    /// True if the queueing delay is at least twice its minimum.
    fn must_drain(&mut self, queue: Duration) -> bool {
        if queue.is_zero() {
            return false;
        }
        let least = self.least_queue.map_or(queue, |least| least.min(queue));
        self.least_queue = Some(least);
        queue >= least * 2
    }
}

impl WeightedVegas {
    fn new(parameters: &Parameters<'_>) -> Self {
        let [total_alpha, initial_alpha, gamma] = [TOTAL_ALPHA, INITIAL_ALPHA, GAMMA].map(|p| p.of(parameters));
        let drain_early = DRAIN_EARLY.of(parameters);
        Self { total_alpha, initial_alpha, gamma, drain_early, flows: Flows::default() }
    }

    /// Packets that `id`, now at `rate`, may queue.
    fn alpha(&self, id: PathId, rate: f64) -> f64 {
        let others: f64 = self.flows.iter().filter(|f| f.id != id).filter_map(|f| f.state.rate).sum();
        libm::floor(self.total_alpha * rate / (rate + others)).max(self.initial_alpha)
    }

    /// Adjusts the window of `id`, one of several subflows, after a round.
    fn adjust(&mut self, id: PathId, ack: &Acked, delays: &Delays) {
        let Some(flow) = self.flows.get(id) else { return };
        let (w, mut alpha) = (flow.window.cwnd(), flow.state.alpha);
        let queue = delays.mean.saturating_sub(delays.base);
        let diff = share(w, queue, delays.mean);
        let starting = flow.window.in_slow_start();
        let rate = f64::from(w) / delays.mean.as_secs_f64();
        let reached = !starting && f64::from(diff) >= alpha;
        if reached {
            alpha = self.alpha(id, rate);
        }
        let counts = reached || self.drain_early;
        let Some(Flow { window, state, .. }) = self.flows.get_mut(id) else { return };
        if starting {
            return state.vegas.start(window, ack, diff, share(w, delays.base, delays.mean));
        }
        if reached {
            (state.alpha, state.rate) = (alpha, Some(rate));
        }
        if f64::from(diff) > alpha {
            window.shrink((w - 1).max(LEAST));
        } else if f64::from(diff) < alpha && window.slow_start(ack) > 0 {
            window.add(1.0);
        }
        if counts && state.must_drain(queue) {
            window.shrink(share(window.cwnd(), delays.base, delays.mean * 2).max(LEAST));
            state.least_queue = None;
        }
    }
}

impl CongestionControl for WeightedVegas {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        self.flows.join(id, initial_window, Weighted::new(self.gamma, self.initial_alpha));
    }

    fn on_leave(&mut self, id: PathId) {
        self.flows.leave(id);
    }

    fn on_ack(&mut self, id: PathId, ack: &Acked, paths: &[PathView]) {
        let alone = self.flows.iter().len() == 1;
        let initial_alpha = self.initial_alpha;
        let Some(flow) = self.flows.get_mut(id) else { return };
        let unknown = PathView::new(id, 1);
        let path = view_of(paths, id).unwrap_or(&unknown);
        if alone {
            return flow.state.vegas.on_ack(&mut flow.window, ack, path);
        }
        if path.recovery != RecoveryPhase::Open {
            flow.state.restart(initial_alpha);
        }
        if let Some(delays) = flow.state.vegas.listen(&mut flow.window, ack, path) {
            self.adjust(id, ack, &delays);
        }
    }

    fn on_loss(&mut self, id: PathId, _now: Instant, loss: Loss, _paths: &[PathView]) {
        let initial_alpha = self.initial_alpha;
        let Some(Flow { window, state, .. }) = self.flows.get_mut(id) else { return };
        state.restart(initial_alpha);
        window.on_loss(loss, if begins_episode(loss) { halved(window) } else { MIN_SSTHRESH });
    }

    fn on_undo(&mut self, id: PathId, _now: Instant) {
        if let Some(flow) = self.flows.get_mut(id) {
            flow.window.undo();
        }
    }

    fn on_idle(&mut self, id: PathId, _now: Instant, idle: Duration, rto: Duration) {
        let (gamma, initial_alpha) = (self.gamma, self.initial_alpha);
        if let Some(flow) = self.flows.get_mut(id) {
            flow.state = Weighted::new(gamma, initial_alpha);
            flow.window.restart(idle, rto);
        }
    }

    fn set_threshold(&mut self, id: PathId, ssthresh: u32) {
        self.flows.set_threshold(id, ssthresh);
    }

    fn on_underuse(&mut self, id: PathId, used: u32) {
        self.flows.give_back(id, used);
    }

    fn window(&self, id: PathId) -> Window {
        self.flows.window(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coupled::tests::connection;
    use crate::delay::tests::round;

    const P0: PathId = PathId(0);
    const P1: PathId = PathId(1);

    fn two(windows: [u32; 2]) -> (WeightedVegas, Vec<PathView>) {
        let mut control = WeightedVegas::new(&Parameters::new(ENTRY.parameters, &[]));
        let paths = windows.map(|w| (w, 100, 1400));
        let (flows, views) = connection(&paths, |_| Weighted::new(control.gamma, control.initial_alpha));
        control.flows = flows;
        (control, views)
    }

    /// Plays a round of RTTs of `ms`; returns the window after it.
    fn play(control: &mut WeightedVegas, views: &[PathView], id: PathId, ms: u64) -> u32 {
        round(&[ms, ms, ms]).iter().for_each(|ack| control.on_ack(id, ack, views));
        control.window(id).cwnd
    }

    /// Gives `id` a base RTT of 100 ms.
    fn calm(control: &mut WeightedVegas, id: PathId) {
        control.flows.get_mut(id).expect("joined").state.vegas.know(100);
    }

    #[test]
    fn the_total_is_shared_by_rate() {
        let (mut control, views) = two([30, 10]);
        calm(&mut control, P0);
        calm(&mut control, P1);
        // 10 packets in 100 ms on the other path: .714 and .286 of 10.
        control.flows.get_mut(P1).expect("joined").state.rate = Some(100.0);
        assert_eq!(play(&mut control, &views, P0, 120), 31, "diff 5 of 7");
        let alpha = |control: &WeightedVegas, id| control.flows.get(id).map(|f| f.state.alpha);
        assert_eq!(alpha(&control, P0), Some(7.0));
        assert_eq!(control.alpha(P1, 100.0), 2.0);
        assert_eq!(alpha(&control, P1), Some(2.0));
    }

    #[test]
    fn equal_to_alpha_holds_and_more_shrinks() {
        let (mut control, views) = two([30, 10]);
        calm(&mut control, P0);
        // The other path's rate is far higher, so that 2 remain here.
        control.flows.get_mut(P1).expect("joined").state.rate = Some(1e9);
        assert_eq!(play(&mut control, &views, P0, 120), 29, "diff 5");
        assert_eq!(play(&mut control, &views, P0, 108), 29, "diff 2");
        assert_eq!(play(&mut control, &views, P0, 103), 30, "diff 0");
    }

    #[test]
    fn a_queue_that_doubled_is_drained() {
        let (mut control, views) = two([30, 10]);
        calm(&mut control, P0);
        control.flows.get_mut(P0).expect("joined").state.least_queue = Some(Duration::from_millis(75));
        // diff 18 of 10: 29, and of these 100 / 500. (Of 30 it would be 6; the kernel module's 16-bit factor yields 5.)
        assert_eq!(play(&mut control, &views, P0, 250), 5);
        assert_eq!(control.flows.get(P0).and_then(|f| f.state.least_queue), None);
        assert_eq!(share(30, Duration::from_millis(100), Duration::from_millis(500)), 6);
    }

    #[test]
    fn the_first_queue_is_the_measure() {
        let mut state = Weighted::new(1.0, 2.0);
        assert!(!state.must_drain(Duration::from_millis(10)));
        assert!(!state.must_drain(Duration::from_millis(19)));
        assert!(state.must_drain(Duration::from_millis(20)));
        assert!(!state.must_drain(Duration::from_millis(5)));
        assert!(state.must_drain(Duration::from_millis(10)));
        assert!(!state.must_drain(Duration::ZERO));
        assert_eq!(state.least_queue, Some(Duration::from_millis(5)), "what is empty needs no draining");
    }

    #[test]
    fn below_alpha_nothing_is_drained_unless_asked_for() {
        let after = |drain_early| {
            let (mut control, views) = two([10, 10]);
            control.drain_early = drain_early;
            calm(&mut control, P0);
            // A diff of 0 of 2, with increasing delays.
            [101, 103, 105, 107].map(|ms| play(&mut control, &views, P0, ms))
        };
        assert_eq!(after(false), [11, 12, 13, 14]);
        assert_eq!(after(true), [11, 5, 6, 7], "of 12 at 103 ms 100 in 206");
    }

    #[test]
    fn slow_start_ends_when_the_mean_shows_a_queue() {
        let (mut control, views) = two([30, 10]);
        calm(&mut control, P0);
        control.flows.get_mut(P0).expect("joined").window = crate::WindowState::at(30, 400);
        for mut ack in round(&[120, 120, 120]) {
            ack.counted = 0;
            control.on_ack(P0, &ack, &views);
        }
        let Window { cwnd, ssthresh, .. } = control.window(P0);
        assert_eq!((cwnd, ssthresh), (26, 26));
    }

    #[test]
    fn a_loss_begins_the_weights_anew() {
        let (mut control, views) = two([30, 10]);
        calm(&mut control, P0);
        play(&mut control, &views, P0, 120);
        assert!(control.flows.get(P0).is_some_and(|f| f.state.alpha == 10.0 && f.state.rate.is_some()));
        control.on_loss(P0, Instant::ZERO, Loss::Fast, &views);
        assert!(control.flows.get(P0).is_some_and(|f| f.state.alpha == 2.0 && f.state.rate.is_none()));
        assert_eq!(control.window(P0).cwnd, 15);
    }
}
