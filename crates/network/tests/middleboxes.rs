//! Boxes on a path: what they do to segments, in order, by time, and what the network records of it.

mod common;

use anabranch_network::{
    Answer, Bottleneck, Carried, Change, CoalesceSpec, Delivery, Ecn, EcnSpec, ForgetSpec, Markable, MiddleboxSpec,
    MssSpec, Network, OptionKind, QueueSpec, RejectSpec, Segments, SplitSpec, StripSpec, ThinSpec, Topology,
    TranslateSpec,
};
use anabranch_trace::{DropCause, LinkEvent};
use anabranch_units::{Direction, Duration, Instant, SeqNumber};
use anabranch_wire::{Flags, MpJoin, MptcpOption, Packet, SackBlock, Segment};
use bytes::Bytes;
use common::{Log, bottleneck, deliver, path, us, way};

/// A packet with a segment, or one without, which boxes do not see.
#[derive(Clone, Debug, PartialEq)]
struct Item(Option<Carried>);

impl Markable for Item {
    fn segment(&self) -> Option<Carried> {
        self.0.clone()
    }

    fn of(carried: Carried) -> Option<Self> {
        Some(Self(Some(carried)))
    }
}

fn topology(down: &[MiddleboxSpec], up: &[MiddleboxSpec]) -> Topology {
    let own = Bottleneck::Own(bottleneck(QueueSpec::Packets(1000)));
    let mut path = path("a", way(own, Duration::from_millis(10)));
    (path.down.middleboxes, path.up.middleboxes) = (down.to_vec(), up.to_vec());
    Topology { paths: vec![path], links: Vec::new() }
}

fn segment(seq: u32, flags: Flags, len: usize) -> Segment {
    let payload = Bytes::from(vec![7; len]);
    Segment { src_port: 80, dst_port: 5000, seq: SeqNumber(seq), flags, window: 9, payload, ..Segment::default() }
}

fn item(segment: Segment) -> Item {
    let packet = Packet { src: [10, 0, 0, 2].into(), dst: [10, 0, 0, 1].into(), segment };
    Item(Some(Carried { packet, ends: (1, 0), sent: Instant::ZERO }))
}

/// Arrivals of segments that are sent down at these times, and the recorded drops.
fn sent(boxes: &[MiddleboxSpec], segments: Vec<(u64, Segment)>) -> (Vec<(Instant, Direction, Carried)>, Log) {
    let (mut network, mut log) = (Network::new(&topology(boxes, &[]), 1), Log::default());
    let mut all = Vec::new();
    for (at, segment) in segments {
        all.extend(deliver(&mut network, &mut log, us(at)));
        let item = item(segment);
        let size = item.0.as_ref().map_or(0, |carried| carried.packet.len() as u32);
        network.send(us(at), &mut log, 0, Direction::Down, size, item);
    }
    all.extend(deliver(&mut network, &mut log, us(100_000_000)));
    let carried = |(at, Delivery { direction, item, .. }): (Instant, Delivery<Item>)| Some((at, direction, item.0?));
    (all.into_iter().filter_map(carried).collect(), log)
}

fn segments(boxes: &[MiddleboxSpec], segments: Vec<(u64, Segment)>) -> Vec<Segment> {
    sent(boxes, segments).0.into_iter().map(|(.., carried)| carried.packet.segment).collect()
}

fn with_join(mut segment: Segment) -> Segment {
    let join = MpJoin::Syn { backup: false, address_id: 1, token: 2, nonce: 3 };
    segment.options.set_mss(1460);
    assert!(segment.options.push_mptcp(MptcpOption::Join(join)));
    segment
}

#[test]
fn named_options_are_stripped_from_the_segments_that_are_meant() {
    let strip = StripSpec { options: OptionKind::Join.into(), on: Segments::Syn }.into();
    let (syn, later) = (with_join(segment(1, Flags::SYN, 0)), with_join(segment(2, Flags::ACK, 0)));
    let seen = segments(&[strip], vec![(0, syn.clone()), (0, later.clone())]);
    assert_eq!((seen[0].options.mptcp().len(), seen[0].options.mss()), (0, Some(1460)));
    assert_eq!(seen[1], later);
    let all = MiddleboxSpec::from(StripSpec::default());
    assert_eq!(segments(&[all], vec![(0, syn)])[0].options.mptcp(), []);
}

#[test]
fn sizes_follow_what_boxes_take_away_and_cut() {
    let (_, whole) = sent(&[], vec![(0, with_join(segment(1, Flags::SYN, 0)))]);
    let (_, less) = sent(&[StripSpec::default().into()], vec![(0, with_join(segment(1, Flags::SYN, 0)))]);
    assert_eq!(whole.0[0].3 - less.0[0].3, 12);
    let (pieces, log) = sent(&[SplitSpec { size: 400 }.into()], vec![(0, segment(1, Flags::ACK, 1000))]);
    let seen: Vec<_> = pieces.iter().map(|(.., c)| (c.packet.segment.seq.0, c.packet.segment.payload.len())).collect();
    assert_eq!(seen, [(1, 400), (401, 400), (801, 200)]);
    assert_eq!(log.0.iter().filter(|event| event.4 == LinkEvent::Departed).count(), 3);
}

#[test]
fn segments_are_merged_until_one_does_not_follow_or_the_time_is_over() {
    let merge = MiddleboxSpec::from(CoalesceSpec { within: Duration::from_millis(2), size: 2500 });
    let data = |seq| segment(seq, Flags::ACK, 1000);
    let (seen, _) = sent(&[merge], vec![(0, data(1)), (100, data(1001)), (200, data(2001)), (300, data(9001))]);
    let seen: Vec<_> = seen.iter().map(|(_, _, c)| (c.packet.segment.seq.0, c.packet.segment.payload.len())).collect();
    assert_eq!(seen, [(1, 2000), (2001, 1000), (9001, 1000)]);
    let (alone, _) = sent(&[merge], vec![(0, data(1))]);
    assert!(alone[0].0 >= us(12_000) && alone[0].0 < us(13_000), "{}", alone[0].0);
    // PSH ends a burst: nothing waits behind it.
    let (pushed, _) = sent(&[merge], vec![(0, data(1)), (0, segment(1001, Flags::ACK | Flags::PSH, 500))]);
    assert_eq!((pushed.len(), pushed[0].2.packet.segment.payload.len()), (1, 1500));
    assert!(pushed[0].0 < us(12_000));
}

#[test]
fn numbers_are_translated_there_and_back() {
    let by = 4_000_000_000;
    let topology = topology(&[TranslateSpec { by }.into()], &[]);
    let (mut network, mut log) = (Network::new(&topology, 1), Log::default());
    network.send(us(0), &mut log, 0, Direction::Down, 1040, item(segment(u32::MAX, Flags::ACK, 1000)));
    let mut answer = Segment { flags: Flags::ACK, ack: SeqNumber(by.wrapping_add(999)), ..segment(5, Flags::ACK, 0) };
    answer.options.set_sack(&[SackBlock { start: SeqNumber(by + 2000), end: SeqNumber(by + 3000) }]);
    network.send(us(0), &mut log, 0, Direction::Up, 52, item(answer));
    let all = deliver(&mut network, &mut log, us(1_000_000));
    let of = |direction| {
        let found = all.iter().find(|(_, delivery)| delivery.direction == direction);
        found.and_then(|(_, delivery)| delivery.item.0.clone()).unwrap().packet.segment
    };
    assert_eq!(of(Direction::Down).seq.0, by - 1);
    let up = of(Direction::Up);
    assert_eq!((up.seq.0, up.ack.0, up.options.sack()[0].start.0), (5, 999, 2000));
}

#[test]
fn ecn_fields_and_the_mss_are_set() {
    let ecn = |all| MiddleboxSpec::from(EcnSpec { set: Ecn::Ce, all, flags: true });
    let capable = Segment { ecn: Ecn::Ect0, ..segment(1, Flags::ACK | Flags::ECE, 10) };
    let plain = segment(1, Flags::ACK, 10);
    let of = |all, segment: &Segment| segments(&[ecn(all)], vec![(0, segment.clone())])[0].clone();
    assert_eq!((of(false, &capable).ecn, of(false, &capable).flags), (Ecn::Ce, Flags::ACK));
    assert_eq!((of(false, &plain).ecn, of(true, &plain).ecn), (Ecn::NotEct, Ecn::Ce));
    let syn = with_join(segment(1, Flags::SYN, 0));
    for (most, mss) in [(1200, 1200), (1460, 1460), (1500, 1460)] {
        let seen = segments(&[MssSpec { most }.into()], vec![(0, syn.clone())]);
        assert_eq!((seen[0].options.mss(), seen[0].options.mptcp()), (Some(mss), syn.options.mptcp()));
    }
}

#[test]
fn a_refusal_is_answered_and_recorded() {
    let reject =
        |answer| MiddleboxSpec::from(RejectSpec { options: OptionKind::Join.into(), on: Segments::Syn, answer });
    let syn = with_join(segment(8, Flags::SYN, 0));
    let (seen, log) = sent(&[reject(Answer::Reset)], vec![(0, syn.clone())]);
    let [(_, direction, carried)] = &seen[..] else { panic!("{seen:?}") };
    let reset = &carried.packet.segment;
    assert_eq!((*direction, carried.ends, carried.packet.dst), (Direction::Up, (0, 1), [10, 0, 0, 2].into()));
    assert_eq!((reset.flags, reset.seq.0, reset.ack.0), (Flags::RST | Flags::ACK, 0, 9));
    assert_eq!((reset.src_port, reset.dst_port), (5000, 80));
    assert_eq!(log.drops(DropCause::Middlebox), [0]);
    let (silent, log) = sent(&[reject(Answer::Silence)], vec![(0, syn)]);
    assert_eq!((silent.len(), log.drops(DropCause::Middlebox).len()), (0, 1));
    let all = MiddleboxSpec::from(RejectSpec::default());
    assert_eq!(sent(&[all], vec![(0, segment(1, Flags::RST, 0))]).0.len(), 0, "a reset is not answered");
    // RFC 9293 §3.10.7.1.
    let known = segments(&[all], vec![(0, Segment { ack: SeqNumber(77), ..segment(1, Flags::ACK, 5) })]);
    assert_eq!((known[0].flags, known[0].seq.0), (Flags::RST, 77));
}

#[test]
fn an_idle_flow_is_forgotten_and_a_syn_begins_another() {
    let forget = |answer| MiddleboxSpec::from(ForgetSpec { idle: Duration::from_secs(1), answer });
    let data = || segment(2, Flags::ACK, 10);
    let times = |last| vec![(0, segment(1, Flags::SYN, 0)), (900_000, data()), (1_900_000, data()), (last, data())];
    assert_eq!(sent(&[forget(Answer::Silence)], times(2_900_000)).0.len(), 4);
    let (seen, log) = sent(&[forget(Answer::Silence)], times(2_900_001));
    assert_eq!((seen.len(), log.drops(DropCause::Middlebox)), (3, vec![2_900_001]));
    let (seen, _) = sent(&[forget(Answer::Reset)], times(3_000_000));
    assert_eq!(
        seen.last().map(|(_, way, carried)| (*way, carried.packet.segment.flags)),
        Some((Direction::Up, Flags::RST))
    );
    let again = [times(3_000_000), vec![(4_000_000, segment(1, Flags::SYN, 0)), (4_000_001, data())]].concat();
    assert_eq!(sent(&[forget(Answer::Silence)], again).0.len(), 5);
    assert_eq!(sent(&[forget(Answer::Silence)], vec![(0, data())]).0.len(), 0, "it saw no SYN of this flow");
}

#[test]
fn of_so_many_acknowledgments_one_passes_and_none_waits_for_long() {
    let thin = MiddleboxSpec::from(ThinSpec { every: 3, within: Duration::from_millis(5) });
    let ack = |n: u32| Segment { ack: SeqNumber(n), ..segment(1, Flags::ACK, 0) };
    let acks = |seen: Vec<Segment>| seen.iter().map(|segment| segment.ack.0).collect::<Vec<_>>();
    let many = (0..7).map(|n| (u64::from(n) * 10, ack((u32::MAX - 2).wrapping_add(n)))).collect();
    assert_eq!(acks(segments(&[thin], many)), [u32::MAX, 2, 3]);
    let (late, _) = sent(&[thin], vec![(0, ack(1))]);
    assert!(late[0].0 >= us(15_000) && late[0].0 < us(15_100), "{}", late[0].0);
    // A duplicate passes at once, and so do SACK blocks.
    assert_eq!(acks(segments(&[thin], vec![(0, ack(1)), (1, ack(1)), (2, ack(1))])), [1, 1, 1]);
    let mut sack = ack(2);
    sack.options.set_sack(&[SackBlock { start: SeqNumber(5), end: SeqNumber(6) }]);
    let (both, _) = sent(&[thin], vec![(0, ack(1)), (1, sack)]);
    assert!(both.len() == 2 && both[1].0 < us(11_000));
    assert_eq!(segments(&[thin], vec![(0, segment(1, Flags::ACK, 9)); 4]).len(), 4, "data is none");
}

#[test]
fn boxes_stand_in_order_and_what_is_no_segment_passes() {
    let (strip, reject) =
        (StripSpec::default(), RejectSpec { options: OptionKind::Mptcp.into(), ..RejectSpec::default() });
    let syn = || vec![(0, with_join(segment(1, Flags::SYN, 0)))];
    assert_eq!(sent(&[strip.into(), reject.into()], syn()).0[0].1, Direction::Down);
    assert_eq!(sent(&[reject.into(), strip.into()], syn()).0[0].1, Direction::Up);
    // The answer of the second box passes the first on its way back.
    let shift = TranslateSpec { by: 100 }.into();
    let back = segments(&[shift, reject.into()], syn());
    assert_eq!(back[0].ack.0, 2, "it acknowledges the number that its receiver sent");
    let (mut network, mut log) = (Network::new(&topology(&[RejectSpec::default().into()], &[]), 1), Log::default());
    network.send(us(0), &mut log, 0, Direction::Down, 500, Item(None));
    assert_eq!(deliver(&mut network, &mut log, us(100_000)).len(), 1);
}

#[test]
fn a_change_puts_new_boxes_in_place() {
    let (mut network, mut log) = (Network::new(&topology(&[], &[]), 1), Log::default());
    assert!(!network.lookahead().is_zero());
    let mut send = |network: &mut Network<Item>, at| {
        network.send(us(at), &mut log, 0, Direction::Down, 540, item(segment(1, Flags::ACK, 500)));
        deliver(network, &mut log, us(at + 100_000)).len()
    };
    assert_eq!(send(&mut network, 0), 1);
    let reject = RejectSpec { answer: Answer::Silence, ..RejectSpec::default() };
    let change = |boxes| Change::Middleboxes(0, Direction::Down, boxes);
    network.apply(us(200_000), &mut (), &change(vec![reject.into()]));
    assert_eq!((send(&mut network, 200_000), network.lookahead()), (0, Duration::ZERO));
    network.apply(us(400_000), &mut (), &change(Vec::new()));
    assert_eq!(send(&mut network, 400_000), 1);
}
