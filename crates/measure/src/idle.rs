//! Round-trip times of idle paths, as challenges show them.

use anabranch_units::{Duration, Instant};

/// A challenge that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleRtt {
    /// When it was sent.
    pub at: Instant,
    /// Time until the answer.
    pub rtt: Duration,
}

/// Round-trip times of an idle path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct IdleRtts {
    /// The challenges that were answered, in order.
    pub times: Vec<IdleRtt>,
    /// Challenges.
    pub sent: u32,
}

impl IdleRtts {
    /// The least round-trip time.
    pub fn least(&self) -> Option<Duration> {
        self.times.iter().map(|one| one.rtt).min()
    }

    /// Mean difference between one round-trip time and the next, in seconds.
    pub fn jitter_s(&self) -> Option<f64> {
        let seconds = |one: &IdleRtt| one.rtt.as_secs_f64();
        let steps: Vec<f64> = self.times.windows(2).map(|pair| (seconds(&pair[1]) - seconds(&pair[0])).abs()).collect();
        anabranch_metrics::mean(&steps)
    }

    /// Share of challenges without an answer.
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| 1.0 - self.times.len() as f64 / f64::from(self.sent))
    }
}
