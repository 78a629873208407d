//! SYNs and their answers (RFC 9293 §3.10.7.3, RFC 8684 §3.1, §3.2).

use crate::observer::{Mode, Observer, Out, capable, join};
use crate::stream::Owner;
use crate::subflow::{Offer, Stage};
use anabranch_trace::{Event, PathState, Violation};
use anabranch_wire::{Flags, MpCapable, MpJoin, Segment, crypto};

fn offer(segment: &Segment) -> Offer {
    let nonce = match join(segment) {
        Some(MpJoin::Syn { nonce, .. } | MpJoin::SynAck { nonce, .. }) => nonce,
        _ => 0,
    };
    let options = &segment.options;
    Offer { timestamps: options.timestamps().is_some(), scale: options.window_scale(), nonce }
}

impl Observer {
    /// The host sent a SYN or a SYN/ACK.
    pub(crate) fn on_syn_sent(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) {
        let s = &mut self.subflows[i];
        if s.is_synchronized() && segment.seq != s.sending.isn {
            self.unfollowed.stray_packets += 1;
            return;
        }
        let again = s.offers.0.is_some();
        s.sending.isn = segment.seq;
        s.offers.0 = Some(offer(segment));
        let (path, is_join, answers) = (s.path, s.join, s.stage == Stage::SynReceived);
        // A join of the peer becomes a subflow once the peer has authenticated: anyone may send its SYN.
        if !(again || answers && is_join) {
            out.tell_of(path, Event::Path(PathState::Opening));
        }
        let option = capable(segment).filter(|_| !is_join);
        if !answers {
            self.offered |= option.is_some();
        } else if !is_join && self.mode == Mode::Opening {
            match option.and_then(|c| c.sender_key) {
                Some(key) => {
                    self.subflows[i].key = Some(key);
                    self.outgoing.owner = Some(Owner::new(key));
                }
                // The peer retries without the option, perhaps because the answer was dropped for it (RFC 8684 §3.7).
                None if self.subflows[i].key.is_some() => self.fall_back(out, i),
                // Another candidate may still win with the option.
                None if self.is_racing() => {}
                None => self.mode = Mode::Plain,
            }
        }
        out.tell_of(path, Event::ControlSent { flags: segment.flags.0, again });
    }

    /// A segment for a subflow that the host is opening.
    pub(crate) fn on_answer(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) {
        let s = &mut self.subflows[i];
        let flags = segment.flags;
        let acks_our_syn = flags.has(Flags::ACK) && segment.ack == s.sending.isn.at(1);
        if !acks_our_syn {
            // RFC 9293 §3.10.7.3. A simultaneous open is not followed, because it cannot negotiate MPTCP.
            let what = if flags.has(Flags::ACK) { Violation::BlindAck } else { Violation::UnexpectedOption };
            return self.violation(out, i, what);
        }
        if flags.has(Flags::RST) {
            return self.drop_subflow(out, i);
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        let theirs = offer(segment);
        s.receiving.isn = segment.seq;
        s.offers.1 = Some(theirs);
        s.timestamps = theirs.timestamps && s.offers.0.is_some_and(|ours| ours.timestamps);
        if let Some(stamps) = segment.options.timestamps().filter(|_| s.timestamps) {
            s.receiving.keep(stamps, 0, out.now);
        }
        if s.join {
            let proof = self.proof(i).map(|hmac| crypto::leftmost_64(&hmac));
            match join(segment) {
                Some(MpJoin::SynAck { hmac, .. }) if Some(hmac) == proof => {
                    self.subflows[i].stage = Stage::Unconfirmed;
                }
                Some(MpJoin::SynAck { .. }) => self.violation(out, i, Violation::Hmac),
                // RFC 8684 §3.2, §3.7: the host resets it
                _ => {}
            }
            return;
        }
        self.outgoing.window = s.window(false, flags, segment.window);
        match capable(segment).and_then(|c| c.sender_key).filter(|_| self.offered) {
            Some(key) => {
                self.incoming.owner = Some(Owner::new(key));
                self.mode = Mode::Multipath;
            }
            // RFC 8684 §3.7: no MP_CAPABLE on the SYN/ACK
            None => self.mode = Mode::Plain,
        }
        self.establish(out, i);
    }

    /// A segment for a subflow that the peer is opening. True if it is then handled as one of an established subflow.
    pub(crate) fn on_opening(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) -> bool {
        let s = &mut self.subflows[i];
        let flags = segment.flags;
        if flags.has(Flags::RST) {
            if segment.seq == s.receiving.isn.at(1) {
                self.drop_subflow(out, i);
            } else {
                self.violation(out, i, Violation::BlindReset);
            }
            return false;
        }
        if flags.has(Flags::SYN) && segment.seq == s.receiving.isn && !flags.has(Flags::ACK) {
            if s.offers.1.is_none() {
                s.offers.1 = Some(offer(segment));
                if let Some(stamps) = segment.options.timestamps() {
                    s.receiving.keep(stamps, 0, out.now);
                }
                if !s.join {
                    self.outgoing.window = s.window(false, flags, segment.window);
                }
            }
            return false;
        }
        let acks_our_syn = flags.has(Flags::ACK) && segment.ack == s.sending.isn.at(1) && s.offers.0.is_some();
        if flags.has(Flags::SYN) || !acks_our_syn {
            let what = if flags.has(Flags::SYN) { Violation::BlindSyn } else { Violation::BlindAck };
            self.violation(out, i, what);
            return false;
        }
        s.timestamps = s.offers.0.is_some_and(|o| o.timestamps) && s.offers.1.is_some_and(|o| o.timestamps);
        if self.acceptable(out, i, segment).is_none() {
            return false;
        }
        let proven = if self.subflows[i].join { self.proves(out, i, segment) } else { self.agree(out, i, segment) };
        if proven {
            let s = &self.subflows[i];
            if s.join {
                out.tell_of(s.path, Event::Path(PathState::Opening));
            }
            self.establish(out, i);
        }
        proven
    }

    /// The third ACK of a join holds the peer's HMAC (RFC 8684 §3.2). The host waits for one that does.
    fn proves(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) -> bool {
        let proof = self.proof(i).map(|hmac| crypto::leftmost_160(&hmac));
        let what = match join(segment) {
            Some(MpJoin::Ack { hmac }) if Some(hmac) == proof => return true,
            Some(MpJoin::Ack { .. }) => Violation::Hmac,
            _ => Violation::UnexpectedOption,
        };
        self.violation(out, i, what);
        false
    }

    /// The keys of the third ACK, or the fallback (RFC 8684 §3.1, §3.7). False: this segment decides neither.
    fn agree(&mut self, out: &mut Out<'_>, i: usize, segment: &Segment) -> bool {
        if self.mode != Mode::Opening {
            return true;
        }
        let local = self.subflows[i].key;
        // Where several paths raced, this is the host's answer that counts.
        self.outgoing.owner = local.map(Owner::new);
        if local.is_none() {
            self.mode = Mode::Plain;
            return true;
        }
        match capable(segment) {
            Some(MpCapable { sender_key: Some(theirs), receiver_key, .. }) if receiver_key == local => {
                self.incoming.owner = Some(Owner::new(theirs));
                self.mode = Mode::Multipath;
            }
            // Segments before the keys are as good as lost.
            _ if segment.options.dss().is_some() || segment.seq != self.subflows[i].receiving.isn.at(1) => {
                return false;
            }
            _ => self.fall_back(out, i),
        }
        true
    }

    /// The HMAC with which the peer authenticates a join (RFC 8684 §3.2).
    fn proof(&self, i: usize) -> Option<[u8; 32]> {
        let (local, remote) = (self.outgoing.owner?.key, self.incoming.owner?.key);
        let (ours, theirs) = self.subflows[i].offers;
        let (ours, theirs) = (ours?.nonce, theirs?.nonce);
        Some(crypto::join_hmac(remote, local, theirs, ours))
    }

    fn establish(&mut self, out: &mut Out<'_>, i: usize) {
        let s = &mut self.subflows[i];
        let (path, join) = (s.path, s.join);
        s.stage = Stage::Established;
        if !join {
            self.end_race(out, i);
            out.tell_of(path, Event::Connected(self.mode == Mode::Multipath));
        }
        out.tell_of(path, Event::Path(PathState::Established));
    }
}
