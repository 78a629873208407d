//! The data that is bound to one path and has not left.

use super::view::Queued;
use anabranch_units::{Range, RangeSet};
use std::collections::VecDeque;

/// First transmissions, and copies that stand before some of them.
#[derive(Clone, Debug, Default)]
pub(super) struct PathQueue {
    /// First transmissions with their numbers, which never descend; parts of one share its number.
    firsts: VecDeque<(u64, Queued)>,
    /// Each with the number of the first transmission before which it leaves; these numbers ascend.
    copies: VecDeque<(u64, Queued)>,
    /// The data of copies, which are disjoint.
    copied: RangeSet,
    /// The number of the next first transmission.
    next: u64,
    /// A scheduler bound first transmissions out of order, or some that overlap, since none waited.
    tangled: bool,
    /// Where the data begins to which [`Round::append`](super::Round::append) last began to add.
    pub open: u64,
}

/// The place of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    First(usize),
    Copy(usize),
}

impl PathQueue {
    pub fn len(&self) -> usize {
        self.firsts.len() + self.copies.len()
    }

    pub fn is_empty(&self) -> bool {
        self.firsts.is_empty() && self.copies.is_empty()
    }

    /// In the order in which they leave.
    pub fn iter(&self) -> impl Iterator<Item = Queued> + '_ {
        self.places().map(|place| self.at(place))
    }

    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let (mut first, mut copy) = (0, 0);
        core::iter::from_fn(move || {
            let place = match (self.firsts.get(first), self.copies.get(copy)) {
                (None, None) => return None,
                (Some(_), None) => Place::First(first),
                (Some((number, _)), Some((before, _))) if before > number => Place::First(first),
                _ => Place::Copy(copy),
            };
            match place {
                Place::First(_) => first += 1,
                Place::Copy(_) => copy += 1,
            }
            Some(place)
        })
    }

    #[inline]
    fn at(&self, place: Place) -> Queued {
        match place {
            Place::First(n) => self.firsts[n].1,
            Place::Copy(n) => self.copies[n].1,
        }
    }

    /// First transmissions, in the order in which they joined.
    pub fn firsts(&self) -> impl DoubleEndedIterator<Item = Range> + Clone + '_ {
        self.firsts.iter().map(|(_, queued)| queued.range)
    }

    /// The first transmission that joined last.
    pub fn last_first(&mut self) -> Option<&mut Queued> {
        self.firsts.back_mut().map(|(_, queued)| queued)
    }

    /// The place of the first item of at most `most` bytes that ends at or before `edge`.
    #[inline(always)]
    pub fn find(&self, in_sequence: bool, edge: u64, most: u64) -> Option<Place> {
        let admits = |q: &Queued| q.range.end <= edge && q.range.len() <= most;
        // Nearly always it is the first.
        let front = match (self.firsts.front(), self.copies.front()) {
            (Some((number, _)), Some((before, _))) if before > number => Place::First(0),
            (Some(_), None) => Place::First(0),
            (None, None) => return None,
            _ => Place::Copy(0),
        };
        match admits(&self.at(front)) {
            true => Some(front),
            false if in_sequence => None,
            false => self.find_later(edge, &admits),
        }
    }

    /// Place of the first such item, where it is not the front.
    #[cold]
    #[inline(never)]
    fn find_later(&self, edge: u64, admits: &dyn Fn(&Queued) -> bool) -> Option<Place> {
        // First transmissions that ascend end where the first of them ends beyond the edge: tens of thousands may wait for a window.
        let shut = !self.tangled && self.firsts.front().is_some_and(|(_, first)| first.range.end > edge);
        match shut {
            true => (0..self.copies.len()).map(Place::Copy).find(|place| admits(&self.at(*place))),
            false => self.places().find(|place| admits(&self.at(*place))),
        }
    }

    #[inline(always)]
    pub fn take(&mut self, place: Place) -> Option<Queued> {
        match place {
            Place::First(0) => self.firsts.pop_front().map(|(_, queued)| queued),
            Place::First(n) => self.firsts.remove(n).map(|(_, queued)| queued),
            Place::Copy(n) => {
                let (_, queued) = self.copies.remove(n)?;
                self.copied.remove(queued.range);
                Some(queued)
            }
        }
    }

    #[inline(always)]
    pub fn push_first(&mut self, queued: Queued) {
        self.tangled = match self.firsts.back() {
            Some((_, last)) => self.tangled || queued.range.start < last.range.end,
            None => false,
        };
        self.firsts.push_back((self.next, queued));
        self.next += 1;
    }

    /// Copies precede the first transmissions that yield to them, in the order of the scheduler's commands.
    pub fn push_copy(&mut self, queued: Queued) {
        let (_, before) = self.yields(queued);
        let place = self.copies.partition_point(|(of, _)| *of <= before);
        self.copies.insert(place, (before, queued));
        self.copied.insert(queued.range);
    }

    /// How many items would leave before `copy`.
    pub fn ahead_of(&self, copy: Queued) -> usize {
        let (first, before) = self.yields(copy);
        first + self.copies.partition_point(|(of, _)| *of <= before)
    }

    /// Index and number of the first of the first transmissions that yield to `copy`.
    fn yields(&self, copy: Queued) -> (usize, u64) {
        let index = match self.tangled {
            // They ascend: those of later data are at the end.
            false => self.firsts.partition_point(|(_, queued)| !queued.yields_to(copy)),
            true => self.firsts.iter().position(|(_, q)| q.yields_to(copy)).unwrap_or(self.firsts.len()),
        };
        (index, self.firsts.get(index).map_or(self.next, |(number, _)| *number))
    }

    /// Whether a copy of some of `range` waits.
    pub fn holds_copy(&self, range: Range) -> bool {
        self.copied.within(range).next().is_some()
    }

    /// Whether some of `range` waits to be sent for the first time.
    pub fn holds_first(&self, range: Range) -> bool {
        self.first_about(range, |first| !first.intersect(range).is_empty())
    }

    /// Whether all of `range`, which is not empty, is one segment, or part of one, that waits to be sent for the first time.
    pub fn holds_whole(&self, range: Range) -> bool {
        self.first_about(range, |first| first.contains(range))
    }

    /// Whether one of the first transmissions that may overlap `range` is `such`.
    fn first_about(&self, range: Range, such: impl Fn(Range) -> bool) -> bool {
        match self.tangled {
            false => {
                let place = self.firsts.partition_point(|(_, queued)| queued.range.end <= range.start);
                self.firsts.get(place).is_some_and(|(_, queued)| such(queued.range))
            }
            true => self.firsts().rev().any(such),
        }
    }

    /// Cuts off all below `offset`, and returns how many bytes. `scattered`: first transmissions of acknowledged data may wait behind
    /// others; else only the first of them can be such.
    pub fn remove_below(&mut self, offset: u64, scattered: bool) -> u64 {
        let below = |(_, queued): &(u64, Queued)| queued.range.start < offset;
        let copies = self.copied.first().is_some_and(|copy| copy.start < offset);
        let suspects = if scattered && self.tangled { self.firsts.len() } else { 1 };
        let firsts = self.firsts.iter().take(suspects).any(below);
        let mut gone = 0;
        if copies {
            gone += cut_below(&mut self.copies, offset);
            self.copied.remove_below(offset);
        }
        match self.tangled {
            true if copies || firsts => gone += cut_below(&mut self.firsts, offset),
            true => {}
            false => {
                while let Some((_, first)) = self.firsts.front_mut().filter(|first| below(first)) {
                    let range = first.range;
                    first.range.start = range.end.min(offset);
                    gone += first.range.start - range.start;
                    if first.range.is_empty() {
                        self.firsts.pop_front();
                    }
                }
            }
        }
        gone
    }

    /// Takes out all items, in the order in which they leave.
    pub fn drain(&mut self) -> Vec<Queued> {
        let all = self.iter().collect();
        self.firsts.clear();
        self.copies.clear();
        self.copied.clear();
        all
    }

    /// Cuts every item that has more than `most` bytes, which is above 0, into items of at most that. True if there was one.
    pub fn cut_to(&mut self, most: u64) -> bool {
        let any = self.iter().any(|queued| queued.range.len() > most);
        if any {
            let parts = |(number, queued): (u64, Queued)| {
                queued.range.parts(most).map(move |range| (number, Queued { range, ..queued }))
            };
            self.copies = core::mem::take(&mut self.copies).into_iter().flat_map(parts).collect();
            self.firsts = core::mem::take(&mut self.firsts).into_iter().flat_map(parts).collect();
        }
        any
    }

    /// Puts a copy back behind all others.
    pub fn push_back_copy(&mut self, queued: Queued) {
        self.copies.push_back((self.next, queued));
        self.copied.insert(queued.range);
    }

    /// Gives back the memory of items that are gone.
    pub fn shrink_to_fit(&mut self) {
        self.firsts.shrink_to_fit();
        self.copies.shrink_to_fit();
    }
}

/// Cuts off all below `offset`, wherever it stands, and returns how many bytes.
fn cut_below(items: &mut VecDeque<(u64, Queued)>, offset: u64) -> u64 {
    let mut gone = 0;
    items.retain_mut(|(_, queued)| {
        let range = queued.range;
        queued.range = Range::new(range.start.max(offset), range.end);
        gone += range.len() - queued.range.len();
        !queued.range.is_empty()
    });
    gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::SendKind;
    use proptest::prelude::*;

    fn queued(start: u64, kind: SendKind) -> Queued {
        Queued::new(Range::new(start, start + 10), kind)
    }

    fn bytes(list: &[Queued]) -> u64 {
        list.iter().map(|q| q.range.len()).sum()
    }

    proptest! {
        /// One list in the order of leaving, searched from its beginning, says the same.
        #[test]
        fn agrees_with_one_list(deeds in prop::collection::vec((0u8..7, 0u64..40), 1..60)) {
            let (mut queue, mut list): (PathQueue, Vec<Queued>) = Default::default();
            for (deed, n) in deeds {
                let at = n * 10;
                match deed {
                    0..=2 => {
                        queue.push_first(queued(at, SendKind::First));
                        list.push(queued(at, SendKind::First));
                    }
                    3 | 4 => {
                        let kind = if deed == 3 { SendKind::Rescue } else { SendKind::Copy };
                        let copy = queued(at, kind);
                        let waits = list.iter().any(|q| q.kind != SendKind::First && !q.range.intersect(copy.range).is_empty());
                        prop_assert_eq!(queue.holds_copy(copy.range), waits);
                        if waits { continue; }
                        let place = list.iter().position(|q| q.yields_to(copy)).unwrap_or(list.len());
                        prop_assert_eq!(queue.ahead_of(copy), place);
                        list.insert(place, copy);
                        queue.push_copy(copy);
                    }
                    5 => {
                        let (edge, most) = (at + 10, 10 - n % 2);
                        let place = list.iter().position(|q| q.range.end <= edge && q.range.len() <= most);
                        let taken = queue.find(false, edge, most).and_then(|place| queue.take(place));
                        prop_assert_eq!(taken, place.map(|place| list.remove(place)));
                    }
                    _ => {
                        let (offset, before) = (n * 5, bytes(&list));
                        for q in &mut list {
                            q.range.start = q.range.start.max(offset);
                        }
                        list.retain(|q| !q.range.is_empty());
                        prop_assert_eq!(queue.remove_below(offset, true), before - bytes(&list));
                    }
                }
                prop_assert_eq!(queue.iter().collect::<Vec<_>>(), list.clone());
                let firsts = || list.iter().filter(|q| q.kind == SendKind::First).map(|q| q.range);
                let part = Range::new(at + 2, at + 9);
                prop_assert_eq!(queue.holds_first(part), firsts().any(|first| !first.intersect(part).is_empty()));
                prop_assert_eq!(queue.holds_whole(part), firsts().any(|first| first.contains(part)));
                prop_assert_eq!(queue.len(), list.len());
            }
        }
    }
}
