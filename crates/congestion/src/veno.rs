//! TCP Veno: distinguishes random loss from congestion by the backlog in the queue (Fu and Liew).

use crate::delay::{Round, Samples};
use crate::single::{SinglePath, Uncoupled};
use crate::window::{MIN_SSTHRESH, WindowState, whole};
use anabranch_plugin::CongestionControl;
use anabranch_plugin::congestion::Acked;
use anabranch_plugin::registry::{Entry, Handle, number};
use anabranch_plugin::schedule::PathView;
use anabranch_units::{Duration, Instant};

/// Registry entry.
pub const ENTRY: Entry<dyn CongestionControl> = Entry {
    name: "veno",
    aliases: &[],
    about: "Veno per subflow, uncoupled: Reno with a smaller decrease after losses without a queue",
    page: PAGE,
    parameters: &[BETA.parameter],
    build: |parameters| Box::new(Uncoupled::new(Veno { beta: BETA.of(parameters), backlog: Backlog::default() })),
};

/// The parameter of Veno, mVeno and MPVeno.
pub(crate) const BETA: Handle<f64> =
    number("beta", 3.0, 0.0..=1000.0).unit("packets").about("a backlog of this many and more means congestion");

const PAGE: &str = "\
## Idea
Estimate, as Vegas does, how many of the flow's packets wait in queues. A loss with a short queue is random, as on
wireless links: reduce the window by a fifth, not by half. With a long queue grow half as fast, to stay longer at the
operating point.

## Rule
base = least RTT ever, rtt = least RTT of the last round with three samples or more, N = w (rtt - base) / rtt.
Congestion avoidance, per acknowledged packet: w += 1/w if N < beta, else w += 1/(2w).
Loss or ECN mark, once per episode: ssthresh = floor(4w/5) if N < beta, else floor(w/2); at least 2; w = ssthresh.
Retransmission timeout: the same ssthresh, w = 1. Slow start as Reno.

## When it helps
On wireless paths with random loss and moderate queues, without harm to a Reno flow beside it.

## When it hurts
With very shallow queues every loss looks random. Where the delay varies without load, random losses look like
congestion.

## Departures
The increase is spread over the round, half of it per packet, where Linux skips every second step. N is taken from
the least RTT of a whole round, as in the paper; Linux's module uses the last sample only. Before the first such round
the decrease is Reno's: no measurement shows that the loss was random.

## References
C. P. Fu, S. C. Liew, \"TCP Veno: TCP enhancement for transmission over wireless access networks\", IEEE JSAC 21(2), 2003;
Linux's tcp_veno.
";

/// The share of a window that waits in queues.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    samples: Samples,
    /// The share of the last round's RTT that was queueing.
    waiting: Option<f64>,
}

impl Backlog {
    /// Takes the sample of an acknowledgment.
    pub fn on_ack(&mut self, ack: &Acked) {
        if let Some(Round::Measured(delays)) = self.samples.on_ack(ack) {
            self.waiting = Some(delays.least.saturating_sub(delays.base).as_secs_f64() / delays.least.as_secs_f64());
        }
    }

    /// N: packets of `window` that wait. `None` before the first measured round.
    fn packets(&self, window: &WindowState) -> Option<f64> {
        Some(f64::from(window.cwnd()) * self.waiting?)
    }

    /// The share of Reno's increase that applies.
    pub fn gain(&self, window: &WindowState, beta: f64) -> f64 {
        if self.packets(window).is_some_and(|n| n >= beta) { 0.5 } else { 1.0 }
    }

    /// The window after a loss, in packets.
    pub fn remains(&self, window: &WindowState, beta: f64) -> f64 {
        let random = self.packets(window).is_some_and(|n| n < beta);
        f64::from(window.cwnd()) * if random { 0.8 } else { 0.5 }
    }
}

/// Veno on one subflow.
#[derive(Clone, Debug)]
pub struct Veno {
    beta: f64,
    backlog: Backlog,
}

impl SinglePath for Veno {
    fn on_ack(&mut self, window: &mut WindowState, ack: &Acked, _path: &PathView) {
        self.backlog.on_ack(ack);
        let acked = window.slow_start(ack);
        if acked > 0 {
            let gain = self.backlog.gain(window, self.beta);
            window.add(f64::from(acked) * gain / f64::from(window.cwnd()));
        }
    }

    fn ssthresh(&mut self, window: &WindowState) -> u32 {
        whole(self.backlog.remains(window, self.beta)).max(MIN_SSTHRESH)
    }

    fn on_idle(&mut self, window: &mut WindowState, _now: Instant, idle: Duration, rto: Duration) {
        self.backlog = Backlog::default();
        window.restart(idle, rto);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::delay::tests::round;
    use anabranch_plugin::congestion::Loss;
    use anabranch_units::PathId;

    /// The backlog after a round of `base` ms and one of `rtt` ms.
    pub(crate) fn backlog(base: u64, rtt: u64) -> Backlog {
        let mut backlog = Backlog::default();
        for ms in [base, rtt] {
            round(&[ms + 7, ms, ms + 3]).iter().for_each(|ack| backlog.on_ack(ack));
        }
        backlog
    }

    fn veno(base: u64, rtt: u64) -> Veno {
        Veno { beta: BETA.parameter.default, backlog: backlog(base, rtt) }
    }

    #[test]
    fn vectors() {
        for (w, rtt, n, ssthresh) in [(20, 110, 1.82, 16), (20, 125, 4.0, 10), (20, 118, 3.05, 10)] {
            let (mut v, mut window) = (veno(100, rtt), WindowState::at(w, 10));
            let found = v.backlog.packets(&window).expect("measured");
            assert!((found - n).abs() < 0.005, "{found} is not {n}");
            v.on_loss(&mut window, Instant::ZERO, Loss::Fast, &PathView::new(PathId(0), 1400));
            assert_eq!((window.cwnd(), window.ssthresh()), (ssthresh, ssthresh), "{rtt}");
        }
    }

    #[test]
    fn a_long_queue_halves_the_increase() {
        for (rtt, window_after) in [(110, 20.05), (125, 20.025)] {
            let (mut v, mut window) = (veno(100, rtt), WindowState::at(20, 10));
            v.on_ack(&mut window, &crate::linked::tests::ack(1), &PathView::new(PathId(0), 1400));
            assert_eq!(window.exact(), window_after);
        }
    }

    #[test]
    fn nothing_measured_is_reno_and_so_is_the_time_after_idling() {
        let (mut v, mut window) = (veno(100, 100), WindowState::at(20, 10));
        assert_eq!(v.ssthresh(&window), 16);
        v.on_idle(&mut window, Instant::ZERO, Duration::ZERO, Duration::from_secs(1));
        assert_eq!(v.ssthresh(&window), 10);
        assert_eq!(v.ssthresh(&WindowState::at(2, 2)), 2);
    }
}
