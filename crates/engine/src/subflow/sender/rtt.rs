//! Round-trip time, and the retransmission timeout that is made of it (RFC 6298).

use super::deviation::Deviation;
use crate::settings::TcpSettings;
use anabranch_units::{Duration, Instant};

/// Over which time the least RTT is sought, as in Linux (`tcp_min_rtt_wlen`).
const MIN_WINDOW: Duration = Duration::from_secs(300);

/// The first timeout after a SYN that was lost (RFC 6298 §5.7).
const RTO_DISTRUSTED: Duration = Duration::from_secs(3);

/// The longest round trip that a maximum of the timeout does not cut: the MSL (RFC 9293 §3.4.2). A host that slept measures hours.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(120);

/// Estimates of a subflow's round-trip time.
#[derive(Debug)]
pub struct RttEstimator {
    srtt: Option<Duration>,
    deviation: Deviation,
    latest: Option<Duration>,
    min: WindowedMin,
    min_srtt: Option<Duration>,
    max_srtt: Option<Duration>,
    rto: Duration,
    rto_min: Duration,
    rto_max: Duration,
}

impl RttEstimator {
    pub(super) fn new(settings: &TcpSettings) -> Self {
        Self {
            srtt: None,
            deviation: Deviation::new(settings.rto_form),
            latest: None,
            min: WindowedMin::default(),
            min_srtt: None,
            max_srtt: None,
            rto: settings.rto_initial.min(settings.rto_max),
            rto_min: settings.rto_min,
            rto_max: settings.rto_max,
        }
    }

    /// A timeout passed before the first sample: the next one is longer (RFC 6298 §5.7).
    pub(super) fn distrust(&mut self) {
        if self.srtt.is_none() {
            self.rto = self.rto.max(RTO_DISTRUSTED).min(self.rto_max);
        }
    }

    /// Takes one acknowledgment's sample: the RTT of the oldest packet that it acknowledges, which includes the peer's
    /// delay and feeds the timeout, and of the newest, which comes nearest to the path's (Linux `seq_rtt`, `ca_rtt`).
    /// `outstanding` = `una` and `nxt`.
    pub(super) fn on_sample(&mut self, now: Instant, oldest: Duration, newest: Duration, outstanding: (u64, u64)) {
        let srtt = match self.srtt {
            // RFC 6298 §2.2
            None => {
                self.deviation.begin(oldest, self.rto_min, outstanding.1);
                oldest
            }
            // RFC 6298 §2.3: the variation first, with the old srtt
            Some(srtt) => {
                self.deviation.on_sample(oldest, srtt, self.rto_min, outstanding);
                srtt - srtt / 8 + oldest / 8
            }
        };
        self.srtt = Some(srtt);
        self.latest = Some(newest);
        self.min.insert(now, newest);
        self.min_srtt = Some(self.min_srtt.map_or(srtt, |least| least.min(srtt)));
        self.max_srtt = Some(self.max_srtt.map_or(srtt, |most| most.max(srtt)));
        // RFC 6298 §2.5: a maximum is optional. One below a round trip would have every packet sent twice.
        let most = self.rto_max.max((srtt + self.rto_min).min(ROUND_TRIP_MAX));
        self.rto = self.deviation.timeout(srtt, self.rto_min).min(most);
    }

    /// Smoothed RTT; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
    /// RTT variation; zero before the first sample.
    pub fn rttvar(&self) -> Duration {
        self.deviation.smoothed()
    }
    /// The newest sample.
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }
    /// The least sample of the last 5 to 10 minutes.
    pub fn min(&self) -> Option<Duration> {
        self.min.get()
    }
    /// The least srtt ever.
    pub fn min_srtt(&self) -> Option<Duration> {
        self.min_srtt
    }
    /// The greatest srtt ever.
    pub fn max_srtt(&self) -> Option<Duration> {
        self.max_srtt
    }
    /// The retransmission timeout without back-off.
    pub fn rto(&self) -> Duration {
        self.rto
    }
}

/// The least of what was inserted within the current window and the one before it.
#[derive(Debug, Default)]
struct WindowedMin {
    ends: Instant,
    before: Option<Duration>,
    current: Option<Duration>,
}

impl WindowedMin {
    fn insert(&mut self, now: Instant, value: Duration) {
        if now >= self.ends {
            let recent = now.since(self.ends) < MIN_WINDOW;
            self.before = self.current.take().filter(|_| recent);
            self.ends = now + MIN_WINDOW;
        }
        self.current = Some(self.current.map_or(value, |least| least.min(value)));
    }

    fn get(&self) -> Option<Duration> {
        match (self.before, self.current) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RtoForm;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn with(form: RtoForm) -> RttEstimator {
        RttEstimator::new(&TcpSettings { rto_form: form, ..TcpSettings::default() })
    }

    #[test]
    fn rfc_6298_section_2() {
        let mut rtt = with(RtoForm::Rfc6298);
        // (2.1)
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        assert_eq!((rtt.srtt(), rtt.min(), rtt.latest()), (None, None, None));
        // (2.2): SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR
        rtt.on_sample(Instant::ZERO, ms(160), ms(160), (1, 1));
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(ms(160)), ms(80), ms(480)));
        // (2.3): RTTVAR = 3/4 · 80 + 1/4 · |160 − 240|, SRTT = 7/8 · 160 + 1/8 · 240
        rtt.on_sample(Instant::ZERO, ms(240), ms(240), (1, 1));
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(ms(170)), ms(80), ms(490)));
        assert_eq!((rtt.min_srtt(), rtt.max_srtt()), (Some(ms(160)), Some(ms(170))));
    }

    #[test]
    fn a_maximum_below_a_round_trip_does_not_cut_it_unless_that_is_longer_than_a_segment_lives() {
        let settings = TcpSettings { rto_max: ms(60_000), ..TcpSettings::default() };
        for (rtt, rto) in [(50, 250), (59_900, 60_100), (107_000, 107_200), (119_900, 120_000), (3_600_000, 120_000)] {
            let mut rtts = RttEstimator::new(&settings);
            // Often enough that the deviation is gone.
            for n in 0..200 {
                rtts.on_sample(Instant::ZERO, ms(rtt), ms(rtt), (n, n));
            }
            let off = rtts.rto().as_millis().abs_diff(rto);
            assert!(off <= 1, "{} after round trips of {rtt} ms", rtts.rto());
        }
    }

    #[test]
    fn the_two_forms_differ_in_what_the_minimum_bounds() {
        let mut linux = with(RtoForm::Linux);
        let mut rfc = with(RtoForm::Rfc6298);
        for _ in 0..100 {
            linux.on_sample(Instant::ZERO, ms(50), ms(50), (1, 1));
            rfc.on_sample(Instant::ZERO, ms(50), ms(50), (1, 1));
        }
        assert_eq!((linux.rto(), rfc.rto()), (ms(250), ms(200)));
        for rtt in [&mut linux, &mut rfc] {
            rtt.on_sample(Instant::ZERO, Duration::MAX, Duration::MAX, (1, 1));
            assert_eq!(rtt.rto(), Duration::from_secs(120));
        }
    }

    #[test]
    fn linux_forgets_a_deviation_slowly() {
        // Linux's integer arithmetic gives this for these samples (srtt, mdev / 4, rto in microseconds), one packet
        // acknowledged by each and `window` outstanding.
        let check = |window: u64, steps: &[(u64, [u64; 3])]| {
            let mut rtt = with(RtoForm::Linux);
            for (n, &(sample, expected)) in (2u64..).zip(steps) {
                rtt.on_sample(Instant::ZERO, ms(sample), ms(sample), (n, n + window));
                let got = [rtt.srtt().unwrap_or_default(), rtt.rttvar(), rtt.rto()].map(Duration::as_micros);
                let near = got.iter().zip(expected).all(|(got, expected)| got.abs_diff(expected) <= 8);
                assert!(near, "after sample {n} of {sample} ms: {got:?}, not {expected:?}");
            }
        };
        check(
            2,
            &[
                (160, [160_000, 80_000, 480_000]),
                (240, [170_000, 80_000, 490_000]),
                (160, [168_750, 62_500, 488_750]),
                (160, [167_656, 49_062, 487_656]),
                // Shorter round trips hardly raise it.
                (80, [156_699, 50_268, 476_699]),
                (80, [147_111, 51_094, 467_111]),
                (400, [178_723, 101_543, 584_895]),
                (160, [176_382, 80_838, 582_554]),
                (160, [174_334, 64_724, 580_506]),
                // A round trip ends: it falls by a quarter of the way.
                (160, [172_543, 52_126, 558_010]),
            ],
        );
        check(
            3,
            &[
                (400, [400_000, 200_000, 1_200_000]),
                (400, [400_000, 150_000, 1_200_000]),
                (800, [450_000, 212_500, 1_300_000]),
                (400, [443_750, 171_875, 1_293_750]),
                (800, [488_281, 217_968, 1_360_156]),
                (400, [477_246, 185_547, 1_349_121]),
                (400, [467_590, 158_471, 1_339_465]),
                (400, [459_141, 135_751, 1_331_016]),
                (400, [451_749, 116_599, 1_291_203]),
            ],
        );
    }

    #[test]
    fn the_minimum_forgets_after_two_windows() {
        let mut rtt = with(RtoForm::Linux);
        let mut at = |s: u64, sample| {
            rtt.on_sample(Instant::from_millis(s * 1000), ms(sample), ms(sample), (1, 1));
            rtt.min()
        };
        assert_eq!(at(0, 100), Some(ms(100)));
        assert_eq!(at(10, 20), Some(ms(20)));
        assert_eq!(at(305, 50), Some(ms(20)));
        assert_eq!(at(599, 60), Some(ms(20)));
        assert_eq!(at(606, 70), Some(ms(50)));
        // After a long silence nothing old counts.
        assert_eq!(at(5000, 90), Some(ms(90)));
    }

    #[test]
    fn the_timeout_uses_the_oldest_packet_and_the_minimum_the_newest() {
        let mut rtt = with(RtoForm::Linux);
        rtt.on_sample(Instant::ZERO, ms(90), ms(50), (1, 1));
        assert_eq!((rtt.srtt(), rtt.latest(), rtt.min()), (Some(ms(90)), Some(ms(50)), Some(ms(50))));
    }
}
