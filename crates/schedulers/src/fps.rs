//! FPS: forward prediction scheduling.

use crate::skip::{Forecast, SkipAhead, rounds};
use anabranch_plugin::registry::{Entry, Handle, Parameters, flag};
use anabranch_plugin::schedule::{PathView, Scheduler};
use anabranch_units::Duration;

page!(
    "\
# Idea

When a path gets window space, predict how many packets the faster paths will have delivered by the time its
own next packet arrives. Skip that many unassigned packets and send those after them: everything arrives in order.

# Rule

With D = R/2, for path j and each path i with D_i < D_j:

```text
K_i = ⌊(D_j − D_i)/R_i⌋ + 1                   round trips of i whose data arrives no later than j's packet
N_i = a_i + w(1) + … + w(K_i − 1)             a: free window;  w(1) = g(w_i),  w(m + 1) = g(w(m))
g(w) = min(2w, ssthresh) if w < ssthresh, else w + 1
N = Σ N_i;  j sends the unassigned segments N + 1, N + 2, …
```

# When it helps

Different delays and little loss: data leaves in the order in which it arrives, which small receive buffers need.

# When it hurts

Each prediction ignores the error of the last one (`fps-ocps` corrects it), and losses
(`f2pdps`). A fast path limited by its application or by losses is over-estimated, and the slow path then waits
at the end of the data. K is a whole number, so N jumps by a window where the ratio of delays is near one. In
the first slow start, or with a slow path of many fast round trips, N exceeds any buffer: the slow path rests, and keeps
its last RTT measurement. Of a burst only the first packet is aligned: when the peer's window, having been full, releases
a wide slow window at once, the faster paths wait for its last packet.

# Departures

The sources describe FPS in prose; rounds as above are the choice here. The first round counts the free window only,
because data in flight is no longer unassigned. Paths with equal RTTs leave each other nothing. Paths are served in the
order of their RTTs. Only faster paths that can be waited for count. When fewer than N + 1 segments are unassigned, or
the peer's window does not admit the next, the path waits. A path without an RTT sample skips nothing and is served last.
`growth` = 0 predicts with constant windows.

# References

Mirani, Boukhatem, Tran, A data-scheduling mechanism for multi-homed mobile terminals with disparate link
latencies, VTC Fall 2010; Mirani, Kherraz, Boukhatem, Forward prediction scheduling, ICT 2011; as described by Ni
et al., OCPS.
"
);

pub(crate) const GROWTH: Handle<bool> = flag("growth", true)
    .about("predicted windows grow from round to round: doubled below ssthresh, otherwise by one packet");

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "fps",
    aliases: &[],
    about: "skip the data that faster paths will deliver before this one's packet arrives",
    page: PAGE,
    parameters: &[GROWTH.parameter],
    build: |p| Box::new(SkipAhead::new(Fps::new(Config::from(p)))),
};

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Whether predicted windows grow.
    pub growth: bool,
}

impl From<&Parameters<'_>> for Config {
    fn from(p: &Parameters<'_>) -> Self {
        Self { growth: GROWTH.of(p) }
    }
}

/// The forecast of FPS.
#[derive(Clone, Copy, Debug)]
pub struct Fps {
    config: Config,
}

/// A window after a round trip without loss.
pub(crate) fn grown(cwnd: u32, ssthresh: u32) -> u32 {
    match cwnd < ssthresh {
        true => cwnd.saturating_mul(2).min(ssthresh),
        false => cwnd.saturating_add(1),
    }
}

/// Packets in `rounds` round trips without loss after one with the window `cwnd`.
fn later_windows(mut cwnd: u32, ssthresh: u32, mut rounds: u64) -> f64 {
    let mut sum = 0.0;
    // At most 32 times, because it doubles.
    while rounds > 0 && cwnd < ssthresh {
        cwnd = grown(cwnd, ssthresh);
        sum += f64::from(cwnd);
        rounds -= 1;
    }
    let left = rounds as f64;
    sum + left * f64::from(cwnd) + left * (left + 1.0) / 2.0
}

impl Fps {
    /// A forecast.
    pub const fn new(config: Config) -> Self {
        Self { config }
    }

    /// Packets that `path` sends in its free window and `rounds` − 1 windows after it.
    pub(crate) fn over(self, path: &PathView, rounds: u64) -> f64 {
        let later = rounds.saturating_sub(1);
        let windows = match self.config.growth {
            true => later_windows(path.cwnd.max(1), path.ssthresh, later),
            false => f64::from(path.cwnd) * later as f64,
        };
        f64::from(path.room()) + windows
    }
}

impl Forecast for Fps {
    fn packets(&mut self, path: &PathView, lead: Duration) -> f64 {
        self.over(path, rounds(path, lead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    #[test]
    fn predictions() {
        for (cwnd, free, ssthresh, rtt, slow_rtt, k, n) in [
            (2, 2, 0, 20, 60, 2, 5.0),
            (2, 0, 0, 20, 60, 2, 3.0),
            (10, 10, 0, 20, 100, 3, 33.0),
            (10, 0, 0, 20, 100, 3, 23.0),
            (4, 4, 16, 20, 180, 5, 63.0),
            (4, 4, 1000, 20, 180, 5, 124.0),
            (10, 10, 0, 50, 60, 1, 10.0),
            (10, 0, 0, 50, 60, 1, 0.0),
        ] {
            let fast = PathView { ssthresh, ..path(0, rtt, cwnd, cwnd - free) };
            let lead = Duration::from_millis(slow_rtt - rtt) / 2;
            assert_eq!(rounds(&fast, lead), k);
            assert_eq!(Fps::new(Config { growth: true }).packets(&fast, lead), n, "{rtt} {slow_rtt} {free}");
        }
    }

    #[test]
    fn without_growth_windows_repeat() {
        let fast = PathView { ssthresh: 0, ..path(0, 20, 10, 4) };
        let packets = Fps::new(Config { growth: false }).packets(&fast, Duration::from_millis(40));
        assert_eq!(packets, 6.0 + 20.0);
    }

    #[test]
    fn slow_start_over_ages_is_only_large() {
        let fast = path(0, 1, 10, 0);
        assert!(Fps::new(Config { growth: true }).packets(&fast, Duration::MAX) > 1e9);
    }

    #[test]
    fn the_figures_of_the_ocps_paper() {
        // Windows of 2 and 3: five packets arrive first, so the slow path takes the sixth to the eighth.
        let fast = PathView { ssthresh: 0, ..path(0, 20, 2, 0) };
        let mut bench = Bench::new(&[fast, path(1, 60, 3, 0)]);
        bench.write(20);
        bench.round(&mut SkipAhead::new(Fps::new(Config { growth: true })));
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1], vec![5, 6, 7]));
    }
}
