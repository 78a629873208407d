//! Joins of the peer's (RFC 8684 §3.2). Until the third ACK has proved that the peer holds the keys, a join is a
//! [`HalfOpen`] beside the connection, which is not changed by it: whoever has seen the token may send SYNs.

use super::open::{MPTCP_ERROR, join};
use super::{Connection, Mode};
use crate::cx::Cx;
use crate::settings::Settings;
use crate::subflow::FourTuple;
use crate::subflow::half_open::{HalfOpen, Offer};
use anabranch_trace::{Event, PathState, Violation};
use anabranch_units::PathId;
use anabranch_wire::{Flags, MpJoin, MptcpOption, Reason, Segment, crypto};

/// RFC 8684 §3.6: lack of resources.
const NO_ROOM: Reason = Reason { code: 2, transient: true };

impl Connection {
    /// How the handshake goes on that a MP_JOIN SYN for this connection begins on `tuple`.
    ///
    /// # Errors
    /// It is to be reset, with this reason.
    pub(crate) fn begin_join(&mut self, cx: &mut Cx<'_>, tuple: FourTuple, syn: &Segment) -> Result<HalfOpen, Reason> {
        let Some(MpJoin::Syn { backup, address_id, token, nonce }) = join(syn).copied() else {
            return Err(MPTCP_ERROR);
        };
        self.may_be_joined(tuple)?;
        self.path_of_join(tuple).ok_or(NO_ROOM)?;
        let own_id = self.addresses.id_for(tuple.local).ok_or(MPTCP_ERROR)?;
        let mut half = HalfOpen::new(cx.rng, cx.now, &self.settings, tuple, syn, Offer::Plain);
        let nonces = (cx.rng.bits() as u32, nonce);
        half.offer = Offer::Join { token, nonces, address_ids: (own_id, address_id), backup };
        Ok(half)
    }

    fn may_be_joined(&self, tuple: FourTuple) -> Result<(), Reason> {
        let confirmed = matches!(self.mode, Mode::Multipath { confirmed: true });
        let over = self.closed || self.both_ended();
        if confirmed && !over && self.addresses.listens_on(tuple.local) { Ok(()) } else { Err(MPTCP_ERROR) }
    }

    /// The path on which a join would be.
    fn path_of_join(&self, tuple: FourTuple) -> Option<PathId> {
        let replaced = self.replaced_by(tuple).map(|i| self.subflows[i].id);
        replaced.or_else(|| self.paths.likely_id(tuple))
    }

    /// Makes `out` the SYN/ACK of a join; returns the path on which it would be. `None` if nothing more can come of it.
    pub(crate) fn answer_join(&mut self, cx: &mut Cx<'_>, half: &HalfOpen, out: &mut Segment) -> Option<PathId> {
        let Offer::Join { nonces: (ours, theirs), address_ids, .. } = half.offer else { return None };
        let tuple = half.tuple();
        self.may_be_joined(tuple).ok()?;
        let id = self.path_of_join(tuple)?;
        let hmac = crypto::join_hmac(self.keys.local, self.keys.remote, ours, theirs);
        let option = MptcpOption::Join(MpJoin::SynAck {
            backup: self.paths.is_backup(id),
            address_id: address_ids.0,
            hmac: crypto::leftmost_64(&hmac),
            nonce: ours,
        });
        let window = self.advertise(0);
        half.answer(cx.now, &self.settings, window, Some(option), out);
        let flags = Flags::SYN | Flags::ACK;
        self.record(cx, Some(id), Event::ControlSent { flags: flags.0, again: half.answers > 0 });
        Some(id)
    }

    /// Takes a segment that acknowledges the SYN/ACK of a join. RFC 8684 §3.1 wants a DSS first; as Linux does, the proof
    /// alone is taken for enough: where the server speaks first, the DSS may come later, on a slower path.
    ///
    /// # Errors
    /// It is to be reset, with this reason.
    pub(crate) fn complete_join(&mut self, cx: &mut Cx<'_>, half: &HalfOpen, segment: &Segment) -> Result<(), Reason> {
        let Offer::Join { nonces: (ours, theirs), address_ids, backup, .. } = half.offer else {
            return Err(MPTCP_ERROR);
        };
        let tuple = half.tuple();
        self.may_be_joined(tuple)?;
        let Some(MpJoin::Ack { hmac }) = join(segment).copied() else {
            // RFC 8684 §3.2: whoever joins proves in every segment who it is, until it has heard from us.
            self.record(cx, None, Event::Violation(Violation::UnexpectedOption));
            return Err(MPTCP_ERROR);
        };
        let expected = crypto::join_hmac(self.keys.remote, self.keys.local, theirs, ours);
        if hmac != crypto::leftmost_160(&expected) {
            self.record(cx, None, Event::Violation(Violation::Hmac));
            return Err(MPTCP_ERROR);
        }
        if let Some(old) = self.replaced_by(tuple) {
            // The peer lost this subflow before we noticed.
            self.drop_subflow(cx, old, PathState::Dead);
        }
        let id = self.paths.id_for(tuple).ok_or(NO_ROOM)?;
        self.view.set_now(cx.now);
        self.admit(cx, id, half);
        let i = self.subflows.len() - 1;
        // The peer has proved that it speaks MPTCP: what comes without it from now on was changed on the way.
        self.joined = true;
        let s = &mut self.subflows[i];
        s.join = true;
        s.backup = (self.paths.is_backup(id), backup);
        s.handshake.resume(half, cx.now);
        s.handshake.nonces = (ours, theirs);
        s.handshake.address_ids = address_ids;
        self.synchronize(cx, i, segment);
        self.on_synchronized(cx, i, segment);
        self.settle(cx);
        Ok(())
    }

    /// Its settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }
}
