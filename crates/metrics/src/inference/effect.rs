//! How large a difference is, whatever its unit.

use crate::SampleStatistics;
use libm::{exp, lgamma};

/// The standardised mean difference of pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectSize {
    /// Cohen's d_z: mean of a − b ÷ its standard deviation.
    pub dz: f64,
    /// d_z without its bias for few pairs (Hedges' correction); `None` for two pairs, where it does not exist.
    pub corrected: Option<f64>,
}

impl EffectSize {
    /// Effect size of pairs `(a, b)`; `None` if there are fewer than two, or the differences do not vary.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        let summary = SampleStatistics::of(&differences)?;
        let dz = summary.mean / summary.sd.filter(|sd| *sd > 0.0)?;
        let df = (differences.len() - 1) as f64;
        Some(Self { dz, corrected: (df > 1.0).then(|| dz * correction(df)) })
    }
}

/// J(df) = Γ(df/2) ÷ (√(df/2)·Γ((df − 1)/2)), df > 1 (Hedges 1981, eq 6e).
fn correction(df: f64) -> f64 {
    exp(lgamma(df / 2.0) - lgamma((df - 1.0) / 2.0)) / (df / 2.0).sqrt()
}

/// Probability of superiority: the share of pairs `(a, b)` in which a is greater, with half of those that are equal. `None`
/// without pairs.
pub fn superiority(pairs: &[(f64, f64)]) -> Option<f64> {
    let score = |(a, b): &(f64, f64)| match a.total_cmp(b) {
        _ if a == b => 0.5,
        order => f64::from(u8::from(order.is_gt())),
    };
    (!pairs.is_empty()).then(|| pairs.iter().map(score).sum::<f64>() / pairs.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::tests::SLEEP;

    #[test]
    fn sleep_data() {
        // t = 4.0621 = d_z·√10, so d_z = 1.28456; J(9) = 0.914.
        let effect = EffectSize::of(&SLEEP).unwrap();
        assert!((effect.dz - 1.284_558).abs() < 1e-5, "{effect:?}");
        assert!((effect.corrected.unwrap() / effect.dz - 0.9139).abs() < 1e-3, "{effect:?}");
        // Nine of ten slept longer, one as long.
        assert_eq!(superiority(&SLEEP), Some(0.95));
    }

    #[test]
    fn the_correction_is_near_its_usual_approximation() {
        // J(2) = Γ(1)/(1·Γ(1/2)) = 1/√π; 1 − 3/(4·df − 1) otherwise (Hedges 1981, eq 5 and table 1).
        assert!((correction(2.0) - 1.0 / core::f64::consts::PI.sqrt()).abs() < 1e-12);
        for df in [5.0, 10.0, 50.0, 199.0] {
            assert!((correction(df) - (1.0 - 3.0 / (4.0 * df - 1.0))).abs() < 2e-3, "{df}");
        }
    }

    #[test]
    fn what_has_no_size() {
        assert_eq!(EffectSize::of(&[(1.0, 2.0)]), None);
        assert_eq!(EffectSize::of(&[(1.0, 2.0), (2.0, 3.0)]), None);
        assert_eq!(EffectSize::of(&[(1.0, 2.0), (2.0, 5.0)]).unwrap().corrected, None);
        assert_eq!(superiority(&[]), None);
    }
}
