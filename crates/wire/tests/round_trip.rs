//! Emitted values parse to the same value; parsed bytes are emitted as the same bytes; no input panics.

use anabranch_units::SeqNumber;
use anabranch_wire::{
    AddAddr, DataAck, Dss, Ecn, Flags, MAX_OPTIONS, Mapping, MpCapable, MpJoin, MptcpOption, Options, Packet,
    ParseError, Reason, SackBlock, Segment, Timestamps,
};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One call of a setter.
#[derive(Clone, Debug)]
enum Setter {
    Mss(u16),
    WindowScale(u8),
    SackPermitted,
    Timestamps(Timestamps),
    Sack(Vec<SackBlock>),
    Dss(Dss),
    Mptcp(MptcpOption),
}

fn dss() -> impl Strategy<Value = Dss> {
    let ack = prop_oneof![any::<u32>().prop_map(DataAck::Short), any::<u64>().prop_map(DataAck::Long)];
    let mapping =
        any::<(u64, bool, u32, u16, Option<u16>)>().prop_map(|(data_seq, wide, subflow_seq, len, checksum)| Mapping {
            data_seq,
            wide,
            subflow_seq,
            len,
            checksum,
        });
    (option::of(ack), option::of(mapping), any::<bool>()).prop_map(|(ack, mapping, data_fin)| Dss {
        ack,
        mapping,
        data_fin,
    })
}

fn capable() -> impl Strategy<Value = MpCapable> {
    any::<([bool; 3], u8, Option<u64>, Option<u64>, Option<(u16, Option<u16>)>)>().prop_map(
        |([checksum, no_join_here, hmac_sha256], version, sender_key, receiver_key, data)| MpCapable {
            version,
            checksum,
            no_join_here,
            hmac_sha256,
            sender_key,
            receiver_key,
            data,
        },
    )
}

fn join() -> impl Strategy<Value = MpJoin> {
    prop_oneof![
        any::<(bool, u8, u32, u32)>().prop_map(|(backup, address_id, token, nonce)| MpJoin::Syn {
            backup,
            address_id,
            token,
            nonce
        }),
        any::<(bool, u8, u64, u32)>().prop_map(|(backup, address_id, hmac, nonce)| MpJoin::SynAck {
            backup,
            address_id,
            hmac,
            nonce
        }),
        any::<[u8; 20]>().prop_map(|hmac| MpJoin::Ack { hmac }),
    ]
}

fn mptcp() -> impl Strategy<Value = MptcpOption> {
    prop_oneof![
        capable().prop_map(MptcpOption::Capable),
        join().prop_map(MptcpOption::Join),
        any::<(u8, IpAddr, Option<u16>, Option<u64>)>().prop_map(|(address_id, address, port, hmac)| {
            MptcpOption::AddAddr(AddAddr { address_id, address, port, hmac })
        }),
        any::<[Option<u8>; 4]>().prop_map(MptcpOption::RemoveAddr),
        any::<bool>().prop_map(|backup| MptcpOption::Prio { backup }),
        any::<u64>().prop_map(|data_seq| MptcpOption::Fail { data_seq }),
        any::<u64>().prop_map(|receiver_key| MptcpOption::FastClose { receiver_key }),
        any::<(u8, bool)>().prop_map(|(code, transient)| MptcpOption::TcpRst(Reason { code, transient })),
    ]
}

fn setter() -> impl Strategy<Value = Setter> {
    let block = any::<(u32, u32)>().prop_map(|(a, b)| SackBlock { start: SeqNumber(a), end: SeqNumber(b) });
    prop_oneof![
        any::<u16>().prop_map(Setter::Mss),
        any::<u8>().prop_map(Setter::WindowScale),
        Just(Setter::SackPermitted),
        any::<(u32, u32)>().prop_map(|(val, ecr)| Setter::Timestamps(Timestamps { val, ecr })),
        vec(block, 0..6).prop_map(Setter::Sack),
        dss().prop_map(Setter::Dss),
        mptcp().prop_map(Setter::Mptcp),
        mptcp().prop_map(Setter::Mptcp),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    vec(setter(), 0..8).prop_map(|setters| {
        let mut options = Options::new();
        for setter in setters {
            match setter {
                Setter::Mss(mss) => drop(options.set_mss(mss)),
                Setter::WindowScale(shift) => drop(options.set_window_scale(shift)),
                Setter::SackPermitted => drop(options.set_sack_permitted()),
                Setter::Timestamps(timestamps) => drop(options.set_timestamps(timestamps)),
                Setter::Sack(blocks) => drop(options.set_sack(&blocks)),
                Setter::Dss(dss) => drop(options.set_dss(dss)),
                Setter::Mptcp(option) => drop(options.push_mptcp(option)),
            }
        }
        options
    })
}

fn segment() -> impl Strategy<Value = Segment> {
    (any::<(u16, u16, u32, u32, u8, u16)>(), options(), vec(any::<u8>(), 0..40)).prop_map(
        |((src_port, dst_port, seq, ack, flags, window), options, payload)| {
            let flags = Flags(flags);
            let ack = SeqNumber(if flags.has(Flags::ACK) { ack } else { 0 });
            let (seq, payload) = (SeqNumber(seq), Bytes::from(payload));
            Segment { src_port, dst_port, seq, ack, flags, ecn: Ecn::NotEct, window, options, payload }
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let addresses = prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(src, dst)| (src.into(), dst.into())),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(src, dst)| (src.into(), dst.into())),
    ];
    (addresses, segment(), any::<u8>()).prop_map(|((src, dst), segment, bits)| Packet {
        src,
        dst,
        segment: Segment { ecn: Ecn::from_bits(bits), ..segment },
    })
}

/// Option lists of a foreign stack: fragments that are nearly valid.
fn foreign_options() -> impl Strategy<Value = Vec<u8>> {
    let any_option =
        (0u8..35, vec(any::<u8>(), 0..12)).prop_map(|(kind, body)| [vec![kind, body.len() as u8 + 2], body].concat());
    let mptcp = (0u8..10, any::<u8>(), vec(any::<u8>(), 0..30))
        .prop_map(|(subtype, low, body)| [vec![30, body.len() as u8 + 3, subtype << 4 | low & 15], body].concat());
    let noise = vec(any::<u8>(), 0..3);
    vec(prop_oneof![2 => any_option, 6 => mptcp, 1 => noise, 1 => Just(vec![1])], 0..6).prop_map(|pieces| {
        let mut bytes = pieces.concat();
        bytes.truncate(MAX_OPTIONS);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    })
}

/// A segment with these bytes as its options, and a correct checksum.
fn raw_segment(options: &[u8]) -> Bytes {
    let address = IpAddr::from([0; 4]);
    let mut bytes = Vec::new();
    Segment { flags: Flags::ACK, ..Segment::default() }.emit_into(address, address, &mut bytes);
    bytes[12] = (5 + options.len() as u8 / 4) << 4;
    bytes.extend(options);
    bytes[16..18].fill(0);
    let checksum = !sum(&bytes, bytes.len() as u32 + 6);
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    bytes.into()
}

/// The folded sum of `start` and all 16-bit words, the last padded.
fn sum(bytes: &[u8], start: u32) -> u16 {
    let word = |word: &[u8]| u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0));
    let sum = bytes.chunks(2).map(word).sum::<u32>() + start;
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_emitted_parses_to_the_same(packet in packet()) {
        let bytes = packet.emit();
        prop_assert_eq!(bytes.len(), packet.len());
        prop_assert_eq!(Packet::parse(bytes.into()), Ok(packet));
    }

    #[test]
    fn a_flipped_bit_is_noticed(packet in packet(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = packet.emit();
        let at = at.index(bytes.len());
        // No checksum covers these bytes of an IPv6 header: class, flow label, length (zero means all) and hop limit.
        prop_assume!(packet.src.is_ipv4() || !matches!(at, 0..=5 | 7));
        bytes[at] ^= 1 << bit;
        prop_assert!(Packet::parse(bytes.into()).is_err());
    }

    #[test]
    fn a_checksum_left_to_a_device_is_completed_by_it(packet in packet()) {
        let mut bytes = Vec::new();
        let left = packet.emit_headers_into(packet.segment.payload.len(), &mut bytes);
        bytes.extend_from_slice(&packet.segment.payload);
        prop_assert_eq!(Packet::parse_unverified(bytes.clone().into()), Ok(packet.clone()));
        let (start, field) = left.checksum.expect("it is left to the device");
        let (start, field) = (usize::from(start), usize::from(start + field));
        let checksum = !sum(&bytes[start..], 0);
        bytes[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        prop_assert_eq!(bytes, packet.emit());
    }

    #[test]
    fn any_checksum_will_do_where_it_is_left_out(packet in packet(), noise in 1u16..0xffff) {
        let mut bytes = packet.emit();
        let at = bytes.len() - packet.segment.payload.len() - packet.segment.header_len() + 16;
        let wrong = u16::from_be_bytes([bytes[at], bytes[at + 1]]) ^ noise;
        prop_assume!(wrong != 0 && wrong != 0xffff);
        bytes[at..at + 2].copy_from_slice(&wrong.to_be_bytes());
        prop_assert_eq!(Packet::parse(bytes.clone().into()), Err(ParseError::TcpChecksum));
        prop_assert_eq!(Packet::parse_unverified(bytes.into()), Ok(packet));
    }

    #[test]
    fn foreign_options_settle(bytes in foreign_options()) {
        let address = IpAddr::from([0; 4]);
        let segment = Segment::parse(raw_segment(&bytes), address, address).expect("its checksum is right");
        prop_assert!(segment.options.encoded_len() <= MAX_OPTIONS);
        let mut again = Vec::new();
        segment.emit_into(address, address, &mut again);
        prop_assert_eq!(Segment::parse(again.into(), address, address), Ok(segment));
    }

    #[test]
    fn bytes_do_not_panic(start in prop_oneof![Just(vec![]), Just(vec![0x45, 0, 0]), Just(vec![0x60])],
                          rest in vec(any::<u8>(), 0..120)) {
        let bytes: Bytes = [start, rest].concat().into();
        let _ = (Packet::parse(bytes.clone()), Packet::parse_unverified(bytes));
    }
}
