//! Zero-window probes (RFC 9293 §3.8.6.1), and repetitions of data that the peer dropped at connection level
//! (RFC 8684 §3.3.6).

use super::rounds::has_admissible;
use super::{Overdue, Sending};
use crate::cx::Scope;
use crate::deadlines::NEVER;
use crate::mode::Mode;
use crate::reasons::INTERFERENCE;
use crate::schedule::{Cause, PathView, View};
use crate::subflow::{Answers, Subflow, Subflows};
use anabranch_trace::Violation;
use anabranch_units::{Duration, Instant, PathId};

/// Longest time between two zero-window probes.
const PERSIST_MAX: Duration = Duration::from_secs(60);

/// The subflow that was probed last, and when.
#[derive(Clone, Copy, Debug)]
struct LastProbe {
    path: PathId,
    at: Instant,
}

/// Zero-window probing.
#[derive(Debug)]
pub(crate) struct Persist {
    at: Instant,
    /// How often so far.
    probes: u32,
    last: Option<LastProbe>,
    /// A DATA_ACK came since, or another option of a peer that speaks MPTCP.
    answered: bool,
    /// End of the data that left again with new numbers of its subflow.
    repeated: u64,
}

impl Default for Persist {
    fn default() -> Self {
        Self { at: NEVER, probes: 0, last: None, answered: true, repeated: 0 }
    }
}

impl Persist {
    /// Nothing is to be probed.
    pub fn disarm(&mut self) {
        self.at = NEVER;
    }

    /// The subflow on `id` is gone.
    pub fn forget(&mut self, id: PathId) {
        self.last = self.last.filter(|last| last.path != id);
    }

    /// The peer has acknowledged data.
    pub fn on_data_acked(&mut self) {
        self.probes = 0;
    }

    /// When the peer's window is probed.
    #[inline(always)]
    pub fn deadline(&self) -> Instant {
        self.at
    }

    /// A DATA_ACK came, or another option that shows that the peer speaks MPTCP.
    #[inline(always)]
    pub fn note_answer(&mut self) {
        self.answered = true;
    }

    /// The window is probed if the connection `waits` for nothing else, and is not any more otherwise.
    #[inline(always)]
    pub fn arm(&mut self, cx: &Scope<'_>, view: &View, waits: bool) {
        if !waits {
            self.disarm();
        } else if self.at == NEVER {
            self.at = cx.now + self.interval(cx, view);
        }
    }

    /// Counts a probe. The next one is due later.
    fn count(&mut self, cx: &Scope<'_>, view: &View) {
        self.probes += 1;
        self.at = cx.now + self.interval(cx, view);
    }

    fn interval(&self, cx: &Scope<'_>, view: &View) -> Duration {
        let rto = view.fastest().map_or(cx.settings().tcp.rto_initial, |p| p.rto);
        (rto * (1 << self.probes.min(16))).min(PERSIST_MAX)
    }

    /// The path to probe: one after the other, the fastest first, since it may be the one that is silent.
    fn next_path(&self, view: &View) -> Option<PathId> {
        let mut paths: Vec<_> = view.candidates().map(|p| (p.rtt_or_max(), p.id)).collect();
        paths.sort();
        let turn = (self.probes - 1) as usize % paths.len().max(1);
        paths.get(turn).map(|(_, id)| *id)
    }

    /// Data beyond `acked` left a second time with other numbers of its subflow: its sequence is not that of the stream.
    pub fn has_repeated_beyond(&self, acked: u64) -> bool {
        self.repeated > acked
    }
}

/// Facts about the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub mode: Mode,
    /// The peer speaks MPTCP, and has shown so by a DSS or a join.
    pub maps: bool,
    /// The peer has joined a second subflow.
    pub joined: bool,
}

/// No acknowledgment is awaited; or only on failing paths, while others are there and closed windows hold their data back: data that
/// waits, or that is to leave again in their place.
fn awaits_no_news(view: &View, subflows: &[Subflow]) -> bool {
    let live = |s: &Subflow| s.may_carry() && !s.failing;
    let held_back = || subflows.iter().any(live) && (are_shut(view) || view.anything_queued());
    subflows.iter().all(|s| s.sender().is_empty() || s.failing && held_back())
}

/// The peer's windows for the subflows have no room.
fn are_shut(view: &View) -> bool {
    view.candidates().all(PathView::is_shut)
}

impl Sending {
    /// Data is probed for if no awaited answer can open the window or bring a DATA_ACK: the window is closed, as `full` says of the
    /// connection's; or the peer's subflows have acknowledged all data, and its connection has not.
    pub(super) fn watch_window(&mut self, cx: &Scope<'_>, subflows: &[Subflow], full: bool) {
        let view = &self.assignment;
        let silent = match view.outstanding().is_empty() {
            true => full || view.anything_queued() || !view.backlog().is_empty() && are_shut(view),
            false => !self.is_plain() && awaits_no_news(view, subflows),
        };
        self.persist.arm(cx, view, silent && !has_admissible(view));
    }

    /// RFC 9293 §3.8.6.1: nothing is in flight whose answer could bring the peer's window or its acknowledgment.
    pub(super) fn probe_window(&mut self, cx: &mut Scope<'_>, peer: Peer, subflows: &mut Subflows) -> Overdue {
        self.persist.count(cx, &self.assignment);
        // Before anything leaves a second time: a peer that has fallen back would take it for new data.
        if let Some(bare) = subflows.find(|s| s.answers == Answers::Bare).filter(|_| peer.maps && subflows.len() == 1) {
            return Overdue::DataAck(bare);
        }
        let probed = self.persist.next_path(&self.assignment).and_then(|id| Some((id, subflows.on(id)?)));
        let Some((id, probed)) = probed else { return Overdue::Nothing };
        let answered = core::mem::take(&mut self.persist.answered);
        let last = self.persist.last.replace(LastProbe { path: id, at: cx.now });
        let heard = |last: LastProbe| subflows.find(|s| s.id == last.path && s.last_heard > last.at);
        if let Some(silent) = last.filter(|_| !answered && peer.maps).and_then(heard) {
            // Its acknowledgments have lost their DATA_ACKs, and with them the connection's window (RFC 8684 §3.3.5): something
            // takes its options off. A peer that continues without mappings, as Linux does, would take retransmitted data for
            // new data.
            subflows[silent].refuse(cx, Violation::Unmapped, INTERFERENCE);
            return Overdue::Nothing;
        }
        if self.persist.probes > 1 && (answered || peer.joined) && !self.assignment.outstanding().is_empty() {
            // RFC 8684 §3.3.6: a receiver may drop at connection level what its subflow acknowledged. Its answer, or a
            // second subflow, shows that it still speaks MPTCP: otherwise it would take this for new data.
            self.persist.repeated = self.stream.sent_end();
            self.assignment.send_all_again();
            self.rounds.ask(Cause::Window);
        }
        if self.assignment.bind_what_fits(id) {
            // It leaves before the scheduler is called again, which might bind it as before.
            self.rounds.withdraw();
            return Overdue::Nothing;
        }
        // RFC 9293 §3.8.6.1: as long as the peer answers, for ever; else like any retransmission.
        if subflows[probed].probe_window(cx.settings().tcp.retries) {
            Overdue::Nothing
        } else {
            Overdue::Subflow(probed)
        }
    }
}
