//! Packets sent and not yet acknowledged: in order of the sequence, and in order of the last transmission.

use anabranch_units::{Instant, Range};
use bytes::Bytes;
use std::collections::VecDeque;

/// Packets between two looks at whether there is much more room than they need; a power of two.
const LOOK: u64 = 64;

/// Packets for which there is always room.
const FEW: usize = 8;

/// A packet that was sent and is remembered until it is acknowledged. Small: there are as many as windows have room for.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Where it begins in the subflow's sequence, and its payload in the data sequence.
    start: u64,
    data_start: u64,
    /// Payload of the packet.
    pub payload: Bytes,
    /// Carries the DATA_FIN.
    pub data_fin: bool,
    /// Carries the subflow's FIN.
    pub fin: bool,
    /// Selectively acknowledged.
    pub(super) sacked: bool,
    /// Taken for lost (the original, if `retransmitted`).
    pub(super) lost: bool,
    /// A retransmission is thought to be in flight.
    pub(super) retransmitted: bool,
    /// The packet was sent more than once.
    pub(super) repeated: bool,
    /// When it was last sent.
    pub(super) sent_at: Instant,
    /// Distances to its neighbours in the order of transmission; 0: there is none.
    older: i32,
    newer: i32,
}

/// The packet at this distance from packet `n`.
#[inline]
fn beside(n: u64, distance: i32) -> Option<u64> {
    (distance != 0).then(|| n.wrapping_add_signed(distance.into()))
}

/// The distance from packet `n` to another one.
#[inline]
fn distance(n: u64, to: Option<u64>) -> i32 {
    to.map_or(0, |to| to.wrapping_sub(n) as i32)
}

impl Sent {
    /// A data segment that begins at `start`; its payload begins at `data_start` of the data sequence.
    #[inline]
    pub fn new(start: u64, payload: Bytes, data_start: u64, data_fin: bool) -> Self {
        Self {
            start,
            data_start,
            payload,
            data_fin,
            fin: false,
            sacked: false,
            lost: false,
            retransmitted: false,
            repeated: false,
            sent_at: Instant::ZERO,
            older: 0,
            newer: 0,
        }
    }

    /// A FIN at offset `at`; `written` = the end of what was written.
    pub fn fin(at: u64, written: u64) -> Self {
        Self { fin: true, ..Self::new(at, Bytes::new(), written, false) }
    }

    /// The part of a data segment at these offsets of the subflow's sequence.
    pub fn part(&self, seq: Range) -> Self {
        let (from, to) = (seq.start - self.start, seq.end - self.start);
        let payload = self.payload.slice(from as usize..to as usize);
        Self { start: seq.start, data_start: self.data_start + from, payload, ..self.clone() }
    }

    /// The packet in parts of at most `most` payload bytes, above 0, without what lies below `una`.
    pub(super) fn parts(&self, una: u64, most: u64) -> impl Iterator<Item = Self> + '_ {
        let end = self.start + self.bytes();
        let parts = Range::new(self.start.max(una), end).parts(most);
        parts.map(move |part| Self { data_fin: self.data_fin && part.end == end, ..self.part(part) })
    }

    /// Offsets in the subflow's sequence; a FIN takes one.
    #[inline]
    pub fn seq(&self) -> Range {
        Range::new(self.start, self.start + self.bytes() + u64::from(self.fin))
    }

    /// Data-level range of the payload.
    #[inline]
    pub fn data(&self) -> Range {
        Range::new(self.data_start, self.data_start + self.bytes())
    }

    /// Payload bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.payload.len() as u64
    }

    /// The packet was sent once, and is neither SACKed nor lost.
    pub(super) fn is_plain(&self) -> bool {
        !(self.repeated | self.sacked | self.lost | self.retransmitted)
    }

    /// Where its last transmission stands in time; ties are broken by sequence (RFC 8985 §6.2, `RACK_sent_after`).
    pub(super) fn key(&self) -> SendKey {
        (self.sent_at, self.seq().end)
    }
}

/// A transmission's place in time: when, and where the segment ends.
pub(super) type SendKey = (Instant, u64);

/// Packets in flight, numbered in order of their first transmission, which is that of the sequence. A second order,
/// that of the *last* transmission, is a list threaded through them; it holds those whose fate is open.
#[derive(Debug, Default)]
pub(super) struct SentQueue {
    packets: VecDeque<Sent>,
    /// Number of the first packet.
    first: u64,
    oldest: Option<u64>,
    newest: Option<u64>,
    /// The last packet in the order of transmission that [`Self::last_before`] passed.
    passed: Option<u64>,
}

impl SentQueue {
    /// An empty queue whose first packet gets number `first`.
    pub fn begun_at(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    /// All packets, in the order of their sequence.
    pub fn into_packets(self) -> impl Iterator<Item = Sent> {
        self.packets.into_iter()
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Number of the first packet.
    pub fn start(&self) -> u64 {
        self.first
    }

    /// The number that the next packet will get.
    pub fn end(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    pub fn get(&self, n: u64) -> Option<&Sent> {
        self.packets.get(n.checked_sub(self.first)? as usize)
    }

    pub fn get_mut(&mut self, n: u64) -> Option<&mut Sent> {
        self.packets.get_mut(n.checked_sub(self.first)? as usize)
    }

    pub fn packets(&self) -> impl Iterator<Item = &Sent> + '_ {
        self.packets.iter()
    }
    pub fn front(&self) -> Option<&Sent> {
        self.packets.front()
    }

    pub fn back(&self) -> Option<&Sent> {
        self.packets.back()
    }

    /// Appends a packet, the newest in the order of transmission as well.
    #[inline(always)]
    pub fn push(&mut self, sent: Sent) {
        let n = self.end();
        let newest = self.newest.replace(n);
        let older = distance(n, newest);
        match newest.and_then(|newest| self.get_mut(newest)) {
            Some(before) => before.newer = -older,
            None => self.oldest = Some(n),
        }
        if self.packets.len() == self.packets.capacity() {
            self.grow();
        }
        self.packets.push_back(Sent { older, newer: 0, ..sent });
    }

    /// Drops the plain packets at the front that end at `ack` or below, after a last look at each: they are the oldest in the order of
    /// transmission, too.
    #[inline(always)]
    pub fn drop_plain(&mut self, ack: u64, mut look: impl FnMut(&Sent)) {
        let (before, mut newer) = (self.first, None);
        while let Some(packet) = self.packets.front().filter(|packet| packet.is_plain() && packet.seq().end <= ack) {
            look(packet);
            newer = beside(self.first, packet.newer);
            self.packets.pop_front();
            self.go_up();
        }
        if self.first > before {
            debug_assert_eq!(self.oldest, Some(before));
            self.passed = self.passed.filter(|n| *n >= self.first);
            match newer.and_then(|newer| self.get_mut(newer)) {
                Some(after) => {
                    after.older = 0;
                    self.oldest = newer;
                }
                None => (self.oldest, self.newest) = (None, None),
            }
        }
    }

    /// Takes out the first packet, which must have been unlinked.
    pub fn pop_front(&mut self) -> Option<Sent> {
        let sent = self.packets.pop_front()?;
        self.go_up();
        Some(sent)
    }

    /// The first packet has left. No burst keeps its memory.
    #[inline(always)]
    fn go_up(&mut self) {
        self.first += 1;
        if self.first.is_multiple_of(LOOK) {
            self.shrink();
        }
    }

    /// The last packet has left: gives back all memory.
    pub fn give_back(&mut self) {
        self.packets.shrink_to_fit();
    }

    /// Makes room for half as many more: windows that double leave more room unused than they need.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.packets.reserve_exact((self.packets.len() / 2).max(FEW));
    }

    #[cold]
    #[inline(never)]
    fn shrink(&mut self) {
        let needed = self.packets.len().max(FEW);
        if self.packets.capacity() > 2 * needed {
            self.packets.shrink_to(needed + needed / 2);
        }
    }

    /// Number of the first packet that ends after `offset`; [`Self::end`] if none does.
    pub fn number_at(&self, offset: u64) -> u64 {
        let (Some(front), Some(back)) = (self.packets.front(), self.packets.back()) else { return self.first };
        if offset < front.seq().end {
            return self.first;
        }
        if offset >= back.seq().end {
            return self.end();
        }
        // Most packets are of one size, so that the first guess is right.
        let guess =
            ((offset - front.seq().start) / front.seq().len().max(1)).min(self.packets.len() as u64 - 1) as usize;
        let hit = self.packets[guess].seq();
        if hit.start <= offset && offset < hit.end {
            return self.first + guess as u64;
        }
        self.first + self.packets.partition_point(|p| p.seq().end <= offset) as u64
    }

    /// Numbers of the packets that lie wholly inside `seq`.
    pub fn inside(&self, seq: Range) -> Range {
        let from = self.number_at(seq.start);
        let cut = self.get(from).is_some_and(|p| p.seq().start < seq.start);
        Range::new(from + u64::from(cut), self.number_at(seq.end))
    }

    /// The packet whose fate is open and that was sent longest ago.
    pub fn oldest(&self) -> Option<(u64, &Sent)> {
        let n = self.oldest?;
        Some((n, self.get(n)?))
    }

    /// Makes `n`, which must be in no list, the newest in the order of transmission.
    pub fn link(&mut self, n: u64) {
        let newest = self.newest;
        let Some(packet) = self.get_mut(n) else { return };
        let older = distance(n, newest);
        (packet.older, packet.newer) = (older, 0);
        match newest.and_then(|newest| self.get_mut(newest)) {
            Some(before) => before.newer = -older,
            None => self.oldest = Some(n),
        }
        self.newest = Some(n);
    }

    /// Takes `n` out of the order of transmission, if it is there.
    pub fn unlink(&mut self, n: u64) {
        let Some(packet) = self.get_mut(n) else { return };
        let (older, newer) = (beside(n, packet.older), beside(n, packet.newer));
        (packet.older, packet.newer) = (0, 0);
        if older.is_none() && self.oldest != Some(n) {
            return;
        }
        let gap = older.map_or(0, |older| distance(older, newer));
        match older.and_then(|older| self.get_mut(older)) {
            Some(before) => before.newer = gap,
            None => self.oldest = newer,
        }
        match newer.and_then(|newer| self.get_mut(newer)) {
            Some(after) => after.older = -gap,
            None => self.newest = older,
        }
        if self.passed == Some(n) {
            self.passed = older;
        }
    }

    /// The newest packet in the order of transmission that comes before `key`. Successive keys must not decrease, so
    /// that every transmission is passed once.
    pub fn last_before(&mut self, key: SendKey) -> Option<&Sent> {
        loop {
            let next = match self.passed {
                Some(n) => self.get(n).and_then(|p| beside(n, p.newer)),
                None => self.oldest,
            };
            match next.and_then(|next| self.get(next)) {
                Some(packet) if packet.key() < key => self.passed = next,
                _ => break,
            }
        }
        self.get(self.passed?)
    }

    /// Rebuilds the order of transmission from all packets that `open` accepts.
    pub fn relink(&mut self, open: impl Fn(&Sent) -> bool) {
        let mut order: Vec<(SendKey, u64)> = Vec::new();
        for (n, packet) in (self.first..).zip(&mut self.packets) {
            (packet.older, packet.newer) = (0, 0);
            if open(packet) {
                order.push((packet.key(), n));
            }
        }
        order.sort_unstable();
        (self.oldest, self.newest, self.passed) = (None, None, None);
        for (_, n) in order {
            self.link(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(start: u64, len: u64, ms: u64) -> Sent {
        let payload = Bytes::from(vec![0; len as usize]);
        let mut sent = Sent::new(start, payload, start, false);
        sent.sent_at = Instant::from_millis(ms);
        sent
    }

    fn queue(lens: &[u64]) -> SentQueue {
        let mut queue = SentQueue::default();
        let mut at = 1;
        for (i, &len) in lens.iter().enumerate() {
            queue.push(packet(at, len, i as u64));
            at += len;
        }
        queue
    }

    fn order(queue: &SentQueue) -> Vec<u64> {
        let mut order = Vec::new();
        let mut at = queue.oldest;
        while let Some((n, packet)) = at.and_then(|n| Some((n, queue.get(n)?))) {
            order.push(n);
            at = beside(n, packet.newer);
        }
        assert_eq!(order.last().copied(), queue.newest);
        order
    }

    #[test]
    fn packets_are_found_by_offset() {
        let mut queue = queue(&[10, 10, 1, 25, 10]);
        let found: Vec<u64> = [0, 1, 10, 11, 20, 21, 22, 46, 47, 56, 57].map(|at| queue.number_at(at)).to_vec();
        assert_eq!(found, [0, 0, 0, 1, 1, 2, 3, 3, 4, 4, 5]);
        queue.unlink(0);
        queue.pop_front();
        assert_eq!((queue.start(), queue.end(), queue.number_at(0), queue.number_at(21)), (1, 5, 1, 2));
        assert!(queue.get(0).is_none());
    }

    #[test]
    fn only_whole_packets_are_inside() {
        let queue = queue(&[10, 10, 10]);
        let inside = |start, end| queue.inside(Range::new(start, end));
        assert_eq!(inside(1, 31), Range::new(0, 3));
        assert_eq!(inside(2, 31), Range::new(1, 3));
        assert_eq!(inside(11, 30), Range::new(1, 2));
        assert!(inside(12, 20).is_empty());
        assert!(inside(31, 99).is_empty());
        assert_eq!(inside(0, u64::MAX), Range::new(0, 3));
    }

    #[test]
    fn the_order_of_transmission_survives_unlinking() {
        let mut queue = queue(&[1, 1, 1, 1]);
        queue.unlink(1);
        queue.unlink(1);
        assert_eq!(order(&queue), [0, 2, 3]);
        queue.get_mut(1).unwrap().sent_at = Instant::from_millis(9);
        queue.link(1);
        assert_eq!(order(&queue), [0, 2, 3, 1]);
        queue.unlink(0);
        queue.unlink(1);
        assert_eq!(order(&queue), [2, 3]);
        queue.unlink(2);
        queue.unlink(3);
        assert_eq!(order(&queue), [] as [u64; 0]);
        queue.relink(|_| true);
        assert_eq!(order(&queue), [0, 2, 3, 1]);
    }

    #[test]
    fn memory_follows_the_packets_and_none_is_left_after_the_last() {
        let mut queue = queue(&[1; 2000]);
        let most = queue.packets.capacity();
        queue.drop_plain(1991, |_| ());
        assert!(most >= 2000 && queue.packets.capacity() <= 2 * 64 + 32, "{}", queue.packets.capacity());
        queue.drop_plain(2001, |_| ());
        queue.give_back();
        assert_eq!((queue.len(), queue.packets.capacity()), (0, 0));
    }

    #[test]
    fn the_last_before_a_time_moves_on() {
        let mut queue = queue(&[1, 1, 1, 1]);
        let last = |queue: &mut SentQueue, ms| queue.last_before((Instant::from_millis(ms), 0)).map(|p| p.seq().start);
        assert_eq!(last(&mut queue, 0), None);
        assert_eq!(last(&mut queue, 3), Some(3));
        queue.unlink(2);
        assert_eq!(last(&mut queue, 3), Some(2));
        queue.unlink(1);
        queue.unlink(0);
        assert_eq!(last(&mut queue, 3), None);
        assert_eq!(last(&mut queue, 4), Some(4));
    }
}
