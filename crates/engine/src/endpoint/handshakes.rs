//! Handshakes that peers begin (RFC 9293 §3.10.7.2, RFC 8684 §3.1, §3.2).
//!
//! The first [`UNPROVEN`] of them have a connection from their SYN on. Further ones, and all joins, wait in the
//! [`SynQueue`](super::syn_queue) until their third ACK has come, which only a peer can send that got our SYN/ACK. So do
//! all handshakes of a listener that accepts only complete ones.

use super::syn_queue::Place;
use super::{Endpoint, Handle, Listener, Slot};
use crate::connection::{Connection, Setup};
use crate::cx::Cx;
use crate::four_tuple::FourTuple;
use crate::session::{asked, fresh_key, offers_multipath};
use crate::subflow::half_open::{HalfOpen, Offer, Sense};
use anabranch_units::PathId;
use anabranch_wire::{MpJoin, MptcpOption, Packet, Reason};

/// Most connections that are half open, and no more than half of all. One takes about 4 KiB.
const UNPROVEN: usize = 512;
/// RFC 8684 §3.2: an unknown token is answered with a reset.
const UNKNOWN_TOKEN: Reason = Reason { code: 1, transient: false };

impl Endpoint {
    pub(super) fn on_syn(&mut self, cx: &mut Cx<'_>, tuple: FourTuple, packet: &Packet) -> Option<Handle> {
        let token = packet.segment.options.mptcp().iter().find_map(|o| match o {
            MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(*token),
            _ => None,
        });
        match token {
            Some(token) => self.on_join(cx, tuple, packet, token),
            None => self.on_first_syn(cx, tuple, packet),
        }
    }

    fn on_join(&mut self, cx: &mut Cx<'_>, tuple: FourTuple, packet: &Packet, token: u32) -> Option<Handle> {
        let handle = self.tokens.get(&token).copied();
        let slot = handle.and_then(|h| self.slots.get_mut(h));
        match slot.map_or(Err(UNKNOWN_TOKEN), |slot| slot.connection.begin_join(cx, tuple, &packet.segment)) {
            Ok(half) => {
                self.syns.insert(cx.rng, half);
                handle
            }
            Err(reason) => {
                self.reset(tuple, packet, Some(reason));
                None
            }
        }
    }

    fn on_first_syn(&mut self, cx: &mut Cx<'_>, tuple: FourTuple, packet: &Packet) -> Option<Handle> {
        let free = self.has_free_slot();
        let full = !free && self.unproven.is_empty();
        let Some(listener) = self.listeners.get(&tuple.local.port()).filter(|_| !full) else {
            self.reset(tuple, packet, None);
            return None;
        };
        let offers = offers_multipath(&packet.segment);
        if !offers && listener.requires_multipath() {
            self.reset(tuple, packet, None);
            return None;
        }
        let wait = !free || listener.complete_only || self.unproven.len() >= UNPROVEN.min(self.limit / 2);
        if let Some(settings) = listener.settings.as_ref().filter(|_| wait) {
            let syn = &packet.segment;
            let tokens = &self.tokens;
            let offer = asked(syn, settings, || fresh_key(cx.rng, &|token| tokens.contains_key(&token)));
            let half = HalfOpen::new(cx.rng, cx.now, settings, tuple, syn, offer);
            self.syns.insert(cx.rng, half);
            return None;
        }
        let setup = self.ask(tuple).filter(|setup| offers || !setup.settings.mptcp_required).or_else(|| {
            self.reset(tuple, packet, None);
            None
        })?;
        let tokens = &self.tokens;
        let connection = Connection::accept(cx, setup, tuple, &packet.segment, &|token| tokens.contains_key(&token));
        let handle = self.admit(connection);
        if let Some(slot) = self.slots.get_mut(handle) {
            slot.unproven = true;
            self.unproven.insert(handle);
        }
        Some(handle)
    }

    /// Asks the listener for the setup of a connection, if there is room for one.
    fn ask(&mut self, tuple: FourTuple) -> Option<Setup> {
        let room = self.has_room();
        let listener = self.listeners.get_mut(&tuple.local.port()).filter(|_| room)?;
        let setup = (listener.accept)(tuple)?;
        listener.settings = Some(setup.settings.clone());
        Some(setup)
    }

    /// A connection that is to be accepted.
    fn admit(&mut self, connection: Connection) -> Handle {
        let handle = self.adopt(connection);
        self.accepted.push_back(handle);
        self.index_ends(handle);
        handle
    }

    /// Takes a segment between ends that no connection has. `None` if no handshake waits there; else the connection that the
    /// segment belongs to, if there is one now.
    pub(super) fn on_half_open(
        &mut self,
        cx: &mut Cx<'_>,
        tuple: FourTuple,
        packet: &Packet,
    ) -> Option<Option<Handle>> {
        let (place, half) = self.syns.find(tuple)?;
        let half = *half;
        match half.sense(&packet.segment) {
            Sense::Nothing => Some(None),
            Sense::Again => {
                let required = self.listeners.get(&tuple.local.port()).is_some_and(Listener::requires_multipath);
                self.syns.ask_again(place, &packet.segment, !required && !offers_multipath(&packet.segment));
                Some(None)
            }
            Sense::Unacceptable => {
                self.syns.answer_again(place);
                Some(None)
            }
            Sense::Over => {
                self.syns.remove(place);
                Some(None)
            }
            Sense::Refused => {
                self.reset(tuple, packet, None);
                Some(None)
            }
            Sense::Complete => Some(match half.offer {
                Offer::Join { token, .. } => self.complete_join(cx, place, &half, packet, token),
                _ => {
                    self.syns.remove(place);
                    self.complete(cx, &half, packet)
                }
            }),
        }
    }

    /// The first subflow of a connection to be.
    fn complete(&mut self, cx: &mut Cx<'_>, half: &HalfOpen, packet: &Packet) -> Option<Handle> {
        let tuple = half.tuple();
        let setup = self.ask(tuple).or_else(|| {
            self.reset(tuple, packet, None);
            None
        })?;
        let tokens = &self.tokens;
        let mut connection = Connection::resume(cx, setup, half, &|token| tokens.contains_key(&token));
        let first = connection.subflows().next().map(|(id, ..)| id);
        if let Some(path) = first {
            connection.handle_segment(cx, path, &packet.segment);
        }
        Some(self.admit(connection))
    }

    fn complete_join(
        &mut self,
        cx: &mut Cx<'_>,
        place: Place,
        half: &HalfOpen,
        packet: &Packet,
        token: u32,
    ) -> Option<Handle> {
        let handle = self.tokens.get(&token).copied();
        let slot = handle.and_then(|h| self.slots.get_mut(h));
        let joined = slot.map_or(Err(UNKNOWN_TOKEN), |slot| slot.connection.complete_join(cx, half, &packet.segment));
        self.syns.remove(place);
        match (joined, handle) {
            (Ok(()), Some(handle)) => {
                self.wake(handle);
                self.index_ends(handle);
            }
            (Err(reason), _) => {
                self.reset(half.tuple(), packet, Some(reason));
            }
            _ => {}
        }
        handle.filter(|_| joined.is_ok())
    }

    /// The next SYN/ACK of a handshake that waits, with the path that a join would be on.
    pub(super) fn answer_syn(&mut self, cx: &mut Cx<'_>, packet: &mut Packet) -> Option<Option<PathId>> {
        while let Some((place, half)) = self.syns.next_due() {
            let tuple = half.tuple();
            packet.src = tuple.local.ip();
            packet.dst = tuple.remote.ip();
            if let Offer::Join { token, .. } = half.offer {
                let slot = self.tokens.get(&token).and_then(|h| self.slots.get_mut(*h));
                let Some(Slot { connection, .. }) = slot else {
                    self.syns.remove(place);
                    continue;
                };
                if !self.syns.on_answered(cx.now, place, &connection.frame.settings.tcp) {
                    continue;
                }
                match connection.answer_join(cx, &half, &mut packet.segment) {
                    Some(path) => return Some(Some(path)),
                    None => self.syns.remove(place),
                }
                continue;
            }
            let listener = self.listeners.get(&tuple.local.port());
            let Some(settings) = listener.and_then(|listener| listener.settings.as_ref()) else {
                self.syns.remove(place);
                continue;
            };
            if self.syns.on_answered(cx.now, place, &settings.tcp) {
                // The window of a SYN is not scaled (RFC 7323 §2.2).
                let window = settings.recv_buffer.min(0xffff) as u16;
                half.answer(cx.now, settings, window, half.capable(), &mut packet.segment);
                return Some(None);
            }
        }
        None
    }
}
