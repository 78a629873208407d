//! A run against single paths and against the best possible.

/// Goodput `g` against the goodputs of single paths under the same seed. 1 = the paths add up, 0 = no better than the
/// best path alone, −1 = nothing got through; above 1 is possible. `None` where the definition has no value: no single
/// path delivered anything, or all but one delivered nothing and `g` reaches that one.
pub fn aggregation_benefit(g: f64, singles: &[f64]) -> Option<f64> {
    // Kaspar, "Multipath Aggregation of Heterogeneous Networks", PhD thesis, Oslo 2012; Paasch et al., CoNEXT 2013.
    let best = best_of(singles)?;
    let span = if g >= best { singles.iter().sum::<f64>() - best } else { best };
    (span > 0.0).then(|| (g - best) / span)
}

/// Goodput `g` ÷ the best single path's goodput under the same seed; `None` if that is nothing.
pub fn best_single_ratio(g: f64, singles: &[f64]) -> Option<f64> {
    best_of(singles).map(|best| g / best)
}

/// The result ÷ the bound: goodput ÷ best goodput, or least completion time ÷ completion time. `None` if either
/// is missing or the divisor is zero.
///
/// Never above 1. For unlimited data the bound is an expectation: a run that loses fewer packets than expected, or that
/// delivers in the measured time what waited at the receiver before it, may pass it by a little, and counts as 1.
pub fn oracle_ratio(reached: Option<f64>, bound: Option<f64>) -> Option<f64> {
    let ratio = reached? / bound?;
    ratio.is_finite().then(|| ratio.min(1.0))
}

fn best_of(singles: &[f64]) -> Option<f64> {
    singles.iter().copied().max_by(f64::total_cmp).filter(|best| *best > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benefit_has_two_branches() {
        let singles = [20.0, 5.0];
        assert_eq!(aggregation_benefit(25.0, &singles), Some(1.0));
        assert_eq!(aggregation_benefit(22.5, &singles), Some(0.5));
        assert_eq!(aggregation_benefit(20.0, &singles), Some(0.0));
        assert_eq!(aggregation_benefit(15.0, &singles), Some(-0.25));
        assert_eq!(aggregation_benefit(0.0, &singles), Some(-1.0));
        assert_eq!(aggregation_benefit(30.0, &singles), Some(2.0));
        assert_eq!(best_single_ratio(25.0, &singles), Some(1.25));
    }

    #[test]
    fn benefit_without_a_value_is_absent() {
        assert_eq!(aggregation_benefit(10.0, &[]), None);
        assert_eq!(aggregation_benefit(10.0, &[0.0, 0.0]), None);
        assert_eq!(aggregation_benefit(10.0, &[10.0]), None);
        assert_eq!(aggregation_benefit(9.0, &[10.0]), Some(-0.1));
        assert_eq!(best_single_ratio(10.0, &[0.0]), None);
    }

    #[test]
    fn the_oracle_is_never_beaten() {
        assert_eq!(oracle_ratio(Some(12.0), Some(24.0)), Some(0.5));
        assert_eq!(oracle_ratio(Some(24.1), Some(24.0)), Some(1.0));
        assert_eq!(oracle_ratio(None, Some(24.0)), None);
        assert_eq!(oracle_ratio(Some(1.0), Some(0.0)), None);
    }
}
