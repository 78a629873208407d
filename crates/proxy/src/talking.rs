//! A program's negotiation, until it has named its target.

use crate::joint::Joint;
use crate::listeners::Listeners;
use crate::message::Refusal;
use crate::socks::{Dialogue, End, Reply};
use crate::target::Target;
use anabranch_units::{Duration, Instant};
use bytes::Bytes;

/// How long a program has for the negotiation.
const NEGOTIATION: Duration = Duration::from_secs(30);
/// Bytes of a program that are read at once before its target is known.
const NEGOTIATED: usize = 1_024;

/// A program without a target.
#[derive(Debug)]
pub(crate) struct Talk {
    pub joint: Joint,
    dialogue: Dialogue,
    /// When it is given up.
    pub until: Instant,
}

/// A program with its target.
#[derive(Debug)]
pub(crate) struct Wish {
    pub joint: Joint,
    pub target: Target,
    /// The program's first bytes.
    pub early: Bytes,
    /// The program speaks SOCKS, and awaits a reply.
    pub socks: bool,
}

/// How far a negotiation is.
#[derive(Debug)]
pub(crate) enum Talked {
    Waits(Talk),
    Wants(Wish),
    /// The program gets its last bytes.
    Refused(Joint),
    Gone,
}

impl Talk {
    /// The negotiation with a program that must give user and password if it is `guarded`.
    pub fn new(now: Instant, joint: Joint, guarded: bool) -> Self {
        Self { joint, dialogue: Dialogue::new(guarded), until: now + NEGOTIATION }
    }

    /// Takes what the program sent.
    pub fn step(mut self, now: Instant, listeners: &Listeners, buffer: &mut [u8]) -> Talked {
        let gone = |mut joint: Joint| {
            joint.conclude();
            Talked::Gone
        };
        if self.joint.is_over() || now >= self.until {
            return gone(self.joint);
        }
        while let Some(bytes) = self.joint.hear(&mut buffer[..NEGOTIATED]) {
            if bytes.is_empty() {
                return gone(self.joint);
            }
            let outcome = self.dialogue.take(bytes, &|user, password| listeners.admit(user, password));
            self.joint.say(outcome.say);
            match outcome.end {
                Some(End::Connect { target, early }) => {
                    return Talked::Wants(Wish { joint: self.joint, target, early: early.into(), socks: true });
                }
                Some(End::Refused) => {
                    self.joint.conclude();
                    return Talked::Refused(self.joint);
                }
                None => {}
            }
        }
        self.joint.flush();
        Talked::Waits(self)
    }
}

impl Wish {
    /// The target is connected: a program that speaks SOCKS learns of it.
    pub fn granted(mut self) -> (Joint, Target) {
        if self.socks {
            self.joint.say(Reply::Succeeded.bytes().to_vec());
        }
        (self.joint, self.target)
    }

    /// Nothing came of it: a program that speaks SOCKS gets the reason, another one a reset.
    pub fn refused(mut self, why: Refusal) -> Joint {
        if self.socks {
            self.joint.say(reply(why).bytes().to_vec());
            self.joint.conclude();
            self.joint.flush();
        }
        self.joint
    }
}

fn reply(why: Refusal) -> Reply {
    match why {
        Refusal::NotAllowed => Reply::NotAllowed,
        Refusal::NetworkUnreachable => Reply::NetworkUnreachable,
        Refusal::NoSuchName | Refusal::HostUnreachable => Reply::HostUnreachable,
        Refusal::Refused => Reply::Refused,
        Refusal::TimedOut => Reply::TimedOut,
        Refusal::Unknown | Refusal::TooMany => Reply::Failed,
    }
}
