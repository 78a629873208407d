//! Paths that lose, reorder, duplicate and corrupt.

use crate::common::{Plan, alone};
use crate::transfer::{BOTH, EXCUSED, MIB, Outcome, both_ways, each, families, plain, plan};
use anabranch_network::{JitterSpec, LossSpec, ReorderSpec, WaySpec};
use anabranch_units::{Duration, Side};

/// Both directions of every path are impaired; MPTCP over two paths, and plain TCP over one, each in both IP versions.
fn impaired(impair: impl Fn(&mut WaySpec) + Sync, check: impl Fn(&Outcome) + Sync) {
    let Some(_alone) = alone() else { return };
    let plans = BOTH.into_iter().flat_map(|engine: Side| [plan(engine, 2), plain(engine)]);
    let plans = plans.map(|mut plan: Plan| {
        for path in &mut plan.paths {
            impair(&mut path.down);
            impair(&mut path.up);
        }
        plan
    });
    each(plans.flat_map(families), 8, |plan| {
        let outcome = both_ways(&plan, MIB);
        outcome.assert_clean(EXCUSED);
        assert_eq!(outcome.counter("MPTcpExtDataCsumErr"), 0);
        check(&outcome);
    });
}

#[test]
fn one_percent_lost() {
    impaired(|way| way.loss = LossSpec::Bernoulli(0.01), |outcome| assert!(outcome.counter("TcpRetransSegs") > 0));
}

#[test]
fn ten_percent_lost() {
    impaired(|way| way.loss = LossSpec::Bernoulli(0.1), |outcome| assert!(outcome.counter("TcpRetransSegs") > 10));
}

#[test]
fn lost_in_bursts() {
    // Half of a burst survives: bursts last by packets, so a retransmission with doubling intervals (a kernel's last
    // FIN) could otherwise remain in one for minutes.
    let bursts = LossSpec::GilbertElliott { p: 0.01, r: 0.2, h: 0.5, k: 1.0 };
    impaired(|way| way.loss = bursts, |outcome| assert!(outcome.counter("TcpRetransSegs") > 0));
}

#[test]
fn reordered() {
    let reorder = ReorderSpec { probability: 0.1, by: Duration::from_millis(5) };
    impaired(|way| way.reorder = reorder, |outcome| assert!(outcome.counter("TcpExtTCPOFOQueue") > 0));
}

#[test]
fn jittered() {
    let jitter = JitterSpec { spread: Duration::from_millis(5), free: true, ..JitterSpec::NONE };
    impaired(|way| way.jitter = jitter.clone(), |outcome| assert!(outcome.counter("TcpExtTCPOFOQueue") > 0));
}

#[test]
fn duplicated() {
    // The engine reports a duplicate by DSACK, as the kernel does (RFC 2883).
    impaired(
        |way| way.duplicate = 0.1,
        |outcome| {
            assert!(outcome.counter("TcpExtTCPDSACKOldSent") > 0);
            assert!(outcome.counter("TcpExtTCPDSACKRecv") > 0);
        },
    );
}

#[test]
fn corrupted() {
    impaired(|way| way.corrupt = 0.02, |outcome| assert!(outcome.counter("TcpInCsumErrors") > 0));
}

#[test]
fn all_at_once() {
    let all = |way: &mut WaySpec| {
        way.loss = LossSpec::Bernoulli(0.02);
        way.reorder = ReorderSpec { probability: 0.05, by: Duration::from_millis(5) };
        way.duplicate = 0.05;
        way.corrupt = 0.01;
    };
    impaired(all, |outcome| assert!(outcome.counter("TcpInCsumErrors") > 0));
}
