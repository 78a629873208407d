//! Values as lines, in the terms of tcpdump and RFC 8684.

use anabranch_units::SeqNumber;
use anabranch_wire::{
    AddAddr, DataAck, Dss, Ecn, Flags, Mapping, MpCapable, MpJoin, MptcpOption, Options, Packet, ParseError, Reason,
    SackBlock, Segment, Timestamps,
};
use bytes::Bytes;
use std::net::{Ipv4Addr, Ipv6Addr};

#[test]
fn a_segment_says_the_numbers_that_it_occupies() {
    let segment = Segment { src_port: 443, dst_port: 5000, seq: SeqNumber(7), ack: SeqNumber(9), ..Segment::default() };
    let data = Bytes::from_static(b"abc");
    for (flags, payload, line) in [
        // Nothing is occupied and nothing acknowledged.
        (Flags::default(), Bytes::new(), "443 > 5000: Flags [none], win 0, length 0"),
        (Flags::ACK, Bytes::new(), "443 > 5000: Flags [.], ack 9, win 0, length 0"),
        (Flags::SYN | Flags::ACK, Bytes::new(), "443 > 5000: Flags [S.], seq 7, ack 9, win 0, length 0"),
        (Flags::FIN | Flags::ACK, Bytes::new(), "443 > 5000: Flags [F.], seq 7, ack 9, win 0, length 0"),
        // A reset occupies no number, but its own number matters (RFC 5961 §3).
        (Flags::RST, Bytes::new(), "443 > 5000: Flags [R], seq 7, win 0, length 0"),
        (Flags::ACK | Flags::PSH, data, "443 > 5000: Flags [P.], seq 7:10, ack 9, win 0, length 3"),
    ] {
        assert_eq!(Segment { flags, payload, ..segment.clone() }.to_string(), line);
    }
    let marked = Segment { flags: Flags::ACK | Flags::ECE, ecn: Ecn::Ce, ..segment.clone() };
    assert_eq!(marked.to_string(), "443 > 5000: Flags [.E], ack 9, win 0, CE, length 0");
    assert_eq!(Flags(0xff).to_string(), "FSRP.UEW");
}

#[test]
fn a_packet_names_both_ends() {
    let (src, dst) = (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::UNSPECIFIED.into());
    let segment = Segment { src_port: 1, dst_port: 2, flags: Flags::ACK, ..Segment::default() };
    assert_eq!(Packet { src, dst, segment }.to_string(), "::1.1 > ::.2: Flags [.], ack 0, win 0, length 0");
}

#[test]
fn tcp_options_stand_in_a_fixed_order() {
    let mut syn = Options::new();
    assert!(syn.set_window_scale(7) && syn.set_sack_permitted() && syn.set_mss(1460));
    assert!(syn.set_timestamps(Timestamps { val: 5, ecr: 6 }));
    assert_eq!(syn.to_string(), "mss 1460,sackOK,TS val 5 ecr 6,wscale 7");
    let mut ack = Options::new();
    let blocks = [(10, 20), (30, 40)].map(|(a, b)| SackBlock { start: SeqNumber(a), end: SeqNumber(b) });
    assert_eq!(ack.set_sack(&blocks), 2);
    assert_eq!(ack.to_string(), "sack 2 {10:20},{30:40}");
    assert_eq!(Options::new().to_string(), "");
}

#[test]
fn dss_shows_what_it_has() {
    let mapping = Mapping { data_seq: 5, wide: true, subflow_seq: 1, len: 100, checksum: None };
    for (dss, line) in [
        (Dss::default(), "DSS"),
        (Dss { ack: Some(DataAck::Long(7)), ..Dss::default() }, "DSS ack 7"),
        (Dss { mapping: Some(mapping), ..Dss::default() }, "DSS seq 5 subseq 1 len 100"),
        (
            Dss {
                ack: Some(DataAck::Short(7)),
                mapping: Some(Mapping { wide: false, checksum: Some(0x12), ..mapping }),
                data_fin: true,
            },
            "DSS fin ack 7(32) seq 5(32) subseq 1 len 100 csum 0x0012",
        ),
    ] {
        assert_eq!(dss.to_string(), line);
    }
}

#[test]
fn every_other_mptcp_option_has_its_name() {
    let capable = MpCapable::OFFER;
    let keys = MpCapable { sender_key: Some(1), receiver_key: Some(2), ..capable };
    let flags = MpCapable { checksum: true, no_join_here: true, ..keys };
    let (address, port, hmac) = (Ipv4Addr::new(10, 0, 0, 2).into(), Some(5000), Some(0xab));
    let announced = AddAddr { address_id: 1, address, port, hmac };
    for (option, line) in [
        (MptcpOption::Capable(capable), "MP_CAPABLE v1 H"),
        (MptcpOption::Capable(MpCapable { sender_key: Some(1), ..capable }), "MP_CAPABLE v1 H {0x0000000000000001}"),
        (
            MptcpOption::Capable(MpCapable { data: Some((100, None)), ..keys }),
            "MP_CAPABLE v1 H {0x0000000000000001,0x0000000000000002} len 100",
        ),
        (
            MptcpOption::Capable(MpCapable { data: Some((100, Some(0x1234))), ..flags }),
            "MP_CAPABLE v1 ACH {0x0000000000000001,0x0000000000000002} len 100 csum 0x1234",
        ),
        (
            MptcpOption::Join(MpJoin::Syn { backup: false, address_id: 3, token: 0x1234, nonce: 7 }),
            "MP_JOIN id 3 token 0x00001234 nonce 0x00000007",
        ),
        (
            MptcpOption::Join(MpJoin::SynAck { backup: true, address_id: 3, hmac: 0x1234, nonce: 7 }),
            "MP_JOIN backup id 3 hmac 0x0000000000001234 nonce 0x00000007",
        ),
        (
            MptcpOption::Join(MpJoin::Ack { hmac: core::array::from_fn(|i| i as u8) }),
            "MP_JOIN hmac 0x000102030405060708090a0b0c0d0e0f10111213",
        ),
        (MptcpOption::AddAddr(announced), "ADD_ADDR id 1 10.0.0.2:5000 hmac 0x00000000000000ab"),
        (MptcpOption::AddAddr(AddAddr { port: None, hmac: None, ..announced }), "ADD_ADDR echo id 1 10.0.0.2"),
        (MptcpOption::RemoveAddr([Some(1), Some(2), None, None]), "REMOVE_ADDR id 1 2"),
        (MptcpOption::Prio { backup: true }, "MP_PRIO backup"),
        (MptcpOption::Prio { backup: false }, "MP_PRIO"),
        (MptcpOption::Fail { data_seq: 9 }, "MP_FAIL seq 9"),
        (MptcpOption::FastClose { receiver_key: 9 }, "MP_FASTCLOSE key 0x0000000000000009"),
        (MptcpOption::TcpRst(Reason { code: 6, transient: true }), "MP_TCPRST reason 6 transient"),
        (MptcpOption::TcpRst(Reason { code: 1, transient: false }), "MP_TCPRST reason 1"),
    ] {
        assert_eq!(option.to_string(), line);
    }
}

#[test]
fn errors_name_the_header_at_fault() {
    for (error, text) in [
        (ParseError::IpHeader, "malformed IP header"),
        (ParseError::IpChecksum, "wrong IPv4 header checksum"),
        (ParseError::Fragment, "IP fragment"),
        (ParseError::NotTcp(17), "IP protocol 17, not TCP"),
        (ParseError::TcpHeader, "malformed TCP header"),
        (ParseError::TcpChecksum, "wrong TCP checksum"),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
