//! Keys, HMACs and checksums of `tests/data/wire/vectors.json`.

use anabranch_units::DataSeq;
use anabranch_wire::crypto::{add_addr_hmac, idsn, join_hmac, leftmost_64, leftmost_160, token};
use anabranch_wire::dss_checksum;
use serde::Deserialize;
use std::net::IpAddr;

#[derive(Deserialize)]
struct Vectors {
    kunit_hmac_ascii: Vec<AsciiHmac>,
    key_table: Vec<KeyRow>,
    linux_6_18_captured: Vec<Handshake>,
    dss_checksum: Vec<Checksum>,
}

#[derive(Deserialize)]
struct AsciiHmac {
    key_ascii: String,
    msg_ascii: String,
    hmac: String,
}

#[derive(Deserialize)]
struct KeyRow {
    key: String,
    token: String,
    idsn: String,
}

#[derive(Deserialize)]
struct Handshake {
    key_a: String,
    key_b: String,
    token_a: String,
    token_b: String,
    idsn_a: String,
    idsn_b: String,
    nonce_a: String,
    nonce_b: String,
    synack_hmac64: String,
    ack_hmac160: String,
    add_addr: Option<Announcement>,
}

#[derive(Deserialize)]
struct Announcement {
    sender: String,
    id: u8,
    addr: IpAddr,
    port: u16,
    hmac64: String,
}

#[derive(Deserialize)]
struct Checksum {
    dsn64: String,
    ssn: u32,
    dll: u16,
    payload_hex: String,
    checksum: String,
}

fn vectors() -> Vectors {
    let vectors: Vectors = serde_json::from_str(include_str!("../../../tests/data/wire/vectors.json")).unwrap();
    let Vectors { kunit_hmac_ascii, key_table, linux_6_18_captured, dss_checksum } = &vectors;
    let lengths = [kunit_hmac_ascii.len(), key_table.len(), linux_6_18_captured.len(), dss_checksum.len()];
    assert_eq!(lengths, [3, 7, 5, 2]);
    vectors
}

fn u64_of(hex: &str) -> u64 {
    u64::from_str_radix(hex, 16).unwrap()
}

fn u32_of(hex: &str) -> u32 {
    u32::from_str_radix(hex, 16).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn tokens_and_initial_numbers() {
    for row in vectors().key_table {
        let key = u64_of(&row.key);
        assert_eq!(token(key), u32_of(&row.token), "token of {key:x}");
        assert_eq!(idsn(key), DataSeq(u64_of(&row.idsn)), "idsn of {key:x}");
    }
}

/// Keys of 16 bytes and messages of 8, as in MP_JOIN, here as text.
#[test]
fn join_hmacs_of_text() {
    let number = |text: &[u8]| u64::from_be_bytes(text.try_into().unwrap());
    for v in vectors().kunit_hmac_ascii {
        let (key, message) = (v.key_ascii.as_bytes(), number(v.msg_ascii.as_bytes()));
        let hmac = join_hmac(number(&key[..8]), number(&key[8..]), (message >> 32) as u32, message as u32);
        assert_eq!(hex(&hmac), v.hmac);
    }
}

#[test]
fn handshakes_of_linux() {
    for v in vectors().linux_6_18_captured {
        let (a, b) = (u64_of(&v.key_a), u64_of(&v.key_b));
        assert_eq!((token(a), token(b)), (u32_of(&v.token_a), u32_of(&v.token_b)));
        assert_eq!((idsn(a).0, idsn(b).0), (u64_of(&v.idsn_a), u64_of(&v.idsn_b)));
        let (nonce_a, nonce_b) = (u32_of(&v.nonce_a), u32_of(&v.nonce_b));
        assert_eq!(leftmost_64(&join_hmac(b, a, nonce_b, nonce_a)), u64_of(&v.synack_hmac64));
        assert_eq!(hex(&leftmost_160(&join_hmac(a, b, nonce_a, nonce_b))), v.ack_hmac160);
        if let Some(Announcement { sender, id, addr, port, hmac64 }) = v.add_addr {
            assert_eq!(sender, "B");
            let port = (port != 0).then_some(port);
            assert_eq!(add_addr_hmac(b, a, id, addr, port), u64_of(&hmac64));
        }
    }
}

#[test]
fn checksums() {
    for v in vectors().dss_checksum {
        let payload: Vec<u8> = (0..v.payload_hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&v.payload_hex[at..at + 2], 16).unwrap())
            .collect();
        assert_eq!(u32::from(dss_checksum(u64_of(&v.dsn64), v.ssn, v.dll, &payload)), u32_of(&v.checksum));
    }
}
