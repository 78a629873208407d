//! A queue whose values also come and go in the middle.

use std::collections::VecDeque;

/// The most values of a block: half of them are moved about as fast as a place among 10⁵ is found.
const SIZE: usize = 64;

/// As a `VecDeque`, but in blocks: a value that comes or goes in the middle moves the others of its block, and rarely the list of blocks.
#[derive(Clone, Debug)]
pub struct Blocks<T> {
    /// No block is empty unless it is the only one.
    blocks: VecDeque<VecDeque<T>>,
    /// The number of values.
    len: usize,
}

/// The place of a value: its block, and its place in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At(usize, usize);

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Self { blocks: VecDeque::new(), len: 0 }
    }
}

impl<T> Blocks<T> {
    /// True without values.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of values for which the first block has memory.
    pub fn room(&self) -> usize {
        self.blocks.front().map_or(0, VecDeque::capacity)
    }

    /// The first value.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        self.blocks.front()?.front()
    }

    /// The first value, to be changed.
    #[inline(always)]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.blocks.front_mut()?.front_mut()
    }

    /// The last value.
    #[inline(always)]
    pub fn back(&self) -> Option<&T> {
        self.blocks.back()?.back()
    }

    /// The last value, to be changed.
    #[inline(always)]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.blocks.back_mut()?.back_mut()
    }

    /// Adds a value at the end.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        self.len += 1;
        match self.blocks.back_mut() {
            Some(last) if last.len() < SIZE => last.push_back(value),
            _ => self.push_block(value),
        }
    }

    #[cold]
    #[inline(never)]
    fn push_block(&mut self, value: T) {
        // Where one block is full, the next will be.
        let mut block = VecDeque::with_capacity(if self.blocks.is_empty() { 0 } else { SIZE });
        block.push_back(value);
        self.blocks.push_back(block);
    }

    /// Takes the first value.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.blocks.front_mut()?;
        let value = first.pop_front()?;
        self.len -= 1;
        if first.is_empty() && self.blocks.len() > 1 {
            self.blocks.pop_front();
        }
        Some(value)
    }

    /// The place of the first value of which `is_before` is false, as `slice::partition_point` finds it.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> At {
        let block = self.blocks.partition_point(|block| block.back().is_some_and(&is_before));
        At(block, self.blocks.get(block).map_or(0, |block| block.partition_point(is_before)))
    }

    /// The place behind all.
    pub fn end(&self) -> At {
        At(self.blocks.len(), 0)
    }

    /// The place of the last value.
    pub fn last(&self) -> Option<At> {
        let block = self.blocks.len().checked_sub(1)?;
        Some(At(block, self.blocks[block].len().checked_sub(1)?))
    }

    /// The value at a place, if there is one.
    pub fn get(&self, At(block, at): At) -> Option<&T> {
        self.blocks.get(block)?.get(at)
    }

    /// The value at a place, if there is one, to be changed.
    pub fn get_mut(&mut self, At(block, at): At) -> Option<&mut T> {
        self.blocks.get_mut(block)?.get_mut(at)
    }

    /// The place before one.
    pub fn before(&self, At(block, at): At) -> Option<At> {
        match at.checked_sub(1) {
            Some(at) => Some(At(block, at)),
            None => {
                let block = block.checked_sub(1)?;
                Some(At(block, self.blocks[block].len().checked_sub(1)?))
            }
        }
    }

    /// The place after that of a value.
    pub fn after(&self, At(block, at): At) -> At {
        if at + 1 < self.blocks[block].len() { At(block, at + 1) } else { At(block + 1, 0) }
    }

    /// Inserts `value` at a place, before the value there, and returns the place of `value`.
    pub fn insert(&mut self, place: At, value: T) -> At {
        let At(mut block, mut at) = place;
        if block == self.blocks.len() {
            self.push_back(value);
            return self.last().unwrap_or(place);
        }
        if self.blocks[block].len() >= SIZE {
            let upper = self.blocks[block].split_off(SIZE / 2);
            self.blocks.insert(block + 1, upper);
            if at > SIZE / 2 {
                (block, at) = (block + 1, at - SIZE / 2);
            }
        }
        self.blocks[block].insert(at, value);
        self.len += 1;
        At(block, at)
    }

    /// Removes the value at a place.
    pub fn remove(&mut self, At(block, at): At) {
        self.blocks[block].remove(at);
        self.len -= 1;
        let next = self.blocks.get(block + 1).map_or(SIZE, VecDeque::len);
        if self.blocks[block].len() + next <= SIZE / 2 {
            let mut next = self.blocks.remove(block + 1).unwrap_or_default();
            self.blocks[block].append(&mut next);
        } else if self.blocks[block].is_empty() && self.blocks.len() > 1 {
            self.blocks.remove(block);
        }
    }

    /// All from a place on.
    pub fn from(&self, At(block, at): At) -> impl Iterator<Item = &T> + '_ {
        let first = self.blocks.get(block).into_iter().flat_map(move |block| block.range(at..));
        let others = self.blocks.range((block + 1).min(self.blocks.len())..).flatten();
        first.chain(others)
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + '_ {
        self.blocks.iter().flatten()
    }

    /// Gives back the memory that no value needs.
    pub fn shrink_to_fit(&mut self) {
        if self.is_empty() {
            self.blocks.clear();
        }
        self.blocks.iter_mut().for_each(VecDeque::shrink_to_fit);
        self.blocks.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_queue(ops in prop::collection::vec((0u8..9, any::<u32>()), 1..900)) {
            let (mut blocks, mut queue) = (Blocks::default(), VecDeque::new());
            for (op, number) in ops {
                let at = number as usize % (queue.len() + 1);
                let place = |blocks: &Blocks<u32>| (0..at).fold(At(0, 0), |at, _| blocks.after(at));
                match op {
                    0 => prop_assert_eq!(blocks.pop_front(), queue.pop_front()),
                    1 | 2 => { blocks.push_back(number); queue.push_back(number); }
                    3..7 => {
                        let at_end = at == queue.len();
                        let inserted = blocks.insert(if at_end { blocks.end() } else { place(&blocks) }, number);
                        queue.insert(at, number);
                        prop_assert_eq!(blocks.get(inserted), Some(&number));
                    }
                    _ if at < queue.len() => { blocks.remove(place(&blocks)); queue.remove(at); }
                    _ => {}
                }
                prop_assert!(blocks.iter().eq(queue.iter()));
                prop_assert!(blocks.iter().rev().eq(queue.iter().rev()));
                prop_assert_eq!((blocks.front(), blocks.back(), blocks.len()), (queue.front(), queue.back(), queue.len()));
                prop_assert_eq!(blocks.last().and_then(|last| blocks.get(last)), queue.back());
                prop_assert!(blocks.blocks.len() <= 1 || blocks.blocks.iter().all(|block| (1..=SIZE).contains(&block.len())));
                prop_assert_eq!(blocks.before(blocks.end()).and_then(|last| blocks.get(last)), queue.back());
                if at < queue.len() {
                    let place = place(&blocks);
                    prop_assert!(blocks.from(place).eq(queue.range(at..)));
                    let before = blocks.before(place).and_then(|before| blocks.get(before));
                    prop_assert_eq!(before, at.checked_sub(1).map(|before| &queue[before]));
                }
            }
        }

        #[test]
        fn a_place_is_found_by_halving(count in 0u32..300, above in 0u32..320) {
            let mut blocks = Blocks::default();
            (0..count).for_each(|n| blocks.push_back(n));
            let found = blocks.get(blocks.partition_point(|n| *n < above));
            prop_assert_eq!(found, (above < count).then_some(&above));
        }
    }
}
