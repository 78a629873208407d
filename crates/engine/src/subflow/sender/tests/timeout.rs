//! RFC 6298, 5682, 3522, 2018: timeouts, and what takes them back.

use super::*;
use crate::deadlines::NEVER;
use RecoveryPhase::{Loss, Open, Recovery};

/// A sender without tail loss probes.
fn old() -> Bench {
    Bench::new(TcpSettings { recovery: RecoveryKind::Sack, ..TcpSettings::default() }, true)
}

#[test]
fn everything_is_lost_and_sent_again_in_order() {
    let mut b = old();
    b.send(4);
    assert_eq!(b.fire(240), Fired::Timeout { n: 1, newly_lost: 4, again: false });
    b.expect(Loss, 0);
    assert_eq!(b.sender.effective_window(1), 1);
    assert_eq!(b.resend_all(), [1, 2, 3, 4]);
    b.at(280);
    assert_eq!(b.ack(3, &[]).change, None);
    assert_eq!(b.ack(4, &[]).change, Some(RecoveryChange::LeaveLoss));
    b.expect(Open, 0);
}

#[test]
fn the_timeout_doubles_until_something_is_acknowledged() {
    let mut b = old();
    b.send(1);
    let mut at_ms = 240;
    for n in 1..=4 {
        assert_eq!(b.fire(at_ms), Fired::Timeout { n, newly_lost: 1, again: n > 1 });
        b.resend_all();
        at_ms += 240 << n;
    }
    assert_eq!(b.rto(), ms(240 << 4));
    b.at(2000);
    // Karn: no sample, so the back-off stays, but the count ends.
    b.ack(1, &[]);
    assert_eq!((b.sender.timeouts, b.rto()), (0, ms(240 << 4)));
    b.at(3000).send(1).at(3040).ack(2, &[]);
    assert_eq!(b.rto(), b.sender.rtt().rto());
}

#[test]
fn a_timestamp_gives_a_sample_where_karn_forbids_one() {
    let mut b = old();
    b.send(1);
    b.fire(240);
    b.resend_all();
    b.at(300);
    let outcome = b.echo(1, &[], 240);
    assert_eq!(outcome.rtt, Some(ms(60)));
    assert_eq!(outcome.change, Some(RecoveryChange::LeaveLoss));
    assert_eq!(b.rto(), b.sender.rtt().rto());
}

#[test]
fn the_limit_shortens_the_timeout_that_is_running() {
    let mut b = old();
    b.send(1);
    b.fire(240);
    b.resend_all();
    b.fire(720);
    b.resend_all();
    assert_eq!(b.sender.deadline(), at(720 + 960));
    b.sender.limit_rto(ms(500));
    assert_eq!((b.sender.deadline(), b.rto()), (at(720 + 500), ms(500)));
    b.sender.limit_rto(ms(1));
    assert_eq!(b.rto(), ms(240));
}

#[test]
fn acknowledgments_and_only_they_restart_the_timer() {
    let mut b = old();
    b.send(1).at(100).send(1);
    assert_eq!(b.sender.deadline(), at(240));
    b.at(120).ack(0, &[]);
    assert_eq!(b.sender.deadline(), at(240));
    b.at(140).ack(1, &[]);
    let rto = b.rto();
    assert_eq!(b.sender.deadline(), at(140) + rto);
    b.ack(2, &[]);
    assert_eq!(b.sender.deadline(), NEVER);
}

#[test]
fn eifel_takes_a_timeout_back() {
    let mut b = Bench::rack();
    b.send(4).at(40).ack(1, &[]);
    let Fired::Probe = b.fire(120) else { panic!() };
    b.sender.on_retransmitted(b.now, packet_at(upto(3)));
    assert!(matches!(b.fire(360), Fired::Timeout { n: 1, .. }));
    assert_eq!(b.resend(), Some(2));
    b.at(370);
    // The original of packet 2, sent at 0, arrives at last.
    let outcome = b.echo(2, &[], 0);
    assert_eq!(outcome.change, Some(RecoveryChange::Undo));
    assert!(b.sender.next_lost().is_none());
    assert_ne!(b.sender.phase(), Loss);
    b.at(371);
    b.echo(4, &[], 0);
    b.expect(Open, 0);
}

#[test]
fn frto_takes_a_timeout_back_when_originals_arrive() {
    let mut b = old();
    b.send(4);
    b.fire(240);
    assert_eq!(b.resend(), Some(1));
    // Packet 2, never retransmitted, arrives: RFC 5682 §3.1 step 3.b.
    b.at(250);
    let outcome = b.ack(2, &[]);
    assert_eq!(outcome.change, Some(RecoveryChange::Undo));
    // Karn: packet 1, which it acknowledges too, was sent twice.
    assert_eq!(outcome.rtt, None);
    assert!(b.sender.next_lost().is_none());
    b.expect(Open, 2);
}

#[test]
fn frto_heeds_sacks_too() {
    let mut b = old();
    b.send(4);
    b.fire(240);
    assert_eq!(b.resend(), Some(1));
    b.at(250);
    assert_eq!(b.ack(0, &[p(2, 2)]).change, Some(RecoveryChange::Undo));
    assert_eq!(b.sender.timeouts, 0);
}

#[test]
fn the_answer_to_a_probe_of_the_path_proves_nothing() {
    let mut b = old();
    b.send(4);
    b.fire(240);
    assert_eq!(b.resend(), Some(1));
    b.fire(720);
    assert_eq!(b.resend(), Some(1));
    // Packets 2 and 3 had arrived before the path fell silent; only the answer tells.
    let rtt = b.sender.rtt().srtt();
    b.at(1100).sender.retry(at(1100));
    let outcome = b.ack(0, &[p(2, 3)]);
    assert_eq!((outcome.change, outcome.rtt, b.sender.rtt().srtt()), (None, None, rtt));
    b.expect(Loss, 0);
    assert_eq!(b.resend(), Some(1), "at once");
    // The next one is an acknowledgment like any other.
    b.at(1140);
    assert!(b.echo(3, &[], 1100).rtt.is_some());
}

#[test]
fn frto_ends_when_new_data_arrives_and_the_retransmission_does_not() {
    let mut b = old();
    b.send(4);
    b.fire(240);
    assert_eq!(b.resend(), Some(1));
    b.send(1).at(280);
    // RFC 5682 §3.1 step 3.a
    assert_eq!(b.ack(0, &[p(5, 5)]).change, None);
    assert_eq!(b.ack(0, &[p(5, 5), p(2, 2)]).change, None);
    assert_eq!(b.sender.phase(), Loss);
}

#[test]
fn frto_sends_new_data_to_find_out() {
    // RFC 5682 §3.1 step 2.b, without SACK and timestamps; the originals arrive: step 3.b.
    let mut b = Bench::new(TcpSettings::default(), false);
    b.send(4);
    b.fire(240);
    assert_eq!(b.resend(), Some(1));
    b.at(280);
    assert_eq!(b.ack(1, &[]).change, None);
    assert!(b.sender.wants_new() && b.sender.next_lost().is_none());
    b.send(2);
    assert!(!b.sender.wants_new());
    b.at(290);
    assert_eq!(b.ack(2, &[]).change, Some(RecoveryChange::Undo));
    assert!(b.sender.next_lost().is_none());
    // They do not: step 3.a, and what was lost is retransmitted.
    let mut b = old();
    b.send(4);
    b.fire(240);
    b.resend();
    b.at(280).ack(1, &[]);
    b.send(2).at(320);
    assert_eq!(b.ack(1, &[p(5, 5)]).change, None);
    assert_eq!((b.sender.phase(), b.resend_all()), (Loss, vec![2, 3, 4]));
}

#[test]
fn frto_gives_up_when_the_retransmission_moves_the_window() {
    let mut b = old();
    b.send(4);
    b.fire(240);
    assert_eq!(b.resend(), Some(1));
    b.at(280);
    assert_eq!(b.ack(1, &[]).change, None);
    assert_eq!(b.resend(), Some(2));
    b.at(320);
    assert_eq!(b.ack(3, &[]).change, None);
    b.expect(Loss, 0);
    assert_eq!(b.resend_all(), [4]);
}

#[test]
fn a_timeout_in_recovery_belongs_to_its_episode() {
    let mut b = old();
    b.send(6).at(40);
    assert_eq!(b.ack(0, &[p(2, 4)]).change, Some(RecoveryChange::EnterRecovery));
    b.sender.begin_recovery(3);
    assert_eq!(b.resend_all(), [1]);
    let rto = b.rto();
    b.now = at(40) + rto;
    // The retransmission and packets 5 and 6.
    assert_eq!(b.sender.on_timer(b.now), Fired::Timeout { n: 1, newly_lost: 3, again: true });
    b.expect(Loss, 0);
    assert_eq!(b.sender.effective_window(1), 1);
    assert_eq!(b.resend_all(), [1, 5, 6]);
}

#[test]
fn progress_between_timeouts_makes_a_new_episode() {
    let mut b = old();
    b.send(3);
    assert!(matches!(b.fire(240), Fired::Timeout { again: false, .. }));
    b.resend();
    b.at(280).ack(1, &[]);
    b.resend();
    let due = b.sender.deadline();
    b.now = due;
    assert!(matches!(b.sender.on_timer(due), Fired::Timeout { n: 1, again: false, .. }));
    // RFC 5682 §3.1 step 1: F-RTO is for the first timeout of a recovery, so that packet 3 proves nothing.
    assert_eq!(b.ack(3, &[]).change, Some(RecoveryChange::LeaveLoss));
}

#[test]
fn what_was_sent_just_before_the_timeout_may_still_arrive() {
    let mut b = Bench::rack();
    b.send(2).at(40).ack(1, &[]);
    b.at(230).send(1);
    let Fired::Probe = b.fire(280) else { panic!() };
    b.sender.on_retransmitted(b.now, packet_at(upto(2)));
    b.at(500).send(1);
    // RACK.rtt is 40 ms: packet 4, sent 20 ms ago, stays in flight.
    assert_eq!(b.fire(520), Fired::Timeout { n: 1, newly_lost: 2, again: false });
    b.expect(Loss, 1);
    // The first packet goes out nevertheless.
    assert_eq!(b.sender.effective_window(1), 2);
    assert_eq!(b.resend(), Some(2));
    assert_eq!(b.sender.effective_window(1), 1);
}

#[test]
fn a_receiver_that_discards_what_it_sacked_gets_it_again() {
    let mut b = old();
    b.send(4).at(40);
    b.ack(0, &[p(2, 3)]);
    // The receiver acknowledges packet 1 alone: it must have discarded packets 2 and 3.
    b.at(50);
    let outcome = b.ack(1, &[]);
    assert!(outcome.una_advanced);
    let srtt = b.sender.rtt().srtt().unwrap();
    let due = b.sender.deadline();
    assert_eq!(due, at(50) + srtt / 2);
    b.now = due;
    assert_eq!(b.sender.on_timer(due), Fired::Timeout { n: 1, newly_lost: 3, again: false });
    assert_eq!(b.resend_all(), [2, 3, 4]);
}

#[test]
fn all_retransmissions_were_duplicates() {
    let mut b = Bench::rack();
    b.send(6).at(40);
    assert_eq!(b.ack(0, &[p(3, 5)]).change, Some(RecoveryChange::EnterRecovery));
    b.sender.begin_recovery(3);
    assert_eq!(b.resend_all(), [1, 2]);
    b.at(45);
    assert_eq!(b.ack(6, &[]).change, Some(RecoveryChange::ExitRecovery));
    b.at(80);
    assert_eq!(b.dsack(6, p(1, 1)).change, None);
    // RFC 2883 §4: the last of the retransmissions was spurious too.
    assert_eq!(b.dsack(6, p(2, 2)).change, Some(RecoveryChange::Undo));
    // A third report can only be the network's doing.
    assert_eq!(b.dsack(6, p(2, 2)).change, None);
}

#[test]
fn a_delayed_packet_that_fills_the_hole_ends_recovery() {
    let mut b = Bench::rack();
    b.send(6).at(40);
    b.ack(0, &[p(2, 2), p(4, 6)]);
    b.sender.begin_recovery(3);
    b.expect(Recovery, 0);
    assert_eq!(b.resend(), Some(1));
    b.at(45);
    // The first original arrives; nothing else was retransmitted, so all is taken back.
    let outcome = b.echo(2, &[p(4, 6)], 0);
    assert_eq!(outcome.change, Some(RecoveryChange::Undo));
    assert_eq!(b.sender.in_flight(), 1);
}

#[test]
fn all_that_was_sent_again_must_be_accounted_for() {
    let mut b = Bench::rack();
    b.send(6).at(40);
    b.ack(0, &[p(3, 5)]);
    b.sender.begin_recovery(3);
    assert_eq!(b.resend_all(), [1, 2]);
    b.at(45);
    assert_eq!(b.echo(1, &[p(3, 5)], 0).change, None);
    b.expect(Recovery, 2);
    b.at(46);
    assert_eq!(b.echo(5, &[], 0).change, Some(RecoveryChange::Undo));
    b.expect(Open, 1);
}

#[test]
fn a_duplicate_takes_nothing_back_while_a_packet_is_lost() {
    let mut b = Bench::rack();
    b.send(6).at(40);
    b.ack(0, &[p(3, 6)]);
    b.sender.begin_recovery(3);
    assert_eq!(b.resend(), Some(1));
    b.at(45);
    assert_eq!(b.dsack(1, p(1, 1)).change, None);
    b.expect(Recovery, 0);
    assert_eq!(b.resend(), Some(2));
}

#[test]
fn every_recovery_has_its_own_first_retransmission() {
    let mut b = Bench::rack();
    b.send(5).at(40);
    b.ack(0, &[p(2, 5)]);
    b.resend_all();
    b.at(80);
    assert_eq!(b.echo(5, &[], 40).change, Some(RecoveryChange::ExitRecovery));
    b.at(100).send(5).at(140);
    b.echo(5, &[p(7, 9)], 100);
    assert_eq!(b.resend_all(), [6]);
    b.at(150);
    assert_eq!(b.echo(9, &[], 100).change, Some(RecoveryChange::Undo));
}

#[test]
fn sacks_of_what_was_sent_before_the_head_restart_the_timer() {
    let mut b = old();
    b.send(6).at(40);
    b.ack(0, &[p(2, 4)]);
    assert_eq!(b.resend_all(), [1]);
    b.send(1);
    b.at(60).ack(0, &[p(2, 5)]);
    assert_eq!(b.sender.deadline(), at(60) + b.rto());
    // Packet 7 was sent when 1 was retransmitted: its SACK is no reason to wait longer for that.
    b.at(80).ack(0, &[p(2, 5), p(7, 7)]);
    assert!(b.sender.deadline() < at(80) + b.rto());
}

#[test]
fn nothing_outstanding_nothing_to_time_out() {
    let mut b = old();
    assert_eq!(b.sender.on_timer(at(10_000)), Fired::Nothing);
    b.send(1).at(40).ack(1, &[]);
    assert_eq!(b.sender.on_timer(at(10_000)), Fired::Nothing);
}
