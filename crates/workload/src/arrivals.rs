//! When flows begin.

use anabranch_units::{Duration, Instant, Rng};

/// Poisson arrivals at `rate` per second, from `start` on: `count` times with exponential gaps, in order. All at
/// `start` if the rate is not above zero.
pub fn poisson(start: Instant, rate: f64, count: usize, rng: &mut Rng) -> Vec<Instant> {
    let mut at = start;
    let mut next = || {
        let gap = if rate > 0.0 { rng.exponential() / rate } else { 0.0 };
        at += Duration::from_secs_f64(gap);
        at
    };
    (0..count).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponential() {
        let start = Instant::from_millis(7);
        let times = poisson(start, 5.0, 20_000, &mut Rng::stream(1, "arrivals"));
        assert!(times[0] > start && times.is_sorted());
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean - 0.2).abs() < 0.005, "{mean}");
        // A share of 1/e is longer than the mean, one of 1/e² longer than twice the mean.
        let longer = |than: f64| gaps.iter().filter(|gap| **gap > than).count() as f64 / gaps.len() as f64;
        assert!((longer(0.2) - 0.3679).abs() < 0.01 && (longer(0.4) - 0.1353).abs() < 0.01);
    }

    #[test]
    fn without_a_rate_all_come_together() {
        assert_eq!(poisson(Instant::ZERO, 0.0, 2, &mut Rng::stream(1, "arrivals")), [Instant::ZERO; 2]);
    }
}
