//! LinUCB: a linear estimate of a reward, with its uncertainty.

/// One arm of a contextual bandit: keeps the inverse of A = I + Σ x·xᵀ, and b = Σ r·x.
#[derive(Clone, Copy, Debug)]
pub struct LinUcb<const N: usize> {
    inverse: [[f64; N]; N],
    b: [f64; N],
}

impl<const N: usize> Default for LinUcb<N> {
    /// A = I, b = 0.
    fn default() -> Self {
        let inverse = core::array::from_fn(|i| core::array::from_fn(|j| f64::from(u8::from(i == j))));
        Self { inverse, b: [0.0; N] }
    }
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl<const N: usize> LinUcb<N> {
    fn times(&self, x: &[f64; N]) -> [f64; N] {
        core::array::from_fn(|i| dot(&self.inverse[i], x))
    }

    /// θ·x + α·√(x·A⁻¹·x), with θ = A⁻¹·b.
    pub fn score(&self, x: &[f64; N], alpha: f64) -> f64 {
        let v = self.times(x);
        // Rounding may make it slightly negative.
        dot(&v, &self.b) + alpha * dot(&v, x).max(0.0).sqrt()
    }

    /// A = A + x·xᵀ, by the formula of Sherman and Morrison; b = b + r·x.
    pub fn learn(&mut self, x: &[f64; N], reward: f64) {
        let v = self.times(x);
        let scale = 1.0 + dot(&v, x).max(0.0);
        for (i, row) in self.inverse.iter_mut().enumerate() {
            row.iter_mut().zip(&v).for_each(|(entry, v_j)| *entry -= v[i] * v_j / scale);
        }
        self.b.iter_mut().zip(x).for_each(|(b, x)| *b += reward * x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dimension() {
        // A = 1 + 1, b = 1.
        let mut arm = LinUcb::<1>::default();
        arm.learn(&[1.0], 1.0);
        assert!((arm.score(&[1.0], 0.75) - 1.0303).abs() < 5e-5);
        assert_eq!(arm.score(&[1.0], 0.0), 0.5);
    }

    #[test]
    fn the_inverse_is_one() {
        let mut arm = LinUcb::<3>::default();
        let mut a = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        for n in 0..200u32 {
            let x = [f64::from(n % 7), f64::from(n % 5) - 2.0, f64::from(n % 3) / 10.0];
            arm.learn(&x, 1.0);
            for (row, x_i) in a.iter_mut().zip(x) {
                row.iter_mut().zip(x).for_each(|(entry, x_j)| *entry += x_i * x_j);
            }
        }
        for (i, row) in a.iter().enumerate() {
            // Both are symmetric: a row equals a column.
            let product = arm.times(row);
            for (j, entry) in product.into_iter().enumerate() {
                assert!((entry - f64::from(u8::from(i == j))).abs() < 1e-9, "{i} {j} {entry}");
            }
        }
    }

    #[test]
    fn a_linear_reward_is_found() {
        let mut arm = LinUcb::<2>::default();
        for n in 0..2000u32 {
            let x = [f64::from(n % 11) / 10.0, f64::from(n % 4)];
            arm.learn(&x, 3.0 * x[0] - 0.5 * x[1]);
        }
        assert!((arm.score(&[1.0, 2.0], 0.0) - 2.0).abs() < 0.02);
    }
}
