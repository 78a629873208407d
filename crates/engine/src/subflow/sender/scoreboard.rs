//! Which packets are acknowledged, SACKed, lost, retransmitted (RFC 2018, RFC 6675 §4, RFC 8985 §6.2).

use super::retransmit::{SendKey, Sent, SentQueue};
use anabranch_units::{Duration, Instant, Range, RangeSet};

/// Coarsest clock from which echoed timestamps may come. Two events within one tick cannot be distinguished.
const ECHO_TICK: Duration = Duration::from_millis(1);

/// An echo of `echo` (rounded down to its tick) proves that the segment was sent before `at`.
pub(super) fn echo_before(echo: Option<Instant>, at: Instant) -> bool {
    echo.is_some_and(|sent| sent + ECHO_TICK <= at)
}

/// An acknowledgment without its ranges, for the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub now: Instant,
    pub min_rtt: Option<Duration>,
    /// When the segment was sent whose timestamp is echoed.
    pub echo: Option<Instant>,
}

impl Arrival {
    /// RFC 8985 §6.2 step 2: an acknowledgment of a retransmitted segment may be meant for an earlier transmission.
    /// A segment that is SACKed came out of order, so that the echo is of an earlier one and says nothing about it (RFC 7323 §4.3).
    fn is_ambiguous(&self, sent: &Sent, by_sack: bool) -> bool {
        sent.repeated
            && (!by_sack && echo_before(self.echo, sent.sent_at)
                || self.min_rtt.is_some_and(|min| self.now.since(sent.sent_at) < min))
    }
}

/// Packets that one acknowledgment delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// Packets newly acknowledged or SACKed.
    pub packets: u32,
    /// Their payload bytes.
    pub bytes: u64,
    /// The highest end of their data.
    pub data_end: u64,
    /// Packets newly SACKed.
    pub sacked: u32,
    /// Packets that left the queue, SACKed before or not.
    pub acked: u32,
    /// When the lowest of the packets that left the queue and had been retransmitted was sent last.
    pub repeated: Option<Instant>,
    /// When the oldest and newest of the newly acknowledged packets that were sent only once were sent.
    pub acked_sent: Option<(Instant, Instant)>,
    /// The same of those newly SACKed.
    pub sacked_sent: Option<(Instant, Instant)>,
    /// The least end of a delivered packet that was sent only once.
    pub original_end: Option<u64>,
    /// The delivered packet that was sent last and is not ambiguous, for RACK.
    pub newest: Option<SendKey>,
}

impl Delivered {
    fn note(&mut self, sent: &Sent, arrival: &Arrival, by_sack: bool) {
        self.packets += 1;
        self.bytes += sent.bytes();
        self.data_end = self.data_end.max(sent.data().end);
        if !arrival.is_ambiguous(sent, by_sack) {
            self.newest = self.newest.max(Some(sent.key()));
        }
        if sent.repeated {
            return;
        }
        self.original_end = Some(self.original_end.map_or(sent.seq().end, |end| end.min(sent.seq().end)));
        let at = sent.sent_at;
        let span = if by_sack { &mut self.sacked_sent } else { &mut self.acked_sent };
        *span = Some(span.map_or((at, at), |(oldest, newest)| (oldest.min(at), newest.max(at))));
    }

    /// When packets that were acknowledged and are plain were sent: in order, so that the first and the last say it all.
    fn note_plain(&mut self, first: SendKey, last: SendKey) {
        self.newest = self.newest.max(Some(last));
        self.original_end = Some(self.original_end.map_or(first.1, |end| end.min(first.1)));
        let span =
            self.acked_sent.map_or((first.0, last.0), |(oldest, newest)| (oldest.min(first.0), newest.max(last.0)));
        self.acked_sent = Some(span);
    }

    /// When the newest of the packets was sent that was sent only once.
    pub fn newest_original(&self) -> Option<Instant> {
        self.acked_sent.map(|span| span.1).max(self.sacked_sent.map(|span| span.1))
    }
}

/// The result of marking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marked {
    /// Packets newly taken for lost, retransmissions included.
    pub packets: u32,
    /// A retransmission was among them.
    pub again: bool,
}

/// The packets between `una` and `nxt` and their marks. Work is amortised over the packets whose marks change.
#[derive(Debug)]
pub(super) struct Scoreboard {
    queue: SentQueue,
    una: u64,
    nxt: u64,
    /// Numbers of the SACKed packets.
    sacked: RangeSet,
    /// Numbers of the packets that are lost and were not retransmitted since.
    missing: RangeSet,
    lost: u32,
    retransmitted: u32,
    pipe: u32,
    pipe_bytes: u64,
    /// The highest end that was ever acknowledged or SACKed (`RACK.fack`).
    highest: u64,
    /// Numbers below this were judged by [`Self::mark_below_sacked`].
    judged: u64,
}

impl Scoreboard {
    /// Nothing sent yet; the next offset is `start`.
    pub fn new(start: u64) -> Self {
        Self {
            queue: SentQueue::default(),
            una: start,
            nxt: start,
            sacked: RangeSet::new(),
            missing: RangeSet::new(),
            lost: 0,
            retransmitted: 0,
            pipe: 0,
            pipe_bytes: 0,
            highest: start,
            judged: 0,
        }
    }

    pub fn una(&self) -> u64 {
        self.una
    }
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    pub fn first(&self) -> Option<&Sent> {
        self.queue.front()
    }
    pub fn last(&self) -> Option<&Sent> {
        self.queue.back()
    }
    /// All packets, in the order of their sequence.
    pub fn packets(&self) -> impl Iterator<Item = &Sent> + '_ {
        self.queue.packets()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.len() == 0
    }
    /// Packets sent and not acknowledged, whatever their marks.
    pub fn outstanding(&self) -> u32 {
        self.queue.len() as u32
    }
    /// Packets SACKed.
    pub fn sacked(&self) -> u32 {
        self.sacked.bytes() as u32
    }
    /// Packets whose original is taken for lost.
    pub fn lost(&self) -> u32 {
        self.lost
    }
    /// Packets of which a retransmission is thought to be in flight.
    pub fn retransmitted(&self) -> u32 {
        self.retransmitted
    }
    /// Packets in flight: RFC 6675 §4, `SetPipe`.
    pub fn pipe(&self) -> u32 {
        self.pipe
    }
    /// Payload bytes in flight.
    pub fn pipe_bytes(&self) -> u64 {
        self.pipe_bytes
    }
    pub fn highest(&self) -> u64 {
        self.highest
    }
    /// Some packet is lost and was not retransmitted since.
    pub fn misses_any(&self) -> bool {
        !self.missing.is_empty()
    }
    /// The lowest packet that is lost and was not retransmitted since.
    pub fn next_lost(&self) -> Option<&Sent> {
        self.queue.get(self.missing.first()?.start)
    }
    /// Number of the packet that starts at `seq`, or the part of the first one that is not acknowledged.
    pub fn number_of(&self, seq: u64) -> Option<u64> {
        let n = self.queue.number_at(seq);
        self.queue.get(n).filter(|p| p.seq().start == seq || seq == self.una).map(|_| n)
    }
    pub fn get(&self, n: u64) -> Option<&Sent> {
        self.queue.get(n)
    }

    /// A new packet was sent. One that does not begin at [`Self::nxt`] or is empty is refused.
    #[inline(always)]
    pub fn on_sent(&mut self, now: Instant, mut sent: Sent) -> bool {
        if sent.seq().start != self.nxt || sent.seq().is_empty() {
            return false;
        }
        sent.sent_at = now;
        self.nxt = sent.seq().end;
        self.pipe += 1;
        self.pipe_bytes += sent.bytes();
        self.queue.push(sent);
        true
    }

    /// Packet `n` was retransmitted; false if there is no need to know that.
    pub fn on_retransmitted(&mut self, now: Instant, n: u64) -> bool {
        let Some(packet) = self.queue.get_mut(n).filter(|p| !p.sacked) else { return false };
        packet.sent_at = now;
        packet.repeated = true;
        if !packet.retransmitted {
            packet.retransmitted = true;
            self.retransmitted += 1;
            self.pipe += 1;
            self.pipe_bytes += packet.bytes();
        }
        self.missing.remove(Range::new(n, n + 1));
        self.queue.unlink(n);
        self.queue.link(n);
        true
    }

    /// Nothing more will be sent, and all was acknowledged: gives back the memory.
    pub fn give_back(&mut self) {
        self.queue.give_back();
        (self.sacked, self.missing) = (RangeSet::new(), RangeSet::new());
    }

    /// Applies an acknowledgment: first its SACK blocks, then everything below `ack`, which must not exceed `nxt`.
    #[inline(always)]
    pub fn apply(&mut self, ack: u64, sack: &[Range], arrival: &Arrival) -> Delivered {
        let mut delivered = Delivered::default();
        for &block in sack {
            self.apply_sack(block, arrival, &mut delivered);
        }
        if ack > self.una {
            self.apply_ack(ack, arrival, &mut delivered);
        }
        delivered
    }

    /// A block marks the packets that lie wholly inside it.
    fn apply_sack(&mut self, block: Range, arrival: &Arrival, delivered: &mut Delivered) {
        let mut packets = self.queue.inside(block);
        while let Some(new) = self.first_hole(packets) {
            self.sacked.insert(new);
            for n in new.start..new.end {
                self.take_off(n);
                if let Some(packet) = self.queue.get_mut(n) {
                    packet.sacked = true;
                    self.highest = self.highest.max(packet.seq().end);
                    delivered.sacked += 1;
                    delivered.note(packet, arrival, true);
                }
            }
            packets.start = new.end;
        }
    }

    #[inline(always)]
    fn apply_ack(&mut self, ack: u64, arrival: &Arrival, delivered: &mut Delivered) {
        let mut plain: Option<(SendKey, SendKey)> = None;
        loop {
            self.queue.drop_plain(ack, |packet| {
                let (key, bytes) = (packet.key(), packet.bytes());
                delivered.data_end = delivered.data_end.max(packet.data().end);
                plain = Some((plain.map_or(key, |(first, _)| first), key));
                self.pipe -= 1;
                self.pipe_bytes -= bytes;
                delivered.acked += 1;
                delivered.packets += 1;
                delivered.bytes += bytes;
            });
            if self.queue.front().is_none_or(|packet| packet.seq().end > ack) {
                break;
            }
            self.take_off(self.queue.start());
            let Some(packet) = self.queue.pop_front() else { break };
            delivered.acked += 1;
            if packet.repeated {
                delivered.repeated.get_or_insert(packet.sent_at);
            }
            if !packet.sacked {
                delivered.note(&packet, arrival, false);
            }
        }
        if let Some((first, last)) = plain {
            delivered.note_plain(first, last);
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(self.queue.start());
        }
        if !self.missing.is_empty() {
            self.missing.remove_below(self.queue.start());
        }
        self.una = ack;
        self.highest = self.highest.max(ack);
    }

    /// Packet `n` is in flight no more, nor lost, nor retransmitted, for it has arrived.
    fn take_off(&mut self, n: u64) {
        let Some(packet) = self.queue.get_mut(n).filter(|p| !p.sacked) else { return };
        let in_flight = u32::from(!packet.lost) + u32::from(packet.retransmitted);
        self.pipe -= in_flight;
        self.pipe_bytes -= u64::from(in_flight) * packet.bytes();
        self.lost -= u32::from(packet.lost);
        self.retransmitted -= u32::from(packet.retransmitted);
        if packet.lost && !packet.retransmitted {
            self.missing.remove(Range::new(n, n + 1));
        }
        packet.lost = false;
        packet.retransmitted = false;
        self.queue.unlink(n);
    }

    /// Every transmission of packet `n` is lost.
    fn mark(&mut self, n: u64) -> Marked {
        let Some(packet) = self.queue.get_mut(n) else { return Marked::default() };
        let again = packet.retransmitted;
        let in_flight = u32::from(!packet.lost) + u32::from(again);
        if packet.sacked || in_flight == 0 {
            return Marked::default();
        }
        self.pipe -= in_flight;
        self.pipe_bytes -= u64::from(in_flight) * packet.bytes();
        self.lost += u32::from(!packet.lost);
        self.retransmitted -= u32::from(again);
        packet.lost = true;
        packet.retransmitted = false;
        self.queue.unlink(n);
        self.missing.insert(Range::new(n, n + 1));
        Marked { packets: 1, again }
    }

    /// The original of packet `n` is lost; of a retransmission nothing is known.
    fn mark_original(&mut self, n: u64) -> u32 {
        let Some(packet) = self.queue.get_mut(n).filter(|p| !p.sacked && !p.lost) else { return 0 };
        if !packet.retransmitted {
            return self.mark(n).packets;
        }
        packet.lost = true;
        self.lost += 1;
        self.pipe -= 1;
        self.pipe_bytes -= packet.bytes();
        1
    }

    /// The first packet's original is lost (RFC 6582 §3.2).
    pub fn mark_first(&mut self) -> u32 {
        self.mark_original(self.queue.start())
    }

    /// Notes that the part of the first packet below `end` was retransmitted. Once that is acknowledged, the rest is lost: it has not left again.
    pub fn mark_rest(&mut self, end: u64) {
        let is_part = |first: &Sent| first.seq().start < end && end <= self.una;
        if self.queue.front().is_some_and(is_part) {
            self.mark(self.queue.start());
        }
    }

    /// Marks what was sent before `newest` and at least `patience` ago: RFC 8985 §6.2 step 5.
    pub fn mark_expired(&mut self, now: Instant, newest: SendKey, patience: Duration) -> Marked {
        let mut marked = Marked::default();
        while let Some((n, packet)) = self.queue.oldest()
            && packet.key() < newest
            && packet.sent_at + patience <= now
        {
            let one = self.mark(n);
            marked.packets += one.packets;
            marked.again |= one.again;
        }
        marked
    }

    /// When the last of the packets sent before `newest` was sent, of those whose fate is open. `newest` must not decrease.
    pub fn last_sent_before(&mut self, newest: SendKey) -> Option<Instant> {
        self.queue.last_before(newest).map(|p| p.sent_at)
    }

    /// Marks every packet above which `threshold` packets are SACKed: RFC 6675 §4, `IsLost`, counted in packets.
    pub fn mark_below_sacked(&mut self, threshold: u64) -> u32 {
        let mut above = 0;
        let mut limit = None;
        for run in self.sacked.iter().rev() {
            if above + run.len() >= threshold {
                limit = Some(run.end - (threshold - above));
                break;
            }
            above += run.len();
        }
        limit.map_or(0, |limit| self.mark_below(limit))
    }

    /// Marks every packet that is not SACKed and lies `threshold` packets or more below the highest that is: forward
    /// acknowledgments (Mathis and Mahdavi, SIGCOMM 1996).
    pub fn mark_below_highest(&mut self, threshold: u64) -> u32 {
        let limit = self.sacked.last().map(|run| run.end.saturating_sub(threshold));
        limit.map_or(0, |limit| self.mark_below(limit))
    }

    /// Marks every packet below number `limit` that is not SACKed.
    fn mark_below(&mut self, limit: u64) -> u32 {
        let mut marked = 0;
        let mut at = self.judged.max(self.queue.start());
        if at >= limit {
            return 0;
        }
        while let Some(hole) = self.first_hole(Range::new(at, limit)) {
            marked += (hole.start..hole.end).map(|n| self.mark_original(n)).sum::<u32>();
            at = hole.end;
        }
        self.judged = self.judged.max(limit);
        marked
    }

    /// After a timeout: everything is lost but what is SACKED, and what was sent so recently (`patience`) that it may
    /// still arrive, as Linux has it; the first packet always is (RFC 8985 §6.3).
    pub fn mark_all(&mut self, now: Instant, patience: Duration) -> u32 {
        let first = self.queue.start();
        // RFC 2018 §8: a receiver that has discarded what it SACKed would never acknowledge it.
        if self.queue.front().is_some_and(|p| p.sacked) {
            self.forget_sacks();
        }
        let mut marked = 0;
        for n in first..self.queue.end() {
            let recent = self.queue.get(n).is_some_and(|p| p.sent_at + patience > now);
            if n == first || !recent {
                marked += self.mark(n).packets;
            }
        }
        marked
    }

    fn forget_sacks(&mut self) {
        for n in self.queue.start()..self.queue.end() {
            if let Some(packet) = self.queue.get_mut(n).filter(|p| p.sacked) {
                packet.sacked = false;
                self.pipe += 1;
                self.pipe_bytes += packet.bytes();
            }
        }
        self.sacked.clear();
        self.judged = 0;
        self.reopen();
    }

    /// Nothing is lost after all: an undo.
    pub fn unmark(&mut self) {
        for n in self.queue.start()..self.queue.end() {
            if let Some(packet) = self.queue.get_mut(n).filter(|p| p.lost) {
                packet.lost = false;
                self.pipe += 1;
                self.pipe_bytes += packet.bytes();
            }
        }
        self.lost = 0;
        self.missing.clear();
        self.judged = 0;
        self.reopen();
    }

    fn reopen(&mut self) {
        self.queue.relink(|p| !p.sacked && (!p.lost || p.retransmitted));
    }

    /// Cuts every packet that has more than `most` payload bytes and is not SACKed into packets of at most that, which are lost if
    /// `lost`. Returns how many are newly lost.
    pub fn cut_to(&mut self, most: u64, lost: bool) -> u32 {
        let is_larger = |packet: &Sent| !packet.sacked && packet.bytes() > most;
        if !self.queue.packets().any(is_larger) {
            return 0;
        }
        let first = self.queue.start();
        let before = core::mem::replace(&mut self.queue, SentQueue::begun_at(first));
        (self.lost, self.retransmitted, self.pipe, self.pipe_bytes, self.judged) = (0, 0, 0, 0, first);
        self.sacked.clear();
        self.missing.clear();
        let mut newly_lost = 0;
        for packet in before.into_packets() {
            if !is_larger(&packet) {
                self.put_back(packet);
                continue;
            }
            for mut part in packet.parts(self.una, most) {
                if lost {
                    newly_lost += u32::from(!part.lost || part.retransmitted);
                    (part.lost, part.retransmitted) = (true, false);
                }
                self.put_back(part);
            }
        }
        self.reopen();
        newly_lost
    }

    /// Appends a packet with its marks.
    fn put_back(&mut self, packet: Sent) {
        let n = self.queue.end();
        let in_flight = if packet.sacked { 0 } else { u32::from(!packet.lost) + u32::from(packet.retransmitted) };
        self.pipe += in_flight;
        self.pipe_bytes += u64::from(in_flight) * packet.bytes();
        self.lost += u32::from(packet.lost);
        self.retransmitted += u32::from(packet.retransmitted);
        if packet.sacked {
            self.sacked.insert(Range::new(n, n + 1));
        } else if packet.lost && !packet.retransmitted {
            self.missing.insert(Range::new(n, n + 1));
        }
        self.queue.push(packet);
    }

    fn first_hole(&self, within: Range) -> Option<Range> {
        self.sacked.gaps(within).next()
    }

    /// The lowest packet not SACKed with a number from `from` on, below the highest SACKed.
    pub fn hole_from(&self, from: u64) -> Option<u64> {
        let end = self.sacked.last()?.end;
        self.first_hole(Range::new(from.max(self.queue.start()), end)).map(|hole| hole.start)
    }

    /// The number of the last packet that is not SACKed.
    pub fn last_open(&self) -> Option<u64> {
        let end = self.queue.end();
        let end = self.sacked.last().filter(|run| run.end == end).map_or(end, |run| run.start);
        (end > self.queue.start()).then(|| end - 1)
    }

    /// True if packet `n` waits to be retransmitted.
    pub fn is_missing(&self, n: u64) -> bool {
        self.missing.contains(n)
    }
}

#[cfg(test)]
impl Scoreboard {
    /// Counts everything afresh and compares.
    pub fn audit(&self) {
        let packets: Vec<(u64, &Sent)> =
            (self.queue.start()..self.queue.end()).filter_map(|n| Some((n, self.queue.get(n)?))).collect();
        let count = |is: fn(&Sent) -> bool| packets.iter().filter(|(_, p)| is(p)).count() as u32;
        assert_eq!(self.lost, count(|p| p.lost));
        assert_eq!(self.retransmitted, count(|p| p.retransmitted));
        assert_eq!(self.sacked(), count(|p| p.sacked));
        assert_eq!(count(|p| p.sacked && (p.lost || p.retransmitted)), 0);
        let in_flight = |p: &Sent| if p.sacked { 0 } else { u32::from(!p.lost) + u32::from(p.retransmitted) };
        assert_eq!(self.pipe, packets.iter().map(|(_, p)| in_flight(p)).sum::<u32>());
        assert_eq!(self.pipe_bytes, packets.iter().map(|(_, p)| u64::from(in_flight(p)) * p.bytes()).sum::<u64>());
        for (n, p) in packets {
            assert_eq!(self.sacked.contains(n), p.sacked);
            assert_eq!(self.missing.contains(n), p.lost && !p.retransmitted);
        }
        let (start, end) = (self.queue.start(), self.queue.end());
        let bounds =
            |set: &RangeSet| set.first().is_none_or(|r| r.start >= start) && set.last().is_none_or(|r| r.end <= end);
        assert!(bounds(&self.sacked) && bounds(&self.missing));
    }
}
