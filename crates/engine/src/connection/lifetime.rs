//! How far a connection is from its end.

use crate::deadlines::NEVER;
use crate::receiving::Receiving;
use crate::sending::Sending;
use crate::session::Session;
use crate::settings::Settings;
use crate::subflow::{State, Subflow, Subflows};
use anabranch_trace::CloseReason;
use anabranch_units::{Duration, Instant};

/// How far a connection is from its end.
#[derive(Debug, Default)]
pub(super) struct Lifetime {
    /// The connection has ended; subflows may be left.
    pub closed: bool,
    /// Without any subflow since.
    pub orphaned: Option<Instant>,
    /// The peer closes subflows because both streams have ended, since.
    pub closing: Option<Instant>,
    /// A subflow that came into use was lost.
    opened: bool,
    /// Subflows that came into use and were lost, and how far the streams had come with the last of them.
    losses: u32,
    streams: u64,
}

impl Lifetime {
    /// Subflows that came into use and were lost since either stream last moved: both together stand at `streams`.
    fn losses(&mut self, streams: u64) -> u32 {
        if streams != self.streams {
            (self.streams, self.losses) = (streams, 0);
        }
        self.losses
    }

    /// A subflow that came into use is gone; `dead`: it was not closed in order. True if the streams have moved since one was
    /// lost before.
    pub fn lose(&mut self, streams: u64, dead: bool) -> bool {
        let moved = self.losses(streams) == 0;
        self.opened = true;
        self.losses += u32::from(dead);
        moved
    }

    /// Both streams have ended: the `subflows` are closed. Once the peer has closed one, each of the others may be silent only so long.
    pub fn close(&mut self, now: Instant, subflows: &mut Subflows) {
        subflows.close();
        let closed = |s: &Subflow| s.state.is_synchronized() && !s.state.may_receive();
        if self.closing.is_none() && subflows.iter().any(closed) {
            self.closing = Some(now);
            let waits = |s: &Subflow| !matches!(s.state, State::TimeWait | State::FinWait2);
            subflows.those_mut(waits).for_each(|s| s.wait_until(now));
        }
    }

    /// When a connection without subflows is given up, if it waits `patience` for one.
    #[inline(always)]
    pub fn deadline(&self, patience: Duration) -> Instant {
        if self.orphaned.is_none() { NEVER } else { self.orphan_deadline(patience) }
    }

    /// The same of one that waits: apart, because nearly none does.
    #[cold]
    fn orphan_deadline(&self, patience: Duration) -> Instant {
        let orphaned = self.orphaned.filter(|_| !self.closed);
        orphaned.map_or(NEVER, |since| since + patience)
    }

    /// The state of a connection that has not ended, judged by its streams and subflows at `now`.
    pub fn verdict(&mut self, facts: &Facts, settings: &Settings, now: Instant) -> Verdict {
        if facts.sent_all && facts.received_all && facts.subflows_over {
            return Verdict::Ended(CloseReason::Finished);
        }
        // RFC 9293 §3.8.3, R2: subflow after subflow, and none delivers what waits.
        if facts.waits && self.losses(facts.streams) > settings.tcp.retries {
            return Verdict::InVain;
        }
        if facts.hears {
            self.orphaned = None;
        } else if facts.multipath {
            // A subflow that still sends is bounded by its own timers.
            if facts.sends || self.orphaned.is_none() {
                self.orphaned = Some(now);
            } else if self.deadline(settings.orphan_timeout) <= now {
                // RFC 8684 §3.3.3: closed with FINs and without a DATA_FIN, it is over after a timeout.
                return Verdict::Ended(CloseReason::TimedOut);
            }
        } else if facts.alone {
            // RFC 9293 §3.10.5: who resets the only subflow of plain TCP aborts the connection.
            return if self.opened { Verdict::Ended(CloseReason::Aborted) } else { Verdict::NeverOpened };
        }
        Verdict::GoesOn
    }
}

/// Facts about a connection that may have come to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub multipath: bool,
    /// The peer has acknowledged our stream, its end included; the peer's has come, its end included.
    pub sent_all: bool,
    pub received_all: bool,
    /// No subflow is anything but closed, in TIME-WAIT or about to be reset.
    pub subflows_over: bool,
    /// Some subflow may still bring something of the peer's.
    pub hears: bool,
    /// Some subflow may still carry what is not delivered.
    pub sends: bool,
    /// There is no subflow that has something left to say.
    pub alone: bool,
    /// Something of ours is not acknowledged.
    pub waits: bool,
    /// See [`streams`].
    pub streams: u64,
}

/// How far both streams have come, together.
pub(super) fn streams(sending: &Sending, receiving: &Receiving) -> u64 {
    sending.view().data_acked() + receiving.next()
}

/// Closed in order: the peer has acknowledged our FIN, and its own has come. In plain TCP that is the end of both streams (RFC 9293
/// §3.6). A peer that does not know of a fall back acknowledges our FIN, too, and waits for mappings (RFC 8684 §3.7): then its own
/// does not come.
fn has_closed(s: &Subflow) -> bool {
    s.receiver.is_finished() && s.fin.offset.is_some_and(|fin| s.sender().una() > fin)
}

impl Facts {
    /// As the parts have them now: ask before closed subflows go, which show that they closed in order.
    pub fn of(session: &Session, sending: &Sending, receiving: &Receiving, subflows: &[Subflow]) -> Self {
        debug_assert_eq!(
            [sending.is_plain(), receiving.is_plain()],
            [session.is_plain(); 2],
            "a part has another protocol"
        );
        let received_all = receiving.is_finished();
        let (finished, delivered) = (sending.stream.is_finished(), sending.all_delivered());
        let fin_acked = sending.stream.data_fin.is_acked();
        let closed = subflows.iter().any(has_closed);
        // Events are polled before segments: the end is reported before the last reset leaves.
        let over = |s: &Subflow| matches!(s.state, State::TimeWait | State::Closed) || s.reset.is_some();
        // Attempts to join do not count: they might last forever.
        let open = |s: &Subflow| s.state.is_synchronized() && !s.is_unproven();
        Self {
            multipath: session.is_multipath(),
            sent_all: if session.is_plain() { closed && finished && delivered } else { fin_acked },
            received_all,
            subflows_over: subflows.iter().all(over),
            hears: subflows.iter().any(|s| open(s) && (s.state.may_receive() || received_all)),
            sends: !delivered && subflows.iter().any(|s| s.may_carry() && open(s)),
            alone: subflows.iter().all(Subflow::is_gone),
            waits: !(delivered && (fin_acked || !finished)),
            streams: streams(sending, receiving),
        }
    }
}

/// The verdict on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    GoesOn,
    Ended(CloseReason),
    /// The connection's data was not delivered on any of too many subflows.
    InVain,
    /// The first subflows of the connection have failed.
    NeverOpened,
}
