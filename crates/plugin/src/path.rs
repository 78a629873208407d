//! A path as plug-ins see it.

use crate::capacity::Capacity;
use anabranch_units::RecoveryPhase;
use anabranch_units::{Duration, Instant, PathId, Rate};

/// A forward delay is out of date after this many round trips without a sample.
const FORWARD_FRESH: u64 = 10;

/// How long a path takes from us to the peer, by the peer's clock and ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardDelay {
    /// The delay plus a distance of the clocks that is the same for all paths of the connection: only differences
    /// between paths mean anything.
    pub relative: Duration,
    /// When the newest sample came.
    pub sampled: Instant,
}

impl ForwardDelay {
    /// The newest sample is not older than ten round trips.
    pub fn is_fresh(&self, srtt: Duration, now: Instant) -> bool {
        now.since(self.sampled) <= srtt * FORWARD_FRESH
    }
}

/// The operator's policy for a path. Only the schedulers that read it follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathPolicy {
    /// Price per byte.
    pub price: f64,
    /// Bytes that the tariff includes; `None` = no limit.
    pub cap: Option<u64>,
    /// Share of the traffic, in proportion to the other paths'; above zero. `None` = not said.
    pub weight: Option<f64>,
}

/// A device of this host, as its counters show it (Linux: qdisc and byte queue limits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// Packets in it, of whatever connection, the one in transmission included.
    pub queued: u32,
    /// Packets that have left it since it began.
    pub sent: u64,
}

/// One path as schedulers and congestion control see it. Windows and counts in packets of `mss` bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// Established and not failing: it may be given data.
    pub usable: bool,
    /// Only to be used when no other path is usable (MP_PRIO, MP_JOIN's B).
    pub backup: bool,
    /// No other path is usable: a plain window check decides instead of the scheduler, as in single-path TCP.
    pub sole: bool,
    /// Largest payload in bytes.
    pub mss: u32,
    /// Packets that may be in flight now; during fast recovery what PRR allows.
    pub cwnd: u32,
    /// Slow-start threshold; `u32::MAX` = none yet.
    pub ssthresh: u32,
    /// Bytes that the peer's window admits on this subflow beyond what was sent. It may shrink, unlike the connection's.
    pub window: u64,
    /// Bytes of a full segment: `mss`, or less where the peer never offered as much.
    pub segment: u32,
    /// Bytes that the window must have room for: `segment`, or less where less waits (RFC 9293 §3.8.6.2.1).
    pub worth: u32,
    /// Packets sent, neither acknowledged, SACKed nor marked lost.
    pub in_flight: u32,
    /// Payload bytes sent and not acknowledged at subflow level.
    pub in_flight_bytes: u64,
    /// Packets bound to the path and not yet sent.
    pub queued: u32,
    /// Bytes bound to the path and not yet sent.
    pub queued_bytes: u64,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// RTT variation (RFC 6298).
    pub rttvar: Duration,
    /// The newest RTT sample.
    pub latest_rtt: Option<Duration>,
    /// Least RTT sample of the subflow.
    pub min_rtt: Option<Duration>,
    /// Least smoothed RTT since the subflow began.
    pub min_srtt: Option<Duration>,
    /// Greatest smoothed RTT since the subflow began.
    pub max_srtt: Option<Duration>,
    /// Retransmission timeout without back-off.
    pub rto: Duration,
    /// When the subflow's own timer expires by Linux's rules, be it a probe's, RACK's or the retransmission timer;
    /// [`Instant::MAX`] if none runs, or the sender [keeps none](crate::schedule::DataRepair::Rescue).
    pub timer: Instant,
    /// Payload bytes below the highest sent and not acknowledged cumulatively, SACKed and lost ones included; 0 where
    /// [`Self::timer`] is not kept.
    pub uncleared_bytes: u64,
    /// Forward delay from timestamps, smoothed (gain 1/8); see [`Self::fresh_forward_delay`]. `None` before the first
    /// sample, without timestamps, and where the peer's clock differs from path to path.
    pub forward_delay: Option<ForwardDelay>,
    /// Estimated probability of losing a packet.
    pub loss: f64,
    /// Phase of loss recovery.
    pub recovery: RecoveryPhase,
    /// Rate at which the path is paced, if it is; see [`Self::pacing_rate`].
    pub pacing: Option<Rate>,
    /// The operator's policy.
    pub policy: PathPolicy,
    /// Payload bytes that the connection has sent on it, repetitions included, those of earlier subflows too.
    pub used_bytes: u64,
    /// The device by which the path leaves, if the driver can read it.
    pub device: Option<Device>,
    /// The path's capacity by its acknowledgments, since it last came or returned; `None` unless the scheduler
    /// [measures it](crate::Scheduler::measures_capacity).
    pub capacity: Option<Capacity>,
}

impl PathView {
    /// A path of which nothing is known yet: usable, window 10, no RTT.
    pub fn new(id: PathId, mss: u32) -> Self {
        Self {
            id,
            usable: true,
            backup: false,
            sole: false,
            mss,
            cwnd: 10,
            ssthresh: u32::MAX,
            window: u64::MAX,
            segment: mss,
            worth: mss,
            in_flight: 0,
            in_flight_bytes: 0,
            queued: 0,
            queued_bytes: 0,
            srtt: None,
            rttvar: Duration::ZERO,
            latest_rtt: None,
            min_rtt: None,
            min_srtt: None,
            max_srtt: None,
            rto: Duration::from_secs(1),
            timer: Instant::MAX,
            uncleared_bytes: 0,
            forward_delay: None,
            loss: 0.0,
            recovery: RecoveryPhase::Open,
            pacing: None,
            policy: PathPolicy::default(),
            used_bytes: 0,
            device: None,
            capacity: None,
        }
    }

    /// Packets that the window has room for, beyond those in flight and queued.
    pub const fn room(&self) -> u32 {
        self.cwnd.saturating_sub(self.in_flight.saturating_add(self.queued))
    }

    /// Bytes that the peer's window for this subflow admits beyond what is queued.
    pub const fn left(&self) -> u64 {
        self.window.saturating_sub(self.queued_bytes)
    }

    /// The peer's window for this subflow has no room beyond what is queued: for a segment, or for all that waits.
    pub const fn is_shut(&self) -> bool {
        self.left() < self.worth as u64
    }

    /// May take a segment now: usable, the windows have room, and not in recovery from a timeout (where it is the only
    /// path left, slow start may send new data there as soon as nothing is left to be retransmitted).
    pub fn eligible(&self) -> bool {
        self.usable && (self.sole || self.recovery != RecoveryPhase::Loss) && self.room() > 0 && !self.is_shut()
    }

    /// Payload bytes that the path's send queue holds after they were sent: those in flight; those of a sender that acts as a
    /// kernel until a cumulative acknowledgment covers them.
    ///
    /// Linux 6.18: `tcp_clean_rtx_queue`.
    pub fn held_bytes(&self) -> u64 {
        self.in_flight_bytes.max(self.uncleared_bytes)
    }

    /// The rate that Linux computes for every socket, paced or not: twice the window per smoothed RTT in slow start, 1.2
    /// times after it (`tcp_update_pacing_rate`). `None` without an RTT sample.
    pub fn pacing_rate(&self) -> Option<Rate> {
        if self.pacing.is_some() {
            return self.pacing;
        }
        let nanos = u128::from(self.srtt?.as_nanos().max(1));
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        // When the window has just shrunk, what is still out counts.
        let bytes = (u64::from(self.cwnd) * u64::from(self.mss)).max(self.held_bytes());
        let bps = u128::from(bytes) * 8 * percent * 1_000_000_000 / (100 * nanos);
        Some(Rate::from_bps(bps.min(u128::from(u64::MAX)) as u64))
    }

    /// [`ForwardDelay::relative`], unless its newest sample is older than ten round trips.
    pub fn fresh_forward_delay(&self, now: Instant) -> Option<Duration> {
        self.forward_delay.filter(|f| f.is_fresh(self.rtt_or_max(), now)).map(|f| f.relative)
    }

    /// The tariff includes another segment, beside what was sent and what is queued.
    pub fn is_within_cap(&self) -> bool {
        let next = self.used_bytes + self.queued_bytes + u64::from(self.mss);
        self.policy.cap.is_none_or(|cap| next <= cap)
    }

    /// Bytes per second that the window admits: cwnd/srtt. Zero without an RTT sample.
    pub fn window_rate(&self) -> f64 {
        let bytes = f64::from(self.cwnd) * f64::from(self.mss);
        self.srtt.map_or(0.0, |srtt| bytes / srtt.max(Duration::from_nanos(1)).as_secs_f64())
    }

    /// Bytes per second of its bottleneck, if they are measured and known: [`Capacity::rate`].
    pub fn capacity_rate(&self) -> Option<f64> {
        self.capacity.and_then(|capacity| capacity.rate())
    }

    /// Bytes that the endpoint's other connections have on the path, as far as it is known: [`Capacity::elsewhere`].
    pub fn elsewhere(&self) -> u64 {
        self.capacity.map_or(0, |capacity| capacity.elsewhere())
    }

    /// The least forward delay, if it is measured and known: [`Capacity::least_forward`].
    pub fn least_forward(&self) -> Option<Duration> {
        self.capacity.and_then(|capacity| capacity.least_forward())
    }

    /// Smoothed RTT for comparisons: unknown counts as longest.
    pub fn rtt_or_max(&self) -> Duration {
        self.srtt.unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_counts_what_was_sent_and_what_waits() {
        let free = PathView::new(PathId(0), 1000);
        assert!(PathView { used_bytes: 1 << 40, ..free }.is_within_cap());
        let capped = PathView { policy: PathPolicy { cap: Some(5000), ..free.policy }, ..free };
        assert!(PathView { used_bytes: 3000, queued_bytes: 1000, ..capped }.is_within_cap());
        assert!(!PathView { used_bytes: 3000, queued_bytes: 1001, ..capped }.is_within_cap());
    }

    #[test]
    fn the_pacing_rate_follows_window_and_round_trip_time() {
        let unknown = PathView::new(PathId(0), 1000);
        assert_eq!(unknown.pacing_rate(), None);
        let mbit = |path: PathView| path.pacing_rate().unwrap().as_bps() as f64 / 1e6;
        // 10 packets of 1000 bytes in 20 ms are 4 Mbit/s.
        let path = PathView { srtt: Some(Duration::from_millis(20)), ..unknown };
        assert_eq!(mbit(path), 8.0);
        assert_eq!(mbit(PathView { ssthresh: 22, ..path }), 8.0);
        assert_eq!(mbit(PathView { ssthresh: 21, ..path }), 4.8);
        assert_eq!(mbit(PathView { ssthresh: 10, in_flight_bytes: 20_000, ..path }), 9.6);
        assert_eq!(mbit(PathView { pacing: Some(Rate::from_bps(3_000_000)), ..path }), 3.0);
        assert!(PathView { srtt: Some(Duration::ZERO), ..path }.pacing_rate().is_some());
    }

    #[test]
    fn a_forward_delay_expires_after_ten_round_trips() {
        let relative = Duration::from_millis(7);
        let path = PathView {
            srtt: Some(Duration::from_millis(20)),
            forward_delay: Some(ForwardDelay { relative, sampled: Instant::from_millis(1000) }),
            ..PathView::new(PathId(0), 1000)
        };
        assert_eq!(path.fresh_forward_delay(Instant::from_millis(1200)), Some(relative));
        assert_eq!(path.fresh_forward_delay(Instant::from_millis(1201)), None);
    }
}
