//! DATA_FIN and FIN: each side finishes first, and the other continues to send.

use crate::common::{Lab, Plan, ms, path};
use anabranch_units::{PathId, Side};
use anabranch_wire::{Flags, MptcpOption, Reason};

const BYTES: u64 = 400_000;

fn plan(engine: Side, paths: usize) -> Plan {
    let plan = Plan::new(engine, paths);
    match engine {
        Side::Client => plan,
        Side::Server => (1..paths).fold(plan, |plan, path| plan.endpoint(path, "subflow")),
    }
}

fn begin(plan: Plan) -> Option<Lab> {
    let paths = plan.paths.len();
    let mut lab = Lab::start(plan)?;
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(paths);
    Some(lab)
}

/// Half-closes a connection: with `engine_first` the engine finishes first, and the kernel sends after that; otherwise the reverse.
fn half_close(plan: Plan, engine_first: bool) {
    let Some(mut lab) = begin(plan) else { return };
    lab.engine.send(BYTES);
    lab.kernel.send(BYTES);
    let (first, second) = if engine_first { (&lab.engine, &lab.kernel) } else { (&lab.kernel, &lab.engine) };
    let (first, second) = (first.clone(), second.clone());
    first.finish();
    lab.until("the first end", |_| second.progress().ended);
    lab.run(ms(300));
    assert!(!first.progress().ended && lab.notes.closed().is_none());
    assert_eq!(lab.established(), lab.plan.paths.len(), "{}", lab.describe());
    second.send(BYTES);
    lab.until_arrived();
    second.finish();
    lab.until_ended();
    over(&mut lab);
}

/// Nothing is left: no reset was needed, and the kernel holds no socket except in TIME-WAIT.
fn over(lab: &mut Lab) {
    lab.until("no socket but in TIME-WAIT", |lab| {
        lab.command("ss -Htan").lines().all(|line| line.starts_with("TIME-WAIT") || line.starts_with("LISTEN"))
    });
    let resets: Vec<_> = lab.notes.packets.iter().filter(|p| p.packet.segment.flags.has(Flags::RST)).collect();
    assert!(resets.is_empty(), "{resets:#?}");
    assert_eq!(lab.notes.violations(), []);
}

#[test]
fn engine_client_finishes_first() {
    half_close(plan(Side::Client, 2), true);
}

#[test]
fn engine_client_finishes_last() {
    half_close(plan(Side::Client, 2), false);
}

#[test]
fn engine_server_finishes_first() {
    half_close(plan(Side::Server, 2), true);
}

#[test]
fn engine_server_finishes_last() {
    half_close(plan(Side::Server, 2), false);
}

#[test]
fn engine_server_finishes_first_v6_one_subflow() {
    half_close(plan(Side::Server, 1).v6(), true);
}

#[test]
fn engine_client_finishes_last_v6_one_subflow() {
    half_close(plan(Side::Client, 1).v6(), false);
}

/// Both finish at once, with data in flight.
fn both_at_once(plan: Plan) {
    let Some(mut lab) = begin(plan) else { return };
    lab.engine.send(BYTES);
    lab.kernel.send(BYTES);
    lab.close();
    over(&mut lab);
}

#[test]
fn both_finish_at_once_engine_client() {
    both_at_once(plan(Side::Client, 2));
}

#[test]
fn both_finish_at_once_engine_server() {
    both_at_once(plan(Side::Server, 2));
}

/// A connection without a byte: established, and closed.
fn nothing_sent(engine: Side) {
    let Some(mut lab) = Lab::start(Plan::new(engine, 1)) else { return };
    lab.connect();
    lab.run(ms(200));
    lab.close();
    over(&mut lab);
}

#[test]
fn nothing_sent_engine_client() {
    nothing_sent(Side::Client);
}

#[test]
fn nothing_sent_engine_server() {
    nothing_sent(Side::Server);
}

/// A kernel whose program has finished resets a join that is answered while the last data is being sent. The rest arrives over
/// the first path.
#[test]
fn a_join_that_the_kernels_end_overtakes_is_reset() {
    let mut plan = plan(Side::Server, 2);
    plan.paths = vec![path("narrow", 1, 10), path("far", 20, 150)];
    plan.settings.recv_buffer = 10_000;
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(1_000);
    lab.until("a join", |lab| lab.notes.got().any(|p| p.path == PathId(1)));
    // Beyond the engine's window, so that the kernel holds back the rest; the answer takes 150 ms.
    lab.kernel.send(60_000);
    lab.kernel.finish();
    lab.until("a reset", |lab| lab.notes.got().any(|p| p.packet.segment.flags.has(Flags::RST)));
    let reset = lab.notes.got().find(|p| p.packet.segment.flags.has(Flags::RST)).expect("a reset").clone();
    assert_eq!(reset.path, PathId(1));
    // RFC 8684 §3.6: code 1, specific to Multipath TCP
    assert!(reset.has(|o| *o == MptcpOption::TcpRst(Reason { code: 1, transient: false })), "{:?}", reset.packet);
    let counted = ["MPJoinSynTx", "MPJoinSynAckRx", "MPRstTx"].map(|name| lab.counter(&format!("MPTcpExt{name}")));
    assert_eq!(counted, [1, 0, 1]);
    lab.engine.send(BYTES);
    lab.engine.finish();
    lab.until_ended();
    assert_eq!(lab.notes.violations(), []);
}
