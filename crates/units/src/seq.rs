//! Sequence numbers as on the wire, and their conversion to and from stream offsets.
//!
//! Inside the engine, positions are 64-bit *offsets* from the initial sequence number: they never wrap, so they order.

use core::fmt;

/// A TCP sequence number (RFC 9293 §3.4): 32 bits, wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNumber(pub u32);

/// An MPTCP data sequence number (RFC 8684 §3.3.1): 64 bits, wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DataSeq(pub u64);

impl SeqNumber {
    /// The number `offset` bytes after this one.
    pub const fn at(self, offset: u64) -> Self {
        Self(self.0.wrapping_add(offset as u32))
    }

    /// The offset of `self` from the initial number `isn`, the one nearest to the offset `near`.
    /// `None` if that lies before `isn`.
    pub const fn offset_from(self, isn: Self, near: u64) -> Option<u64> {
        let there = self.0.wrapping_sub(isn.0);
        let ahead = there.wrapping_sub(near as u32) as i32;
        near.checked_add_signed(ahead as i64)
    }
}

impl DataSeq {
    /// The number `offset` bytes after this one.
    pub const fn at(self, offset: u64) -> Self {
        Self(self.0.wrapping_add(offset))
    }

    /// The offset of `self` from `idsn`, the one nearest to `near`; `None` if that lies before `idsn`.
    pub const fn offset_from(self, idsn: Self, near: u64) -> Option<u64> {
        let ahead = self.0.wrapping_sub(idsn.0).wrapping_sub(near) as i64;
        near.checked_add_signed(ahead)
    }

    /// The offset of a number of which only the low 32 bits were sent (RFC 8684 §3.3.1), nearest to `near`.
    pub const fn low_offset_from(low: u32, idsn: Self, near: u64) -> Option<u64> {
        let ahead = low.wrapping_sub(idsn.0 as u32).wrapping_sub(near as u32) as i32;
        near.checked_add_signed(ahead as i64)
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for DataSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_wrapping() {
        let isn = SeqNumber(u32::MAX - 10);
        assert_eq!(isn.at(20), SeqNumber(9));
        assert_eq!(SeqNumber(9).offset_from(isn, 0), Some(20));
        let far = 5 * (1u64 << 32) + 77;
        assert_eq!(isn.at(far).offset_from(isn, far - 1_000_000), Some(far));
        assert_eq!(isn.at(far).offset_from(isn, far + 1_000_000), Some(far));
        assert_eq!(SeqNumber(isn.0 - 1).offset_from(isn, 0), None);
    }

    #[test]
    fn short_data_numbers_are_extended() {
        let idsn = DataSeq(u64::MAX - 5);
        assert_eq!(idsn.at(100).offset_from(idsn, 3), Some(100));
        let far = 7 * (1u64 << 32) + 3;
        assert_eq!(DataSeq::low_offset_from(idsn.at(far).0 as u32, idsn, far + 9), Some(far));
        assert_eq!(DataSeq(idsn.0 - 1).offset_from(idsn, 0), None);
    }
}
