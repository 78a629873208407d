//! TCP Vegas: keep a few packets queued, no more (Brakmo and Peterson).

use crate::delay::{Delays, Round, Samples, share};
use crate::reno::{Reno, halved};
use crate::single::{SinglePath, Uncoupled};
use crate::window::{MIN_SSTHRESH, WindowState, begins_episode};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::{Acked, Loss};
use anabranch_plugin::registry::{Entry, Handle, Parameters, number};
use anabranch_plugin::schedule::{PathView, RecoveryPhase};
use anabranch_units::{Duration, Instant};

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "vegas",
    aliases: &[],
    about: "Vegas per subflow, uncoupled: keeps a few packets in the queue, estimated from the round-trip time",
    page: PAGE,
    parameters: &[ALPHA.parameter, BETA.parameter, GAMMA.parameter],
    build: |parameters| Box::new(Uncoupled::new(Vegas::new(parameters))),
};

const ALPHA: Handle<f64> =
    number("alpha", 2.0, 0.0..=1000.0).unit("packets").about("the window grows while fewer are queued");

const BETA: Handle<f64> =
    number("beta", 4.0, 0.0..=1000.0).unit("packets").about("the window shrinks while more are queued");

/// The parameter of Vegas and wVegas.
pub(crate) const GAMMA: Handle<f64> =
    number("gamma", 1.0, 0.0..=1000.0).unit("packets").about("slow start ends when more are queued");

const PAGE: &str = "\
## Idea
The round-trip time shows how many of the flow's packets wait in queues. Keep that number between alpha and beta: the
link is busy, and neither delay nor loss grows.

## Rule
Once per round trip with at least three RTT samples: base = least RTT ever, rtt = least RTT of the round,
diff = floor(w (rtt - base) / base).
Congestion avoidance: w -= 1 if diff > beta, w += 1 if diff < alpha; at least 2.
Slow start, doubling every round: if diff > gamma, w = min(w, floor(w base / rtt) + 1) and ssthresh = min(ssthresh, w).
Reno applies to a round with fewer samples, and until a recovery is over. Loss, ECN mark and timeout: as Reno.

## When it helps
Alone, or beside other Vegas flows: full links with short queues, and no losses of its own making.

## When it hurts
It starves beside Reno or CUBIC, which fill the queue that Vegas keeps short. A path whose delay rises permanently, or
varies without load, looks congested.

## Departures
diff is divided by base as in Linux; the paper divides by rtt, which is less where the queue is long. As in Linux too,
slow start doubles every round, not every second one. The least RTT is reset when the subflow restarts after idling;
Linux resets it whenever data is sent with nothing in flight.

## References
L. Brakmo, L. Peterson, \"TCP Vegas: end to end congestion avoidance on a global Internet\", IEEE JSAC 13(8), 1995;
Linux's tcp_vegas.
";

/// Vegas on one subflow.
#[derive(Clone, Debug)]
pub struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    samples: Samples,
}

/// The least window, in packets, that delay may cause.
pub(crate) const LEAST: u32 = 2;

impl Vegas {
    fn new(parameters: &Parameters<'_>) -> Self {
        let [alpha, beta, gamma] = [ALPHA, BETA, GAMMA].map(|p| p.of(parameters));
        Self { alpha, beta, gamma, samples: Samples::default() }
    }

    /// The default bounds in congestion avoidance.
    pub(crate) fn with_gamma(gamma: f64) -> Self {
        Self { alpha: ALPHA.parameter.default, beta: BETA.parameter.default, gamma, samples: Samples::default() }
    }

    /// Takes an acknowledgment. Returns a finished round, for the caller to act on; everything else is Reno's, and done
    /// here.
    pub(crate) fn listen(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView) -> Option<Delays> {
        if path.recovery != RecoveryPhase::Open {
            self.samples.restart();
            Reno.on_ack(window, ack, path);
            return None;
        }
        match self.samples.on_ack(ack) {
            Some(Round::Measured(delays)) => return Some(delays),
            // One packet per round is Reno's increase.
            Some(Round::Silent) if window.slow_start(ack) > 0 => window.add(1.0),
            Some(Round::Silent) => {}
            None => {
                window.slow_start(ack);
            }
        }
        None
    }

    /// Slow start continues, or ends because `diff` packets are queued.
    pub(crate) fn start(&self, window: &mut WindowState, ack: &Acked, diff: u32, target: u32) {
        if f64::from(diff) > self.gamma {
            window.shrink((target.saturating_add(1)).max(LEAST));
        } else {
            window.slow_start(ack);
        }
    }

    fn adjust(&self, window: &mut WindowState, ack: &Acked, delays: &Delays) {
        let w = window.cwnd();
        let Delays { base, least, .. } = *delays;
        let diff = share(w, least.saturating_sub(base), base);
        if window.in_slow_start() {
            self.start(window, ack, diff, share(w, base, least));
        } else if f64::from(diff) > self.beta {
            window.shrink((w - 1).max(LEAST));
        } else if f64::from(diff) < self.alpha && window.slow_start(ack) > 0 {
            window.add(1.0);
        }
    }

    /// A path whose round-trip time without a queue is known.
    #[cfg(test)]
    pub(crate) fn know(&mut self, base_ms: u64) {
        self.samples.on_ack(&crate::delay::tests::round(&[base_ms])[0]);
    }

    pub(crate) fn restart(&mut self) {
        self.samples.restart();
    }

    pub(crate) fn forget(&mut self) {
        self.samples = Samples::default();
    }
}

impl SinglePath for Vegas {
    fn on_ack(&mut self, window: &mut WindowState, ack: &Acked, path: &PathView) {
        if let Some(delays) = self.listen(window, ack, path) {
            self.adjust(window, ack, &delays);
        }
    }

    fn ssthresh(&mut self, window: &WindowState) -> u32 {
        halved(window)
    }

    fn on_loss(&mut self, window: &mut WindowState, _now: Instant, loss: Loss, _path: &PathView) {
        self.restart();
        window.on_loss(loss, if begins_episode(loss) { self.ssthresh(window) } else { MIN_SSTHRESH });
    }

    fn on_idle(&mut self, window: &mut WindowState, _now: Instant, idle: Duration, rto: Duration) {
        self.forget();
        window.restart(idle, rto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::tests::round;
    use anabranch_units::PathId;

    fn vegas() -> Vegas {
        Vegas::new(&Parameters::new(ENTRY.parameters, &[]))
    }

    fn open() -> PathView {
        PathView::new(PathId(0), 1400)
    }

    /// The window after a round with a least RTT of `rtt` ms, which follows a neutral one of 100 ms.
    fn after(w: u32, ssthresh: u32, base: u64, rtt: u64) -> (u32, u32) {
        let (mut v, mut window) = (vegas(), WindowState::at(w, ssthresh));
        v.know(base);
        for mut ack in round(&[rtt + 5, rtt, rtt + 9]) {
            // Acknowledgments within a round would add slow start's growth.
            ack.counted = u32::from(ack.round_ended);
            v.on_ack(&mut window, &ack, &open());
        }
        (window.cwnd(), window.ssthresh())
    }

    #[test]
    fn vectors() {
        assert_eq!(after(30, 10, 100, 120), (29, 10), "diff 6");
        assert_eq!(after(30, 10, 100, 105), (31, 10), "diff 1");
        assert_eq!(after(20, 10, 100, 125), (19, 10), "diff 5");
        assert_eq!(after(20, 10, 100, 110), (20, 10), "diff 2: hold");
        assert_eq!(after(20, 10, 100, 124), (20, 10), "diff 4: hold");
        assert_eq!(after(30, 40, 100, 120), (26, 26), "slow start ends");
        assert_eq!(after(30, 40, 100, 103), (31, 40), "slow start goes on");
    }

    #[test]
    fn a_window_of_two_does_not_shrink() {
        assert_eq!(after(2, 2, 10, 1000), (2, 2));
        assert_eq!(after(3, 3, 10, 1000), (2, 2));
    }

    #[test]
    fn without_samples_a_round_adds_a_packet() {
        let (mut v, mut window) = (vegas(), WindowState::at(20, 10));
        for ack in round(&[100, 400]) {
            v.on_ack(&mut window, &ack, &open());
        }
        assert_eq!(window.cwnd(), 21);
    }

    #[test]
    fn a_round_adds_nothing_where_the_window_is_not_the_limit() {
        for rtts in [&[100, 100][..], &[100, 100, 100]] {
            let (mut v, mut window) = (vegas(), WindowState::at(20, 10));
            for mut ack in round(rtts) {
                ack.cwnd_limited = false;
                v.on_ack(&mut window, &ack, &open());
            }
            assert_eq!(window.cwnd(), 20);
        }
    }

    #[test]
    fn what_was_measured_before_a_loss_does_not_count() {
        let (mut v, mut window) = (vegas(), WindowState::at(40, 10));
        v.know(100);
        let [first, second, last] = &round(&[200, 200, 200])[..] else { panic!("three") };
        v.on_ack(&mut window, first, &open());
        v.on_ack(&mut window, second, &open());
        v.on_loss(&mut window, Instant::ZERO, Loss::Fast, &open());
        v.on_ack(&mut window, last, &open());
        assert_eq!(window.cwnd(), 21, "one sample tells nothing of a queue");
    }

    #[test]
    fn a_loss_halves_and_recovery_is_renos() {
        let (mut v, mut window) = (vegas(), WindowState::at(20, 10));
        v.on_ack(&mut window, &round(&[100])[0], &open());
        v.on_loss(&mut window, Instant::ZERO, Loss::Fast, &open());
        assert_eq!((window.cwnd(), window.ssthresh()), (10, 10));
        let recovering = PathView { recovery: RecoveryPhase::Disorder, ..open() };
        for _ in 0..10 {
            round(&[900]).iter().for_each(|ack| v.on_ack(&mut window, ack, &recovering));
        }
        assert_eq!(window.cwnd(), 11, "ten acknowledgments at Reno's rate");
        v.on_loss(&mut window, Instant::ZERO, Loss::Timeout { again: false }, &open());
        assert_eq!((window.cwnd(), window.ssthresh()), (1, 5));
    }

    #[test]
    fn idling_forgets_the_least_round_trip_time() {
        let (mut v, mut window) = (vegas(), WindowState::at(30, 10));
        round(&[100, 100, 100]).iter().for_each(|ack| v.on_ack(&mut window, ack, &open()));
        v.on_idle(&mut window, Instant::ZERO, Duration::ZERO, Duration::from_secs(1));
        round(&[200, 200, 200]).iter().for_each(|ack| v.on_ack(&mut window, ack, &open()));
        assert_eq!(window.cwnd(), 32, "200 ms is the path's own delay now");
    }
}
