//! A race of several paths for the first subflow (RFC 8305 §5, RobE_SIM): an unmodified kernel accepts one connection.

use crate::common::{Lab, Plan, lossy, ms, path};
use anabranch_engine::{FirstPath, Settings};
use anabranch_lab::kernel::Protocol;
use anabranch_trace::Event;
use anabranch_units::{Duration, PathId, Side};
use anabranch_wire::{Flags, MptcpOption};

/// An engine that races over paths of these one-way delays in ms.
fn racing(delays: &[u64], race_delay: Duration) -> Plan {
    let mut plan = Plan::new(Side::Client, delays.len());
    plan.paths = delays.iter().enumerate().map(|(n, delay)| path(&format!("path{n}"), 20, *delay)).collect();
    plan.settings = Settings { first_path: FirstPath::Race, race_delay, ..plan.settings };
    plan
}

/// The path that won.
fn winner(lab: &Lab) -> Option<PathId> {
    lab.notes.events.iter().find_map(|(_, path, event)| matches!(event, Event::Connected(_)).then_some(*path))
}

/// SYNs with MP_CAPABLE that the engine sent over a path.
fn candidates(lab: &Lab, path: usize) -> usize {
    let capable = |o: &MptcpOption| matches!(o, MptcpOption::Capable(_));
    lab.notes
        .sent()
        .filter(|p| p.packet.segment.flags == Flags::SYN && p.path.index() == path && p.has(capable))
        .count()
}

/// Connections that wait for accept(2), from `ss`: the second column of a listener.
fn waiting(lab: &Lab) -> u64 {
    let listeners = lab.command("ss -Hltn");
    let column = |line: &str| line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
    listeners.lines().filter_map(column).sum()
}

/// All candidates have been answered, and the kernel holds no state of any but the winner.
fn assert_accepted_once(lab: &mut Lab, candidates: u64) {
    lab.until("all SYNs", |lab| lab.counter("MPTcpExtMPCapableSYNRX") == candidates);
    lab.until("resets", |lab| lab.command("ss -Htan state syn-recv").is_empty());
    assert_eq!(lab.counter("MPTcpExtMPCapableACKRX"), 1);
    assert_eq!(waiting(lab), 0);
}

/// No fallback, no refused join.
fn assert_no_trouble(lab: &Lab) {
    let counters = lab.counters();
    for name in ["Fallback", "Infinite", "AckHMacFailure", "NoToken", "MPFail", "DSSNotMatching"] {
        let troubled = counters.iter().any(|(counter, _)| counter.starts_with("MPTcpExt") && counter.contains(name));
        assert!(!troubled, "{counters:#?}");
    }
    assert_eq!(lab.notes.violations(), []);
}

/// `delays` of the paths, the time between SYNs, and the path that must win.
fn races(delays: &[u64], race_delay: Duration, wins: usize, v6: bool) {
    let paths = delays.len();
    let plan = racing(delays, race_delay);
    let Some(mut lab) = Lab::start(if v6 { plan.v6() } else { plan }) else { return };
    lab.connect();
    assert_eq!(winner(&lab), Some(PathId(wins as u8)));
    assert_accepted_once(&mut lab, paths as u64);
    lab.exchange_bytes(10_000);
    // The losing paths are joined, each from a port other than its candidate's.
    lab.until_subflows(paths);
    assert_eq!(lab.counter("MPTcpExtMPJoinAckRx"), paths as u64 - 1);
    lab.exchange_bytes(600_000 * paths as u64);
    lab.close();
    assert_eq!((0..paths).map(|path| candidates(&lab, path)).collect::<Vec<_>>(), vec![1; paths]);
    assert_no_trouble(&lab);
    // Each losing candidate had its SYN/ACK, and one reset for it; nothing else was reset.
    let late = lab.notes.sent().filter(|p| p.packet.segment.flags == Flags::RST).count();
    assert_eq!(late, paths - 1);
}

#[test]
fn the_nearer_path_wins_though_it_begins_later() {
    races(&[300, 10], ms(50), 1, false);
}

#[test]
fn the_nearer_path_wins_of_three_at_once_v6() {
    races(&[200, 100, 10], ms(0), 2, true);
}

#[test]
fn two_answers_at_once_make_one_connection() {
    let Some(mut lab) = Lab::start(racing(&[20, 20], ms(0))) else { return };
    lab.connect();
    assert_accepted_once(&mut lab, 2);
    lab.exchange_bytes(600_000);
    lab.until_subflows(2);
    lab.close();
    assert_no_trouble(&lab);
}

#[test]
fn a_dead_first_path_costs_an_attempt_delay() {
    let mut plan = racing(&[10, 10], ms(100));
    plan.paths[0] = lossy("path0", 20, 10, 1.0);
    let Some(mut lab) = Lab::start(plan) else { return };
    // Without a race there would be no connection.
    lab.connect();
    assert_eq!(winner(&lab), Some(PathId(1)));
    lab.exchange_bytes(600_000);
    assert_eq!((lab.counter("MPTcpExtMPCapableSYNRX"), lab.counter("MPTcpExtMPCapableACKRX")), (1, 1));
    lab.close();
}

#[test]
fn a_kernel_without_mptcp_accepts_once_and_plain_tcp() {
    let mut plan = racing(&[150, 10], ms(20));
    plan.protocol = Protocol::Tcp;
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    assert!(lab.connection().is_some_and(|c| !c.is_multipath()));
    lab.run(ms(500));
    assert_eq!((lab.counter("TcpPassiveOpens"), waiting(&lab)), (1, 0));
    assert_eq!(lab.command("ss -Htan state syn-recv"), "");
    lab.exchange_bytes(300_000);
    lab.close();
    assert_eq!(lab.counter("TcpPassiveOpens"), 1);
}

#[test]
fn the_engine_opens_on_the_path_that_is_named() {
    let mut plan = Plan::new(Side::Client, 3);
    plan.settings.first_path = FirstPath::On(PathId(2));
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    assert_eq!((winner(&lab), candidates(&lab, 0) + candidates(&lab, 1)), (Some(PathId(2)), 0));
    lab.exchange_bytes(10_000);
    lab.until_subflows(3);
    lab.exchange_bytes(600_000);
    lab.close();
    assert_no_trouble(&lab);
}
