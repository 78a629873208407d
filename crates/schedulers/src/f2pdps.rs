//! F²P-DPS: forward prediction with a model of TCP's losses.

use crate::fps::{self, Fps, grown};
use crate::skip::{Forecast, SkipAhead, rounds};
use anabranch_engine::plugin::{Entry, Parameter, Parameters};
use anabranch_engine::schedule::{PathView, Scheduler};
use anabranch_units::{Duration, PathId};

page!(
    "\
# Idea

As `fps`, but the number of packets that the faster paths will deliver is an expectation over their losses, by
a model of TCP's window. For wireless paths, where losses are no exception.

# Rule

K rounds as in `fps`. With p the probability that a packet is lost (at most 0.5), ρ = ⌈RTO/R⌉, g as in `fps`:

```text
E(w, K) = w + s·E(g(w), K − 1) + (1 − s)·[Q·E(1, K − 1 − ρ) + (1 − Q)·E(max(1, ⌊w/2⌋), K − 2)]
s = (1 − p)^w      no loss in a window             E(w, K ≤ 0) = 0
Q = min(1, 3/w)    a loss needs a timeout (Padhye et al.)
N_i = E(w_i, K_i) − w_i + a_i;  N = ⌊Σ N_i⌋;  the slower path sends the unassigned segments N + 1, N + 2, …
```

Without losses this is `fps`.

# When it helps

Unlike delays with random loss on the fast path, which `fps` over-estimates.

# When it hurts

The estimate of p needs many packets, so it reacts slowly; `f2pdps-ocps` corrects it by feedback.

# Departures

The paper's formulas were not at hand: that the smoothed RTT and the loss rate enter a model of TCP's window is
certain, the model is the choice here. A window counts in full in a round with loss. After a loss ssthresh is
half the window of that time, 2 at least, so a window that was halved grows by a packet a round. Round `horizon`
is the last that is treated so, because the number of cases doubles with each; from there the expected packets x
of a round change by 1 − (x/B)² a round, B being what Padhye et al. expect in the long run. p is the engine's: loss
episodes per packet, over about the last 256 packets. For the rest, see `fps`.

# References

Ni, Xue, Hong, Shen, Fine-grained forward prediction based dynamic packet scheduling mechanism for multipath TCP in
lossy networks, ICCCN 2014; as described by Ni et al., OCPS. Padhye, Firoiu, Towsley, Kurose, Modeling TCP
throughput, SIGCOMM 1998.
"
);

pub(crate) const PARAMETERS: &[Parameter] = &[
    fps::GROWTH,
    Parameter {
        name: "horizon",
        default: 8.0,
        min: 1.0,
        max: 16.0,
        unit: "rounds",
        about: "rounds of which every course of losses is considered",
    },
];

/// The registry's entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "f2pdps",
    aliases: &[],
    about: "FPS with the losses that a TCP model expects",
    page: PAGE,
    parameters: PARAMETERS,
    build: |p| Box::new(SkipAhead::new(F2pDps::new(Config::from(p)))),
};

/// What may be set.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Predicted windows grow.
    pub growth: bool,
    /// Rounds of which every course is considered; at least 1.
    pub horizon: u64,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { growth: p.flag("growth"), horizon: p.get("horizon") as u64 }
    }
}

/// What changes by less than this share in a round has settled.
const SETTLED: f64 = 1e-3;
/// Most rounds beyond the horizon that are followed one by one.
const FOLLOWED: u64 = 256;

/// What an expectation depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Model {
    growth: bool,
    /// Probability of losing a packet, above 0 and at most 0.5.
    loss: f64,
    /// A timeout in round trips.
    timeout: u64,
}

impl Model {
    /// Probability that all packets of a window arrive.
    fn survival(&self, cwnd: f64) -> f64 {
        libm::pow(1.0 - self.loss, cwnd)
    }

    /// E(w, K).
    fn expectation(&self, cwnd: u32, ssthresh: u32, rounds: u64) -> f64 {
        if rounds == 0 {
            return 0.0;
        }
        let now = f64::from(cwnd);
        if rounds == 1 {
            return now;
        }
        let next = if self.growth { grown(cwnd, ssthresh) } else { cwnd };
        let all_arrive = self.survival(now);
        let by_timeout = (3.0 / now).min(1.0);
        let half = cwnd / 2;
        let after =
            |rounds_lost: u64, cwnd: u32| self.expectation(cwnd, half.max(2), rounds.saturating_sub(rounds_lost));
        let lost = by_timeout * after(1 + self.timeout, 1) + (1.0 - by_timeout) * after(2, half.max(1));
        now + all_arrive * self.expectation(next, ssthresh, rounds - 1) + (1.0 - all_arrive) * lost
    }

    /// Packets a round trip in the long run: Padhye et al., SIGCOMM 1998, eq 32, every packet acknowledged.
    fn steady(&self) -> f64 {
        let p = self.loss;
        let repeats = (3.0 * libm::sqrt(3.0 * p / 8.0)).min(1.0) * p * (1.0 + 32.0 * p * p);
        1.0 / (libm::sqrt(2.0 * p / 3.0) + self.timeout as f64 * repeats)
    }

    /// Packets in `rounds` further rounds, when `mean` were sent in the round before.
    fn beyond(&self, mut mean: f64, rounds: u64) -> f64 {
        let steady = self.steady();
        let mut sum = 0.0;
        for done in 0..rounds {
            let change = f64::from(u8::from(self.growth)) - (mean / steady) * (mean / steady);
            let next = if mean > steady { (mean + change).max(steady) } else { (mean + change).min(steady) };
            let settled = (next - mean).max(mean - next) < SETTLED * mean;
            mean = next.max(0.0);
            sum += mean;
            if settled || done + 1 == FOLLOWED {
                return sum + mean * (rounds - done - 1) as f64;
            }
        }
        sum
    }

    /// E(w, K), later rounds than `horizon` by their mean.
    fn packets(&self, cwnd: u32, ssthresh: u32, rounds: u64, horizon: u64) -> f64 {
        if rounds <= horizon {
            return self.expectation(cwnd, ssthresh, rounds);
        }
        let near = self.expectation(cwnd, ssthresh, horizon);
        let last = near - self.expectation(cwnd, ssthresh, horizon - 1);
        near + self.beyond(last, rounds - horizon)
    }
}

/// An expectation and what it was computed for.
#[derive(Clone, Copy, Debug)]
struct Known {
    model: Model,
    window: (u32, u32),
    rounds: u64,
    packets: f64,
}

impl Known {
    /// Good enough for `model`: the estimated loss changes with every packet, and no prediction is that exact.
    fn fits(&self, model: &Model, window: (u32, u32), rounds: u64) -> bool {
        let same = (self.window, self.rounds, self.model.timeout) == (window, rounds, model.timeout);
        let change = self.model.loss - model.loss;
        same && change.max(-change) <= model.loss / 32.0
    }
}

/// The forecast of F²P-DPS.
#[derive(Clone, Debug)]
pub struct F2pDps {
    config: Config,
    lossless: Fps,
    known: [Option<Known>; PathId::LIMIT],
}

impl F2pDps {
    /// A forecast.
    pub fn new(config: Config) -> Self {
        let lossless = Fps::new(fps::Config { growth: config.growth });
        Self { config, lossless, known: [None; PathId::LIMIT] }
    }
}

impl Forecast for F2pDps {
    fn packets(&mut self, path: &PathView, lead: Duration) -> f64 {
        let rounds = rounds(path, lead);
        if path.loss <= 0.0 || rounds == 1 {
            return self.lossless.over(path, rounds);
        }
        let rtt = path.rtt_or_max().as_nanos().max(1);
        let timeout = path.rto.as_nanos().div_ceil(rtt);
        let model = Model { growth: self.config.growth, loss: path.loss.min(0.5), timeout };
        let window = (path.cwnd.max(1), path.ssthresh);
        let known = &mut self.known[path.id.index()];
        let packets = match known {
            Some(known) if known.fits(&model, window, rounds) => known.packets,
            _ => {
                let packets = model.packets(window.0, window.1, rounds, self.config.horizon);
                *known = Some(Known { model, window, rounds, packets });
                packets
            }
        };
        f64::from(path.room()) + packets - f64::from(window.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    const CONFIG: Config = Config { growth: true, horizon: 8 };

    /// A path with ssthresh 0, a timeout of ten round trips, and all its window free.
    fn lossy(cwnd: u32, loss: f64) -> PathView {
        PathView { ssthresh: 0, loss, rto: Duration::from_millis(200), ..path(0, 20, cwnd, 0) }
    }

    #[test]
    fn expectations() {
        for (cwnd, loss, expect) in [(10, 0.0, 33.0), (10, 0.01, 29.9996), (10, 0.05, 22.077), (4, 0.05, 11.947)] {
            let packets = F2pDps::new(CONFIG).packets(&lossy(cwnd, loss), Duration::from_millis(40));
            assert!((packets - expect).abs() < 5e-4, "{cwnd} {loss}: {packets}");
        }
    }

    #[test]
    fn the_sum_is_rounded_down() {
        for (cwnd, loss, expect) in [(10, 0.01, 29), (10, 0.05, 22), (4, 0.05, 11)] {
            let mut bench = Bench::new(&[lossy(cwnd, loss), path(1, 100, 1, 0)]);
            bench.write(100);
            bench.round(&mut SkipAhead::new(F2pDps::new(CONFIG)));
            // The fast path takes its window first.
            assert_eq!(bench.bound(1), [expect]);
        }
    }

    #[test]
    fn without_loss_it_is_fps_whatever_the_distance() {
        let mut fps = Fps::new(fps::Config { growth: true });
        for ms in [0, 20, 40, 500, 5000] {
            let lead = Duration::from_millis(ms);
            let (path, almost) = (lossy(10, 0.0), lossy(10, 1e-9));
            assert_eq!(F2pDps::new(CONFIG).packets(&path, lead), fps.packets(&path, lead));
            let close = F2pDps::new(CONFIG).packets(&almost, lead) / fps.packets(&almost, lead);
            assert!((0.999..=1.0).contains(&close), "{ms} ms: {close}");
        }
    }

    #[test]
    fn later_rounds_by_their_mean_are_near_the_exact_sum() {
        for loss in [0.001, 0.01, 0.1] {
            let model = Model { growth: true, loss, timeout: 10 };
            let (exact, rough) = (model.packets(20, 0, 16, 16), model.packets(20, 0, 16, 8));
            assert!((0.8..1.25).contains(&(rough / exact)), "{loss}: {rough} for {exact}");
        }
    }

    #[test]
    fn a_known_expectation_is_used_until_something_changes() {
        let mut forecast = F2pDps::new(CONFIG);
        let lead = Duration::from_millis(40);
        let first = forecast.packets(&lossy(10, 0.05), lead);
        assert_eq!(forecast.packets(&lossy(10, 0.0501), lead), first);
        // The free window is always the one of the moment.
        assert_eq!(forecast.packets(&PathView { in_flight: 10, ..lossy(10, 0.05) }, lead), first - 10.0);
        assert!(forecast.packets(&lossy(10, 0.06), lead) < first);
        assert!(forecast.packets(&lossy(11, 0.05), lead) > first);
        assert!(forecast.packets(&lossy(10, 0.05), lead * 2) > first);
    }
}
