//! The bytes written: they follow from side and offset, and no other place has the same sequence.

use anabranch_units::{Rng, Side};
use bytes::Bytes;
use std::sync::OnceLock;

/// Most bytes that one side may write.
pub(crate) const MOST: u64 = 1 << 23;

/// The whole stream of a side.
fn stream(side: Side) -> &'static Bytes {
    static STREAMS: [OnceLock<Bytes>; 2] = [OnceLock::new(), OnceLock::new()];
    let make = || {
        let mut rng = Rng::stream(0, if side == Side::Client { "client" } else { "server" });
        let words = (0..MOST / 8).flat_map(|_| rng.bits().to_le_bytes());
        words.collect::<Vec<u8>>().into()
    };
    STREAMS[side as usize - 1].get_or_init(make)
}

/// `len` bytes from `offset` on.
pub(crate) fn bytes(side: Side, offset: u64, len: u64) -> Bytes {
    stream(side).slice(offset as usize..(offset + len) as usize)
}

/// The first place where `bytes` differ from the stream at `offset`.
pub(crate) fn difference(side: Side, offset: u64, bytes: &[u8]) -> Option<u64> {
    let (offset, whole) = (offset as usize, stream(side));
    let same = whole.get(offset..offset + bytes.len()).is_some_and(|there| there == bytes);
    let there = |n: usize| whole.get(offset + n);
    (!same).then(|| (0..bytes.len()).find(|n| there(*n) != Some(&bytes[*n])).unwrap_or(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_in_the_wrong_place_is_seen() {
        let piece = bytes(Side::Client, 1000, 50);
        assert_eq!(difference(Side::Client, 1000, &piece), None);
        assert!(difference(Side::Client, 1001, &piece).is_some());
        assert!(difference(Side::Server, 1000, &piece).is_some());
        let mut changed = piece.to_vec();
        changed[7] ^= 1;
        assert_eq!(difference(Side::Client, 1000, &changed), Some(7));
        assert!(difference(Side::Client, MOST - 10, &[0; 20]).is_some());
    }
}
