//! Bytes over time in a bounded number of intervals.

use anabranch_units::{Duration, Instant};

/// Most intervals; then pairs become one.
const MOST: usize = 128;
const FIRST_WIDTH: Duration = Duration::from_millis(10);

/// Several sums over the same intervals, which double their width with time.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    begin: Instant,
    pub width: Duration,
    /// Sums by column, then by interval.
    pub columns: Vec<Vec<u64>>,
}

impl Curve {
    /// A curve from `begin` on.
    pub fn new(begin: Instant) -> Self {
        Self { begin, width: FIRST_WIDTH, columns: Vec::new() }
    }

    /// Adds `bytes` to a column.
    pub fn add(&mut self, now: Instant, column: usize, bytes: u64) {
        let since = now.since(self.begin).as_nanos();
        while since / self.width.as_nanos() >= MOST as u64 {
            self.width = self.width + self.width;
            for column in &mut self.columns {
                *column = column.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
        let at = (since / self.width.as_nanos()) as usize;
        if self.columns.len() <= column {
            self.columns.resize(column + 1, Vec::new());
        }
        let column = &mut self.columns[column];
        if column.len() <= at {
            column.resize(at + 1, 0);
        }
        column[at] += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_when_intervals_double() {
        let mut curve = Curve::new(Instant::from_millis(100));
        (0..10_000).for_each(|n| curve.add(Instant::from_millis(100 + n), (n % 2) as usize, n));
        assert_eq!(curve.width, Duration::from_millis(80));
        assert_eq!(curve.columns[1].len(), 125);
        assert_eq!(curve.columns.concat().iter().sum::<u64>(), (0..10_000).sum::<u64>());
        assert_eq!(curve.columns[0][0], (0..80).step_by(2).sum::<u64>());
    }
}
