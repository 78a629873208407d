//! The capacity of a path, from its acknowledgments.

use anabranch_engine::congestion::Acked;
use anabranch_engine::schedule::PathView;
use anabranch_units::{Duration, Instant};

/// Packets after which a measurement counts for little more than a third of what it did.
const HORIZON: f64 = 32.0;

/// A path as its acknowledgments show it to the sender.
///
/// A gap between two acknowledgments tells the capacity only if the bottleneck was busy all the time between the two
/// packets: if the later one had come to the queue before the earlier one left it. It waited there for its RTT less the
/// least RTT, so it had if that is no less than the gap. Such a gap tells the capacity whether or not the sender had more to
/// send; any other tells nothing of it, and does not count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capacity {
    /// Bytes acknowledged in the gaps that counted, and their seconds; older ones weigh less.
    bytes: f64,
    seconds: f64,
    /// When the newest acknowledgment came.
    newest: Option<Instant>,
    least_rtt: Option<Duration>,
    least_forward: Option<Duration>,
}

impl Capacity {
    /// An acknowledgment on `path`.
    pub fn on_ack(&mut self, acked: &Acked, path: &PathView) {
        let before = self.newest.replace(acked.now);
        let forward = path.forward_delay.map(|forward| forward.relative);
        self.least_forward = self.least_forward.into_iter().chain(forward).min();
        let Some(rtt) = acked.rtt else { return };
        let least = [self.least_rtt, path.min_rtt].into_iter().flatten().fold(rtt, Duration::min);
        self.least_rtt = Some(least);
        let Some(gap) = before.map(|before| acked.now.since(before)) else { return };
        // The last packet in flight may have waited for the receiver's timer for delayed acknowledgments.
        let delayed = acked.prior_in_flight <= acked.packets;
        if gap > rtt.saturating_sub(least) || delayed {
            return;
        }
        let keep = (1.0 - f64::from(acked.packets) / HORIZON).max(0.5);
        self.bytes = self.bytes * keep + acked.bytes as f64;
        self.seconds = self.seconds * keep + gap.as_secs_f64();
    }

    /// Bytes per second; `None` until the bottleneck was busy between two acknowledgments.
    pub fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes / self.seconds)
    }

    /// The least RTT of the subflow, `path`'s own before the first acknowledgment.
    pub fn least_rtt(&self, path: &PathView) -> Option<Duration> {
        self.least_rtt.or(path.min_rtt)
    }

    /// The least forward delay, by the clocks of both hosts: see [`PathView::forward_delay`].
    pub const fn least_forward(&self) -> Option<Duration> {
        self.least_forward
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MSS, path};
    use anabranch_units::Rng;

    /// Round trip without a queue, in seconds.
    const BASE: f64 = 0.04;
    /// Bytes per second of a bottleneck that does not change: 28.6 packets per round trip.
    const FIXED: f64 = 1e6;

    #[derive(Clone, Copy)]
    enum Sends {
        /// So many packets in flight, for ever.
        Window(usize),
        /// So many at once, each 40 ms.
        Bursts(usize),
    }

    #[derive(Clone, Copy)]
    enum Answers {
        /// Every so many packets, or 40 ms after the first that waits.
        Every(usize),
        /// To each packet, but all of so many seconds arrive together, as behind a link that holds them back.
        Compressed(f64),
    }

    struct Link {
        sends: Sends,
        answers: Answers,
        /// Probability that a packet is lost behind the bottleneck.
        loss: f64,
        /// Bytes per second after so many seconds.
        truth: fn(f64) -> f64,
    }

    const FULL: Link = Link { sends: Sends::Window(60), answers: Answers::Every(1), loss: 0.0, truth: |_| FIXED };

    /// A rate that changes each half second by factors of two to ten.
    fn wandering(at: f64) -> f64 {
        [1e6, 2.5e5, 2e6, 5e5, 2.5e6, 1e6][(at * 2.0) as usize % 6]
    }

    /// When each packet was sent and, of those that arrived, when an immediate answer would be back.
    fn travel(link: &Link) -> Vec<(f64, Option<f64>)> {
        let mut rng = Rng::stream(7, "link");
        let (mut free, mut back) = (0.0f64, Vec::new());
        let mut flights = Vec::new();
        for n in 0..3000 {
            let sent = match link.sends {
                Sends::Window(window) if n < window => 0.0,
                Sends::Window(window) => back[n - window],
                Sends::Bursts(size) => (n / size) as f64 * 0.04,
            };
            let begun = free.max(sent);
            free = begun + MSS as f64 / (link.truth)(begun);
            back.push(free + BASE);
            flights.push((sent, (!rng.chance(link.loss)).then_some(free + BASE)));
        }
        flights
    }

    /// The acknowledgments: when they come, how many packets they cover, and when the newest of these was sent.
    fn answers(flights: &[(f64, Option<f64>)], how: Answers) -> Vec<(f64, u32, f64)> {
        let arrived = flights.iter().filter_map(|(sent, back)| Some((*sent, (*back)?)));
        let mut answers: Vec<(f64, u32, f64)> = Vec::new();
        match how {
            Answers::Compressed(time) => arrived.map(|(sent, back)| ((back / time).ceil() * time, 1, sent)).collect(),
            Answers::Every(size) => {
                let mut waiting: Vec<(f64, f64)> = Vec::new();
                for (sent, back) in arrived {
                    let due = waiting.first().map_or(f64::INFINITY, |first| first.1 + 0.04);
                    if back > due {
                        answers.push((due, waiting.len() as u32, waiting[waiting.len() - 1].0));
                        waiting.clear();
                    }
                    waiting.push((sent, back));
                    if waiting.len() == size {
                        answers.push((back, size as u32, sent));
                        waiting.clear();
                    }
                }
                answers
            }
        }
    }

    /// After each acknowledgment its time, the bottleneck's rate when the packet left it, and the estimate.
    fn course(link: &Link) -> Vec<(f64, f64, Option<f64>)> {
        let flights = travel(link);
        let (mut capacity, mut answered, mut on) = (Capacity::default(), 0, path(0, 40, 10, 0));
        on.min_rtt = Some(Duration::from_secs_f64(BASE));
        let judge = |(at, packets, sent): (f64, u32, f64)| {
            let out = flights.iter().filter(|flight| flight.0 < at && flight.1.is_some()).count() as u32;
            let mut acked = Acked::default();
            (acked.now, acked.rtt) = (Instant::from_nanos((at * 1e9) as u64), Some(Duration::from_secs_f64(at - sent)));
            (acked.packets, acked.bytes) = (packets, u64::from(packets) * MSS);
            acked.prior_in_flight = out - answered;
            answered += packets;
            capacity.on_ack(&acked, &on);
            (at, (link.truth)(at - BASE - MSS as f64 / FIXED), capacity.rate())
        };
        answers(&flights, link.answers).into_iter().map(judge).collect()
    }

    /// Mean distance of the estimate from the truth, as a part of that, after 0.2 s.
    fn error(link: &Link) -> f64 {
        let course = course(link);
        let settled = course.iter().filter(|(at, ..)| *at > 0.2);
        let errors: Vec<f64> = settled.map(|(_, truth, rate)| (rate.unwrap_or(0.0) / truth - 1.0).abs()).collect();
        errors.iter().sum::<f64>() / errors.len() as f64
    }

    /// The figures of docs/forward.md.
    #[test]
    fn the_error_on_a_capacity_that_does_not_change() {
        let bursts = Link { sends: Sends::Bursts(17), ..FULL };
        let every = |n| Answers::Every(n);
        for (name, most, link) in [
            ("a filled window", 0.001, FULL),
            ("bursts that fill 60 %", 0.001, Link { ..bursts }),
            ("loss of 2 %", 0.05, Link { loss: 0.02, ..FULL }),
            ("an answer to each second packet", 0.001, Link { answers: every(2), ..FULL }),
            ("the same, bursts", 0.05, Link { answers: every(2), ..bursts }),
            ("an answer to each eighth", 0.001, Link { answers: every(8), ..FULL }),
            ("answers held back for 10 ms", 0.1, Link { answers: Answers::Compressed(0.01), ..FULL }),
        ] {
            let error = error(&link);
            println!("{name}: {:.2} %", error * 100.0);
            assert!(error <= most, "{name}: {error}");
        }
    }

    #[test]
    fn the_first_window_tells_the_capacity() {
        let first = course(&Link { sends: Sends::Window(10), ..FULL });
        assert_eq!(first[0].2, None);
        let known = |n: usize| first[n].2.map(|rate| (rate / FIXED - 1.0).abs() < 0.001);
        assert_eq!((known(1), known(9)), (Some(true), Some(true)));
    }

    #[test]
    fn a_capacity_that_changes_is_followed_within_100_packets() {
        let course = course(&Link { truth: wandering, ..FULL });
        let mut lag = 0;
        let mut lags = Vec::new();
        for pair in course.windows(2) {
            let [(_, before, _), (_, truth, rate)] = pair else { unreachable!() };
            if before != truth {
                lag = 1;
            } else if lag > 0 {
                lag += 1;
                if (rate.unwrap() / truth - 1.0).abs() < 0.25 {
                    lags.push(lag);
                    lag = 0;
                }
            }
        }
        println!("packets until within a quarter of the new rate: {lags:?}");
        assert!(lags.len() > 4 && lags.iter().all(|lag| *lag <= 100), "{lags:?}");
    }

    #[test]
    fn a_path_that_is_never_filled_tells_nothing() {
        let course = course(&Link { sends: Sends::Bursts(1), ..FULL });
        assert!(course.iter().all(|(.., rate)| rate.is_none()));
    }

    #[test]
    fn an_acknowledgment_that_may_have_waited_for_a_timer_does_not_count() {
        let mut capacity = Capacity::default();
        let mut tell = |ms, prior_in_flight| {
            let mut acked = Acked::default();
            (acked.now, acked.rtt) = (Instant::from_millis(ms), Some(Duration::from_millis(80)));
            (acked.packets, acked.bytes, acked.prior_in_flight) = (1, MSS, prior_in_flight);
            capacity.on_ack(&acked, &path(0, 40, 10, 0));
            capacity.rate()
        };
        assert_eq!([tell(80, 3), tell(90, 2), tell(130, 1)], [None, Some(140e3), Some(140e3)]);
        assert_eq!(capacity.least_rtt(&path(0, 40, 10, 0)), Some(Duration::from_millis(40)));
    }
}
