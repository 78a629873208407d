//! Packet sizes.

use anabranch_units::Rng;

/// The sizes of a flow's packets, bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PacketSizes {
    /// All equal.
    Fixed(u32),
    /// Exponential with this mean, then clamped between `least` and `most`.
    Exponential {
        /// Mean before the clamp.
        scale: f64,
        /// The lower clamp.
        least: u32,
        /// The upper clamp.
        most: u32,
    },
}

impl PacketSizes {
    /// Exponential sizes clamped between `least` and `most` whose mean *after* the clamp is `mean`, so that a flow's
    /// rate is as written; fixed sizes if `mean` does not lie between.
    pub fn exponential(mean: u32, (least, most): (u32, u32)) -> Self {
        if mean <= least || mean >= most {
            return Self::Fixed(mean);
        }
        let [target, a, b] = [mean, least, most].map(f64::from);
        // ∫ min(max(x, a), b) e^(−x/s)/s dx grows with s, from a to b; beyond b² it is nearer to b than one byte.
        let mean_of = |s: f64| a + s * (libm::exp(-a / s) - libm::exp(-b / s));
        let (mut low, mut high) = (0.0, b * b);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            *if mean_of(middle) < target { &mut low } else { &mut high } = middle;
        }
        Self::Exponential { scale: high, least, most }
    }

    /// The next size.
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        match *self {
            Self::Fixed(size) => size,
            Self::Exponential { scale, least, most } => {
                let size = rng.exponential() * scale;
                (size.clamp(least.into(), most.into()) + 0.5) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_after_the_cut_is_as_stated() {
        let mut rng = Rng::stream(1, "cross.0.sizes");
        for mean in [41, 100, 500, 1000, 1400, 1499] {
            let sizes = PacketSizes::exponential(mean, (40, 1500));
            let drawn: Vec<_> = (0..100_000).map(|_| sizes.draw(&mut rng)).collect();
            assert!(drawn.iter().all(|size| (40..=1500).contains(size)));
            let got = drawn.iter().map(|size| f64::from(*size)).sum::<f64>() / 100_000.0;
            assert!((got - f64::from(mean)).abs() < 6.0, "{mean}: {got}");
        }
        // 500 bytes: the clamp takes 34 from the mean of an exponential with mean 500, so that its scale is larger.
        let PacketSizes::Exponential { scale, .. } = PacketSizes::exponential(500, (40, 1500)) else { panic!() };
        assert!((525.0..540.0).contains(&scale), "{scale}");
    }

    #[test]
    fn a_mean_beyond_the_cut_is_the_size() {
        assert_eq!(PacketSizes::exponential(40, (40, 1500)), PacketSizes::Fixed(40));
        assert_eq!(PacketSizes::exponential(9000, (40, 1500)), PacketSizes::Fixed(9000));
    }
}
