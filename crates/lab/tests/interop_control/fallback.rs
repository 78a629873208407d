//! A connection whose peer, or a box on the path, does not speak Multipath TCP (RFC 8684 §3.7).

use crate::common::boxes::{ACK, SYN, Switch, Tcp, rewriting};
use crate::common::{Lab, Plan, ms};
use anabranch_lab::kernel::Protocol;
use anabranch_lab::{InOut, Middlebox};
use anabranch_trace::Event;
use anabranch_units::Side;
use anabranch_wire::{Flags, MptcpOption};

const BYTES: u64 = 300_000;

/// Plain TCP from the handshake on: bytes in both directions, a half-close, the end; no MPTCP option after the
/// handshake.
fn plain(lab: &mut Lab) {
    lab.connect();
    lab.exchange_bytes(BYTES);
    assert!(lab.connection().is_some_and(|c| !c.is_multipath()));
    lab.kernel.finish();
    lab.until("the kernel's end", |lab| lab.engine.progress().ended);
    lab.engine.send(BYTES);
    lab.engine.finish();
    lab.until_ended();
    assert_eq!(lab.notes.violations(), []);
    assert_eq!(lab.counter("TcpInErrs") + lab.counter("TcpInCsumErrors"), 0);
}

/// MPTCP options that the engine sent on packets that were not SYNs.
fn options_after_handshake(lab: &Lab) -> usize {
    let later = lab.notes.sent().filter(|p| !p.packet.segment.flags.has(Flags::SYN));
    later.map(|p| p.packet.segment.options.mptcp().len() + usize::from(p.packet.segment.options.dss().is_some())).sum()
}

#[test]
fn engine_client_meets_a_plain_server() {
    let mut plan = Plan::new(Side::Client, 2);
    plan.protocol = Protocol::Tcp;
    let Some(mut lab) = Lab::start(plan) else { return };
    plain(&mut lab);
    assert_eq!(options_after_handshake(&lab), 0);
    assert_eq!(lab.counter("MPTcpExtMPCapableSYNRX"), 0);
}

#[test]
fn engine_client_meets_a_plain_server_v6() {
    let mut plan = Plan::new(Side::Client, 2).v6();
    plan.protocol = Protocol::Tcp;
    let Some(mut lab) = Lab::start(plan) else { return };
    plain(&mut lab);
    assert_eq!(options_after_handshake(&lab), 0);
}

#[test]
fn a_plain_client_meets_an_engine_server() {
    let mut plan = Plan::new(Side::Server, 2);
    plan.protocol = Protocol::Tcp;
    let Some(mut lab) = Lab::start(plan) else { return };
    plain(&mut lab);
    assert_eq!(options_after_handshake(&lab), 0);
}

#[test]
fn a_multipath_client_meets_a_plain_engine_server() {
    let mut plan = Plan::new(Side::Server, 2).endpoint(1, "subflow");
    plan.settings.mptcp = false;
    plan.sysctls.push(("net.mptcp.enabled".into(), "1".into()));
    let Some(mut lab) = Lab::start(plan) else { return };
    plain(&mut lab);
    assert_eq!(options_after_handshake(&lab), 0);
    assert_eq!(lab.counter("MPTcpExtMPCapableFallbackSYNACK"), 1);
    assert_eq!(lab.kernel_subflows(), 0);
}

/// The packets that a box strips of their MPTCP options.
type Which = fn(&Tcp<'_>) -> bool;

fn syn(tcp: &Tcp<'_>) -> bool {
    tcp.flags() & (SYN | ACK) == SYN
}

fn syn_ack(tcp: &Tcp<'_>) -> bool {
    tcp.flags() & (SYN | ACK) == SYN | ACK
}

fn after_handshake(tcp: &Tcp<'_>) -> bool {
    tcp.flags() & SYN == 0
}

fn data(tcp: &Tcp<'_>) -> bool {
    tcp.flags() & SYN == 0 && tcp.has_payload()
}

fn stripping(which: Which, stripped: &Switch) -> Middlebox {
    let stripped = stripped.clone();
    rewriting(move |_, _, tcp| {
        if which(tcp) && tcp.strip_mptcp() {
            stripped.note();
        }
    })
}

/// A box removes the options of `which` packets: both ends continue in plain TCP, and everything arrives.
fn stripped(engine: Side, v6: bool, which: Which, counter: &str) {
    let mut plan = Plan::new(engine, 1);
    plan.v6 = v6;
    let stripped = Switch::default();
    let Some(mut lab) = Lab::start_behind(plan, Some(stripping(which, &stripped))) else { return };
    plain(&mut lab);
    assert!(stripped.count() > 0);
    if counter.is_empty() {
        // The kernel never saw MPTCP.
        assert_eq!(lab.counter("MPTcpExtMPCapableSYNRX"), 0);
    } else {
        assert_eq!(lab.counter(counter), 1, "{:#?}", lab.counters());
    }
}

#[test]
fn stripped_from_the_engines_syn() {
    stripped(Side::Client, false, syn, "");
}

#[test]
fn stripped_from_the_kernels_syn() {
    stripped(Side::Server, false, syn, "MPTcpExtMPCapableFallbackSYNACK");
}

#[test]
fn stripped_from_the_kernels_syn_v6() {
    stripped(Side::Server, true, syn, "MPTcpExtMPCapableFallbackSYNACK");
}

#[test]
fn stripped_from_the_kernels_syn_ack() {
    stripped(Side::Client, false, syn_ack, "MPTcpExtMPCapableFallbackACK");
}

#[test]
fn stripped_from_the_engines_syn_ack() {
    stripped(Side::Server, false, syn_ack, "MPTcpExtMPCapableFallbackSYNACK");
}

#[test]
fn stripped_after_the_handshake_engine_client() {
    stripped(Side::Client, false, after_handshake, "MPTcpExtMPCapableFallbackACK");
}

#[test]
fn stripped_after_the_handshake_engine_server() {
    stripped(Side::Server, false, after_handshake, "MPTcpExtMPCapableDataFallback");
}

#[test]
fn stripped_from_data_engine_client() {
    stripped(Side::Client, false, data, "MPTcpExtDssFallback");
}

#[test]
fn stripped_from_data_engine_server() {
    stripped(Side::Server, false, data, "MPTcpExtMPCapableDataFallback");
}

/// A box that removes the options of joins: the subflow is refused, the connection continues on the first one.
fn stripped_joins(plan: Plan) {
    let stripped = Switch::default();
    let count = stripped.clone();
    let middlebox = rewriting(move |_, path, tcp| {
        if path == 1 && tcp.strip_mptcp() {
            count.note();
        }
    });
    let Some(mut lab) = Lab::start_behind(plan, Some(middlebox)) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until("an attempt to join", |_| stripped.count() > 0);
    lab.run(ms(500));
    lab.exchange_bytes(BYTES);
    assert!(lab.connection().is_some_and(|c| c.is_multipath()));
    assert_eq!((lab.established(), lab.kernel_subflows()), (1, 0));
    assert!(!lab.notes.packets.iter().any(|p| p.path.index() == 1 && p.len > 0));
    lab.close();
}

#[test]
fn stripped_joins_of_the_engine() {
    stripped_joins(Plan::new(Side::Client, 2));
}

#[test]
fn stripped_joins_of_the_kernel() {
    stripped_joins(Plan::new(Side::Server, 2).endpoint(1, "subflow"));
}

/// A box that begins to remove the options in the middle of a transfer, on one of two subflows: that subflow is given
/// up, and all data arrives over the other.
fn stripped_in_the_middle(plan: Plan) {
    let (on, stripped) = (Switch::default(), Switch::default());
    let (is_on, count) = (on.clone(), stripped.clone());
    let middlebox = rewriting(move |_, path, tcp| {
        if path == 1 && is_on.is_on() && tcp.strip_mptcp() {
            count.note();
        }
    });
    let Some(mut lab) = Lab::start_behind(plan, Some(middlebox)) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    lab.engine.send(3_000_000);
    lab.kernel.send(3_000_000);
    lab.until("data", |lab| lab.kernel.progress().received > 300_000 && lab.engine.progress().received > 300_000);
    on.set(true);
    lab.until_arrived();
    assert!(stripped.count() > 0 && lab.connection().is_some_and(|c| c.is_multipath()));
    let reset = |p: &crate::common::notes::Seen| p.path.index() == 1 && p.packet.segment.flags.has(Flags::RST);
    assert!(lab.notes.packets.iter().any(reset));
    lab.close();
}

#[test]
fn stripped_in_the_middle_engine_client() {
    stripped_in_the_middle(Plan::new(Side::Client, 2));
}

#[test]
fn stripped_in_the_middle_engine_server() {
    stripped_in_the_middle(Plan::new(Side::Server, 2).endpoint(1, "subflow"));
}

/// A box that, once `on`, changes the payload of one packet in direction `way` on `path`; with DSS checksums.
fn changing(way: InOut, path: usize, switch: &Switch) -> Middlebox {
    let switch = switch.clone();
    rewriting(move |at_way, at, tcp| {
        if switch.is_on() && at_way == way && at == path && tcp.has_payload() {
            tcp.change_payload();
            switch.set(false);
            switch.note();
        }
    })
}

/// The payload changes on one of two subflows: that one is reset with MP_FAIL, and its data is retransmitted intact
/// over the other.
fn changed_on_one_of_two(mut plan: Plan, way: InOut) {
    plan.settings.checksum = true;
    let switch = Switch::default();
    let Some(mut lab) = Lab::start_behind(plan, Some(changing(way, 1, &switch))) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.until_subflows(2);
    switch.set(true);
    lab.exchange_bytes(1_500_000);
    assert_eq!(switch.count(), 1, "nothing was changed");
    let fails = |sent: bool| {
        let packets = lab.notes.packets.iter().filter(move |p| p.sent == sent);
        packets.filter(|p| p.has(|o| matches!(o, MptcpOption::Fail { .. }))).count()
    };
    match way {
        // The engine detected it.
        InOut::Out => assert!(fails(true) > 0 && lab.counter("MPTcpExtMPFailRx") > 0),
        InOut::In => {
            assert!(fails(false) > 0 && lab.counter("MPTcpExtMPFailTx") > 0);
            assert_eq!(lab.counter("MPTcpExtDataCsumErr"), 1);
        }
    }
    assert!(!lab.notes.has(|e| matches!(e, Event::Fallback)));
    lab.close();
}

#[test]
fn payload_changed_towards_the_engine_client() {
    changed_on_one_of_two(Plan::new(Side::Client, 2), InOut::Out);
}

#[test]
fn payload_changed_towards_the_engine_server() {
    changed_on_one_of_two(Plan::new(Side::Server, 2).endpoint(1, "subflow"), InOut::Out);
}

#[test]
fn payload_changed_towards_the_kernel_server() {
    changed_on_one_of_two(Plan::new(Side::Client, 2), InOut::In);
}

#[test]
fn payload_changed_towards_the_kernel_client() {
    changed_on_one_of_two(Plan::new(Side::Server, 2).endpoint(1, "subflow"), InOut::In);
}

/// The payload changes on the only subflow: MP_FAIL and an infinite mapping, and the connection continues in plain TCP
/// with the changed payload.
fn changed_on_the_only_one(mut plan: Plan, way: InOut) {
    plan.settings.checksum = true;
    let switch = Switch::default();
    let Some(mut lab) = Lab::start_behind(plan, Some(changing(way, 0, &switch))) else { return };
    lab.engine.tolerate_faults();
    lab.kernel.tolerate_faults();
    lab.connect();
    lab.exchange_bytes(10_000);
    switch.set(true);
    let (from, to) = match way {
        InOut::Out => (lab.kernel.clone(), lab.engine.clone()),
        InOut::In => (lab.engine.clone(), lab.kernel.clone()),
    };
    from.send(20_000);
    lab.until("what was mapped", |_| to.progress().received == from.progress().to_write);
    assert_eq!(switch.count(), 1);
    lab.until("the sender to hear of it", |lab| match way {
        InOut::Out => lab.counter("MPTcpExtMPFailRx") > 0,
        InOut::In => lab.connection().is_some_and(|c| !c.is_multipath()),
    });
    // The first new data carries the infinite mapping. It is short, because Linux makes a full segment longer than the
    // MTU with it, which then never leaves.
    from.send(500);
    lab.until("the infinite mapping", |_| to.progress().received == from.progress().to_write);
    from.send(BYTES);
    lab.until("all of it", |_| to.progress().received == from.progress().to_write);
    assert!(to.progress().fault.is_some(), "the box changed a byte");
    assert!(lab.connection().is_some_and(|c| !c.is_multipath()));
    let fails = |sent: bool| {
        let packets = lab.notes.packets.iter().filter(move |p| p.sent == sent);
        packets.filter(|p| p.has(|o| matches!(o, MptcpOption::Fail { .. }))).count()
    };
    assert!(fails(way == InOut::Out) > 0);
    assert_eq!(lab.counter("MPTcpExtInfiniteMapTx"), u64::from(way == InOut::Out));
    to.send(BYTES);
    lab.until("the other direction", |_| from.progress().received == to.progress().to_write);
    assert_eq!(from.progress().fault, None);
    lab.engine.finish();
    lab.kernel.finish();
    lab.until("both ends", |lab| lab.engine.progress().ended && lab.kernel.progress().ended);
    assert_eq!(lab.kernel_error, None);
}

#[test]
fn payload_changed_on_the_only_subflow_towards_the_engine() {
    changed_on_the_only_one(Plan::new(Side::Client, 1), InOut::Out);
}

#[test]
fn payload_changed_on_the_only_subflow_towards_the_kernel() {
    changed_on_the_only_one(Plan::new(Side::Client, 1), InOut::In);
}

/// A box that begins to remove the options on the only subflow in the middle of a transfer, in both directions.
fn stripping_all(on: &Switch) -> Middlebox {
    let on = on.clone();
    rewriting(move |_, _, tcp| {
        if on.is_on() && tcp.strip_mptcp() {
            on.note();
        }
    })
}

/// The kernel sends: the engine holds unmapped data for a while, and resets the subflow (RFC 8684 §3.7). Once options
/// pass again it joins again, and everything arrives.
#[test]
fn stripped_in_the_middle_of_the_only_subflow_from_the_kernel() {
    let on = Switch::default();
    let Some(mut lab) = Lab::start_behind(Plan::new(Side::Client, 1), Some(stripping_all(&on))) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.kernel.send(6_000_000);
    lab.until("data", |lab| lab.engine.progress().received > 300_000);
    on.set(true);
    let reset = |p: &crate::common::notes::Seen| p.sent && p.packet.segment.flags.has(Flags::RST);
    lab.until("the reset", |lab| lab.notes.packets.iter().any(reset));
    on.set(false);
    lab.until_in(ms(40_000), "all of it", |lab| lab.engine.progress().received == lab.kernel.progress().to_write);
    assert_eq!(lab.engine.progress().fault, None);
    assert!(on.count() > 0 && lab.connection().is_some_and(|c| c.is_multipath()));
    lab.close();
}

/// The engine sends: the kernel continues in plain TCP on its own. The engine receives no DATA_ACK and must not
/// retransmit data that the kernel would treat as new: it resets the subflow, and no wrong byte arrived.
#[test]
fn stripped_in_the_middle_of_the_only_subflow_to_the_kernel() {
    let on = Switch::default();
    let Some(mut lab) = Lab::start_behind(Plan::new(Side::Client, 1), Some(stripping_all(&on))) else { return };
    lab.connect();
    lab.exchange_bytes(10_000);
    lab.engine.send(20_000_000);
    lab.until("data", |lab| lab.kernel.progress().received > 300_000);
    on.set(true);
    lab.until("the reset", |lab| lab.notes.packets.iter().any(|p| p.sent && p.packet.segment.flags.has(Flags::RST)));
    lab.run(ms(200));
    assert_eq!(lab.counter("MPTcpExtDssFallback"), 1);
    assert_eq!(lab.kernel.progress().fault, None, "the kernel took a copy for new data");
    assert!(lab.kernel_error.as_ref().is_some_and(|error| error.contains("reset")), "{:?}", lab.kernel_error);
}
