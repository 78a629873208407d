//! MP_PRIO and the B flag of MP_JOIN: a backup subflow carries no data until the others fail.

use crate::common::boxes::{Switch, cutting};
use crate::common::{Lab, Plan, ms};
use anabranch_units::{PathId, Side};
use anabranch_wire::MptcpOption;

const BYTES: u64 = 600_000;

/// Bytes of payload that the engine sent and received over a path, since the packet with this index.
fn carried(lab: &Lab, path: u8, since: usize) -> (usize, usize) {
    let on = |sent: bool| {
        let packets = lab.notes.packets[since..].iter().filter(|p| p.sent == sent && p.path == PathId(path));
        packets.map(|p| p.len).sum()
    };
    (on(true), on(false))
}

/// Two subflows, both in use.
fn two(plan: Plan) -> Option<Lab> {
    let mut lab = Lab::start(plan)?;
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    Some(lab)
}

/// Transfers in both directions; returns the bytes that the second path carried.
fn transfer(lab: &mut Lab) -> (usize, usize) {
    // Data in flight under the old rule arrives first.
    lab.run(ms(200));
    let since = lab.notes.packets.len();
    lab.exchange_bytes(BYTES);
    carried(lab, 1, since)
}

fn kernel_changes(plan: Plan, endpoint: &str) {
    let Some(mut lab) = two(plan) else { return };
    let (sent, got) = transfer(&mut lab);
    assert!(sent > 0 && got > 0, "both directions use both paths: {sent} {got}");
    lab.command(&format!("ip mptcp endpoint change {endpoint} backup"));
    lab.until("MP_PRIO", |lab| lab.notes.got().any(|p| p.has(|o| *o == MptcpOption::Prio { backup: true })));
    assert_eq!(transfer(&mut lab), (0, 0));
    lab.command(&format!("ip mptcp endpoint change {endpoint} nobackup"));
    lab.until("MP_PRIO", |lab| lab.notes.got().any(|p| p.has(|o| *o == MptcpOption::Prio { backup: false })));
    let (sent, got) = transfer(&mut lab);
    assert!(sent > 0 && got > 0, "both directions use both paths again: {sent} {got}");
    assert_eq!(lab.counter("MPTcpExtMPPrioTx"), 2);
    assert_eq!(lab.notes.violations(), []);
    lab.close();
}

#[test]
fn kernel_client_changes_a_priority() {
    kernel_changes(Plan::new(Side::Server, 2).endpoint(1, "subflow"), "id 2");
}

#[test]
fn kernel_client_changes_a_priority_v6() {
    kernel_changes(Plan::new(Side::Server, 2).v6().endpoint(1, "subflow"), "id 2");
}

fn engine_changes(plan: Plan) {
    let Some(mut lab) = two(plan) else { return };
    let (sent, got) = transfer(&mut lab);
    assert!(sent > 0 && got > 0, "both directions use both paths: {sent} {got}");
    lab.act(|connection, _| connection.set_backup(PathId(1), true));
    lab.until("MP_PRIO", |lab| lab.counter("MPTcpExtMPPrioRx") == 1);
    assert_eq!(transfer(&mut lab), (0, 0));
    lab.act(|connection, _| connection.set_backup(PathId(1), false));
    lab.until("MP_PRIO", |lab| lab.counter("MPTcpExtMPPrioRx") == 2);
    let (sent, got) = transfer(&mut lab);
    assert!(sent > 0 && got > 0, "both directions use both paths again: {sent} {got}");
    assert_eq!(lab.notes.violations(), []);
    lab.close();
}

#[test]
fn engine_client_changes_a_priority() {
    engine_changes(Plan::new(Side::Client, 2));
}

#[test]
fn engine_server_changes_a_priority() {
    engine_changes(Plan::new(Side::Server, 2).endpoint(1, "subflow"));
}

/// The second path is a backup from its join on; then the first one goes silent.
fn backup_takes_over(plan: Plan) {
    let cut = Switch::default();
    let Some(mut lab) = Lab::start_behind(plan, Some(cutting(0, &cut))) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    assert_eq!(transfer(&mut lab), (0, 0));
    let since = lab.notes.packets.len();
    lab.engine.send(4_000_000);
    lab.kernel.send(4_000_000);
    lab.run(ms(300));
    cut.set(true);
    // The kernel declares a path stale only after several timeouts.
    lab.until_in(ms(40_000), "the transfer over the backup", |lab| {
        let (engine, kernel) = (lab.engine.progress(), lab.kernel.progress());
        engine.received == kernel.to_write && kernel.received == engine.to_write
    });
    let (sent, got) = carried(&lab, 1, since);
    assert!(cut.count() > 0 && sent > 0 && got > 0, "{sent} {got}");
    assert_eq!((lab.engine.progress().fault, lab.kernel.progress().fault), (None, None));
    cut.set(false);
    lab.close();
}

#[test]
fn kernel_client_joins_a_backup() {
    backup_takes_over(Plan::new(Side::Server, 2).endpoint(1, "subflow backup"));
}

#[test]
fn engine_client_joins_a_backup() {
    let mut plan = Plan::new(Side::Client, 2);
    plan.backup = vec![false, true];
    backup_takes_over(plan);
}
