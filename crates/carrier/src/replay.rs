//! Which counters came already (RFC 6479).

/// Remembers the last [`Window::SIZE`] counters of one path in one direction. What is older counts as a replay.
#[derive(Debug)]
pub(crate) struct Window {
    /// A ring of blocks; bit `n % 64` of block `n / 64 % BLOCKS` is counter n.
    blocks: [u64; Self::BLOCKS],
    /// One more than the highest counter.
    next: u64,
}

impl Window {
    const BLOCKS: usize = 128;
    /// Counters below the highest that are remembered, whatever their place in a block.
    pub const SIZE: u64 = (Self::BLOCKS as u64 - 1) * 64;

    pub fn new() -> Self {
        Self { blocks: [0; Self::BLOCKS], next: 0 }
    }

    /// True if `counter` did not come before, as far as that is known.
    pub fn is_new(&self, counter: u64) -> bool {
        counter >= self.next || (counter + Self::SIZE >= self.next && self.blocks[place(counter)] & bit(counter) == 0)
    }

    /// Notes a counter [that is new](Self::is_new), once its datagram is authenticated. True if it is the highest so far.
    pub fn note(&mut self, counter: u64) -> bool {
        let is_highest = counter >= self.next;
        if is_highest {
            // The block of the highest counter so far is kept; those up to the new one are emptied.
            let (from, to) = (self.next.div_ceil(64), counter / 64);
            for block in (from..=to).take(Self::BLOCKS) {
                self.blocks[block as usize % Self::BLOCKS] = 0;
            }
            self.next = counter + 1;
        }
        self.blocks[place(counter)] |= bit(counter);
        is_highest
    }
}

fn place(counter: u64) -> usize {
    (counter / 64) as usize % Window::BLOCKS
}

fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set of all counters that came.
        #[test]
        fn a_counter_is_new_once(steps in proptest::collection::vec((0u64..3, 0u64..20_000), 1..400)) {
            let (mut window, mut seen, mut base) = (Window::new(), BTreeSet::new(), 0u64);
            for (kind, step) in steps {
                base += match kind { 0 => 1, 1 => 63, _ => step };
                for counter in [base, base.saturating_sub(step), base.saturating_sub(1)] {
                    let highest = seen.last().copied();
                    let in_window = highest.is_none_or(|highest| counter + Window::SIZE > highest);
                    let expected = in_window && !seen.contains(&counter);
                    prop_assert_eq!(window.is_new(counter), expected, "{} after {:?}", counter, highest);
                    if expected {
                        prop_assert_eq!(window.note(counter), highest.is_none_or(|highest| counter > highest));
                        seen.insert(counter);
                    }
                }
            }
        }
    }

    #[test]
    fn the_window_is_at_least_2048_wide() {
        let mut window = Window::new();
        const { assert!(Window::SIZE >= 2_048) };
        window.note(100_000);
        assert!(window.is_new(100_000 - 2_048) && !window.is_new(100_000));
        assert!(!window.is_new(100_000 - 10_000));
    }
}
