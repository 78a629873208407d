//! The pieces in which a Linux kernel keeps what was written: each is retransmitted as a whole.

use anabranch_units::Range;
use std::collections::VecDeque;

/// Bytes of a page that holds pieces.
const PAGE: u64 = 32 << 10;
/// Bytes that precede each piece in its page.
const HEADER: u64 = 40;
/// Pieces begin at multiples of so many bytes of their page.
const ALIGNMENT: u64 = 8;

/// The pieces of what was written and not acknowledged. One ends with its page, or where everything was given to paths when the
/// application wrote more.
///
/// Linux 6.18: `mptcp_sendmsg`, `mptcp_frag_can_collapse_to`, `mptcp_carve_data_frag`.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    starts: VecDeque<u64>,
    /// End of what was written.
    end: u64,
    /// Bytes of the last page that are taken.
    taken: u64,
}

impl Fragments {
    /// End of what was written.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The application writes up to `upto`, at most what the page takes. `pending`: some of what it wrote before was given to no path.
    pub fn write(&mut self, upto: u64, pending: bool) {
        let full = self.taken >= PAGE;
        if full || !pending || self.starts.is_empty() {
            let begin = self.taken.next_multiple_of(ALIGNMENT) + HEADER;
            self.taken = if full || begin + HEADER > PAGE { HEADER } else { begin };
            self.starts.push_back(self.end);
        }
        let upto = upto.min(self.end + (PAGE - self.taken));
        self.taken += upto - self.end;
        self.end = upto;
    }

    /// Everything below `offset` is acknowledged.
    pub fn acked(&mut self, offset: u64) {
        while self.starts.get(1).is_some_and(|next| *next <= offset) {
            self.starts.pop_front();
        }
        if offset >= self.end {
            // Nothing uses the page any more: it is filled from its beginning (`skb_page_frag_refill`). Another scheduler may have
            // sent what came before.
            *self = Self { end: offset, ..Self::default() };
        }
    }

    /// The rest, from `offset` on, of the piece that holds it.
    pub fn from(&self, offset: u64) -> Range {
        let at = self.starts.partition_point(|start| *start <= offset);
        Range::new(offset, self.starts.get(at).copied().unwrap_or(self.end).max(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(fragments: &Fragments) -> Vec<u64> {
        let ends = fragments.starts.iter().skip(1).copied().chain([fragments.end]);
        fragments.starts.iter().zip(ends).map(|(start, end)| end - start).collect()
    }

    fn write(fragments: &mut Fragments, bytes: u64, pending: bool) {
        let upto = fragments.end() + bytes;
        fragments.write(upto, pending);
        while fragments.end() < upto {
            fragments.write(upto, true);
        }
    }

    /// From the tracepoint `mptcp_sendmsg_frag` of a kernel whose application wrote 10 000 bytes every 20 ms: the fourth frame was
    /// given to a path in 2608 and 7392 bytes, the seventh in 5216 and 4784, the tenth in 7824 and 2176, the fourteenth in 392
    /// and 9608.
    #[test]
    fn frames_are_pieces_of_their_own_and_pages_cut_them() {
        let mut fragments = Fragments::default();
        (0..14).for_each(|_| write(&mut fragments, 10_000, false));
        let cut: Vec<u64> = lengths(&fragments).into_iter().filter(|len| *len < 10_000).collect();
        assert_eq!(cut, [2608, 7392, 5216, 4784, 7824, 2176, 392, 9608]);
    }

    #[test]
    fn what_follows_data_that_waits_joins_its_piece() {
        let mut fragments = Fragments::default();
        write(&mut fragments, 1000, false);
        write(&mut fragments, 70_000, true);
        assert_eq!(lengths(&fragments), [32_728, 32_728, 5544]);
        assert_eq!(fragments.from(40_000), Range::new(40_000, 65_456));
        fragments.acked(33_000);
        assert_eq!(lengths(&fragments), [32_728, 5544]);
        assert_eq!(fragments.from(70_000), Range::new(70_000, 71_000));
        assert_eq!(fragments.from(80_000), Range::new(80_000, 80_000));
        fragments.acked(71_000);
        write(&mut fragments, 40_000, false);
        assert_eq!(lengths(&fragments), [32_728, 7272], "a page that nothing uses is empty");
    }
}
