//! Packets between two Linux kernels: each is read and written back unchanged, and its tokens, HMACs and checksums
//! equal the computed ones.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on a host with files")]

mod connection;
mod pcap;

use anabranch_wire::Packet;
use connection::{Connection, Proofs};

/// The captures, with the number of packets in each.
const CAPTURES: [(&str, usize); 14] = [
    ("addaddr_port4.p1", 106),
    ("addaddr_port4.p2", 55),
    ("backup4.p2", 12),
    ("fastclose4.p1", 60),
    ("fastclose4.p2", 2),
    ("join4.p1", 97),
    ("join4.p2", 49),
    ("join4_csum.p1", 126),
    ("join4_csum.p2", 57),
    ("join6.p1", 110),
    ("join6.p2", 47),
    ("plain4.p1", 120),
    ("rmaddr_prio4.p1", 79),
    ("rmaddr_prio4.p2", 10),
];

#[test]
fn every_packet_is_emitted_as_it_came() {
    for (name, count) in CAPTURES {
        let packets = pcap::packets(name);
        assert_eq!(packets.len(), count, "packets in {name}");
        for (i, bytes) in packets.into_iter().enumerate() {
            let packet = Packet::parse(bytes.clone()).unwrap_or_else(|e| panic!("{name}, packet {i}: {e}"));
            let emitted = packet.emit();
            assert_eq!(Packet::parse(emitted.clone().into()).as_ref(), Ok(&packet), "{name}, packet {i}: {packet}");
            // The IP header differs: Linux numbers its packets and labels its flows.
            let header = emitted.len() - packet.segment.header_len() - packet.segment.payload.len();
            assert_eq!(emitted[header..], bytes[header..], "{name}, packet {i}: {packet}");
        }
    }
}

/// The checks in the captures of one connection, first path first. The expected numbers are tshark's counts of the same
/// fields.
#[track_caller]
fn proofs(captures: &[&str]) -> Proofs {
    let mut connection = Connection::default();
    for name in captures {
        for bytes in pcap::packets(name) {
            connection.observe(&Packet::parse(bytes).expect("it parses"));
        }
    }
    assert_eq!(connection.unfinished_mappings(), 0);
    connection.proofs
}

#[test]
fn a_join_is_authenticated() {
    let join = Proofs { tokens: 1, join_hmacs: 2, add_addr_hmacs: 1, ..Proofs::default() };
    for (first, second, data_numbers) in
        [("join4.p1", "join4.p2", 233), ("join6.p1", "join6.p2", 243), ("addaddr_port4.p1", "addaddr_port4.p2", 259)]
    {
        assert_eq!(proofs(&[first, second]), Proofs { data_numbers, ..join }, "{first}");
    }
}

#[test]
fn checksums_match() {
    let expected =
        Proofs { tokens: 1, join_hmacs: 2, add_addr_hmacs: 1, data_numbers: 270, checksums: 25, fast_closes: 0 };
    assert_eq!(proofs(&["join4_csum.p1", "join4_csum.p2"]), expected);
}

#[test]
fn a_fast_close_has_the_receivers_key() {
    let expected = Proofs { tokens: 1, add_addr_hmacs: 1, data_numbers: 84, fast_closes: 1, ..Proofs::default() };
    assert_eq!(proofs(&["fastclose4.p1", "fastclose4.p2"]), expected);
}

#[test]
fn single_subflows_and_removed_addresses() {
    assert_eq!(proofs(&["plain4.p1"]), Proofs { data_numbers: 192, ..Proofs::default() });
    let expected = Proofs { tokens: 1, join_hmacs: 2, data_numbers: 122, ..Proofs::default() };
    assert_eq!(proofs(&["rmaddr_prio4.p1", "rmaddr_prio4.p2"]), expected);
}
