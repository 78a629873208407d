//! A sender, a receiver and a network that loses, delays and duplicates: everything arrives, and the sums are right.

use super::*;
use crate::deadlines::NEVER;
use anabranch_units::RangeSet;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The network's treatment of a packet.
#[derive(Clone, Copy, Debug)]
struct Fate {
    lost: bool,
    twice: bool,
    delay: u64,
}

fn fate() -> impl Strategy<Value = Fate> {
    (prop::bool::weighted(0.15), prop::bool::weighted(0.05), prop_oneof![4 => 20..22_u64, 1 => 20..400_u64])
        .prop_map(|(lost, twice, delay)| Fate { lost, twice, delay })
}

#[derive(Clone, Debug)]
enum Arrives {
    Data { seq: Range, sent: Instant },
    Ack { ack: u64, sack: Vec<Range>, dsack: Option<Range>, echo: Instant },
}

/// Everything in flight, in order of arrival.
#[derive(Default)]
struct Network {
    fates: Vec<Fate>,
    next: usize,
    arrivals: BTreeMap<(Instant, usize), Arrives>,
}

impl Network {
    fn carry(&mut self, now: Instant, what: Arrives) {
        // The script of misfortune is played once; afterwards all goes well.
        let fate = self.fates.get(self.next).copied().unwrap_or(Fate { lost: false, twice: false, delay: 20 });
        self.next += 1;
        if fate.lost {
            return;
        }
        self.arrivals.insert((now + ms(fate.delay), self.next * 2), what.clone());
        if fate.twice {
            self.arrivals.insert((now + ms(fate.delay + 3), self.next * 2 + 1), what);
        }
    }
}

/// A receiver that acknowledges everything at once.
#[derive(Default)]
struct Receiver {
    held: RangeSet,
}

impl Receiver {
    fn on_data(&mut self, seq: Range, sent: Instant, sack: bool) -> Arrives {
        let new = self.held.insert(seq);
        let ack = self.held.range_at(1).map_or(1, |r| r.end);
        let mut blocks: Vec<Range> = self.held.iter().filter(|r| r.start > ack).collect();
        // RFC 2018 §4: the block with the newest segment first
        blocks.sort_by_key(|r| !(r.start <= seq.start && seq.end <= r.end));
        blocks.truncate(if sack { 3 } else { 0 });
        Arrives::Ack { ack, sack: blocks, dsack: (new == 0 && sack).then_some(seq), echo: sent }
    }
}

struct World {
    sender: Sender,
    network: Network,
    receiver: Receiver,
    now: Instant,
    sack: bool,
    stamps: bool,
    left: u64,
    probe: bool,
}

impl World {
    const WINDOW: u32 = 12;

    fn transmit(&mut self) {
        while self.sender.in_flight() < self.sender.effective_window(Self::WINDOW) || self.probe {
            let idle = self.left == 0;
            if idle {
                self.sender.no_new();
            }
            let again = self.sender.next_lost().or_else(|| self.sender.next_speculative().filter(|_| idle));
            let again = again.or_else(|| self.sender.last().filter(|_| idle && self.probe)).map(|p| p.seq());
            let seq = match again {
                Some(seq) => {
                    self.sender.on_retransmitted(self.now, seq);
                    seq
                }
                None if idle => break,
                None => {
                    self.left -= 1;
                    let sent = segment(self.sender.nxt());
                    let seq = sent.seq();
                    self.sender.on_sent(self.now, sent);
                    seq
                }
            };
            self.probe = false;
            self.network.carry(self.now, Arrives::Data { seq, sent: self.now });
        }
        self.probe = false;
    }

    fn follow(&mut self, change: Option<RecoveryChange>) {
        if change == Some(RecoveryChange::EnterRecovery) {
            assert_eq!(self.sender.phase(), RecoveryPhase::Recovery);
            self.sender.begin_recovery(Self::WINDOW / 2);
        }
    }

    fn on_timer(&mut self) {
        match self.sender.on_timer(self.now) {
            Fired::Nothing | Fired::Silence => {}
            Fired::ReorderTimer { change, .. } => self.follow(change),
            Fired::Probe => self.probe = true,
            Fired::Timeout { .. } => {
                assert!(self.sender.next_lost().is_some());
                assert!(self.sender.effective_window(1) > self.sender.in_flight());
            }
        }
    }

    fn on_arrival(&mut self, what: Arrives) {
        match what {
            Arrives::Data { seq, sent } => {
                let ack = self.receiver.on_data(seq, sent, self.sack);
                self.network.carry(self.now, ack);
            }
            Arrives::Ack { ack, sack, dsack, echo } => {
                let tick = Instant::from_nanos(echo.as_nanos() / 1_000_000 * 1_000_000);
                let outcome = self.sender.on_ack(&AckInput {
                    now: self.now,
                    ack,
                    sack: &sack,
                    dsack,
                    echo: self.stamps.then_some((self.now.since(tick), tick)),
                    bare: true,
                });
                self.follow(outcome.change);
            }
        }
    }

    fn check(&self) {
        self.sender.board.audit();
        let board = &self.sender.board;
        assert!(self.sender.in_flight() <= 2 * board.outstanding());
        assert_eq!(self.sender.prr.is_some(), self.sender.phase() == RecoveryPhase::Recovery);
        match self.sender.deadline() {
            NEVER => assert!(board.is_empty(), "nothing would ever happen again"),
            at => assert!(at > self.now && !board.is_empty()),
        }
    }

    /// Runs until everything is acknowledged.
    fn run(&mut self) {
        for _ in 0..20_000 {
            self.transmit();
            self.check();
            let arrival = self.network.arrivals.first_key_value().map(|(&(at, _), _)| at);
            let timer = self.sender.deadline();
            self.now = match (arrival, timer) {
                (None, NEVER) => return,
                (arrival, timer) => arrival.unwrap_or(NEVER).min(timer),
            };
            if timer == self.now {
                self.on_timer();
            } else if let Some((_, what)) = self.network.arrivals.pop_first() {
                self.on_arrival(what);
            }
        }
        panic!("no end in sight: {:?}", self.sender);
    }
}

/// RACK, RFC 6675, forward acknowledgments, NewReno.
fn kinds() -> impl Strategy<Value = (RecoveryKind, bool)> {
    prop_oneof![
        Just((RecoveryKind::Rack, true)),
        Just((RecoveryKind::Sack, true)),
        Just((RecoveryKind::Fack, true)),
        Just((RecoveryKind::Rack, false)),
    ]
}

proptest! {
    #[test]
    fn everything_arrives_in_the_end(
        fates in prop::collection::vec(fate(), 0..200),
        (recovery, sack) in kinds(),
        stamps in any::<bool>(),
        tail_loss_probe in any::<Option<bool>>(),
        total in 1..100_u64,
    ) {
        let mut sender = Sender::new(&TcpSettings { recovery, tail_loss_probe, ..TcpSettings::default() }, sack);
        sender.sample_handshake(ms(40));
        let network = Network { fates, ..Network::default() };
        let receiver = Receiver::default();
        let mut world =
            World { sender, network, receiver, now: Instant::ZERO, sack, stamps, left: total, probe: false };
        world.run();
        let sender = &world.sender;
        prop_assert!(sender.is_empty());
        prop_assert_eq!((sender.una(), sender.in_flight(), sender.in_flight_bytes()), (upto(total), 0, 0));
        prop_assert_eq!((sender.phase(), sender.deadline()), (RecoveryPhase::Open, NEVER));
    }

    /// Any acknowledgments in any order leave the sums right, and nothing panics.
    #[test]
    fn nonsense_does_no_harm(
        script in prop::collection::vec(
            (0..9_u8, 0..40_u64, prop::collection::vec((0..60_000_u64, 0..60_000_u64), 0..4), any::<u64>(), 0..300_u64),
            1..200,
        ),
        (recovery, sack) in kinds(),
    ) {
        let mut sender = Sender::new(&TcpSettings { recovery, ..TcpSettings::default() }, sack);
        let mut now = Instant::ZERO;
        for (what, n, blocks, any, wait) in script {
            now += ms(wait);
            match what {
                0 => (0..n % 8).for_each(|_| sender.on_sent(now, segment(sender.nxt()))),
                1 => sender.on_retransmitted(now, packet_at(if any % 2 == 0 { upto(n) } else { any })),
                2 => drop(sender.on_timer(now)),
                3 => sender.begin_recovery(any as u32),
                4 => sender.cut_to(1 + any as u32 % 2000),
                5 => drop(sender.on_too_big(now, 1 + any as u32 % 2000)),
                6 => sender.fall_to(now, 1 + any as u32 % 2000, 2000),
                7 => drop((sender.take_larger(), sender.next_probe(now))),
                _ => {
                    let blocks: Vec<Range> = blocks.into_iter().map(|(a, b)| Range::new(a, b)).collect();
                    let ack = if any % 16 == 0 { any } else { upto(n) + any % 3 };
                    let echo = (any % 5 == 0).then(|| (Duration::from_nanos(any), Instant::from_nanos(any)));
                    let dsack = blocks.first().copied().filter(|_| any % 3 == 0);
                    sender.on_ack(&AckInput {
                        now, ack, sack: &blocks, dsack, echo,
                        bare: any % 7 != 0 && any % 11 != 0,
                    });
                }
            }
            sender.board.audit();
            prop_assert!(sender.una() <= sender.nxt());
            prop_assert!(sender.effective_window(1) > 0 || sender.phase() == RecoveryPhase::Recovery);
            prop_assert_eq!(sender.deadline() < NEVER, !sender.is_empty());
        }
    }
}
