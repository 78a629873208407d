//! Round-trip time, and the retransmission timeout that is made of it (RFC 6298).

use crate::settings::{RtoForm, TcpSettings};
use anabranch_units::{Duration, Instant};

/// Over which time the least RTT is sought, as in Linux (`tcp_min_rtt_wlen`).
const MIN_WINDOW: Duration = Duration::from_secs(300);

/// Estimates of a subflow's round-trip time.
#[derive(Debug)]
pub struct RttEstimator {
    srtt: Option<Duration>,
    rttvar: Duration,
    latest: Option<Duration>,
    min: WindowedMin,
    min_srtt: Option<Duration>,
    max_srtt: Option<Duration>,
    rto: Duration,
    form: RtoForm,
    rto_min: Duration,
    rto_max: Duration,
}

impl RttEstimator {
    pub(super) fn new(settings: &TcpSettings) -> Self {
        Self {
            srtt: None,
            rttvar: Duration::ZERO,
            latest: None,
            min: WindowedMin::default(),
            min_srtt: None,
            max_srtt: None,
            rto: settings.rto_initial.min(settings.rto_max),
            form: settings.rto_form,
            rto_min: settings.rto_min,
            rto_max: settings.rto_max,
        }
    }

    /// Takes one acknowledgment's sample: the RTT of the oldest packet that it acknowledges, which includes the peer's
    /// delay and feeds the timeout, and of the newest, which comes nearest to the path's (Linux `seq_rtt`, `ca_rtt`).
    pub(super) fn on_sample(&mut self, now: Instant, oldest: Duration, newest: Duration) {
        let srtt = match self.srtt {
            // RFC 6298 §2.2
            None => {
                self.rttvar = oldest / 2;
                oldest
            }
            // RFC 6298 §2.3: the variation first, with the old srtt
            Some(srtt) => {
                let off = oldest.max(srtt) - oldest.min(srtt);
                self.rttvar = self.rttvar - self.rttvar / 4 + off / 4;
                srtt - srtt / 8 + oldest / 8
            }
        };
        self.srtt = Some(srtt);
        self.latest = Some(newest);
        self.min.insert(now, newest);
        self.min_srtt = Some(self.min_srtt.map_or(srtt, |least| least.min(srtt)));
        self.max_srtt = Some(self.max_srtt.map_or(srtt, |most| most.max(srtt)));
        let variance = self.rttvar * 4;
        let rto = match self.form {
            RtoForm::Linux => srtt + self.rto_min.max(variance),
            RtoForm::Rfc6298 => self.rto_min.max(srtt + variance),
        };
        self.rto = rto.min(self.rto_max);
    }

    /// Smoothed RTT; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
    /// RTT variation; zero before the first sample.
    pub fn rttvar(&self) -> Duration {
        self.rttvar
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
        rtt.on_sample(Instant::ZERO, ms(160), ms(160));
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(ms(160)), ms(80), ms(480)));
        // (2.3): RTTVAR = 3/4 · 80 + 1/4 · |160 − 240|, SRTT = 7/8 · 160 + 1/8 · 240
        rtt.on_sample(Instant::ZERO, ms(240), ms(240));
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(ms(170)), ms(80), ms(490)));
        assert_eq!((rtt.min_srtt(), rtt.max_srtt()), (Some(ms(160)), Some(ms(170))));
    }

    #[test]
    fn the_two_forms_differ_in_what_the_minimum_bounds() {
        let mut linux = with(RtoForm::Linux);
        let mut rfc = with(RtoForm::Rfc6298);
        for _ in 0..100 {
            linux.on_sample(Instant::ZERO, ms(50), ms(50));
            rfc.on_sample(Instant::ZERO, ms(50), ms(50));
        }
        assert_eq!((linux.rto(), rfc.rto()), (ms(250), ms(200)));
        for rtt in [&mut linux, &mut rfc] {
            rtt.on_sample(Instant::ZERO, Duration::MAX, Duration::MAX);
            assert_eq!(rtt.rto(), Duration::from_secs(120));
        }
    }

    #[test]
    fn the_minimum_forgets_after_two_windows() {
        let mut rtt = with(RtoForm::Linux);
        let mut at = |s: u64, sample| {
            rtt.on_sample(Instant::from_millis(s * 1000), ms(sample), ms(sample));
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
        rtt.on_sample(Instant::ZERO, ms(90), ms(50));
        assert_eq!((rtt.srtt(), rtt.latest(), rtt.min()), (Some(ms(90)), Some(ms(50)), Some(ms(50))));
    }
}
