//! ADD_ADDR and REMOVE_ADDR.

use crate::common::{Lab, Plan};
use anabranch_units::{PathId, Side};
use anabranch_wire::{AddAddr, Flags, MptcpOption};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const BYTES: u64 = 300_000;

/// A second address of the server, which every client reaches by its default route.
fn second(v6: bool) -> IpAddr {
    if v6 { IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 9, 0, 0, 0, 2)) } else { IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)) }
}

fn add_addr(option: &MptcpOption) -> Option<AddAddr> {
    match option {
        MptcpOption::AddAddr(announced) => Some(*announced),
        _ => None,
    }
}

fn announcements(lab: &Lab, sent: bool) -> Vec<AddAddr> {
    let packets = lab.notes.packets.iter().filter(|p| p.sent == sent);
    packets.flat_map(|p| p.packet.segment.options.mptcp().iter().filter_map(add_addr)).collect()
}

/// The address IDs of REMOVE_ADDRs that the engine sent or received.
fn removals(lab: &Lab, sent: bool) -> Vec<u8> {
    let packets = lab.notes.packets.iter().filter(|p| p.sent == sent);
    let options = packets.flat_map(|p| p.packet.segment.options.mptcp().iter());
    options
        .filter_map(|o| match o {
            MptcpOption::RemoveAddr(ids) => Some(ids.iter().flatten().copied()),
            _ => None,
        })
        .flatten()
        .collect()
}

/// An engine server announces; the kernel joins to the announced address.
fn engine_announces(v6: bool, port: Option<u16>) {
    let mut plan = Plan::new(Side::Server, 1);
    plan.v6 = v6;
    plan.announce = vec![(5, second(v6), port)];
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    lab.exchange_bytes(BYTES);
    let said = announcements(&lab, true);
    assert!(said.iter().all(|a| (a.address_id, a.address, a.port) == (5, second(v6), port)) && !said.is_empty());
    let echoes = announcements(&lab, false);
    assert!(echoes.iter().all(|a| a.hmac.is_none() && a.address_id == 5) && !echoes.is_empty(), "{echoes:?}");
    let to = |p: &&crate::common::notes::Seen| p.packet.dst == second(v6) && p.packet.segment.flags.has(Flags::SYN);
    let syn = lab.notes.got().find(to).expect("a join to the address that was announced");
    assert_eq!(syn.packet.segment.dst_port, port.unwrap_or(anabranch_sim::PORT));
    assert!(lab.notes.sent().any(|p| p.packet.src == second(v6) && p.len > 0));
    assert_eq!(lab.counter("MPTcpExtAddAddr"), said.len() as u64);
    assert_eq!(lab.counter("MPTcpExtPortAdd"), u64::from(port.is_some()));
    assert_eq!(lab.notes.violations(), []);
    lab.close();
}

#[test]
fn engine_server_announces() {
    engine_announces(false, None);
}

#[test]
fn engine_server_announces_v6() {
    engine_announces(true, None);
}

#[test]
fn engine_server_announces_a_port() {
    engine_announces(false, Some(6001));
}

#[test]
fn engine_server_announces_a_port_v6() {
    engine_announces(true, Some(6001));
}

/// An engine server announces a second address to a kernel with `fullmesh` endpoints: every address of the kernel joins
/// to both of the engine's.
#[test]
fn engine_server_announces_to_a_full_mesh() {
    let mut plan = Plan::new(Side::Server, 2).endpoint(1, "subflow fullmesh");
    plan.announce = vec![(5, second(false), None)];
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until("joins to the second address", |lab| lab.established() >= 3);
    lab.run(anabranch_units::Duration::from_millis(300));
    lab.exchange_bytes(2 * BYTES);
    let mut pairs: Vec<(IpAddr, IpAddr)> = lab
        .notes
        .got()
        .filter(|p| p.packet.segment.flags.has(Flags::SYN))
        .map(|p| (p.packet.src, p.packet.dst))
        .collect();
    pairs.sort();
    pairs.dedup();
    let (first, more) = (lab.plan.addresses().server(0), second(false));
    let (one, two) = (lab.plan.addresses().client(0), lab.plan.addresses().client(1));
    assert!(pairs.contains(&(two, first)) && pairs.contains(&(two, more)), "{pairs:?}");
    assert!(pairs.contains(&(one, first)), "{pairs:?}");
    assert_eq!(lab.notes.violations(), []);
    lab.close();
}

/// A kernel server with a `signal` endpoint.
fn signalling(v6: bool, port: Option<u16>) -> Plan {
    let address = second(v6);
    let port = port.map_or(String::new(), |port| format!(" port {port}"));
    let (prefix, nodad) = if v6 { (128, " nodad") } else { (32, "") };
    let mut plan = Plan::new(Side::Client, 1)
        .ip(format!("addr add {address}/{prefix} dev lo{nodad}"))
        .ip(format!("mptcp endpoint add {address}{port} dev lo id 7 signal"));
    plan.v6 = v6;
    plan.accept_announced = true;
    plan
}

/// The kernel announces; the engine joins to the announced address.
fn kernel_announces(v6: bool, port: Option<u16>) {
    kernel_announces_by(signalling(v6, port), v6, port);
}

fn kernel_announces_by(plan: Plan, v6: bool, port: Option<u16>) {
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    lab.exchange_bytes(BYTES);
    let heard = announcements(&lab, false);
    assert!(heard.iter().all(|a| (a.address_id, a.address, a.port) == (7, second(v6), port)) && !heard.is_empty());
    assert!(announcements(&lab, true).iter().all(|a| a.hmac.is_none() && a.address_id == 7));
    let remote =
        lab.subflows().iter().find(|(_, remote, _)| remote.ip() == second(v6)).map(|(_, remote, _)| remote.port());
    assert_eq!(remote, Some(port.unwrap_or(anabranch_sim::PORT)));
    assert!(lab.notes.sent().any(|p| p.packet.dst == second(v6) && p.len > 0));
    lab.until("the echo", |lab| lab.counter("MPTcpExtEchoAdd") == 1);
    if port.is_some() {
        assert_eq!(lab.counter("MPTcpExtMPJoinPortSynRx"), 1);
        assert_eq!(lab.counter("MPTcpExtMPJoinPortAckRx"), 1);
    } else {
        assert_eq!(lab.counter("MPTcpExtMPJoinAckRx"), 1);
    }
    assert_eq!(lab.notes.violations(), []);
    lab.close();
}

#[test]
fn kernel_server_announces() {
    kernel_announces(false, None);
}

#[test]
fn kernel_server_announces_v6() {
    kernel_announces(true, None);
}

#[test]
fn kernel_server_announces_a_port() {
    kernel_announces(false, Some(6001));
}

/// Linux drops an ADD_ADDR of 30 bytes where timestamps take 12 of the 40 (`AddAddrTxDrop`): without them it fits.
#[test]
fn kernel_server_announces_a_port_v6() {
    let mut plan = signalling(true, Some(6001));
    plan.settings.tcp.timestamps = false;
    kernel_announces_by(plan, true, Some(6001));
}

/// An engine client announces an address and does not join from it; a kernel server joins to it.
#[test]
fn kernel_server_joins_to_the_engine_client() {
    let mut plan = Plan::new(Side::Client, 2);
    plan.known = 1;
    plan.announce = vec![(3, plan.addresses().client(1), None)];
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    lab.exchange_bytes(BYTES);
    assert!(lab.notes.sent().any(|p| p.path == PathId(1) && p.len > 0));
    assert!(lab.counter("MPTcpExtMPJoinSynAckRx") == 1 && lab.counter("MPTcpExtAddAddr") >= 1);
    assert_eq!(lab.notes.violations(), []);
    lab.close();
}

/// A kernel client announces; an engine server echoes, and leaves joining to the client.
#[test]
fn kernel_client_announces() {
    let plan = Plan::new(Side::Server, 2).endpoint(1, "signal");
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until("the echo", |lab| lab.counter("MPTcpExtEchoAdd") == 1);
    lab.exchange_bytes(BYTES);
    assert_eq!((lab.established(), lab.kernel_subflows()), (1, 0));
    assert_eq!(lab.notes.violations(), []);
    lab.close();
}

/// A REMOVE_ADDR from the kernel in the middle of a transfer.
fn kernel_removes(plan: Plan, delete: &str, id: u8) {
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    lab.engine.send(4_000_000);
    lab.kernel.send(4_000_000);
    lab.until("both paths to be in use", |lab| {
        lab.engine.progress().received > 500_000 && lab.kernel.progress().received > 500_000
    });
    lab.command(delete);
    lab.until("the engine to close the subflow", |lab| lab.established() == 1);
    let left = lab.engine.progress().received;
    assert!(left < 4_010_000, "the transfer was over before");
    lab.until_arrived();
    assert!(removals(&lab, false).contains(&id), "{:?}", removals(&lab, false));
    assert_eq!(lab.counter("MPTcpExtRmAddrTx"), 1);
    lab.run(crate::common::ms(1500));
    // A withdrawn address is not joined again.
    assert_eq!((lab.established(), lab.kernel_subflows()), (1, 0));
    lab.exchange_bytes(BYTES);
    lab.close();
}

#[test]
fn kernel_client_removes_a_subflow_endpoint() {
    kernel_removes(Plan::new(Side::Server, 2).endpoint(1, "subflow"), "ip mptcp endpoint delete id 2", 2);
}

#[test]
fn kernel_client_removes_a_subflow_endpoint_v6() {
    kernel_removes(Plan::new(Side::Server, 2).v6().endpoint(1, "subflow"), "ip mptcp endpoint delete id 2", 2);
}

#[test]
fn kernel_server_removes_a_signalled_address() {
    kernel_removes(signalling(false, None), "ip mptcp endpoint delete id 7", 7);
}

/// A REMOVE_ADDR from the engine in the middle of a transfer.
fn engine_removes(plan: Plan, id: Option<u8>) {
    let Some(mut lab) = Lab::start(plan) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    lab.engine.send(4_000_000);
    lab.kernel.send(4_000_000);
    lab.until("both paths to be in use", |lab| {
        lab.engine.progress().received > 500_000 && lab.kernel.progress().received > 500_000
    });
    let mut removed = 0;
    lab.act(|connection, cx| {
        let local = connection.subflows().nth(1).expect("a second subflow").1.local;
        removed = id.or(connection.address_id(local)).expect("an address ID");
        connection.withdraw(cx, removed);
    });
    lab.until("the kernel to close the subflow", |lab| lab.kernel_subflows() == 0);
    assert!(lab.engine.progress().received < 4_010_000, "the transfer was over before");
    lab.until_arrived();
    // There is no echo: it is repeated, and the kernel must ignore the copies.
    let said = removals(&lab, true);
    assert!(!said.is_empty() && said.iter().all(|id| *id == removed), "{said:?}");
    assert!(lab.counter("MPTcpExtRmAddr") >= 1);
    assert_eq!(lab.established(), 1);
    lab.run(crate::common::ms(1500));
    assert_eq!((lab.established(), lab.kernel_subflows()), (1, 0));
    lab.exchange_bytes(BYTES);
    lab.close();
}

#[test]
fn engine_client_removes_its_second_address() {
    engine_removes(Plan::new(Side::Client, 2), None);
}

#[test]
fn engine_client_removes_its_second_address_v6() {
    engine_removes(Plan::new(Side::Client, 2).v6(), None);
}

#[test]
fn engine_server_removes_an_announced_address() {
    let mut plan = Plan::new(Side::Server, 1);
    plan.announce = vec![(5, second(false), None)];
    engine_removes(plan, Some(5));
}
