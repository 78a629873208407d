//! Beginning: MP_CAPABLE and MP_JOIN handshakes, and the fall back to plain TCP (RFC 8684 §3.1, §3.2, §3.7).

use super::race::Race;
use super::{Connection, Keys, Mode, Setup};
use crate::cx::Cx;
use crate::schedule::{Cause, PathView, SchedulerEvent};
use crate::settings::Settings;
use crate::subflow::half_open::{HalfOpen, Offer};
use crate::subflow::handshake::Terms;
use crate::subflow::sender::Sender;
use crate::subflow::stamps::Stamps;
use crate::subflow::window::SendWindow;
use crate::subflow::{FourTuple, Move, Reset, State, Subflow};
use anabranch_trace::{Event, PathState, Violation};
use anabranch_units::{DataSeq, PathId, Rng, SeqNumber, Side};
use anabranch_wire::{Flags, MpCapable, MpJoin, MptcpOption, Reason, Segment, crypto};

/// RFC 8684 §3.6: reason codes of MP_TCPRST.
pub(super) const MPTCP_ERROR: Reason = Reason { code: 1, transient: false };
pub(super) const INTERFERENCE: Reason = Reason { code: 6, transient: true };
pub(super) const UNSPECIFIED: Reason = Reason { code: 0, transient: false };

fn initial_number(rng: &mut Rng) -> SeqNumber {
    SeqNumber(rng.bits() as u32)
}

/// RFC 8684 §3.1: version 1 with HMAC-SHA256. Anything else is ignored after the first SYN.
fn is_spoken(capable: &MpCapable) -> bool {
    capable.version == 1 && capable.hmac_sha256
}

fn capable(segment: &Segment) -> Option<&MpCapable> {
    capable_if(segment, is_spoken)
}

/// What a first SYN offers, in a form that can be answered. A version is the highest that the peer knows: a later one than ours
/// is answered with ours (RFC 8684 §3.1).
fn offered(syn: &Segment) -> Option<&MpCapable> {
    capable_if(syn, |c| c.version >= 1 && c.hmac_sha256 && c.sender_key.is_none())
}

/// An option that follows the keys.
fn speaks_later(segment: &Segment) -> bool {
    let follows = |o: &MptcpOption| !matches!(o, MptcpOption::Capable(_));
    segment.options.dss().is_some() || segment.options.mptcp().iter().any(follows)
}

fn capable_if(segment: &Segment, is_wanted: impl Fn(&MpCapable) -> bool) -> Option<&MpCapable> {
    segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Capable(c) if is_wanted(c) => Some(c),
        _ => None,
    })
}

pub(super) fn join(segment: &Segment) -> Option<&MpJoin> {
    segment.options.mptcp().iter().find_map(|o| match o {
        MptcpOption::Join(j) => Some(j),
        _ => None,
    })
}

/// What the first SYN of a connection asks for, answered with a `key` if need be. An offer that is not spoken here is
/// answered as plain TCP (RFC 8684 §3.1).
pub(crate) fn asked(syn: &Segment, settings: &Settings, key: impl FnOnce() -> u64) -> Offer {
    let offer = offered(syn).filter(|_| settings.mptcp);
    offer.map_or(Offer::Plain, |c| Offer::Capable {
        key: key(),
        checksum: settings.checksum || c.checksum,
        bare: false,
    })
}

/// A SYN offers MPTCP in a form that can be answered.
pub(crate) fn offers_multipath(syn: &Segment) -> bool {
    offered(syn).is_some()
}

/// A key whose token is not among `taken` (RFC 8684 §3.1).
pub(crate) fn fresh_key(rng: &mut Rng, taken: &dyn Fn(u32) -> bool) -> u64 {
    Keys::generate(rng, taken).local
}

impl Keys {
    /// A fresh key whose token is not among `taken` (RFC 8684 §3.1).
    pub(super) fn generate(rng: &mut Rng, taken: &dyn Fn(u32) -> bool) -> Self {
        loop {
            let keys = Self::of(rng.bits());
            if !taken(keys.local_token) {
                return keys;
            }
        }
    }

    /// With a key of ours, and what follows from it.
    fn of(local: u64) -> Self {
        Self { local, local_token: crypto::token(local), local_idsn: crypto::idsn(local), ..Self::default() }
    }

    pub(super) fn learn(&mut self, remote: u64) {
        self.remote = remote;
        self.remote_token = crypto::token(remote);
        self.remote_idsn = crypto::idsn(remote);
    }

    /// The wire's number of our data at `offset`. The first byte has IDSN + 1.
    pub(super) fn local_number(&self, offset: u64) -> DataSeq {
        self.local_idsn.at(offset + 1)
    }

    /// The wire's number of the peer's data at `offset`.
    pub(super) fn remote_number(&self, offset: u64) -> DataSeq {
        self.remote_idsn.at(offset + 1)
    }
}

impl Connection {
    /// A client's connection: its first SYN is ready to be sent. `taken` says which tokens are in use on this host.
    ///
    /// # Panics
    /// If `setup` names no path.
    pub fn connect(cx: &mut Cx<'_>, setup: Setup, taken: &dyn Fn(u32) -> bool) -> Self {
        let race = Race::of(&setup.settings, &setup.paths);
        let local = race.favourite().expect("a client needs a path").tuple.local;
        let mut connection = Self::new(setup, Side::Client, local);
        connection.race = race;
        connection.scheduler.seed(cx.rng.fork("scheduler"));
        connection.keys = Keys::generate(cx.rng, taken);
        connection.open_next(cx);
        connection.run_race(cx);
        connection
    }

    /// A server's connection, made by a SYN that was received on `tuple`.
    pub fn accept(cx: &mut Cx<'_>, setup: Setup, tuple: FourTuple, syn: &Segment, taken: &dyn Fn(u32) -> bool) -> Self {
        let mut connection = Self::new(setup, Side::Server, tuple.local);
        connection.scheduler.seed(cx.rng.fork("scheduler"));
        connection.keys = Keys::generate(cx.rng, taken);
        let offer = asked(syn, &connection.settings, || connection.keys.local);
        let half = HalfOpen::new(cx.rng, cx.now, &connection.settings, tuple, syn, offer);
        connection.begin(cx, &half);
        connection
    }

    /// A server's connection whose peer has acknowledged the SYN/ACK of `half`: take that segment next.
    pub(crate) fn resume(cx: &mut Cx<'_>, setup: Setup, half: &HalfOpen, taken: &dyn Fn(u32) -> bool) -> Self {
        let mut connection = Self::new(setup, Side::Server, half.tuple().local);
        connection.scheduler.seed(cx.rng.fork("scheduler"));
        let told = match half.offer {
            Offer::Capable { key, .. } => Some(Keys::of(key)),
            _ => None,
        };
        // RFC 8684 §3.1: another connection may have drawn the same token meanwhile. Then the peer gets no MPTCP option
        // any more, and falls back.
        let unique = told.filter(|keys| connection.settings.mptcp && !taken(keys.local_token));
        connection.keys = unique.unwrap_or_else(|| Keys::generate(cx.rng, taken));
        let offer = unique.map_or(Offer::Plain, |_| half.offer);
        connection.begin(cx, &half.with(offer));
        let s = connection.subflows.last_mut().expect("just begun");
        s.handshake.resume(half, cx.now);
        connection.advertise(0);
        connection
    }

    /// The first subflow of a server's connection.
    fn begin(&mut self, cx: &mut Cx<'_>, half: &HalfOpen) {
        match half.offer {
            Offer::Capable { checksum, .. } => self.checksum = checksum,
            _ => self.mode = Mode::Plain,
        }
        let id = self.paths.id_for(half.tuple()).unwrap_or_default();
        self.admit(cx, id, half);
        self.learn_window(half.window);
    }

    /// Begins a subflow of ours.
    pub(super) fn start_subflow(&mut self, cx: &mut Cx<'_>, id: PathId, tuple: FourTuple, join: bool, backup: bool) {
        let isn = initial_number(cx.rng);
        let mut s = Subflow::new(id, tuple, &self.settings, isn, cx.now);
        s.terms = Terms::offer(&self.settings);
        s.join = join;
        s.backup.0 = backup;
        s.handshake.active = true;
        s.handshake.due = true;
        s.handshake.nonces.0 = cx.rng.bits() as u32;
        let remote_id = self.paths.remote_id(id).unwrap_or(0);
        // RFC 8684 §3.2: the address of the first subflow has ID 0, whichever path that is.
        let own_id = if join { self.addresses.id_for(tuple.local).unwrap_or(0) } else { 0 };
        s.handshake.address_ids = (own_id, remote_id);
        s.go(Move::SendSyn);
        self.add_subflow(cx, s);
    }

    /// A subflow of the peer's, whose SYN is to be answered.
    pub(super) fn admit(&mut self, cx: &mut Cx<'_>, id: PathId, half: &HalfOpen) {
        let mut s = Subflow::new(id, half.tuple(), &self.settings, half.isn, cx.now);
        s.state = State::Listen;
        s.go(Move::ReceiveSyn);
        s.peer_isn = half.peer_isn;
        s.window = SendWindow::new(half.window.into());
        s.terms = half.terms;
        s.stamps = half.stamps();
        s.handshake.due = true;
        self.add_subflow(cx, s);
    }

    fn add_subflow(&mut self, cx: &mut Cx<'_>, s: Subflow) {
        let id = s.id;
        self.subflows.push(s);
        self.touch_all();
        self.epoch += 1;
        self.record(cx, Some(id), Event::Path(PathState::Opening));
    }

    /// Options of our SYN or SYN/ACK.
    pub(super) fn handshake_option(&self, s: &Subflow) -> Option<MptcpOption> {
        if self.mode == Mode::Plain || s.handshake.bare {
            return None;
        }
        if s.join {
            let (nonce, address_id) = (s.handshake.nonces.0, s.handshake.address_ids.0);
            let token = self.keys.remote_token;
            return Some(MptcpOption::Join(MpJoin::Syn { backup: s.backup.0, address_id, token, nonce }));
        }
        Some(MptcpOption::Capable(MpCapable {
            checksum: self.checksum,
            // RFC 8684 §3.1: no key on the SYN, the server's on the SYN/ACK
            sender_key: (!s.handshake.active).then_some(self.keys.local),
            ..MpCapable::OFFER
        }))
    }

    /// The option of a third ACK: both keys, or the HMAC of a join.
    pub(super) fn third_ack_option(&self, s: &Subflow) -> MptcpOption {
        if s.join {
            let (ours, theirs) = s.handshake.nonces;
            let hmac = crypto::join_hmac(self.keys.local, self.keys.remote, ours, theirs);
            MptcpOption::Join(MpJoin::Ack { hmac: crypto::leftmost_160(&hmac) })
        } else {
            MptcpOption::Capable(self.both_keys(None))
        }
    }

    /// MP_CAPABLE with both keys, as the third ACK and the first data carry it.
    pub(super) fn both_keys(&self, data: Option<(u16, Option<u16>)>) -> MpCapable {
        MpCapable {
            checksum: self.checksum,
            sender_key: Some(self.keys.local),
            receiver_key: Some(self.keys.remote),
            data,
            ..MpCapable::OFFER
        }
    }

    /// The data that MP_CAPABLE maps, the first of the connection: its length, and the checksum if there is one.
    pub(super) fn first_data(&self, option: &MptcpOption) -> Option<(u16, Option<u16>)> {
        let MptcpOption::Capable(c) = option else { return None };
        let keys = (c.sender_key, c.receiver_key) == (Some(self.keys.remote), Some(self.keys.local));
        c.data.filter(|_| is_spoken(c) && keys)
    }

    /// A segment in SYN-SENT (RFC 9293 §3.10.7.3).
    pub(super) fn on_syn_sent(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let racing = self.race.is_open();
        let s = &mut self.subflows[i];
        let flags = segment.flags;
        let acks_our_syn = flags.has(Flags::ACK) && segment.ack == s.isn.at(1);
        if flags.has(Flags::ACK) && !acks_our_syn {
            // RFC 9293 §3.10.7.3: the peer may hold an old connection
            s.refusal = Some(segment.ack).filter(|_| !flags.has(Flags::RST));
            return self.violation(cx, i, Violation::BlindAck);
        }
        if flags.has(Flags::RST) {
            if acks_our_syn {
                self.refused(cx, i, segment);
            }
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        if !acks_our_syn && (s.join || racing) {
            // MP_JOIN knows no simultaneous open, and neither does a race: it would end in plain TCP.
            return self.violation(cx, i, Violation::UnexpectedOption);
        }
        let i = if racing { self.win(cx, i) } else { i };
        let s = &mut self.subflows[i];
        s.peer_isn = segment.seq;
        s.window = SendWindow::new(segment.window.into());
        s.terms = s.terms.agree(&segment.options, s.tuple.remote.is_ipv6());
        s.last_heard = cx.now;
        if let Some(stamps) = segment.options.timestamps().filter(|_| s.terms.timestamps) {
            s.stamps.keep(stamps, true, cx.now);
        }
        if !acks_our_syn {
            // Simultaneous open: answer with SYN/ACK; MPTCP is not agreed that way.
            s.go(Move::ReceiveSyn);
            s.handshake.due = true;
            self.mode = Mode::Plain;
            self.view.set_in_sequence();
            return self.learn_window(segment.window);
        }
        let accepted = if self.subflows[i].join {
            self.check_join_syn_ack(cx, i, segment)
        } else {
            self.learn_window(segment.window);
            self.learn_from_syn_ack(i, segment);
            true
        };
        if !accepted {
            return;
        }
        let s = &mut self.subflows[i];
        s.go(Move::ReceiveSynAck);
        if self.mode == Mode::Plain {
            s.handshake.complete();
            s.acks.demand();
            s.handshake.confirmed = true;
        } else {
            s.handshake.third_ack = true;
            if s.join {
                // RFC 8684 §3.2: repeated until the fourth ACK comes
                let rtt = s.handshake.rtt(cx.now);
                s.handshake.deadline =
                    cx.now + rtt.map_or(self.settings.tcp.rto_initial, |r| r * 2 + self.settings.tcp.rto_min);
            } else {
                s.handshake.complete();
                s.handshake.confirmed = true;
            }
        }
        self.establish(cx, i, segment);
        self.on_text_of_syn(cx, i, segment);
    }

    /// The first window of the connection. RFC 7323 §2.2: that of a SYN is not scaled.
    fn learn_window(&mut self, window: u16) {
        self.view.set_window(window.into(), window.into());
    }

    fn learn_from_syn_ack(&mut self, i: usize, segment: &Segment) {
        if self.mode != Mode::Opening {
            return;
        }
        let answer = capable(segment).filter(|c| c.receiver_key.is_none());
        if answer.is_some_and(|c| c.no_join_here) {
            self.paths.keep_off(self.subflows[i].tuple.remote);
        }
        match answer.and_then(|c| c.sender_key.map(|key| (key, c.checksum))) {
            Some((key, checksum)) => {
                self.keys.learn(key);
                self.checksum |= checksum;
                self.mode = Mode::Multipath { confirmed: false };
            }
            // RFC 8684 §3.7: no MP_CAPABLE on the SYN/ACK
            None => self.mode = Mode::Plain,
        }
    }

    fn check_join_syn_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) -> bool {
        let (ours, _) = self.subflows[i].handshake.nonces;
        if let Some(MpJoin::SynAck { backup, address_id, hmac, nonce }) = join(segment).copied() {
            let expected = crypto::join_hmac(self.keys.remote, self.keys.local, nonce, ours);
            if hmac == crypto::leftmost_64(&expected) {
                let s = &mut self.subflows[i];
                s.backup.1 = backup;
                s.handshake.nonces.1 = nonce;
                s.handshake.address_ids.1 = address_id;
                return true;
            }
            self.violation(cx, i, Violation::Hmac);
        }
        // RFC 8684 §3.2, §3.7: a join that is not understood is reset
        self.subflows[i].reset = Some(Reset::Because(MPTCP_ERROR));
        false
    }

    /// A segment in SYN-RECEIVED (RFC 9293 §3.10.7.4).
    pub(super) fn on_syn_received(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &self.subflows[i];
        let flags = segment.flags;
        let again = flags.has(Flags::SYN) && !flags.has(Flags::RST) && segment.seq == s.peer_isn;
        // The other half of a simultaneous open (§3.5) is a SYN/ACK that begins with what was received already.
        let crossed = again && flags.has(Flags::ACK) && s.handshake.active;
        if again && !flags.has(Flags::ACK) {
            return self.on_syn_again(cx, i, segment);
        }
        if !crossed && self.acceptable(cx, i, segment).is_none() {
            return;
        }
        let s = &mut self.subflows[i];
        if flags.has(Flags::RST) {
            if segment.seq == s.peer_isn.at(1) {
                return self.refused(cx, i, segment);
            }
            // RFC 5961 §3.2
            self.violation(cx, i, Violation::BlindReset);
            return self.answer(cx, i);
        }
        if flags.has(Flags::SYN) && !crossed {
            if !s.handshake.active {
                // Back to LISTEN: the peer begins another connection. It sends its SYN again.
                return self.refused(cx, i, segment);
            }
            // RFC 5961 §4
            self.violation(cx, i, Violation::BlindSyn);
            return self.answer(cx, i);
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        if segment.ack != s.isn.at(1) {
            s.refusal = Some(segment.ack);
            return self.violation(cx, i, Violation::BlindAck);
        }
        if !self.learn_from_ack(cx, i, segment) {
            return;
        }
        self.synchronize(cx, i, segment);
        if crossed {
            self.subflows[i].acks.demand();
            return self.on_text_of_syn(cx, i, segment);
        }
        self.on_synchronized(cx, i, segment);
    }

    /// The peer has acknowledged our SYN/ACK, by `segment`.
    pub(super) fn synchronize(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let s = &mut self.subflows[i];
        s.go(Move::SynAcked);
        s.handshake.complete();
        s.handshake.confirmed = true;
        if s.join {
            // RFC 8684 §3.2: the fourth ACK
            s.acks.demand();
        }
        self.establish(cx, i, segment);
    }

    /// The peer's SYN again: our SYN/ACK was lost. It may have no option now, perhaps because our answer was dropped for it
    /// (RFC 8684 §3.7): the answer has none either then, and the third ACK tells what it is to be.
    fn on_syn_again(&mut self, cx: &mut Cx<'_>, i: usize, syn: &Segment) {
        let s = &mut self.subflows[i];
        if s.may_answer(cx.now) {
            s.handshake.due = true;
        }
        s.handshake.bare = !s.join && !offers_multipath(syn);
    }

    /// The keys of the third ACK, or the fall back. False: this segment does not tell.
    fn learn_from_ack(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) -> bool {
        if self.mode != Mode::Opening {
            return true;
        }
        match capable(segment) {
            Some(MpCapable { sender_key: Some(theirs), receiver_key: Some(ours), .. }) if *ours == self.keys.local => {
                self.keys.learn(*theirs);
                self.mode = Mode::Multipath { confirmed: true };
            }
            // The third ACK was lost, and perhaps the first data too. The peer repeats its keys with the first byte until
            // it has heard from us (RFC 8684 §3.1), so what came before them is as good as lost. Nobody took its options off.
            _ if segment.seq != self.subflows[i].peer_isn.at(1) => return false,
            _ if segment.payload.is_empty() && speaks_later(segment) => return false,
            _ => {
                // RFC 8684 §3.7: the option was taken off on the way, or will never come: Linux does not repeat its keys
                // once the application has finished. Its mapping tells where its numbers begin all the same.
                if let Some(mapping) = segment.options.dss().and_then(|dss| dss.mapping).filter(|m| m.wide && m.len > 0)
                {
                    self.keys.remote_idsn = DataSeq(mapping.data_seq.wrapping_sub(mapping.subflow_seq.into()));
                }
                self.give_up_multipath(cx);
            }
        }
        true
    }

    /// Both SYNs are exchanged, and `segment` acknowledges ours: the subflow's sender begins.
    fn establish(&mut self, cx: &mut Cx<'_>, i: usize, segment: &Segment) {
        let now = cx.now;
        self.orphaned = None;
        let multipath = self.mode != Mode::Plain;
        let settings = &self.settings;
        let s = &mut self.subflows[i];
        let id = s.id;
        s.sender = Sender::new(&settings.tcp, s.terms.sack);
        let lost = s.handshake.repeats > 0;
        let echo = segment.options.timestamps().filter(|_| s.terms.timestamps);
        let echoed = || echo.and_then(|t| Stamps::echoed(t.ecr, now)).map(|(rtt, _)| rtt);
        match s.handshake.rtt(now).or_else(echoed) {
            Some(rtt) => s.sender.sample_handshake(rtt),
            // RFC 6298 §5.7
            None if lost => s.sender.distrust_rtt(),
            None => {}
        }
        // RFC 5681 §3.1, RFC 6928 §2: a lost SYN or SYN/ACK leaves one segment to begin with.
        let window = if lost { 1 } else { settings.tcp.initial_window };
        if self.congestion.is_rate_based() {
            s.sender.measure_rate();
        }
        s.linger = settings.tcp.keep_alive.map_or(anabranch_units::Instant::MAX, |after| now + after);
        let mss = s.terms.payload_limit(settings, multipath);
        self.congestion.on_join(id, window);
        if let Some(threshold) = settings.tcp.initial_ssthresh {
            self.congestion.set_threshold(id, threshold.packets(mss));
        }
        let (policy, used_bytes) = self.paths.account(id);
        let path = PathView { usable: false, backup: s.is_backup(), policy, used_bytes, ..PathView::new(id, mss) };
        self.view.set_path(path);
        self.refresh(i);
        if !self.subflows[i].join {
            self.pending.established = true;
            self.pending.writable = true;
            self.record(cx, Some(id), Event::Connected(multipath));
        }
        if self.mode == (Mode::Multipath { confirmed: true }) {
            self.addresses.open();
        }
        if self.subflows[i].handshake.confirmed {
            self.path_up(cx, i);
        }
    }

    /// The subflow may carry data from now on.
    pub(super) fn path_up(&mut self, cx: &mut Cx<'_>, i: usize) {
        let id = self.subflows[i].id;
        self.joined |= self.subflows[i].join;
        self.subflows[i].told = PathState::Established;
        self.record(cx, Some(id), Event::Path(PathState::Established));
        self.refresh_usability();
        self.retire_half_closed();
        self.relieve_failing(cx);
        self.scheduler.on_event(&SchedulerEvent::PathUp { path: id }, &self.view);
        self.due.get_or_insert(Cause::PathChange(id));
    }
}
