//! Many connections at once, and one after another.

use crate::common::{Plan, alone, ms, path};
use crate::transfer::{BOTH, EXCUSED, Outcome, each, plan, transfer, until};
use anabranch_units::Side;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The engine has removed every connection, and after a while the kernel has no socket in use.
fn assert_nothing_left(outcome: &mut Outcome) {
    let patience = ms(30_000);
    until(&mut outcome.exchange, &mut outcome.notes, patience, "the kernel's sockets to go", |exchange, _| {
        let read = || std::fs::read_to_string("/proc/thread-self/net/sockstat").expect("socket statistics");
        let stat = exchange.outside[0].host.namespace.enter(read).expect("a namespace");
        let tcp = stat.lines().find_map(|line| line.strip_prefix("TCP: ")).expect("a line about TCP");
        // A socket in TIME-WAIT ("tw") is not in use; orphans are counted over all namespaces.
        tcp.starts_with("inuse 0 ")
    });
}

/// 200 connections at once, 20 KB in each direction, over paths whose queues hold all of them.
fn at_once(engine: Side) {
    let Some(_alone) = alone() else { return };
    let mut plan = plan(engine, 2);
    plan.paths = vec![path("one", 500, 2), path("two", 500, 2)];
    let mut outcome = transfer(&plan, &[(20_000, 20_000); 200], 200, ms(60_000));
    outcome.assert_clean(EXCUSED);
    assert_eq!(outcome.counter("MPTcpExtMPCapableFallbackACK") + outcome.counter("MPTcpExtMPCapableFallbackSYNACK"), 0);
    assert_nothing_left(&mut outcome);
}

#[test]
fn two_hundred_at_once_engine_client() {
    at_once(Side::Client);
}

#[test]
fn two_hundred_at_once_engine_server() {
    at_once(Side::Server);
}

/// The same over one path that loses handshakes and first data: its queue holds a tenth. Connections whose keys get
/// lost fall back to plain TCP, and every byte still arrives.
#[test]
fn two_hundred_at_once_through_a_short_queue() {
    let Some(_alone) = alone() else { return };
    each(BOTH, 2, |engine| {
        let mut plan = plan(engine, 1);
        plan.paths = vec![path("short", 40, 2)];
        let mut outcome =
            (0..5).find_map(|_| unless_the_kernel_may_not_fall_back(&plan)).expect("one of five attempts");
        outcome.assert_clean(EXCUSED);
        assert!(outcome.counter("TcpRetransSegs") > 100);
        assert_nothing_left(&mut outcome);
    });
}

/// Two hundred at once; `None` if the kernel reset one because it had retransmitted data at connection level before the
/// fallback, after which it refuses to fall back (MPTcpExtFallbackFailed). That is no fault of the engine.
fn unless_the_kernel_may_not_fall_back(plan: &Plan) -> Option<Outcome> {
    let all = || transfer(plan, &[(20_000, 20_000); 200], 200, ms(60_000));
    match catch_unwind(AssertUnwindSafe(all)) {
        Ok(outcome) => Some(outcome),
        Err(why) => {
            let told = why.downcast_ref::<String>().is_some_and(|text| text.contains("MPTcpExtFallbackFailed"));
            if told { None } else { resume_unwind(why) }
        }
    }
}

/// Resident memory of this process in bytes.
fn memory() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("this process's memory");
    pages.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages") * 4096
}

#[test]
fn two_thousand_one_after_another() {
    let Some(_alone) = alone() else { return };
    for engine in BOTH {
        let mut plan = plan(engine, 1);
        plan.paths = vec![path("short", 100, 1)];
        let run = |connections: usize| {
            let mut outcome = transfer(&plan, &vec![(1000, 1000); connections], 4, ms(60_000));
            outcome.assert_in_order();
            assert_nothing_left(&mut outcome);
        };
        // Memory kept for later connections is allocated in the first run.
        run(200);
        let before = memory();
        run(2000);
        let grown = memory().saturating_sub(before);
        assert!(grown < 32 << 20, "{grown} bytes more after 2000 connections");
    }
}
