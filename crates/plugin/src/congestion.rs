//! The seam for congestion control.

use crate::path::PathView;
use anabranch_units::{Duration, Instant, PathId, Rate};
use core::fmt::Debug;

/// One acknowledgment, as far as it concerns a subflow. A transport that fills it with `..Acked::default()` needs no change when a fact is added.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acked {
    /// When it came.
    pub now: Instant,
    /// Packets newly acknowledged or SACKed.
    pub packets: u32,
    /// Part of the acknowledged data that counts for the growth of the window: at most `abc_limit` (RFC 3465 §2.2).
    pub counted: u32,
    /// In congestion avoidance it counts as one packet, whatever it acknowledges.
    pub one_in_avoidance: bool,
    /// Slow start includes a window that equals its threshold (RFC 5681 §3.1 permits either).
    pub slow_start_at_threshold: bool,
    /// Payload bytes newly acknowledged or SACKed.
    pub bytes: u64,
    /// Round-trip sample, never from a retransmitted packet unless timestamps prove it.
    pub rtt: Option<Duration>,
    /// Packets in flight just before.
    pub prior_in_flight: u32,
    /// The window was the limit since the last round: an increase is allowed (RFC 9293 §3.8, Linux `is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// False during fast recovery, when PRR governs and windows must not grow.
    pub may_grow: bool,
    /// A round trip ended: the first packet sent after the last such mark was acknowledged.
    pub round_ended: bool,
    /// End of the highest data among the packets newly acknowledged or SACKed, as an offset in the stream.
    pub data_end: u64,
    /// The DATA_ACK of this very segment. The connection may know more by now, from a path whose
    /// acknowledgments return sooner.
    pub data_ack: Option<u64>,
    /// Packets that this acknowledgment showed to be lost.
    pub lost: u32,
    /// For [`CongestionControl::is_rate_based`] ones: the delivery rate, if this acknowledgment tells one.
    pub rate: Option<RateSample>,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-02): the slower of how fast packets were sent
/// and how fast they were acknowledged, over about a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Packets delivered within `interval`.
    pub delivered: u64,
    /// Packets that the subflow had delivered before, since it began: when the packet was sent that is acknowledged now.
    pub prior_delivered: u64,
    /// Never zero.
    pub interval: Duration,
    /// There was too little to send: the path may be faster.
    pub app_limited: bool,
}

/// Bytes that pacing adds to the payload of each packet: IPv6, TCP and 40 bytes of options.
pub const PACED_HEADERS: u64 = 80;

/// Why a window must shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Fast recovery begins.
    Fast,
    /// The retransmission timer fired. `again`: before anything was acknowledged since the last time.
    Timeout {
        /// A further timeout of the same episode: ssthresh stays.
        again: bool,
    },
    /// An ECN mark.
    Marked,
    /// A scheduler penalises the path (S4 of the literature's minRTT+PR).
    Penalty,
}

/// The window and the pace that congestion control allows a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Packets that may be in flight; at least 1.
    pub cwnd: u32,
    /// Slow-start threshold in packets; `u32::MAX` = none yet.
    pub ssthresh: u32,
    /// Rate at which to pace, if the algorithm paces on its own; a packet counts with [`PACED_HEADERS`].
    pub pacing: Option<Rate>,
}

/// Decides how much may be in flight. One instance serves a whole connection, so coupled algorithms need no side channel.
///
/// The engine calls `on_join` first and `on_leave` last for each path, `on_ack` for every acknowledgment that moved
/// something, `on_loss` once per loss episode (not per lost packet). `paths` are the connection's paths in the order of
/// their ids, up to date; a path's own window is what this algorithm says it is, not `PathView::cwnd`.
pub trait CongestionControl: Debug + Send {
    /// A subflow begins: initial window, no threshold. `initial_window` in packets.
    fn on_join(&mut self, id: PathId, initial_window: u32);
    /// A subflow is gone.
    fn on_leave(&mut self, id: PathId);
    /// An acknowledgment.
    fn on_ack(&mut self, id: PathId, ack: &Acked, paths: &[PathView]);
    /// A loss episode begins. Remember what [`Self::on_undo`] must restore.
    fn on_loss(&mut self, id: PathId, now: Instant, loss: Loss, paths: &[PathView]);
    /// The last [`Loss::Fast`] or [`Loss::Timeout`] was spurious (RFC 3522, 5682, DSACK): restore the window.
    fn on_undo(&mut self, id: PathId, now: Instant);
    /// New data is about to be sent after `idle` without any, longer than `rto` (RFC 2861, restart part).
    fn on_idle(&mut self, id: PathId, now: Instant, idle: Duration, rto: Duration);
    /// Slow start ends at `ssthresh` packets at the latest: right after [`Self::on_join`], where the settings say so.
    fn set_threshold(&mut self, _id: PathId, _ssthresh: u32) {}
    /// For longer than a retransmission timeout no more than `used` packets were in flight, and the window had room (RFC 2861
    /// §3.2).
    fn on_underuse(&mut self, _id: PathId, _used: u32) {}
    /// The window now. The engine calls it only for paths that joined.
    fn window(&self, id: PathId) -> Window;
    /// True: the algorithm models the path from [`Acked::rate`]. Its window then holds during fast recovery too, in place of what PRR allows
    /// (as Linux's `cong_control`). Asked when a subflow begins.
    fn is_rate_based(&self) -> bool {
        false
    }
}

/// Windows that never change: for tests of schedulers and for toy models.
#[derive(Clone, Debug, Default)]
pub struct FixedWindows(pub Vec<(PathId, Window)>);

impl FixedWindows {
    /// One more path with a constant window.
    pub fn with(mut self, id: PathId, cwnd: u32, ssthresh: u32) -> Self {
        self.0.push((id, Window { cwnd, ssthresh, pacing: None }));
        self
    }

    fn of(&mut self, id: PathId) -> Option<&mut Window> {
        self.0.iter_mut().find(|(i, _)| *i == id).map(|(_, w)| w)
    }
}

impl CongestionControl for FixedWindows {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        if self.of(id).is_none() {
            self.0.push((id, Window { cwnd: initial_window, ssthresh: u32::MAX, pacing: None }));
        }
    }
    fn on_leave(&mut self, _id: PathId) {}
    fn on_ack(&mut self, _id: PathId, _ack: &Acked, _paths: &[PathView]) {}
    /// Only a penalty shrinks, as minRTT+PR's kernel form does: half the window; half the threshold unless in slow start.
    fn on_loss(&mut self, id: PathId, _now: Instant, loss: Loss, _paths: &[PathView]) {
        if let (Loss::Penalty, Some(w)) = (loss, self.of(id)) {
            let old = w.cwnd;
            w.cwnd = (old / 2).max(1);
            if old >= w.ssthresh {
                w.ssthresh = (w.ssthresh / 2).max(2);
            }
        }
    }
    fn on_undo(&mut self, _id: PathId, _now: Instant) {}
    fn on_idle(&mut self, _id: PathId, _now: Instant, _idle: Duration, _rto: Duration) {}
    fn window(&self, id: PathId) -> Window {
        let known = self.0.iter().find(|(i, _)| *i == id).map(|(_, w)| *w);
        known.unwrap_or(Window { cwnd: 1, ssthresh: u32::MAX, pacing: None })
    }
}
