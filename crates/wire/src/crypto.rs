//! Keys, tokens and authentication codes (RFC 8684 §3.1, §3.2, §3.4.1), all from SHA-256.

use anabranch_units::DataSeq;
use core::net::IpAddr;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The token by which a peer's MP_JOIN names a connection: the hash's first 32 bits (§3.2).
pub fn token(key: u64) -> u32 {
    token_and_idsn(key).0
}

/// The initial data sequence number: the hash's last 64 bits (§3.1). The first data byte has the number after it.
pub fn idsn(key: u64) -> DataSeq {
    token_and_idsn(key).1
}

/// [`token`] and [`idsn`] of one key, from one hash.
pub fn token_and_idsn(key: u64) -> (u32, DataSeq) {
    let hash = sha256(key);
    let [a, b, c, d, ..] = hash;
    (u32::from_be_bytes([a, b, c, d]), DataSeq(rightmost_64(&hash)))
}

/// The HMAC with which the host `local` authenticates itself in MP_JOIN, by both keys (§3.2). The SYN/ACK carries its
/// [`leftmost_64`] bits, the third ACK its [`leftmost_160`].
pub fn join_hmac(local_key: u64, remote_key: u64, local_nonce: u32, remote_nonce: u32) -> [u8; 32] {
    hmac_sha256(&joined(local_key, remote_key), &[&local_nonce.to_be_bytes(), &remote_nonce.to_be_bytes()])
}

/// The HMAC of an ADD_ADDR (§3.4.1): the rightmost 64 bits. `sender_key` is the announcing host's.
pub fn add_addr_hmac(sender_key: u64, receiver_key: u64, address_id: u8, address: IpAddr, port: Option<u16>) -> u64 {
    let key = joined(sender_key, receiver_key);
    // §3.4.1: an absent port counts as zero.
    let port = port.unwrap_or(0).to_be_bytes();
    rightmost_64(&match address {
        IpAddr::V4(a) => hmac_sha256(&key, &[&[address_id], &a.octets(), &port]),
        IpAddr::V6(a) => hmac_sha256(&key, &[&[address_id], &a.octets(), &port]),
    })
}

/// The first 64 bits, which the SYN/ACK of MP_JOIN carries.
pub fn leftmost_64(hmac: &[u8; 32]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *hmac;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

/// The first 160 bits, which the third ACK of MP_JOIN carries.
pub fn leftmost_160(hmac: &[u8; 32]) -> [u8; 20] {
    core::array::from_fn(|i| hmac[i])
}

fn rightmost_64(hash: &[u8; 32]) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = *hash;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn joined(first: u64, second: u64) -> [u8; 16] {
    ((u128::from(first) << 64) | u128::from(second)).to_be_bytes()
}

fn sha256(key: u64) -> [u8; 32] {
    Sha256::digest(key.to_be_bytes()).into()
}

fn hmac_sha256(key: &[u8], message: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in message {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}
