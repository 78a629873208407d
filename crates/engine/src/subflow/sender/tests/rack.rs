//! RFC 8985: losses found by time, and tail loss probes.

use super::*;
use crate::deadlines::NEVER;
use RecoveryPhase::{Disorder, Loss, Open, Recovery};

#[test]
fn three_packets_that_overtook_end_the_waiting() {
    let mut b = Bench::rack();
    b.send(5).at(40);
    assert_eq!(b.ack(0, &[p(2, 2)]).change, Some(RecoveryChange::EnterDisorder));
    assert_eq!(b.ack(0, &[p(2, 3)]).change, None);
    b.expect(Disorder, 3);
    let third = b.ack(0, &[p(2, 4)]);
    assert_eq!((third.change, third.newly_lost), (Some(RecoveryChange::EnterRecovery), 1));
    b.expect(Recovery, 1);
    assert_eq!(b.resend_all(), [1]);
    b.at(80);
    let repaired = b.ack(5, &[]);
    assert_eq!((repaired.change, repaired.acked_packets), (Some(RecoveryChange::ExitRecovery), 2));
    b.expect(Open, 0);
    assert!(b.sender.is_empty());
    assert_eq!(b.sender.deadline(), NEVER);
}

#[test]
fn one_packet_that_overtook_needs_a_quarter_rtt_of_patience() {
    let mut b = Bench::rack();
    b.send(1).at(1).send(1).at(41);
    b.ack(0, &[p(2, 2)]);
    b.expect(Disorder, 1);
    // Sent at 0, RACK.rtt 40 ms, reordering window 10 ms.
    let fired = b.fire(50);
    assert_eq!(fired, Fired::ReorderTimer { newly_lost: 1, change: Some(RecoveryChange::EnterRecovery) });
    b.expect(Recovery, 0);
    b.sender.begin_recovery(5);
    assert_eq!(b.sender.effective_window(5), 1);
    assert_eq!(b.resend(), Some(1));
    // No tail loss probe is left over.
    assert_eq!(b.sender.deadline(), at(50) + b.rto());
}

#[test]
fn the_reordering_timer_waits_for_the_last_packet_overtaken() {
    let mut b = Bench::rack();
    for i in 0..4 {
        b.at(i).send(1);
    }
    b.at(43).ack(0, &[p(4, 4)]);
    // RFC 8985 §6.2 step 5: the longest remaining time, that of packet 3.
    assert_eq!(b.fire(52), Fired::ReorderTimer { newly_lost: 3, change: Some(RecoveryChange::EnterRecovery) });
    assert_eq!(b.resend_all(), [1, 2, 3]);
}

#[test]
fn a_packet_that_was_only_late_makes_the_sender_patient() {
    let mut b = Bench::rack();
    b.send(5).at(40);
    b.ack(0, &[p(2, 2)]);
    b.at(45);
    let late = b.ack(2, &[]);
    assert_eq!((late.change, late.newly_lost), (Some(RecoveryChange::LeaveDisorder), 0));
    // From now on three packets that overtake do not suffice: reordering was seen.
    b.ack(5, &[]);
    b.at(100).send(5).at(140);
    b.ack(5, &[p(7, 10)]);
    b.expect(Disorder, 1);
    assert!(matches!(b.fire(150), Fired::ReorderTimer { newly_lost: 1, .. }));
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut b = Bench::rack();
    b.send(5).at(40);
    b.ack(0, &[p(2, 5)]);
    b.sender.begin_recovery(5);
    assert_eq!(b.resend_all(), [1]);
    b.at(41).send(3).at(80);
    b.expect(Recovery, 4);
    // Packet 6 was sent after the retransmission of 1 and arrives without it.
    b.at(81);
    let outcome = b.ack(0, &[p(2, 6)]);
    assert_eq!((outcome.newly_lost, outcome.change), (1, None));
    assert_eq!(b.resend_all(), [1]);
    b.at(121);
    assert_eq!(b.ack(8, &[]).change, Some(RecoveryChange::ExitRecovery));
}

#[test]
fn an_acknowledgment_too_early_for_a_retransmission_is_no_evidence() {
    let mut b = Bench::rack();
    b.send(5).at(40);
    b.ack(0, &[p(2, 4)]);
    assert_eq!(b.resend_all(), [1]);
    // 10 ms after the retransmission its original arrives; packet 5, sent before the retransmission, is not lost for that.
    b.at(50);
    let outcome = b.ack(1, &[p(2, 4)]);
    assert_eq!((outcome.newly_lost, outcome.rtt), (0, None));
}

#[test]
fn a_timestamp_tells_that_the_original_arrived_late() {
    let mut b = Bench::rack();
    b.send(5).at(40);
    b.ack(0, &[p(2, 4)]);
    assert_eq!(b.resend_all(), [1]);
    // Late enough for the retransmission, but the echo is of the original.
    b.at(90);
    assert_eq!(b.echo(1, &[p(2, 4)], 0).change, Some(RecoveryChange::Undo));
    assert_eq!(b.echo(1, &[p(2, 4)], 0).newly_lost, 0);
    b.expect(Disorder, 1);
    // The reordering is remembered.
    b.at(91).echo(5, &[], 0);
    b.at(100).send(5).at(140);
    assert_eq!(b.ack(5, &[p(7, 10)]).change, Some(RecoveryChange::EnterDisorder));
}

#[test]
fn losses_are_repaired_in_order_of_sequence() {
    let mut b = Bench::rack();
    b.send(20).at(40);
    b.ack(0, &[p(3, 5), p(8, 8), p(10, 19)]);
    assert_eq!(b.resend_all(), [1, 2, 6, 7, 9]);
    b.expect(Recovery, 6);
    b.at(80);
    b.ack(5, &[p(8, 8), p(10, 19)]);
    // The retransmissions overtook packet 20.
    b.expect(Recovery, 3);
    assert_eq!(b.resend_all(), [20]);
}

#[test]
fn a_block_counts_only_whole_packets() {
    let mut b = Bench::rack();
    b.send(4).at(40);
    let outcome = b.ack(0, &[Range::new(upto(1) + 1, upto(3) - 1)]);
    assert!(outcome.useless);
    let outcome = b.ack(0, &[Range::new(upto(1) + 1, upto(4))]);
    assert_eq!((outcome.acked_packets, outcome.acked_bytes), (2, 2 * MSS));
}

#[test]
fn the_tail_is_probed_after_two_rtts() {
    let mut b = Bench::rack();
    b.send(3);
    b.at(40).ack(1, &[]);
    // RFC 8985 §7.2: 2·SRTT after the last acknowledgment.
    assert_eq!(b.fire(120), Fired::Probe);
    let last = b.sender.last().unwrap().seq();
    assert_eq!(last, p(3, 3));
    b.sender.on_retransmitted(b.now, packet_at(last.start));
    b.expect(Open, 3);
    // The probe's SACK shows that packet 2 is lost: fast recovery instead of a timeout.
    b.at(160);
    let outcome = b.ack(1, &[p(3, 3)]);
    assert_eq!((outcome.newly_lost, outcome.change), (1, Some(RecoveryChange::EnterRecovery)));
    assert_eq!(b.resend_all(), [2]);
}

/// RFC 7323 §4.3: the probe comes out of order, so that the receiver echoes the last segment that did not.
#[test]
fn a_probe_finds_the_lost_tail_although_its_timestamp_is_not_echoed() {
    let mut b = Bench::rack();
    b.send(8);
    b.at(40).ack(1, &[]);
    assert_eq!(b.fire(120), Fired::Probe);
    b.sender.on_retransmitted(b.now, packet_at(p(8, 8).start));
    let outcome = b.at(160).echo(1, &[p(8, 8)], 0);
    assert_eq!((outcome.newly_lost, outcome.change), (6, Some(RecoveryChange::EnterRecovery)));
}

#[test]
fn a_lone_packet_is_probed_later_but_not_after_its_timeout() {
    let mut b = Bench::rack();
    b.at(1000).send(1);
    // 2·40 + 200 > RTO = 40 + 200: the probe goes first.
    assert_eq!(b.fire(1240), Fired::Probe);
    b.sender.on_retransmitted(b.now, packet_at(1));
    // Afterwards the timeout starts afresh, and there is no second probe.
    let fired = b.fire(1480);
    assert_eq!(fired, Fired::Timeout { n: 1, newly_lost: 1, again: false });
}

#[test]
fn a_lone_packet_tells_that_the_round_trip_has_become_longer_than_the_probe_waits() {
    let mut b = Bench::rack();
    b.at(1000).send(1);
    assert_eq!(b.fire(1240), Fired::Probe);
    b.sender.on_retransmitted(b.now, packet_at(1));
    // The acknowledgment of the original: its echo says so, and it reports no duplicate.
    assert_eq!(b.at(1400).echo(1, &[], 1000).rtt, Some(ms(400)));
    assert_eq!(b.sender.rtt().srtt(), Some(ms(40) * 7 / 8 + ms(400) / 8));
}

#[test]
fn the_answer_to_a_copy_tells_no_round_trip_of_the_original() {
    let mut b = Bench::rack();
    b.at(1000).send(1);
    assert_eq!(b.fire(1240), Fired::Probe);
    b.sender.on_retransmitted(b.now, packet_at(1));
    // The acknowledgment of the original was lost; the echo is the original's all the same.
    b.at(1280);
    let echo = Some((b.now.since(at(1000)), at(1000)));
    let outcome = b.sender.on_ack(&AckInput { echo, dsack: Some(p(1, 1)), ..b.input(1, &[]) });
    assert_eq!((outcome.una_advanced, outcome.rtt), (true, None));
    assert_eq!(b.sender.rtt().srtt(), Some(ms(40)));
}

#[test]
fn the_answer_to_a_probe_with_new_data_tells_its_own_round_trip_alone() {
    let mut b = Bench::rack();
    b.at(1000).send(1);
    assert_eq!(b.fire(1240), Fired::Probe);
    b.send(1);
    // The acknowledgment of the first was lost, or waited for the second.
    assert_eq!(b.at(1280).ack(2, &[]).rtt, Some(ms(40)));
    assert_eq!(b.sender.rtt().srtt(), Some(ms(40)));
}

#[test]
fn new_data_puts_the_probe_off_and_serves_as_one() {
    let mut b = Bench::rack();
    b.send(2).at(30).send(1);
    assert_eq!(b.fire(110), Fired::Probe);
    b.send(1);
    b.at(150);
    let outcome = b.ack(0, &[p(4, 4)]);
    assert_eq!(outcome.newly_lost, 3);
    assert_eq!(outcome.change, Some(RecoveryChange::EnterRecovery));
}

#[test]
fn a_probe_that_repaired_the_tail_counts_as_a_loss() {
    let mut b = Bench::rack();
    b.send(2).at(40).ack(1, &[]);
    let Fired::Probe = b.fire(280) else { panic!() };
    b.sender.on_retransmitted(b.now, packet_at(upto(1)));
    b.at(320);
    let repaired = b.ack(2, &[]);
    assert_eq!(repaired.change, None);
    // RFC 8985 §7.4.2: without a DSACK the next acknowledgment tells.
    b.send(1).at(360);
    let next = b.ack(3, &[]);
    assert_eq!(next.change, Some(RecoveryChange::ProbeRepaired));
    assert!(next.may_grow);
    b.expect(Open, 0);
}

#[test]
fn a_repaired_loss_is_told_whatever_else_happens() {
    let mut b = Bench::rack();
    b.send(2).at(40).ack(1, &[]);
    let Fired::Probe = b.fire(280) else { panic!() };
    b.sender.on_retransmitted(b.now, packet_at(upto(1)));
    b.at(320).ack(2, &[]);
    b.send(3).at(360);
    assert_eq!(b.ack(3, &[p(5, 5)]).change, Some(RecoveryChange::ProbeRepaired));
    b.expect(Disorder, 1);
}

#[test]
fn a_probe_that_was_needless_costs_nothing() {
    let mut b = Bench::rack();
    b.send(2).at(40).ack(1, &[]);
    let Fired::Probe = b.fire(280) else { panic!() };
    b.sender.on_retransmitted(b.now, packet_at(upto(1)));
    b.at(300).ack(2, &[]);
    b.at(320).dsack(2, p(2, 2));
    b.send(1).at(360);
    assert_eq!(b.ack(3, &[]).change, None);
}

#[test]
fn prr_paces_the_recovery() {
    let mut b = Bench::rack();
    b.send(20).at(40);
    b.ack(0, &[p(2, 2)]);
    b.ack(0, &[p(2, 3)]);
    assert_eq!(b.ack(0, &[p(2, 4)]).change, Some(RecoveryChange::EnterRecovery));
    b.sender.begin_recovery(10);
    // One delivered packet since recovery began: one may leave.
    assert_eq!((b.sender.in_flight(), b.sender.effective_window(10)), (16, 17));
    assert_eq!(b.resend(), Some(1));
    for n in 5..=20 {
        b.ack(0, &[p(2, n)]);
        let room = b.sender.effective_window(10).saturating_sub(b.sender.in_flight());
        b.send(u64::from(room));
    }
    assert_eq!(b.sender.in_flight(), 10);
    b.at(80).ack(20, &[]);
    assert_eq!((b.sender.phase(), b.sender.effective_window(10)), (Open, 10));
}

#[test]
fn what_was_lost_beyond_the_recovery_point_begins_another_recovery() {
    let mut b = Bench::rack();
    b.send(5).at(40);
    b.ack(0, &[p(2, 5)]);
    b.sender.begin_recovery(5);
    b.resend_all();
    b.at(45).send(4).at(80);
    // Packet 6 is lost; the acknowledgment that ends the first recovery shows it.
    b.at(85);
    let outcome = b.ack(5, &[p(7, 9)]);
    assert_eq!((outcome.change, outcome.newly_lost), (Some(RecoveryChange::EnterRecovery), 1));
    assert_eq!(b.resend_all(), [6]);
}

/// A needless recovery: the first of five packets, after `n` others, is late, and the peer reports the duplicate.
fn needless(b: &mut Bench, n: u64) -> AckOutcome {
    let start = b.now.as_nanos() / 1_000_000;
    b.send(5).at(start + 40).ack(n, &[p(n + 2, n + 5)]);
    assert_eq!(b.resend_all(), [n + 1]);
    b.at(start + 45).ack(n + 5, &[]);
    b.at(start + 80);
    b.dsack(n + 5, p(n + 1, n + 1))
}

/// How long one packet may be overtaken by the next, after `n` others.
fn patience(b: &mut Bench, n: u64) -> Duration {
    let start = b.now;
    b.send(1);
    b.now += ms(1);
    b.send(1);
    b.now += ms(40);
    b.ack(n, &[p(n + 2, n + 2)]);
    b.sender.deadline().since(start) - ms(40)
}

#[test]
fn duplicates_lengthen_the_patience_once_a_round() {
    let mut b = Bench::rack();
    assert_eq!(needless(&mut b, 0).change, Some(RecoveryChange::Undo));
    assert_eq!(patience(&mut b, 5), ms(20));

    let mut b = Bench::rack();
    needless(&mut b, 0);
    b.send(1).at(121).ack(6, &[]);
    b.at(200).send(5).at(240);
    b.ack(6, &[p(8, 11)]);
    b.resend_all();
    // The second round's duplicate.
    b.at(245).ack(11, &[]);
    b.at(280).dsack(11, p(7, 7));
    let srtt = b.sender.rtt().srtt().unwrap();
    assert_eq!(patience(&mut b, 11), ms(30).min(srtt));
}

#[test]
fn sixteen_recoveries_without_duplicates_end_the_lengthening() {
    let mut b = Bench::rack();
    needless(&mut b, 0);
    for i in 1..=16 {
        b.send(5);
        b.now += ms(40);
        b.ack(5 * i, &[p(5 * i + 2, 5 * i + 5)]);
        b.resend_all();
        b.now += ms(40);
        assert_eq!(b.ack(5 * i + 5, &[]).change, Some(RecoveryChange::ExitRecovery));
    }
    assert_eq!(patience(&mut b, 85), ms(10));
}

#[test]
fn a_retransmission_lost_after_a_timeout_begins_fast_recovery() {
    let mut b = Bench::rack();
    b.send(3);
    let Fired::Probe = b.fire(80) else { panic!() };
    b.send(1);
    assert!(matches!(b.fire(320), Fired::Timeout { n: 1, newly_lost: 4, .. }));
    assert_eq!(b.resend(), Some(1));
    b.expect(Loss, 1);
    b.at(330);
    assert_eq!(b.resend(), Some(2));
    // The second retransmission arrives, the first does not.
    b.at(375);
    let outcome = b.ack(0, &[p(2, 2)]);
    assert_eq!((outcome.newly_lost, outcome.change), (1, Some(RecoveryChange::EnterRecovery)));
    b.expect(Recovery, 0);
}

/// RFC 8985 §6.2 step 3: only what lies below the highest that was delivered was overtaken.
#[test]
fn the_highest_packet_is_not_reordered_when_the_receiver_reports_it_anew() {
    let mut b = Bench::rack();
    b.send(5).at(40);
    assert_eq!(b.ack(0, &[p(2, 4)]).change, Some(RecoveryChange::EnterRecovery));
    b.sender.begin_recovery(2);
    assert_eq!(b.resend_all(), [1]);
    // The receiver has discarded what it SACKed, as the timeout finds out.
    b.at(80).ack(1, &[]);
    let due = b.sender.deadline();
    assert!(matches!(b.sender.on_timer(due), Fired::Timeout { .. }));
    b.now = due + ms(1);
    assert_eq!(b.ack(1, &[p(4, 4)]).acked_packets, 1);
    assert!(!b.sender.rack.reordering_seen());
}
