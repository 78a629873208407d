//! Times at a fixed interval: a controller's updates.

use anabranch_units::{Duration, Instant};

/// Multiples of an interval, each of which is due once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Updates {
    every: Duration,
    next: Instant,
}

impl Updates {
    /// The first one is an interval from zero; an interval of zero counts as a nanosecond.
    pub fn new(every: Duration) -> Self {
        let every = every.max(Duration::from_nanos(1));
        Self { every, next: Instant::ZERO + every }
    }

    /// The earliest one that is due and was not handed out.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        let at = self.next;
        let is_due = at <= now;
        if is_due {
            self.next += self.every;
        }
        is_due.then_some(at)
    }

    /// Leaves out all that are due, where they would change nothing.
    pub fn skip(&mut self, now: Instant) {
        if self.next <= now {
            let further = now.since(self.next).as_nanos() / self.every.as_nanos();
            self.next += self.every * (further + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_multiple_is_due_once_and_those_skipped_never() {
        let ms = Instant::from_millis;
        let mut updates = Updates::new(Duration::from_millis(15));
        let times: Vec<_> = [14, 15, 15, 45, 45, 45].map(|now| updates.due(ms(now))).into();
        assert_eq!(times, [None, Some(ms(15)), None, Some(ms(30)), Some(ms(45)), None]);
        for (now, next) in [(59, 60), (60, 75), (89, 90), (900, 915)] {
            updates.skip(ms(now));
            assert_eq!(updates.next, ms(next), "{now}");
        }
    }
}
