//! MP_CAPABLE and MP_JOIN.

use crate::common::{Lab, Plan};
use anabranch_trace::Violation;
use anabranch_units::Side;
use anabranch_wire::{Flags, MpCapable, MpJoin, MptcpOption};

const BYTES: u64 = 300_000;

fn capable(option: &MptcpOption) -> Option<MpCapable> {
    match option {
        MptcpOption::Capable(capable) => Some(*capable),
        _ => None,
    }
}

/// One subflow: keys, bytes in both directions, the end.
fn one_subflow(plan: Plan) {
    let engine = plan.engine;
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    assert!(lab.connection().is_some_and(|c| c.is_multipath()));
    lab.exchange_bytes(BYTES);
    lab.close();
    let options = |syn: bool| {
        let all = lab.notes.packets.iter().filter(move |p| p.packet.segment.flags.has(Flags::SYN) == syn);
        all.flat_map(|p| p.packet.segment.options.mptcp().iter().filter_map(capable)).collect::<Vec<_>>()
    };
    // RFC 8684 §3.1: no key on the SYN, the server's on the SYN/ACK, both on the segments that follow.
    let [syn, syn_ack] = options(true)[..] else { panic!("{:?}", options(true)) };
    assert_eq!((syn.version, syn.sender_key, syn.receiver_key), (1, None, None));
    assert!(syn_ack.sender_key.is_some() && syn_ack.receiver_key.is_none());
    let third = options(false);
    assert!(!third.is_empty() && third.iter().all(|c| c.receiver_key == syn_ack.sender_key && c.sender_key.is_some()));
    let (active, passive) = match engine {
        Side::Client => (0, 1),
        Side::Server => (1, 0),
    };
    assert_eq!(lab.counter("MPTcpExtMPCapableSYNTX"), active);
    assert_eq!(lab.counter("MPTcpExtMPCapableSYNRX"), passive);
    assert_eq!(lab.counter("MPTcpExtMPCapableACKRX"), passive);
    assert_eq!(lab.notes.violations(), []);
    assert_no_trouble(&lab);
}

/// The kernel dropped, repaired and fell back from nothing.
fn assert_no_trouble(lab: &Lab) {
    let counters = lab.counters();
    for name in ["Fallback", "Infinite", "CsumErr", "AckHMacFailure", "NoToken", "MPFail", "MPRst", "DSSNotMatching"] {
        let troubled: Vec<_> =
            counters.iter().filter(|(counter, _)| counter.starts_with("MPTcpExt") && counter.contains(name)).collect();
        assert_eq!(troubled, [], "{counters:#?}");
    }
    assert_eq!(lab.counter("TcpInErrs") + lab.counter("TcpInCsumErrors"), 0);
}

#[test]
fn engine_client_one_subflow() {
    one_subflow(Plan::new(Side::Client, 1));
}

#[test]
fn engine_server_one_subflow() {
    one_subflow(Plan::new(Side::Server, 1));
}

#[test]
fn engine_client_one_subflow_v6() {
    one_subflow(Plan::new(Side::Client, 1).v6());
}

#[test]
fn engine_server_one_subflow_v6() {
    one_subflow(Plan::new(Side::Server, 1).v6());
}

/// The engine joins over the second path and further ones.
fn engine_joins(plan: Plan) {
    let paths = plan.paths.len();
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    // RFC 8684 §3.1: the server's first data shows that its keys have arrived.
    lab.exchange_bytes(10_000);
    lab.until_subflows(paths);
    lab.exchange_bytes(2 * BYTES * paths as u64);
    for path in 0..paths {
        let carried =
            |sent: bool| lab.notes.packets.iter().any(|p| p.sent == sent && p.path.index() == path && p.len > 0);
        assert!(carried(true), "the engine sent nothing over path {path}");
    }
    assert_eq!(lab.counter("MPTcpExtMPJoinSynRx"), paths as u64 - 1);
    assert_eq!(lab.counter("MPTcpExtMPJoinAckRx"), paths as u64 - 1);
    lab.close();
    assert_eq!(lab.notes.violations(), []);
    assert_no_trouble(&lab);
}

/// The kernel joins from each of its endpoints.
fn kernel_joins(plan: Plan) {
    let paths = plan.paths.len();
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(paths);
    lab.exchange_bytes(2 * BYTES * paths as u64);
    let engine_sent = |path| lab.notes.sent().any(|p| p.path.index() == path && p.len > 0);
    assert!((0..paths).all(engine_sent));
    // Each join had its own address ID (RFC 8684 §3.2).
    let ids = lab.notes.got().filter(|p| p.packet.segment.flags.has(Flags::SYN)).filter_map(|p| {
        p.packet.segment.options.mptcp().iter().find_map(|o| match o {
            MptcpOption::Join(MpJoin::Syn { address_id, .. }) => Some(*address_id),
            _ => None,
        })
    });
    let ids: std::collections::BTreeSet<u8> = ids.collect();
    assert_eq!(ids.len(), paths - 1, "{ids:?}");
    assert_eq!(lab.counter("MPTcpExtMPJoinSynAckRx"), paths as u64 - 1);
    lab.close();
    assert_eq!(lab.notes.violations(), [] as [Violation; 0]);
    assert_no_trouble(&lab);
}

fn with_endpoints(paths: usize, flags: &str) -> Plan {
    (1..paths).fold(Plan::new(Side::Server, paths), |plan, path| plan.endpoint(path, flags))
}

#[test]
fn engine_client_joins_one() {
    engine_joins(Plan::new(Side::Client, 2));
}

#[test]
fn engine_client_joins_two() {
    engine_joins(Plan::new(Side::Client, 3));
}

#[test]
fn engine_client_joins_three_v6() {
    engine_joins(Plan::new(Side::Client, 4).v6());
}

#[test]
fn kernel_client_joins_one() {
    kernel_joins(with_endpoints(2, "subflow"));
}

#[test]
fn kernel_client_joins_two_v6() {
    let plan = Plan::new(Side::Server, 3).v6();
    kernel_joins((1..3).fold(plan, |plan, path| plan.endpoint(path, "subflow")));
}

#[test]
fn kernel_client_joins_three() {
    kernel_joins(with_endpoints(4, "subflow"));
}

#[test]
fn kernel_client_joins_by_fullmesh() {
    kernel_joins(with_endpoints(3, "subflow fullmesh"));
}
