//! The source of a case: a random stream, or a fuzzer's bytes.

use anabranch_units::{Duration, Rng};

/// Draws. After the last byte every draw is the first choice, the least number or "no", so that a small change of a
/// fuzzer's input changes little of the case.
#[derive(Debug)]
pub enum Luck<'a> {
    /// From a seed.
    Drawn(Rng),
    /// From bytes.
    Given(&'a [u8]),
}

impl Luck<'_> {
    fn bytes(&mut self, count: usize) -> u64 {
        match self {
            Self::Drawn(rng) => rng.bits(),
            Self::Given(bytes) => {
                let (now, rest) = bytes.split_at(count.min(bytes.len()));
                *bytes = rest;
                now.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
        }
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.bytes(8)
    }

    /// Uniform in `0..bound`; zero if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        match self {
            Self::Drawn(rng) => rng.below(bound),
            Self::Given(_) if bound <= 1 => 0,
            Self::Given(_) => self.bytes(if bound <= 256 { 1 } else { 4 }) % bound,
        }
    }

    /// Uniform in `low..=high`.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        match self {
            Self::Drawn(rng) => rng.unit(),
            Self::Given(_) => self.bytes(2) as f64 / 65_536.0,
        }
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        1.0 - self.unit() <= p
    }

    /// One of `items`.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Log-uniform in `low..=high`, both above zero.
    pub fn spread(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low as f64, high as f64);
        libm::round(low * libm::pow(high / low, self.unit())) as u64
    }

    /// Log-uniform between two numbers above zero.
    pub fn spread_real(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    /// A length of time, log-uniform between numbers of microseconds.
    pub fn time(&mut self, low_us: u64, high_us: u64) -> Duration {
        Duration::from_micros(self.spread(low_us, high_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_run_out_says_no() {
        let mut luck = Luck::Given(&[0xff, 0xff, 3]);
        assert!(luck.chance(0.5));
        assert_eq!(luck.below(2), 1);
        assert_eq!((luck.below(7), luck.within(4, 9), luck.spread(10, 1000), luck.bits()), (0, 4, 10, 0));
        assert!(!luck.chance(0.999));
    }

    #[test]
    fn draws_stay_in_their_range() {
        let mut luck = Luck::Drawn(Rng::stream(1, "luck"));
        assert!((0..1000).all(|_| (10..=1000).contains(&luck.spread(10, 1000))));
        assert!((0..1000).all(|_| !luck.chance(0.0)));
        assert!((0..1000).all(|_| luck.chance(1.0)));
    }
}
