//! The fall back to plain TCP as both ends come to know of it: by MP_FAIL, by an infinite mapping, or because options do not
//! come (RFC 8684 §3.7).

use super::Session;
use crate::cx::Scope;
use crate::deadlines::NEVER;
use crate::mode::Offset;
use crate::subflow::mapping::{Doubt, subflow_offset};
use crate::subflow::{Answers, Subflow, Subflows};
use anabranch_units::{DataSeq, Duration, Instant};
use anabranch_wire::{MptcpOption, Segment};

/// The state of MP_FAIL after a checksum failed on the only subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    None,
    /// We could not verify data, and the peer has not reacted yet.
    Said(Saying),
    /// The peer has answered, and has not sent data with an infinite mapping yet.
    Answered,
    /// The peer could not, and repeats MP_FAIL with this number until our answer arrives.
    Heard(u64),
}

/// MP_FAIL goes out with every acknowledgment until the peer reacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Saying {
    /// Where the data begins that failed, as the wire has it.
    pub data_seq: u64,
    /// When a segment is sent only to repeat it, and how long after the last time.
    again: Instant,
    wait: Duration,
    /// When the peer is given up.
    until: Instant,
}

/// The infinite mapping (RFC 8684 §3.7). The first new data after a fall back carries it, and so do retransmissions of older
/// data: the peer may not know of the fall back yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Infinite {
    /// Where the first new data begins in the subflow's sequence.
    pub upto: u64,
    /// Where the last data begins that is known to have come intact.
    pub intact: u64,
    /// Checksums were agreed on: its own is 0 (§3.3.1).
    pub checksum: bool,
}

/// Where data belongs that a peer maps although the connection is plain TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MappedTo {
    /// In the subflow's sequence, as all data is then.
    Sequence,
    /// Before what came in order: it is there already.
    Repeat,
    /// Somewhere else: the streams would part.
    Elsewhere,
}

/// MP_FAIL in a segment: the data sequence number that it names.
fn fail_in(segment: &Segment) -> Option<u64> {
    segment.options.mptcp().iter().find_map(|option| match option {
        MptcpOption::Fail { data_seq } => Some(*data_seq),
        _ => None,
    })
}

impl Session {
    /// RFC 8684 §3.7: `ack` acknowledges data on `s`, where none was acknowledged with a DATA_ACK before, and the `segment` has none:
    /// options of the peer's do not come. The first such acknowledgment may be one that leaves it out because it does not advance
    /// (§3.3.2); the second is a sign.
    #[inline(always)]
    pub fn is_unanswered(&self, s: &mut Subflow, segment: &Segment, ack: u64) -> bool {
        s.answers != Answers::Mapped && self.lacks_data_ack(s, segment, ack)
    }

    #[cold]
    #[inline(never)]
    fn lacks_data_ack(&self, s: &mut Subflow, segment: &Segment, ack: u64) -> bool {
        if self.is_plain() {
            s.answered(Answers::Mapped);
        }
        if ack <= s.sender().una() || s.fin.offset.is_some_and(|fin| fin <= 1) {
            return false;
        }
        let before = s.answers;
        if segment.options.dss().is_some_and(|dss| dss.ack.is_some()) {
            s.answered(Answers::Mapped);
        } else if segment.options.dss().is_none() && segment.options.mptcp().is_empty() {
            // With another option: an ADD_ADDR may leave no room for a DSS.
            s.answered(Answers::Bare);
        }
        before == Answers::Bare && s.answers == Answers::Bare
    }

    /// From here on plain TCP is spoken on a subflow whose new data begins at `upto`; `intact`: where the last data begins
    /// that is known to have come intact.
    pub fn fall_back(&mut self, upto: u64, intact: u64) {
        let infinite = Infinite { upto, intact, checksum: self.checksum };
        self.infinite = Some(infinite).filter(|infinite| infinite.upto > 1);
        self.checksum = false;
    }

    /// The connection fell back for `doubt` on `s`, where the peer's stream stands at `next`: MP_FAIL informs the peer that its data
    /// could not be verified, and answers that ours could not.
    pub fn on_fallen_back(&mut self, cx: &Scope<'_>, s: &mut Subflow, doubt: Doubt, next: u64) {
        match doubt {
            Doubt::Corrupt(start) => {
                s.acks.demand();
                let (data_seq, wait) = (self.peer_stream().number(start).0, s.sender().rtt().rto());
                // As long as Linux waits for an answer (TCP_RTO_MAX).
                let until = cx.now + cx.settings().tcp.rto_max;
                self.failure = Failure::Said(Saying { data_seq, again: cx.now + wait, wait, until });
            }
            Doubt::Failed(data_seq) => {
                self.failure = Failure::Heard(data_seq);
                s.signal_failure(self.peer_stream().number(next).0);
            }
            Doubt::Unmapped { .. } | Doubt::Unanswered(_) | Doubt::Infinite(_) => {}
        }
    }

    /// The peer has not reacted to our MP_FAIL yet: it may not know that this is plain TCP.
    pub fn awaits_reaction(&self) -> bool {
        matches!(self.failure, Failure::Said(_))
    }

    /// When MP_FAIL is said again, or the peer given up.
    pub fn failure_deadline(&self) -> Instant {
        match &self.failure {
            Failure::Said(saying) => saying.again.min(saying.until),
            _ => NEVER,
        }
    }

    /// MP_FAIL is said again if it was not answered in time. False if the peer is given up.
    pub fn repeat_failure(&mut self, now: Instant, subflows: &mut Subflows) -> bool {
        if now < self.failure_deadline() {
            return true;
        }
        let Failure::Said(saying) = &mut self.failure else { return true };
        if saying.until <= now {
            return false;
        }
        saying.wait = saying.wait * 2;
        saying.again = now + saying.wait;
        subflows.iter_mut().for_each(|s| s.acks.demand());
        true
    }

    /// After a checksum failed, the peer reacts by its own MP_FAIL, an infinite mapping or plain data. Until one of the
    /// latter it maps what it sends, and waits for DATA_ACKs as before. True if our answer was lost, and is to be said again.
    fn on_reaction(&mut self, segment: &Segment) -> bool {
        if self.failure == Failure::None {
            return false;
        }
        let fails = fail_in(segment);
        let infinite = segment.options.dss().is_none_or(|dss| dss.mapping.is_some_and(|m| m.len == 0));
        match self.failure {
            Failure::Said(_) | Failure::Answered if infinite && !segment.payload.is_empty() => {
                self.failure = Failure::None;
            }
            Failure::Said(_) if fails.is_some() => self.failure = Failure::Answered,
            // MP_FAIL with another number is an answer itself: two ends that both received MP_FAIL, from each other or from a
            // forger, would answer each other for ever.
            Failure::Heard(said) => return fails == Some(said),
            Failure::None | Failure::Said(_) | Failure::Answered => {}
        }
        false
    }

    /// Takes a segment at `seq` of `s` after the fall back: see [`Self::mapped_to`].
    pub fn on_plain_segment(
        &mut self,
        now: Instant,
        s: &mut Subflow,
        segment: &Segment,
        seq: u64,
        next: u64,
        place: Offset,
    ) -> MappedTo {
        let mapped_to = self.mapped_to(s, segment, seq, next, place);
        if mapped_to == MappedTo::Sequence && self.on_reaction(segment) && s.may_answer(now) {
            s.signal_failure(self.peer_stream().number(next).0);
        }
        mapped_to
    }

    /// After the fall back: where the mapping of a segment at `seq` of `s` puts its data, if the peer still sends mappings. The
    /// subflow's sequence became the data sequence at `place`; `next` is the next offset of the peer's stream.
    pub fn mapped_to(&self, s: &Subflow, segment: &Segment, seq: u64, next: u64, place: Offset) -> MappedTo {
        let knows_numbers = self.keys.remote != 0 || self.keys.remote_idsn != DataSeq::default();
        let mapping = segment.options.dss().and_then(|dss| dss.mapping);
        let Some(mapping) = mapping.filter(|m| knows_numbers && m.subflow_seq > 0) else {
            return MappedTo::Sequence;
        };
        let known =
            subflow_offset(mapping.subflow_seq, s.receiver.next()).zip(self.peer_stream().offset(&mapping, next));
        let Some((sub, data)) = known.filter(|(sub, _)| *sub >= place.sub) else {
            return MappedTo::Sequence;
        };
        if self.peer_stream().is_in_line(&mapping, s.receiver.next(), next, place) {
            return MappedTo::Sequence;
        }
        let end = data + seq.saturating_sub(sub) + segment.payload.len() as u64;
        if mapping.len > 0 && end <= next { MappedTo::Repeat } else { MappedTo::Elsewhere }
    }
}
