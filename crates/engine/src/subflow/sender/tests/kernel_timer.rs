//! The timer of a Linux kernel. The round trip takes 40 ms, the timeout 280 ms less what the variation lost.

use super::super::Occasion;
use super::*;
use crate::deadlines::NEVER;

impl Bench {
    fn timer(&self, occasion: Occasion) -> Instant {
        self.sender.kernel_timer(self.now, occasion, at(7))
    }
}

#[test]
fn without_data_under_way_there_is_none() {
    assert_eq!(Bench::rack().timer(Occasion::Acked), NEVER);
}

#[test]
fn a_probe_comes_after_two_round_trips_and_a_supplement() {
    let mut b = Bench::rack();
    b.send(2);
    assert_eq!(b.timer(Occasion::Sent), at(82));
    assert_eq!(b.timer(Occasion::Other), at(7), "as it was");
    let mut alone = Bench::rack();
    alone.send(1);
    let rto = alone.sender.rtt().rto();
    // One packet may wait for a delayed acknowledgment; the timeout comes first then.
    assert_eq!(alone.timer(Occasion::Sent), (at(0) + ms(280)).min(at(0) + rto));
}

#[test]
fn a_transmission_leaves_no_more_than_is_left_of_the_first_packets_timeout() {
    let mut b = Bench::rack();
    b.send(2);
    let rto = b.sender.rtt().rto();
    b.at(230).send(1);
    assert_eq!(b.timer(Occasion::Sent), at(0) + rto);
    assert_eq!(b.timer(Occasion::Acked), at(230) + ms(82), "after an acknowledgment all of it");
}

#[test]
fn in_recovery_an_acknowledgment_or_a_retransmission_of_the_first_starts_a_whole_timeout() {
    let mut b = Bench::rack();
    b.send(10).at(40).ack(0, &[p(2, 10)]);
    assert_ne!(b.sender.phase(), RecoveryPhase::Open);
    b.sender.timers.disarm(Timer::Reorder);
    let timeout = at(40) + b.sender.rtt().rto();
    assert_eq!((b.timer(Occasion::Acked), b.timer(Occasion::Repeated)), (timeout, timeout));
    assert_eq!((b.timer(Occasion::Sent), b.timer(Occasion::Other)), (at(7), at(7)), "as it was");
    let started = b.sender.timers.retransmission();
    assert_eq!(b.sender.kernel_timer(b.now, Occasion::Other, NEVER), started, "none was running");
    b.sender.timers.arm(Timer::Reorder, at(45));
    assert_eq!(b.timer(Occasion::Acked), at(45), "RACK's comes first");
    b.sender.timers.back_off();
    b.sender.timers.disarm(Timer::Reorder);
    assert_eq!(b.timer(Occasion::Repeated), at(40) + b.sender.rtt().rto() * 2);
}
