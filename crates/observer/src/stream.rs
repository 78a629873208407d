//! The two byte streams of the connection, in data offsets: 0 = IDSN + 1, the first byte.

use anabranch_trace::SendKind;
use anabranch_units::{DataSeq, Range, RangeSet};
use anabranch_wire::{DataAck, Mapping, crypto};

/// Most separate ranges held for a stream.
const MAX_RANGES: usize = 65_536;

/// No stream reaches this offset; a number that claims to is of something else.
const FARTHEST: u64 = 1 << 62;

/// The owner of a stream, once its key is known (RFC 8684 §3.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub key: u64,
    pub token: u32,
    idsn: DataSeq,
}

impl Owner {
    pub fn new(key: u64) -> Self {
        let (token, idsn) = crypto::token_and_idsn(key);
        Self { key, token, idsn }
    }

    /// The offset of the first byte that `mapping` maps, the one nearest to `near`; `None` if before the first.
    pub fn mapped(&self, mapping: &Mapping, near: u64) -> Option<u64> {
        self.offset(
            if mapping.wide { DataAck::Long(mapping.data_seq) } else { DataAck::Short(mapping.data_seq as u32) },
            near,
        )
    }

    /// The offset that a DATA_ACK names.
    pub fn offset(&self, number: DataAck, near: u64) -> Option<u64> {
        let first = self.idsn.at(1);
        let offset = match number {
            DataAck::Long(number) => DataSeq(number).offset_from(first, near),
            DataAck::Short(low) => DataSeq::low_offset_from(low, first, near),
        };
        offset.filter(|offset| *offset < FARTHEST)
    }

    /// The first byte's number on the wire.
    pub fn first(&self) -> u64 {
        self.idsn.at(1).0
    }
}

/// The stream that the host sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub owner: Option<Owner>,
    /// Sent at least once, above `acked`.
    sent: RangeSet,
    /// End of what was sent.
    pub end: u64,
    /// The peer has every byte below.
    pub acked: u64,
    /// The offset of the DATA_FIN.
    pub fin: Option<u64>,
    /// The window that the peer last advertised, in bytes.
    pub window: u64,
}

impl Outgoing {
    /// Records that `data` left; returns whether for the first time. A packet with any new byte counts as first.
    pub fn on_sent(&mut self, data: Range) -> SendKind {
        let fresh = Range::new(data.start.max(self.acked), data.end);
        self.end = self.end.max(data.end);
        if self.sent.covers(fresh) {
            return SendKind::Rescue;
        }
        self.sent.insert(fresh);
        if self.sent.count() > MAX_RANGES
            && let Some(first) = self.sent.first()
        {
            // The lowest hole counts as sent: it is the one most likely to be missing from the capture.
            self.sent.remove(first);
            let next = self.sent.first().map_or(first.end, |r| r.start);
            self.sent.insert(Range::new(first.start, next));
        }
        SendKind::First
    }

    /// Everything below `upto` was acknowledged; true if that is new.
    pub fn on_acked(&mut self, upto: u64) -> bool {
        let news = upto > self.acked;
        if news {
            self.acked = upto;
            self.sent.remove_below(upto);
        }
        news
    }
}

/// The stream that the host receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incoming {
    pub owner: Option<Owner>,
    next: u64,
    /// Above `next`: the out-of-order queue.
    held: RangeSet,
    /// First offset that the host has not admitted.
    pub edge: u64,
    /// The largest window that the host advertised.
    pub window: u64,
    /// The offset of the DATA_FIN.
    pub fin: Option<u64>,
}

impl Incoming {
    /// First offset that has not come.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes out of order.
    pub fn ofo_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// The host advertises `size` bytes from the next on. It must accept what it has advertised (RFC 9293 §3.8.6).
    pub fn admit(&mut self, size: u64) {
        self.window = self.window.max(size);
        self.edge = self.edge.max(self.next + size);
    }

    /// The limit of separate ranges is reached.
    pub fn is_full(&self) -> bool {
        self.held.count() >= MAX_RANGES
    }

    /// Takes bytes; returns how many are new.
    pub fn accept(&mut self, data: Range) -> u64 {
        let fresh = Range::new(data.start.max(self.next), data.end);
        if fresh.start == self.next && self.held.is_empty() {
            self.next = self.next.max(fresh.end);
            return fresh.len();
        }
        let new = self.held.insert(fresh);
        if let Some(first) = self.held.first().filter(|r| r.start == self.next) {
            self.next = first.end;
            self.held.remove(first);
        }
        new
    }

    /// The DATA_FIN is at `offset`; `false` if that contradicts earlier data.
    pub fn note_fin(&mut self, offset: u64) -> bool {
        let possible = offset >= self.next && offset <= self.edge;
        if self.fin.is_none() && possible {
            self.fin = Some(offset);
        }
        self.fin == Some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn new_bytes_are_counted_once(order in prop::collection::vec((0u64..60, 1u64..12), 1..60)) {
            let mut incoming = Incoming::default();
            let mut outgoing = Outgoing::default();
            let mut seen = RangeSet::new();
            for (start, len) in order {
                let data = Range::new(start, start + len);
                let new = seen.insert(data);
                prop_assert_eq!(incoming.accept(data), new);
                prop_assert_eq!(outgoing.on_sent(data) == SendKind::First, new > 0);
                let whole = seen.first().filter(|r| r.start == 0).map_or(0, |r| r.end);
                prop_assert_eq!((incoming.next(), incoming.ofo_bytes()), (whole, seen.bytes() - whole));
                outgoing.on_acked(whole);
            }
        }
    }

    #[test]
    fn the_set_of_what_was_sent_is_bounded() {
        let mut outgoing = Outgoing::default();
        for n in 0..MAX_RANGES as u64 + 100 {
            outgoing.on_sent(Range::new(10 * n, 10 * n + 5));
        }
        assert!(outgoing.sent.count() <= MAX_RANGES);
    }
}
