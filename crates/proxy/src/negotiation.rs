//! A program's negotiation, until it has named its target.

use crate::listeners::Listeners;
use crate::message::Refusal;
use crate::relay::Relay;
use crate::socks::{SocksHandshake, SocksReply, SocksResult};
use crate::target::Target;
use anabranch_units::{Duration, Instant};
use bytes::Bytes;

/// How long a program has for the negotiation.
const NEGOTIATION: Duration = Duration::from_secs(30);
/// Bytes of a program that are read at once before its target is known.
const NEGOTIATED: usize = 1_024;

/// A program without a target.
#[derive(Debug)]
pub(crate) struct Negotiation {
    pub relay: Relay,
    handshake: SocksHandshake,
    /// When it is given up.
    pub until: Instant,
}

/// A program with its target.
#[derive(Debug)]
pub(crate) struct ProgramRequest {
    pub relay: Relay,
    pub target: Target,
    /// The program's first bytes.
    pub early: Bytes,
    /// The program speaks SOCKS, and awaits a reply.
    pub socks: bool,
}

/// How far a negotiation is.
#[derive(Debug)]
pub(crate) enum NegotiationStep {
    Waits(Negotiation),
    Wants(ProgramRequest),
    /// The program gets its last bytes.
    Refused(Relay),
    Gone,
}

impl Negotiation {
    /// The negotiation with a program that must give user and password if it is `guarded`.
    pub fn new(now: Instant, relay: Relay, guarded: bool) -> Self {
        Self { relay, handshake: SocksHandshake::new(guarded), until: now + NEGOTIATION }
    }

    /// Takes what the program sent.
    pub fn step(mut self, now: Instant, listeners: &Listeners, buffer: &mut [u8]) -> NegotiationStep {
        let gone = |mut relay: Relay| {
            relay.conclude();
            NegotiationStep::Gone
        };
        if self.relay.is_over() || now >= self.until {
            return gone(self.relay);
        }
        while let Some(bytes) = self.relay.hear(&mut buffer[..NEGOTIATED]) {
            if bytes.is_empty() {
                return gone(self.relay);
            }
            let output = self.handshake.take(bytes, &|user, password| listeners.admit(user, password));
            self.relay.say(output.say);
            match output.end {
                Some(SocksResult::Connect { target, early }) => {
                    return NegotiationStep::Wants(ProgramRequest {
                        relay: self.relay,
                        target,
                        early: early.into(),
                        socks: true,
                    });
                }
                Some(SocksResult::Refused) => {
                    self.relay.conclude();
                    return NegotiationStep::Refused(self.relay);
                }
                None => {}
            }
        }
        self.relay.flush();
        NegotiationStep::Waits(self)
    }
}

impl ProgramRequest {
    /// The target is connected: a program that speaks SOCKS learns of it.
    pub fn granted(mut self) -> (Relay, Target) {
        if self.socks {
            self.relay.say(SocksReply::Succeeded.bytes().to_vec());
        }
        (self.relay, self.target)
    }

    /// Nothing came of it: a program that speaks SOCKS gets the reason, another one a reset.
    pub fn refused(mut self, why: Refusal) -> Relay {
        if self.socks {
            self.relay.say(reply(why).bytes().to_vec());
            self.relay.conclude();
            self.relay.flush();
        }
        self.relay
    }
}

fn reply(why: Refusal) -> SocksReply {
    match why {
        Refusal::NotAllowed => SocksReply::NotAllowed,
        Refusal::NetworkUnreachable => SocksReply::NetworkUnreachable,
        Refusal::NoSuchName | Refusal::HostUnreachable => SocksReply::HostUnreachable,
        Refusal::Refused => SocksReply::Refused,
        Refusal::TimedOut => SocksReply::TimedOut,
        Refusal::Unknown | Refusal::TooMany => SocksReply::Failed,
    }
}
