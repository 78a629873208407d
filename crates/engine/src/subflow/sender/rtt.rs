//! Round-trip times and the retransmission timeout (RFC 6298).

use crate::settings::{RtoForm, TcpSettings};
use anabranch_units::Duration;

/// Smoothed RTT, its variation, and what follows from them.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    srtt: Option<Duration>,
    rttvar: Duration,
    latest: Option<Duration>,
    min: Option<Duration>,
    min_srtt: Option<Duration>,
    max_srtt: Option<Duration>,
    rto_min: Duration,
    rto_max: Duration,
    rto_initial: Duration,
    form: RtoForm,
}

impl RttEstimator {
    pub fn new(settings: &TcpSettings) -> Self {
        Self {
            srtt: None,
            rttvar: Duration::ZERO,
            latest: None,
            min: None,
            min_srtt: None,
            max_srtt: None,
            rto_min: settings.rto_min,
            rto_max: settings.rto_max,
            rto_initial: settings.rto_initial,
            form: settings.rto_form,
        }
    }

    /// A sample (RFC 6298 §2.2, §2.3).
    pub fn sample(&mut self, rtt: Duration) {
        let srtt = match self.srtt {
            None => {
                self.rttvar = rtt / 2;
                rtt
            }
            Some(srtt) => {
                let error = if srtt > rtt { srtt - rtt } else { rtt - srtt };
                self.rttvar = (self.rttvar * 3 + error) / 4;
                (srtt * 7 + rtt) / 8
            }
        };
        self.srtt = Some(srtt);
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |m| m.min(rtt)));
        self.min_srtt = Some(self.min_srtt.map_or(srtt, |m| m.min(srtt)));
        self.max_srtt = Some(self.max_srtt.map_or(srtt, |m| m.max(srtt)));
    }

    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
    pub fn rttvar(&self) -> Duration {
        self.rttvar
    }
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }
    /// Least sample since the subflow began.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }
    pub fn min_srtt(&self) -> Option<Duration> {
        self.min_srtt
    }
    pub fn max_srtt(&self) -> Option<Duration> {
        self.max_srtt
    }

    /// The timeout without back-off.
    pub fn rto(&self) -> Duration {
        let Some(srtt) = self.srtt else { return self.rto_initial };
        let spread = self.rttvar * 4;
        let rto = match self.form {
            // Linux floors the variance term, not the sum.
            RtoForm::Linux => srtt + spread.max(self.rto_min),
            RtoForm::Rfc6298 => (srtt + spread).max(self.rto_min),
        };
        rto.min(self.rto_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn rfc_6298_section_2() {
        let mut rtt = RttEstimator::new(&TcpSettings::default());
        assert_eq!(rtt.rto(), ms(1000));
        rtt.sample(ms(100));
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(100)), ms(50)));
        rtt.sample(ms(180));
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(110)), Duration::from_micros(57_500)));
        assert_eq!(rtt.rto(), ms(110) + Duration::from_micros(230_000));
    }

    #[test]
    fn the_two_forms_of_the_timeout() {
        let steady = |form| {
            let mut rtt = RttEstimator::new(&TcpSettings { rto_form: form, ..TcpSettings::default() });
            (0..100).for_each(|_| rtt.sample(ms(50)));
            rtt.rto()
        };
        assert_eq!(steady(RtoForm::Linux), ms(250));
        assert_eq!(steady(RtoForm::Rfc6298), ms(200));
    }
}
