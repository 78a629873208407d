//! The handshake of one subflow, as seen at one place.

use anabranch_units::{Duration, Instant, Side};
use anabranch_wire::{Flags, MpCapable, MpJoin, MptcpOption, Reason, Segment};
use serde::Serialize;

/// The MPTCP option of a handshake's segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Offer {
    /// None.
    #[default]
    Plain,
    /// MP_CAPABLE of this version.
    Capable(u8),
    /// MP_JOIN; on a SYN with the token of the receiver.
    Join(Option<u32>),
}

impl Offer {
    /// The offer of a segment.
    pub fn of(segment: &Segment) -> Self {
        let offer = |option: &MptcpOption| match option {
            MptcpOption::Capable(MpCapable { version, .. }) => Some(Self::Capable(*version)),
            MptcpOption::Join(MpJoin::Syn { token, .. }) => Some(Self::Join(Some(*token))),
            MptcpOption::Join(_) => Some(Self::Join(None)),
            _ => None,
        };
        segment.options.mptcp().iter().find_map(offer).unwrap_or_default()
    }

    /// MP_JOIN.
    pub fn is_join(self) -> bool {
        matches!(self, Self::Join(_))
    }
}

/// A segment of the handshake: when it came first and last, how often, with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub first: Instant,
    pub last: Instant,
    pub count: u64,
    /// Offers of the first and the last.
    pub offers: (Offer, Offer),
}

impl Step {
    fn add(step: &mut Option<Self>, now: Instant, offer: Offer) {
        let known = step.get_or_insert(Self { first: now, last: now, count: 0, offers: (offer, offer) });
        (known.last, known.count, known.offers.1) = (now, known.count + 1, offer);
    }
}

/// A reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reset {
    pub at: Instant,
    pub by: Side,
    pub reason: Option<Reason>,
}

/// SYN, SYN/ACK, third ACK, and what ended the attempt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    pub syn: Option<Step>,
    pub answer: Option<Step>,
    pub third: Option<Step>,
    pub reset: Option<Reset>,
    /// The client's join requests backup use.
    pub backup: bool,
    /// The peer answered the third ACK: it has accepted a join (RFC 8684 §3.2), or sent data.
    pub accepted: bool,
}

/// The end of a subflow, or its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Open when the capture ended.
    Open,
    /// Closed by both ends in order.
    Closed,
    /// Reset after it had been open.
    Reset,
    /// No answer to its SYN was seen.
    NoAnswer,
    /// The SYN was refused.
    Refused,
    /// A join's answer had no MP_JOIN.
    Stripped,
    /// A join's handshake was not completed.
    Incomplete,
    /// The beginning was not captured.
    Unknown,
}

impl Opening {
    /// Takes a segment of `from`.
    pub fn take(&mut self, now: Instant, from: Side, segment: &Segment) {
        let flags = segment.flags;
        let offer = Offer::of(segment);
        match (from, flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            _ if flags.has(Flags::RST) => {
                let reason = segment.options.mptcp().iter().find_map(|option| match option {
                    MptcpOption::TcpRst(reason) => Some(*reason),
                    _ => None,
                });
                self.reset.get_or_insert(Reset { at: now, by: from, reason });
            }
            (Side::Client, true, false) => {
                Step::add(&mut self.syn, now, offer);
                self.backup |= segment
                    .options
                    .mptcp()
                    .iter()
                    .any(|option| matches!(option, MptcpOption::Join(MpJoin::Syn { backup: true, .. })));
            }
            (Side::Server, true, true) => Step::add(&mut self.answer, now, offer),
            (Side::Client, false, true) if self.answer.is_some() && !self.accepted => {
                Step::add(&mut self.third, now, offer);
            }
            (Side::Server, false, true) => self.accepted |= self.third.is_some(),
            _ => {}
        }
    }

    /// The two parts of the first round trip: from the SYN to its answer, and on to the answer's acknowledgment. None after a
    /// retransmission, which leaves open what was answered.
    pub fn round(&self) -> Option<(Duration, Duration)> {
        let (syn, answer, third) = (self.syn?, self.answer?, self.third?);
        let clear = syn.count == 1 && answer.count == 1;
        clear.then(|| (answer.first.since(syn.first), third.first.since(answer.first)))
    }

    /// The SYN was a join.
    pub fn is_join(&self) -> bool {
        self.syn.is_some_and(|syn| syn.offers.0.is_join())
    }

    /// The end of the subflow, or its state; `closed`: both FINs were acknowledged.
    pub fn fate(&self, closed: bool) -> Fate {
        let Some(syn) = self.syn else {
            return match (self.answer, self.reset) {
                _ if closed => Fate::Closed,
                (_, Some(_)) => Fate::Reset,
                (Some(_), None) => Fate::Open,
                (None, None) => Fate::Unknown,
            };
        };
        let join = syn.offers.0.is_join();
        match (self.answer, self.third) {
            (None, _) if self.reset.is_some() => Fate::Refused,
            (None, _) => Fate::NoAnswer,
            (Some(answer), _) if join && !answer.offers.1.is_join() => Fate::Stripped,
            (Some(_), None) if self.reset.is_some() => Fate::Refused,
            (Some(_), None) => Fate::Incomplete,
            (Some(_), Some(third)) if join && !third.offers.0.is_join() && !self.accepted => Fate::Stripped,
            (Some(_), Some(_)) if join && !self.accepted && self.reset.is_some() => Fate::Refused,
            (Some(_), Some(_)) if join && !self.accepted => Fate::Incomplete,
            _ if closed => Fate::Closed,
            _ if self.reset.is_some() => Fate::Reset,
            _ => Fate::Open,
        }
    }
}
