//! The forms of DSS options; each end accepts the other's.

use crate::common::alone;
use crate::transfer::{BOTH, MIB, each, plan, sysctl, transfer};
use anabranch_engine::DssWidth;
use anabranch_units::{Duration, Side};
use anabranch_wire::{DataAck, Dss, Packet};

fn dss(packet: &Packet) -> Option<&Dss> {
    packet.segment.options.dss()
}

/// RFC 8684 §3.1: checksums are used if either end requests them.
#[test]
fn checksums_are_used_if_either_end_asks() {
    let Some(_alone) = alone() else { return };
    let asked = [(false, false), (true, false), (false, true), (true, true)];
    let cases = BOTH.into_iter().flat_map(|engine: Side| asked.map(|asked| (engine, asked)));
    each(cases, 4, |(engine, (by_engine, by_kernel))| {
        let mut plan = plan(engine, 2);
        plan.captured = true;
        plan.settings.checksum = by_engine;
        sysctl(&mut plan, "net.mptcp.checksum_enabled", u8::from(by_kernel));
        let outcome = transfer(&plan, &[(MIB, MIB)], 1, Duration::from_secs(60));
        outcome.assert_in_order();
        for sent in [true, false] {
            let packets = outcome.notes.packets.iter().filter(|p| p.sent == sent);
            let mappings: Vec<_> = packets.filter_map(|p| dss(&p.packet)?.mapping).collect();
            assert!(mappings.len() > 500, "{} mappings", mappings.len());
            let with = mappings.iter().filter(|mapping| mapping.checksum.is_some()).count();
            let expected = if by_engine || by_kernel { mappings.len() } else { 0 };
            assert_eq!(with, expected, "sent by the engine: {sent}, asked: {by_engine} {by_kernel}");
        }
    });
}

/// The kernel sends 8-byte data sequence numbers, and acknowledgments of the width of the numbers that it receives.
#[test]
fn the_kernel_answers_wide_numbers_with_wide_ones() {
    let Some(_alone) = alone() else { return };
    each(BOTH, 2, |engine| {
        let mut plan = plan(engine, 1);
        plan.captured = true;
        let outcome = transfer(&plan, &[(MIB, MIB)], 1, Duration::from_secs(60));
        outcome.assert_in_order();
        let kernels: Vec<_> = outcome.notes.got().filter_map(|p| dss(&p.packet)).collect();
        assert!(kernels.iter().filter_map(|dss| dss.mapping).all(|mapping| mapping.wide));
        // Before it has received a number it sends 4 bytes.
        let acks = kernels.iter().filter_map(|dss| dss.ack).skip_while(|ack| matches!(ack, DataAck::Short(_)));
        let acks: Vec<DataAck> = acks.collect();
        assert!(acks.len() > 100 && acks.iter().all(|ack| matches!(ack, DataAck::Long(_))), "{}", acks.len());
        // One mapping spans several segments, and each of these repeats it.
        let longest = kernels.iter().filter_map(|dss| dss.mapping).map(|mapping| mapping.len).max();
        assert!(longest > Some(1500), "{longest:?}");
    });
}

/// The engine sends numbers of 4 bytes: the kernel accepts them and acknowledges with 4 bytes; its own stay wide, and
/// so do the engine's acknowledgments of them.
#[test]
fn the_kernel_takes_narrow_numbers() {
    let Some(_alone) = alone() else { return };
    each(BOTH, 2, |engine| {
        let mut plan = plan(engine, 2);
        plan.captured = true;
        plan.settings.dss = DssWidth::Four;
        let outcome = transfer(&plan, &[(MIB, MIB)], 1, Duration::from_secs(60));
        outcome.assert_in_order();
        let of =
            |sent: bool| outcome.notes.packets.iter().filter(move |p| p.sent == sent).filter_map(|p| dss(&p.packet));
        let narrow = |ack: DataAck| matches!(ack, DataAck::Short(_));
        assert!(of(true).filter_map(|dss| dss.mapping).all(|mapping| !mapping.wide));
        assert!(of(false).filter_map(|dss| dss.ack).filter(|ack| narrow(*ack)).count() > 100);
        // MP_CAPABLE's mapping counts as wide, so the first few acknowledgments may be wide too.
        assert!(of(false).filter_map(|dss| dss.ack).last().is_some_and(narrow));
        assert!(of(false).filter_map(|dss| dss.mapping).all(|mapping| mapping.wide));
    });
}
