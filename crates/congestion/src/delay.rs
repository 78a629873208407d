//! RTT statistics of delay-based algorithms: the samples of each round, and the least of all.

use anabranch_plugin::congestion::Acked;
use anabranch_units::Duration;

/// A round with fewer samples is ignored (Brakmo and Peterson 1995; Linux's `tcp_vegas`).
const MIN_SAMPLES: u64 = 3;

/// The RTT samples of the current round, and the least of all rounds.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    base: Option<Duration>,
    least: Option<Duration>,
    sum: u128,
    count: u64,
}

/// A finished round.
#[derive(Clone, Copy, Debug)]
pub enum Round {
    /// Too few samples.
    Silent,
    /// Three samples or more.
    Measured(Delays),
}

/// The delays measured in a round, each at least a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// The least RTT so far: the path without a queue.
    pub base: Duration,
    /// The least RTT of the round.
    pub least: Duration,
    /// The mean RTT of the round.
    pub mean: Duration,
}

impl Samples {
    /// Takes the RTT sample of an acknowledgment; returns the round that it ended, if any.
    pub fn on_ack(&mut self, ack: &Acked) -> Option<Round> {
        if let Some(rtt) = ack.rtt {
            let rtt = rtt.max(Duration::from_nanos(1));
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
            self.sum += u128::from(rtt.as_nanos());
            self.count += 1;
        }
        ack.round_ended.then(|| self.end())
    }

    fn end(&mut self) -> Round {
        let round = match (self.base, self.least) {
            (Some(base), Some(least)) if self.count >= MIN_SAMPLES => {
                let mean = Duration::from_nanos((self.sum / u128::from(self.count)) as u64);
                Round::Measured(Delays { base, least, mean })
            }
            _ => Round::Silent,
        };
        self.restart();
        round
    }

    /// Begins a new round.
    pub fn restart(&mut self) {
        *self = Self { base: self.base, ..Self::default() };
    }
}

/// `packets` scaled by `part` of `whole`, rounded down.
pub fn share(packets: u32, part: Duration, whole: Duration) -> u32 {
    let scaled = u128::from(packets) * u128::from(part.as_nanos()) / u128::from(whole.as_nanos().max(1));
    u32::try_from(scaled).unwrap_or(u32::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A round of acknowledgments in congestion avoidance with these RTT samples in ms; the last one ends it.
    pub(crate) fn round(samples: &[u64]) -> Vec<Acked> {
        let mut acks: Vec<_> = samples
            .iter()
            .map(|ms| {
                let mut ack = crate::linked::tests::ack(1);
                ack.rtt = Some(Duration::from_millis(*ms));
                ack
            })
            .collect();
        acks.last_mut().expect("a round has samples").round_ended = true;
        acks
    }

    #[test]
    fn a_round_has_its_least_and_mean_and_the_least_of_all() {
        let mut samples = Samples::default();
        let mut play = |ms: &[u64]| round(ms).iter().filter_map(|ack| samples.on_ack(ack)).last();
        let delays = |round| match round {
            Some(Round::Measured(Delays { base, least, mean })) => Some([base, least, mean].map(Duration::as_millis)),
            _ => None,
        };
        assert_eq!(delays(play(&[100, 110, 120])), Some([100, 100, 110]));
        assert_eq!(delays(play(&[130, 120, 125])), Some([100, 120, 125]));
        assert_eq!(delays(play(&[1, 2])), None);
        assert_eq!(delays(play(&[50, 60, 70])), Some([1, 50, 60]), "the least ever counts always");
    }

    #[test]
    fn any_time_is_survived() {
        let mut samples = Samples::default();
        for rtt in [Duration::ZERO, Duration::MAX, Duration::MAX, Duration::MAX] {
            let mut ack = Acked::default();
            (ack.rtt, ack.round_ended) = (Some(rtt), true);
            samples.on_ack(&ack);
        }
        assert_eq!(share(u32::MAX, Duration::MAX, Duration::ZERO), u32::MAX);
    }
}
