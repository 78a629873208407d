//! The peer's stream as both ends agreed to number it (RFC 8684 §3.3). The session knows it; other parts get it as an argument.

use crate::mode::Offset;
use crate::subflow::mapping::subflow_offset;
use anabranch_units::DataSeq;
use anabranch_wire::{Mapping, dss_checksum};
use bytes::Bytes;

/// How the peer's data is numbered and mapped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerStream {
    /// The peer's initial data sequence number.
    pub idsn: DataSeq,
    /// Checksums were agreed on.
    pub checksum: bool,
}

/// The meaning of a mapping's length, checksum and DATA_FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// RFC 8684 §3.3: it has a checksum though that was not agreed on, or none though it was.
    NotAgreed,
    /// The checksum of a DATA_FIN without payload is wrong.
    Wrong,
    /// The stream ends with it.
    DataFin,
    /// The mapping maps payload, whose checksum is verified when it has come, a DATA_FIN included.
    Payload,
}

impl PeerStream {
    /// The wire's number of the data at `offset`. The first byte has IDSN + 1.
    pub fn number(&self, offset: u64) -> DataSeq {
        self.idsn.at(offset + 1)
    }

    /// The offset at which a mapping starts, near the `next` one.
    pub fn offset(&self, mapping: &Mapping, next: u64) -> Option<u64> {
        let first = self.number(0);
        if mapping.wide {
            DataSeq(mapping.data_seq).offset_from(first, next)
        } else {
            DataSeq::low_offset_from(mapping.data_seq as u32, first, next)
        }
    }

    /// A mapping puts data where the subflow's sequence does, given that `place` is in that line; `next_sub` is expected next in
    /// that sequence, and `next` in the data sequence.
    pub fn is_in_line(&self, mapping: &Mapping, next_sub: u64, next: u64, place: Offset) -> bool {
        let sub = subflow_offset(mapping.subflow_seq, next_sub);
        sub.zip(self.offset(mapping, next)).is_some_and(|(sub, data)| data + place.sub == place.data + sub)
    }

    /// Checks a mapping of the data at `start`, with or without a DATA_FIN.
    pub fn check(&self, mapping: &Mapping, start: u64, data_fin: bool) -> Checked {
        if mapping.checksum.is_some() != self.checksum {
            return Checked::NotAgreed;
        }
        let len = u64::from(mapping.len) - u64::from(data_fin);
        // RFC 8684 §3.3: the checksum covers the DATA_FIN. Beside payload it is taken with that.
        if !data_fin || len > 0 && self.checksum {
            return Checked::Payload;
        }
        let is_right = |sum| self.is_right(sum, start, mapping.subflow_seq, mapping.len, &Bytes::new());
        if mapping.checksum.is_none_or(is_right) { Checked::DataFin } else { Checked::Wrong }
    }

    /// `checksum` is the one of the mapped bytes, the first of which is the data at `start`.
    pub fn is_right(&self, checksum: u16, start: u64, subflow_seq: u32, len: u16, bytes: &Bytes) -> bool {
        dss_checksum(self.number(start).0, subflow_seq, len, bytes) == checksum
    }
}
