//! Signals to congestion control and schedulers.

use super::*;

#[test]
fn an_acknowledgment_tells_what_it_brought() {
    let mut b = Bench::rack();
    b.send(4).at(50);
    let outcome = b.ack(2, &[]);
    assert_eq!((outcome.acked_packets, outcome.acked_bytes, outcome.prior_in_flight), (2, 2 * MSS, 4));
    assert!(outcome.una_advanced && outcome.may_grow && !outcome.useless);
    assert_eq!(outcome.rtt, Some(ms(50)));
    let (in_flight, bytes) = (b.sender.in_flight(), b.sender.in_flight_bytes());
    assert_eq!((in_flight, bytes), (2, 2 * MSS));
    assert!(b.ack(2, &[]).useless);
    assert!(b.ack(1, &[]).useless);
}

#[test]
fn the_oldest_packet_feeds_the_timeout_and_the_newest_is_reported() {
    let mut b = Bench::rack();
    b.send(1).at(20).send(1).at(60);
    assert_eq!(b.ack(2, &[]).rtt, Some(ms(40)));
    // 7/8 · 40 + 1/8 · 60
    assert_eq!(b.sender.rtt().srtt(), Some(Duration::from_micros(42_500)));
}

#[test]
fn the_newest_packet_sent_once_and_the_highest_data_are_reported() {
    let mut b = Bench::rack();
    b.send(2).at(20).send(2).at(60);
    let outcome = b.ack(2, &[p(4, 4)]);
    assert_eq!((outcome.sent, outcome.data_end), (Some(at(20)), 4 * MSS));
    // A retransmitted packet gives no sample, whichever transmission arrived.
    b.sender.on_retransmitted(b.now, packet_at(p(3, 3).start));
    let outcome = b.at(100).ack(4, &[]);
    assert_eq!((outcome.acked_packets, outcome.sent, outcome.data_end), (1, None, 3 * MSS));
}

#[test]
fn a_round_ends_when_what_was_sent_after_the_last_mark_is_acknowledged() {
    let mut b = Bench::rack();
    b.send(4).at(40);
    let mut ended = Vec::new();
    for n in 1..=4 {
        ended.push(b.ack(n, &[]).round_ended);
    }
    assert_eq!(ended, [true, false, false, false]);
    b.send(2);
    assert!(b.ack(5, &[]).round_ended);
    assert!(!b.ack(6, &[]).round_ended);
}

#[test]
fn sacks_alone_do_not_let_the_window_grow_unless_packets_are_reordered() {
    let mut b = Bench::rack();
    b.send(4).at(40);
    assert!(!b.ack(0, &[p(2, 2)]).may_grow);
    assert!(b.ack(2, &[]).may_grow);
    assert!(b.ack(2, &[p(4, 4)]).may_grow);
}

#[test]
fn the_window_does_not_grow_in_recovery() {
    let mut b = Bench::rack();
    b.send(6).at(40);
    b.ack(0, &[p(2, 2), p(4, 5)]);
    b.sender.begin_recovery(3);
    b.resend_all();
    b.at(80);
    let partial = b.ack(2, &[p(4, 5)]);
    assert!(partial.una_advanced && !partial.may_grow);
    assert!(b.ack(6, &[]).may_grow);
}

#[test]
fn episodes_are_counted_not_packets() {
    let mut b = Bench::rack();
    b.send(20).at(40);
    b.ack(0, &[p(10, 20)]);
    let one = b.sender.loss_estimate();
    assert!((0.003..0.004).contains(&one), "{one}");
}

#[test]
fn a_fin_takes_one_offset_and_no_payload() {
    let mut b = Bench::rack();
    b.send(1);
    let end = b.sender.nxt();
    b.sender.on_sent(b.now, Sent::fin(end, MSS));
    assert_eq!((b.sender.nxt(), b.sender.in_flight(), b.sender.in_flight_bytes()), (end + 1, 2, MSS));
    assert!(b.sender.last().unwrap().fin);
    let input = AckInput { ack: end + 1, ..b.input(0, &[]) };
    assert_eq!(b.sender.on_ack(&input).acked_packets, 2);
}

#[test]
fn what_cannot_be_is_ignored() {
    let mut b = Bench::rack();
    b.send(2);
    assert!(b.ack(3, &[]).useless);
    assert!(b.ack(0, &[Range::new(5, 2), Range::new(0, 0), Range::new(u64::MAX, u64::MAX)]).useless);
    b.sender.on_sent(b.now, segment(1));
    b.sender.on_sent(b.now, Sent::new(upto(2), Bytes::new(), 0, false));
    b.sender.on_retransmitted(b.now, packet_at(7));
    b.sender.on_retransmitted(b.now, packet_at(upto(2)));
    assert_eq!((b.sender.nxt(), b.sender.in_flight()), (upto(2), 2));
    // A block beyond what was sent marks what was.
    assert_eq!(b.ack(0, &[Range::new(upto(1), u64::MAX)]).acked_packets, 1);
}
