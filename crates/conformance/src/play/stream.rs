//! The bytes of the two streams, and their places on a subflow.

use std::collections::BTreeMap;

/// A stream: a pattern over the offset, except where other bytes were put. The two directions differ.
#[derive(Clone, Debug)]
pub struct Stream {
    seed: u64,
    texts: BTreeMap<u64, u8>,
}

impl Stream {
    /// A stream whose pattern follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, texts: BTreeMap::new() }
    }

    /// Bytes from `offset` on. The pattern has no period below 64 KiB, so that shifted or swapped pieces differ.
    pub fn bytes(&self, offset: u64, len: usize) -> Vec<u8> {
        (offset..offset + len as u64)
            .map(|at| self.texts.get(&at).copied().unwrap_or_else(|| self.pattern(at)))
            .collect()
    }

    fn pattern(&self, at: u64) -> u8 {
        ((at + self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
    }

    /// Puts other bytes at `offset`.
    pub fn put(&mut self, offset: u64, text: &[u8]) {
        self.texts.extend((offset..).zip(text.iter().copied()));
    }
}

/// A piece of a subflow's sequence that is mapped.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Subflow number of its first byte.
    ssn: i64,
    /// Offset in the stream.
    offset: i64,
    /// `None` = without end (RFC 8684 §3.7).
    len: Option<i64>,
}

/// The mappings of one direction of a subflow.
#[derive(Clone, Debug, Default)]
pub struct Mappings(Vec<Piece>);

impl Mappings {
    /// Maps `len` bytes from the subflow's number `ssn` on to `offset` of the stream; zero = all from there on.
    pub fn add(&mut self, ssn: u32, offset: i64, len: u16) {
        self.0.push(Piece { ssn: ssn.into(), offset, len: (len > 0).then_some(len.into()) });
    }

    /// The offset in the stream of the subflow's number `seq`. Without a mapping it is as in plain TCP.
    pub fn offset(&self, seq: i64) -> i64 {
        let holds = |piece: &&Piece| seq >= piece.ssn && piece.len.is_none_or(|len| seq < piece.ssn + len);
        self.0.iter().rev().find(holds).map_or(seq - 1, |piece| piece.offset + seq - piece.ssn)
    }
}

/// The checksum of a mapping (RFC 8684 §3.3.1).
pub fn dss_checksum(dsn: u64, ssn: u32, len: u16, payload: &[u8]) -> u16 {
    let mut header = dsn.to_be_bytes().to_vec();
    header.extend(ssn.to_be_bytes());
    header.extend(len.to_be_bytes());
    !crate::packet::sum(payload, crate::packet::sum(&header, 0))
}
