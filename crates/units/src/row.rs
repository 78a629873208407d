//! A queue whose values lie side by side.

use core::ops::{Deref, DerefMut};

/// As a `VecDeque`, but one slice, whose beginning moves: what searches or shifts it takes no care of where a ring ends.
#[derive(Clone, Debug)]
pub(crate) struct Row<T> {
    /// Those before `head` are gone.
    items: Vec<T>,
    head: usize,
}

impl<T> Default for Row<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Row<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.items[self.head..]
    }
}

impl<T> DerefMut for Row<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[self.head..]
    }
}

impl<T> Row<T> {
    pub const fn new() -> Self {
        Self { items: Vec::new(), head: 0 }
    }
}

/// In place of what a slice has: nothing is gone where nothing is left, so that neither end needs a look at `head`.
impl<T> Row<T> {
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    #[inline(always)]
    pub fn first(&self) -> Option<&T> {
        self.items.get(self.head)
    }

    #[inline(always)]
    pub fn first_mut(&mut self) -> Option<&mut T> {
        self.items.get_mut(self.head)
    }

    #[inline(always)]
    pub fn last(&self) -> Option<&T> {
        self.items.last()
    }

    #[inline(always)]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.items.last_mut()
    }
}

impl<T: Copy> Row<T> {
    #[inline(always)]
    pub fn push_back(&mut self, value: T) {
        self.make_room();
        self.items.push(value);
    }

    #[inline(always)]
    pub fn pop_front(&mut self) {
        if self.head < self.items.len() {
            self.head += 1;
        }
        self.forget_none();
    }

    /// The shorter side moves; the upper one if there is no room before the first.
    #[inline]
    pub fn insert(&mut self, at: usize, value: T) {
        if self.head > 0 && at < self.len() / 2 {
            self.items.copy_within(self.head..self.head + at, self.head - 1);
            self.head -= 1;
            self.items[self.head + at] = value;
        } else {
            self.make_room();
            self.items.insert(self.head + at, value);
        }
    }

    /// The shorter side moves.
    #[inline]
    pub fn remove(&mut self, at: usize) {
        if at < self.len() / 2 {
            self.items.copy_within(self.head..self.head + at, self.head + 1);
            self.head += 1;
        } else {
            self.items.remove(self.head + at);
        }
        self.forget_none();
    }

    /// Removes those from `from` on and before `to`. The shorter side moves.
    pub fn cut(&mut self, from: usize, to: usize) {
        if from < self.len() - to {
            self.items.copy_within(self.head..self.head + from, self.head + to - from);
            self.head += to - from;
        } else {
            self.items.drain(self.head + from..self.head + to);
        }
        self.forget_none();
    }

    pub fn truncate(&mut self, count: usize) {
        self.items.truncate(self.head + count);
        self.forget_none();
    }

    pub fn clear(&mut self) {
        self.items.clear();
        self.head = 0;
    }

    /// Those that are gone need no place once none is left.
    #[inline(always)]
    fn forget_none(&mut self) {
        if self.head == self.items.len() {
            self.clear();
        }
    }

    /// Takes the place of those that are gone before it takes more, if they are more than half.
    #[inline(always)]
    fn make_room(&mut self) {
        if self.items.len() == self.items.capacity() && self.head > self.items.len() / 2 {
            self.close_up();
        }
    }

    #[cold]
    fn close_up(&mut self) {
        self.items.drain(..self.head);
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(ops in prop::collection::vec((0u8..6, any::<u32>()), 1..300)) {
            let (mut row, mut queue) = (Row::new(), VecDeque::new());
            for (op, number) in ops {
                let at = number as usize % (queue.len() + 1);
                match op {
                    0 => { row.pop_front(); queue.pop_front(); }
                    1 | 2 => { row.push_back(number); queue.push_back(number); }
                    3 => { row.insert(at, number); queue.insert(at, number); }
                    4 if at < queue.len() => { row.remove(at); queue.remove(at); }
                    5 if number % 16 == 0 => { row.truncate(at); queue.truncate(at); }
                    _ => { row.cut(at / 2, at); queue.drain(at / 2..at); }
                }
                prop_assert!(row.iter().eq(queue.iter()));
                prop_assert_eq!((row.first(), row.last(), row.is_empty()), (queue.front(), queue.back(), queue.is_empty()));
                prop_assert_eq!(row.first_mut(), queue.front_mut());
                prop_assert_eq!(row.last_mut(), queue.back_mut());
            }
        }
    }

    #[test]
    fn what_passes_through_takes_no_room() {
        let mut row = Row::new();
        for n in 0..10_000 {
            row.push_back(n);
            if n >= 3 {
                row.pop_front();
            }
        }
        assert_eq!((&row[..], row.items.capacity() <= 8), (&[9_997, 9_998, 9_999][..], true));
    }
}
