//! The measured one-way delays of packets.

use anabranch_metrics::Histogram;
use anabranch_units::{Direction, Duration};

/// One-way delays of the packets that reached hosts outside: from the read of a packet by the world to its write to the
/// host's device, lateness included.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// Nanoseconds, per path: down, then up.
    ways: Vec<Histogram>,
}

impl Delays {
    /// Records a packet's delay.
    pub fn note(&mut self, path: usize, direction: Direction, delay: Duration) {
        let way = 2 * path + direction as usize;
        if way >= self.ways.len() {
            self.ways.resize(way + 1, Histogram::default());
        }
        self.ways[way].add(delay.as_nanos(), 1);
    }

    /// The histogram of one direction of a path.
    fn way(&self, path: usize, direction: Direction) -> Option<&Histogram> {
        self.ways.get(2 * path + direction as usize)
    }

    /// The mean in seconds; `None` if no packet arrived.
    pub fn mean_s(&self, path: usize, direction: Direction) -> Option<f64> {
        Some(self.way(path, direction)?.mean()? / 1e9)
    }

    /// The quantile `p` in seconds; `None` if no packet arrived.
    pub fn quantile_s(&self, path: usize, direction: Direction, p: f64) -> Option<f64> {
        Some(self.way(path, direction)?.quantile(p)? / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_apart() {
        let mut delays = Delays::default();
        assert_eq!(delays.mean_s(0, Direction::Down), None);
        for millis in [10, 20, 30] {
            delays.note(1, Direction::Down, Duration::from_millis(millis));
        }
        delays.note(0, Direction::Up, Duration::from_millis(1));
        assert_eq!(delays.mean_s(1, Direction::Down), Some(0.02));
        assert_eq!(delays.mean_s(1, Direction::Up), None);
        assert_eq!(delays.mean_s(0, Direction::Down), None);
        let p99 = delays.quantile_s(1, Direction::Down, 0.99).unwrap();
        assert!((p99 - 0.0298).abs() < 1e-4, "{p99}");
    }
}
