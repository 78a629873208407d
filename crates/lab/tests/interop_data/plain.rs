//! TCP options that the kernel has or lacks.

use crate::common::{Plan, alone};
use crate::transfer::{BOTH, EXCUSED, MIB, both_ways, each, families, plain, plan, sysctl};
use anabranch_network::LossSpec;
use anabranch_units::Side;
use anabranch_wire::Flags;

/// Timestamps, SACK, window scaling: each on or off at the kernel.
type Has = [bool; 3];

fn with(mut plan: Plan, has: Has) -> Plan {
    let names = ["net.ipv4.tcp_timestamps", "net.ipv4.tcp_sack", "net.ipv4.tcp_window_scaling"];
    for (name, has) in names.into_iter().zip(has) {
        sysctl(&mut plan, name, u8::from(has));
    }
    for path in &mut plan.paths {
        path.down.loss = LossSpec::Bernoulli(0.02);
        path.up.loss = LossSpec::Bernoulli(0.02);
    }
    plan.captured = true;
    plan
}

fn check(plan: &Plan, [timestamps, sack, scaling]: Has) {
    let outcome = both_ways(plan, MIB);
    outcome.assert_clean(EXCUSED);
    let data: Vec<_> = outcome.notes.sent().filter(|p| p.len > 0).collect();
    // RFC 7323 §3.2: on every segment or on none.
    assert!(data.iter().all(|p| p.packet.segment.options.timestamps().is_some() == timestamps));
    let acks = outcome.notes.sent().filter(|p| p.packet.segment.flags.has(Flags::ACK));
    let sacked = acks.filter(|p| !p.packet.segment.options.sack().is_empty()).count();
    assert_eq!(sacked > 0, sack, "{sacked} acknowledgments with SACK");
    if !scaling {
        let syns = outcome.notes.packets.iter().filter(|p| p.packet.segment.flags.has(Flags::SYN));
        let scaled = syns.filter(|p| p.packet.segment.options.window_scale().is_some()).filter(|p| !p.sent).count();
        assert_eq!(scaled, 0);
    }
}

fn combinations() -> impl Iterator<Item = (Side, Has)> {
    let has = |n: u8| [n & 1 > 0, n & 2 > 0, n & 4 > 0];
    BOTH.into_iter().flat_map(move |engine| (0..8).map(move |n| (engine, has(n))))
}

#[test]
fn plain_tcp_with_and_without_each_option() {
    let Some(_alone) = alone() else { return };
    each(combinations(), 8, |(engine, has)| {
        families(with(plain(engine), has)).iter().for_each(|plan| check(plan, has))
    });
}

#[test]
fn mptcp_with_and_without_each_option() {
    let Some(_alone) = alone() else { return };
    each(combinations(), 8, |(engine, has)| {
        families(with(plan(engine, 2), has)).iter().for_each(|plan| check(plan, has))
    });
}
