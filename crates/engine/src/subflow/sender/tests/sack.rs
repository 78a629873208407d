//! RFC 6675: recovery by counting SACKed packets.

use super::*;
use RecoveryPhase::{Disorder, Open, Recovery};

fn sack() -> Bench {
    Bench::new(TcpSettings { recovery: RecoveryKind::Sack, ..TcpSettings::default() }, true)
}

impl Bench {
    fn speculate(&mut self) -> Option<u64> {
        let start = self.sender.next_speculative()?.seq().start;
        self.sender.on_retransmitted(self.now, packet_at(start));
        Some((start - 1) / MSS + 1)
    }
}

#[test]
fn a_packet_is_lost_once_three_above_it_are_sacked() {
    let mut b = sack();
    b.send(10).at(40);
    b.ack(0, &[p(2, 2)]);
    b.ack(0, &[p(4, 4), p(2, 2)]);
    b.expect(Disorder, 8);
    let outcome = b.ack(0, &[p(6, 6), p(4, 4), p(2, 2)]);
    assert_eq!((outcome.change, outcome.newly_lost), (Some(RecoveryChange::EnterRecovery), 1));
    b.expect(Recovery, 6);
    b.sender.begin_recovery(5);
    assert_eq!(b.resend_all(), [1]);
    // Packet 8: now 3 has three above it, 5 has two.
    assert_eq!(b.ack(0, &[p(8, 8), p(6, 6), p(4, 4)]).newly_lost, 1);
    assert_eq!(b.resend_all(), [3]);
    assert_eq!(b.sender.deadline(), at(40) + b.rto());
}

#[test]
fn what_was_sent_again_is_not_lost_again_before_the_timeout() {
    let mut b = sack();
    b.send(5).at(40);
    b.ack(0, &[p(2, 5)]);
    b.sender.begin_recovery(3);
    assert_eq!(b.resend_all(), [1]);
    b.send(3).at(80);
    assert_eq!(b.ack(0, &[p(2, 8)]).newly_lost, 0);
    assert!(b.sender.next_lost().is_none());
}

#[test]
fn next_seg_rule_3_fills_holes_that_are_not_lost_yet() {
    let mut b = sack();
    b.send(10).at(40);
    b.ack(0, &[p(3, 4), p(6, 6), p(8, 8)]);
    b.sender.begin_recovery(5);
    // Lost are those with three SACKed above: 1 and 2. Then, with nothing new to send, 5 and 7.
    assert_eq!(b.resend_all(), [1, 2]);
    assert_eq!((b.speculate(), b.speculate()), (Some(5), Some(7)));
    // Both the original and the retransmission of 5 and 7 are in flight.
    b.expect(Recovery, 2 + 4 + 2);
    // 5 is lost after all: it was retransmitted already.
    let outcome = b.ack(0, &[p(3, 4), p(6, 6), p(8, 9)]);
    assert_eq!(outcome.newly_lost, 1);
    assert!(b.sender.next_lost().is_none());
    b.expect(Recovery, 2 + 3 + 1);
}

#[test]
fn next_seg_rule_4_rescues_the_tail_once() {
    let mut b = sack();
    b.send(8).at(40);
    b.ack(0, &[p(2, 4)]);
    b.sender.begin_recovery(4);
    assert_eq!(b.resend_all(), [1]);
    assert_eq!(b.speculate(), Some(8));
    assert_eq!(b.speculate(), None);
    b.at(80);
    b.ack(4, &[p(8, 8)]);
    // Its SACK uncovers the holes below it.
    assert_eq!((b.speculate(), b.speculate(), b.speculate()), (Some(5), Some(6), Some(7)));
    assert_eq!(b.speculate(), None);
}

#[test]
fn every_recovery_may_rescue_its_tail() {
    let mut b = sack();
    for round in 0..2 {
        let n = 8 * round;
        b.send(8);
        b.now += ms(40);
        b.ack(n, &[p(n + 2, n + 4)]);
        b.sender.begin_recovery(4);
        assert_eq!(b.resend_all(), [n + 1]);
        assert_eq!((b.speculate(), b.speculate()), (Some(n + 8), None));
        b.now += ms(40);
        b.ack(n + 8, &[]);
    }
}

#[test]
fn with_rack_nothing_is_sent_on_suspicion() {
    let mut b = Bench::rack();
    b.send(8).at(40);
    b.ack(0, &[p(2, 4)]);
    b.resend_all();
    b.expect(Recovery, 5);
    assert!(b.sender.next_speculative().is_none());
}

#[test]
fn after_recovery_losses_are_counted_anew() {
    let mut b = sack();
    b.send(5).at(40);
    b.ack(0, &[p(2, 5)]);
    b.sender.begin_recovery(3);
    b.resend_all();
    b.at(80);
    assert_eq!(b.ack(5, &[]).change, Some(RecoveryChange::ExitRecovery));
    b.send(5).at(120);
    assert_eq!(b.ack(5, &[p(7, 8)]).change, Some(RecoveryChange::EnterDisorder));
    assert_eq!(b.ack(5, &[p(7, 9)]).change, Some(RecoveryChange::EnterRecovery));
    assert_eq!(b.resend_all(), [6]);
    b.at(160);
    b.ack(10, &[]);
    b.expect(Open, 0);
}

/// Forward acknowledgments with tail loss probes: Linux 3.10 to 4.3.
fn fack() -> Bench {
    let settings = TcpSettings { recovery: RecoveryKind::Fack, tail_loss_probe: Some(true), ..TcpSettings::default() };
    Bench::new(settings, true)
}

#[test]
fn three_below_the_highest_sacked_are_lost_by_forward_acknowledgment() {
    let mut b = fack();
    b.send(8).at(40);
    b.ack(0, &[p(3, 3)]);
    b.expect(Disorder, 7);
    let outcome = b.ack(0, &[p(5, 5), p(3, 3)]);
    assert_eq!((outcome.change, outcome.newly_lost), (Some(RecoveryChange::EnterRecovery), 2));
    b.sender.begin_recovery(4);
    assert_eq!(b.resend_all(), [1, 2]);
    // Packet 4 is one below packet 5, and three below packet 7.
    assert_eq!(b.ack(0, &[p(6, 6), p(5, 5), p(3, 3)]).newly_lost, 0);
    assert_eq!(b.ack(0, &[p(7, 7), p(5, 6), p(3, 3)]).newly_lost, 1);
    assert_eq!(b.resend_all(), [4]);
    b.sender.board.audit();
}

#[test]
fn once_packets_overtake_each_other_three_must_be_sacked_above() {
    let mut b = fack();
    b.send(8).at(40);
    b.ack(0, &[p(2, 2)]);
    // Packet 1 comes after packet 2.
    b.ack(2, &[]);
    assert_eq!(b.ack(2, &[p(7, 7)]).newly_lost, 0);
    assert_eq!(b.ack(2, &[p(6, 8)]).newly_lost, 3);
}

#[test]
fn without_rack_a_probe_uncovers_a_lost_tail() {
    let mut b = fack();
    b.send(6);
    b.at(40).ack(1, &[]);
    // draft-dukkipati-tcpm-tcp-loss-probe-01 §2.1: max(2·SRTT, 10 ms)
    assert_eq!(b.fire(120), Fired::Probe);
    let last = b.sender.last().unwrap().seq();
    b.sender.on_retransmitted(b.now, packet_at(last.start));
    b.at(160);
    let outcome = b.ack(1, &[p(6, 6)]);
    assert_eq!((outcome.newly_lost, outcome.change), (2, Some(RecoveryChange::EnterRecovery)));
    assert_eq!(b.resend_all(), [2, 3]);
    // RFC 6675 alone waits for two more above: with it the probe repairs nothing but itself.
    let settings = TcpSettings { recovery: RecoveryKind::Sack, tail_loss_probe: Some(true), ..TcpSettings::default() };
    let mut b = Bench::new(settings, true);
    b.send(6);
    b.at(40).ack(1, &[]);
    assert_eq!(b.fire(120), Fired::Probe);
    b.sender.on_retransmitted(b.now, packet_at(last.start));
    assert_eq!(b.at(160).ack(1, &[p(6, 6)]).newly_lost, 0);
}

#[test]
fn without_rack_a_lone_packet_is_probed_after_the_worst_delay_of_an_acknowledgment() {
    let mut b = fack();
    // 1.5·40 + 200 > RTO = 40 + 200: the probe takes the timeout's place.
    b.at(1000).send(1);
    assert_eq!(b.fire(1240), Fired::Probe);
    let slow = TcpSettings {
        rto_min: ms(1000),
        recovery: RecoveryKind::Fack,
        tail_loss_probe: Some(true),
        ..TcpSettings::default()
    };
    let mut b = Bench::new(slow, true);
    b.at(1000).send(1);
    assert_eq!(b.fire(1260), Fired::Probe);
}

#[test]
fn no_stack_without_the_switch_probes_or_skips_ahead() {
    let mut b = sack();
    b.send(6);
    b.at(40).ack(1, &[]);
    assert_eq!(b.sender.deadline(), at(40) + b.rto());
    assert_eq!(b.ack(1, &[p(6, 6)]).newly_lost, 0);
    let mut b = Bench::new(TcpSettings { tail_loss_probe: Some(false), ..TcpSettings::default() }, true);
    b.send(6);
    b.at(40).ack(1, &[]);
    assert_eq!(b.sender.deadline(), at(40) + b.rto());
}
