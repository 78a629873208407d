//! The properties that must hold during a case and at its end.

use super::{PATIENCE, SIDES, SPARE, Step, World, other};
use crate::application::Application;
use crate::class::{Bytes as Must, Class};
use crate::script::Call;
use crate::verdict::{Failure, Kind, Outcome};
use anabranch_engine::endpoint::Endpoint;
use anabranch_trace::CloseReason;

impl World<'_> {
    pub(super) fn check_memory(&self, n: usize) -> Step {
        let held = self.held[n].bytes();
        let settings = &self.case.parties[n].settings;
        // The usual case: less than one buffer.
        if held <= settings.recv_buffer + SPARE {
            return Ok(());
        }
        let connection = self.apps[n].handle.and_then(|h| self.ends[n].connection(h));
        let subflows = connection.map_or(0, |c| c.subflows().count()).max(1) as u64;
        // Out-of-order data waits within its subflow's window; data that a subflow has handed on waits within the
        // connection's, even after the subflow's end.
        if held > settings.recv_buffer * (subflows + 1) + SPARE {
            let buffer = settings.recv_buffer;
            let text = format!("{:?} holds {held} bytes on {subflows} subflows, its buffer is {buffer}", SIDES[n]);
            return self.fail(Kind::Memory, text);
        }
        Ok(())
    }

    /// Compares the bytes received by side `n` with the bytes that the other side has written.
    pub(super) fn check_bytes(&mut self, n: usize) -> Step {
        let (app, peer) = (&self.apps[n], &self.apps[other(n)]);
        let must = self.case.class.bytes();
        if must == Must::Anything {
            return Ok(());
        }
        let side = SIDES[n];
        // Plain TCP has no checksum of its own, and the reader has had the event of the fallback.
        let excused = must == Must::IntactUntilFallback && (app.fell_back || self.watch.plain[n]);
        if let Some(at) = app.changed.filter(|_| !excused) {
            return self.fail(Kind::Corrupt, format!("{side:?} got a wrong byte at {at} of {}", app.delivered));
        }
        if app.delivered > peer.written {
            let text = format!("{side:?} got {} bytes, and {} were written", app.delivered, peer.written);
            return self.fail(Kind::Surplus, text);
        }
        let whole = peer.finished && app.delivered == peer.written;
        if app.saw_end && !whole {
            let text = format!(
                "{side:?} saw the end after {} bytes; the peer has written {} of {}, finished: {}",
                app.delivered,
                peer.written,
                self.case.parties[other(n)].plan.bytes,
                peer.finished
            );
            return self.fail(Kind::FalseEnd, text);
        }
        Ok(())
    }

    /// The state of both hosts as text.
    pub(super) fn state(&self) -> String {
        let one = |n: usize| {
            let (app, end) = (&self.apps[n], &self.ends[n]);
            let connection = app.handle.and_then(|h| end.connection(h));
            let subflows = connection
                .map_or(String::new(), |c| c.subflows().map(|(id, _, state)| format!("{id}:{state:?} ")).collect());
            format!(
                "{:?}: wrote {}/{}{}, got {}{}, unacknowledged {}, {:?}, {}subflows {subflows}",
                SIDES[n],
                app.written,
                self.case.parties[n].plan.bytes,
                if app.finished { " finished" } else { "" },
                app.delivered,
                if app.saw_end { " and the end" } else { "" },
                connection.map_or(0, |c| c.unacknowledged()),
                app.closed.or(self.watch.ended[n]),
                match (self.watch.fell_back[n], self.watch.plain[n]) {
                    (Some(at), _) => format!("fell back at {at}, "),
                    (_, true) => "plain, ".into(),
                    _ => String::new(),
                },
            )
        };
        format!("{}; {}", one(0), one(1))
    }

    pub(super) fn is_over(&self) -> bool {
        self.apps.iter().all(|app| app.handle.is_none() || app.closed.is_some())
    }

    pub(super) fn judge(&mut self) -> Result<Outcome, Failure> {
        if !self.ends.iter().all(Endpoint::is_empty) && self.next().is_none() {
            let left = self.ends.iter().map(Endpoint::len).collect::<Vec<_>>();
            return self.fail(Kind::Leak, format!("connections left: {left:?}; {}", self.state()));
        }
        if self.case.class.bytes() != Must::Anything {
            self.judge_ends()?;
        }
        Ok(Outcome {
            packets: self.packets,
            delivered: [0, 1].map(|n| self.apps[n].delivered),
            ended: [0, 1].map(|n| self.apps[n].closed),
            fell_back: self.watch.fell_back.map(|at| at.is_some()),
            over: self.now,
            half_open: self.half_open,
        })
    }

    fn judge_ends(&self) -> Step {
        for (n, side) in SIDES.into_iter().enumerate() {
            let (app, peer) = (&self.apps[n], &self.apps[other(n)]);
            if app.closed == Some(CloseReason::Finished) && peer.delivered < app.written && !peer.aborted {
                let text = format!("{side:?} got Finished, and {}", self.state());
                return self.fail(Kind::SilentLoss, text);
            }
            // RFC 8684 §3.7: after a fall back that the peer does not know of, its acknowledgments are those of TCP, and an error is the
            // only report.
            let mapped = self.watch.fell_back[n].is_none();
            let lost = self.acknowledged[n].saturating_sub(peer.delivered);
            if lost > 0 && mapped && peer.closed.is_some() && !peer.aborted {
                let text = format!("{lost} bytes of {side:?} were acknowledged and never delivered; {}", self.state());
                return self.fail(Kind::SilentLoss, text);
            }
        }
        if let Some(n) = (0..2).find(|n| !self.is_told(*n)) {
            return self.fail(Kind::Unwoken, format!("{:?} got no event of the fallback; {}", SIDES[n], self.state()));
        }
        let all = (0..2).all(|n| self.apps[n].delivered == self.apps[other(n)].written && self.apps[n].finished);
        let in_order = self.apps.iter().all(|app| app.closed == Some(CloseReason::Finished));
        if self.case.must_complete() && !(all && in_order) && !self.is_excused(all) {
            return self.fail(Kind::Error, self.state());
        }
        if self.case.class == Class::Race && self.accepted > 1 {
            return self.fail(Kind::Surplus, format!("{} connections were accepted; {}", self.accepted, self.state()));
        }
        let wanted = (1u32 << self.case.paths.len()) - 1;
        let multipath = !self.watch.plain[0] && self.watch.fell_back[0].is_none();
        let had_time = self.confirmed.is_some_and(|since| self.now.since(since) > PATIENCE);
        if self.case.class == Class::Floods && multipath && had_time && self.watch.paths[0] & wanted != wanted {
            return self.fail(Kind::ShutOut, format!("paths established: {:#b} of {wanted:#b}", self.watch.paths[0]));
        }
        Ok(())
    }

    /// The application has had the event of the fallback.
    fn is_told(&self, n: usize) -> bool {
        let app = &self.apps[n];
        self.watch.fell_back[n].is_none() || !app.established || app.fell_back || self.watch.plain[n]
    }

    /// An event explains why not everything arrived, or (`all` has arrived) why an end reports an error.
    fn is_excused(&self, all: bool) -> bool {
        let calls = || self.case.script.iter().map(|act| &act.call);
        let lone = self.watch.plain[0] || self.watch.fell_back.iter().any(Option::is_some);
        // A host that only listens behind a rebound translator is unreachable on that path.
        let rebound = (lone || self.confirmed.is_none() || self.case.paths.len() == 1)
            && self.case.paths.iter().any(|p| p.nat.as_ref().is_some_and(|nat| nat.rebind.is_some()));
        // A plain or unconfirmed connection has no other path.
        let cut_off = self.case.class == Class::Mtu && (lone || self.confirmed.is_none());
        // RFC 9293 §3.8.3: a handshake is given up after the last permitted retry.
        let gave_up = |app: &Application| !app.established && app.closed == Some(CloseReason::TimedOut);
        // A server that accepts complete handshakes alone reports none that it gave up.
        let unheard = self.apps.iter().any(gave_up) || self.case.class == Class::Race && self.apps[1].handle.is_none();
        // A reset is sent once: if it is lost, a peer with nothing to send does not notice. RFC 9293 §3.6: an end that
        // has everything may be gone while the other's last segment is lost again and again.
        all || rebound
            || cut_off
            || unheard
            || self.reset_early
            || calls().any(Call::may_end_it)
            || (lone || self.half_open || self.reset_lost) && calls().any(Call::ends_a_lone_path)
    }
}
