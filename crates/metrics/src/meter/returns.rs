//! How soon a path that was down is used again.

use anabranch_units::{Duration, Instant};

/// One path's outages, and what came after each.
#[derive(Clone, Debug)]
pub(super) struct Returns {
    /// Ends of the outages after which nothing has come yet, the next one last. Outages that overlap are one.
    ends: Vec<Instant>,
    longest: Option<Duration>,
}

impl Returns {
    /// `outages`: beginnings and ends, in any order, of either direction.
    pub fn new(outages: &[(Instant, Instant)]) -> Self {
        let mut sorted: Vec<_> = outages.iter().filter(|(from, to)| from < to).copied().collect();
        sorted.sort();
        let mut ends: Vec<Instant> = Vec::new();
        for (from, to) in sorted {
            match ends.last_mut() {
                Some(end) if *end >= from => *end = to.max(*end),
                _ => ends.push(to),
            }
        }
        ends.reverse();
        Self { ends, longest: None }
    }

    /// New data arrived over the path.
    #[inline]
    pub fn on_arrived(&mut self, now: Instant) {
        if self.ends.last().is_some_and(|end| *end <= now) {
            self.take_until(now);
        }
    }

    #[cold]
    fn take_until(&mut self, now: Instant) {
        while let Some(end) = self.ends.pop_if(|end| *end <= now) {
            self.longest = self.longest.max(Some(now.since(end)));
        }
    }

    /// The measured time begins: what ended before does not count.
    pub fn restart(&mut self, now: Instant) {
        self.ends.retain(|end| *end >= now);
        self.longest = None;
    }

    /// The longest; where nothing came any more, the time until `now`.
    pub fn longest(&self, now: Instant) -> Option<Duration> {
        let mut all = self.clone();
        all.on_arrived(now);
        all.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn outages_that_overlap_are_one() {
        let mut path = Returns::new(&[(at(90), at(95)), (at(20), at(40)), (at(10), at(30)), (at(50), at(50))]);
        path.on_arrived(at(15));
        assert_eq!(path.longest(at(35)), None);
        path.on_arrived(at(47));
        path.on_arrived(at(60));
        assert_eq!(path.longest(at(60)), Some(Duration::from_millis(7)));
        assert_eq!(path.longest(at(99)), Some(Duration::from_millis(7)));
        assert_eq!(path.longest(at(104)), Some(Duration::from_millis(9)), "nothing came any more");
    }

    #[test]
    fn what_ended_before_the_measured_time_does_not_count() {
        let mut path = Returns::new(&[(at(10), at(20)), (at(30), at(40))]);
        path.restart(at(25));
        assert_eq!(path.longest(at(39)), None);
        path.on_arrived(at(41));
        assert_eq!(path.longest(at(99)), Some(Duration::from_millis(1)));
    }
}
