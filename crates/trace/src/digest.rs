//! A hash over all events.

use crate::{Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Direction, Duration, Instant, PathId, Side};
use core::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// Hashes the canonical encoding of events to 128 bits: of every event but [`Event::SubflowOfo`], and of links those that drop a
/// packet. What is left out follows from what takes part: a queue from what hosts send and what they receive.
///
/// An event is a run of 64-bit words. The first is its time in nanoseconds, its host and path in the upper 16 bits, and a multiple of
/// its tag, all combined by exclusive or; the second its first integer, in the same way with the number of the connection from bit 40
/// on and round to the lowest ones. Its other integers follow, small ones two to a word, with a zero behind an odd number of words. The
/// tag fixes that number. No float and no wall time takes part, so equal digests mean equal runs on every
/// machine.
///
/// The words are absorbed in pairs, each by one multiplication to 128 bits (see `State`): the hash detects mistakes,
/// not attackers, and the next event need not wait for a buffer.
///
/// Each host's events are hashed in their order, those of links one by one, and their hashes added: one host may be ahead of the other.
#[derive(Clone)]
pub struct Digest {
    /// The client's events so far, then the server's.
    hosts: [State; 2],
    /// The hashes of the events of links, added up.
    links: [u64; 2],
}

impl Digest {
    /// The digest of no events.
    pub const fn new() -> Self {
        Self { hosts: [State::START; 2], links: [0; 2] }
    }

    /// The hash as 32 hexadecimal digits.
    pub fn finish(self) -> String {
        let [client, server] = self.hosts;
        let [x, y] = self.links;
        let State(a, b) = State::START.absorb(client.0, client.1).absorb(server.0, server.1).absorb(x, y).mixed();
        format!("{a:016x}{b:016x}")
    }

    /// Adds an event of the network.
    #[cold]
    #[inline(never)]
    fn record_link(&mut self, now: Instant, origin: Origin, event: &Event) {
        if matches!(event, Event::Link { what, .. } if what.is_of_queue()) {
            return;
        }
        let State(x, y) = encode(Start { state: State::START, now, origin }, event).mixed();
        self.links = [self.links[0].wrapping_add(x), self.links[1].wrapping_add(y)];
    }
}

/// The state after the words so far.
#[derive(Clone, Copy)]
struct State(u64, u64);

impl State {
    /// The first digits of π's fraction.
    const START: Self = Self(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);

    /// Absorbs two words. The product's halves are swapped and combined with their factors, so that no information is
    /// lost where the product is small or even.
    #[inline(always)]
    fn absorb(self, x: u64, y: u64) -> Self {
        let (a, b) = (self.0 ^ x, self.1 ^ y);
        let product = u128::from(a) * u128::from(b);
        Self(b ^ (product >> 64) as u64, a ^ product as u64)
    }

    /// The last words affect every bit.
    fn mixed(self) -> Self {
        (0..4).fold(self, |state, round| state.absorb(0, round))
    }
}

/// Tags are multiplied by it: 2⁶⁴ divided by the golden ratio, odd.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The beginning of an event.
#[derive(Clone, Copy)]
struct Start {
    state: State,
    now: Instant,
    origin: Origin,
}

impl Start {
    /// Absorbs a whole event.
    #[inline(always)]
    fn put<const N: usize>(self, tag: u8, fields: [u64; N]) -> State {
        let Origin { connection, path, host } = self.origin;
        let host = host.map_or(0, |side| side as u64);
        let place = host << 56 | u64::from(path.0) << 48;
        let (first, others) = fields.split_first().map_or((0, &[][..]), |(first, others)| (*first, others));
        let second = first ^ u64::from(connection.0).rotate_left(40);
        let mut state = self.state.absorb(self.now.as_nanos() ^ place ^ u64::from(tag).wrapping_mul(SPREAD), second);
        for pair in others.chunks(2) {
            state = state.absorb(pair[0], pair.get(1).copied().unwrap_or(0));
        }
        state
    }
}

/// Two integers in one word.
#[inline(always)]
fn both(above: u64, below: u64) -> u64 {
    above.rotate_left(40) ^ below
}

/// Absorbs an event.
#[inline(always)]
fn encode(at: Start, event: &Event) -> State {
    // Tags are part of the encoding: a number never changes.
    match *event {
        Event::Written(r) => at.put(1, [r.start, r.end]),
        Event::Delivered(r) => at.put(2, [r.start, r.end]),
        Event::WriteEnd(end) => at.put(3, [end]),
        Event::DataSent { seq, data, kind } => at.put(4, [seq, data.start, both(kind as u64, data.end)]),
        Event::BoundAhead { since } => at.put(30, [since.as_nanos()]),
        Event::ControlSent { flags, again } => at.put(5, [(flags as u64) << 1 | again as u64]),
        Event::DataArrived { data, new, ofo } => at.put(7, [data.start, data.end, both(new, ofo)]),
        Event::SubflowOfo(_) => at.state,
        Event::DataAcked(offset) => at.put(8, [offset]),
        Event::Window(w) => {
            // Samples are never u64::MAX long, so that value means "none".
            let rtt = w.rtt.unwrap_or(Duration::MAX).as_nanos();
            let windows = (w.cwnd as u64) << 32 | w.ssthresh as u64;
            at.put(9, [windows, both(w.in_flight as u64, w.srtt.as_nanos()), rtt])
        }
        Event::Recovery(phase) => at.put(10, [phase as u64]),
        Event::Lost { packets } => at.put(11, [packets as u64]),
        Event::Timeout { n } => at.put(12, [n as u64]),
        Event::TailLossProbe => at.put(13, []),
        Event::PathProbe => at.put(28, []),
        Event::Marked => at.put(31, []),
        Event::SegmentRequested { bps, size } => at.put(33, [bps, size]),
        Event::Undo => at.put(14, []),
        Event::IdleRestart => at.put(15, []),
        Event::Penalised => at.put(16, []),
        Event::WindowBlocked(blocked) => at.put(17, [blocked as u64]),
        Event::Stall => at.put(18, []),
        Event::Path(state) => at.put(19, [state as u64]),
        Event::Connected(mptcp) => at.put(20, [mptcp as u64]),
        Event::Fallback => at.put(21, []),
        Event::Closed(reason) => at.put(22, [reason as u64]),
        Event::Violation(rule) => at.put(23, [rule as u64]),
        Event::SchedulerValue { name, micro } => at.put(24, [xxh3_64(name.as_bytes()), micro as u64]),
        Event::Scheduler(name) => at.put(29, [xxh3_64(name.base.as_bytes()), xxh3_64(name.suffix.as_bytes())]),
        Event::Link { direction, size, what } => {
            let packet = (size as u64) << 1 | direction as u64;
            match what {
                LinkEvent::Dropped(cause) => at.put(27, [packet, cause as u64]),
                LinkEvent::Marked => at.put(32, [packet]),
                LinkEvent::Enqueued { .. } | LinkEvent::Departed => at.state,
            }
        }
    }
}

impl Recorder for Digest {
    #[inline(always)]
    fn record(&mut self, now: Instant, origin: Origin, event: &Event) {
        match origin.host {
            Some(side) => {
                let state = &mut self.hosts[usize::from(side == Side::Server)];
                *state = encode(Start { state: *state, now, origin }, event);
            }
            None => self.record_link(now, origin, event),
        }
    }

    #[inline(always)]
    fn link(&mut self, now: Instant, path: PathId, direction: Direction, size: u32, what: LinkEvent) {
        if !what.is_of_queue() {
            self.record_link(now, Origin::network(path), &Event::Link { direction, size, what });
        }
    }

    fn needs_order(&self) -> bool {
        false
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Digest").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DropCause, SendKind, WindowChange};
    use anabranch_units::{ConnId, PathId, Range};

    const ORIGIN: Origin = Origin { host: Some(Side::Server), connection: ConnId(3), path: PathId(1) };

    fn digest(events: &[(u64, Origin, Event)]) -> String {
        let mut digest = Digest::new();
        for (ns, origin, event) in events {
            digest.record(Instant::from_nanos(*ns), *origin, event);
        }
        digest.finish()
    }

    /// The documented algorithm, written independently with sums and shifts.
    fn by_hand(words: &[u64]) -> String {
        const START: [u64; 2] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
        let absorbed = |words: &[u64]| {
            words.chunks_exact(2).fold(START, |state, pair| {
                let (a, b): (u64, u64) = (state[0] ^ pair[0], state[1] ^ pair[1]);
                let high = ((u128::from(a) * u128::from(b)) / (1 << 64)) as u64;
                [b ^ high, a ^ a.wrapping_mul(b)]
            })
        };
        // No event of the client, those of the server, none of a link.
        let [a, b] = absorbed(&[START, absorbed(words), [0; 2], [0, 0], [0, 1], [0, 2], [0, 3]].concat());
        format!("{a:016x}{b:016x}")
    }

    /// The first word of an event at `time` with `tag`, at [`ORIGIN`].
    fn head(time: u64, tag: u64) -> u64 {
        (time + (2 << 56) + (1 << 48)) ^ tag.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn the_encoding_is_as_documented() {
        let sent = Event::DataSent { seq: 1, data: Range::new(1400, 2800), kind: SendKind::Retransmission };
        let words = [head(7, 4), 1 + (3 << 40), 1400, 2800 + (4 << 40)];
        assert_eq!(digest(&[(7, ORIGIN, sent)]), by_hand(&words));
        let arrived = Event::DataArrived { data: Range::new(1400, 2800), new: 1400, ofo: 9000 };
        assert_eq!(
            digest(&[(7, ORIGIN, arrived)]),
            by_hand(&[head(7, 7), 1400 + (3 << 40), 2800, 9000 + (1400 << 40)])
        );
        assert_eq!(digest(&[(7, ORIGIN, Event::DataAcked(1400))]), by_hand(&[head(7, 8), 1400 + (3 << 40)]));
        // An odd number of words is filled up with a zero.
        let delivered = Event::Delivered(Range::new(1400, 2800));
        assert_eq!(digest(&[(7, ORIGIN, delivered)]), by_hand(&[head(7, 2), 1400 + (3 << 40), 2800, 0]));
        assert_eq!(digest(&[(7, ORIGIN, Event::Stall)]), by_hand(&[head(7, 18), 3 << 40]));
        assert_eq!(digest(&[]), by_hand(&[]));
        // A great number's upper bits come round to the lowest ones.
        let late = Origin { connection: ConnId(0x0500_0003), ..ORIGIN };
        assert_eq!(digest(&[(7, late, Event::Stall)]), by_hand(&[head(7, 18), (3 << 40) + 5]));
    }

    #[test]
    fn order_and_number_of_events_take_part() {
        let event = |at, offset| (at, ORIGIN, Event::DataAcked(offset));
        let mut seen = std::collections::BTreeSet::new();
        for first in 0..40 {
            for second in 0..40 {
                assert!(seen.insert(digest(&[event(first, second)])));
                assert!(seen.insert(digest(&[event(1, first), event(1, second)])));
                assert!(seen.insert(digest(&[event(0, 0), event(first, 0), event(second, 7)])));
            }
        }
    }

    #[test]
    fn one_host_may_be_ahead_of_the_other_and_of_the_links() {
        let at = |ns, side, offset| (ns, Origin { host: Some(side), ..ORIGIN }, Event::DataAcked(offset));
        let drop = |ns| {
            let what = LinkEvent::Dropped(DropCause::Loss);
            (ns, Origin::network(PathId(1)), Event::Link { direction: Direction::Down, size: 1500, what })
        };
        let (client, server) =
            ([at(1, Side::Client, 7), at(9, Side::Client, 8)], [at(2, Side::Server, 7), at(3, Side::Server, 5)]);
        let whole = digest(&[client[0], drop(1), server[0], server[1], drop(8), client[1]]);
        assert_eq!(digest(&[client[0], client[1], drop(8), server[0], server[1], drop(1)]), whole);
        assert_ne!(digest(&[client[1], client[0], drop(1), server[0], server[1], drop(8)]), whole);
        assert_ne!(digest(&[client[0], client[1], server[0], server[1], drop(1)]), whole);
        // Two equal drops are not none.
        assert_ne!(digest(&[drop(1), drop(1)]), digest(&[]));
    }

    #[test]
    fn every_bit_of_an_event_reaches_half_of_the_digest() {
        let number = |text: String| u128::from_str_radix(&text, 16).unwrap();
        let events = |bit: Option<u32>, fields: bool| {
            let flip = bit.map_or(0, |bit| 1 << bit);
            let (time, offset) = if fields { (5, 1400 ^ flip) } else { (5 ^ flip, 1400) };
            number(digest(&[(time, ORIGIN, Event::DataAcked(offset))]))
        };
        for (bit, fields) in (0..64).flat_map(|bit| [(bit, false), (bit, true)]) {
            let changed = (events(Some(bit), fields) ^ events(None, fields)).count_ones();
            assert!((36..=92).contains(&changed), "bit {bit}: {changed} of 128 changed");
        }
    }

    #[test]
    fn every_field_takes_part() {
        let window = WindowChange { cwnd: 10, ssthresh: 20, in_flight: 5, srtt: Duration::from_millis(9), rtt: None };
        let base = digest(&[(1, ORIGIN, Event::Window(window))]);
        let others = [
            (2, ORIGIN, Event::Window(window)),
            (1, Origin { host: Some(Side::Client), ..ORIGIN }, Event::Window(window)),
            (1, Origin { connection: ConnId(4), ..ORIGIN }, Event::Window(window)),
            (1, Origin { path: PathId(2), ..ORIGIN }, Event::Window(window)),
            (1, ORIGIN, Event::Window(WindowChange { cwnd: 11, ..window })),
            (1, ORIGIN, Event::Window(WindowChange { ssthresh: u32::MAX, ..window })),
            (1, ORIGIN, Event::Window(WindowChange { in_flight: 6, ..window })),
            (1, ORIGIN, Event::Window(WindowChange { srtt: Duration::ZERO, ..window })),
            (1, ORIGIN, Event::Window(WindowChange { rtt: Some(Duration::ZERO), ..window })),
        ];
        for other in others {
            assert_ne!(digest(&[other]), base, "{other:?}");
        }
        let value = |name| digest(&[(1, ORIGIN, Event::SchedulerValue { name, micro: 5 })]);
        assert_ne!(value("lambda"), value("delta"));
    }

    #[test]
    fn marks_take_part() {
        let link = |direction, what| (1, Origin::network(PathId(1)), Event::Link { direction, size: 1500, what });
        let marked = [Direction::Down, Direction::Up].map(|direction| digest(&[link(direction, LinkEvent::Marked)]));
        let dropped = digest(&[link(Direction::Down, LinkEvent::Dropped(DropCause::Queue))]);
        assert!(marked[0] != marked[1] && !marked.contains(&dropped) && !marked.contains(&digest(&[])));
        assert_ne!(digest(&[(1, ORIGIN, Event::Marked)]), digest(&[(1, ORIGIN, Event::Undo)]));
        let mut at_once = Digest::new();
        at_once.link(Instant::from_nanos(1), PathId(1), Direction::Down, 1500, LinkEvent::Marked);
        assert_eq!(at_once.finish(), marked[0]);
    }

    #[test]
    fn queues_take_no_part() {
        let acked = (1, ORIGIN, Event::DataAcked(7));
        let queue = |bytes| (1, ORIGIN, Event::SubflowOfo(bytes));
        let link = |what| (1, Origin::network(PathId(1)), Event::Link { direction: Direction::Down, size: 1500, what });
        let enqueued = link(LinkEvent::Enqueued { queue_packets: 3, queue_bytes: 4500 });
        assert_eq!(digest(&[queue(1400), enqueued, acked, link(LinkEvent::Departed), queue(0)]), digest(&[acked]));
    }

    #[test]
    fn a_packet_dropped_by_a_link_is_an_event_like_any_other() {
        let (mut shortly, mut fully) = (Digest::new(), Digest::new());
        for (n, direction) in (1..).zip([Direction::Down, Direction::Up]) {
            let (now, path, what) = (Instant::from_millis(n), PathId(n as u8), LinkEvent::Dropped(DropCause::Aqm));
            shortly.link(now, path, direction, 1500, what);
            fully.record(now, Origin::network(path), &Event::Link { direction, size: 1500, what });
        }
        assert_ne!(shortly.clone().finish(), digest(&[]));
        assert_eq!(shortly.finish(), fully.finish());
    }
}
