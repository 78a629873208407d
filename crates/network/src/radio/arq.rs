//! Automatic repeat request below IP: HARQ and RLC of cellular networks, retries of Wi-Fi. Loss becomes delay.

use anabranch_units::{Duration, Rng};

/// Retransmission of single packets below IP. Attempts fail independently, so that k failures have the probability
/// `loss`ᵏ, and cost k times `delay`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArqSpec {
    /// Probability that an attempt fails. Zero is no ARQ.
    pub loss: f64,
    /// Transmissions of a packet, the first one among them; `None` = until one succeeds.
    pub attempts: Option<u16>,
    /// Time from one attempt to the next.
    pub delay: Duration,
    /// A packet arrives when it is received, also before earlier ones.
    pub free: bool,
}

impl ArqSpec {
    /// No ARQ.
    pub const NONE: Self = Self { loss: 0.0, attempts: None, delay: Duration::ZERO, free: false };

    /// Whether every attempt succeeds.
    pub fn is_none(&self) -> bool {
        self.loss == 0.0
    }

    /// The probability that all attempts fail.
    pub fn residual_loss(&self) -> f64 {
        self.attempts.map_or(0.0, |attempts| libm::pow(self.loss, attempts.into()))
    }

    /// The outcome of a packet whose uniform number in `[0, 1)` is `luck`.
    fn outcome(&self, luck: f64) -> Outcome {
        // P(at least k failures) = lossᵏ, by inversion. 1 − luck is above zero; of a loss of 1 the quotient is infinite, or 0/0.
        let failures = libm::floor(libm::log(1.0 - luck) / libm::log(self.loss));
        let failures = if self.loss >= 1.0 { f64::INFINITY } else { failures };
        let most = self.attempts.unwrap_or(u16::MAX);
        match failures < f64::from(most) {
            true => Outcome { retries: failures as u16, lost: false },
            false => Outcome { retries: most.saturating_sub(1), lost: self.attempts.is_some() },
        }
    }
}

/// The attempts of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Attempts after the first one.
    pub retries: u16,
    /// The last one failed, too.
    pub lost: bool,
}

/// ARQ of one direction of a path, with its own random stream.
#[derive(Clone, Debug)]
pub(crate) struct Arq {
    pub spec: ArqSpec,
    luck: Rng,
    /// Packets whose number was drawn.
    drawn: u64,
}

impl Arq {
    pub fn new(spec: ArqSpec, luck: Rng) -> Self {
        Self { spec, luck, drawn: 0 }
    }

    /// The attempts of the `n`-th packet, from 0 and ascending: each has its own number, whether others met ARQ or not.
    pub fn next(&mut self, n: u64) -> Outcome {
        if self.spec.is_none() {
            return Outcome::default();
        }
        (self.drawn..n).for_each(|_| _ = self.luck.unit());
        self.drawn = n + 1;
        self.spec.outcome(self.luck.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arq(loss: f64, attempts: Option<u16>) -> ArqSpec {
        ArqSpec { loss, attempts, delay: Duration::from_millis(8), free: false }
    }

    /// The closed form: P(k retries) = pᵏ(1 − p), and p to the number of attempts is lost.
    #[test]
    fn retries_are_geometric_and_the_residual_loss_is_a_power() {
        const N: u64 = 400_000;
        for (loss, attempts) in [(0.1, Some(4)), (0.5, Some(3)), (0.3, None), (0.9, Some(20))] {
            let mut arq = Arq::new(arq(loss, attempts), Rng::stream(5, "arq"));
            let outcomes: Vec<_> = (0..N).map(|n| arq.next(n)).collect();
            let near = |count: usize, p: f64| {
                let (n, count) = (N as f64, count as f64);
                // Five standard deviations of a binomial number.
                assert!((count - n * p).abs() <= 5.0 * (n * p * (1.0 - p)).sqrt() + 1.0, "{count} of {}", n * p);
            };
            near(outcomes.iter().filter(|it| it.lost).count(), arq.spec.residual_loss());
            for k in 0..attempts.unwrap_or(8) {
                let found = outcomes.iter().filter(|it| !it.lost && it.retries == k).count();
                near(found, libm::pow(loss, k.into()) * (1.0 - loss));
            }
            assert!(outcomes.iter().all(|it| !it.lost || Some(it.retries + 1) == attempts));
        }
    }

    #[test]
    fn a_packet_has_its_own_number_whether_others_met_arq_or_not() {
        let all = |skip: u64| {
            let mut arq = Arq::new(arq(0.5, Some(9)), Rng::stream(1, "arq"));
            (skip..200).map(|n| arq.next(n)).collect::<Vec<_>>()
        };
        assert_eq!(all(0)[70..], all(70));
    }

    #[test]
    fn certain_failure_loses_after_the_last_attempt() {
        for luck in [0.0, 0.5, 0.999_999] {
            assert_eq!(arq(1.0, Some(3)).outcome(luck), Outcome { retries: 2, lost: true });
        }
        assert_eq!(arq(1.0, Some(3)).residual_loss(), 1.0);
        assert_eq!(arq(0.5, None).residual_loss(), 0.0);
    }
}
