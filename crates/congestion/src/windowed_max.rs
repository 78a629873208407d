//! The greatest of the recent values.

use std::collections::VecDeque;

/// The greatest value of the last rounds. Keeps at most one value per round, and drops values that a later one reaches.
#[derive(Clone, Debug)]
pub struct WindowedMax {
    rounds: u64,
    /// Rounds ascend, values descend.
    best: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// Over `rounds` rounds, the current one included.
    pub const fn new(rounds: u64) -> Self {
        Self { rounds, best: VecDeque::new() }
    }

    /// The greatest value; zero if there is none.
    pub fn get(&self) -> f64 {
        self.best.front().map_or(0.0, |(_, value)| *value)
    }

    /// Adds a value of `round`, which never decreases.
    pub fn insert(&mut self, round: u64, value: f64) {
        while self.best.back().is_some_and(|(_, last)| *last <= value) {
            self.best.pop_back();
        }
        if self.best.back().is_none_or(|(last, _)| *last != round) {
            self.best.push_back((round, value));
        }
        while self.best.front().is_some_and(|(first, _)| first + self.rounds <= round) {
            self.best.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn it_is_the_greatest_of_the_last_rounds(steps in vec((0..3_u64, 0..20_u32), 1..200)) {
            let (mut max, mut all, mut round) = (WindowedMax::new(4), Vec::new(), 0);
            for (after, value) in steps {
                round += after;
                all.push((round, f64::from(value)));
                max.insert(round, f64::from(value));
                let recent = all.iter().filter(|(r, _)| r + 4 > round);
                prop_assert_eq!(max.get(), recent.map(|(_, v)| *v).fold(0.0, f64::max));
                prop_assert!(max.best.len() <= 4);
            }
        }
    }
}
