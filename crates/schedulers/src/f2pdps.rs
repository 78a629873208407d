//! F²P-DPS: forward prediction with a model of TCP's losses.

use crate::fps::{self, Fps, GROWTH, grown};
use crate::skip::{Forecast, SkipAhead, rounds};
use anabranch_plugin::registry::{Entry, Handle, Parameters, whole};
use anabranch_plugin::schedule::{PathView, Scheduler};
use anabranch_units::{Duration, PathId};

page!(
    "\
# Idea

As `fps`, but the number of packets that the faster paths will deliver is an expectation over their losses, by
a model of TCP's window. For wireless paths, where losses are common.

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

Different delays with random loss on the fast path, which `fps` over-estimates.

# When it hurts

The estimate of p needs many packets, so it reacts slowly; `f2pdps-ocps` corrects it by feedback.

# Departures

The paper's formulas were not available. Smoothed RTT and loss rate enter a model of TCP's window; the model is the
choice here. A window counts in full in a round with loss. After a loss ssthresh is half the window of that time, 2 at
least, so a halved window grows by a packet per round. Round `horizon` is the last one treated so, because the number of
cases doubles with each; from there the expected packets x of a round change by 1 − (x/B)² per round, where B is the
long-run expectation of Padhye et al. p is the engine's: loss episodes per packet, over about the last 256 packets.
For the rest, see `fps`.

# References

Ni, Xue, Hong, Shen, Fine-grained forward prediction based dynamic packet scheduling mechanism for multipath TCP in
lossy networks, ICCCN 2014; as described by Ni et al., OCPS. Padhye, Firoiu, Towsley, Kurose, Modeling TCP
throughput, SIGCOMM 1998.
"
);

pub(crate) const HORIZON: Handle<u64> = whole("horizon", 8, 1..=HORIZON_MAX as u64)
    .unit("rounds")
    .about("rounds for which every sequence of losses is evaluated");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "f2pdps",
    aliases: &[],
    about: "FPS with the losses that a TCP model expects",
    page: PAGE,
    parameters: &[GROWTH.parameter, HORIZON.parameter],
    build: |p| Box::new(SkipAhead::new(F2pDps::new(Config::from(p)))),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Whether predicted windows grow.
    pub growth: bool,
    /// Rounds of which every course is considered; at least 1.
    pub horizon: u64,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { growth: GROWTH.of(p), horizon: HORIZON.of(p) }
    }
}

/// Most rounds of which every course is considered.
const HORIZON_MAX: usize = 16;
/// Losses this rare change no prediction.
const LOSSLESS: f64 = 1e-9;
/// The estimated loss changes with every packet: a cached result for a loss within this ratio is accurate enough.
const SAME_LOSS: f64 = 1.0 / 16.0;

/// ln cosh x, for any x ≥ 0.
fn ln_cosh(x: f64) -> f64 {
    x + libm::log1p(libm::exp(-2.0 * x)) - core::f64::consts::LN_2
}

/// ln sinh x, for any x > 0.
fn ln_sinh(x: f64) -> f64 {
    x + libm::log1p(-libm::exp(-2.0 * x)) - core::f64::consts::LN_2
}

/// The inputs of an expectation.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Model {
    growth: bool,
    /// Probability of losing a packet, above 0 and at most 0.5.
    loss: f64,
    /// ln(1 − loss)
    survival_log: f64,
    /// A timeout in round trips.
    timeout: u64,
}

impl Model {
    fn new(growth: bool, loss: f64, timeout: u64) -> Self {
        Self { growth, loss, survival_log: libm::log1p(-loss), timeout }
    }

    /// E(w, K).
    fn expectation(&self, cwnd: u32, ssthresh: u32, rounds: u64) -> f64 {
        let now = f64::from(cwnd);
        match rounds {
            0 => return 0.0,
            1 => return now,
            _ => {}
        }
        let next = if self.growth { grown(cwnd, ssthresh) } else { cwnd };
        let all_arrive = libm::exp(self.survival_log * now);
        let by_timeout = (3.0 / now).min(1.0);
        let half = cwnd / 2;
        let after = |cwnd, lost: u64| self.expectation(cwnd, half.max(2), rounds.saturating_sub(lost));
        let lost = by_timeout * after(1, 1 + self.timeout) + (1.0 - by_timeout) * after(half.max(1), 2);
        now + all_arrive * self.expectation(next, ssthresh, rounds - 1) + (1.0 - all_arrive) * lost
    }

    /// Packets per round trip in the long run: Padhye et al., SIGCOMM 1998, eq 32, every packet acknowledged.
    fn steady(&self) -> f64 {
        let p = self.loss;
        let repeats = (3.0 * libm::sqrt(3.0 * p / 8.0)).min(1.0) * p * (1.0 + 32.0 * p * p);
        1.0 / (libm::sqrt(2.0 * p / 3.0) + self.timeout as f64 * repeats)
    }

    /// Packets in `rounds` further rounds, when `last` were sent in the previous round: x′ = 1 − (x/B)², integrated.
    fn beyond(&self, last: f64, rounds: f64) -> f64 {
        let steady = self.steady();
        let share = last / steady;
        // A round counts from its middle.
        let (from, to) = (0.5 / steady, (rounds + 0.5) / steady);
        let area = if !self.growth {
            libm::log1p(share * (to - from) / (1.0 + share * from))
        } else if share < 1.0 {
            let begun = libm::atanh(share);
            ln_cosh(begun + to) - ln_cosh(begun + from)
        } else if share > 1.0 {
            let begun = libm::atanh(1.0 / share);
            ln_sinh(begun + to) - ln_sinh(begun + from)
        } else {
            to - from
        };
        steady * steady * area
    }
}

/// A path's expectations, by rounds; computed on demand, and again when the path has changed.
#[derive(Clone, Copy, Debug)]
struct Known {
    model: Model,
    window: (u32, u32),
    expected: [Option<f64>; HORIZON_MAX + 1],
}

impl Known {
    fn new(model: Model, window: (u32, u32)) -> Self {
        Self { model, window, expected: [None; HORIZON_MAX + 1] }
    }

    /// Whether it is valid for this path.
    fn fits(&self, loss: f64, timeout: u64, window: (u32, u32)) -> bool {
        let change = self.model.loss - loss;
        let same_loss = change.max(-change) <= loss * SAME_LOSS;
        same_loss && (self.window, self.model.timeout) == (window, timeout)
    }

    /// E(w, K) for K ≤ [`HORIZON_MAX`].
    fn expectation(&mut self, rounds: u64) -> f64 {
        let (cwnd, ssthresh) = self.window;
        let model = &self.model;
        *self.expected[rounds as usize].get_or_insert_with(|| model.expectation(cwnd, ssthresh, rounds))
    }

    /// E(w, K), later rounds than `horizon` by their mean.
    fn packets(&mut self, rounds: u64, horizon: u64) -> f64 {
        if rounds <= horizon {
            return self.expectation(rounds);
        }
        let near = self.expectation(horizon);
        let last = near - self.expectation(horizon - 1);
        near + self.model.beyond(last, (rounds - horizon) as f64)
    }
}

/// The forecast of F²P-DPS.
#[derive(Clone, Debug)]
pub struct F2pDps {
    config: Config,
    lossless: Fps,
    /// Known values by path.
    known: Vec<Option<Known>>,
}

impl F2pDps {
    /// A forecast.
    pub fn new(config: Config) -> Self {
        let lossless = Fps::new(fps::Config { growth: config.growth });
        Self { config, lossless, known: vec![None; PathId::LIMIT] }
    }
}

impl Forecast for F2pDps {
    fn packets(&mut self, path: &PathView, lead: Duration) -> f64 {
        let rounds = rounds(path, lead);
        if path.loss < LOSSLESS || rounds == 1 {
            return self.lossless.over(path, rounds);
        }
        let rtt = path.rtt_or_max().as_nanos().max(1);
        let (loss, timeout) = (path.loss.min(0.5), path.rto.as_nanos().div_ceil(rtt));
        let window = (path.cwnd.max(1), path.ssthresh);
        let known = &mut self.known[path.id.index()];
        let known = match known {
            Some(known) if known.fits(loss, timeout, window) => known,
            _ => known.insert(Known::new(Model::new(self.config.growth, loss, timeout), window)),
        };
        f64::from(path.room()) + known.packets(rounds, self.config.horizon) - f64::from(window.0)
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
            let mut known = Known::new(Model::new(true, loss, 10), (20, 0));
            let (exact, rough) = (known.packets(16, 16), known.packets(16, 8));
            assert!((0.8..1.25).contains(&(rough / exact)), "{loss}: {rough} for {exact}");
        }
    }

    #[test]
    fn logarithms_of_hyperbolic_functions_hold_beyond_the_range_of_these() {
        for x in [0.01, 1.0, 5.0] {
            assert!((ln_sinh(x) - libm::log(libm::sinh(x))).abs() < 1e-12, "{x}");
            assert!((ln_cosh(x) - libm::log(libm::cosh(x))).abs() < 1e-12, "{x}");
        }
        let far = 1000.0 - core::f64::consts::LN_2;
        assert_eq!((ln_sinh(1000.0), ln_cosh(1000.0)), (far, far));
    }

    #[test]
    fn the_long_run_is_padhyes() {
        // Eq 32 by hand, in packets per round trip: at a loss of one in ten the timeouts weigh more than the halvings.
        for (loss, timeout, expect) in [(0.01, 10, 9.9920), (0.1, 4, 1.7701), (0.1, 1, 2.9861)] {
            let steady = Model::new(true, loss, timeout).steady();
            assert!((steady - expect).abs() < 1e-4, "{loss} {timeout}: {steady}");
        }
    }

    #[test]
    fn later_rounds_settle_where_the_long_run_is() {
        for loss in [0.001, 0.01, 0.1, 0.5] {
            let model = Model::new(true, loss, 10);
            let steady = model.steady();
            for last in [0.0, steady / 3.0, steady, steady * 5.0] {
                let rate = (model.beyond(last, 1e6) - model.beyond(last, 1e6 - 1.0)) / steady;
                assert!((0.9999..1.0001).contains(&rate), "{loss} {last}: {rate}");
                // Step by step it is the same to within a few per cent.
                let mut x = last;
                let sum: f64 = (0..20)
                    .map(|_| {
                        x = (x + 1.0 - (x / steady) * (x / steady)).max(0.0);
                        x
                    })
                    .sum();
                let close = model.beyond(last, 20.0) / sum;
                assert!(last > steady || steady < 2.0 || (0.9..1.1).contains(&close), "{loss} {last}: {close}");
            }
        }
        let shrinking = Model::new(false, 0.01, 10);
        assert!(shrinking.beyond(10.0, 20.0) < 200.0 && shrinking.beyond(10.0, 20.0) > 20.0);
    }

    #[test]
    fn a_known_expectation_is_used_until_something_changes() {
        let mut forecast = F2pDps::new(CONFIG);
        let lead = Duration::from_millis(40);
        let first = forecast.packets(&lossy(10, 0.05), lead);
        assert_eq!(forecast.packets(&lossy(10, 0.052), lead), first);
        // The free window is always the present one.
        let full = forecast.packets(&PathView { in_flight: 10, ..lossy(10, 0.05) }, lead);
        assert!((first - 10.0 - full).abs() < 1e-9);
        assert!(forecast.packets(&lossy(10, 0.06), lead) < first);
        assert!(forecast.packets(&lossy(11, 0.05), lead) > first);
        assert!(forecast.packets(&lossy(10, 0.05), lead * 2) > first);
    }
}
