//! A connection that the box splits: its handshake, and then one stream per direction.

use super::stream::{Hello, Piece, Stream};
use super::{TerminateSpec, begins};
use crate::middle::{Carried, OptionKind, OptionSet, Passed, remove};
use anabranch_units::Instant;
use anabranch_wire::{Ecn, Flags, Packet, Segment};
use bytes::Bytes;

/// The direction in which a segment travels, as the box sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The box's own direction.
    Along,
    /// The other one.
    Against,
}

/// Both directions.
const SIDES: [Side; 2] = [Side::Along, Side::Against];

impl Side {
    /// The opposite direction.
    pub fn other(self) -> Self {
        SIDES[1 - self as usize]
    }
}

/// Addresses, ports and hosts of a direction's segments, without content.
fn envelope(carried: &Carried) -> Carried {
    let Packet { src, dst, segment } = &carried.packet;
    let segment = Segment { src_port: segment.src_port, dst_port: segment.dst_port, ..Segment::default() };
    Carried { packet: Packet { src: *src, dst: *dst, segment }, ..*carried }
}

/// A handshake that passes the box.
#[derive(Debug)]
pub(super) struct Opening {
    from: Side,
    syn: Hello,
    answer: Option<Hello>,
}

/// Strips from a SYN the options that the box does not speak. Its payload comes again, since nothing acknowledges it.
fn plain(syn: &mut Segment, spec: TerminateSpec) {
    let own = [OptionKind::SackPermitted, OptionKind::Timestamps];
    remove(syn, own.into_iter().fold(spec.options, OptionSet::with));
    syn.window = syn.window.min(u16::try_from(spec.buffer).unwrap_or(u16::MAX));
    syn.flags = Flags(syn.flags.0 & !(Flags::ECE.0 | Flags::CWR.0));
    (syn.ecn, syn.payload) = (Ecn::NotEct, Bytes::new());
}

impl Opening {
    /// A SYN passes.
    pub fn new(from: Side, carried: &mut Carried, spec: TerminateSpec) -> Self {
        plain(&mut carried.packet.segment, spec);
        Self { from, syn: Hello::of(&carried.packet.segment), answer: None }
    }

    /// Another segment before the handshake is complete: a SYN, repeated or not, and its answer pass.
    pub fn take(&mut self, from: Side, mut carried: Carried, spec: TerminateSpec, passed: &mut Passed) {
        let segment = &carried.packet.segment;
        if from == self.from && begins(segment) {
            *self = Self::new(from, &mut carried, spec);
        } else if from != self.from && segment.flags.has(Flags::SYN | Flags::ACK) {
            plain(&mut carried.packet.segment, spec);
            self.answer = Some(Hello::of(&carried.packet.segment));
        } else {
            return passed.dropped.push(carried.packet.len() as u32);
        }
        passed.push(from, carried);
    }

    /// The connection, if a segment completes its handshake.
    pub fn completed(&self, from: Side, carried: &Carried, spec: TerminateSpec) -> Option<Relay> {
        let (segment, answer) = (&carried.packet.segment, self.answer?);
        let completes = from == self.from
            && segment.flags.has(Flags::ACK)
            && !segment.flags.has(Flags::SYN)
            && segment.ack == answer.isn.at(1);
        completes.then(|| {
            let there = Stream::new(self.syn, answer, spec.buffer.into());
            let back = Stream::new(answer, self.syn, spec.buffer.into());
            let (to, fro) = (envelope(carried), envelope(&carried.answer(reversed(&carried.packet))));
            match from {
                Side::Along => Relay { streams: [there, back], envelopes: [to, fro] },
                Side::Against => Relay { streams: [back, there], envelopes: [fro, to] },
            }
        })
    }
}

/// A packet without content in the other direction.
fn reversed(packet: &Packet) -> Packet {
    let (src_port, dst_port) = (packet.segment.dst_port, packet.segment.src_port);
    Packet { src: packet.dst, dst: packet.src, segment: Segment { src_port, dst_port, ..Segment::default() } }
}

/// A connection that the box stands in.
#[derive(Debug)]
pub(super) struct Relay {
    /// Streams by the direction in which they flow.
    streams: [Stream; 2],
    /// Segments without content, by the direction in which they travel.
    envelopes: [Carried; 2],
}

impl Relay {
    /// When it acts of its own accord.
    pub fn due(&self) -> Instant {
        self.streams.iter().map(Stream::due).min().unwrap_or(Instant::MAX)
    }

    /// Whether both directions are closed and acknowledged.
    pub fn is_over(&self) -> bool {
        self.streams.iter().all(Stream::is_over)
    }

    /// The segment comes that completes the handshake: its receiver gets an acknowledgment, too.
    pub fn open(&mut self, now: Instant, from: Side, carried: &Carried, passed: &mut Passed) {
        let answer = self.hear(now, from, &carried.packet.segment);
        let owes = if answer { SIDES.to_vec() } else { vec![from] };
        self.speak(now, &owes, passed);
    }

    /// A segment comes. False if the connection ends with it.
    pub fn take(&mut self, now: Instant, from: Side, carried: &Carried, passed: &mut Passed) -> bool {
        let segment = &carried.packet.segment;
        if segment.flags.has(Flags::RST) {
            if !self.streams[from as usize].accepts_reset(segment.seq) {
                passed.dropped.push(carried.packet.len() as u32);
                return true;
            }
            passed.push(from, self.reset(now, from));
            return false;
        }
        let answer = self.hear(now, from, segment);
        self.speak(now, if answer { &SIDES[from.other() as usize..=from.other() as usize] } else { &[] }, passed);
        true
    }

    /// The streams of which a timer is due retransmit. False if a receiver does not answer: both ends get a reset.
    pub fn wake(&mut self, now: Instant, passed: &mut Passed) -> bool {
        let alive = self.streams.iter_mut().filter(|stream| stream.due() <= now).all(|stream| stream.expire(now));
        if !alive {
            SIDES.into_iter().for_each(|side| passed.push(side, self.reset(now, side)));
            return false;
        }
        self.speak(now, &[], passed);
        true
    }

    /// Takes what a segment says of both streams. True if its sender expects an answer.
    fn hear(&mut self, now: Instant, from: Side, segment: &Segment) -> bool {
        if segment.flags.has(Flags::ACK) {
            self.streams[from.other() as usize].heard(now, segment);
        }
        self.streams[from as usize].take(segment)
    }

    /// Sends what the windows admit, and acknowledgments without data where there is something to say, or one is `owed`.
    fn speak(&mut self, now: Instant, owed: &[Side], passed: &mut Passed) {
        for side in SIDES {
            let mut spoke = false;
            while let Some(piece) = self.streams[side as usize].poll(now) {
                let segment = self.segment(now, side, piece);
                passed.push(side, segment);
                spoke = true;
            }
            if !spoke && (owed.contains(&side) || self.streams[side.other() as usize].has_news()) {
                let seq = self.streams[side as usize].after();
                let segment = self.segment(now, side, Piece { seq, payload: Bytes::new(), fin: false, last: false });
                passed.push(side, segment);
            }
        }
    }

    /// A segment of the box.
    fn segment(&mut self, now: Instant, side: Side, piece: Piece) -> Carried {
        let (ack, window) = self.streams[side.other() as usize].tell();
        let push = if piece.last { Flags::PSH } else { Flags(0) };
        let fin = if piece.fin { Flags::FIN } else { Flags(0) };
        let mut carried = Carried { sent: now, ..self.envelopes[side as usize].clone() };
        let segment = &mut carried.packet.segment;
        (segment.seq, segment.ack, segment.window) = (piece.seq, ack, window);
        (segment.flags, segment.payload) = (Flags::ACK | push | fin, piece.payload);
        carried
    }

    /// A reset in a direction, behind all that the box sent there.
    fn reset(&mut self, now: Instant, side: Side) -> Carried {
        let seq = self.streams[side as usize].after();
        let mut carried = self.segment(now, side, Piece { seq, payload: Bytes::new(), fin: false, last: false });
        carried.packet.segment.flags = Flags::RST | Flags::ACK;
        carried
    }
}
