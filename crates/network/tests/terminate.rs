//! A box that terminates TCP: the segments that each end receives, and when.

mod common;

use anabranch_network::{
    Bottleneck, Carried, Change, Delivery, Markable, MiddleboxSpec, Network, QueueSpec, TerminateSpec, Topology,
};
use anabranch_trace::DropCause;
use anabranch_units::{Direction, Duration, Instant, SeqNumber};
use anabranch_wire::{Flags, MpJoin, MptcpOption, Packet, Segment, Timestamps};
use bytes::Bytes;
use common::{Log, bottleneck, deliver, path, us, way};

#[derive(Clone, Debug, PartialEq)]
struct Item(Carried);

impl Markable for Item {
    fn segment(&self) -> Option<Carried> {
        Some(self.0.clone())
    }

    fn of(carried: Carried) -> Option<Self> {
        Some(Self(carried))
    }
}

/// Initial sequence numbers of server and client.
const ISN: [u32; 2] = [u32::MAX - 500, 7000];
const PORTS: [u16; 2] = [80, 5000];
/// The round trip's parts: 10 ms each way, and 693 µs for a packet of 1040 bytes on its way down.
const MS: u64 = 1000;

/// A server (`Down` is from it) and a client, with a box between them.
struct Pair {
    network: Network<Item>,
    log: Log,
    /// The segments that arrived, in order.
    heard: Vec<(Instant, Direction, Segment)>,
}

fn terminate(buffer: u32) -> MiddleboxSpec {
    TerminateSpec { buffer, ..TerminateSpec::default() }.into()
}

impl Pair {
    fn new(boxes: &[MiddleboxSpec]) -> Self {
        let own = Bottleneck::Own(bottleneck(QueueSpec::Packets(1000)));
        let mut path = path("a", way(own, Duration::from_millis(10)));
        path.down.middleboxes = boxes.to_vec();
        let topology = Topology { paths: vec![path], links: Vec::new() };
        Self { network: Network::new(&topology, 1), log: Log::default(), heard: Vec::new() }
    }

    /// A connection that is established at 30 ms.
    fn open(buffer: u32) -> Self {
        let mut pair = Self::new(&[terminate(buffer)]);
        pair.send(0, Direction::Up, pair.syn(Direction::Up));
        pair.send(10 * MS, Direction::Down, pair.syn(Direction::Down));
        pair.send(21 * MS, Direction::Up, of(Direction::Up, 1, 1, b""));
        pair.until(32 * MS);
        pair.heard.clear();
        pair
    }

    fn syn(&self, from: Direction) -> Segment {
        let answer = if from == Direction::Down { Flags::ACK } else { Flags(0) };
        let mut syn = Segment { flags: Flags::SYN | Flags::ECE | answer, ..of(from, 0, 1, b"") };
        let join = MpJoin::Syn { backup: false, address_id: 1, token: 2, nonce: 3 };
        syn.options.set_mss(1000);
        syn.options.set_window_scale(7);
        syn.options.set_sack_permitted();
        syn.options.set_timestamps(Timestamps { val: 1, ecr: 0 });
        assert!(syn.options.push_mptcp(MptcpOption::Join(join)));
        syn
    }

    /// Everything that happens up to a time.
    fn until(&mut self, at: u64) {
        let all = deliver(&mut self.network, &mut self.log, us(at));
        let heard =
            |(at, Delivery { direction, item, .. }): (_, Delivery<Item>)| (at, direction, item.0.packet.segment);
        self.heard.extend(all.into_iter().map(heard));
    }

    fn send(&mut self, at: u64, direction: Direction, segment: Segment) {
        self.until(at);
        let hosts = [[10, 0, 0, 2], [10, 0, 0, 1]];
        let [src, dst] = [hosts[direction as usize], hosts[1 - direction as usize]];
        let packet = Packet { src: src.into(), dst: dst.into(), segment };
        let ends = if direction == Direction::Down { (1, 0) } else { (0, 1) };
        let size = packet.len() as u32;
        let item = Item(Carried { packet, ends, sent: us(at) });
        self.network.send(us(at), &mut self.log, 0, direction, size, item);
    }

    /// The segments that an end has received since the last question: times in ms, relative numbers, flags, bytes.
    fn hears(&mut self, direction: Direction, until: u64) -> Vec<(u64, u32, u32, Flags, usize)> {
        self.until(until);
        let (own, other) = (ISN[direction as usize], ISN[1 - direction as usize]);
        let mut found = Vec::new();
        self.heard.retain(|(at, to, segment)| {
            let Segment { seq, ack, flags, payload, .. } = segment;
            let row =
                (at.as_nanos() / 1_000_000, seq.0.wrapping_sub(own), ack.0.wrapping_sub(other), *flags, payload.len());
            found.extend((*to == direction).then_some(row));
            *to != direction
        });
        found
    }
}

/// A segment, with numbers relative to the initial ones.
fn of(direction: Direction, seq: u32, ack: u32, payload: &[u8]) -> Segment {
    let (own, other) = (direction as usize, 1 - direction as usize);
    Segment {
        src_port: PORTS[own],
        dst_port: PORTS[other],
        seq: SeqNumber(ISN[own].wrapping_add(seq)),
        ack: SeqNumber(ISN[other].wrapping_add(ack)),
        flags: Flags::ACK,
        window: 1000,
        payload: Bytes::copy_from_slice(payload),
        ..Segment::default()
    }
}

const PUSHED: Flags = Flags(Flags::ACK.0 | Flags::PSH.0);
const END: Flags = Flags(Flags::ACK.0 | Flags::PSH.0 | Flags::FIN.0);
const RESET: Flags = Flags(Flags::ACK.0 | Flags::RST.0);
use Direction::{Down, Up};

#[test]
fn handshakes_pass_without_what_the_box_does_not_speak() {
    let mut pair = Pair::new(&[terminate(30_000)]);
    pair.send(0, Up, pair.syn(Up));
    pair.send(10 * MS, Down, pair.syn(Down));
    pair.until(25 * MS);
    assert_eq!(pair.heard.len(), 2);
    for (_, _, syn) in &pair.heard {
        let options = &syn.options;
        assert_eq!((options.mss(), options.window_scale()), (Some(1000), Some(7)));
        assert!(!options.sack_permitted() && options.timestamps().is_none() && options.mptcp().is_empty());
        assert!(!syn.flags.has(Flags::ECE));
    }
    // The acknowledgment of the client ends the handshake; a repeated SYN/ACK is answered by the box.
    pair.heard.clear();
    pair.send(25 * MS, Up, of(Up, 1, 1, b""));
    assert_eq!(pair.hears(Up, 36 * MS), [(35, 1, 1, Flags::ACK, 0)]);
    pair.send(40 * MS, Down, pair.syn(Down));
    assert_eq!(pair.hears(Up, 60 * MS), [(50, 1, 1, Flags::ACK, 0)]);
    // The box has more room than the SYN of the server said.
    assert_eq!(pair.hears(Down, 60 * MS), [(35, 1, 1, Flags::ACK, 0)]);
    // One that stays open: options that are to pass.
    let passes = TerminateSpec { options: anabranch_network::OptionSet::default(), ..TerminateSpec::default() };
    let mut pair = Pair::new(&[passes.into()]);
    pair.send(0, Up, pair.syn(Up));
    pair.until(20 * MS);
    assert_eq!(pair.heard[0].2.options.mptcp().len(), 1);
}

#[test]
fn each_side_is_acknowledged_after_its_own_half_of_the_round_trip() {
    let mut pair = Pair::open(100_000);
    pair.send(40 * MS, Down, of(Down, 1, 1, &[5; 1000]));
    assert_eq!(pair.hears(Up, 60 * MS), [(50, 1, 1001, Flags::ACK, 0)]);
    assert_eq!(pair.hears(Down, 60 * MS), [(50, 1, 1, PUSHED, 1000)]);
    // The other way; the acknowledgment of the first segment comes with it.
    pair.send(60 * MS, Up, of(Up, 1, 1001, &[6; 300]));
    assert_eq!(pair.hears(Up, 80 * MS), [(70, 1, 1001, PUSHED, 300)]);
    assert_eq!(pair.hears(Down, 80 * MS), [(70, 1001, 301, Flags::ACK, 0)]);
}

#[test]
fn what_the_box_acknowledged_it_repeats_by_its_own_clock() {
    let mut pair = Pair::open(100_000);
    pair.send(40 * MS, Down, of(Down, 1, 1, &[5; 1000]));
    // No sample yet: 1 s, then twice as long each time. The server receives none of it.
    let repeats = pair.hears(Down, 16_000 * MS);
    assert_eq!(repeats.iter().map(|row| row.0).collect::<Vec<_>>(), [50, 1050, 3050, 7050, 15_050]);
    assert!(repeats.iter().all(|row| (row.1, row.4) == (1, 1000)));
    assert_eq!(pair.hears(Up, 16_000 * MS).len(), 1);
    pair.send(16_000 * MS, Up, of(Up, 1, 1001, b""));
    assert_eq!((pair.hears(Down, 90_000 * MS), pair.hears(Up, 90_000 * MS)), (vec![], vec![]));
}

#[test]
fn three_duplicates_repeat_one_segment() {
    let mut pair = Pair::open(100_000);
    for n in 0..5 {
        pair.send(40 * MS + n, Down, of(Down, 1 + 1000 * n as u32, 1, &[n as u8; 1000]));
    }
    assert_eq!(pair.hears(Down, 60 * MS).len(), 5);
    (0..3).for_each(|n| pair.send(60 * MS + n, Up, of(Up, 1, 1001, b"")));
    assert_eq!(pair.hears(Down, 80 * MS), []);
    pair.send(80 * MS, Up, of(Up, 1, 1001, b""));
    let again = pair.hears(Down, 100 * MS);
    assert_eq!(again.iter().map(|row| (row.0, row.1, row.4)).collect::<Vec<_>>(), [(90, 1001, 1000)]);
}

#[test]
fn the_buffer_bounds_what_is_acknowledged() {
    let mut pair = Pair::open(2500);
    for n in 0..4 {
        pair.send(40 * MS + n, Down, of(Down, 1 + 1000 * n as u32, 1, &[5; 1000]));
    }
    pair.until(60 * MS);
    let told =
        pair.heard.iter().filter(|(_, to, _)| *to == Up).map(|(.., segment)| segment.clone()).collect::<Vec<_>>();
    assert_eq!(told.last().map(|last| last.ack.0.wrapping_sub(ISN[0])), Some(2501));
    // Windows are scaled by 128: 2500 bytes are 19 units.
    assert!(told.iter().all(|told| told.window <= 19) && told.last().is_some_and(|last| last.window == 0), "{told:?}");
    // The client acknowledges; the window opens, and the server is informed.
    pair.heard.clear();
    pair.send(60 * MS, Up, of(Up, 1, 2501, b""));
    pair.until(80 * MS);
    let (at, _, opened) = pair.heard.iter().find(|(_, to, _)| *to == Up).cloned().unwrap();
    assert_eq!((at.as_nanos() / 1_000_000, opened.window), (70, 19));
}

#[test]
fn a_closed_window_is_probed_and_nothing_is_lost() {
    let mut pair = Pair::open(100_000);
    pair.send(40 * MS, Up, Segment { window: 0, ..of(Up, 1, 1, b"") });
    // The window of the handshake, 1000 units of 128 bytes, is not taken back; one that is filled closes.
    let mut sent = 1;
    while sent < 200_000 {
        pair.send(41 * MS, Down, of(Down, sent, 1, &[5; 1000]));
        sent += 1000;
    }
    let come: usize = pair.hears(Down, 400 * MS).iter().map(|row| row.4).sum();
    pair.send(400 * MS, Up, Segment { window: 0, ..of(Up, 1, 1 + come as u32, b"") });
    assert!(come > 1000);
    let mut got = come as u32;
    for turn in 0..60 {
        let at = (500 + 400 * turn) * MS;
        let rows = pair.hears(Down, at);
        got = rows.iter().fold(got, |got, row| if row.1 == got + 1 { got + row.4 as u32 } else { got });
        let window = if turn < 10 { 0 } else { 1000 };
        pair.send(at, Up, Segment { window, ..of(Up, 1, got + 1, b"") });
    }
    assert_eq!(got, 100_000, "all that fits into the buffer, and is acknowledged, arrives");
}

#[test]
fn a_fin_is_acknowledged_when_the_other_end_has_all() {
    let mut pair = Pair::open(100_000);
    let last = Segment { flags: END, ..of(Down, 1, 1, &[5; 100]) };
    pair.send(40 * MS, Down, last);
    assert_eq!(pair.hears(Up, 80 * MS), [(50, 1, 101, Flags::ACK, 0)], "the bytes alone");
    assert_eq!(pair.hears(Down, 80 * MS), [(50, 1, 1, END, 100)]);
    pair.send(80 * MS, Up, of(Up, 1, 102, b""));
    assert_eq!(pair.hears(Up, 100 * MS), [(90, 1, 102, Flags::ACK, 0)]);
    // The other half closes; a FIN that is repeated is acknowledged again; the ports may serve again.
    let close = Segment { flags: Flags::ACK | Flags::FIN, ..of(Up, 1, 102, b"") };
    pair.send(100 * MS, Up, close.clone());
    assert_eq!(pair.hears(Up, 120 * MS)[0].3, END);
    pair.send(120 * MS, Down, of(Down, 102, 2, b""));
    assert_eq!(pair.hears(Down, 140 * MS).last(), Some(&(130, 102, 2, Flags::ACK, 0)));
    pair.send(140 * MS, Up, close);
    assert_eq!(pair.hears(Down, 160 * MS), [(150, 102, 2, Flags::ACK, 0)]);
    pair.send(160 * MS, Up, pair.syn(Up));
    assert!(pair.hears(Up, 180 * MS)[0].3.has(Flags::SYN));
}

#[test]
fn a_reset_is_passed_on() {
    let reset = |seq| Segment { flags: RESET, ..of(Up, seq, 1, b"") };
    let mut pair = Pair::open(100_000);
    pair.send(40 * MS, Up, reset(1_000_000));
    assert_eq!(pair.hears(Up, 60 * MS), [], "outside of the window");
    assert_eq!(pair.log.drops(DropCause::Middlebox), [40 * MS]);
    pair.send(60 * MS, Up, reset(1));
    assert_eq!(pair.hears(Up, 80 * MS), [(70, 1, 1, RESET, 0)]);
    // The connection is gone: a later segment resets both ends.
    pair.send(80 * MS, Down, of(Down, 1, 1, &[5; 10]));
    assert_eq!(pair.hears(Up, 100 * MS), [(90, 1, 0u32.wrapping_sub(ISN[0]), Flags::RST, 0)]);
}

#[test]
fn a_receiver_that_never_answers_ends_both_halves() {
    let mut pair = Pair::open(100_000);
    pair.send(40 * MS, Down, of(Down, 1, 1, &[5; 1000]));
    pair.until(1_000_000 * MS);
    let ends = pair.heard.iter().filter(|(.., segment)| segment.flags == RESET);
    let ends: Vec<_> = ends.map(|(at, to, _)| (at.as_nanos() / 1_000_000_000, *to)).collect();
    // 1 + 2 + 4 + 8 + 16 + 32 s, then 60 s each: 15 timeouts are unanswered when the 16th comes.
    assert_eq!(ends, [(663, Up), (663, Down)]);
    assert_eq!(pair.network.poll_timeout(), None);
}

#[test]
fn bytes_that_die_with_a_box_reset_both_ends() {
    let mut pair = Pair::open(100_000);
    pair.send(40 * MS, Down, of(Down, 1, 1, &[5; 1000]));
    pair.until(41 * MS);
    let change = Change::Middleboxes(0, Down, vec![terminate(100_000)]);
    pair.network.apply(us(41 * MS), &mut (), &change);
    pair.heard.clear();
    // The sender receives a reset; the receiver a segment outside of its window, and then the reset that it accepts.
    pair.send(60 * MS, Down, of(Down, 1001, 1, &[5; 1000]));
    let [acknowledged, reset] = pair.hears(Up, 80 * MS)[..] else { panic!("two segments") };
    assert_eq!((acknowledged.2, reset.1, reset.3), (1001, 1, Flags::RST));
    let probe = pair.hears(Down, 80 * MS).pop().unwrap();
    assert_eq!((probe.1, probe.3), (1001 + (1 << 31), Flags::ACK));
    pair.send(80 * MS, Up, of(Up, 1, 1001, b""));
    let reset = pair.hears(Down, 100 * MS);
    assert_eq!((reset[0].1, reset[0].3), (1001, Flags::RST));
}

#[test]
fn two_boxes_in_a_row_carry_all() {
    let mut pair = Pair::new(&[terminate(4000), terminate(2000)]);
    pair.send(0, Up, pair.syn(Up));
    pair.send(10 * MS, Down, pair.syn(Down));
    pair.send(25 * MS, Up, of(Up, 1, 1, b""));
    pair.send(30 * MS, Down, of(Down, 1, 1, &[5; 1000]));
    assert_eq!(pair.hears(Down, 60 * MS).last(), Some(&(40, 1, 1, PUSHED, 1000)));
    assert_eq!(pair.hears(Up, 60 * MS).last(), Some(&(40, 1, 1001, Flags::ACK, 0)));
}
