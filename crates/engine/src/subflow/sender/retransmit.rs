//! Sent segments in order, and what became of each. Only this file marks them.

use anabranch_units::{Instant, Range, RangeSet};
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};

/// What became of a segment after its last transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// In flight.
    Flying,
    /// Marked lost, to be sent again.
    Lost,
    /// SACKed.
    Sacked,
}

/// A segment that was sent and not acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// Offsets in the subflow; a FIN takes one.
    pub seq: Range,
    pub payload: Bytes,
    /// Data-level range of the payload.
    pub data: Range,
    pub data_fin: bool,
    pub fin: bool,
    /// When it was last sent.
    pub sent_at: Instant,
    /// How often it was sent.
    pub transmissions: u32,
    pub mark: Mark,
}

impl Sent {
    /// New payload.
    pub fn new(seq: Range, payload: Bytes, data: Range, data_fin: bool) -> Self {
        let (fin, sent_at) = (false, Instant::ZERO);
        Self { seq, payload, data, data_fin, fin, sent_at, transmissions: 0, mark: Mark::Flying }
    }

    /// A FIN at offset `at`.
    pub fn fin(at: u64, data: Range) -> Self {
        Self { fin: true, ..Self::new(Range::new(at, at + 1), Bytes::new(), data, false) }
    }
}

/// The segments between `una` and `nxt`.
#[derive(Debug)]
pub(crate) struct RetransmitQueue {
    segments: VecDeque<Sent>,
    una: u64,
    nxt: u64,
    sacked: RangeSet,
    lost: BTreeSet<u64>,
    flying: u32,
    flying_bytes: u64,
}

impl RetransmitQueue {
    /// Nothing sent yet; the first payload byte has the offset 1.
    pub fn new() -> Self {
        Self {
            segments: VecDeque::new(),
            una: 1,
            nxt: 1,
            sacked: RangeSet::new(),
            lost: BTreeSet::new(),
            flying: 0,
            flying_bytes: 0,
        }
    }

    pub fn una(&self) -> u64 {
        self.una
    }
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
    /// Segments not acknowledged, whatever became of them.
    pub fn len(&self) -> u32 {
        self.segments.len() as u32
    }
    /// Segments in flight (RFC 6675's pipe, in segments).
    pub fn flying(&self) -> u32 {
        self.flying
    }
    pub fn flying_bytes(&self) -> u64 {
        self.flying_bytes
    }
    pub fn sacked(&self) -> &RangeSet {
        &self.sacked
    }
    pub fn lost_count(&self) -> usize {
        self.lost.len()
    }
    pub fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }
    pub fn last(&self) -> Option<&Sent> {
        self.segments.back()
    }
    pub fn iter(&self) -> impl Iterator<Item = &Sent> + '_ {
        self.segments.iter()
    }

    fn index(&self, start: u64) -> Option<usize> {
        let first = self.segments.front()?;
        // Nearly all segments have one size: guess the place before searching for it.
        let size = first.seq.len().max(1);
        let guess = (start.checked_sub(first.seq.start)? / size) as usize;
        if self.segments.get(guess).is_some_and(|s| s.seq.start == start) {
            return Some(guess);
        }
        self.segments.binary_search_by_key(&start, |s| s.seq.start).ok()
    }

    /// The segment that starts at `start`.
    pub fn find(&self, start: u64) -> Option<&Sent> {
        self.index(start).map(|i| &self.segments[i])
    }

    /// The lowest segment marked lost.
    pub fn next_lost(&self) -> Option<&Sent> {
        if self.lost.is_empty() {
            return None;
        }
        self.lost.first().and_then(|start| self.find(*start))
    }

    /// A new segment left.
    pub fn push(&mut self, now: Instant, mut sent: Sent) {
        sent.sent_at = now;
        sent.transmissions = 1;
        self.nxt = sent.seq.end;
        self.flying += 1;
        self.flying_bytes += sent.payload.len() as u64;
        self.segments.push_back(sent);
    }

    /// The segment at `start` left again. Returns how often it was sent, or `None` if it is unknown.
    pub fn sent_again(&mut self, now: Instant, start: u64) -> Option<u32> {
        let i = self.index(start)?;
        let s = &mut self.segments[i];
        s.sent_at = now;
        s.transmissions += 1;
        let times = s.transmissions;
        if s.mark == Mark::Lost {
            s.mark = Mark::Flying;
            self.lost.remove(&start);
            self.flying += 1;
            self.flying_bytes += self.segments[i].payload.len() as u64;
        }
        Some(times)
    }

    /// Everything below `ack` arrived: tells each segment, with its last mark.
    pub fn acknowledge(&mut self, ack: u64, mut delivered: impl FnMut(&Sent)) {
        if ack <= self.una {
            return;
        }
        self.una = ack.min(self.nxt);
        while let Some(first) = self.segments.front() {
            if first.seq.end > self.una {
                break;
            }
            let sent = self.segments.pop_front().expect("there is a first");
            self.unmark(&sent);
            delivered(&sent);
        }
        self.sacked.remove_below(self.una);
    }

    /// Every segment wholly inside `block` arrived: tells those that were not known to have.
    pub fn sack(&mut self, block: Range, mut delivered: impl FnMut(&Sent)) {
        if self.sacked.covers(block) {
            return;
        }
        let gaps: Vec<Range> = self.sacked.gaps(block).collect();
        for gap in gaps {
            let mut i = self.segments.partition_point(|s| s.seq.start < gap.start);
            while let Some(s) = self.segments.get(i).filter(|s| s.seq.end <= gap.end) {
                if s.mark != Mark::Sacked {
                    let sent = s.clone();
                    self.unmark(&sent);
                    self.sacked.insert(sent.seq);
                    self.segments[i].mark = Mark::Sacked;
                    delivered(&sent);
                }
                i += 1;
            }
        }
    }

    fn unmark(&mut self, sent: &Sent) {
        match sent.mark {
            Mark::Flying => {
                self.flying -= 1;
                self.flying_bytes -= sent.payload.len() as u64;
            }
            Mark::Lost => {
                self.lost.remove(&sent.seq.start);
            }
            Mark::Sacked => {}
        }
    }

    /// Marks the segment at `start` lost if it is in flight; true if it was.
    pub fn lose(&mut self, start: u64) -> bool {
        let Some(i) = self.index(start) else { return false };
        let s = &mut self.segments[i];
        if s.mark != Mark::Flying {
            return false;
        }
        s.mark = Mark::Lost;
        self.flying -= 1;
        self.flying_bytes -= s.payload.len() as u64;
        self.lost.insert(start);
        true
    }

    /// Takes back every loss mark: the segments are in flight after all.
    pub fn forgive(&mut self) {
        for start in core::mem::take(&mut self.lost) {
            if let Some(i) = self.index(start) {
                self.segments[i].mark = Mark::Flying;
                self.flying += 1;
                self.flying_bytes += self.segments[i].payload.len() as u64;
            }
        }
    }

    /// The peer dropped what it had SACKed (RFC 2018 §8): nothing is known to have arrived.
    pub fn renege(&mut self) {
        self.sacked.clear();
        for s in self.segments.iter_mut().filter(|s| s.mark == Mark::Sacked) {
            s.mark = Mark::Flying;
            self.flying += 1;
            self.flying_bytes += s.payload.len() as u64;
        }
    }
}
