//! Several comparisons at once.

/// Each of the `p` values of several tests, adjusted so that the chance of any false rejection stays below the level (Holm
/// 1979, step down), in the same order.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|i, j| p[*i].total_cmp(&p[*j]));
    let mut adjusted = vec![0.0; p.len()];
    let mut greatest = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        greatest = greatest.max((p.len() - rank) as f64 * p[index]).min(1.0);
        adjusted[index] = greatest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(p: &[f64], expected: &[f64]) {
        let found = holm(p);
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        assert_eq!(found.len(), expected.len());
    }

    #[test]
    fn step_down() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") is 0.03 0.06 0.06 0.02.
        check(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
        check(&[0.5, 0.9], &[1.0, 1.0]);
        check(&[0.2], &[0.2]);
        check(&[], &[]);
    }
}
