//! Fisher's randomisation test of paired differences.

use anabranch_units::Rng;

/// Up to this number of pairs, all choices of signs are tried.
const EXACT: usize = 16;
/// Beyond it, this number of random choices.
const DRAWN: u32 = 20_000;

/// Two-sided p value of the mean of a − b over pairs `(a, b)`, if each difference could as well have had the other sign: exact
/// up to 16 pairs, else from 20 000 draws of the stream `sign-flip` of `seed`. `None` without a pair that differs.
pub fn sign_flip_probability(pairs: &[(f64, f64)], seed: u64) -> Option<f64> {
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).filter(|difference| *difference != 0.0).collect();
    let observed = differences.iter().sum::<f64>().abs();
    // Sums of the same numbers in another order are equal but for rounding.
    let least = observed - 1e-12 * differences.iter().map(|difference| difference.abs()).sum::<f64>();
    let is_extreme = |flipped: &dyn Fn(usize) -> bool| {
        let terms = differences.iter().enumerate();
        terms.map(|(i, difference)| if flipped(i) { -difference } else { *difference }).sum::<f64>().abs() >= least
    };
    match differences.len() {
        0 => None,
        n @ ..=EXACT => {
            let extreme = (0..1u32 << n).filter(|signs| is_extreme(&|i| signs >> i & 1 == 1)).count();
            Some(extreme as f64 / f64::from(1u32 << n))
        }
        n => {
            let mut rng = Rng::stream(seed, "sign-flip");
            let mut flips = vec![false; n];
            let extreme = (0..DRAWN).filter(|_| {
                flips.iter_mut().for_each(|flip| *flip = rng.chance(0.5));
                is_extreme(&|i| flips[i])
            });
            // The observed signs are one of the draws (Phipson and Smyth 2010).
            Some((extreme.count() + 1) as f64 / f64::from(DRAWN + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::signed_rank::tests::{MAIZE, as_pairs};

    #[test]
    fn fishers_count_of_darwins_maize() {
        // The Design of Experiments, §21: 835 of 32 768 sums exceed 314 and 28 equal it, on each side.
        assert_eq!(sign_flip_probability(&as_pairs(&MAIZE), 1), Some(2.0 * 863.0 / 32_768.0));
    }

    #[test]
    fn draws_agree_with_the_whole() {
        // Two pairs more that cancel in the sum: 17 in all.
        let mut pairs = as_pairs(&MAIZE);
        pairs.extend([(1e-3, 0.0), (0.0, 1e-3)]);
        let drawn = sign_flip_probability(&pairs, 1).unwrap();
        // A standard error of √(0.053·0.947/20 000) = 0.0016.
        assert!((drawn - 0.0527).abs() < 0.005, "{drawn}");
        assert_eq!(sign_flip_probability(&pairs, 1), Some(drawn));
    }

    #[test]
    fn few_pairs_say_little() {
        assert_eq!(sign_flip_probability(&[(2.0, 2.0)], 1), None);
        assert_eq!(sign_flip_probability(&[], 1), None);
        assert_eq!(sign_flip_probability(&as_pairs(&[1.0, 2.0, 3.0]), 1), Some(0.25));
        assert_eq!(sign_flip_probability(&as_pairs(&[0.1, 0.2, -0.3]), 1), Some(1.0));
    }

    #[test]
    fn without_a_difference_small_values_are_as_rare_as_they_say() {
        let mut rng = Rng::stream(5, "null");
        let trials = (0..2000).filter(|_| {
            let differences: Vec<f64> = (0..8).map(|_| rng.unit() - 0.5).collect();
            sign_flip_probability(&as_pairs(&differences), 1).unwrap() <= 0.05
        });
        // 12 of 256 choices: 0.0469 ± 0.0047.
        let share = trials.count() as f64 / 2000.0;
        assert!((0.032..0.062).contains(&share), "{share}");
    }
}
