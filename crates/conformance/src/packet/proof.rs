//! Tokens, initial data numbers and HMACs (RFC 8684 §3.1, §3.2, §3.4.1), independent of the engine's.

use core::net::IpAddr;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

fn hash(key: u64) -> [u8; 32] {
    Sha256::digest(key.to_be_bytes()).into()
}

fn first_64(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn hmac(ours: u64, theirs: u64, message: &[u8]) -> [u8; 32] {
    let key = [ours.to_be_bytes(), theirs.to_be_bytes()].concat();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The token of the host with this key.
pub fn token(key: u64) -> u32 {
    (first_64(&hash(key)) >> 32) as u32
}

/// The initial data sequence number of the host with this key.
pub fn idsn(key: u64) -> u64 {
    first_64(&hash(key)[24..])
}

/// The HMAC with which the host of key `ours` and random number `mine` authenticates a join.
pub fn join(ours: u64, theirs: u64, mine: u32, other: u32) -> [u8; 32] {
    hmac(ours, theirs, &[mine.to_be_bytes(), other.to_be_bytes()].concat())
}

/// The form of a SYN/ACK: 8 bytes.
pub fn join_short(proof: &[u8; 32]) -> u64 {
    first_64(proof)
}

/// The form of an ACK: 20 bytes.
pub fn join_long(proof: &[u8; 32]) -> [u8; 20] {
    core::array::from_fn(|i| proof[i])
}

/// The HMAC with which the host of key `ours` authenticates an announced address.
pub fn announced(ours: u64, theirs: u64, id: u8, address: IpAddr, port: Option<u16>) -> u64 {
    let mut message = vec![id];
    match address {
        IpAddr::V4(address) => message.extend(address.octets()),
        IpAddr::V6(address) => message.extend(address.octets()),
    }
    message.extend(port.unwrap_or(0).to_be_bytes());
    first_64(&hmac(ours, theirs, &message)[24..])
}
