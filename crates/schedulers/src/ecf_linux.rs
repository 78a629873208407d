//! ECF as the kernel's module computes it.

use crate::ecf::{BETA, Config, Ecf, SIGMA_FACTOR, SIGMA_MIN};
use anabranch_plugin::registry::{Entry, Parameter};
use anabranch_plugin::schedule::Scheduler;

page!(
    "\
# Idea

ECF (see `ecf`) as in the module of out-of-tree Linux: the remaining data counts as at least one window, and the
deviation of an RTT as at least 100 ms.

# Rule

```text
if  (1 + max(k, w_F)/w_F)·R_F < (1 + waiting·β)·(R_S + δ):
        if (max(k, w_S)/w_S)·R_S ≥ 2·R_F + δ:   waiting = 1, wait
        else                                    send on S, waiting stays
else                                            send on S, waiting = 0

δ = max(2·RTTVAR, 100 ms), the larger one of the two paths
```

# When it helps

Like `ecf`, where round trips are long: R_S well above 2·R_F + 100 ms. The last packets then wait for the fast path,
too.

# When it hurts

Where R_S < 2·R_F + 100 ms and less than a window remains, it never waits: with paths of 20 and 100 ms it is minRTT.

# Departures

Linux keeps four times the deviation in `rttvar_us`, not below the least retransmission timeout (200 ms), and the module
uses half of it: `sigma_factor` and `sigma_min`. It computes in bytes with integers, here with real numbers. The module
retransmits and penalises, too: that is `ecf-linux+pr`. Other departures are on the page of `ecf`.

# References

Lim, Nahum, Towsley, Gibbens, ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths, CoNEXT 2017. Linux
out-of-tree MPTCP, mptcp_ecf.c: its r_beta is 1/β; tcp_input.c, tcp_rtt_estimator.
"
);

const PARAMETERS: &[Parameter] = &[
    BETA.parameter,
    Parameter { default: 2.0, ..SIGMA_FACTOR.parameter },
    Parameter { default: 100.0, ..SIGMA_MIN.parameter },
];

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "ecf-linux",
    aliases: &[],
    about: "ECF as in the kernel's module: whole windows, deviations of at least 100 ms",
    page: PAGE,
    parameters: PARAMETERS,
    build: |p| Box::new(Ecf::new(Config { whole_windows: true, ..Config::from(p) })),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    /// w = 10/10, the fast path full: the packets of `k` that the slow path gets.
    fn given(fast: u64, slow: u64, k: u64) -> usize {
        let mut bench = Bench::new(&[path(0, fast, 10, 10), path(1, slow, 10, 0)]);
        bench.write(k);
        bench.round(&mut *ENTRY.build(&[]));
        bench.bound(1).len()
    }

    #[test]
    fn the_last_packet_takes_a_slow_path_that_is_not_slow_enough() {
        assert_eq!(given(20, 100, 1), 1, "40 < 200, but 100 < 140");
        assert_eq!(given(20, 140, 1), 0, "40 < 240, and 140 ≥ 140");
        assert_eq!(given(20, 139, 1), 1, "139 < 140");
    }

    #[test]
    fn what_is_left_counts_from_a_window_on() {
        // k = 20: (1 + 2)·20 < 200, 2·100 ≥ 140. From k = 14 on the second test demands waiting.
        assert_eq!((given(20, 100, 20), given(20, 100, 14), given(20, 100, 13)), (0, 0, 10));
        // k = 100: (1 + 10)·20 ≥ 200; it waits as soon as (1 + k/10)·20 < 200, from k = 89 on.
        assert_eq!(given(20, 100, 100), 10);
        assert_eq!(given(20, 100, 92), 3, "92, 91 and 90 go, 89 waits");
    }
}
