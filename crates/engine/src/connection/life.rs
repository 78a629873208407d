//! A connection's beginning, its subflows' coming and going, what time does to it, and its end (RFC 8684 §3.1 to §3.6).

use super::lifetime::{Facts, Verdict, streams};
use super::{Connection, Setup, speak};
use crate::cx::Cx;
use crate::deadlines::NEVER;
use crate::four_tuple::FourTuple;
use crate::paths::Race;
use crate::reasons::{MPTCP_ERROR, NO_RESOURCES, UNSPECIFIED};
use crate::sending::{Overdue, Peer};
use crate::session::{Keys, Session, asked};
use crate::subflow::half_open::{HalfOpen, Offer};
use crate::subflow::life::{Ending, Expired};
use crate::subflow::mapping::Doubt;
use crate::subflow::{Handle, Move, Reset, Subflow};
use anabranch_trace::{CloseReason, Event, PathState};
use anabranch_units::{Instant, PathId, Side};
use anabranch_wire::{Reason, Segment};

impl Connection {
    /// A client's connection: its first SYN is ready to be sent. `taken` says which tokens are in use on this host.
    ///
    /// # Panics
    /// If `setup` names no path.
    pub fn connect(cx: &mut Cx<'_>, setup: Setup, taken: &dyn Fn(u32) -> bool) -> Self {
        let race = Race::of(&setup.settings, &setup.paths);
        let local = race.favourite().expect("a client needs a path").tuple.local;
        let mut connection = Self::new(cx, setup, Side::Client, local, race);
        connection.session.set_keys(Keys::generate(cx.rng, taken));
        connection.manage_paths(cx);
        connection
    }

    /// A server's connection, made by a SYN that was received on `tuple`.
    pub fn accept(cx: &mut Cx<'_>, setup: Setup, tuple: FourTuple, syn: &Segment, taken: &dyn Fn(u32) -> bool) -> Self {
        let mut connection = Self::new(cx, setup, Side::Server, tuple.local, Race::default());
        connection.session.set_keys(Keys::generate(cx.rng, taken));
        let offer = asked(syn, &connection.frame.settings, || connection.session.local_key());
        let half = HalfOpen::new(cx.rng, cx.now, &connection.frame.settings, tuple, syn, offer);
        connection.begin(cx, &half);
        connection
    }

    /// A server's connection whose peer has acknowledged the SYN/ACK of `half`: take that segment next.
    pub(crate) fn resume(cx: &mut Cx<'_>, setup: Setup, half: &HalfOpen, taken: &dyn Fn(u32) -> bool) -> Self {
        let mut connection = Self::new(cx, setup, Side::Server, half.tuple().local, Race::default());
        let (keys, offer) = connection.session.resume(half, || Keys::generate(cx.rng, taken), taken);
        connection.session.set_keys(keys);
        let first = connection.begin(cx, &half.with(offer));
        connection.subflows[first].resume(half, cx.now);
        connection.receiving.advertise(&connection.subflows, 0);
        connection
    }

    /// The first subflow of a server's connection, whose SYN is to be answered.
    fn begin(&mut self, cx: &mut Cx<'_>, half: &HalfOpen) -> Handle {
        self.session.begin(half);
        speak(self.session.mode(), &mut self.sending, &mut self.receiving);
        let id = self.paths.known.id_for(half.tuple()).unwrap_or_default();
        let s = Subflow::admitted(id, half, &self.frame.settings, cx.now);
        self.sending.learn_window(half.window);
        self.subflows.add(&mut cx.scope(&self.frame), s)
    }

    // ---- subflows ----

    /// Sends a SYN over the next path of the race; false if there is none.
    fn open_next(&mut self, cx: &mut Cx<'_>) -> bool {
        let (mut scope, rng) = cx.scope_and_rng(&self.frame);
        self.paths.open_next(&mut scope, rng, &mut self.subflows)
    }

    /// Subflow `i` was answered first. All others are given up as RFC 9293 §3.10.5 does in SYN-SENT: a SYN/ACK that comes for one of them
    /// finds no connection, and is answered with a reset (§3.10.7.1). So the peer accepts one connection alone. Returns the winner.
    pub(super) fn win(&mut self, cx: &mut Cx<'_>, i: Handle) -> Handle {
        let (id, local) = (self.subflows[i].id, self.subflows[i].tuple.local);
        let due = self.sending.rounds.due();
        while let Some(other) = self.subflows.find_last(|s| s.id != id) {
            self.subflows[other].go(Move::Abort);
            self.drop_subflow(cx, other, PathState::Closed);
        }
        // None of them could carry anything.
        self.sending.rounds.restore(due);
        self.paths.won(id, local);
        self.subflows.nth(0)
    }

    /// A subflow is lost: refused, reset by the peer, or silent for too long. While another of the connection to be may be answered
    /// that is no end, and nothing is gained by waiting for the next one's turn. Plain TCP has no other.
    pub(super) fn lose(&mut self, cx: &mut Cx<'_>, i: Handle, why: CloseReason) {
        self.drop_subflow(cx, i, PathState::Dead);
        if !self.session.is_multipath() && !self.open_next(cx) && self.subflows.iter().all(|s| s.join) {
            self.end(cx, why);
        }
    }

    /// Both SYNs are exchanged, and `segment` acknowledges ours: the subflow's sender begins.
    pub(super) fn establish(&mut self, cx: &mut Cx<'_>, i: Handle, segment: &Segment) {
        self.lifetime.orphaned = None;
        if self.session.is_plain() && self.frame.settings.mptcp_required {
            return self.break_off(cx, CloseReason::Refused);
        }
        let s = &mut self.subflows[i];
        let account = self.paths.known.account(s.id);
        let mut scope = cx.scope(&self.frame);
        self.sending.add_path(&scope, s, segment, account);
        if !s.join {
            self.pending.established = true;
            scope.record(Some(s.id), Event::Connected(!self.session.is_plain()));
        }
        if self.session.is_confirmed() {
            self.paths.own.open();
        }
        if s.handshake.confirmed {
            self.path_up(cx, i);
        }
    }

    /// The subflow may carry data from now on.
    pub(super) fn path_up(&mut self, cx: &mut Cx<'_>, i: Handle) {
        self.session.joined |= self.subflows[i].join;
        self.sending.path_up(&mut cx.scope(&self.frame), &mut self.subflows.lend(i));
    }

    /// A subflow is gone: what it carried alone goes out again elsewhere.
    pub(super) fn drop_subflow(&mut self, cx: &mut Cx<'_>, i: Handle, how: PathState) {
        let s = self.subflows.remove(i);
        let used = self.sending.remove_path(s.id);
        cx.scope(&self.frame).record(Some(s.id), Event::Path(how));
        let (opened, streams) = (s.has_opened(), streams(&self.sending, &self.receiving));
        let delivered = opened && self.lifetime.lose(streams, how == PathState::Dead);
        self.paths.lost(cx.now, &s, used, self.lifetime.closed, delivered);
        self.sending.path_down(&mut self.subflows, s.id);
    }

    // ---- joins of the peer's: half open beside the connection until the third ACK has proved the keys ----

    /// The half-open handshake that an MP_JOIN SYN for this connection begins on `tuple`, or the reason to reset it.
    pub(crate) fn begin_join(&mut self, cx: &mut Cx<'_>, tuple: FourTuple, syn: &Segment) -> Result<HalfOpen, Reason> {
        self.may_be_joined(tuple)?;
        self.paths.of_join(tuple, &self.subflows)?;
        let own_id = self.paths.own.id_for(tuple.local).ok_or(MPTCP_ERROR)?;
        let half = HalfOpen::new(cx.rng, cx.now, &self.frame.settings, tuple, syn, Offer::Plain);
        Ok(half.with(Session::join_offer(syn, || cx.rng.bits() as u32, own_id)?))
    }

    fn may_be_joined(&self, tuple: FourTuple) -> Result<(), Reason> {
        let open = self.session.is_confirmed() && !self.lifetime.closed && !self.both_ended();
        (open && self.paths.own.listens_on(tuple.local)).then_some(()).ok_or(MPTCP_ERROR)
    }

    /// Makes `out` the SYN/ACK of a join; returns the path on which it would be. `None` if nothing more can come of it.
    pub(crate) fn answer_join(&mut self, cx: &mut Cx<'_>, half: &HalfOpen, out: &mut Segment) -> Option<PathId> {
        let Offer::Join { nonces, address_ids, .. } = half.offer else { return None };
        self.may_be_joined(half.tuple()).ok()?;
        let id = self.paths.of_join(half.tuple(), &self.subflows).ok()?;
        let option = self.session.join_answer(nonces, address_ids.ours, self.paths.known.is_backup(id));
        let window = self.receiving.advertise(&self.subflows, 0);
        half.answer(cx.now, &self.frame.settings, window, Some(option), out);
        cx.scope(&self.frame).record(Some(id), Event::ControlSent { flags: out.flags.0, again: half.answers > 0 });
        Some(id)
    }

    /// Takes a segment that acknowledges the SYN/ACK of a join, or says why to reset it. RFC 8684 §3.1 wants a DSS first; as in Linux the
    /// proof alone is enough: where the server speaks first, the DSS may come later, on a slower path.
    pub(crate) fn complete_join(&mut self, cx: &mut Cx<'_>, half: &HalfOpen, segment: &Segment) -> Result<(), Reason> {
        let tuple = half.tuple();
        self.may_be_joined(tuple)?;
        self.session.check_third_ack(&mut cx.scope(&self.frame), segment, half)?;
        if let Some(old) = self.subflows.find(|s| s.is_replaced_by(tuple)) {
            // The peer lost this subflow before we noticed.
            self.drop_subflow(cx, old, PathState::Dead);
        }
        let mut s = self.paths.admit(&cx.scope(&self.frame), half).ok_or(NO_RESOURCES)?;
        let id = s.id;
        self.sending.set_now(cx.now);
        s.resume(half, cx.now);
        s.synchronize();
        let joined = self.subflows.add(&mut cx.scope(&self.frame), s);
        // The peer has proved that it speaks MPTCP: what comes without it from now on was changed on the way.
        self.session.joined = true;
        self.establish(cx, joined, segment);
        self.handle_segment(cx, id, segment);
        self.settle(cx);
        Ok(())
    }

    // ---- time ----

    /// Opens and announces what is due.
    pub(super) fn manage_paths(&mut self, cx: &mut Cx<'_>) {
        let (mut scope, rng) = cx.scope_and_rng(&self.frame);
        self.paths.open_due(&mut scope, rng, &mut self.subflows);
        self.paths.announce(cx.now, &mut self.subflows, |announcement| self.session.signed(announcement));
    }

    /// When something is due: [`NEVER`] for nothing.
    #[inline(always)]
    pub(crate) fn deadline(&mut self) -> Instant {
        let pacing = |s: &Subflow| if self.sending.is_paced(s) { s.next_turn() } else { NEVER };
        let orphaned = self.lifetime.deadline(self.frame.settings.orphan_timeout);
        let failure = if self.lifetime.closed { NEVER } else { self.session.failure_deadline() };
        self.subflows.deadline(pacing).min(self.sending.deadline()).min(self.paths.next()).min(orphaned).min(failure)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        self.sending.set_now(cx.now);
        for n in (0..self.subflows.len()).rev() {
            self.on_subflow_timers(cx, self.subflows.nth(n));
        }
        let peer = Peer { mode: self.session.mode(), maps: self.session.is_mapped(), joined: self.session.joined };
        match self.sending.on_timers(&mut cx.scope(&self.frame), peer, &mut self.subflows) {
            Overdue::Nothing => {}
            Overdue::Subflow(i) => self.lose(cx, i, CloseReason::TimedOut),
            Overdue::DataAck(i) => self.on_doubt(cx, i, Doubt::Unanswered(self.session.first_len)),
            Overdue::Connection => self.break_off(cx, CloseReason::TimedOut),
        }
        if !self.lifetime.closed && !self.session.repeat_failure(cx.now, &mut self.subflows) {
            self.break_off(cx, CloseReason::TimedOut);
        }
        self.manage_paths(cx);
        self.settle(cx);
    }

    fn on_subflow_timers(&mut self, cx: &mut Cx<'_>, i: Handle) {
        let ending = Ending { over: self.receiving.is_over(), closing: self.lifetime.closing };
        let mut scope = cx.scope(&self.frame);
        match self.subflows.on_timers(&mut scope, i, ending) {
            Expired::Nothing => {}
            Expired::Sender if self.sending.on_sender_timer(&mut scope, &mut self.subflows.lend(i)) => {}
            Expired::Failed | Expired::Sender => self.lose(cx, i, CloseReason::TimedOut),
        }
    }

    // ---- the end ----

    /// Both DATA_FINs were acknowledged: nothing but the subflows is left.
    pub(super) fn both_ended(&self) -> bool {
        self.sending.stream.data_fin.is_acked() && self.receiving.is_finished()
    }

    /// Settles DATA_FIN, FINs, closed subflows and the connection's end. Called after every input.
    pub(super) fn settle(&mut self, cx: &mut Cx<'_>) {
        self.settle_stream(cx.now);
        let facts = Facts::of(&self.session, &self.sending, &self.receiving, &self.subflows);
        self.reap(cx);
        if self.lifetime.closed {
            return;
        }
        match self.lifetime.verdict(&facts, &self.frame.settings, cx.now) {
            Verdict::GoesOn => return,
            Verdict::NeverOpened if self.open_next(cx) => return,
            Verdict::NeverOpened => self.end(cx, CloseReason::TimedOut),
            Verdict::InVain => self.break_off(cx, CloseReason::TimedOut),
            Verdict::Ended(why) => self.end(cx, why),
        }
        self.reap(cx);
    }

    /// Forgets the subflows that have closed.
    fn reap(&mut self, cx: &mut Cx<'_>) {
        while let Some(i) = self.subflows.find(Subflow::is_gone) {
            self.drop_subflow(cx, i, PathState::Closed);
        }
    }

    /// After the last data comes the end: FIN, or DATA_FIN and then the FINs.
    pub(super) fn settle_stream(&mut self, now: Instant) {
        let ending = self.sending.stream.is_finished() || self.receiving.has_fin();
        if self.lifetime.closed || !ending || !self.subflows.iter().any(|s| s.state.is_synchronized()) {
            return;
        }
        self.sending.settle(!self.session.awaits_reaction(), &mut self.subflows);
        if !self.session.is_plain() && self.both_ended() {
            self.paths.known.stop();
            self.lifetime.close(now, &mut self.subflows);
        }
    }

    /// The connection ends, and each subflow signals it. Subflows keep their places until all is [settled](Self::settle).
    pub(super) fn break_off(&mut self, cx: &mut Cx<'_>, why: CloseReason) {
        self.subflows.abort(if self.session.is_multipath() { Reset::FastClose } else { Reset::Because(UNSPECIFIED) });
        self.end(cx, why);
    }

    /// The connection ends, for the reason given first.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, why: CloseReason) {
        if self.lifetime.closed {
            return;
        }
        self.lifetime.closed = true;
        self.paths.end();
        self.sending.stop();
        self.pending.closed = Some(why);
        self.receiving.readable = true;
        cx.scope(&self.frame).record(None, Event::Closed(why));
        if why != CloseReason::Finished {
            self.subflows.abort(Reset::Because(UNSPECIFIED));
        }
    }
}
