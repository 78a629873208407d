//! The suite's codec against the engine's, which is written independently.

use super::*;
use anabranch_wire::{Flags, Packet};
use bytes::Bytes;

fn packet(options: Vec<Opt>) -> TcpPacket {
    TcpPacket {
        src: "10.0.0.2".parse().expect("an address"),
        dst: "10.0.0.1".parse().expect("an address"),
        src_port: 2000,
        dst_port: 80,
        seq: 0xffff_fff0,
        ack: 7,
        flags: 0x18,
        ecn: 2,
        window: 500,
        options,
        payload: b"odd bytes".to_vec(),
        bad_checksum: false,
    }
}

fn all() -> Vec<Vec<Opt>> {
    let wide = |number| Sized64 { wide: true, number };
    let map = Map { dsn: wide(5), ssn: 1, len: 9, csum: Some(0x1234) };
    let v4 = "10.0.1.1".parse().expect("an address");
    let v6 = "fd00::1".parse().expect("an address");
    vec![
        vec![Opt::Mss(1460), Opt::SackOk, Opt::Stamps(1, 2), Opt::WindowScale(7)],
        vec![Opt::Sack(vec![(1, 2), (3, 4)])],
        vec![Opt::Capable { version: 1, flags: 0x81, keys: vec![1, 2], len: Some(9), csum: Some(3) }],
        vec![Opt::JoinSyn { backup: true, id: 3, token: 4, nonce: 5 }],
        vec![Opt::JoinSynAck { backup: false, id: 3, hmac: 4, nonce: 5 }],
        vec![Opt::JoinAck([7; 20])],
        vec![Opt::Dss { fin: true, ack: Some(Sized64 { wide: false, number: 8 }), map: Some(map) }],
        vec![Opt::AddAddr { echo: false, id: 1, address: v4, port: Some(5), hmac: Some(6) }],
        vec![Opt::AddAddr { echo: true, id: 1, address: v6, port: None, hmac: None }],
        vec![Opt::RemoveAddr(vec![1, 2]), Opt::Prio(true), Opt::TcpRst { transient: true, reason: 6 }],
        vec![Opt::Fail(9), Opt::FastClose(10)],
        vec![Opt::Raw(vec![253, 4, 1, 2])],
    ]
}

#[test]
fn what_is_written_is_read_back() {
    for options in all() {
        let packet = packet(options);
        let bytes = packet.to_bytes().expect("it fits");
        assert_eq!(TcpPacket::from_bytes(&bytes), Some(packet));
    }
}

#[test]
fn the_engine_reads_and_writes_the_same_bytes() {
    for options in all().into_iter().filter(|options| !matches!(options[0], Opt::Raw(_))) {
        let bytes = packet(options).to_bytes().expect("it fits");
        let theirs = Packet::parse(Bytes::from(bytes.clone())).expect("a packet");
        assert!(theirs.segment.flags.has(Flags::ACK | Flags::PSH));
        assert_eq!(TcpPacket::from_bytes(&theirs.emit()), TcpPacket::from_bytes(&bytes), "{theirs}");
    }
}

#[test]
fn too_many_options_do_not_fit() {
    assert_eq!(packet(vec![Opt::Raw(vec![253; 44])]).to_bytes(), None);
}

#[test]
fn a_wrong_checksum_is_seen() {
    let bytes = TcpPacket { bad_checksum: true, ..packet(Vec::new()) }.to_bytes().expect("it fits");
    assert!(TcpPacket::from_bytes(&bytes).is_some_and(|packet| packet.bad_checksum));
    assert!(Packet::parse(Bytes::from(bytes)).is_err());
}

#[test]
fn proofs_are_those_of_the_engine() {
    use anabranch_wire::crypto;
    let (ours, theirs) = (0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);
    assert_eq!((proof::token(ours), proof::idsn(ours)), (crypto::token(ours), crypto::idsn(ours).0));
    let join = crypto::join_hmac(ours, theirs, 7, 9);
    assert_eq!(proof::join(ours, theirs, 7, 9), join);
    assert_eq!(
        (proof::join_short(&join), proof::join_long(&join)),
        (crypto::leftmost_64(&join), crypto::leftmost_160(&join))
    );
    for address in ["10.0.0.1", "fd00::1"].map(|text| text.parse().expect("an address")) {
        let theirs_say = crypto::add_addr_hmac(ours, theirs, 3, address, Some(5));
        assert_eq!(proof::announced(ours, theirs, 3, address, Some(5)), theirs_say);
    }
}
