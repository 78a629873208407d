//! HSR: the path with the highest sending rate.

use crate::pick::by_score;
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{PathView, Round, Scheduler};

page!(
    "\
# Idea

Highest sending rate: prefer the path that would send the most bytes per second now.

# Rule

```text
SR_j = (MSS_j / RTT_j)·w_j        RTT_j: the newest sample, not the smoothed value
pick = the eligible path with the greatest SR; ties go to the lower smoothed RTT, then to the lower id
```

# When it helps

Throughput where the path with the widest window is also good: large transfers, large buffers.

# When it hurts

The rate ignores how much of the window is already in use, so small paths starve while the application
has little to send. The newest sample is noisy. A wide path with a long delay is preferred, which delays
single messages.

# Departures

The comparison that describes it does not say whether data is retransmitted on other paths: `hsr+or` and `hsr+pr` do
that. A path without a sample comes last.

# References

Kimura, Lima, Loureiro, Alternative scheduling decisions for multipath TCP, IEEE Communications Letters 21(11),
2017, as a comparison of MPTCP scheduling algorithms for 5G restates it.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "hsr",
    aliases: &[],
    about: "the path with the highest sending rate first",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(Hsr),
};

/// HSR; has no state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hsr;

/// Bytes per nanosecond.
fn rate(path: &PathView) -> f64 {
    let sample = path.latest_rtt.or(path.srtt);
    let nanos = sample.map_or(f64::INFINITY, |rtt| rtt.as_nanos().max(1) as f64);
    f64::from(path.mss) * f64::from(path.cwnd) / nanos
}

impl Scheduler for Hsr {
    fn schedule(&mut self, round: &mut Round<'_>) {
        by_score(round, |a, b| rate(b).total_cmp(&rate(a)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};
    use anabranch_units::{Duration, PathId};

    #[test]
    fn the_highest_rate_is_filled_first() {
        // 700, 1050 and 1120 bytes per millisecond.
        let mut bench = Bench::new(&[path(0, 20, 10, 8), path(1, 80, 60, 58), path(2, 50, 40, 37)]);
        bench.write(6);
        bench.round(&mut Hsr);
        assert_eq!([bench.bound(2), bench.bound(1), bench.bound(0)], [vec![0, 1, 2], vec![3, 4], vec![5]]);
    }

    #[test]
    fn the_newest_sample_decides() {
        let mut bench = Bench::new(&[path(0, 20, 10, 0), path(1, 80, 60, 0)]);
        let p = bench.view.path_mut(PathId(1)).unwrap();
        p.latest_rtt = Some(Duration::from_millis(200));
        bench.write(1);
        bench.round(&mut Hsr);
        assert_eq!(bench.bound(0), [0]);
    }

    #[test]
    fn ties_go_to_the_lower_round_trip_time() {
        let mut bench = Bench::new(&[path(0, 40, 20, 0), path(1, 20, 10, 0), path(2, 20, 10, 0)]);
        bench.write(1);
        bench.round(&mut Hsr);
        assert_eq!(bench.bound(1), [0]);
    }
}
