//! Packets of up to 64 KB, without checksums.

use crate::common::{Plan, alone, ms};
use crate::transfer::{BOTH, EXCUSED, MIB, Outcome, plain, plan, transfer};
use anabranch_network::{Bottleneck, CapacitySpec, LossSpec, QueueSpec};
use anabranch_units::{Rate, Side};

/// Paths without limits, between devices with offload.
fn unlimited(mut plan: Plan) -> Plan {
    plan.offload = true;
    for path in &mut plan.paths {
        for way in [&mut path.down, &mut path.up] {
            let Bottleneck::Own(own) = &mut way.bottleneck else { unreachable!("no link is shared") };
            own.capacity = CapacitySpec::Fixed(Rate::from_bps(1_000_000_000_000));
            own.queue = QueueSpec::Bytes(64 * MIB);
        }
    }
    plan
}

/// Packets that the kernel's devices received and transmitted.
fn packets(outcome: &Outcome) -> (u64, u64) {
    let host = &outcome.exchange.outside[0].host;
    let text = host.namespace.command("cat", &["/proc/net/dev"], "").expect("the devices' counters");
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("path")?.split_once(':'));
    lines.fold((0, 0), |(received, transmitted), (_, counters)| {
        let counters: Vec<u64> = counters.split_whitespace().map(|n| n.parse().expect("a number")).collect();
        (received + counters[1], transmitted + counters[9])
    })
}

const SIZE: u64 = 32 * MIB;
/// The number of packets at one MSS each.
const SEGMENTS: u64 = SIZE / 1448;

/// Every byte in both directions, in fewer packets than segments. Both directions at once: a kernel whose peer has
/// finished refuses joins.
fn carries(plan: &Plan) {
    let outcome = transfer(plan, &[(SIZE, SIZE)], 1, ms(60_000));
    outcome.assert_in_order();
    let (received, transmitted) = packets(&outcome);
    assert!(received.max(transmitted) < SEGMENTS, "the kernel got {received} and sent {transmitted} of {SEGMENTS}");
}

#[test]
fn over_two_subflows() {
    let Some(_alone) = alone() else { return };
    for engine in BOTH {
        carries(&unlimited(plan(engine, 2)));
        carries(&unlimited(plan(engine, 2).v6()));
    }
}

#[test]
fn in_plain_tcp() {
    let Some(_alone) = alone() else { return };
    for engine in BOTH {
        carries(&unlimited(plain(engine)));
    }
}

/// A mapping with a checksum is not split, so that each segment of the engine is a packet.
#[test]
fn with_checksums_of_mappings() {
    let Some(_alone) = alone() else { return };
    let mut plan = unlimited(plan(Side::Client, 2));
    plan.settings.checksum = true;
    transfer(&plan, &[(8 * MIB, 8 * MIB)], 1, ms(60_000)).assert_in_order();
}

/// Lost and damaged segments are repaired, whatever packet they were part of.
#[test]
fn where_packets_are_lost_and_damaged() {
    let Some(_alone) = alone() else { return };
    for engine in BOTH {
        let mut plan = unlimited(plan(engine, 2));
        for path in &mut plan.paths {
            for way in [&mut path.down, &mut path.up] {
                way.loss = LossSpec::Bernoulli(0.002);
                way.corrupt = 0.002;
            }
        }
        transfer(&plan, &[(8 * MIB, 8 * MIB)], 1, ms(60_000)).assert_clean(EXCUSED);
    }
}
