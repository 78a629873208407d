//! LTS: the path with the lowest ratio of time to window space.

use crate::pick::by_score;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{PathView, Round, Scheduler};

page!(
    "\
# Idea

Lowest time/space: trade latency against free window.

# Rule

```text
score_j = R_j / ws_j,  ws_j = w_j − f_j        f: packets in flight and bound to the path
pick = the path with ws > 0 and the least score; ties go to the lower smoothed RTT, then to the lower id
```

# When it helps

As a path fills its score rises to R, so the traffic alternates smoothly between paths instead of filling one
window after the other; with one free packet everywhere it is lowest RTT.

# When it hurts

A wide empty window outweighs a delay several times as long: short messages go over the slow path.

# Departures

As with `lws`, the paper's fallback to lowest RTT for ws ≤ 0 has nothing to choose from here. A path without an
RTT sample comes last.

# References

Kimura, Lima, Loureiro, Alternative scheduling decisions for multipath TCP, IEEE Communications Letters 21(11),
2017, as a comparison of MPTCP scheduling algorithms for 5G restates it.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "lts",
    aliases: &[],
    about: "the path with the lowest round-trip time per free window first",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Lts),
};

/// LTS; has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lts;

/// Nanoseconds per free packet.
fn score(path: &PathView) -> f64 {
    let nanos = path.srtt.map_or(f64::INFINITY, |rtt| rtt.as_nanos() as f64);
    nanos / f64::from(path.room())
}

impl Scheduler for Lts {
    fn schedule(&mut self, round: &mut Round<'_>) {
        by_score(round, |a, b| score(a).total_cmp(&score(b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    #[test]
    fn scores() {
        let of = |rtt, cwnd, in_flight| score(&path(0, rtt, cwnd, in_flight)) / 1e6;
        assert!((of(20, 10, 4) - 3.33).abs() < 0.005);
        assert_eq!((of(80, 60, 40), of(50, 40, 15)), (4.0, 2.0));
    }

    #[test]
    fn the_least_time_per_space_takes_the_next_segment() {
        let paths = [path(0, 20, 10, 4), path(1, 80, 60, 40), path(2, 50, 40, 15)];
        for (n, expect) in [(3, 2), (2, 0)] {
            let mut bench = Bench::new(&paths[..n]);
            bench.write(1);
            bench.round(&mut Lts);
            assert_eq!(bench.bound(expect), [0]);
        }
    }

    #[test]
    fn with_one_free_packet_everywhere_it_is_min_rtt() {
        let mut bench = Bench::new(&[path(0, 80, 60, 59), path(1, 20, 10, 9), path(2, 50, 40, 39)]);
        bench.write(3);
        bench.round(&mut Lts);
        assert_eq!([bench.bound(1), bench.bound(2), bench.bound(0)], [[0], [1], [2]]);
    }
}
