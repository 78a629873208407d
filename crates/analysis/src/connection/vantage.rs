//! One connection as seen beside one of its hosts.

use super::fold::Fold;
use super::half::Half;
use super::notes::Notes;
use super::opening::Opening;
use crate::frames::{Frame, Place};
use anabranch_observer::{Observer, Unfollowed};
use anabranch_units::{ConnId, Duration, Instant, PathId, Range, SeqNumber, Side};
use anabranch_wire::Flags;
use std::collections::VecDeque;

/// Longest time between two sightings of one packet at the interfaces of a host.
const SIGHTING: Duration = Duration::from_millis(1);
/// Most packets that are remembered for it.
const MOST_RECENT: usize = 512;

/// One subflow: both directions (client's first), and its handshake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    pub halves: [Half; 2],
    pub opening: Opening,
    pub first: Option<Instant>,
    pub last: Instant,
    /// FINs of the client and the server that were acknowledged.
    pub fins_acked: [bool; 2],
}

/// The facts that are the same in two sightings of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    flow: usize,
    from: Side,
    seq: SeqNumber,
    ack: SeqNumber,
    id: u16,
    len: usize,
    flags: Flags,
}

pub(crate) struct Vantage {
    pub near: Side,
    pub flows: Vec<Flow>,
    observer: Observer,
    pub fold: Fold,
    pub notes: Notes,
    recent: VecDeque<(Instant, Place, Mark)>,
    places: Vec<Place>,
    /// Second sightings of packets.
    pub sightings: u64,
    pub packets: u64,
    pub first: Instant,
    pub last: Instant,
}

/// The index of a host's half.
pub(crate) fn half(side: Side) -> usize {
    usize::from(side == Side::Server)
}

impl Vantage {
    pub fn new(near: Side, number: u32, begin: Instant) -> Self {
        Self {
            near,
            flows: Vec::new(),
            observer: Observer::new(near, ConnId(number)),
            fold: Fold::new(begin),
            notes: Notes::default(),
            recent: VecDeque::new(),
            places: Vec::new(),
            sightings: 0,
            packets: 0,
            first: begin,
            last: begin,
        }
    }

    /// The data that the observer could not follow.
    pub fn unfollowed(&self) -> Unfollowed {
        self.observer.unfollowed()
    }

    /// Takes a packet of subflow `flow`, sent by `from`; false if it is a second sighting.
    pub fn packet(&mut self, frame: &Frame, flow: usize, from: Side) -> bool {
        if self.was_seen(frame, flow, from) {
            self.sightings += 1;
            return false;
        }
        let (now, segment) = (frame.now, &frame.packet.segment);
        self.packets += 1;
        self.last = self.last.max(now);
        if self.flows.len() <= flow {
            self.flows.resize_with(flow + 1, Flow::default);
        }
        let of = &mut self.flows[flow];
        of.first.get_or_insert(now);
        of.last = now;
        of.opening.take(now, from, segment);
        let seen = of.halves[half(from)].add(segment);
        let acked = segment.flags.has(Flags::ACK).then(|| of.halves[half(from.peer())].acked(segment.ack)).flatten();
        let theirs = &of.halves[half(from.peer())];
        of.fins_acked[half(from.peer())] |= theirs.fin && acked.is_some_and(|acked| acked > theirs.nxt);
        let window = of.halves[half(from)].window(&of.halves[half(from.peer())], segment);
        self.notes.take(now, flow, from, segment);
        let sent = from == self.near;
        let path = PathId(flow as u8);
        if sent {
            let syn = segment.flags.has(Flags::SYN);
            let seen = if syn { super::half::Seen { payload: Range::new(0, 1), again: false } } else { seen };
            if !seen.payload.is_empty() {
                self.fold.path(flow).sending.sent(now, seen);
            }
        }
        self.observer.packet(now, sent, path, &frame.packet, &mut self.fold);
        if !sent && !segment.flags.has(Flags::RST) {
            let counts = segment.flags.has(Flags::ACK)
                && (segment.options.dss().is_some() || self.fold.connected == Some(false));
            let sacks = !segment.options.sack().is_empty();
            self.fold.heard(now, flow, acked, sacks, counts.then_some(window));
        }
        true
    }

    /// The packet was captured on another interface of the host a moment ago.
    fn was_seen(&mut self, frame: &Frame, flow: usize, from: Side) -> bool {
        let segment = &frame.packet.segment;
        let mark = Mark {
            flow,
            from,
            seq: segment.seq,
            ack: segment.ack,
            id: frame.id,
            len: segment.payload.len(),
            flags: segment.flags,
        };
        if !self.places.contains(&frame.place) && self.places.len() < MOST_RECENT {
            self.places.push(frame.place);
        }
        let old = |(at, ..): &(Instant, Place, Mark)| frame.now.since(*at) > SIGHTING;
        while self.recent.len() >= MOST_RECENT || self.recent.front().is_some_and(old) {
            self.recent.pop_front();
        }
        let again = |(_, place, known): &(Instant, Place, Mark)| *known == mark && *place != frame.place;
        let seen = self.places.len() > 1 && self.recent.iter().any(again);
        if !seen {
            self.recent.push_back((frame.now, frame.place, mark));
        }
        seen
    }

    /// The connection was seen until its last packet.
    pub fn finish(&mut self) {
        let last = self.last;
        self.fold.outgoing.finish(last);
        for (n, carried) in self.fold.carried.iter_mut().enumerate() {
            let over = self.flows.get(n).is_some_and(|flow| flow.opening.reset.is_some());
            if !over {
                carried.sending.finish(last);
            }
        }
    }
}

impl Flow {
    /// Both ends closed it, or one reset it.
    pub fn is_over(&self) -> bool {
        self.opening.reset.is_some() || self.fins_acked == [true; 2]
    }

    /// The client's sequence began with this number.
    pub fn began_with(&self, isn: SeqNumber) -> bool {
        self.halves[0].isn() == Some(isn)
    }
}
