//! The rate that the throughput of past segments allows.

use super::{Abr, AbrView};
use anabranch_plugin::registry::{Entry, Handle, number, whole};
use anabranch_units::Duration;
use std::collections::VecDeque;

const WINDOW: Handle<u64> = whole("window", 5, 1..=100).about("segments whose throughput is averaged");
const SAFETY: Handle<f64> = number("safety", 1.0, 0.01..=1.0).about("part of the predicted throughput that is used");

/// The registry's entry.
pub const ENTRY: Entry<dyn Abr> = Entry {
    name: "throughput",
    aliases: &["rate-based", "rb"],
    about: "the highest rate below the throughput of the last segments",
    page: PAGE,
    parameters: &[WINDOW.parameter, SAFETY.parameter],
    build: |parameters| {
        let (window, safety) = (WINDOW.of(parameters) as usize, SAFETY.of(parameters));
        Box::new(Throughput { window, safety, past: VecDeque::new() })
    },
};

const PAGE: &str = "\
# Idea
What the network carried lately it will carry next.

# Rule
Throughput of a segment: its bits per time from the request to its last byte. The prediction is the harmonic mean over the last
`window` segments. The next segment has the highest rate of the ladder that is at most `safety` × prediction, else the lowest. So has the first.

# When it helps
Where throughput is steady: it finds its rate after one segment.

# When it hurts
Where throughput wavers, because it does not look at the buffer: play may stall though a lower rate was available. A short segment
measures slow start, not the path.

# Departures
None from the rate-based baseline of Yin et al. and of Pensieve, which have a harmonic mean of five. dash.js has other means and a safety of 0.9.

# References
Yin, Jindal, Sekar, Sinopoli: A Control-Theoretic Approach for Dynamic Adaptive Video Streaming over HTTP. SIGCOMM 2015, §7 (RB).
Jiang, Sekar, Zhang: Improving Fairness, Efficiency, and Stability in HTTP-based Adaptive Video Streaming with FESTIVE. CoNEXT 2012
(why the mean is harmonic).
Mao, Netravali, Alizadeh: Neural Adaptive Video Streaming with Pensieve. SIGCOMM 2017, §5.1 (RB).
";

#[derive(Debug)]
struct Throughput {
    window: usize,
    safety: f64,
    /// Seconds per bit of the last segments.
    past: VecDeque<f64>,
}

impl Abr for Throughput {
    fn choose(&mut self, view: &AbrView<'_>) -> usize {
        // Harmonic mean of C₁ … Cₙ: n ÷ Σ 1/C (Yin et al., §7); zero before the first.
        let slowness: f64 = self.past.iter().sum();
        let predicted = if self.past.is_empty() { 0.0 } else { self.past.len() as f64 / slowness };
        view.highest(|rate| rate <= self.safety * predicted)
    }

    fn on_segment(&mut self, bytes: u64, time: Duration) {
        self.past.push_back(time.as_secs_f64() / (bytes.max(1) as f64 * 8.0));
        if self.past.len() > self.window {
            self.past.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rate;

    /// 500,000 bytes are 4 Mbit: in 1, 2 and 4 s at 4, 2 and 1 Mbit/s. Harmonic means: 4; 2 ÷ (1/4 + 1/2) = 2.67; 3 ÷ 1.75 = 1.714;
    /// of the last two alone, 2 ÷ 1.5 = 1.333.
    #[test]
    fn the_prediction_is_a_harmonic_mean() {
        let ladder = [300, 750, 1200, 1850, 2850, 4300].map(|kbit| Rate::from_bps(kbit * 1000));
        let (segment, level, capacity) = (Duration::from_secs(4), Duration::ZERO, Duration::from_secs(30));
        let view = AbrView { ladder: &ladder, segment, level, capacity, last: None };
        let places = |given: &[(String, f64)]| {
            let mut rule = ENTRY.build(given);
            let mut places = vec![rule.choose(&view)];
            for seconds in [1, 2, 4] {
                rule.on_segment(500_000, Duration::from_secs(seconds));
                places.push(rule.choose(&view));
            }
            places
        };
        assert_eq!(places(&[]), [0, 4, 3, 2]);
        assert_eq!(places(&[("window".into(), 2.0)]), [0, 4, 3, 2]);
        assert_eq!(places(&[("window".into(), 1.0)]), [0, 4, 3, 1]);
        assert_eq!(places(&[("safety".into(), 0.4)]), [0, 2, 1, 0]);
    }
}
