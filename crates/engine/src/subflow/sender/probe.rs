//! Tail loss probe: at most one per tail (RFC 8985 §7).

use anabranch_units::{Duration, Range};

/// Longest delay of an acknowledgment that is reckoned with (`WCDelAckT`).
pub(super) const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);

/// Least time before a probe where RACK does not recover (draft-dukkipati-tcpm-tcp-loss-probe-01 §2.1).
pub(super) const PROBE_MIN: Duration = Duration::from_millis(10);

/// The probe of a tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Probe {
    /// None is outstanding.
    #[default]
    Idle,
    /// The timer fired; what is sent next is the probe.
    Due,
    /// Sent. `end` = the end of what was sent by then (`TLP.end_seq`), `again` = it repeated the last segment.
    Out { end: u64, again: bool },
}

impl Probe {
    /// A packet was sent, `again` or new; `nxt` = the end of everything sent.
    pub fn on_sent(&mut self, nxt: u64, again: bool) {
        if *self == Probe::Due {
            *self = Probe::Out { end: nxt, again };
        }
    }

    /// The probe carried new data, and `una` has passed it.
    pub fn is_answered(self, una: u64) -> bool {
        matches!(self, Probe::Out { end, again: false } if una >= end)
    }

    /// RFC 8985 §7.4.2. `idle` = the acknowledgment moved nothing. True if the probe repaired a loss that congestion control
    /// does not know of.
    pub fn on_ack(&mut self, una: u64, dsack: Option<Range>, idle: bool) -> bool {
        match *self {
            Probe::Out { end, again } if una >= end => {
                let duplicate = dsack.is_some_and(|d| d.end == end);
                let repaired = again && !duplicate && una > end;
                // At exactly `end` only a duplicate acknowledgment says that both copies arrived.
                if !again || duplicate || repaired || idle {
                    *self = Probe::Idle;
                }
                repaired
            }
            // Outstanding data moved between the timer and the probe.
            Probe::Due if !idle => {
                *self = Probe::Idle;
                false
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: Probe = Probe::Out { end: 100, again: true };

    #[test]
    fn a_probe_with_new_data_needs_no_verdict() {
        let mut probe = Probe::Due;
        probe.on_sent(100, false);
        assert!(!probe.on_ack(99, None, false));
        assert_eq!(probe, Probe::Out { end: 100, again: false });
        assert!(!probe.on_ack(100, None, false));
        assert_eq!(probe, Probe::Idle);
    }

    #[test]
    fn a_repeated_segment_that_was_not_a_duplicate_repaired_a_loss() {
        let mut probe = OUT;
        assert!(!probe.on_ack(100, None, false));
        assert_eq!(probe, OUT);
        assert!(probe.on_ack(101, None, false));
        assert_eq!(probe, Probe::Idle);
    }

    #[test]
    fn a_duplicate_is_known_by_dsack_or_by_a_bare_repetition() {
        let mut probe = OUT;
        assert!(!probe.on_ack(100, Some(Range::new(90, 100)), false));
        assert_eq!(probe, Probe::Idle);
        let mut probe = OUT;
        assert!(!probe.on_ack(100, None, true));
        assert_eq!(probe, Probe::Idle);
        // A DSACK for another segment says nothing.
        let mut probe = OUT;
        assert!(!probe.on_ack(100, Some(Range::new(10, 20)), false));
        assert_eq!(probe, OUT);
    }

    #[test]
    fn a_probe_that_news_made_needless_is_forgotten() {
        let mut probe = Probe::Due;
        assert!(!probe.on_ack(50, None, true));
        assert_eq!(probe, Probe::Due);
        assert!(!probe.on_ack(60, None, false));
        probe.on_sent(100, true);
        assert_eq!(probe, Probe::Idle);
    }
}
