//! template: to be written in one line.

use crate::pick::by_score;
use anabranch_plugin::registry::{Entry, Handle, number};
use anabranch_plugin::schedule::{PathView, Round, Scheduler};

page!(
    "\
# Idea

To be written: what the scheduler wants, in a sentence or two.

# Rule

To be written: score_j = srtt_j · (1 + fill · f_j / w_j), f: packets in flight, w: congestion window; the eligible
path with the lowest score takes the next segment.

# When it helps

To be written.

# When it hurts

To be written.

# Departures

To be written: what is otherwise than in the paper, and why; or None.

# References

To be written: authors, title, venue, year.
"
);

const FILL: Handle<f64> =
    number("fill", 1.0, 0.0..=100.0).about("how much a full window makes a path slower; 0: not at all, as minrtt");

/// The registry's entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "template",
    aliases: &[],
    about: "To be written: one line for lists",
    page: PAGE,
    parameters: &[FILL.parameter],
    build: |given| Box::new(Template { fill: FILL.of(given) }),
};

/// Has a parameter and no state.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    fill: f64,
}

impl Template {
    /// Seconds; the lowest goes first. A path without an RTT sample comes last.
    fn score(&self, path: &PathView) -> f64 {
        let rtt = path.srtt.map_or(f64::INFINITY, |srtt| srtt.as_secs_f64());
        // A window of zero is a full one.
        let filled = f64::from(path.in_flight) / f64::from(path.cwnd.max(1));
        rtt * (1.0 + self.fill * filled)
    }
}

impl Scheduler for Template {
    fn schedule(&mut self, round: &mut Round<'_>) {
        by_score(round, |a, b| self.score(a).total_cmp(&self.score(b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    #[test]
    fn the_lowest_score_takes_the_next_segment() {
        // 30 ms · (1 + 9/10) = 57 ms against 50 ms.
        let mut bench = Bench::new(&[path(0, 30, 10, 9), path(1, 50, 10, 0)]);
        bench.write(1);
        bench.round(&mut *ENTRY.build(&[]));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![], vec![0]));
    }
}
