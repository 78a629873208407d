//! The view that plug-ins have of a subflow. Only the steps here change its sender and its windows, and each writes the new values into
//! the view.

use super::Subflow;
use super::forward::PeerClock;
use super::sender::{AckOutcome, Fired, Sender, Sent};
use super::usage::Allowed;
use crate::congestion::{PACED_HEADERS, Window};
use crate::schedule::Assignment;
use crate::schedule::PathView;
use anabranch_units::Instant;
use anabranch_wire::Segment;
use core::cmp::Ordering;

/// The least window, in packets, of a path that is probed: the probe and four packets that overtake it. Linux wants 11 (`tcp_mtu_probe`).
const PROBING_WINDOW: u32 = 5;

/// Segments of `s` leave with as much payload as a probe that has arrived, if one has. The congestion window remains as many packets, as
/// it does where they become smaller.
#[cold]
#[inline(never)]
fn grow(s: &mut Subflow, view: &mut Assignment) {
    if let Some(most) = s.sender.take_larger() {
        view.set_mss(s.id, most);
    }
}

impl Subflow {
    /// The send side. Only steps of the subflow change it.
    #[inline(always)]
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The window that congestion control decided on last.
    #[inline(always)]
    pub fn allowed(&self) -> Allowed {
        self.allowed
    }

    /// `p` with what the subflow knows. Whether the path is usable, its pace and its queue are not the subflow's.
    pub fn shown(&self, mut p: PathView) -> PathView {
        self.show(&mut p);
        p
    }

    #[inline(always)]
    fn show_in(&self, view: &mut Assignment) {
        if let Some(p) = view.path_mut(self.id) {
            self.show(p);
        }
    }

    #[inline(always)]
    fn show(&self, p: &mut PathView) {
        let rtt = self.sender.rtt();
        p.srtt = rtt.srtt();
        p.rttvar = rtt.rttvar();
        p.latest_rtt = rtt.latest();
        p.min_rtt = rtt.min();
        p.min_srtt = rtt.min_srtt();
        p.max_srtt = rtt.max_srtt();
        p.rto = rtt.rto();
        p.forward_delay = self.forward;
        p.loss = self.sender.loss_estimate();
        p.recovery = self.sender.phase();
        p.ssthresh = self.allowed.ssthresh;
        self.show_flight(p);
    }

    /// The part that a transmission changes.
    #[inline(always)]
    fn show_flight(&self, p: &mut PathView) {
        p.in_flight = self.sender.in_flight();
        p.in_flight_bytes = self.sender.in_flight_bytes();
        p.window = self.window.left(self.sender.nxt());
        p.cwnd = self.sender.effective_window(self.allowed.cwnd);
    }

    /// Congestion control decides on `window`. A path without a rate of its own that is paced nevertheless (`paces`) has that of its window
    /// until the next decision (Linux `tcp_update_pacing_rate`).
    #[inline(always)]
    pub fn allow(&mut self, window: Window, paces: bool, view: &mut Assignment) {
        self.allowed = window.into();
        let Some(p) = view.path_mut(self.id) else { return };
        p.cwnd = self.sender.effective_window(window.cwnd);
        p.ssthresh = window.ssthresh;
        p.pacing = window.pacing;
        if paces {
            p.pacing = p.pacing_rate();
        }
    }

    /// Takes an acknowledgment: see [`Self::acknowledged`].
    #[inline(always)]
    pub fn on_ack(
        &mut self,
        now: Instant,
        clock: &mut PeerClock,
        segment: &Segment,
        (ack, bare): (u64, bool),
        view: &mut Assignment,
    ) -> Option<AckOutcome> {
        let outcome = self.acknowledged(now, clock, segment, ack, bare)?;
        if self.sender.searches() {
            grow(self, view);
        }
        self.show_in(view);
        Some(outcome)
    }

    /// The peer answers a probe of a failing path, which has not timed out more than `most` times: what is lost there is retransmitted at once.
    #[inline(always)]
    pub fn on_answer(&mut self, now: Instant, most: u32, view: &mut Assignment) {
        if core::mem::take(&mut self.probed) && self.failing && self.sender.timeouts() <= most {
            self.sender.retry(now);
            self.show_in(view);
        }
    }

    /// The peer's window, as a segment that begins at `seq` and acknowledges `ack` has it: `size` bytes. True if what waits for the path may leave
    /// now, or may not any more.
    #[inline(always)]
    pub fn on_window(&mut self, (seq, ack): (u64, u64), size: u64, view: &mut Assignment) -> bool {
        let reach = self.window.update(seq, ack, size, 1 << self.terms.send_shift);
        // Every segment of a peer that only sends leaves the window as it is.
        if reach == Ordering::Equal {
            return false;
        }
        let Some(p) = view.path_mut(self.id) else { return false };
        let shut = p.is_shut();
        p.window = self.window.left(self.sender.nxt());
        // Where it shrank, queued data may not leave any more: the window must be probed then.
        if reach == Ordering::Greater { shut } else { p.queued > 0 }
    }

    /// Fast recovery begins, and congestion control has reacted.
    pub fn begin_recovery(&mut self, view: &mut Assignment) {
        self.sender.begin_recovery(self.allowed.ssthresh);
        self.show_in(view);
    }

    /// A timer of the sender may be due.
    pub fn on_sender_timer(&mut self, now: Instant, view: &mut Assignment) -> Fired {
        let fired = self.sender.on_timer(now);
        self.show_in(view);
        fired
    }

    /// Segments leave with at most `most` payload bytes from now on, retransmissions too.
    pub fn cut_to(&mut self, most: u32, view: &mut Assignment) {
        view.set_mss(self.id, most);
        self.sender.cut_to(most);
        self.show_in(view);
    }

    /// A router has dropped a packet of more than `most` payload bytes. Returns how many packets are newly lost.
    pub fn on_too_big(&mut self, now: Instant, most: u32, view: &mut Assignment) -> u32 {
        view.set_mss(self.id, most);
        let newly_lost = self.sender.on_too_big(now, most);
        self.show_in(view);
        newly_lost
    }

    /// The path may drop large packets silently: segments leave with less payload from now on, if they can.
    pub fn make_smaller(&mut self, now: Instant, view: &mut Assignment) {
        let Some((most, before)) = self.next_smaller().zip(view.path(self.id).map(|p| p.mss)) else { return };
        view.set_mss(self.id, most);
        self.sender.fall_to(now, most, before);
        self.show_in(view);
    }

    /// Payload of the probe of a larger size to send now, and of ordinary segments; the window must have room for what shows its loss.
    pub fn next_probe(&mut self, now: Instant) -> Option<(u32, u32)> {
        if self.allowed.cwnd < PROBING_WINDOW { None } else { self.sender.next_probe(now) }
    }

    /// New data left.
    #[inline(always)]
    pub fn on_sent(&mut self, now: Instant, sent: Sent, view: &mut Assignment) {
        let bytes = sent.data().len();
        self.sender.on_sent(now, sent);
        self.last_sent = Some(now);
        (self.idle_done, self.probe) = (false, false);
        self.on_left(now, bytes, view);
    }

    /// A retransmission left.
    pub fn on_retransmitted(&mut self, now: Instant, sent: &Sent, view: &mut Assignment) {
        self.sender.on_retransmitted(now, sent.seq());
        self.last_sent = Some(now);
        self.on_left(now, sent.seq().len(), view);
    }

    /// Our FIN left.
    pub fn on_fin_sent(&mut self, now: Instant, fin: Sent, view: &mut Assignment) {
        self.sender.on_sent(now, fin);
        self.on_left(now, 0, view);
    }

    /// A segment with so many bytes of payload left.
    #[inline(always)]
    fn on_left(&mut self, now: Instant, bytes: u64, view: &mut Assignment) {
        let Some(p) = view.path_mut(self.id) else { return };
        self.show_flight(p);
        p.used_bytes += bytes;
        if let Some(capacity) = &mut p.capacity {
            capacity.on_sent(now);
        }
        self.usage.on_sent(self.sender.una(), self.sender.nxt(), p.in_flight, p.cwnd);
        if let Some(rate) = p.pacing {
            self.pacer.on_sent(now, rate, bytes + PACED_HEADERS);
        }
    }
}
