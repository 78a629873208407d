//! The most that flows carry over links that they share, each flow over links of its own: a linear program, solved by the simplex method
//! (Dantzig 1951) with Bland's rule (1977), under which it ends.

/// Below this a coefficient is zero; coefficients are near one.
const ZERO: f64 = 1e-11;

/// Links: the most that all flows over one carry together, and these flows.
pub(super) type Links = [(f64, Vec<usize>)];

/// The largest Σ `worth` × flow, where flow n is at most `most[n]`, and those of each link together at most what it carries. None of the
/// numbers is negative.
pub(super) fn most_worth(worth: &[f64], most: &[f64], links: &Links) -> f64 {
    let own = most.iter().enumerate().map(|(flow, most)| (*most, vec![flow]));
    let mut table = Table::new(worth, &own.chain(links.iter().cloned()).collect::<Vec<_>>());
    while let Some((row, column)) = table.pivot() {
        table.exchange(row, column);
    }
    table.value
}

/// Each row: what a quantity has left, minus what the free quantities take of it.
struct Table {
    value: f64,
    /// Growth of the value per unit of each free quantity.
    growth: Vec<f64>,
    left: Vec<f64>,
    takes: Vec<Vec<f64>>,
    /// Names of the free quantities and of those in the rows: flows first, then what links have left.
    free: Vec<usize>,
    bound: Vec<usize>,
}

impl Table {
    fn new(worth: &[f64], rows: &Links) -> Self {
        let flows = worth.len();
        let takes = |members: &[usize]| (0..flows).map(|flow| f64::from(u8::from(members.contains(&flow)))).collect();
        Self {
            value: 0.0,
            growth: worth.to_vec(),
            left: rows.iter().map(|(limit, _)| *limit).collect(),
            takes: rows.iter().map(|(_, members)| takes(members)).collect(),
            free: (0..flows).collect(),
            bound: (flows..flows + rows.len()).collect(),
        }
    }

    /// The row and the column of the next exchange; `None` at the optimum. Of several, those with the least names.
    fn pivot(&self) -> Option<(usize, usize)> {
        let columns = (0..self.free.len()).filter(|column| self.growth[*column] > ZERO);
        let column = columns.min_by_key(|column| self.free[*column])?;
        let rows = (0..self.bound.len()).filter(|row| self.takes[*row][column] > ZERO);
        let ratio = |row: &usize| self.left[*row] / self.takes[*row][column];
        let row = rows.min_by(|a, b| ratio(a).total_cmp(&ratio(b)).then(self.bound[*a].cmp(&self.bound[*b])))?;
        Some((row, column))
    }

    /// The free quantity of `column` grows until that of `row` has nothing left.
    fn exchange(&mut self, row: usize, column: usize) {
        let pivot = self.takes[row][column];
        self.takes[row][column] = 1.0;
        self.takes[row].iter_mut().for_each(|take| *take /= pivot);
        self.left[row] /= pivot;
        let (takes, left) = (self.takes[row].clone(), self.left[row]);
        for other in (0..self.left.len()).filter(|other| *other != row) {
            let factor = core::mem::replace(&mut self.takes[other][column], 0.0);
            self.takes[other].iter_mut().zip(&takes).for_each(|(take, by)| *take -= factor * by);
            self.left[other] = (self.left[other] - factor * left).max(0.0);
        }
        let factor = core::mem::replace(&mut self.growth[column], 0.0);
        self.growth.iter_mut().zip(&takes).for_each(|(growth, by)| *growth -= factor * by);
        self.value += factor * left;
        core::mem::swap(&mut self.free[column], &mut self.bound[row]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_parking_lot_is_filled_by_its_short_flows() {
        let links = vec![(10.0, vec![0, 1]), (10.0, vec![0, 2]), (10.0, vec![0, 3])];
        assert_eq!(most_worth(&[1.0; 4], &[100.0; 4], &links), 30.0);
        // The long flow alone takes what its narrowest link has.
        assert_eq!(most_worth(&[1.0], &[100.0], &[(10.0, vec![0]), (4.0, vec![0]), (7.0, vec![0])]), 4.0);
        // Each of three flows over two of three links of 1: half of each.
        let ring = vec![(1.0, vec![0, 1]), (1.0, vec![1, 2]), (1.0, vec![2, 0])];
        assert!((most_worth(&[1.0; 3], &[9.0; 3], &ring) - 1.5).abs() < 1e-12);
        assert_eq!(most_worth(&[0.5, 1.0], &[3.0, 2.0], &[(4.0, vec![0, 1])]), 3.0);
        assert_eq!(most_worth(&[], &[], &[]), 0.0);
    }

    proptest! {
        /// Against a grid of all flows in tenths, whose best is below by at most a step of each flow.
        #[test]
        fn no_other_shares_are_worth_more(
            worth in prop::collection::vec(0.0..1.0f64, 3),
            most in prop::collection::vec(0u32..10, 3),
            links in prop::collection::vec((0u32..15, prop::collection::vec(any::<bool>(), 3)), 1..4),
        ) {
            let links: Vec<(f64, Vec<usize>)> = links
                .into_iter()
                .map(|(limit, of)| (f64::from(limit), (0..3).filter(|n| of[*n]).collect()))
                .collect();
            let most: Vec<f64> = most.into_iter().map(f64::from).collect();
            let mut best = 0.0f64;
            let steps = |n: usize| (0..=(4.0 * most[n]) as u32).map(|step| f64::from(step) / 4.0);
            for (a, b) in steps(0).flat_map(|a| steps(1).map(move |b| (a, b))) {
                for c in steps(2) {
                    let flows = [a, b, c];
                    if links.iter().all(|(limit, of)| of.iter().map(|n| flows[*n]).sum::<f64>() <= *limit) {
                        best = best.max(flows.iter().zip(&worth).map(|(flow, worth)| flow * worth).sum());
                    }
                }
            }
            let found = most_worth(&worth, &most, &links);
            prop_assert!(found >= best - 1e-9 && found <= best + 0.25 * worth.iter().sum::<f64>() + 1e-9, "{found} {best}");
        }
    }
}
