//! RACK: time-based loss detection (RFC 8985 §6).

use super::retransmit::SendKey;
use super::rtt::RttEstimator;
use anabranch_units::{Duration, Instant};

/// SACKed packets that make waiting for reordering needless while none was ever seen (RFC 8985 §6.2 step 4).
const DUP_THRESHOLD: u32 = 3;
/// Recoveries without DSACK after which the reordering window shrinks again (RFC 8985 §6.2 step 4).
const PERSIST: u32 = 16;
/// Longest reordering window, in quarters of the least RTT (Linux's bound).
const MULTIPLIER_MAX: u32 = 255;

/// RACK's state of a subflow.
#[derive(Debug)]
pub(super) struct Rack {
    newest: Option<SendKey>,
    rtt: Duration,
    reordering_seen: bool,
    multiplier: u32,
    persist: u32,
    /// The window grew; not again before this offset is acknowledged.
    dsack_round: Option<u64>,
}

impl Rack {
    pub fn new() -> Self {
        Self { newest: None, rtt: Duration::ZERO, reordering_seen: false, multiplier: 1, persist: 0, dsack_round: None }
    }

    /// The packet that was sent last of those that are delivered (`RACK.xmit_ts`, `RACK.end_seq`).
    pub fn newest(&self) -> Option<SendKey> {
        self.newest
    }

    /// RTT of the most recently delivered packet (`RACK.rtt`).
    pub fn rtt(&self) -> Duration {
        self.rtt
    }

    /// A packet was delivered: RFC 8985 §6.2 step 2.
    pub fn on_delivered(&mut self, now: Instant, key: SendKey) {
        self.rtt = now.since(key.0);
        if self.newest.is_none_or(|newest| newest < key) {
            self.newest = Some(key);
        }
    }

    /// A packet arrived after one sent later: RFC 8985 §6.2 step 3.
    pub fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    pub fn reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// A round ends when what was sent at its last DSACK is acknowledged.
    pub fn on_una(&mut self, una: u64) {
        if self.dsack_round.is_some_and(|round| una >= round) {
            self.dsack_round = None;
        }
    }

    /// A spurious retransmission: the window was too short. RFC 8985 §6.2 step 4.
    pub fn on_dsack(&mut self, nxt: u64) {
        if self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.multiplier = (self.multiplier + 1).min(MULTIPLIER_MAX);
            self.persist = PERSIST;
        }
    }

    /// A recovery, fast or by timeout, ended: RFC 8985 §6.2 step 4.
    pub fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }

    /// How long a packet may be overtaken before it counts as lost: RFC 8985 §6.2 step 4.
    pub fn window(&self, recovering: bool, sacked: u32, rtt: &RttEstimator) -> Duration {
        if !self.reordering_seen && (recovering || sacked >= DUP_THRESHOLD) {
            return Duration::ZERO;
        }
        let (Some(min), Some(srtt)) = (rtt.min(), rtt.srtt()) else { return Duration::ZERO };
        (min / 4 * u64::from(self.multiplier)).min(srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TcpSettings;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn rtt(sample: u64) -> RttEstimator {
        let mut rtt = RttEstimator::new(&TcpSettings::default());
        rtt.on_sample(Instant::ZERO, ms(sample), ms(sample), (1, 1));
        rtt
    }

    #[test]
    fn patience_is_a_quarter_rtt_unless_it_is_needless() {
        let mut rack = Rack::new();
        let rtt = rtt(40);
        assert_eq!(rack.window(false, 2, &rtt), ms(10));
        assert_eq!(rack.window(false, 3, &rtt), ms(0));
        assert_eq!(rack.window(true, 0, &rtt), ms(0));
        rack.on_reordering();
        assert_eq!(rack.window(false, 3, &rtt), ms(10));
        assert_eq!(rack.window(true, 9, &rtt), ms(10));
        assert_eq!(rack.window(false, 0, &RttEstimator::new(&TcpSettings::default())), ms(0));
    }

    #[test]
    fn patience_grows_once_a_round_with_dsacks_up_to_srtt() {
        let mut rack = Rack::new();
        rack.on_reordering();
        let rtt = rtt(40);
        rack.on_dsack(1000);
        rack.on_dsack(1100);
        assert_eq!(rack.window(true, 0, &rtt), ms(20));
        rack.on_una(999);
        rack.on_dsack(1200);
        assert_eq!(rack.window(true, 0, &rtt), ms(20));
        for round in 1..5 {
            rack.on_una(1000 * round);
            rack.on_dsack(1000 * (round + 1));
        }
        assert_eq!(rack.window(true, 0, &rtt), ms(40));
    }

    #[test]
    fn sixteen_recoveries_without_dsack_shrink_it_again() {
        let mut rack = Rack::new();
        rack.on_reordering();
        rack.on_dsack(1);
        for _ in 0..15 {
            rack.on_recovery_end();
        }
        assert_eq!(rack.window(true, 0, &rtt(40)), ms(20));
        rack.on_recovery_end();
        assert_eq!(rack.window(true, 0, &rtt(40)), ms(10));
        rack.on_recovery_end();
        assert_eq!(rack.window(true, 0, &rtt(40)), ms(10));
    }

    #[test]
    fn the_newest_delivered_packet_never_goes_back() {
        let mut rack = Rack::new();
        let at = Instant::from_millis;
        rack.on_delivered(at(100), (at(60), 20));
        rack.on_delivered(at(110), (at(50), 10));
        assert_eq!((rack.newest(), rack.rtt()), (Some((at(60), 20)), ms(60)));
        rack.on_delivered(at(120), (at(60), 30));
        assert_eq!(rack.newest(), Some((at(60), 30)));
    }
}
