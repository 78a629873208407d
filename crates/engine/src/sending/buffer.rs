//! Data that the application wrote and the peer has not acknowledged at connection level.

use crate::accounting::truesize;
use crate::settings::Settings;
use anabranch_units::Range;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// The send buffer with which its growth begins: `tcp_wmem[1]`.
const SEND_START: u64 = 16_384;

/// Bytes that the application may have written and the peer not yet acknowledged, at most.
pub(super) fn greatest_capacity(settings: &Settings) -> u64 {
    let payload = truesize(settings).map_or(settings.send_buffer, |truesize| truesize.payload(settings.send_buffer));
    payload.max(u64::from(settings.mss).min(settings.send_buffer))
}

/// The same at the beginning.
pub(super) fn first_capacity(settings: &Settings) -> u64 {
    let most = greatest_capacity(settings);
    if settings.tcp.autotune { most.min(SEND_START.max(settings.mss.into())) } else { most }
}

/// Bytes by data offset, in the pieces in which they were written.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    pieces: VecDeque<(u64, Bytes)>,
    start: u64,
    end: u64,
    /// The piece that was used last: the next range is nearly always in it or the one after.
    recent: usize,
}

impl SendBuffer {
    /// Bytes held.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Offset after the last byte written.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Appends.
    pub fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            let at = self.end;
            self.end += bytes.len() as u64;
            self.pieces.push_back((at, bytes));
        }
    }

    /// Everything below `offset` is acknowledged. What a queue holds, from `queued` on, can be sent nevertheless.
    pub fn release(&mut self, offset: u64, queued: u64) {
        let offset = offset.min(self.end);
        self.start = self.start.max(offset);
        let offset = offset.min(queued);
        while self.pieces.front().is_some_and(|(at, piece)| at + piece.len() as u64 <= offset) {
            self.pieces.pop_front();
            self.recent = self.recent.saturating_sub(1);
        }
    }

    /// Nothing more is written: gives back the memory that pieces took which are gone.
    pub fn give_back(&mut self) {
        self.pieces.shrink_to_fit();
    }

    /// The bytes of `range`, which must be held; without a copy if one piece holds them all.
    #[inline(always)]
    pub fn slice(&mut self, range: Range) -> Bytes {
        debug_assert!(self.pieces.front().is_some_and(|(at, _)| *at <= range.start) && range.end <= self.end);
        if let Some((at, piece)) = self.pieces.get(self.recent)
            && *at <= range.start
            && range.end <= at + piece.len() as u64
        {
            return piece.slice((range.start - at) as usize..(range.end - at) as usize);
        }
        let first = self.piece_at(range.start);
        self.recent = first;
        if let Some((at, piece)) = self.pieces.get(first)
            && range.end <= at + piece.len() as u64
        {
            return piece.slice((range.start - at) as usize..(range.end - at) as usize);
        }
        let mut joined = BytesMut::with_capacity(range.len() as usize);
        for (at, piece) in self.pieces.range(first..) {
            let part = Range::new(*at, at + piece.len() as u64).intersect(range);
            if part.is_empty() {
                break;
            }
            joined.extend_from_slice(&piece[(part.start - at) as usize..(part.end - at) as usize]);
        }
        joined.freeze()
    }

    /// Index of the piece that holds the byte at `offset`.
    fn piece_at(&self, offset: u64) -> usize {
        let holds = |n: &usize| {
            self.pieces.get(*n).is_some_and(|(at, piece)| *at <= offset && offset < at + piece.len() as u64)
        };
        let near = [self.recent, self.recent + 1];
        let near = near.into_iter().find(holds);
        near.unwrap_or_else(|| self.pieces.partition_point(|(at, piece)| at + piece.len() as u64 <= offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cross_pieces() {
        let mut buffer = SendBuffer::default();
        buffer.push(Bytes::from_static(b"abcdef"));
        buffer.push(Bytes::from_static(b"ghi"));
        buffer.push(Bytes::from_static(b"jkl"));
        assert_eq!(&buffer.slice(Range::new(1, 4))[..], b"bcd");
        assert_eq!(&buffer.slice(Range::new(4, 11))[..], b"efghijk");
        buffer.release(7, u64::MAX);
        assert_eq!(buffer.len(), 5);
        assert_eq!(&buffer.slice(Range::new(7, 12))[..], b"hijkl");
        buffer.release(10, 8);
        assert_eq!((buffer.len(), &buffer.slice(Range::new(8, 11))[..]), (2, &b"ijk"[..]));
    }

    #[test]
    fn a_buffer_holds_its_bytes_or_what_their_memory_leaves() {
        use crate::settings::{BufferAccounting, TcpSettings};
        let settings = |tcp| Settings { mss: 1448, send_buffer: 1 << 20, tcp, ..Settings::default() };
        let truesize = TcpSettings { buffer_accounting: BufferAccounting::Truesize, ..TcpSettings::default() };
        assert_eq!(first_capacity(&settings(TcpSettings::default())), 1 << 20);
        // A megabyte holds 455 buffers of 2304 bytes.
        assert_eq!(first_capacity(&settings(truesize)), 455 * 1448);
        assert_eq!(first_capacity(&settings(TcpSettings { autotune: true, ..TcpSettings::default() })), 16_384);
    }
}
