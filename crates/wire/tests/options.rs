//! Options as in the RFCs' drawings, byte by byte, and malformed ones.

use anabranch_units::SeqNumber;
use anabranch_wire::{
    AddAddr, DataAck, Dss, Ecn, Flags, Mapping, MpCapable, MpJoin, MptcpOption, Options, Packet, ParseError, Reason,
    SackBlock, Segment, Timestamps,
};
use bytes::Bytes;
use std::net::{IpAddr, Ipv6Addr};

const SRC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
const DST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// The options of a segment with these option bytes.
fn parsed(text: &str) -> Options {
    let options = hex(text);
    assert!(options.len().is_multiple_of(4), "data offset counts words");
    let mut bytes = Vec::new();
    Segment::default().emit_into(SRC, DST, &mut bytes);
    bytes[12] = (5 + options.len() as u8 / 4) << 4;
    bytes.extend(options);
    bytes[16..18].fill(0);
    // The addresses, the protocol and the length are summed too (RFC 9293 §3.1).
    let pseudo_header = 0x0a00 + 1 + 0x0a00 + 2 + 6 + bytes.len() as u32;
    let words = bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>() + pseudo_header;
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[16..18].copy_from_slice(&folded.to_be_bytes());
    Segment::parse(bytes.into(), SRC, DST).expect("the checksum is right").options
}

fn emitted(options: &Options) -> Vec<u8> {
    let segment = Segment { options: options.clone(), ..Segment::default() };
    let mut bytes = Vec::new();
    segment.emit_into(SRC, DST, &mut bytes);
    bytes.split_off(20)
}

/// `option` and the bytes in `text` are equivalent, in both directions.
#[track_caller]
fn same(option: MptcpOption, text: &str) {
    let mut options = Options::new();
    assert!(options.push_mptcp(option), "it fits");
    assert_eq!(emitted(&options), hex(text));
    assert_eq!(parsed(text), options);
}

#[track_caller]
fn same_dss(dss: Dss, text: &str) {
    let mut options = Options::new();
    assert!(options.set_dss(dss), "it fits");
    assert_eq!(emitted(&options), hex(text));
    assert_eq!(parsed(text), options);
}

#[test]
fn mp_capable() {
    let syn = MpCapable {
        version: 1,
        checksum: false,
        no_join_here: false,
        hmac_sha256: true,
        sender_key: None,
        receiver_key: None,
        data: None,
    };
    same(MptcpOption::Capable(syn), "1e 04 01 01");
    let syn_ack = MpCapable { checksum: true, no_join_here: true, sender_key: Some(0x0102_0304_0506_0708), ..syn };
    same(MptcpOption::Capable(syn_ack), "1e 0c 01 a1 0102030405060708");
    let ack = MpCapable { receiver_key: Some(0x1112_1314_1516_1718), ..syn_ack };
    same(MptcpOption::Capable(ack), "1e 14 01 a1 0102030405060708 1112131415161718");
    let data = MpCapable { data: Some((100, None)), ..ack };
    same(MptcpOption::Capable(data), "1e 16 01 a1 0102030405060708 1112131415161718 0064 0101");
    let summed = MpCapable { data: Some((100, Some(0xabcd))), ..ack };
    same(MptcpOption::Capable(summed), "1e 18 01 a1 0102030405060708 1112131415161718 0064 abcd");
    // Version 0 had the key on the SYN; the engine decides whether to answer.
    let old = MpCapable { version: 0, sender_key: Some(5), ..syn };
    same(MptcpOption::Capable(old), "1e 0c 00 01 0000000000000005");
}

#[test]
fn one_algorithm_is_chosen_among_those_proposed() {
    // RFC 8684 §3.1: bits D to H. A SYN may propose any; "the responder responds with only one bit set".
    let chosen = |text: &str| match parsed(text).mptcp() {
        [MptcpOption::Capable(c)] => c.hmac_sha256,
        other => panic!("{other:?}"),
    };
    for (flags, proposed, alone) in [("01", true, true), ("03", true, false), ("1f", true, false), ("10", false, false)]
    {
        assert_eq!(chosen(&format!("1e04 01 {flags}")), proposed, "SYN, {flags}");
        assert_eq!(chosen(&format!("1e0c 01 {flags} 0102030405060708")), alone, "SYN/ACK, {flags}");
        let both = "0102030405060708 1112131415161718";
        assert_eq!(chosen(&format!("1e14 01 {flags} {both}")), alone, "third ACK, {flags}");
    }
}

#[test]
fn mp_join() {
    let syn = MpJoin::Syn { backup: true, address_id: 3, token: 0x0a0b_0c0d, nonce: 0x0102_0304 };
    same(MptcpOption::Join(syn), "1e 0c 11 03 0a0b0c0d 01020304");
    let syn_ack = MpJoin::SynAck { backup: false, address_id: 4, hmac: 0x1112_1314_1516_1718, nonce: 0x0506_0708 };
    same(MptcpOption::Join(syn_ack), "1e 10 10 04 1112131415161718 05060708");
    let ack = MpJoin::Ack { hmac: core::array::from_fn(|i| i as u8) };
    same(MptcpOption::Join(ack), "1e 18 10 00 00010203 04050607 08090a0b 0c0d0e0f 10111213");
}

#[test]
fn dss() {
    let mapping = Mapping { data_seq: 0x0102_0304_0506_0708, wide: true, subflow_seq: 9, len: 1000, checksum: None };
    let narrow = Mapping { data_seq: 0x0506_0708, wide: false, checksum: Some(0xabcd), ..mapping };
    let long = Some(DataAck::Long(0x1112_1314_1516_1718));
    let short = Some(DataAck::Short(0x1516_1718));
    same_dss(Dss { ack: short, ..Dss::default() }, "1e 08 20 01 15161718");
    same_dss(Dss { ack: long, ..Dss::default() }, "1e 0c 20 03 1112131415161718");
    same_dss(
        Dss { ack: long, mapping: Some(mapping), data_fin: false },
        "1e 1a 20 0f 1112131415161718 0102030405060708 00000009 03e8 0101",
    );
    same_dss(
        Dss { ack: short, mapping: Some(narrow), data_fin: true },
        "1e 14 20 15 15161718 05060708 00000009 03e8 abcd",
    );
    same_dss(
        Dss { ack: None, mapping: Some(Mapping { checksum: Some(1), ..mapping }), data_fin: true },
        "1e 14 20 1c 0102030405060708 00000009 03e8 0001",
    );
    // The infinite mapping has length zero (RFC 8684 §3.7).
    same_dss(
        Dss { ack: short, mapping: Some(Mapping { len: 0, ..mapping }), data_fin: false },
        "1e 16 20 0d 15161718 0102030405060708 00000009 0000 0101",
    );
}

#[test]
fn addresses() {
    let v4 = AddAddr { address_id: 7, address: DST, port: None, hmac: Some(0x0102_0304_0506_0708) };
    same(MptcpOption::AddAddr(v4), "1e 10 30 07 0a000002 0102030405060708");
    let with_port = AddAddr { port: Some(443), ..v4 };
    same(MptcpOption::AddAddr(with_port), "1e 12 30 07 0a000002 01bb 0102030405060708 0101");
    same(MptcpOption::AddAddr(AddAddr { hmac: None, ..v4 }), "1e 08 31 07 0a000002");
    same(MptcpOption::AddAddr(AddAddr { hmac: None, ..with_port }), "1e 0a 31 07 0a000002 01bb 0101");
    let v6 = AddAddr { address: Ipv6Addr::new(0xfd99, 2, 0, 0, 0, 0, 0, 2).into(), ..v4 };
    let octets = "fd99 0002 0000 0000 0000 0000 0000 0002";
    same(MptcpOption::AddAddr(v6), &format!("1e 1c 30 07 {octets} 0102030405060708"));
    let with_port = AddAddr { port: Some(443), ..v6 };
    same(MptcpOption::AddAddr(with_port), &format!("1e 1e 30 07 {octets} 01bb 0102030405060708 0101"));
    same(MptcpOption::AddAddr(AddAddr { hmac: None, ..v6 }), &format!("1e 14 31 07 {octets}"));
    same(MptcpOption::AddAddr(AddAddr { hmac: None, ..with_port }), &format!("1e 16 31 07 {octets} 01bb 0101"));
    same(MptcpOption::RemoveAddr([Some(1), None, None, None]), "1e 04 40 01");
    same(MptcpOption::RemoveAddr([Some(1), Some(2), Some(9), Some(255)]), "1e 07 40 01 02 09 ff 01");
}

#[test]
fn priority_and_ends() {
    same(MptcpOption::Prio { backup: true }, "1e 03 51 01");
    same(MptcpOption::Prio { backup: false }, "1e 03 50 01");
    same(MptcpOption::Fail { data_seq: 0x0102_0304_0506_0708 }, "1e 0c 60 00 0102030405060708");
    same(MptcpOption::FastClose { receiver_key: 0x0102_0304_0506_0708 }, "1e 0c 70 00 0102030405060708");
    same(MptcpOption::TcpRst(Reason { code: 6, transient: true }), "1e 04 81 06");
}

#[test]
fn tcp_options() {
    let mut syn = Options::new();
    assert!(syn.set_mss(1460) && syn.set_window_scale(7) && syn.set_sack_permitted());
    assert_eq!(emitted(&syn), hex("02 04 05b4  01 01 04 02  01 03 03 07"));
    assert!(syn.set_timestamps(Timestamps { val: 5, ecr: 6 }));
    assert_eq!(emitted(&syn), hex("02 04 05b4  04 02 08 0a 00000005 00000006  01 03 03 07"));
    assert_eq!(parsed("02 04 05b4  04 02 08 0a 00000005 00000006  01 03 03 07"), syn);
    let mut ack = Options::new();
    assert!(ack.set_timestamps(Timestamps { val: 5, ecr: 6 }));
    let blocks = [(10, 20), (30, 40)].map(|(a, b)| SackBlock { start: SeqNumber(a), end: SeqNumber(b) });
    assert_eq!(ack.set_sack(&blocks), 2);
    let text = "01 01 08 0a 00000005 00000006  01 01 05 12 0000000a 00000014 0000001e 00000028";
    assert_eq!(emitted(&ack), hex(text));
    assert_eq!(parsed(text), ack);
}

#[test]
fn other_orders_and_paddings_are_understood() {
    let mut syn = Options::new();
    assert!(syn.set_mss(1460) && syn.set_window_scale(7) && syn.set_sack_permitted());
    // The layouts of macOS and Windows, and a list that ends early; bytes behind the end are ignored.
    assert_eq!(parsed("02 04 05b4  01 03 03 07  01 01  04 02"), syn);
    assert_eq!(parsed("03 03 07  02 04 05b4  04 02  00 02 04"), syn);
    // An unknown kind (here fast open) is skipped by its length.
    assert_eq!(parsed("22 04 aabb  03 03 07 02 04 05b4 04 02 01 01 01"), syn);
    // The first of a kind counts.
    assert_eq!(parsed("02 04 05b4  02 04 0001  03 03 07  04 02  03 03 01"), syn);
}

#[test]
fn tightly_packed_options_lose_sack_blocks_first() {
    // 10 + 10 + 16 bytes (and 4 of end), which take 12 + 12 + 20 in this layout.
    let options =
        parsed("08 0a 00000005 00000006  05 0a 0000000a 00000014  1e 12 20 05 00000001 00000002 00000003 0004 01 00");
    assert!(options.timestamps().is_some());
    assert!(options.dss().is_some_and(|dss| dss.mapping.is_some_and(|m| m.len == 4)));
    assert_eq!(options.sack(), []);
}

#[test]
fn more_than_four_removals() {
    let options = parsed("1e 09 40 01 02 03 04 05 06 01 01 01");
    let ids = [[Some(1), Some(2), Some(3), Some(4)], [Some(5), Some(6), None, None]];
    assert_eq!(options.mptcp(), ids.map(MptcpOption::RemoveAddr));
}

#[test]
fn malformed_options_are_ignored() {
    let mut mss = Options::new();
    assert!(mss.set_mss(1460));
    for (what, text) in [
        ("length zero ends the list", "02 04 05b4  03 00 07 01"),
        ("length one ends the list", "02 04 05b4  03 01 07 01"),
        ("past the end", "02 04 05b4  08 0a 0000"),
        ("no length", "02 04 05b4  01 01 01 08"),
        ("wrong length of a known kind", "03 04 0101 02 04 05b4"),
        ("SACK of half a block", "05 06 00000001 02 04 05b4 01 01"),
        ("SACK of a block and a half", "05 0e 00000001 00000002 00000003 02 04 05b4 01 01"),
        ("SACK of nothing", "05 02 02 04 05b4 01 01"),
        ("MPTCP without subtype", "1e 02 02 04 05b4 01 01"),
        ("MPTCP subtype 15", "1e 04 f0 00 02 04 05b4"),
        ("MP_CAPABLE with B set", "1e 04 01 41 02 04 05b4"),
        ("MP_CAPABLE of half a key", "1e 08 01 01 00000001 02 04 05b4"),
        ("MP_JOIN of no form", "1e 08 10 01 00000001 02 04 05b4"),
        ("DSS without its acknowledgment", "1e 04 20 01 02 04 05b4"),
        ("DSS with an acknowledgment that is not flagged", "1e 08 20 00 00000001 02 04 05b4"),
        ("DSS with half a checksum", "1e 0f 20 04 00000001 00000002 0003 04 01 02 04 05b4"),
        ("ADD_ADDR without HMAC", "1e 08 30 01 0a000001 02 04 05b4"),
        ("an echo with HMAC", "1e 10 31 01 0a000001 0000000000000001 02 04 05b4"),
        ("REMOVE_ADDR of nothing", "1e 03 40 01 02 04 05b4"),
        ("MP_PRIO of version 0", "1e 04 51 01 02 04 05b4"),
        ("MP_FAIL of 32 bits", "1e 08 60 00 00000001 02 04 05b4"),
        ("MP_TCPRST without reason", "1e 03 80 01 02 04 05b4"),
    ] {
        assert_eq!(parsed(text), mss, "{what}");
    }
}

#[test]
fn what_is_cleared_is_as_new() {
    let mut options = parsed("02 04 05b4  04 02 08 0a 00000005 00000006  01 03 03 07  1e 04 01 01");
    assert_eq!(options.set_sack(&[SackBlock { start: SeqNumber(1), end: SeqNumber(2) }]), 1);
    options.clear();
    assert_eq!(options, Options::new());
    assert!(options.set_dss(Dss { ack: Some(DataAck::Short(1)), ..Dss::default() }));
    options.clear();
    assert_eq!(options, Options::new());
}

#[test]
fn what_has_no_form_is_refused() {
    let keyless = MpCapable {
        version: 1,
        checksum: false,
        no_join_here: false,
        hmac_sha256: true,
        sender_key: None,
        receiver_key: None,
        data: None,
    };
    let mut options = Options::new();
    for option in [
        MptcpOption::Capable(MpCapable { receiver_key: Some(1), ..keyless }),
        MptcpOption::Capable(MpCapable { sender_key: Some(1), data: Some((1, None)), ..keyless }),
        MptcpOption::Capable(MpCapable { version: 16, ..keyless }),
        MptcpOption::RemoveAddr([None; 4]),
        MptcpOption::RemoveAddr([Some(1), None, Some(2), None]),
    ] {
        assert!(!options.push_mptcp(option), "{option:?}");
    }
    let mapping = Mapping { data_seq: 0x1_0000_0005, wide: false, subflow_seq: 1, len: 1, checksum: None };
    assert!(options.set_dss(Dss { mapping: Some(mapping), ..Dss::default() }));
    assert_eq!(options.dss().unwrap().mapping.unwrap().data_seq, 5);
}

fn packet() -> Packet {
    let mut options = Options::new();
    options.set_timestamps(Timestamps { val: 5, ecr: 6 });
    let mapping = Mapping { data_seq: 9, wide: true, subflow_seq: 1, len: 3, checksum: Some(0xab) };
    options.set_dss(Dss { ack: Some(DataAck::Short(7)), mapping: Some(mapping), data_fin: false });
    let segment = Segment {
        src_port: 443,
        dst_port: 5000,
        seq: SeqNumber(u32::MAX),
        ack: SeqNumber(8),
        flags: Flags::ACK | Flags::PSH,
        ecn: Ecn::NotEct,
        window: 502,
        options,
        payload: Bytes::from_static(b"abc"),
    };
    Packet { src: SRC, dst: DST, segment }
}

#[test]
fn a_packet_reads_as_in_tcpdump() {
    assert_eq!(
        packet().to_string(),
        "10.0.0.1.443 > 10.0.0.2.5000: Flags [P.], seq 4294967295:2, ack 8, win 502, \
         options [TS val 5 ecr 6,DSS ack 7(32) seq 9 subseq 1 len 3 csum 0x00ab], length 3"
    );
    let mut options = Options::new();
    options.push_mptcp(MptcpOption::Join(MpJoin::Syn { backup: true, address_id: 2, token: 0xabc, nonce: 1 }));
    options.push_mptcp(MptcpOption::RemoveAddr([Some(1), Some(3), None, None]));
    let syn = Segment { flags: Flags::SYN, options, ..Segment::default() };
    assert_eq!(
        syn.to_string(),
        "0 > 0: Flags [S], seq 0, win 0, \
         options [MP_JOIN backup id 2 token 0x00000abc nonce 0x00000001,REMOVE_ADDR id 1 3], length 0"
    );
}

#[test]
fn errors_say_what_is_wrong() {
    let bytes = packet().emit();
    let parse = |bytes: &[u8]| Packet::parse(Bytes::copy_from_slice(bytes));
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        // The IPv4 checksum again, so that only the change itself is wrong.
        bytes[10..12].fill(0);
        let sum: u32 = bytes[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
        bytes[10..12].copy_from_slice(&folded.to_be_bytes());
        parse(&bytes)
    };
    assert_eq!(with(8, 63), Ok(packet()));
    assert_eq!(parse(&[]), Err(ParseError::IpHeader));
    assert_eq!(parse(&bytes[..bytes.len() - 1]), Err(ParseError::IpHeader));
    assert_eq!(with(0, 0x55), Err(ParseError::IpHeader));
    assert_eq!(with(6, 0x20), Err(ParseError::Fragment));
    assert_eq!(with(9, 17), Err(ParseError::NotTcp(17)));
    assert_eq!(with(32, 0x40), Err(ParseError::TcpHeader));
    assert_eq!(with(32, 0xf0), Err(ParseError::TcpHeader));
    assert_eq!(with(40, 0), Err(ParseError::TcpChecksum));
    let mut changed = bytes.clone();
    changed[8] = 63;
    assert_eq!(parse(&changed), Err(ParseError::IpChecksum));
    // Ethernet pads short frames: bytes behind the packet are not part of it.
    assert_eq!(parse(&[&bytes[..], &[0; 6]].concat()), Ok(packet()));
}

#[test]
fn ip_headers_are_as_their_rfcs_draw_them() {
    let segment = Segment::default();
    // RFC 791 §3.1: never to be fragmented, without identification, 64 hops.
    let v4 = Packet { src: SRC, dst: DST, segment: segment.clone() }.emit();
    assert_eq!(v4[..20], hex("45 00 0028 0000 4000 40 06 26ce 0a000001 0a000002"));
    // RFC 8200 §3.
    let (src, dst) = (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 2).into());
    let v6 = Packet { src, dst, segment }.emit();
    let addresses = "0000000000000000 0000000000000001 fd99000000000000 0000000000000002";
    assert_eq!(v6[..40], hex(&format!("60000000 0014 06 40 {addresses}")));
}

#[test]
fn extension_headers_are_skipped() {
    let segment = packet().segment;
    let (src, dst) = (Ipv6Addr::LOCALHOST, Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 1));
    let packet = Packet { src: src.into(), dst: dst.into(), segment };
    let plain = packet.emit();
    // A hop-by-hop header of eight bytes that pads, before TCP (protocol 6).
    let mut extended = [&plain[..40], &[6, 0, 1, 4, 0, 0, 0, 0], &plain[40..]].concat();
    extended[5] += 8;
    extended[6] = 0;
    assert_eq!(Packet::parse(extended.into()), Ok(packet));
}

#[test]
fn the_least_packet_is_its_headers() {
    let v4 = Packet::default();
    assert_eq!((v4.len(), v4.is_empty()), (40, false));
    assert_eq!(Packet { dst: Ipv6Addr::LOCALHOST.into(), ..v4 }.len(), 60);
}

#[test]
fn syn_and_fin_occupy_a_number_each() {
    // RFC 9293 §3.4: SEG.LEN.
    let payload = Bytes::from_static(b"abc");
    for (flags, numbers) in [
        (Flags::ACK | Flags::PSH | Flags::RST, 3),
        (Flags::SYN, 4),
        (Flags::FIN | Flags::ACK, 4),
        (Flags::SYN | Flags::FIN, 5),
    ] {
        let segment = Segment { flags, payload: payload.clone(), ..Segment::default() };
        assert_eq!(segment.seq_len(), numbers, "{flags}");
    }
}

#[test]
fn a_control_bit_that_is_set_twice_is_set() {
    let pushed = Flags::ACK | Flags::PSH;
    assert_eq!(pushed | Flags::ACK, pushed);
    assert!(pushed.has(Flags::ACK) && pushed.has(pushed) && !Flags::ACK.has(pushed));
}

#[test]
fn the_payload_is_shared() {
    let bytes = Bytes::from(packet().emit());
    let payload = Packet::parse(bytes.clone()).unwrap().segment.payload;
    assert_eq!(payload.as_ptr(), bytes[bytes.len() - 3..].as_ptr());
}

#[test]
fn what_ip_cannot_hold_is_no_panic() {
    let mut packet = packet();
    packet.segment.payload = Bytes::from(vec![7; 70_000]);
    let bytes = packet.emit();
    assert_eq!(bytes.len(), packet.len());
    assert_eq!(Packet::parse(bytes.into()), Err(ParseError::IpHeader));
    packet.dst = Ipv6Addr::LOCALHOST.into();
    packet.segment.payload = Bytes::new();
    let bytes = packet.emit();
    assert_eq!(bytes.len(), packet.len());
    assert_eq!(Packet::parse(bytes.into()).unwrap().src, "::ffff:10.0.0.1".parse::<IpAddr>().unwrap());
}
