//! A subflow from its SYN to TIME-WAIT: how it begins, what time does to it, how it ends.

use super::ecn::{EcnState, sets_up};
use super::half_open::{HalfOpen, Offer};
use super::handshake::Terms;
use super::sender::{Sender, Sent};
use super::stamps::Stamps;
use super::window::SendWindow;
use super::{Both, Move, Reset, State, Subflow};
use crate::cx::Scope;
use crate::deadlines::{Deadlines, NEVER};
use crate::four_tuple::FourTuple;
use crate::mode::Mode;
use crate::reasons::{OUTSTANDING, UNSPECIFIED};
use crate::settings::{Settings, TcpSettings};
use anabranch_trace::{Event, PathState, Violation};
use anabranch_units::{Duration, Instant, PathId, Rng, SeqNumber};
use anabranch_wire::Segment;

/// Least and greatest time between two probes of a failing path. In between it is a sixteenth of the silence, so that a
/// return is noticed soon in relation to how long it took, and a path that is gone for good costs next to nothing.
const PATH_PROBE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));
/// Keep-alive probes without an answer before the subflow is given up, and the time between them (Linux's values).
const KEEP_ALIVE_PROBES: u32 = 9;
const KEEP_ALIVE_GAP: Duration = Duration::from_secs(75);
/// The first wait for an answer to a challenge ACK; each further one is twice as long.
const CHALLENGE_WAIT: Duration = Duration::from_secs(1);
/// How long a subflow may stay silent once the peer closes others: retransmission timeouts, and at least.
const CLOSE_PATIENCE: (u64, Duration) = (3, Duration::from_secs(1));

/// The timers of a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// A delayed acknowledgment.
    Acknowledgment,
    /// The probe of a failing path.
    PathProbe,
    /// Data has waited for its mapping for too long.
    Mapping,
    /// A SYN, SYN/ACK or third ACK is repeated.
    Handshake,
    /// Keep-alive, TIME-WAIT, or the end of waiting for the peer's FIN.
    Linger,
    /// One of the sender's.
    Sender,
}

/// The result of a subflow's timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// All that was due is done.
    Nothing,
    /// The handshake was not answered, or the peer has been silent for too long (RFC 9293 §3.8.3, R2).
    Failed,
    /// A timer of the sender's has come.
    Sender,
}

/// Facts about the connection for a subflow that lingers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// The peer's stream has ended (with MPTCP), so that only its FIN is waited for.
    pub over: bool,
    /// The peer closes subflows because both streams have ended, since.
    pub closing: Option<Instant>,
}

/// The peer answers probes: the next one follows when it has been silent again (RFC 9293 §3.8.4).
#[cold]
pub(super) fn on_probe_answered(s: &mut Subflow, cx: &Scope<'_>) {
    s.probes = 0;
    if let (Some(after), State::Established | State::CloseWait) = (cx.settings().tcp.keep_alive, s.state) {
        s.linger = s.linger.min(cx.now + after);
    }
}

impl Subflow {
    /// A subflow of ours, whose SYN is to be sent. `mss`: most payload bytes of the path's segments, if that is less than the settings'.
    /// `address_ids`: of our end, and of the peer's.
    pub fn opening(
        id: PathId,
        tuple: FourTuple,
        (settings, mss): (&Settings, Option<u32>),
        rng: &mut Rng,
        now: Instant,
        address_ids: Both<u8>,
    ) -> Self {
        let mut s = Self::new(id, tuple, settings, SeqNumber(rng.bits() as u32), now);
        s.terms = Terms::offer(settings).within(mss);
        s.handshake.active = true;
        s.handshake.due = true;
        s.handshake.nonces.ours = rng.bits() as u32;
        s.handshake.address_ids = address_ids;
        s.go(Move::SendSyn);
        s
    }

    /// A subflow of the peer's, whose SYN is to be answered.
    pub fn admitted(id: PathId, half: &HalfOpen, settings: &Settings, now: Instant) -> Self {
        let mut s = Self::new(id, half.tuple(), settings, half.isn, now);
        s.state = State::Listen;
        s.go(Move::ReceiveSyn);
        s.peer_isn = half.peer_isn;
        s.window = SendWindow::new(half.window.into());
        s.terms = half.terms;
        s.stamps = half.stamps();
        s.handshake.due = true;
        s
    }

    /// The SYN/ACK was sent before this was made.
    pub fn resume(&mut self, half: &HalfOpen, now: Instant) {
        self.handshake.resume(half.since, half.answers, half.repeats, now);
        if let Offer::Join { nonces, address_ids, backup, .. } = half.offer {
            self.join = true;
            self.backup.theirs = backup;
            self.handshake.nonces = nonces;
            self.handshake.address_ids = address_ids;
        }
    }

    /// The peer's SYN or SYN/ACK: its numbers, its window, and what is agreed on from here on.
    pub fn learn(&mut self, segment: &Segment, now: Instant) {
        self.peer_isn = segment.seq;
        self.window = SendWindow::new(segment.window.into());
        self.terms = self.terms.agree(segment, self.tuple.remote.is_ipv6());
        self.last_heard = now;
        if let Some(stamps) = segment.options.timestamps().filter(|_| self.terms.timestamps) {
            self.stamps.keep(stamps, true, now);
        }
    }

    /// The SYN/ACK came that answers our SYN: a third ACK follows.
    pub fn on_syn_ack(&mut self, now: Instant, tcp: &TcpSettings, plain: bool) {
        if plain {
            self.acks.demand();
        } else {
            self.handshake.third_ack = true;
        }
        if self.join && !plain {
            // RFC 8684 §3.2: repeated until the fourth ACK comes
            self.handshake.retries = self.handshake.repeats + tcp.syn_retries;
            let rtt = self.handshake.rtt(now);
            self.handshake.deadline = now + rtt.map_or(tcp.rto_initial, |r| r * 2 + tcp.rto_min);
        } else {
            self.handshake.complete();
            self.handshake.confirmed = true;
        }
    }

    /// The subflow is made by MP_JOIN; `pause` as in [`Handshake::joins`](super::handshake::Handshake::joins).
    pub fn join(&mut self, pause: Option<Duration>) {
        self.join = true;
        self.handshake.joins(pause);
    }

    /// The peer's part of an MP_JOIN: whether this is a backup to it, its random number and its address ID.
    pub fn on_join_answer(&mut self, backup: bool, nonce: u32, address_id: u8) {
        self.backup.theirs = backup;
        self.handshake.nonces.theirs = nonce;
        self.handshake.address_ids.theirs = address_id;
    }

    /// A third ACK with this window leaves.
    pub fn third_ack_leaves(&mut self, window: u16) {
        self.handshake.third_ack = false;
        self.acknowledges(window);
    }

    /// A third ACK says our keys again, if the peer has not shown that it got them.
    pub fn repeat_keys(&mut self, mode: Mode) {
        self.handshake.third_ack |= self.shows_keys(mode);
    }

    /// The peer has acknowledged our SYN/ACK.
    pub fn synchronize(&mut self) {
        self.go(Move::SynAcked);
        self.handshake.complete();
        self.handshake.confirmed = true;
        if self.join {
            // RFC 8684 §3.2: the fourth ACK
            self.acks.demand();
        }
    }

    /// A join of which neither end knows yet that the other has its proof.
    #[inline(always)]
    pub fn is_to_be_confirmed(&self) -> bool {
        !self.handshake.confirmed && self.join
    }

    /// RFC 8684 §3.2: the fourth ACK came, so that the peer has our proof. False if there is nothing to prove.
    #[inline(always)]
    pub fn confirm_join(&mut self) -> bool {
        let confirms = self.is_to_be_confirmed();
        if confirms {
            self.handshake.confirmed = true;
            self.handshake.complete();
        }
        confirms
    }

    /// A SYN of the peer's crosses ours: it is answered with SYN/ACK.
    pub fn on_crossing_syn(&mut self) {
        self.go(Move::ReceiveSyn);
        self.handshake.due = true;
    }

    /// The peer's SYN again: our SYN/ACK was lost. It may have no option now, perhaps because our answer was dropped for it
    /// (RFC 8684 §3.7): the answer has none either then, and the third ACK tells what it is to be.
    pub(super) fn on_syn_again(&mut self, now: Instant, segment: &Segment, offers_multipath: bool) {
        self.terms.ecn &= sets_up(segment);
        if self.may_answer(now) {
            self.handshake.due = true;
        }
        self.handshake.bare = !self.join && !offers_multipath;
    }

    /// From here on the connection is plain TCP over this subflow.
    pub fn become_plain(&mut self) {
        self.handshake.confirmed = true;
        self.handshake.third_ack = false;
        self.handshake.complete();
        self.signals.clear();
    }

    /// Both SYNs are exchanged, and `segment` acknowledges ours: the sender begins. Returns the initial window, in packets.
    pub fn begin_sending(&mut self, segment: &Segment, tcp: &TcpSettings, now: Instant) -> u32 {
        self.sender = Sender::new(tcp, self.terms.sack);
        let lost = self.handshake.repeats > 0;
        self.ecn = EcnState::agreed(self.terms.ecn, lost && self.handshake.active);
        let echo = segment.options.timestamps().filter(|_| self.terms.timestamps);
        let echoed = || echo.and_then(|t| Stamps::echoed(t.ecr, now)).map(|(rtt, _)| rtt);
        match self.handshake.rtt(now).or_else(echoed) {
            Some(rtt) => self.sender.sample_handshake(rtt),
            // RFC 6298 §5.7
            None if lost => self.sender.distrust_rtt(),
            None => {}
        }
        self.linger = tcp.keep_alive.map_or(NEVER, |after| now + after);
        // RFC 5681 §3.1, RFC 6928 §2: a lost SYN or SYN/ACK leaves one segment to begin with.
        if lost { 1 } else { tcp.initial_window }
    }

    /// A round trip as the receiver sees it: from an acknowledgment to a segment that echoes its timestamp (Linux
    /// `tcp_rcv_rtt_measure_ts`).
    pub fn note_trip(&mut self, segment: &Segment, now: Instant) {
        let stamps = segment.options.timestamps().filter(|_| self.terms.timestamps);
        let Some((sample, _)) = stamps.and_then(|stamps| Stamps::echoed(stamps.ecr, now)) else { return };
        self.trip = Some(self.trip.map_or(sample, |trip| trip - trip / 8 + sample / 8));
    }

    /// A round trip as the receiver sees it, or else as the sender does.
    pub fn round_trip(&self) -> Option<Duration> {
        self.trip.or(self.sender.rtt().srtt())
    }

    // ---- time ----

    /// The table of deadlines. Pacing is not among them: it depends on the congestion control, which lies outside.
    #[inline(always)]
    pub(super) fn deadlines(&self) -> Deadlines<Timer, 6> {
        Deadlines([
            (Timer::Acknowledgment, self.acks.deadline()),
            (Timer::PathProbe, self.path_probe),
            (Timer::Mapping, self.placement.deadline()),
            (Timer::Handshake, self.handshake.deadline),
            (Timer::Linger, self.linger),
            (Timer::Sender, self.sender.deadline()),
        ])
    }

    /// Does what is due. Only the sender's timers concern more than the subflow.
    pub fn on_timers(&mut self, cx: &mut Scope<'_>, ending: Ending) -> Expired {
        let tcp = &cx.settings().tcp;
        let mut last = None;
        while let Some(timer) = self.deadlines().due_after(last, cx.now) {
            match timer {
                Timer::Acknowledgment => self.acks.on_timer(cx.now),
                Timer::PathProbe => {
                    self.probe_path(cx.now);
                    cx.record(Some(self.id), Event::PathProbe);
                }
                Timer::Mapping => {
                    cx.violation(self.id, Violation::Unmapped);
                    self.end_unmapped();
                    return Expired::Nothing;
                }
                Timer::Handshake if self.on_handshake_timer(cx.now) => return Expired::Nothing,
                Timer::Handshake => return Expired::Failed,
                Timer::Linger if self.on_linger(cx.now, tcp.keep_alive, ending) => return Expired::Nothing,
                Timer::Linger => return Expired::Failed,
                Timer::Sender => return Expired::Sender,
            }
            last = Some(timer);
        }
        Expired::Nothing
    }

    /// The handshake was not answered: it is repeated. False if that was tried often enough.
    fn on_handshake_timer(&mut self, now: Instant) -> bool {
        let goes_on = self.handshake.on_timeout();
        if goes_on && self.state == State::Established {
            // The third ACK of a join was not answered.
            self.handshake.third_ack = true;
            self.handshake.on_sent(now);
        }
        goes_on
    }

    /// Keep-alive, TIME-WAIT, or the end of waiting for the peer's FIN. False if the subflow is to be given up.
    fn on_linger(&mut self, now: Instant, keep_alive: Option<Duration>, ending: Ending) -> bool {
        if self.state == State::TimeWait {
            self.linger = NEVER;
            self.go(Move::Expire);
            return true;
        }
        if self.state == State::FinWait2 && ending.over {
            self.go(Move::Abort);
            return true;
        }
        if let Some(since) = ending.closing {
            self.close_silent(now, since);
            return true;
        }
        self.doubted = self.doubted.filter(|since| self.last_heard < *since);
        // RFC 9293 §3.8.4: keep-alive. A peer whose reset is in doubt is asked at once.
        let (after, gap) = match (self.doubted, keep_alive) {
            (Some(_), _) => (Duration::ZERO, (CHALLENGE_WAIT * (2 << self.probes.min(9))).min(KEEP_ALIVE_GAP)),
            (None, Some(after)) => (after, KEEP_ALIVE_GAP),
            (None, None) => {
                self.linger = NEVER;
                return true;
            }
        };
        if now.since(self.last_heard) < after {
            self.linger = self.last_heard + after;
        } else if !self.sender.is_empty() {
            // Outstanding data is an inquiry itself, and its timer counts the answers that do not come.
            self.linger = now + if self.doubted.is_some() { gap } else { after };
        } else if self.probes >= KEEP_ALIVE_PROBES {
            return false;
        } else {
            self.probes += 1;
            self.window_probe = true;
            self.linger = now + gap;
        }
        true
    }

    /// A reset that may be an attacker's was challenged (RFC 5961 §3.2). If it was the peer's, and the challenge or its answer is lost,
    /// nothing else would show that: probes ask until one is answered, or too many are not.
    pub fn doubt_reset(&mut self, now: Instant) {
        // Otherwise the end of waiting is near.
        if self.linger > now + KEEP_ALIVE_GAP {
            self.linger = now + CHALLENGE_WAIT;
            // Until the first probe leaves, what comes may have left before the reset.
            self.doubted = Some(self.linger);
        }
    }

    /// The peer has closed a subflow in order since `since`, so it knows that both streams have ended. One on which it has
    /// been silent for too long is reset.
    fn close_silent(&mut self, now: Instant, since: Instant) {
        let patience = (self.sender.rtt().rto() * CLOSE_PATIENCE.0).max(CLOSE_PATIENCE.1);
        let until = self.last_heard.max(since) + patience;
        self.linger = until;
        if until <= now {
            self.linger = NEVER;
            // RFC 8684 §3.3.3: it may be closed with a RST for too much outstanding data
            self.close_by_reset(Reset::Because(OUTSTANDING));
        }
    }

    /// The peer may have acknowledged our FIN. Old duplicates, or a FIN of a stream that is `over`, are waited for until `until`.
    #[inline(always)]
    pub fn note_fin_acked(&mut self, until: Instant, over: impl FnOnce() -> bool) {
        if self.fin.offset.is_some_and(|fin| self.sender.una() > fin) {
            self.fin_acked(until, over());
        }
    }

    fn fin_acked(&mut self, until: Instant, over: bool) {
        if self.go(Move::FinAcked) && (self.state == State::TimeWait || self.state == State::FinWait2 && over) {
            self.linger = until;
        }
    }

    /// Everything up to the peer's FIN has come: old duplicates are waited for until `until`, if nothing else is.
    pub fn on_fin(&mut self, until: Instant) {
        self.acks.demand();
        if self.go(Move::ReceiveFin) && self.state == State::TimeWait {
            self.linger = until;
        }
    }

    /// A client's first subflow whose peer has not shown that it got our keys (RFC 8684 §3.1).
    #[inline(always)]
    pub fn shows_keys(&self, mode: Mode) -> bool {
        mode == Mode::Agreed && self.handshake.active && !self.join
    }

    // ---- a failing path ----

    /// One small segment shows whether a failing path is back. The back-off of the data itself is RFC 6298's.
    fn probe_path(&mut self, now: Instant) {
        self.window_probe = true;
        self.probed = true;
        let (least, most) = PATH_PROBE;
        self.path_probe = now + (now.since(self.last_heard) / 16).clamp(least, most);
    }

    /// Others carry the data of a failing path: it is probed.
    pub fn probe_soon(&mut self, now: Instant) {
        self.path_probe = self.path_probe.min(now + PATH_PROBE.0);
    }

    /// Whether its silence is to be noticed.
    pub fn watch(&mut self, watched: bool) {
        self.sender.watch(watched);
    }

    /// The peer speaks, only the first packet is not acknowledged: silence counts from its last segment.
    pub fn await_news(&mut self) {
        self.sender.await_news(self.last_heard);
    }

    /// Silence counts at `at`, unless something is acknowledged until then.
    pub fn look_again(&mut self, at: Instant) {
        self.sender.look_again(at);
    }

    /// The retransmission timeout backs off to `limit` at most.
    pub fn limit_rto(&mut self, limit: Duration) {
        self.sender.limit_rto(limit);
    }

    /// The path may carry data, or delivers again after it has failed.
    pub fn came_up(&mut self) {
        self.failing = false;
        self.path_probe = NEVER;
        self.reported = PathState::Established;
    }

    /// The path fails. False if it does already.
    pub fn fell_silent(&mut self) -> bool {
        let is_new = !self.failing;
        if is_new {
            self.failing = true;
            self.reported = PathState::Failing;
        }
        is_new
    }

    /// A tail loss probe is to be sent.
    pub fn probe_tail(&mut self) {
        self.probe = true;
    }

    /// Asks the peer for its window. False if it was asked `most` times without an answer.
    pub fn probe_window(&mut self, most: u32) -> bool {
        self.probes += 1;
        let goes_on = self.probes <= most;
        self.window_probe |= goes_on;
        goes_on
    }

    /// How long nothing has left, if that is longer than the RTO, it may send, and the window was not restarted since.
    pub fn idle_for(&self, now: Instant) -> Option<Duration> {
        if self.idle_done || !self.sender.is_empty() {
            return None;
        }
        let idle = now.since(self.last_sent?);
        (idle > self.sender.rtt().rto() && self.may_carry()).then_some(idle)
    }

    /// The window was restarted for the time that nothing was sent.
    pub fn note_restart(&mut self) {
        self.idle_done = true;
    }

    /// RFC 9293 §3.8.6: a peer that answers is not given up because of what lies beyond its window, which shrank.
    pub fn is_answered_beyond_window(&self) -> bool {
        let waits = !self.sender.is_empty() && self.window.left(self.sender.una()) == 0;
        waits && self.last_sent.is_some_and(|sent| self.last_heard >= sent)
    }

    // ---- the end ----

    /// Our FIN follows the last data.
    pub fn finish(&mut self) {
        self.fin.wanted = true;
    }

    /// The FIN, if it is to leave now; the stream ends at `written`.
    pub fn next_fin(&mut self, written: u64) -> Option<Sent> {
        if !self.fin.wanted || self.fin.offset.is_some() {
            return None;
        }
        self.go(Move::SendFin);
        let at = self.sender.nxt();
        self.fin.offset = Some(at);
        Some(Sent::fin(at, written))
    }

    /// Waiting for the peer ends at `until`.
    pub fn wait_until(&mut self, until: Instant) {
        self.linger = until;
    }

    /// A reset came.
    pub fn note_broken(&mut self) {
        self.broken = true;
    }

    /// Ends by reset because of the peer's answer to our SYN.
    pub fn reject(&mut self, reset: Reset) {
        self.reset = Some(reset);
    }

    /// Closed, with nothing left to say.
    pub fn is_gone(&self) -> bool {
        self.state == State::Closed && self.reset.is_none()
    }

    /// The connection ends while this join is incomplete: a reset informs the peer if it may know of the join. Nothing is
    /// awaited.
    pub fn give_up_joining(&mut self) {
        if !self.join || self.handshake.confirmed {
            return;
        }
        self.close_by_reset(Reset::Because(UNSPECIFIED));
    }

    /// Ends by reset. Before the SYN is answered no reset is sent: there is no peer yet.
    pub fn close_by_reset(&mut self, reset: Reset) {
        if self.state == State::SynSent {
            self.handshake.complete();
            self.go(Move::Abort);
        } else {
            self.reset.get_or_insert(reset);
        }
    }

    /// The connection is aborted: a reset informs its peer, unless there is none yet, or none any more (RFC 9293 §3.10.5).
    pub fn abort(&mut self, reset: Reset) {
        match self.state {
            State::Closed => {}
            State::SynSent => self.close_by_reset(reset),
            // The peer has closed too, unless its stream continues elsewhere.
            State::TimeWait | State::Closing | State::LastAck if reset != Reset::FastClose => {
                self.go(Move::Abort);
            }
            _ if reset == Reset::FastClose => self.reset = Some(reset),
            _ => self.close_by_reset(reset),
        }
    }
}
