//! LWS: the path with the largest window space.

use crate::pick::by_score;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{Round, Scheduler};

page!(
    "\
# Idea

Largest window space: balance by the free space in the windows.

# Rule

```text
ws_j = w_j − f_j                  f: packets in flight and bound to the path
pick = the path with the greatest ws > 0; ties go to the lower smoothed RTT, then to the lower id
```

# When it helps

It keeps all windows equally open, which spreads short bursts over the paths.

# When it hurts

Paths with a large bandwidth-delay product have the largest windows, so the slowest path is often preferred:
of the three rules of its paper it reorders most.

# Departures

The paper falls back to lowest RTT where ws is zero or negative, which happens in loss recovery. Here, as in
Linux, no path takes a segment then, so the fallback has nothing to choose from: all ws ≤ 0 sends nothing.

# References

Kimura, Lima, Loureiro, Alternative scheduling decisions for multipath TCP, IEEE Communications Letters 21(11),
2017, as a comparison of MPTCP scheduling algorithms for 5G restates it.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "lws",
    aliases: &[],
    about: "the path with the most free window first",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Lws),
};

/// LWS; has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lws;

impl Scheduler for Lws {
    fn schedule(&mut self, round: &mut Round<'_>) {
        by_score(round, |a, b| b.room().cmp(&a.room()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    #[test]
    fn the_largest_space_takes_the_next_segment() {
        // ws = 6, 20, 25: path 2 down to 20, then, at equal space, the lower RTT, and so on in turn.
        let mut bench = Bench::new(&[path(0, 20, 10, 4), path(1, 80, 60, 40), path(2, 50, 40, 15)]);
        bench.write(8);
        bench.round(&mut Lws);
        assert_eq!([bench.bound(0), bench.bound(1), bench.bound(2)], [vec![], vec![6], vec![0, 1, 2, 3, 4, 5, 7]]);
    }

    #[test]
    fn without_the_third_path_the_second_is_largest() {
        let mut bench = Bench::new(&[path(0, 20, 10, 4), path(1, 80, 60, 40)]);
        bench.write(1);
        bench.round(&mut Lws);
        assert_eq!(bench.bound(1), [0]);
    }

    #[test]
    fn no_space_sends_nothing() {
        let mut bench = Bench::new(&[path(0, 20, 4, 6), path(1, 80, 4, 4)]);
        bench.write(1);
        bench.round(&mut Lws);
        assert!(bench.bound(0).is_empty() && bench.bound(1).is_empty());
    }
}
