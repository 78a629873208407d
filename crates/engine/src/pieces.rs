//! Payload that waits. A piece is a part of the memory that its packet came in, however large that is, and has a place in a
//! queue. So that neither outweighs the payload, small pieces are copied, and put together where they follow each other.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Pieces below this are small. Two that follow each other are not both.
const SMALL: usize = 512;

/// Pieces for which a queue that is empty keeps room.
const ROOM: usize = 8;

/// A spare queue has room for at most so many pieces.
const MUCH: usize = 64;

/// `bytes` for as long as may be: a small piece in memory of its own.
#[inline(always)]
pub(crate) fn kept(bytes: Bytes) -> Bytes {
    if bytes.len() < SMALL { Bytes::copy_from_slice(&bytes) } else { bytes }
}

/// `part` of `whole` bytes that share a memory: less than half of them does not keep that.
pub(crate) fn part(part: Bytes, whole: usize) -> Bytes {
    if part.len() < whole.div_ceil(2) { Bytes::copy_from_slice(&part) } else { part }
}

/// Both in one, if they are small.
pub(crate) fn together(first: &[u8], second: &[u8]) -> Option<Bytes> {
    if first.len() >= SMALL || second.len() >= SMALL {
        return None;
    }
    let mut both = BytesMut::with_capacity(first.len() + second.len());
    both.extend_from_slice(first);
    both.extend_from_slice(second);
    Some(both.freeze())
}

/// Pieces that follow each other.
#[derive(Debug, Default)]
pub(crate) struct Pieces(VecDeque<Bytes>);

impl From<Bytes> for Pieces {
    fn from(only: Bytes) -> Self {
        Self(VecDeque::from([only]))
    }
}

impl Pieces {
    /// Adds a piece that is to wait to an empty queue, which has room for `few` at least from then on.
    pub fn wait(&mut self, first: Bytes, few: usize) {
        self.0.reserve_exact(few);
        self.0.push_back(kept(first));
    }

    /// Adds the next bytes. The only piece is taken as it is: nearly always it is gone soon.
    #[inline(always)]
    pub fn push_back(&mut self, bytes: Bytes) {
        if bytes.len() >= SMALL || self.0.is_empty() {
            self.0.push_back(bytes);
        } else {
            self.push_small(bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_small(&mut self, bytes: Bytes) {
        match self.0.back_mut().and_then(|last| Some((together(last, &bytes)?, last))) {
            Some((both, last)) => *last = both,
            None => self.0.push_back(kept(bytes)),
        }
    }

    /// Adds the bytes before the first.
    pub fn push_front(&mut self, bytes: Bytes) {
        match self.0.front_mut().and_then(|first| Some((together(&bytes, first)?, first))) {
            Some((both, first)) => *first = both,
            None => self.0.push_front(kept(bytes)),
        }
    }

    /// Adds all of `others`. The fewer ones move.
    pub fn append(&mut self, others: &mut Self) {
        if let Some(small) = others.0.pop_front_if(|first| first.len() < SMALL) {
            self.push_back(small);
        }
        if self.0.len() < others.0.len() {
            core::mem::swap(&mut self.0, &mut others.0);
            while let Some(last) = others.0.pop_back() {
                self.0.push_front(last);
            }
        } else {
            self.0.append(&mut others.0);
        }
    }

    /// Takes the first piece.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<Bytes> {
        self.0.pop_front()
    }

    /// The memory of a queue that held many pieces and is empty becomes the `spare` one, or is given back.
    #[inline]
    pub fn relax(&mut self, spare: &mut Self) {
        if self.0.capacity() > ROOM && self.0.is_empty() {
            core::mem::take(self).become_spare(spare);
        }
    }

    /// The memory of an empty queue replaces that of `spare`, if that is less and this is not much.
    #[inline]
    pub fn become_spare(self, spare: &mut Self) {
        debug_assert!(self.0.is_empty());
        if self.0.capacity() > spare.0.capacity() && self.0.capacity() <= MUCH {
            *spare = self;
        }
    }

    /// All in one piece.
    pub fn whole(mut self) -> Bytes {
        if self.0.len() == 1 {
            return self.0.pop_front().unwrap_or_default();
        }
        let mut all = BytesMut::with_capacity(self.0.iter().map(Bytes::len).sum());
        self.0.iter().for_each(|piece| all.extend_from_slice(piece));
        all.freeze()
    }
}

/// The bookkeeping of so many separate pieces may be held beside any payload; further ones need [`SHARE`] bytes each.
const SPARE: u64 = 1024;
/// Bytes for each separate piece: about what it costs to hold one, so that no more than twice the payload is held.
const SHARE: u64 = 256;

/// True if one more separate piece may be held, beside `pieces` that hold `bytes` together.
pub(crate) fn is_room_for_another(pieces: usize, bytes: u64) -> bool {
    (pieces as u64) < SPARE + bytes / SHARE
}

/// Payload whose memory is counted until nothing shares it.
#[cfg(test)]
pub(crate) mod counted {
    use bytes::Bytes;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Owned(Vec<u8>, Arc<AtomicUsize>);

    impl AsRef<[u8]> for Owned {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            self.1.fetch_sub(self.0.len(), Ordering::Relaxed);
        }
    }

    /// So many bytes, counted in `live`.
    pub fn payload(len: usize, live: &Arc<AtomicUsize>) -> Bytes {
        live.fetch_add(len, Ordering::Relaxed);
        Bytes::from_owner(Owned(vec![0; len], live.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_are_put_together() {
        let mut pieces = Pieces::default();
        let text: Bytes = (0..4000u32).map(|n| n as u8).collect();
        let mut end = 1700;
        for len in [1, 100, 600, 3, 500, 20, 512, 1] {
            pieces.push_back(text.slice(end..end + len));
            end += len;
        }
        let mut start = 1700;
        for len in [600, 100, 5, 511, 2] {
            start -= len;
            pieces.push_front(text.slice(start..start + len));
        }
        let lens: Vec<_> = pieces.0.iter().map(Bytes::len).collect();
        assert_eq!(lens, [2, 616, 600, 101, 600, 523, 512, 1]);
        let mut others = Pieces::from(text.slice(end..end + 7));
        others.push_back(text.slice(end + 7..4000));
        pieces.append(&mut others);
        assert_eq!(pieces.0.iter().map(Bytes::len).collect::<Vec<_>>()[7..], [8, 4000 - end - 7]);
        assert_eq!(pieces.whole(), text.slice(start..));
    }
}
