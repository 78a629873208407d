//! The scoreboard against a model that counts everything afresh.

use super::scoreboard::{Arrival, Scoreboard};
use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Packet {
    seq: Range,
    sent_at: Instant,
    transmissions: u32,
    sacked: bool,
    lost: bool,
    again: bool,
}

impl Packet {
    fn key(&self) -> (Instant, u64) {
        (self.sent_at, self.seq.end)
    }
    fn in_flight(&self) -> u64 {
        if self.sacked { 0 } else { u64::from(!self.lost) + u64::from(self.again) }
    }
    fn is_missing(&self) -> bool {
        self.lost && !self.again
    }
    fn lose(&mut self) -> u32 {
        let news = !self.sacked && !self.is_missing();
        if news {
            (self.lost, self.again) = (true, false);
        }
        u32::from(news)
    }
}

/// Packets in sequence; nothing else is remembered.
#[derive(Debug, Default)]
struct Model {
    packets: Vec<Packet>,
    una: u64,
    nxt: u64,
    newest: Option<(Instant, u64)>,
}

impl Model {
    fn send(&mut self, now: Instant, len: u64) -> Range {
        let seq = Range::new(self.nxt, self.nxt + len);
        self.nxt = seq.end;
        self.packets.push(Packet { seq, sent_at: now, transmissions: 1, sacked: false, lost: false, again: false });
        seq
    }

    fn resend(&mut self, now: Instant, start: u64) {
        if let Some(p) = self.packets.iter_mut().find(|p| p.seq.start == start && !p.sacked) {
            (p.sent_at, p.transmissions, p.again) = (now, p.transmissions + 1, true);
        }
    }

    fn next_lost(&self) -> Option<u64> {
        self.packets.iter().find(|p| p.is_missing()).map(|p| p.seq.start)
    }

    /// How many packets and bytes are delivered.
    fn ack(&mut self, ack: u64, blocks: &[Range], arrival: &Arrival) -> (u32, u64) {
        let mut delivered = (0, 0);
        self.una = self.una.max(ack);
        for p in &mut self.packets {
            let arrived = p.seq.end <= ack || blocks.iter().any(|b| b.contains(p.seq));
            if p.sacked || !arrived {
                continue;
            }
            delivered.0 += 1;
            delivered.1 += p.seq.len();
            let early = arrival.min_rtt.is_some_and(|min| arrival.now.since(p.sent_at) < min);
            if p.transmissions == 1 || !early {
                self.newest = self.newest.max(Some(p.key()));
            }
            (p.sacked, p.lost, p.again) = (true, false, false);
        }
        self.packets.retain(|p| p.seq.end > ack);
        delivered
    }

    /// The packets whose fate is open and that were sent before the newest delivered, in order of transmission.
    fn overtaken(&mut self) -> Vec<&mut Packet> {
        let newest = self.newest;
        let mut open: Vec<_> =
            self.packets.iter_mut().filter(|p| p.in_flight() > 0 && Some(p.key()) < newest).collect();
        open.sort_by_key(|p| p.key());
        open
    }

    fn expire(&mut self, now: Instant, patience: Duration) -> u32 {
        self.overtaken().into_iter().filter(|p| p.sent_at + patience <= now).map(|p| p.lose()).sum()
    }

    fn count_above(&mut self, threshold: usize) -> u32 {
        let mut marked = 0;
        for i in 0..self.packets.len() {
            let above = self.packets[i..].iter().filter(|p| p.sacked).count();
            let p = &mut self.packets[i];
            if above >= threshold && !p.sacked && !p.lost {
                p.lost = true;
                marked += 1;
            }
        }
        marked
    }

    fn cut(&mut self, most: u64, lost: bool) -> u32 {
        let mut marked = 0;
        for mut p in core::mem::take(&mut self.packets) {
            if p.sacked || p.seq.len() <= most {
                self.packets.push(p);
                continue;
            }
            // The part that is acknowledged is gone.
            p.seq.start = p.seq.start.max(self.una);
            while !p.seq.is_empty() {
                let seq = Range::new(p.seq.start, p.seq.end.min(p.seq.start + most));
                p.seq.start = seq.end;
                let mut part = Packet { seq, ..p.clone() };
                marked += if lost { part.lose() } else { 0 };
                self.packets.push(part);
            }
        }
        marked
    }

    fn time_out(&mut self, now: Instant, patience: Duration) -> u32 {
        if self.packets.first().is_some_and(|p| p.sacked) {
            self.packets.iter_mut().for_each(|p| p.sacked = false);
        }
        let mut marked = 0;
        for (i, p) in self.packets.iter_mut().enumerate() {
            if i == 0 || p.sent_at + patience <= now {
                marked += p.lose();
            }
        }
        marked
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send(u64),
    Resend,
    ResendAny(usize),
    Ack { cut: usize, partial: u64, blocks: Vec<(usize, usize, u64)> },
    Expire(u64),
    CountAbove,
    TimeOut(u64),
    Unmark,
    Cut { most: u64, lost: bool },
}

fn op() -> impl Strategy<Value = Op> {
    let block = (0..24_usize, 1..6_usize, 0..2_u64);
    prop_oneof![
        8 => (1..4_u64).prop_map(Op::Send),
        4 => Just(Op::Resend),
        1 => (0..24_usize).prop_map(Op::ResendAny),
        6 => (prop_oneof![3 => Just(0), 1 => 0..24_usize], 0..2_u64, prop::collection::vec(block, 0..4))
            .prop_map(|(cut, partial, blocks)| Op::Ack { cut, partial, blocks }),
        3 => (0..40_u64).prop_map(Op::Expire),
        2 => Just(Op::CountAbove),
        1 => (0..20_u64).prop_map(Op::TimeOut),
        1 => Just(Op::Unmark),
        1 => (1..4_u64, any::<bool>()).prop_map(|(most, lost)| Op::Cut { most, lost }),
    ]
}

/// Runs one operation on both and compares what they answer.
fn step(op: &Op, now: Instant, board: &mut Scoreboard, model: &mut Model) {
    match op {
        Op::Send(len) => {
            let seq = model.send(now, *len);
            let payload = Bytes::from(vec![0; *len as usize]);
            assert!(board.on_sent(now, Sent::new(seq.start, payload, seq.start, false)));
        }
        Op::Resend => {
            let Some(start) = model.next_lost() else { return };
            model.resend(now, start);
            board.on_retransmitted(now, board.number_of(start).unwrap());
        }
        Op::ResendAny(i) => {
            let Some(p) = model.packets.get(*i) else { return };
            let start = p.seq.start;
            model.resend(now, start);
            board.on_retransmitted(now, board.number_of(start).unwrap());
        }
        Op::Ack { cut, partial, blocks } => {
            let offset = |i: usize| model.packets.get(i).map_or(model.nxt, |p| p.seq.start);
            let ack = (offset(*cut) + partial).min(model.nxt);
            let blocks: Vec<Range> =
                blocks.iter().map(|&(from, len, cut)| Range::new(offset(from) + cut, offset(from + len))).collect();
            let arrival = Arrival { now, min_rtt: Some(Duration::from_nanos(5)), echo: None };
            let delivered = board.apply(ack, &blocks, &arrival);
            assert_eq!((delivered.packets, delivered.bytes), model.ack(ack, &blocks, &arrival));
            assert_eq!(board.una(), ack.max(board.una()));
        }
        Op::Expire(patience) => {
            let patience = Duration::from_nanos(*patience);
            let Some(newest) = model.newest else { return };
            assert_eq!(board.mark_expired(now, newest, patience).packets, model.expire(now, patience));
            let last = model.overtaken().last().map(|p| p.sent_at);
            assert_eq!(board.last_sent_before(newest), last);
        }
        Op::CountAbove => assert_eq!(board.mark_below_sacked(3), model.count_above(3)),
        Op::TimeOut(patience) => {
            let patience = Duration::from_nanos(*patience);
            assert_eq!(board.mark_all(now, patience), model.time_out(now, patience));
        }
        Op::Unmark => {
            board.unmark();
            model.packets.iter_mut().for_each(|p| p.lost = false);
        }
        Op::Cut { most, lost } => assert_eq!(board.cut_to(*most, *lost), model.cut(*most, *lost)),
    }
}

proptest! {
    #[test]
    fn the_scoreboard_agrees_with_the_model(ops in prop::collection::vec(op(), 1..120)) {
        let mut board = Scoreboard::new(1);
        let mut model = Model { una: 1, nxt: 1, ..Model::default() };
        for (i, op) in ops.iter().enumerate() {
            step(op, Instant::from_nanos(10 + i as u64), &mut board, &mut model);
            board.audit();
            let in_flight: u64 = model.packets.iter().map(Packet::in_flight).sum();
            let bytes: u64 = model.packets.iter().map(|p| p.in_flight() * p.seq.len()).sum();
            prop_assert_eq!((u64::from(board.pipe()), board.pipe_bytes()), (in_flight, bytes));
            prop_assert_eq!(board.next_lost().map(|p| p.seq().start), model.next_lost());
            let open = model.packets.iter().rposition(|p| !p.sacked).map(|i| model.packets[i].seq);
            prop_assert_eq!(board.last_open().and_then(|n| Some(board.get(n)?.seq())), open);
        }
    }
}
