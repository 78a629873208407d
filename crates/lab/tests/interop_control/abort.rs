//! MP_FASTCLOSE and MP_TCPRST.

use crate::common::{Lab, Plan, ms};
use anabranch_trace::CloseReason;
use anabranch_units::{PathId, Side};
use anabranch_wire::{Flags, MptcpOption, Reason};

fn two(plan: Plan) -> Option<Lab> {
    let mut lab = Lab::start(plan)?;
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    Some(lab)
}

fn server() -> Plan {
    Plan::new(Side::Server, 2).endpoint(1, "subflow")
}

/// The engine aborts in the middle of a transfer: the kernel's application sees a reset.
fn engine_aborts(plan: Plan) {
    let Some(mut lab) = two(plan) else { return };
    lab.engine.send(4_000_000);
    lab.until("data", |lab| lab.kernel.progress().received > 200_000);
    lab.act(|connection, cx| connection.abort(cx));
    lab.until("the kernel's application to hear of it", |lab| lab.kernel_error.is_some());
    let error = lab.kernel_error.clone().unwrap_or_default();
    assert!(error.contains("reset"), "{error}");
    // Once on each subflow. A busy kernel takes the second before it has acted on the first.
    let said: Vec<_> = lab.notes.sent().filter(|p| p.has(|o| matches!(o, MptcpOption::FastClose { .. }))).collect();
    let on = |id| said.iter().filter(|p| p.path == PathId(id)).count();
    assert!(on(0) <= 1 && on(1) <= 1, "{said:?}");
    let heard = lab.counter("MPTcpExtMPFastcloseRx");
    assert!((1..=said.len() as u64).contains(&heard), "{heard} of {said:?}");
    assert_eq!(lab.notes.closed(), Some(CloseReason::Aborted));
    lab.until("no socket to be left", |lab| lab.command("ss -Htn").trim().is_empty());
}

#[test]
fn engine_client_aborts() {
    engine_aborts(Plan::new(Side::Client, 2));
}

#[test]
fn engine_server_aborts() {
    engine_aborts(server());
}

/// The kernel's application closes with unread bytes in its receive buffer.
fn kernel_aborts(plan: Plan) {
    let Some(mut lab) = two(plan) else { return };
    lab.kernel.read_only(0);
    lab.engine.send(4_000_000);
    lab.run(ms(300));
    lab.kill_kernel_application();
    lab.until("the engine to hear of it", |lab| lab.notes.closed().is_some());
    assert_eq!(lab.notes.closed(), Some(CloseReason::ResetByPeer));
    assert!(lab.notes.got().any(|p| p.has(|o| matches!(o, MptcpOption::FastClose { .. }))));
    assert!(lab.counter("MPTcpExtMPFastcloseTx") >= 1);
    lab.until("no subflow to be left", |lab| lab.subflows().is_empty());
    lab.until("no socket to be left", |lab| lab.command("ss -Htn").trim().is_empty());
}

#[test]
fn kernel_server_aborts() {
    kernel_aborts(Plan::new(Side::Client, 2));
}

#[test]
fn kernel_client_aborts() {
    kernel_aborts(server());
}

#[test]
fn kernel_client_aborts_v6() {
    kernel_aborts(Plan::new(Side::Server, 2).v6().endpoint(1, "subflow"));
}

/// The kernel's application closes with everything read, lingering for 0 s.
fn kernel_leaves(plan: Plan) {
    let Some(mut lab) = two(plan) else { return };
    lab.kill_kernel_application();
    lab.until("the engine to hear of it", |lab| lab.notes.closed().is_some());
    assert_eq!(lab.notes.closed(), Some(CloseReason::ResetByPeer));
    assert!(lab.notes.got().any(|p| p.has(|o| matches!(o, MptcpOption::FastClose { .. }))));
    lab.until("no subflow to be left", |lab| lab.subflows().is_empty());
    lab.until("no socket to be left", |lab| lab.command("ss -Htn").trim().is_empty());
}

#[test]
fn kernel_server_leaves() {
    kernel_leaves(Plan::new(Side::Client, 2));
}

#[test]
fn kernel_client_leaves() {
    kernel_leaves(server());
}

/// The engine resets one subflow in the middle of a transfer: the other continues.
fn engine_resets_a_subflow(plan: Plan) {
    let Some(mut lab) = two(plan) else { return };
    lab.engine.send(2_000_000);
    lab.kernel.send(2_000_000);
    lab.until("data", |lab| lab.kernel.progress().received > 200_000 && lab.engine.progress().received > 200_000);
    // RFC 8684 §3.6: code 3, administratively prohibited
    let reason = Reason { code: 3, transient: false };
    lab.act(|connection, cx| assert!(connection.reset_path(cx, PathId(1), reason)));
    lab.until("the kernel to drop the subflow", |lab| lab.kernel_subflows() == 0);
    lab.until_arrived();
    assert_eq!(lab.counter("MPTcpExtMPRstRx"), 1);
    let resets: Vec<_> = lab.notes.sent().filter(|p| p.packet.segment.flags.has(Flags::RST)).collect();
    assert!(resets.iter().all(|p| p.path == PathId(1)));
    assert!(resets.iter().any(|p| p.has(|o| *o == MptcpOption::TcpRst(reason))));
    lab.close();
}

#[test]
fn engine_client_resets_a_subflow() {
    engine_resets_a_subflow(Plan::new(Side::Client, 2));
}

#[test]
fn engine_server_resets_a_subflow() {
    engine_resets_a_subflow(server());
}

/// The kernel destroys one subflow in the middle of a transfer: the other continues.
fn kernel_resets_a_subflow(plan: Plan) {
    let Some(mut lab) = two(plan) else { return };
    lab.engine.send(2_000_000);
    lab.kernel.send(2_000_000);
    lab.until("data", |lab| lab.kernel.progress().received > 200_000 && lab.engine.progress().received > 200_000);
    let address = lab.plan.addresses().client(1);
    let end = if lab.plan.kernel() == Side::Client { "src" } else { "dst" };
    lab.command(&format!("ss -HKtn {end} {address}"));
    lab.until("the engine to hear of it", |lab| lab.notes.got().any(|p| p.packet.segment.flags.has(Flags::RST)));
    let reset = lab.notes.got().find(|p| p.packet.segment.flags.has(Flags::RST)).expect("a reset").clone();
    assert_eq!(reset.path, PathId(1));
    assert!(reset.has(|o| matches!(o, MptcpOption::TcpRst(_))), "{:?}", reset.packet);
    assert_eq!(lab.counter("MPTcpExtMPRstTx"), 1);
    lab.until_arrived();
    lab.close();
}

#[test]
fn kernel_server_resets_a_subflow() {
    kernel_resets_a_subflow(Plan::new(Side::Client, 2));
}

#[test]
fn kernel_client_resets_a_subflow() {
    kernel_resets_a_subflow(server());
}
