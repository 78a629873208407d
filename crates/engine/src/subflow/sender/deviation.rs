//! How far round-trip times stray, for the timeout: RFC 6298's variation, or Linux's, which forgets more slowly.

use crate::settings::RtoForm;
use anabranch_units::Duration;

/// The variation. Linux's numbers are four deviations each, as the timeout uses them.
#[derive(Debug)]
pub(super) enum Deviation {
    /// `RTTVAR` of RFC 6298.
    Rfc6298(Duration),
    Linux {
        /// Smoothed deviation (`mdev`).
        smoothed: Duration,
        /// Greatest deviation in the present round trip, at least `rto_min` (`mdev_max`).
        greatest: Duration,
        /// The part of the timeout beyond srtt (`rttvar`).
        term: Duration,
        /// The round trip ends when more than this is acknowledged.
        round_end: u64,
    },
}

impl Deviation {
    pub fn new(form: RtoForm) -> Self {
        match form {
            RtoForm::Rfc6298 => Self::Rfc6298(Duration::ZERO),
            RtoForm::Linux => {
                let none = Duration::ZERO;
                Self::Linux { smoothed: none, greatest: none, term: none, round_end: 0 }
            }
        }
    }

    /// The first sample; `nxt` = the end of what was sent.
    pub fn begin(&mut self, sample: Duration, rto_min: Duration, nxt: u64) {
        match self {
            // RFC 6298 §2.2
            Self::Rfc6298(rttvar) => *rttvar = sample / 2,
            Self::Linux { smoothed, greatest, term, round_end } => {
                *smoothed = sample * 2;
                *term = rto_min.max(*smoothed);
                *greatest = *term;
                *round_end = nxt;
            }
        }
    }

    /// A further sample with the srtt before it; `una` and `nxt` bound what is outstanding.
    pub fn on_sample(&mut self, sample: Duration, srtt: Duration, rto_min: Duration, (una, nxt): (u64, u64)) {
        let off = sample.max(srtt) - sample.min(srtt);
        match self {
            // RFC 6298 §2.3
            Self::Rfc6298(rttvar) => *rttvar = *rttvar - *rttvar / 4 + off / 4,
            Self::Linux { smoothed, greatest, term, round_end } => {
                let usual = *smoothed / 4;
                // A shorter round trip makes the deviation grow at an eighth of the pace, lest the timeout jumps up.
                let gain = if sample < srtt { 8 } else { 1 };
                *smoothed = if off > usual { *smoothed + (off - usual) / gain } else { *smoothed - (usual - off) };
                *greatest = (*greatest).max(*smoothed);
                *term = (*term).max(*greatest);
                if una > *round_end {
                    // Once per round trip it falls, by a quarter of the way.
                    *term = *term - (*term - *greatest) / 4;
                    *round_end = nxt;
                    *greatest = rto_min;
                }
            }
        }
    }

    /// One smoothed deviation.
    pub fn smoothed(&self) -> Duration {
        match self {
            Self::Rfc6298(rttvar) => *rttvar,
            Self::Linux { smoothed, .. } => *smoothed / 4,
        }
    }

    /// The timeout without its upper limit.
    pub fn timeout(&self, srtt: Duration, rto_min: Duration) -> Duration {
        match self {
            // RFC 6298 §2.3, §2.4
            Self::Rfc6298(rttvar) => rto_min.max(srtt + *rttvar * 4),
            Self::Linux { term, .. } => srtt + *term,
        }
    }
}
