//! One direction of a terminated connection: bytes that the box has acknowledged to their sender and owes to their receiver.

use super::pace::Pace;
use anabranch_units::{Instant, SeqNumber};
use anabranch_wire::{Flags, Segment};
use bytes::Bytes;
use std::collections::VecDeque;

/// Timeouts without an answer after which the receiver counts as gone: R2 of RFC 9293 §3.8.3, with Linux's number.
const PATIENCE: u32 = 15;

/// A host as its SYN describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hello {
    /// Initial sequence number.
    pub isn: SeqNumber,
    /// Largest payload that it takes.
    pub mss: u16,
    /// Window scale.
    pub scale: Option<u8>,
    /// Window of the SYN itself.
    pub window: u16,
}

impl Hello {
    /// The host that sends this SYN.
    pub fn of(syn: &Segment) -> Self {
        // RFC 9293 §3.7.1: 536 where the option is missing.
        let mss = syn.options.mss().unwrap_or(536).max(1);
        Self { isn: syn.seq, mss, scale: syn.options.window_scale(), window: syn.window }
    }
}

/// A segment that the box sends or retransmits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Number of the first byte.
    pub seq: SeqNumber,
    /// Bytes of the segment.
    pub payload: Bytes,
    /// Whether the stream ends with it.
    pub fin: bool,
    /// Whether the box has nothing behind it.
    pub last: bool,
}

/// A stream, in offsets from its initial sequence number: the SYN is 0, the first byte 1.
#[derive(Debug)]
pub(super) struct Stream {
    isn: SeqNumber,
    /// Acknowledged by the receiver.
    una: u64,
    /// The next to be sent.
    next: u64,
    /// The end of all that was ever sent.
    sent: u64,
    /// The end of the bytes that came; those from `una` on are held.
    end: u64,
    held: VecDeque<u8>,
    /// The sender's FIN came, behind `end`.
    fin: bool,
    capacity: u64,
    /// The end of the receiver's window.
    edge: u64,
    /// Scale of the receiver's windows, and so of those that the box announces in its place.
    scale: u8,
    segment: u64,
    pace: Pace,
    /// When the timer expires.
    timer: Option<Instant>,
    /// Expiries since the last segment of the receiver.
    unheard: u32,
    /// The segment at `una` is due once more, of at most so many bytes.
    again: Option<u64>,
    /// The acknowledgment and the end of the window that the sender was last sent.
    told: (u64, u64),
}

impl Stream {
    /// A stream between two hosts, through a buffer of so many bytes.
    pub fn new(sender: Hello, receiver: Hello, capacity: u64) -> Self {
        // RFC 7323 §2.2: both SYNs have the option, or no window is scaled.
        let scaled = sender.scale.is_some() && receiver.scale.is_some();
        let scale = if scaled { receiver.scale.unwrap_or(0).min(14) } else { 0 };
        let segment = u64::from(receiver.mss);
        Self {
            isn: sender.isn,
            una: 1,
            next: 1,
            sent: 1,
            end: 1,
            held: VecDeque::new(),
            fin: false,
            capacity,
            edge: 1 + u64::from(receiver.window),
            scale,
            segment,
            pace: Pace::new(segment),
            timer: None,
            unheard: 0,
            again: None,
            told: (1, 1 + u64::from(receiver.window).min(capacity)),
        }
    }

    /// The next number that the sender has not been acknowledged. Its FIN is not acknowledged before the receiver has all, so no sender
    /// closes over bytes that the box may lose (RFC 3135 §4.1.1).
    fn acknowledged(&self) -> u64 {
        self.end + u64::from(self.fin && self.una > self.end)
    }

    /// The end of the stream as far as it came.
    fn limit(&self) -> u64 {
        self.end + u64::from(self.fin)
    }

    /// Whether the receiver has acknowledged the sender's FIN.
    pub fn is_over(&self) -> bool {
        self.fin && self.una > self.end
    }

    /// When the timer expires; [`Instant::MAX`] for never.
    pub fn due(&self) -> Instant {
        self.timer.unwrap_or(Instant::MAX)
    }

    /// The number behind all that was sent to the receiver.
    pub fn after(&self) -> SeqNumber {
        self.isn.at(self.sent)
    }

    /// Whether a reset of the sender lies in its window (RFC 9293 §3.10.7.4).
    pub fn accepts_reset(&self, seq: SeqNumber) -> bool {
        let at = seq.offset_from(self.isn, self.end);
        at.is_some_and(|at| (self.acknowledged()..=self.una + self.capacity + 1).contains(&at))
    }

    /// Takes a segment of the sender. True if it is to be answered, whether or not anything came with it.
    pub fn take(&mut self, segment: &Segment) -> bool {
        let Some(at) = segment.seq.offset_from(self.isn, self.end) else { return true };
        let (len, room) = (segment.payload.len() as u64, self.una + self.capacity);
        if at <= self.end && !self.fin {
            // Bytes beyond the buffer are not acknowledged, so they come again; and so do those out of order.
            let fresh = (self.end - at).min(len)..(room.saturating_sub(at)).min(len);
            if !fresh.is_empty() {
                self.held.extend(&segment.payload[fresh.start as usize..fresh.end as usize]);
                self.end += fresh.end - fresh.start;
            }
            self.fin = segment.flags.has(Flags::FIN) && at + len == self.end;
        }
        segment.seq_len() > 0 || !(self.acknowledged()..=room + 1).contains(&at)
    }

    /// Takes an acknowledgment of the receiver.
    pub fn heard(&mut self, now: Instant, segment: &Segment) {
        self.unheard = 0;
        let ack = segment.ack.offset_from(self.isn, self.una).filter(|ack| (self.una..=self.sent).contains(ack));
        let Some(ack) = ack.filter(|_| !segment.flags.has(Flags::SYN)) else { return };
        let edge = ack + (u64::from(segment.window) << self.scale);
        let is_update = edge != self.edge;
        self.edge = self.edge.max(edge);
        if ack > self.una {
            let bytes = ack - self.una;
            self.held.drain(..(ack.min(self.end) - self.una.min(self.end)) as usize);
            (self.una, self.next) = (ack, self.next.max(ack));
            if self.pace.on_progress(now, ack, bytes) {
                self.again = Some(self.segment);
            }
            self.timer = (self.sent > self.una).then(|| now + self.pace.timeout());
        } else if self.sent > self.una && segment.seq_len() == 0 && !is_update {
            // RFC 5681 §2: a duplicate acknowledgment.
            if self.pace.on_duplicate(self.una, self.sent) {
                self.again = Some(self.segment);
            }
        }
    }

    /// The timer expires. False if the receiver is given up.
    pub fn expire(&mut self, now: Instant) -> bool {
        self.unheard += 1;
        if self.edge <= self.una && self.una < self.end {
            // RFC 9293 §3.8.6.1: a byte beyond a window of zero has the receiver say what its window is.
            self.again = Some(1);
            self.pace.back_off();
        } else {
            self.pace.on_timeout(self.una, self.sent);
            self.next = self.una;
        }
        self.timer = Some(now + self.pace.timeout());
        self.unheard <= PATIENCE
    }

    /// The next segment that may be sent to the receiver.
    pub fn poll(&mut self, now: Instant) -> Option<Piece> {
        let again = self.again.take().filter(|_| self.una < self.limit());
        let (at, most) = again.map_or((self.next, self.segment.min(self.room())), |most| (self.una, most));
        let held = self.end.saturating_sub(at);
        let len = held.min(most);
        let fin = self.fin && at + len == self.end;
        self.watch(now);
        if len == 0 && !fin || at >= self.limit() || again.is_none() && self.waits(len, held) {
            return None;
        }
        let begin = (at - self.una) as usize;
        let payload = self.held.range(begin..begin + len as usize).copied().collect::<Vec<u8>>().into();
        let end = at + len + u64::from(fin);
        if again.is_none() {
            self.next = end;
            if end > self.sent {
                self.pace.on_sent(now, end);
            }
        }
        self.sent = self.sent.max(end);
        Some(Piece { seq: self.isn.at(at), payload, fin, last: at + len == self.end })
    }

    /// Bytes that both windows admit.
    fn room(&self) -> u64 {
        (self.una + self.pace.window()).min(self.edge).saturating_sub(self.next)
    }

    /// Whether a short segment waits for a wider window: never if nothing is under way (RFC 9293 §3.8.6.2.1).
    fn waits(&self, len: u64, held: u64) -> bool {
        len < held.min(self.segment) && self.next > self.una
    }

    /// Keeps the timer while something is owed to the receiver.
    fn watch(&mut self, now: Instant) {
        if self.timer.is_none() && self.una < self.limit() {
            self.timer = Some(now + self.pace.timeout());
        }
    }

    /// The next number expected of the sender, and the end of its window.
    fn news(&self) -> (u64, u64) {
        let (told, edge) = (self.told.1, self.una + self.capacity);
        // RFC 9293 §3.8.6.2.2: the window grows in steps that are worth a segment, and of a quarter, so that few updates are needed.
        let step = self.segment.min(self.capacity / 2).max(self.capacity / 4);
        (self.acknowledged(), if edge >= told + step { edge } else { told })
    }

    /// Whether the sender has not been sent the latest.
    pub fn has_news(&self) -> bool {
        self.news() != self.told
    }

    /// Acknowledgment number and window field of a segment to the sender.
    pub fn tell(&mut self) -> (SeqNumber, u16) {
        self.told = self.news();
        let (ack, edge) = self.told;
        let window = edge.saturating_sub(ack) >> self.scale;
        (self.isn.at(ack), window.min(u64::from(u16::MAX)) as u16)
    }
}
