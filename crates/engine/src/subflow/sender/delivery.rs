//! The delivery rate, sampled with each acknowledgment (draft-cheng-iccrg-delivery-rate-estimation-02).

use super::retransmit::SendKey;
use crate::congestion::RateSample;
use anabranch_units::{Duration, Instant};
use std::collections::VecDeque;

/// The state when a packet left (§3.1.2).
#[derive(Debug)]
struct Departure {
    key: SendKey,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    app_limited: bool,
}

/// Counts what is delivered. Departures stand in the order of transmission, and go once one of them or a later one is known
/// to have arrived: the work is constant for each transmission.
#[derive(Debug, Default)]
pub(super) struct DeliveryRate {
    departures: VecDeque<Departure>,
    /// Packets delivered so far: `C.delivered`.
    delivered: u64,
    delivered_at: Instant,
    /// When the packet was sent that the last sample was taken from.
    first_sent: Instant,
    /// Until so many are delivered, the application is what limited the rate.
    app_limited: Option<u64>,
}

impl DeliveryRate {
    /// A packet leaves, new or again; `idle`: nothing was outstanding before.
    pub fn on_sent(&mut self, key: SendKey, idle: bool) {
        if idle {
            (self.first_sent, self.delivered_at) = (key.0, key.0);
        }
        self.departures.push_back(Departure {
            key,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited.is_some(),
        });
    }

    /// The window has room for more than the `in_flight` packets, and there is nothing to send (§3.4).
    pub fn on_starved(&mut self, in_flight: u32) {
        self.app_limited = Some(self.delivered + u64::from(in_flight));
    }

    /// An acknowledgment delivered `packets`, `newest` of them the last to have been sent (§3.3).
    pub fn on_ack(
        &mut self,
        now: Instant,
        packets: u32,
        newest: Option<SendKey>,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        if packets == 0 {
            return None;
        }
        self.delivered += u64::from(packets);
        self.delivered_at = now;
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        let departure = self.take(newest?)?;
        self.first_sent = departure.key.0;
        let sending = departure.key.0.since(departure.first_sent);
        let acknowledging = now.since(departure.delivered_at);
        let interval = sending.max(acknowledging);
        // Less than a round trip: what is acknowledged is an earlier transmission.
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - departure.delivered,
            prior_delivered: departure.delivered,
            interval,
            app_limited: departure.app_limited,
        })
    }

    /// Forgets the departures up to `key`; that of `key` itself, if it was not forgotten before.
    fn take(&mut self, key: SendKey) -> Option<Departure> {
        let mut last = None;
        while self.departures.front().is_some_and(|d| d.key <= key) {
            last = self.departures.pop_front();
        }
        last.filter(|d| d.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    const fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    /// Packets `from` to `to`, one every `gap` ms from `start` on; a packet's end is its number.
    fn send(rate: &mut DeliveryRate, start: u64, from: u64, to: u64, gap: u64) {
        for n in from..=to {
            rate.on_sent((at(start + (n - from) * gap), n), n == 1);
        }
    }

    #[test]
    fn a_sample_is_what_came_between_two_acknowledgments_of_a_round() {
        let mut rate = DeliveryRate::default();
        send(&mut rate, 0, 1, 10, 0);
        // Acknowledged one every 4 ms from 40 ms on: the first sample is the send time's, the later ones the acks'.
        let first = rate.on_ack(at(40), 1, Some((at(0), 1)), ms(40)).expect("a sample");
        assert_eq!(
            first,
            RateSample { delivered: 1, prior_delivered: 0, interval: Duration::from_millis(40), app_limited: false }
        );
        rate.on_sent((at(40), 11), false);
        for n in 2..=10 {
            let sample = rate.on_ack(at(36 + n * 4), 1, Some((at(0), n)), ms(40)).expect("a sample");
            assert_eq!((sample.delivered, sample.interval.as_millis()), (n, 36 + n * 4));
        }
        // Sent when one was delivered, at 40; acknowledged when eleven are, at 80.
        let sample = rate.on_ack(at(80), 1, Some((at(40), 11)), ms(40)).expect("a sample");
        assert_eq!((sample.delivered, sample.prior_delivered, sample.interval.as_millis()), (10, 1, 40));
    }

    #[test]
    fn the_rate_is_never_higher_than_that_of_sending() {
        let mut rate = DeliveryRate::default();
        send(&mut rate, 0, 1, 11, 10);
        rate.on_ack(at(40), 1, Some((at(0), 1)), ms(40));
        // The rest is acknowledged at once, as after a pause on the way back: 10 packets, sent in 100 ms.
        let sample = rate.on_ack(at(141), 10, Some((at(100), 11)), ms(40)).expect("a sample");
        assert_eq!((sample.delivered, sample.interval.as_millis()), (11, 141));
        rate.on_sent((at(141), 12), false);
        rate.on_sent((at(181), 13), false);
        rate.on_ack(at(182), 1, Some((at(141), 12)), ms(40));
        let sample = rate.on_ack(at(183), 1, Some((at(181), 13)), ms(1)).expect("a sample");
        assert_eq!((sample.delivered, sample.interval.as_millis()), (2, 81), "sent 81 ms after what came before it");
    }

    #[test]
    fn what_cannot_be_meant_gives_no_sample() {
        let mut rate = DeliveryRate::default();
        send(&mut rate, 0, 1, 3, 0);
        assert_eq!(rate.on_ack(at(40), 0, Some((at(0), 1)), None), None, "nothing delivered");
        assert_eq!(rate.on_ack(at(40), 1, None, None), None, "ambiguous");
        rate.on_sent((at(50), 1), false);
        assert_eq!(rate.on_ack(at(51), 1, Some((at(50), 1)), ms(60)), None, "within a round trip");
        assert_eq!(rate.on_ack(at(60), 1, Some((at(0), 2)), None), None, "overtaken");
        assert!(rate.departures.is_empty());
        assert_eq!(rate.delivered, 3);
    }

    #[test]
    fn packets_sent_for_want_of_more_are_marked_until_the_next_flight() {
        let mut rate = DeliveryRate::default();
        send(&mut rate, 0, 1, 4, 0);
        rate.on_starved(4);
        rate.on_ack(at(40), 2, Some((at(0), 2)), None);
        rate.on_sent((at(40), 5), false);
        let last = rate.on_ack(at(45), 2, Some((at(0), 4)), None);
        assert!(last.is_some_and(|s| !s.app_limited), "sent before");
        assert!(rate.on_ack(at(80), 1, Some((at(40), 5)), None).is_some_and(|s| s.app_limited));
        rate.on_sent((at(80), 6), false);
        assert!(rate.on_ack(at(120), 1, Some((at(80), 6)), None).is_some_and(|s| !s.app_limited));
    }
}
