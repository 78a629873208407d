//! RFC 5681 and 6582: recovery without SACK.

use super::*;
use RecoveryPhase::{Disorder, Loss, Open, Recovery};

fn reno() -> Bench {
    Bench::new(TcpSettings::default(), false)
}

impl Bench {
    fn duplicates(&mut self, n: u32) {
        for _ in 0..n {
            self.ack(0, &[]);
        }
    }
}

#[test]
fn the_third_duplicate_acknowledgment_retransmits() {
    let mut b = reno();
    b.send(6).at(40);
    assert_eq!(b.ack(0, &[]).change, Some(RecoveryChange::EnterDisorder));
    b.ack(0, &[]);
    b.expect(Disorder, 4);
    let third = b.ack(0, &[]);
    assert_eq!((third.change, third.newly_lost, third.acked_packets), (Some(RecoveryChange::EnterRecovery), 1, 1));
    b.sender.begin_recovery(3);
    b.expect(Recovery, 2);
    assert_eq!(b.resend_all(), [1]);
    // All the rest arrived.
    b.ack(0, &[]);
    b.ack(0, &[]);
    b.expect(Recovery, 1);
    b.at(80);
    let full = b.ack(6, &[]);
    assert_eq!((full.change, full.acked_packets), (Some(RecoveryChange::ExitRecovery), 1));
    b.expect(Open, 0);
}

#[test]
fn a_partial_acknowledgment_retransmits_the_next_hole() {
    let mut b = reno();
    b.send(8).at(40);
    // Packets 1 and 4 are lost.
    b.duplicates(6);
    b.sender.begin_recovery(4);
    assert_eq!(b.resend_all(), [1]);
    b.at(80);
    let partial = b.ack(3, &[]);
    assert_eq!((partial.change, partial.newly_lost, partial.may_grow), (None, 1, false));
    assert_eq!(b.resend_all(), [4]);
    b.at(120);
    assert_eq!(b.ack(8, &[]).change, Some(RecoveryChange::ExitRecovery));
    b.expect(Open, 0);
}

#[test]
fn duplicates_of_what_was_sent_again_begin_no_second_recovery() {
    let mut b = reno();
    b.send(5).at(40);
    b.duplicates(3);
    b.resend_all();
    b.at(80).send(2);
    b.ack(5, &[]);
    // RFC 6582 §3.2 step 2: nothing beyond `recover` is acknowledged yet.
    for _ in 0..5 {
        assert_ne!(b.ack(5, &[]).change, Some(RecoveryChange::EnterRecovery));
    }
}

#[test]
fn payload_and_window_updates_are_no_duplicates() {
    let mut b = reno();
    b.send(6).at(40);
    for _ in 0..5 {
        let input = b.input(0, &[]);
        assert!(b.sender.on_ack(&AckInput { bare: false, ..input }).useless);
    }
    b.expect(Open, 6);
}

#[test]
fn there_are_never_more_duplicates_than_packets_that_can_have_arrived() {
    let mut b = reno();
    b.send(3).at(40);
    b.duplicates(50);
    assert_eq!(b.sender.in_flight(), 1);
    b.send(1);
    b.duplicates(50);
    b.expect(Recovery, 0);
    b.resend_all();
    b.expect(Recovery, 1);
    b.ack(4, &[]);
    b.expect(Open, 0);
}

#[test]
fn a_timeout_forgets_the_duplicates() {
    let mut b = reno();
    b.send(4).at(40);
    b.ack(0, &[]);
    b.ack(0, &[]);
    let Fired::Timeout { newly_lost: 4, .. } = b.fire(240) else { panic!() };
    b.expect(Loss, 0);
    assert_eq!(b.resend(), Some(1));
    // RFC 6582 §4: duplicate acknowledgments now are of what arrived before.
    assert!(b.ack(0, &[]).useless);
    b.expect(Loss, 1);
    // Packets 2 and 3 arrived before the timeout: this proves nothing about it.
    b.at(280);
    assert_eq!(b.ack(3, &[]).change, None);
    b.expect(Loss, 0);
    assert_eq!(b.resend_all(), [4]);
}

#[test]
fn duplicates_of_what_a_timeout_sent_again_begin_no_recovery() {
    let mut b = reno();
    b.send(4);
    b.fire(240);
    assert_eq!(b.resend_all(), [1, 2, 3, 4]);
    b.at(280).ack(4, &[]);
    b.send(5);
    for _ in 0..4 {
        assert_ne!(b.ack(4, &[]).change, Some(RecoveryChange::EnterRecovery));
    }
}

#[test]
fn a_partial_acknowledgment_refutes_too_many_duplicates() {
    let mut b = reno();
    b.send(6).at(40);
    b.duplicates(5);
    b.sender.begin_recovery(3);
    assert_eq!(b.resend_all(), [1]);
    // The network had duplicated an acknowledgment: not only packet 1 was missing.
    b.at(80).ack(2, &[]);
    assert_eq!(b.resend_all(), [3]);
    b.expect(Recovery, 1);
}

#[test]
fn there_are_no_probes() {
    let mut b = reno();
    b.send(2);
    assert!(matches!(b.fire(240), Fired::Timeout { .. }));
}

#[test]
fn an_acknowledgment_of_a_part_of_a_packet_counts_as_none() {
    // RFC 5681 §3.1 eq 2, RFC 3465 §2.1: ACK division (Savage et al. 1999) must not grow the window faster than bytes are
    // acknowledged. Linux `tcp_remove_reno_sacks`: nothing is delivered unless whole packets are.
    let mut bench = Bench::new(TcpSettings::default(), false);
    bench.send(10);
    let mut packets = 0;
    for byte in 1..=MSS {
        let input = AckInput { ack: 1 + byte, bare: true, ..bench.input(0, &[]) };
        let outcome = bench.at(40).sender.on_ack(&input);
        assert!(outcome.may_grow || outcome.acked_packets == 0);
        packets += outcome.acked_packets;
    }
    assert_eq!(packets, 1, "one packet was acknowledged");
}
