//! Captures with holes, late captures, and arbitrary segments.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on a host with files")]

mod pcap;

use anabranch_observer::{Observer, Unfollowed};
use anabranch_trace::{Event, Origin, Recorder, SendKind};
use anabranch_units::{ConnId, Instant, RangeSet, SeqNumber, Side};
use anabranch_wire::{DataAck, Dss, Flags, Mapping, Options, Packet};
use bytes::Bytes;
use pcap::Captured;
use proptest::prelude::*;

/// Invariants for any packets.
#[derive(Debug, Default)]
struct Sane {
    arrived: RangeSet,
    sent: RangeSet,
    acked: u64,
    ofo: u64,
}

impl Recorder for Sane {
    fn record(&mut self, _: Instant, _: Origin, event: &Event) {
        match *event {
            Event::DataArrived { data, new, ofo } => {
                self.ofo = ofo;
                assert!(!data.is_empty());
                let fresh = self.arrived.insert(data);
                assert!(new <= fresh, "{new} of {data:?} are new");
            }
            Event::DataSent { data, kind, .. } => {
                assert!(!data.is_empty());
                let new = self.sent.insert(data);
                assert!(new > 0 || kind != SendKind::First, "{data:?} is not new");
            }
            Event::DataAcked(upto) => {
                assert!(upto > self.acked && self.sent.last().is_some_and(|r| upto <= r.end));
                self.acked = upto;
            }
            _ => {}
        }
    }
}

fn observe<'a>(packets: impl IntoIterator<Item = &'a Captured>, side: Side) -> (Sane, Unfollowed) {
    let (mut observer, mut sane) = (Observer::new(side, ConnId(0)), Sane::default());
    for Captured { now, path, by_client, packet } in packets {
        observer.packet(*now, *by_client == (side == Side::Client), *path, packet, &mut sane);
    }
    (sane, observer.unfollowed())
}

fn join4() -> Vec<Captured> {
    pcap::captured(&["join4.p1", "join4.p2"])
}

#[test]
fn a_capture_that_begins_late_is_counted_and_no_more() {
    let packets = join4();
    for side in [Side::Client, Side::Server] {
        let (sane, unfollowed) = observe(&packets[1..], side);
        assert!(sane.arrived.is_empty() && sane.sent.is_empty());
        assert_eq!(unfollowed, Unfollowed { stray_packets: packets.len() as u64 - 1, ..Unfollowed::default() });
    }
}

#[test]
fn a_join_to_another_connection_is_none_of_ours() {
    let mut packets = join4();
    let join = packets.iter_mut().filter(|c| c.packet.segment.flags == Flags::SYN).nth(1).expect("it joins");
    let mut options = Options::new();
    for option in join.packet.segment.options.mptcp() {
        let anabranch_wire::MptcpOption::Join(anabranch_wire::MpJoin::Syn { backup, address_id, token, nonce }) =
            *option
        else {
            panic!("{option:?}")
        };
        let join = anabranch_wire::MpJoin::Syn { backup, address_id, token: token ^ 1, nonce };
        options.push_mptcp(anabranch_wire::MptcpOption::Join(join));
    }
    join.packet.segment.options = options;
    let second = packets.iter().filter(|c| c.path.0 == 1).count() as u64;
    for side in [Side::Client, Side::Server] {
        let (_, unfollowed) = observe(&packets, side);
        assert_eq!(unfollowed.stray_packets, second);
    }
}

#[test]
fn a_hole_in_the_capture_is_filled_by_what_the_host_acknowledges() {
    let packets = join4();
    let payload = |c: &Captured| c.packet.segment.payload.len() as u64;
    let (mut exact, mut all) = (0, 0);
    for lost in (0..packets.len()).filter(|n| payload(&packets[*n]) > 0) {
        let missing = payload(&packets[lost]);
        let side = if packets[lost].by_client { Side::Server } else { Side::Client };
        let left = packets.iter().enumerate().filter(|(n, _)| *n != lost).map(|(_, c)| c);
        let (sane, unfollowed) = observe(left, side);
        assert_eq!((sane.ofo, unfollowed.stray_packets, unfollowed.unmapped_bytes), (0, 0, 0), "packet {lost}");
        assert!((missing..=16_384).contains(&unfollowed.missed_bytes), "packet {lost}: {unfollowed:?}");
        assert_eq!(sane.arrived.bytes(), 60_000, "packet {lost}");
        all += 1;
        exact += u32::from(unfollowed.missed_bytes == missing);
    }
    assert!(exact * 10 >= all * 8, "{exact} of {all}");
}

/// A change to one packet.
#[derive(Clone, Debug)]
enum Change {
    Drop,
    Twice,
    Later(usize),
    Turn,
    Seq(u32),
    Ack(u32),
    Flags(u8),
    Window(u16),
    Payload(usize),
    Dss {
        number: u64,
        wide: bool,
        subflow_seq: u32,
        len: u16,
        fin: bool,
        checksum: bool,
    },
    DataAck(u64),
    /// The options of another packet.
    Options(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let near = prop_oneof![(0u32..3000), any::<u32>(), (0u32..3000).prop_map(|n| 0u32.wrapping_sub(n))];
    let number = prop_oneof![(0u64..3000), any::<u64>(), (0u64..3000).prop_map(|n| 0u64.wrapping_sub(n))];
    prop_oneof![
        Just(Change::Drop),
        Just(Change::Twice),
        (1usize..40).prop_map(Change::Later),
        Just(Change::Turn),
        near.clone().prop_map(Change::Seq),
        near.clone().prop_map(Change::Ack),
        any::<u8>().prop_map(Change::Flags),
        any::<u16>().prop_map(Change::Window),
        (0usize..4000).prop_map(Change::Payload),
        (number.clone(), any::<bool>(), near, any::<u16>(), any::<bool>(), any::<bool>()).prop_map(
            |(number, wide, subflow_seq, len, fin, checksum)| Change::Dss {
                number,
                wide,
                subflow_seq,
                len,
                fin,
                checksum
            }
        ),
        number.prop_map(Change::DataAck),
        any::<usize>().prop_map(Change::Options),
    ]
}

/// Sets the DSS of a packet with the mapping or acknowledgment shifted; a segment without one gets one.
fn set_dss(packet: &mut Packet, change: impl FnOnce(&mut Dss)) {
    let mut dss = packet.segment.options.dss().copied().unwrap_or_default();
    change(&mut dss);
    let mut options = Options::new();
    options.set_dss(dss);
    packet.segment.options = options;
}

fn apply(packets: &mut Vec<Captured>, at: usize, change: &Change) {
    if packets.is_empty() {
        return;
    }
    let (len, at) = (packets.len(), at % packets.len());
    let copy = |c: &Captured| Captured { packet: c.packet.clone(), ..*c };
    let other = packets[match change {
        Change::Options(n) => n % len,
        _ => at,
    }]
    .packet
    .segment
    .options
    .clone();
    let c = &mut packets[at];
    let s = &mut c.packet.segment;
    match *change {
        Change::Drop => drop(packets.remove(at)),
        Change::Twice => {
            let again = copy(c);
            packets.insert(at, again);
        }
        Change::Later(by) => {
            let moved = packets.remove(at);
            packets.insert((at + by).min(packets.len()), moved);
        }
        Change::Turn => c.by_client = !c.by_client,
        Change::Seq(by) => s.seq = SeqNumber(s.seq.0.wrapping_add(by)),
        Change::Ack(by) => s.ack = SeqNumber(s.ack.0.wrapping_add(by)),
        Change::Flags(flags) => s.flags = Flags(flags),
        Change::Window(window) => s.window = window,
        Change::Payload(len) => s.payload = Bytes::from(vec![0; len]),
        Change::Dss { number, wide, subflow_seq, len, fin, checksum } => set_dss(&mut c.packet, |dss| {
            let known = dss.mapping.map_or((0, 0), |m| (m.data_seq, m.subflow_seq));
            dss.mapping = Some(Mapping {
                data_seq: known.0.wrapping_add(number),
                wide,
                subflow_seq: known.1.wrapping_add(subflow_seq),
                len,
                checksum: checksum.then_some(7),
            });
            dss.data_fin = fin;
        }),
        Change::DataAck(by) => set_dss(&mut c.packet, |dss| {
            dss.ack = Some(match dss.ack {
                Some(DataAck::Long(ack)) => DataAck::Long(ack.wrapping_add(by)),
                Some(DataAck::Short(ack)) => DataAck::Short(ack.wrapping_add(by as u32)),
                None => DataAck::Long(by),
            });
        }),
        Change::Options(_) => s.options = other,
    }
}

proptest! {
    #[test]
    fn nothing_that_packets_say_does_harm(changes in prop::collection::vec((any::<usize>(), change()), 1..60), second in any::<bool>()) {
        let names: [&str; 2] = if second { ["join4_csum.p1", "join4_csum.p2"] } else { ["join4.p1", "join4.p2"] };
        let mut packets = pcap::captured(&names);
        for (at, change) in &changes {
            apply(&mut packets, *at, change);
        }
        observe(&packets, Side::Client);
        observe(&packets, Side::Server);
    }
}
