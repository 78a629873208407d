//! BLEST as in the out-of-tree Linux kernel: integers, bounded λ, worst-case delays.

use crate::pick::{blocked, by_rtt_unless, fastest_live};
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{PathView, Round, Scheduler, View};
use anabranch_units::{Duration, Instant};

page!(
    "\
# Idea

As `blest`: before a slower path S is used, estimate whether the fast path F would run out of the connection's
window meanwhile. This is the kernel's form, in integers, with a delay estimate that depends on the greatest RTT so far.

# Rule

Times in µs, λ in thousandths. When minRTT proposes S while F has no room:

```text
g = f_S + 1
e = maxrtt_S if g ≥ w_S, else minrtt_S + (maxrtt_S − minrtt_S)·g / w_S
rounds = max(srtt_S, e) / ((minrtt_F + maxrtt_F)/2) + 1
pk = w_F·(2^min(rounds,16) − 1)                        in F's first slow start
pk = (c + (rounds − 1)/2)·rounds,  c = max(w_F, ssthresh_F + 1)   otherwise
wait if  pk·MSS_F·λ/1000 > max(0, M − length of the segment − bytes outstanding on S)
```

minrtt and maxrtt are the extremes of the smoothed RTT since the path began. λ starts at 1200 and stays within
1000 and 1300: when S is proposed, at most once per minrtt_S, it grows by 40 if a window or buffer blocked a
path with room since, otherwise it falls by 10.

# When it helps

Where `blest` does; it waits more readily.

# When it hurts

λ cannot fall below 1, although the paper finds lower values useful on a lossy fast path. An exact ratio of 5 counts 6
rounds.
One episode of bufferbloat makes it wait more for ever, because the greatest RTT is never reset.

# Departures

The kernel's file also retransmits and penalises; here that is `blest-linux+pr`. A path without an RTT sample gets its
window without an estimate. A fast path that cannot be waited for (a timeout, nothing in flight) is passed over.

# References

Linux out-of-tree MPTCP, mptcp_blest.c.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "blest-linux",
    aliases: &[],
    about: "BLEST as in the out-of-tree Linux kernel",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(BlestLinux::default()),
};

/// Bounds of λ and its steps, in thousandths.
const LAMBDA_MIN: u64 = 1000;
const LAMBDA_MAX: u64 = 1300;
const LAMBDA_FIRST: u64 = 1200;
const LAMBDA_UP: u64 = 40;
const LAMBDA_DOWN: u64 = 10;
/// Most doublings of a window in slow start.
const ROUNDS_MAX: u64 = 16;

/// BLEST as in the kernel.
#[derive(Clone, Debug)]
pub struct BlestLinux {
    lambda: u64,
    /// Window or buffer blocked a path that had room.
    blocked: bool,
    last_step: Option<Instant>,
}

impl Default for BlestLinux {
    fn default() -> Self {
        Self { lambda: LAMBDA_FIRST, blocked: false, last_step: None }
    }
}

/// Packets in flight on `path`, those bound in this round included.
fn flight(path: &PathView) -> u64 {
    u64::from(path.in_flight) + u64::from(path.queued)
}

/// The longest time of a segment on `slow`, in µs.
fn linger(slow: &PathView, srtt: Duration) -> u64 {
    let least = slow.min_srtt.unwrap_or(srtt).as_micros();
    let greatest = slow.max_srtt.unwrap_or(srtt).as_micros();
    let (full, window) = (flight(slow) + 1, u64::from(slow.cwnd.max(1)));
    let estimate = match full >= window {
        true => greatest,
        false => least + greatest.saturating_sub(least).saturating_mul(full) / window,
    };
    srtt.as_micros().max(estimate)
}

/// Packets that `fast` sends in `linger` µs.
fn fast_packets(fast: &PathView, srtt: Duration, linger: u64) -> u64 {
    let least = fast.min_srtt.unwrap_or(srtt).as_micros();
    let greatest = fast.max_srtt.unwrap_or(srtt).as_micros();
    let rounds = linger.checked_div(least.saturating_add(greatest) / 2).map_or(1, |r| r.saturating_add(1));
    let window = u64::from(fast.cwnd);
    if fast.ssthresh == u32::MAX {
        return window * ((1 << rounds.min(ROUNDS_MAX)) - 1);
    }
    let avoiding = window.max(u64::from(fast.ssthresh) + 1);
    (avoiding.saturating_add((rounds - 1) / 2)).saturating_mul(rounds)
}

impl BlestLinux {
    /// λ changes when the slow path is proposed, at most once per least RTT of that path.
    fn step(&mut self, now: Instant, slow: &PathView) {
        let least = slow.min_srtt.or(slow.srtt).unwrap_or(Duration::ZERO);
        if self.last_step.is_some_and(|last| now.since(last) < least) {
            return;
        }
        self.lambda = if self.blocked { self.lambda + LAMBDA_UP } else { self.lambda - LAMBDA_DOWN };
        self.lambda = self.lambda.clamp(LAMBDA_MIN, LAMBDA_MAX);
        self.blocked = false;
        self.last_step = Some(now);
    }

    /// True if a segment on `slow` would block `fast`.
    fn would_block(&self, view: &View, fast: &PathView, slow: &PathView) -> bool {
        let (Some(fast_rtt), Some(slow_rtt)) = (fast.srtt, slow.srtt) else { return false };
        let packets = fast_packets(fast, fast_rtt, linger(slow, slow_rtt));
        let fast_bytes = packets.saturating_mul(u64::from(fast.mss)).saturating_mul(self.lambda) / 1000;
        let segment = view.next_new(0, slow.mss).map_or(0, |next| next.len());
        let slow_bytes = segment + slow.in_flight_bytes + slow.queued_bytes;
        fast_bytes > view.send_window().saturating_sub(slow_bytes)
    }
}

impl Scheduler for BlestLinux {
    fn schedule(&mut self, round: &mut Round<'_>) {
        let Some(fast) = fastest_live(round).copied() else { return };
        let mut waits = false;
        by_rtt_unless(round, &fast, |view, slow| {
            self.step(view.now(), slow);
            waits = self.would_block(view, &fast, slow);
            waits
        });
        // The kernel checks the peer's window after it has chosen a path, and not if it waits.
        let chosen = !waits && round.fastest_eligible().is_some();
        self.blocked |= chosen && blocked(round) && !round.outstanding().is_empty();
    }

    fn values(&self) -> Option<(&'static str, f64)> {
        Some(("blest.lambda", self.lambda as f64 / 1000.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    fn fast() -> PathView {
        PathView { ssthresh: 8, ..path(0, 20, 10, 10) }
    }

    fn rtts(path: PathView, least: u64, greatest: u64) -> PathView {
        let ms = |v| Some(Duration::from_millis(v));
        PathView { min_srtt: ms(least), max_srtt: ms(greatest), ..path }
    }

    #[test]
    fn estimates() {
        let ms = Duration::from_millis;
        let slow = path(1, 100, 10, 2);
        assert_eq!(linger(&slow, ms(100)), 100_000);
        assert_eq!(fast_packets(&fast(), ms(20), 100_000), 72);

        let slow = rtts(path(1, 100, 10, 4), 80, 160);
        assert_eq!(linger(&slow, ms(100)), 120_000);
        assert_eq!(fast_packets(&fast(), ms(20), 120_000), 91);

        assert_eq!(linger(&rtts(path(1, 100, 10, 9), 80, 160), ms(100)), 160_000);
        let starting = PathView { ssthresh: u32::MAX, ..fast() };
        assert_eq!(fast_packets(&starting, ms(20), 100_000), 10 * 63);
        assert_eq!(fast_packets(&starting, ms(20), 1_000_000), 10 * 65_535);
        assert_eq!(fast_packets(&rtts(fast(), 0, 0), ms(20), 1_000_000), 10);
    }

    #[test]
    fn decisions() {
        for (window, expect) in [(100_000, false), (150_000, true)] {
            let mut bench = Bench::new(&[fast(), path(1, 100, 10, 2)]);
            bench.view.set_window(window, 0);
            bench.write(1);
            let mut blest = BlestLinux { last_step: Some(Instant::ZERO), ..BlestLinux::default() };
            bench.round(&mut blest);
            assert_eq!(blest.lambda, 1200);
            assert_eq!(!bench.bound(1).is_empty(), expect, "{window}");
        }
    }

    #[test]
    fn lambda_steps() {
        let mut blest = BlestLinux::default();
        let slow = path(1, 100, 10, 2);
        let mut seen = Vec::new();
        for (i, event) in [false, false, true, true, true, false].into_iter().enumerate() {
            blest.blocked = event;
            blest.step(Instant::from_millis(100 * i as u64), &slow);
            blest.step(Instant::from_millis(100 * i as u64 + 99), &slow);
            seen.push(blest.lambda);
        }
        assert_eq!(seen, [1190, 1180, 1220, 1260, 1300, 1290]);
    }

    #[test]
    fn a_wait_of_its_own_is_no_blocking() {
        // The fast path is full and the slow one has room; the peer's window blocks the next segment either way.
        let unknown = PathView { srtt: None, ..path(1, 100, 10, 0) };
        for (slow, blocked) in [(path(1, 100, 10, 0), false), (unknown, true)] {
            let fast = PathView { cwnd: 5, ..fast() };
            let mut bench = Bench::with_window(&[PathView { in_flight: 0, ..fast }, slow], 5 * 1400);
            bench.write(6);
            let mut blest = BlestLinux::default();
            bench.round(&mut blest);
            assert_eq!(bench.send(0).len(), 5);
            bench.round(&mut blest);
            assert_eq!(blest.blocked, blocked);
        }
    }

    #[test]
    fn a_blocked_window_is_remembered() {
        let mut bench = Bench::with_window(&[path(0, 20, 10, 0), path(1, 100, 10, 0)], 5 * 1400);
        bench.write(6);
        let mut blest = BlestLinux::default();
        bench.round(&mut blest);
        assert!(!blest.blocked);
        assert_eq!(bench.send(0).len(), 5);
        bench.round(&mut blest);
        assert!(blest.blocked);
    }
}
