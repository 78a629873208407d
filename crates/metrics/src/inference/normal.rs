//! The standard normal distribution.

use libm::erfc;

/// The probability that a standard normal variable is below `z`.
pub fn normal_probability(z: f64) -> f64 {
    // Abramowitz and Stegun 26.2.29.
    0.5 * erfc(-z * core::f64::consts::FRAC_1_SQRT_2)
}

/// The `z` below which a standard normal variable stays with probability `p` in (0, 1).
pub fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    // Bisect until no number lies between.
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if normal_probability(middle) < p { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_tables() {
        for (p, z) in
            [(0.5, 0.0), (0.841_344_746, 1.0), (0.95, 1.644_853_627), (0.975, 1.959_963_985), (0.001, -3.090_232)]
        {
            assert!((normal_quantile(p) - z).abs() < 1e-6, "{p}");
            assert!((normal_probability(z) - p).abs() < 1e-6, "{z}");
        }
    }
}
