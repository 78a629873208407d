//! Any bytes: a packet that parses is emitted to bytes that parse to the same. The bytes are tried as a packet, and
//! again with corrected checksums, because no fuzzer guesses those.

#![no_main]

use anabranch_wire::Packet;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    check(Bytes::copy_from_slice(data));
    if let Some(mended) = mend(data.to_vec()) {
        check(mended.into());
    }
});

fn check(bytes: Bytes) {
    if let Ok(packet) = Packet::parse(bytes) {
        let emitted = packet.emit();
        assert_eq!(emitted.len(), packet.len());
        assert_eq!(Packet::parse(emitted.into()), Ok(packet));
    }
}

/// The same bytes as a packet without IP options or extensions, with the right length and checksums.
fn mend(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let len = u16::try_from(bytes.len()).ok()?;
    let (header, addresses) = match bytes.first()? >> 4 {
        4 => (20, 12..20),
        _ => (40, 8..40),
    };
    if bytes.len() < header + 20 {
        return None;
    }
    if header == 20 {
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes[6..8].fill(0);
        bytes[9] = 6;
        bytes[10..12].fill(0);
        let sum = checksum(&bytes[..20], 0);
        bytes[10..12].copy_from_slice(&sum);
    } else {
        bytes[0] = 0x60;
        bytes[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        bytes[6] = 6;
    }
    let segment_len = u32::from(len) - header as u32;
    let pseudo_header = words(&bytes[addresses]) + 6 + segment_len;
    bytes[header + 16..header + 18].fill(0);
    let sum = checksum(&bytes[header..], pseudo_header);
    bytes[header + 16..header + 18].copy_from_slice(&sum);
    Some(bytes)
}

/// The sum of 16-bit words, the last one padded with zero; at most 64 KiB of them.
fn words(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum()
}

fn checksum(bytes: &[u8], start: u32) -> [u8; 2] {
    let sum = words(bytes) + start;
    let folded = (sum & 0xffff) + (sum >> 16);
    (!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes()
}
