//! Money spent on paths whose price may change.

use super::PathConfig;
use anabranch_units::Instant;

/// The prices of all paths. Bytes are counted where a price changes, and at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Prices(Vec<PathPrice>);

#[derive(Clone, Debug)]
struct PathPrice {
    /// Changes to come, the latest first.
    changes: Vec<(Instant, f64)>,
    /// Price per payload byte.
    price: f64,
    /// Whether any of its prices is not zero.
    costs: bool,
    /// Bytes that `spent` holds.
    counted: u64,
    spent: f64,
}

impl Prices {
    pub fn new(paths: &[PathConfig]) -> Self {
        let of = |path: &PathConfig| {
            let mut changes = path.prices.clone();
            let costs = path.price != 0.0 || changes.iter().any(|(_, price)| *price != 0.0);
            changes.reverse();
            PathPrice { changes, price: path.price, costs, counted: 0, spent: 0.0 }
        };
        Self(paths.iter().map(of).collect())
    }

    /// When a price changes next; [`Instant::MAX`] if none does.
    pub fn next(&self) -> Instant {
        self.0.iter().filter_map(|path| path.changes.last()).map(|(at, _)| *at).min().unwrap_or(Instant::MAX)
    }

    /// Carries out the changes up to `now`. `bytes`: sent over a path since the measured time began.
    pub fn advance(&mut self, now: Instant, bytes: impl Fn(usize) -> u64) {
        for (n, path) in self.0.iter_mut().enumerate() {
            while let Some((_, price)) = path.changes.pop_if(|(at, _)| *at <= now) {
                path.count(bytes(n));
                path.price = price;
            }
        }
    }

    /// The measured time begins: nothing is spent yet.
    pub fn restart(&mut self) {
        for path in &mut self.0 {
            (path.counted, path.spent) = (0, 0.0);
        }
    }

    /// All that was spent; `None` where nothing costs anything.
    pub fn spent(mut self, bytes: impl Fn(usize) -> u64) -> Option<f64> {
        self.0.iter_mut().enumerate().for_each(|(n, path)| path.count(bytes(n)));
        let costs = self.0.iter().any(|path| path.costs);
        costs.then(|| self.0.iter().map(|path| path.spent).sum())
    }
}

impl PathPrice {
    fn count(&mut self, bytes: u64) {
        self.spent += self.price * (bytes - self.counted) as f64;
        self.counted = bytes;
    }
}
