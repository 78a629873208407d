//! Many connections at once, and one after another.

use crate::common::{alone, ms, path};
use crate::transfer::{BOTH, Outcome, plan, transfer};
use anabranch_units::Side;

/// The engine has forgotten every connection, and the kernel has no socket in use.
fn assert_nothing_left(outcome: &Outcome) {
    assert_eq!(outcome.left(), 0);
    let read = || std::fs::read_to_string("/proc/thread-self/net/sockstat").expect("socket statistics");
    let stat = outcome.exchange.outside[0].host.namespace.enter(read).expect("a namespace");
    let tcp = stat.lines().find_map(|line| line.strip_prefix("TCP: ")).expect("a line about TCP");
    let words: Vec<&str> = tcp.split_whitespace().collect();
    // What is in TIME-WAIT ("tw") is no socket any more; "inuse" and "orphan" are those of the namespace.
    assert_eq!(words[..4], ["inuse", "0", "orphan", "0"], "{stat}");
}

/// 200 connections at once, 20 KB each way on each.
fn at_once(engine: Side) {
    let Some(_alone) = alone() else { return };
    let outcome = transfer(&plan(engine, 2), &[(20_000, 20_000); 200], 200, ms(60_000));
    outcome.assert_in_order();
    assert_nothing_left(&outcome);
}

#[test]
fn two_hundred_at_once_engine_client() {
    at_once(Side::Client);
}

#[test]
fn two_hundred_at_once_engine_server() {
    at_once(Side::Server);
}

/// Resident memory of this process, bytes.
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
            let outcome = transfer(&plan, &vec![(1000, 1000); connections], 4, ms(60_000));
            outcome.assert_in_order();
            assert_nothing_left(&outcome);
        };
        // What is kept for the next connections is there after the first.
        run(200);
        let before = memory();
        run(2000);
        let grown = memory().saturating_sub(before);
        assert!(grown < 32 << 20, "{grown} bytes more after 2000 connections");
    }
}
