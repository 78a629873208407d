//! The bytes that workloads send: known to both ends, stored once.

use bytes::Bytes;
use std::sync::LazyLock;

/// Period of the pattern: the least prime above 1 MiB. No shift by a multiple of a segment, window or buffer size is a
/// multiple of it, so a misplaced segment never looks correct.
const PERIOD: u64 = 1_048_583;

/// Longest piece in one call. Segments that begin in one piece and end in another are copied: the longer the pieces, the fewer.
pub const LONGEST: usize = 256 << 10;

/// One period of random bytes, followed by its beginning, so that no piece wraps.
static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // Knuth's MMIX generator with its weak low bits mixed: a megabyte of it is made at every start.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = vec![0; PERIOD.next_multiple_of(8) as usize + LONGEST];
    for word in bytes[..PERIOD.next_multiple_of(8) as usize].chunks_exact_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        word.copy_from_slice(&(state ^ state >> 32).to_le_bytes());
    }
    bytes.truncate(PERIOD as usize);
    bytes.extend_from_within(..LONGEST);
    bytes
});

fn slice(offset: u64, len: usize) -> &'static [u8] {
    let start = (offset % PERIOD) as usize;
    &PATTERN[start..start + len.min(LONGEST)]
}

/// The `len` bytes of a stream from `offset` on; at most [`LONGEST`]. They are not copied.
pub fn piece(offset: u64, len: usize) -> Bytes {
    Bytes::from_static(slice(offset, len))
}

/// The offset of the first wrong byte of `data`, which begins at `offset` of its stream.
#[inline]
pub fn mismatch(offset: u64, data: &[u8]) -> Option<u64> {
    // A slice of the pattern itself at this offset needs no comparison: the network forwards written data without a copy.
    // Any other bytes are compared one by one.
    if core::ptr::eq(data, slice(offset, data.len())) { None } else { compare(offset, data) }
}

#[inline(never)]
fn compare(offset: u64, data: &[u8]) -> Option<u64> {
    // A piece that begins before the end of the period has its later bytes in the copy behind the period.
    let behind = (offset % PERIOD + PERIOD) as usize;
    if PATTERN.get(behind..behind + data.len()).is_some_and(|same| core::ptr::eq(data, same)) {
        return None;
    }
    let mut at = offset;
    for part in data.chunks(LONGEST) {
        let right = slice(at, part.len());
        if part != right {
            return part.iter().zip(right).position(|(a, b)| a != b).map(|wrong| at + wrong as u64);
        }
        at += part.len() as u64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_prime() {
        const { assert!(PERIOD > 1 << 20) };
        assert!((2..=1024).all(|d| !PERIOD.is_multiple_of(d)));
    }

    #[test]
    fn pieces_join_over_the_wrap() {
        let before = piece(PERIOD - 10, 20);
        assert_eq!(before[..10], piece(2 * PERIOD - 10, 10));
        assert_eq!(before[10..], piece(0, 10));
        assert_eq!(piece(0, usize::MAX).len(), LONGEST);
        assert_eq!(piece(5 * PERIOD + 77, 1000), piece(77, 1000));
    }

    #[test]
    fn every_wrong_byte_is_found() {
        let mut long = Vec::new();
        while long.len() < 3 * LONGEST {
            long.extend_from_slice(&piece(PERIOD - 5 + long.len() as u64, LONGEST));
        }
        assert_eq!(mismatch(PERIOD - 5, &long), None);
        assert_eq!(mismatch(PERIOD - 5, &[]), None);
        for wrong in [0, 4, 5, LONGEST - 1, LONGEST, long.len() - 1] {
            long[wrong] ^= 1;
            assert_eq!(mismatch(PERIOD - 5, &long), Some(PERIOD - 5 + wrong as u64));
            long[wrong] ^= 1;
        }
    }

    #[test]
    fn only_the_pattern_at_its_own_offset_is_right_without_a_look() {
        let own = piece(700, 1400);
        let copy = Bytes::from(own.to_vec());
        assert_eq!((mismatch(700, &own), mismatch(700, &copy)), (None, None));
        assert_eq!(mismatch(PERIOD + 700, &own), None);
        assert!(mismatch(701, &own).is_some() && mismatch(700, &own.slice(1..)).is_some());
        // The part of a piece that lies behind the wrap is recognised, and is right at its own offset alone.
        let next = piece(PERIOD - 10, 1400).slice(10..);
        assert_eq!((mismatch(0, &next), mismatch(3 * PERIOD, &next)), (None, None));
        assert!(mismatch(1, &next).is_some() && mismatch(0, &next.slice(1..)).is_some());
    }

    #[test]
    fn a_misplaced_segment_is_found_at_once() {
        for offset in (0..PERIOD).step_by(1400) {
            for shift in [1, 4, 536, 1400, 1460, 2800, 65_536, 1 << 20, 1 << 24] {
                let found = mismatch(offset, &piece(offset + shift, 1400));
                assert!(found.is_some_and(|at| at < offset + 16), "shift by {shift} at {offset}");
            }
        }
    }
}
