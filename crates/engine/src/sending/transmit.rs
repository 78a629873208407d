//! Segments with data or FIN that leave, as the send side chooses and remembers them.

use super::{Fresh, Sending};
use crate::cx::Scope;
use crate::mode::Mode;
use crate::schedule::Cause;
use crate::subflow::Subflow;
use crate::subflow::segments::Waiting;
use crate::subflow::sender::Sent;
use anabranch_trace::SendKind;
use anabranch_units::Instant;
use anabranch_wire::Segment;

/// `fresh` with the payload of a probe, if one is due on `s` and enough data follows: so much that its loss shows by what overtakes it
/// (RFC 4821 §7.4).
#[cold]
#[inline(never)]
fn enlarge(sending: &mut Sending, now: Instant, s: &mut Subflow, mut fresh: Fresh) -> Fresh {
    let full = |mss: u32| fresh.queued.kind == SendKind::First && fresh.queued.range.len() == mss.into();
    let Some((probe, _)) = s.next_probe(now).filter(|(_, mss)| full(*mss)) else { return fresh };
    sending.assignment.enlarge(s.id, &mut fresh.queued.range, probe.into());
    sending.rounds.ask(Cause::PathChange(s.id));
    fresh
}

impl Sending {
    /// The subflows for which something waits.
    #[inline(always)]
    pub fn waiting(&self) -> Waiting {
        Waiting { data: self.view().waiting(), data_fin: self.stream.data_fin.due() }
    }

    /// The next new data to leave on `s`, if the windows and pacing allow it, and nothing is lost.
    #[inline(always)]
    pub fn next_new(&mut self, cx: &Scope<'_>, mode: Mode, s: &mut Subflow) -> Option<Fresh> {
        let room = self.has_room(s, cx.now);
        if room && s.has_lost() || !s.may_send_new(room) {
            return None;
        }
        let fresh = self.take_next(s, mode);
        if s.sender().searches() { fresh.map(|fresh| enlarge(self, cx.now, s, fresh)) } else { fresh }
    }

    /// There may be something in [`Self::next_old`]. Nearly always the window is full, and there is not.
    #[inline(always)]
    pub fn may_send_old(&self, s: &Subflow, now: Instant) -> bool {
        self.has_room(s, now) || s.owes_probe_or_fin()
    }

    /// The segment of `s` to send where [`Self::next_new`] gives none: what is lost, a probe, or the FIN.
    pub fn next_old(&self, now: Instant, s: &mut Subflow) -> Option<Sent> {
        let room = self.has_room(s, now);
        let lost = if room { s.next_lost() } else { None };
        lost.or_else(|| s.next_repeat(room)).or_else(|| self.next_fin(s))
    }

    /// New data left on `s`. True if it ends what was written so far.
    #[inline(always)]
    pub fn on_new_sent(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, sent: Sent, fresh: Fresh) -> bool {
        let ends = sent.data().end == self.stream.end();
        self.on_sent(cx, s, sent, fresh);
        ends
    }

    /// A retransmission or the FIN leaves on `s` as `out`, which is cut to the part that is to leave.
    pub fn on_old_sent(&mut self, cx: &mut Scope<'_>, s: &mut Subflow, sent: Sent, out: &mut Segment) {
        let sent = s.cut(sent, out);
        if sent.seq().start < s.sender().nxt() {
            self.on_retransmitted(cx, s, &sent);
        } else {
            self.on_fin_sent(cx, s, sent);
        }
    }
}
