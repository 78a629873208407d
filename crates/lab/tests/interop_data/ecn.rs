//! Explicit congestion notification (RFC 3168) between the engine and the kernel, across queues of ours that mark.

use crate::common::notes::Seen;
use crate::common::{Plan, alone, ms, path};
use crate::transfer::{BOTH, EXCUSED, MIB, Outcome, each, families, plain, plan, sysctl, transfer};
use anabranch_network::{Bottleneck, CodelSpec, DropTail, QueueSpec};
use anabranch_trace::Event;
use anabranch_units::{Duration, Side};
use anabranch_wire::{Ecn, Flags};
use std::collections::BTreeSet;

const PATIENCE: Duration = Duration::from_secs(60);
/// Each end sends, so that each meets marks as sender and as receiver.
const TWO_WAYS: &[(u64, u64)] = &[(6 * MIB, 6 * MIB)];
/// Transfers among which one has no repeated SYN.
const TRIES: u32 = 4;

/// CoDel marks on every path, in both directions, soon after a queue has built up.
fn marking(mut plan: Plan) -> Plan {
    plan.paths = (0..plan.paths.len()).map(|n| path(&format!("path{n}"), 10, 10)).collect();
    for way in plan.paths.iter_mut().flat_map(|path| [&mut path.down, &mut path.up]) {
        if let Bottleneck::Own(own) = &mut way.bottleneck {
            let codel = CodelSpec { target: ms(2), interval: ms(20), ecn: true };
            own.queue = QueueSpec::Managed(codel.into(), DropTail::Packets(1000));
        }
    }
    plan.settings.tcp.ecn = true;
    plan.captured = true;
    plan
}

fn both_ends(side: Side) -> [Plan; 4] {
    let [four, six] = families(marking(plan(side, 2)));
    let [plain_four, plain_six] = families(marking(plain(side)));
    [four, six, plain_four, plain_six]
}

fn has(seen: &Seen, flags: Flags) -> bool {
    seen.packet.segment.flags.has(flags)
}

fn is_syn(seen: &Seen) -> bool {
    has(seen, Flags::SYN)
}

/// SYNs and SYN/ACKs: the first that each end sends on a path, how many of these set ECN up, and the repeated ones.
#[derive(Debug, Default)]
struct Syns {
    first: usize,
    set_up: usize,
    repeated: usize,
}

impl Syns {
    fn of(outcome: &Outcome) -> Self {
        let (mut syns, mut ends) = (Self::default(), BTreeSet::new());
        for seen in outcome.notes.packets.iter().filter(|seen| is_syn(seen)) {
            let is_first = ends.insert((seen.path, seen.sent));
            syns.first += usize::from(is_first);
            syns.set_up += usize::from(is_first && has(seen, Flags::ECE));
            syns.repeated += usize::from(!is_first);
        }
        syns
    }
}

/// Transfers until no SYN is repeated: Linux repeats it without ECN (RFC 3168 §6.1.1.1), as it does where the machine is too busy
/// to answer in time.
fn transfer_set_up(plan: &Plan) -> Outcome {
    for _ in 0..TRIES {
        let outcome = transfer(plan, TWO_WAYS, 1, PATIENCE);
        let syns = Syns::of(&outcome);
        if syns.repeated == 0 {
            assert!(syns.first >= 2 && syns.first == syns.set_up, "{syns:?}");
            return outcome;
        }
    }
    panic!("each of {TRIES} times a SYN was repeated");
}

/// The kernel judges the engine's bits by its counters, and the engine's record shows the kernel's.
#[test]
fn each_end_echoes_marks_and_slows_down_at_the_others_echo() {
    let Some(_alone) = alone() else { return };
    each(BOTH.into_iter().flat_map(both_ends), 4, |plan: Plan| {
        let outcome = transfer_set_up(&plan);
        outcome.assert_clean(EXCUSED);
        let (notes, segments) = (&outcome.notes, |seen: &&Seen| !is_syn(seen));
        // The engine sends: its data arrives marked, the kernel echoes, the engine reduces its window and sends CWR.
        // The counters of IPv6 are elsewhere.
        assert!(plan.v6 || outcome.counter("IpExtInCEPkts") > 0, "{:#?}", outcome.counters);
        assert!(notes.got().filter(segments).any(|seen| has(seen, Flags::ECE)), "the kernel's echo");
        assert!(notes.has(|event| *event == Event::Marked), "the engine's reduction");
        assert!(notes.sent().filter(segments).any(|seen| has(seen, Flags::CWR)), "the engine's CWR");
        // The kernel sends: its data arrives marked, the engine echoes, the kernel reduces its window and sends CWR.
        assert!(notes.got().any(|seen| seen.packet.segment.ecn == Ecn::Ce), "a mark on the kernel's data");
        assert!(notes.sent().filter(segments).any(|seen| has(seen, Flags::ECE)), "the engine's echo");
        assert!(notes.got().filter(segments).any(|seen| has(seen, Flags::CWR)), "the kernel's CWR");
        assert!(outcome.counter("TcpExtTCPDeliveredCE") > 0, "the kernel counts what was echoed");
        // New data of the engine is capable, and nothing else.
        let capable = |seen: &&Seen| seen.packet.segment.ecn != Ecn::NotEct;
        assert!(notes.sent().filter(capable).count() > 1000);
        assert!(notes.sent().filter(capable).all(|seen| seen.len > 0));
    });
}

/// Where the kernel does not agree, no packet has a bit of it, and the same queues drop.
#[test]
fn a_kernel_that_does_not_agree_gets_no_capable_packet() {
    let Some(_alone) = alone() else { return };
    each(BOTH.into_iter().flat_map(|side| [marking(plan(side, 2)), marking(plain(side))]), 4, |mut plan: Plan| {
        sysctl(&mut plan, "net.ipv4.tcp_ecn", 0);
        let outcome = transfer(&plan, &[(3 * MIB, 3 * MIB)], 1, PATIENCE);
        outcome.assert_clean(EXCUSED);
        let notes = &outcome.notes;
        assert!(notes.packets.iter().all(|seen| seen.packet.segment.ecn == Ecn::NotEct));
        let bits = Flags(Flags::ECE.0 | Flags::CWR.0);
        assert!(
            notes.packets.iter().filter(|seen| !is_syn(seen)).all(|seen| seen.packet.segment.flags.0 & bits.0 == 0)
        );
        assert!(!notes.has(|event| *event == Event::Marked));
    });
}
