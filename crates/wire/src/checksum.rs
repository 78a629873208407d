//! The Internet checksum (RFC 1071), and the DSS checksum, which uses it.

use core::net::IpAddr;
use etherparse::checksum::Sum16BitWords;

/// The checksum of a mapping (RFC 8684 §3.3.1), fed with the payload piece by piece, in order.
#[derive(Clone, Debug, Default)]
pub struct ChecksumAccumulator {
    sum: Sum16BitWords,
    odd: bool,
}

impl ChecksumAccumulator {
    /// A checksum over no bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the payload; any number of them.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if self.odd
            && let Some((low, rest)) = bytes.split_first()
        {
            self.sum = self.sum.clone().add_2bytes([0, *low]);
            self.odd = false;
            bytes = rest;
        }
        self.sum = self.sum.clone().add_slice(bytes);
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// The checksum of the added bytes and the pseudo-header. `data_seq` has all 64 bits, however many are sent; `len`
    /// is the mapping's length, which counts a DATA_FIN.
    pub fn finish(&self, data_seq: u64, subflow_seq: u32, len: u16) -> u16 {
        let header = self.sum.clone().add_8bytes(data_seq.to_be_bytes()).add_4bytes(subflow_seq.to_be_bytes());
        header.add_2bytes(len.to_be_bytes()).ones_complement().to_be()
    }
}

/// The checksum of a mapping whose payload is one piece; see [`ChecksumAccumulator`].
pub fn dss_checksum(data_seq: u64, subflow_seq: u32, len: u16, payload: &[u8]) -> u16 {
    let mut sum = ChecksumAccumulator::new();
    sum.add(payload);
    sum.finish(data_seq, subflow_seq, len)
}

/// The checksum over `bytes`; zero over bytes that contain their own checksum.
pub(crate) fn internet(bytes: &[u8]) -> u16 {
    Sum16BitWords::new().add_slice(bytes).ones_complement().to_be()
}

/// The TCP checksum of `segment` with its pseudo-header (RFC 9293 §3.1); zero if its field is correct.
pub(crate) fn tcp(src: IpAddr, dst: IpAddr, segment: &[u8]) -> u16 {
    pseudo_header_sum(src, dst, segment.len()).add_slice(segment).ones_complement().to_be()
}

/// The sum of the pseudo-header of a segment of `len` bytes: the value of the checksum field in a segment whose
/// checksum is still to be filled in.
pub(crate) fn pseudo_header(src: IpAddr, dst: IpAddr, len: usize) -> u16 {
    !pseudo_header_sum(src, dst, len).ones_complement().to_be()
}

fn pseudo_header_sum(src: IpAddr, dst: IpAddr, len: usize) -> Sum16BitWords {
    let mut sum = Sum16BitWords::new();
    for address in [src, dst] {
        sum = match address {
            IpAddr::V4(a) => sum.add_4bytes(a.octets()),
            IpAddr::V6(a) => sum.add_16bytes(a.octets()),
        };
    }
    // The fields are wider for IPv6 (RFC 8200 §8.1) but sum up to the same.
    sum.add_4bytes((len as u32).to_be_bytes()).add_2bytes([0, etherparse::IpNumber::TCP.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_sum_up_to_the_whole() {
        let payload: Vec<u8> = (0..=255).map(|n: u8| n.wrapping_mul(151) ^ 0x5a).collect();
        let whole = dss_checksum(0x92a1_6737_9f5c_d3b1, 1, 256, &payload);
        for cut in 0..=payload.len() {
            for next in [cut, (cut + 1).min(256), (cut + 7).min(256), 256] {
                let mut sum = ChecksumAccumulator::new();
                sum.add(&payload[..cut]);
                sum.add(&payload[cut..next]);
                sum.add(&payload[next..]);
                assert_eq!(sum.finish(0x92a1_6737_9f5c_d3b1, 1, 256), whole, "cut at {cut} and {next}");
            }
        }
    }

    #[test]
    fn rfc_1071_example() {
        // RFC 1071 §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        assert_eq!(internet(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
