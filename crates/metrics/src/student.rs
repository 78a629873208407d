//! Student's t distribution.

use libm::{exp, fabs, lgamma, log};
use std::sync::OnceLock;

/// The probability that |T| exceeds `t` (not negative), for T of Student's distribution with `df` > 0 degrees of
/// freedom.
pub fn t_probability(t: f64, df: f64) -> f64 {
    // Abramowitz and Stegun 26.7.1 with 26.5.27.
    incomplete_beta(df / 2.0, 0.5, df / (df + t * t))
}

/// The `t` that |T| exceeds with probability `p` in (0, 1): `t_quantile(0.05, df)` bounds a 95 % interval.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    debug_assert!(df > 0.0, "one value has no spread");
    let mut high = 1.0;
    while t_probability(high, df) > p && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    // Bisect until no number lies between.
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if t_probability(middle, df) > p { low = middle } else { high = middle }
    }
}

/// [`t_quantile`] of 0.05, which every mean of a study needs: once per number of degrees of freedom, at least one.
pub(crate) fn t95(df: usize) -> f64 {
    static KNOWN: [OnceLock<f64>; 1024] = [const { OnceLock::new() }; 1024];
    let find = || t_quantile(0.05, df as f64);
    KNOWN.get(df).map_or_else(find, |known| *known.get_or_init(find))
}

/// The regularised incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1].
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // Abramowitz and Stegun 26.5.2: the fraction converges fast on one side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1.0 - x));
    front * beta_fraction(a, b, x) / a
}

/// The continued fraction of Abramowitz and Stegun 26.5.8, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if fabs(v) < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            fraction *= d * c;
        }
        if fabs(fraction - before) <= 1e-16 * fabs(fraction) {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_tables() {
        // Two-sided 95 % and 99 % points of printed tables.
        let table = [
            (1.0, 12.706, 63.657),
            (2.0, 4.303, 9.925),
            (4.0, 2.776, 4.604),
            (9.0, 2.262, 3.250),
            (10.0, 2.228, 3.169),
            (29.0, 2.045, 2.756),
            (49.0, 2.010, 2.680),
            (120.0, 1.980, 2.617),
            (1e6, 1.960, 2.576),
        ];
        for (df, t95, t99) in table {
            assert!((t_quantile(0.05, df) - t95).abs() < 6e-4, "{df} {}", t_quantile(0.05, df));
            assert!((t_quantile(0.01, df) - t99).abs() < 6e-4, "{df} {}", t_quantile(0.01, df));
        }
    }

    #[test]
    fn a_known_quantile_is_the_one_that_was_found() {
        for df in [1, 2, 49, 1023, 1024, 5000, 49, 1] {
            assert_eq!(t95(df), t_quantile(0.05, df as f64), "{df}");
        }
    }

    #[test]
    fn closed_forms() {
        // With one degree of freedom (Cauchy) P(|T| > 1) = 1/2; with two P(|T| > t) = 1 − t/√(2 + t²).
        assert!((t_probability(1.0, 1.0) - 0.5).abs() < 1e-14);
        for t in [0.1f64, 1.0, 3.0, 20.0] {
            let exact = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((t_probability(t, 2.0) - exact).abs() < 1e-13, "{t}");
        }
        assert_eq!(t_probability(0.0, 5.0), 1.0);
    }

    #[test]
    fn quantile_inverts_probability() {
        for df in [1.0, 3.0, 49.0, 199.0] {
            for p in [0.5, 0.05, 1e-6] {
                assert!((t_probability(t_quantile(p, df), df) / p - 1.0).abs() < 1e-9, "{df} {p}");
            }
        }
    }
}
