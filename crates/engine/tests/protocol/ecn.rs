//! Explicit congestion notification (RFC 3168) together with losses, timeouts and reordering.

use crate::common::solo::{Build, PEER_KEY, Solo};
use crate::common::{client_paths, plain_stamps, setup, tcp};
use anabranch_engine::congestion::{Acked, CongestionControl, Loss, Window};
use anabranch_engine::connection::Setup;
use anabranch_engine::schedule::PathView;
use anabranch_engine::{Settings, TcpSettings};
use anabranch_trace::{Event, RecoveryPhase};
use anabranch_units::{Duration, Instant, PathId, SeqNumber};
use anabranch_wire::{Ecn, Flags, MptcpOption, SackBlock, Segment};
use std::sync::{Arc, Mutex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Lost(Loss),
    Undone,
    /// An acknowledgment, and whether the window may grow.
    Acked(bool),
}

const FAST: Call = Call::Lost(Loss::Fast);
const MARKED: Call = Call::Lost(Loss::Marked);
const TIMEOUT: Call = Call::Lost(Loss::Timeout { again: false });

type Calls = Arc<Mutex<Vec<Call>>>;

/// A constant window of 10 packets, which records its calls.
#[derive(Debug)]
struct Told {
    calls: Calls,
    rate_based: bool,
}

impl Told {
    fn note(&self, call: Call) {
        self.calls.lock().expect("one thread").push(call);
    }
}

impl CongestionControl for Told {
    fn on_join(&mut self, _id: PathId, _initial_window: u32) {}
    fn on_leave(&mut self, _id: PathId) {}
    fn on_ack(&mut self, _id: PathId, ack: &Acked, _paths: &[PathView]) {
        self.note(Call::Acked(ack.may_grow));
    }
    fn on_loss(&mut self, _id: PathId, _now: Instant, loss: Loss, _paths: &[PathView]) {
        self.note(Call::Lost(loss));
    }
    fn on_undo(&mut self, _id: PathId, _now: Instant) {
        self.note(Call::Undone);
    }
    fn on_idle(&mut self, _id: PathId, _now: Instant, _idle: Duration, _rto: Duration) {}
    fn window(&self, _id: PathId) -> Window {
        Window { cwnd: 10, ssthresh: 5, pacing: None }
    }
    fn is_rate_based(&self) -> bool {
        self.rate_based
    }
}

fn speaking(settings: Settings) -> Settings {
    Settings { tcp: TcpSettings { ecn: true, ..settings.tcp }, ..settings }
}

/// A server at 40 ms, a round trip after its SYN/ACK, that has sent 10 packets of 1000 bytes.
fn sending(rate_based: bool) -> (Solo, Calls) {
    let calls = Calls::default();
    let of_server = Arc::clone(&calls);
    let mut h = Solo::server_with(move || {
        let congestion = Box::new(Told { calls: Arc::clone(&of_server), rate_based });
        Setup { congestion, ..setup(speaking(tcp()), Vec::new()) }
    });
    h.send(h.syn(0).flags(Flags::SYN | Flags::ECE | Flags::CWR));
    h.at(40);
    h.send(h.seg(1, 1)).write(&[1; 10_000]).clear();
    (h, calls)
}

/// At `ms` everything below `ack` is acknowledged, with these SACK blocks.
fn acked(h: &mut Solo, ms: u64, ack: u64, blocks: &[(u64, u64)]) {
    acknowledge(h, ms, Flags::ACK, ack, blocks);
}

/// The same with an echo.
fn echoed(h: &mut Solo, ms: u64, ack: u64, blocks: &[(u64, u64)]) {
    acknowledge(h, ms, Flags::ACK | Flags::ECE, ack, blocks);
}

fn acknowledge(h: &mut Solo, ms: u64, flags: Flags, ack: u64, blocks: &[(u64, u64)]) {
    let at = |offset| SeqNumber(h.isn[0]).at(offset);
    let blocks: Vec<_> = blocks.iter().map(|&(start, end)| SackBlock { start: at(start), end: at(end) }).collect();
    let mut segment = h.seg(1, ack).flags(flags);
    segment.options.set_sack(&blocks);
    h.at(ms).send(segment);
}

/// Reactions only.
fn reactions(calls: &Calls) -> Vec<Call> {
    let calls = calls.lock().expect("one thread");
    calls.iter().copied().filter(|call| !matches!(call, Call::Acked(_))).collect()
}

fn last(calls: &Calls) -> Option<Call> {
    calls.lock().expect("one thread").last().copied()
}

#[test]
fn an_echo_holds_the_window_except_after_a_timeout() {
    let (mut h, calls) = sending(false);
    echoed(&mut h, 80, 1001, &[]);
    assert_eq!(last(&calls), Some(Call::Acked(false)));
    let (mut h, calls) = sending(false);
    echoed(&mut h, 600, 1001, &[]);
    assert_eq!(reactions(&calls), [TIMEOUT]);
    assert_eq!(last(&calls), Some(Call::Acked(true)), "there is no new data that could carry CWR");
}

/// A packet is retransmitted that was only late; the window was reduced for it. What happens to it, and whether the peer learns of
/// it. `echoes`: an acknowledgment during the recovery echoes a mark.
fn late(echoes: bool) -> (Vec<Call>, bool) {
    let (mut h, calls) = sending(false);
    acked(&mut h, 80, 1, &[(1001, 4001)]);
    assert_eq!(reactions(&calls), [FAST]);
    let next = if echoes { echoed } else { acked };
    next(&mut h, 85, 1, &[(1001, 5001)]);
    acked(&mut h, 90, 10_001, &[(1, 1001)]);
    h.clear().write(&[1; 1000]);
    (reactions(&calls), h.recv().flags.has(Flags::CWR))
}

#[test]
fn a_mark_keeps_the_reduction_for_a_loss_that_was_none() {
    assert_eq!(late(false), (vec![FAST, Call::Undone], false));
    assert_eq!(late(true), (vec![FAST], true));
}

#[test]
fn a_loss_counts_beside_a_mark_where_the_congestion_control_ignores_marks() {
    for (rate_based, expected) in [(false, vec![MARKED]), (true, vec![MARKED, FAST, Call::Undone])] {
        let (mut h, calls) = sending(rate_based);
        echoed(&mut h, 80, 2001, &[]);
        echoed(&mut h, 85, 2001, &[(3001, 6001)]);
        acked(&mut h, 90, 10_001, &[(2001, 3001)]);
        assert!(h.log.saw(Event::Undo));
        assert_eq!(reactions(&calls), expected, "{rate_based}");
    }
}

#[test]
fn a_retransmission_that_is_lost_after_a_timeout_counts_in_a_marked_window() {
    let (mut h, calls) = sending(false);
    echoed(&mut h, 80, 2001, &[]);
    acked(&mut h, 600, 3001, &[]);
    assert_eq!(reactions(&calls), [MARKED, TIMEOUT]);
    // The retransmissions behind the first arrive, a round trip later.
    acked(&mut h, 640, 3001, &[(4001, 10_001)]);
    assert_eq!(reactions(&calls), [MARKED, TIMEOUT, FAST]);
}

#[test]
fn a_mark_counts_while_packets_overtake_each_other() {
    let (mut h, calls) = sending(false);
    echoed(&mut h, 80, 1, &[(1001, 2001)]);
    assert_eq!(reactions(&calls), [MARKED]);
    let recorded: Vec<_> = h.log.0.iter().map(|(_, event)| *event).collect();
    let disorder = Event::Recovery(RecoveryPhase::Disorder);
    assert!(recorded.windows(2).any(|pair| pair == [disorder, Event::Marked]), "both are told: {recorded:?}");
}

#[test]
fn a_third_ack_that_is_repeated_echoes_too() {
    let mut h = Solo::client_with(setup(speaking(plain_stamps()), client_paths(1)));
    let answer =
        |h: &Solo| h.syn_ack(0).flags(Flags::SYN | Flags::ACK | Flags::ECE).with(Solo::capable(Some(PEER_KEY), None));
    h.send(answer(&h)).clear();
    // Beyond a hole, and it does not show that the peer has our keys.
    let marked = h.seg(101, 1).data(b"hello").with(MptcpOption::Prio { backup: false });
    h.send(Segment { ecn: Ecn::Ce, ..marked }).clear();
    h.send(answer(&h));
    let third = h.recv();
    assert!(matches!(third.options.mptcp(), [MptcpOption::Capable(_)]), "{third:?}");
    assert_eq!(third.flags, Flags::ACK | Flags::ECE);
}
