//! Kim-2012: forward prediction by half the round-trip time and a steady rate.

use crate::skip::{Forecast, SkipAhead, fluid};
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{PathView, Scheduler};
use anabranch_units::Duration;

page!(
    "\
# Idea

After each acknowledgment choose the data that arrives in order: a path skips the data that faster ones deliver before
its packet arrives. The closest competitor of `fdps`.

# Rule

With D = R/2, whenever path j has window space:

```text
N = Σ ⌊(D_j − D_i)·w_i/R_i⌋  over the paths i with D_i < D_j
j sends the unassigned segments N + 1, N + 2, …
```

# When it helps

Symmetric paths with stable windows.

# When it hurts

Half the round-trip time is not the forward delay where forward and return paths differ, or where acknowledgments queue,
which is the motivation of FDPS.

# Departures

Known from the description in the FDPS paper only: RTT/2, in-order scheduling, decisions upon acknowledgments.
The formula is that of FDPS with RTT/2 in place of measured delays; unlike `fps` the rate is steady and no
window grows. Only faster paths that can be waited for count. When fewer than N + 1 segments are unassigned, or
the peer's window does not admit the next, the path waits. A path without an RTT sample skips nothing and is
served last.

# References

Kim, Oh, Lee, Improvement of MPTCP performance in heterogeneous network using packet scheduling mechanism, APCC
2012. Le and Bui, Forward Delay-based Packet Scheduling Algorithm for Multipath TCP.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "kim2012",
    aliases: &[],
    about: "skip the data that faster paths deliver meanwhile, by RTT/2 and cwnd/RTT",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(SkipAhead::new(Kim2012)),
};

/// The forecast of Kim-2012; has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kim2012;

impl Forecast for Kim2012 {
    fn packets(&mut self, path: &PathView, lead: Duration) -> f64 {
        fluid(path, lead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    #[test]
    fn packets_in_half_the_difference_of_the_round_trips() {
        for (cwnd, rtt, slow_rtt, expect) in [(20, 40, 120, 20), (10, 20, 100, 20), (10, 20, 20, 0), (3, 40, 60, 0)] {
            let mut bench = Bench::new(&[path(0, rtt, cwnd, cwnd), path(1, slow_rtt, 1, 0)]);
            bench.write(100);
            bench.round(&mut SkipAhead::new(Kim2012));
            assert_eq!(bench.bound(1), [expect]);
        }
    }
}
