//! The capacity of a path, from its acknowledgments.

use anabranch_units::{Duration, Instant};

/// Packets after which a measurement counts for little more than a third of what it did.
const HORIZON: f64 = 32.0;

/// A path's bottleneck as acknowledgments show it to the sender.
///
/// A gap between two acknowledgments tells the capacity only if the bottleneck was busy all the time between the two
/// packets: if the later one had come to the queue before the earlier one left it. It waited there for its RTT less the
/// least RTT, so it had if that is no less than the gap. Such a gap tells the capacity whether or not the sender had more to
/// send; any other tells nothing of it, and does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Capacity {
    /// Bytes acknowledged in the gaps that counted, their seconds, and their seconds² per byte; older ones weigh less.
    bytes: f64,
    seconds: f64,
    squares: f64,
    rate: Option<f64>,
    /// When the newest acknowledgment came.
    newest: Option<Instant>,
    last_sent: Option<Instant>,
    least_forward: Option<Duration>,
    elsewhere: u64,
}

impl Capacity {
    /// An acknowledgment of so many `packets` and `bytes`. `waited`: how long the newest of them was in the queue, by its RTT and the
    /// least one; `None` if that is not known, or if a timer of the receiver may have held the acknowledgment back.
    pub fn on_ack(&mut self, now: Instant, (packets, bytes): (u32, u64), waited: Option<Duration>) {
        let gap = self.newest.replace(now).map(|before| now.since(before));
        let Some(gap) = gap.filter(|gap| waited.is_some_and(|waited| *gap <= waited)) else { return };
        let (bytes, gap) = (bytes as f64, gap.as_secs_f64());
        let keep = (1.0 - f64::from(packets) / HORIZON).max(0.5);
        self.bytes = self.bytes * keep + bytes;
        self.seconds = self.seconds * keep + gap;
        self.squares = self.squares * keep + if bytes > 0.0 { gap * gap / bytes } else { 0.0 };
        self.rate = (self.seconds > 0.0).then(|| self.bytes / self.seconds);
    }

    /// A sample of the forward delay.
    pub fn on_forward(&mut self, delay: Duration) {
        self.least_forward = Some(self.least_forward.map_or(delay, |least| least.min(delay)));
    }

    /// A segment left on the path.
    pub const fn on_sent(&mut self, now: Instant) {
        self.last_sent = Some(now);
    }

    /// The part that this connection can have of the rate is known by other means, until the next gap that counts.
    pub(crate) const fn assume(&mut self, rate: f64) {
        (self.rate, self.elsewhere) = (Some(rate), 0);
    }

    /// The rate is the one that all connections of the endpoint measure together, of which the others have so many bytes out.
    pub(crate) const fn share(&mut self, all: Self, elsewhere: u64) {
        let Self { last_sent, least_forward, .. } = *self;
        *self = Self { last_sent, least_forward, elsewhere, ..all };
    }

    /// Bytes per second; `None` until the bottleneck was busy between two acknowledgments.
    pub const fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// How much the rate varies: the standard deviation of the time per byte over its mean, both of the gaps that counted. 0 on a
    /// link of one rate; acknowledgments that the way back bunches together count as variation. `None` as for [`Self::rate`].
    pub fn spread(&self) -> Option<f64> {
        let excess = self.squares * self.bytes / (self.seconds * self.seconds) - 1.0;
        self.rate.map(|_| excess.max(0.0).sqrt())
    }

    /// Bytes that other connections of the endpoint have in flight or queued between the same two addresses, as of each one's last
    /// acknowledgment or round. Those whose schedulers read no capacities do not count.
    pub const fn elsewhere(&self) -> u64 {
        self.elsewhere
    }

    /// The least forward delay, by the clocks of both hosts: see [`ForwardDelay::relative`](crate::schedule::ForwardDelay::relative).
    pub const fn least_forward(&self) -> Option<Duration> {
        self.least_forward
    }

    /// When the newest segment left, new or again.
    pub const fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rng;

    const MSS: u64 = 1400;
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

    /// After each acknowledgment its time, the bottleneck's rate when the packet left it, and what is known.
    fn course(link: &Link) -> Vec<(f64, f64, Capacity)> {
        let flights = travel(link);
        let (mut capacity, mut answered) = (Capacity::default(), 0);
        let judge = |(at, packets, sent): (f64, u32, f64)| {
            let out = flights.iter().filter(|flight| flight.0 < at && flight.1.is_some()).count() as u32;
            // The last in flight may have waited for the receiver's timer.
            let waited = (out - answered > packets).then(|| Duration::from_secs_f64((at - sent - BASE).max(0.0)));
            answered += packets;
            let now = Instant::from_nanos((at * 1e9) as u64);
            capacity.on_ack(now, (packets, u64::from(packets) * MSS), waited);
            (at, (link.truth)(at - BASE - MSS as f64 / FIXED), capacity)
        };
        answers(&flights, link.answers).into_iter().map(judge).collect()
    }

    /// Means after 0.2 s: the distance of the estimate from the truth as a part of that, and the spread.
    fn error(link: &Link) -> (f64, f64) {
        let course = course(link);
        let settled: Vec<_> = course.iter().filter(|(at, ..)| *at > 0.2).collect();
        let mean = |of: &dyn Fn(f64, &Capacity) -> f64| {
            settled.iter().map(|(_, truth, capacity)| of(*truth, capacity)).sum::<f64>() / settled.len() as f64
        };
        let off = |truth: f64, known: &Capacity| (known.rate().unwrap_or(0.0) / truth - 1.0).abs();
        (mean(&off), mean(&|_, known| known.spread().unwrap_or(f64::NAN)))
    }

    /// The figures of docs/lab/forward.md.
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
            let (error, spread) = error(&link);
            println!("{name}: error {:.2} %, spread {spread:.3}", error * 100.0);
            assert!(error <= most, "{name}: {error}");
        }
    }

    #[test]
    fn the_spread_is_that_of_the_time_per_byte() {
        let (_, steady) = error(&FULL);
        assert!(steady < 0.001, "{steady}");
        // Gaps of 1 and 3 ms for equal packets: 2 ± 1, but for the weights of the last ones.
        let mut capacity = Capacity::default();
        assert_eq!(capacity.spread(), None);
        let mut at = 0;
        for n in 0..200 {
            at += 1 + 2 * (n % 2);
            capacity.on_ack(Instant::from_millis(at), (1, MSS), Some(Duration::from_millis(5)));
        }
        assert!((capacity.spread().unwrap() - 0.5).abs() < 0.02, "{:?}", capacity.spread());
        // An acknowledgment of no data adds its time to the rate alone.
        capacity.on_ack(Instant::from_millis(at + 1), (0, 0), Some(Duration::from_millis(5)));
        assert!(capacity.spread().is_some_and(f64::is_finite));
    }

    #[test]
    fn the_first_window_tells_the_capacity() {
        let first = course(&Link { sends: Sends::Window(10), ..FULL });
        assert_eq!(first[0].2.rate(), None);
        let known = |n: usize| first[n].2.rate().map(|rate| (rate / FIXED - 1.0).abs() < 0.001);
        assert_eq!((known(1), known(9)), (Some(true), Some(true)));
    }

    #[test]
    fn a_capacity_that_changes_is_followed_within_100_packets() {
        let course = course(&Link { truth: wandering, ..FULL });
        let mut lag = 0;
        let mut lags = Vec::new();
        for pair in course.windows(2) {
            let [(_, before, _), (_, truth, known)] = pair else { unreachable!() };
            if before != truth {
                lag = 1;
            } else if lag > 0 {
                lag += 1;
                if (known.rate().unwrap() / truth - 1.0).abs() < 0.25 {
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
        assert!(course.iter().all(|(.., known)| known.rate().is_none() && known.spread().is_none()));
    }

    #[test]
    fn an_acknowledgment_that_may_have_waited_for_a_timer_does_not_count() {
        let mut capacity = Capacity::default();
        let mut acknowledge = |ms, waited: Option<u64>| {
            capacity.on_ack(Instant::from_millis(ms), (1, MSS), waited.map(Duration::from_millis));
            capacity.rate()
        };
        assert_eq!(
            [acknowledge(80, Some(40)), acknowledge(90, Some(40)), acknowledge(130, None)],
            [None, Some(140e3), Some(140e3)]
        );
    }

    #[test]
    fn the_least_forward_delay_and_the_newest_departure_stay() {
        let mut capacity = Capacity::default();
        [30, 20, 40].into_iter().for_each(|ms| capacity.on_forward(Duration::from_millis(ms)));
        [5, 7].into_iter().for_each(|ms| capacity.on_sent(Instant::from_millis(ms)));
        assert_eq!(capacity.least_forward(), Some(Duration::from_millis(20)));
        assert_eq!(capacity.last_sent(), Some(Instant::from_millis(7)));
    }
}
