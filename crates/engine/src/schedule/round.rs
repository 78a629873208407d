//! The commands of a scheduling round.

use super::view::{Queued, View};
use super::{Cause, PathView};
use crate::congestion::{CongestionControl, Loss};
use anabranch_trace::SendKind;
use anabranch_units::{PathId, Range};
use core::ops::Deref;

/// Why data is sent again on another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Opportunistic retransmission: to free a blocked window.
    Opportunistic,
    /// A redundant copy.
    Copy,
    /// Stranded by a timeout or a lost subflow.
    Rescue,
}

/// One round: reads like a [`View`] and takes commands. Reads reflect the round's own commands.
pub struct Round<'a> {
    view: &'a mut View,
    congestion: &'a mut dyn CongestionControl,
    cause: Cause,
    penalised: u32,
}

impl Deref for Round<'_> {
    type Target = View;
    fn deref(&self) -> &View {
        self.view
    }
}

impl<'a> Round<'a> {
    /// A round over `view`; penalties go to `congestion`.
    pub fn new(view: &'a mut View, congestion: &'a mut dyn CongestionControl, cause: Cause) -> Self {
        Self { view, congestion, cause, penalised: 0 }
    }

    /// Why this round is held.
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Paths penalised in this round, as a set of [`PathId::bit`]s.
    pub const fn penalised(&self) -> u32 {
        self.penalised
    }

    /// Binds the next new segment to `on`, to be sent now. Refused if the path is not [`PathView::eligible`],
    /// if there is no new data, or if the peer's window does not admit it.
    pub fn send_next(&mut self, on: PathId) -> bool {
        self.send_ahead(on, 0)
    }

    /// As [`Self::send_next`], but skips `skip` bytes of unassigned data first.
    pub fn send_ahead(&mut self, on: PathId, skip: u64) -> bool {
        let Some(p) = self.eligible(on) else { return false };
        let Some(next) = self.view.next_new(skip, p.mss) else { return false };
        self.bind_now(on, next)
    }

    /// Binds `range` of unassigned data to `on`, to be sent now. Refused also if the range is empty, longer than a
    /// segment, or not wholly unassigned.
    pub fn send(&mut self, on: PathId, range: Range) -> bool {
        let Some(p) = self.eligible(on) else { return false };
        let whole = !range.is_empty() && range.len() <= u64::from(p.mss) && self.view.backlog.covers(range);
        whole && self.bind_now(on, range)
    }

    /// Binds the next new segment to `on`, to be sent when its window and the peer's allow. Refused if the path is not
    /// usable, if there is no new data, or if the queue would be out of order.
    pub fn enqueue_next(&mut self, on: PathId) -> bool {
        let Some(i) = self.view.index(on) else { return false };
        let p = self.view.paths()[i];
        if !p.usable {
            return false;
        }
        let Some(next) = self.view.next_new(0, p.mss) else { return false };
        let last = self.view.queues[i].items.iter().rev().find(|q| q.kind == SendKind::First);
        if last.is_some_and(|q| q.range.end > next.start) {
            return false;
        }
        self.view.backlog.remove(next);
        self.view.push(i, Queued { range: next, kind: SendKind::First }, false);
        true
    }

    /// Sends outstanding data once more, on another path, ahead of its queue. Refused if the path is not
    /// [`PathView::eligible`], carries or queues some of it already, or if the range is empty, longer than a segment
    /// or not wholly outstanding.
    pub fn repeat(&mut self, on: PathId, range: Range, why: Repeat) -> bool {
        let Some(p) = self.eligible(on) else { return false };
        if range.is_empty() || range.len() > u64::from(p.mss) || range.end > self.view.window_edge() {
            return false;
        }
        let mut from = range.start;
        for (run, copies) in self.view.outstanding.from(range.start) {
            if run.start > from || copies.on(on) || from >= range.end {
                break;
            }
            from = run.end;
        }
        let queued = self.view.queue(on).any(|q| !q.range.intersect(range).is_empty());
        if from < range.end || queued {
            return false;
        }
        let kind = match why {
            Repeat::Opportunistic => SendKind::Opportunistic,
            Repeat::Copy => SendKind::Copy,
            Repeat::Rescue => SendKind::Rescue,
        };
        if why == Repeat::Rescue {
            self.view.rescue.remove(range);
        }
        let i = self.view.index(on).expect("eligible paths exist");
        self.view.push(i, Queued { range, kind }, true);
        true
    }

    /// Takes back what was bound to `on` and never left; new data returns to the backlog.
    pub fn recall(&mut self, on: PathId) {
        self.view.take_back(on);
    }

    /// Penalises `on`; congestion control decides how much. The round sees the new window at once.
    pub fn penalise(&mut self, on: PathId) {
        let Some(i) = self.view.index(on) else { return };
        let now = self.view.now();
        self.congestion.on_loss(on, now, Loss::Penalty, self.view.paths());
        let window = self.congestion.window(on);
        let p = self.view.path_at_mut(i);
        p.cwnd = window.cwnd;
        p.ssthresh = window.ssthresh;
        self.penalised |= on.bit();
    }

    /// Sends stranded data on the candidate with the lowest RTT that has not carried it. A path that might still take
    /// it but has no room is waited for, if waiting is safe; data that visited every path may visit any again.
    pub fn rescue_by_rtt(&mut self) {
        while let Some(stranded) = self.view.rescue.first() {
            let Some((run, copies)) = self.view.outstanding.at(stranded.start) else {
                self.view.rescue.remove(stranded);
                continue;
            };
            let fresh = self.candidates().any(|p| !copies.on(p.id));
            if !fresh {
                // Every usable path carries it already: their own retransmissions deliver it (one that dies strands it
                // again).
                self.view.rescue.remove(run.intersect(stranded));
                continue;
            }
            let chosen = self.candidates().filter(|p| !copies.on(p.id) && p.eligible());
            let Some(p) = chosen.min_by_key(|p| (p.rtt_or_max(), p.id)).copied() else { return };
            let whole = run.intersect(stranded);
            let range = Range::new(whole.start, whole.end.min(whole.start + u64::from(p.mss)));
            if !self.repeat(p.id, range, Repeat::Rescue) {
                return;
            }
        }
    }

    fn eligible(&self, on: PathId) -> Option<PathView> {
        self.view.path(on).filter(|p| p.eligible()).copied()
    }

    fn bind_now(&mut self, on: PathId, range: Range) -> bool {
        if range.end > self.view.window_edge() {
            return false;
        }
        let i = self.view.index(on).expect("eligible paths exist");
        self.view.backlog.remove(range);
        self.view.push(i, Queued { range, kind: SendKind::First }, false);
        true
    }
}
