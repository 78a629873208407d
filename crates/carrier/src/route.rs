//! Where a server sends the datagrams of one path. The address moves with the client, but only with a proof, and little is sent
//! to an address that has shown nothing.

use anabranch_units::{Duration, Instant};
use std::net::SocketAddr;

/// An address that has not answered gets at most so many times the bytes that it sent (as RFC 9000 §8.1).
const AMPLIFICATION: u64 = 3;
/// A challenge is repeated after this, and given up after so many.
const CHALLENGE_TIMER: Duration = Duration::from_secs(1);
const MAX_CHALLENGES: u32 = 3;

/// A challenge's token.
pub(crate) type Token = [u8; 8];

#[derive(Clone, Copy, Debug)]
struct Trial {
    token: Token,
    tries: u32,
    at: Instant,
    received: u64,
    sent: u64,
}

/// The address of one path.
#[derive(Debug)]
pub(crate) struct Route {
    address: SocketAddr,
    /// The last address that answered a challenge.
    proven: Option<SocketAddr>,
    /// The trial of `address`, until it answers.
    trial: Option<Trial>,
}

/// The work for a route that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// A challenge is to be sent.
    Challenge(Token),
    /// No address is left.
    Lost,
}

impl Route {
    /// The first authenticated datagram of a path came from there.
    pub fn begin(now: Instant, from: SocketAddr, len: usize, token: Token) -> Self {
        let mut route = Self { address: from, proven: None, trial: None };
        route.try_address(now, from, len, token);
        route
    }

    fn try_address(&mut self, now: Instant, from: SocketAddr, len: usize, token: Token) {
        self.address = from;
        self.trial = Some(Trial { token, tries: 0, at: now, received: len as u64, sent: 0 });
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn is_proven(&self) -> bool {
        self.trial.is_none()
    }

    /// An authenticated datagram came; `is_highest`: none with a higher nonce did. True if the address is another one now.
    pub fn heard(
        &mut self,
        now: Instant,
        from: SocketAddr,
        len: usize,
        is_highest: bool,
        token: impl FnOnce() -> Token,
    ) -> bool {
        if from == self.address {
            self.trial.iter_mut().for_each(|trial| trial.received += len as u64);
            return false;
        }
        if is_highest && self.proven == Some(from) {
            (self.address, self.trial) = (from, None);
        } else if is_highest {
            self.try_address(now, from, len, token());
        }
        is_highest
    }

    /// An answer came from there.
    pub fn answered(&mut self, from: SocketAddr, token: Token) {
        if from == self.address && self.trial.is_some_and(|trial| trial.tries > 0 && trial.token == token) {
            (self.proven, self.trial) = (Some(from), None);
        }
    }

    /// Notes that `len` bytes are sent. False if that is too much for an address that has not answered.
    pub fn spend(&mut self, len: usize) -> bool {
        let Some(trial) = &mut self.trial else { return true };
        let sent = trial.sent + len as u64;
        let fits = sent <= AMPLIFICATION * trial.received;
        if fits {
            trial.sent = sent;
        }
        fits
    }

    pub fn next(&self) -> Instant {
        self.trial.map_or(Instant::MAX, |trial| trial.at)
    }

    pub fn due(&mut self, now: Instant) -> Due {
        match &mut self.trial {
            Some(trial) if trial.at <= now && trial.tries < MAX_CHALLENGES => {
                trial.tries += 1;
                trial.at = now + CHALLENGE_TIMER;
                Due::Challenge(trial.token)
            }
            Some(trial) if trial.at <= now => match self.proven {
                Some(proven) => {
                    (self.address, self.trial) = (proven, None);
                    Due::Nothing
                }
                None => Due::Lost,
            },
            _ => Due::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn proven() -> Route {
        let mut route = Route::begin(Instant::ZERO, at(1), 100, [1; 8]);
        assert_eq!(route.due(Instant::ZERO), Due::Challenge([1; 8]));
        route.answered(at(1), [1; 8]);
        assert!(route.is_proven());
        route
    }

    #[test]
    fn an_address_that_has_not_answered_gets_three_times_its_bytes() {
        let mut route = Route::begin(Instant::ZERO, at(1), 100, [1; 8]);
        assert!(route.spend(200) && route.spend(100) && !route.spend(1));
        route.heard(Instant::ZERO, at(1), 50, true, || [2; 8]);
        assert!(!route.spend(151) && route.spend(150) && !route.spend(1));
        assert!((0..100).all(|_| proven().spend(1_500)));
    }

    #[test]
    fn only_the_highest_nonce_moves_the_address() {
        let mut route = proven();
        assert!(!route.heard(Instant::ZERO, at(2), 100, false, || [2; 8]));
        assert!(route.address() == at(1) && route.is_proven());
        assert!(route.heard(Instant::ZERO, at(2), 100, true, || [2; 8]));
        assert!(route.address() == at(2) && !route.is_proven());
    }

    #[test]
    fn an_answer_counts_from_the_address_with_its_token_and_after_its_challenge() {
        let mut route = proven();
        route.heard(Instant::ZERO, at(2), 100, true, || [2; 8]);
        route.answered(at(2), [2; 8]);
        assert!(!route.is_proven(), "it was not challenged yet");
        route.due(Instant::ZERO);
        route.answered(at(2), [1; 8]);
        route.answered(at(1), [2; 8]);
        assert!(!route.is_proven());
        route.answered(at(2), [2; 8]);
        assert!(route.is_proven());
    }

    #[test]
    fn without_an_answer_the_proven_address_returns() {
        let mut route = proven();
        route.heard(Instant::ZERO, at(2), 100, true, || [2; 8]);
        for n in 0..3 {
            assert_eq!(route.due(Instant::from_millis(n * 1_000)), Due::Challenge([2; 8]));
            assert_eq!(route.due(Instant::from_millis(n * 1_000 + 999)), Due::Nothing);
        }
        assert_eq!(route.due(Instant::from_millis(3_000)), Due::Nothing);
        assert!(route.address() == at(1) && route.is_proven());
        let mut unknown = Route::begin(Instant::ZERO, at(1), 100, [1; 8]);
        assert!((0..3).all(|n| unknown.due(Instant::from_millis(n * 1_000)) == Due::Challenge([1; 8])));
        assert_eq!(unknown.due(Instant::from_millis(3_000)), Due::Lost);
    }

    #[test]
    fn a_client_that_returns_to_its_proven_address_is_not_challenged() {
        let mut route = proven();
        route.heard(Instant::ZERO, at(2), 100, true, || [2; 8]);
        assert!(route.heard(Instant::ZERO, at(1), 100, true, || [3; 8]));
        assert!(route.is_proven());
    }
}
