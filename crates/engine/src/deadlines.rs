//! Deadlines. Each owner has one table: the time to sleep until and what is done then both come from it, so that they
//! cannot disagree.

use anabranch_units::Instant;

/// The deadline of what is not awaited.
pub(crate) const NEVER: Instant = Instant::MAX;

/// The deadlines of one owner, in the order in which they are dealt with when several have come.
pub(crate) struct Deadlines<T, const N: usize>(pub [(T, Instant); N]);

impl<T: Copy + PartialEq, const N: usize> Deadlines<T, N> {
    /// The earliest.
    #[inline(always)]
    pub fn next(&self) -> Instant {
        self.0.iter().fold(NEVER, |at, (_, deadline)| at.min(*deadline))
    }

    /// The next deadline that has come at `now`, after `last` in the order of the table; the first without one.
    pub fn due_after(&self, last: Option<T>, now: Instant) -> Option<T> {
        let from = last.and_then(|last| self.0.iter().position(|(kind, _)| *kind == last)).map_or(0, |at| at + 1);
        self.0[from..].iter().find(|(_, deadline)| *deadline <= now).map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_told_in_the_order_of_the_table() {
        let at = Instant::from_millis;
        let table = Deadlines([('a', at(30)), ('b', NEVER), ('c', at(10)), ('d', at(20))]);
        assert_eq!(table.next(), at(10));
        assert_eq!(
            [None, Some('a'), Some('c')].map(|last| table.due_after(last, at(30))),
            [Some('a'), Some('c'), Some('d')]
        );
        assert_eq!((table.due_after(None, at(9)), table.due_after(Some('d'), at(99))), (None, None));
        assert_eq!(Deadlines::<char, 0>([]).next(), NEVER);
    }
}
