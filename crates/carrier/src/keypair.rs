//! The transport keys of one handshake: one stream of nonces and one replay window per path.

use crate::MAX_PATHS;
use crate::format::{HEADER, OVERHEAD, data_header};
use crate::noise::TAG;
use crate::replay::Window;
use anabranch_units::{Duration, Instant, PathId};
use snow::StatelessTransportState;

/// The upper four bits of a nonce are the path, the others count its datagrams.
const COUNTER_BITS: u32 = 60;
/// Datagrams of one path after which a client makes a new handshake, and those after which these keys send no more.
const RENEW_AFTER: u64 = (1 << COUNTER_BITS) - (1 << 32);
const LAST: u64 = (1 << COUNTER_BITS) - (1 << 16);
/// Age at which a client makes a new handshake.
pub(crate) const RENEW_AGE: Duration = Duration::from_secs(120);
/// Age from which nothing is sent or accepted.
pub(crate) const LAST_AGE: Duration = Duration::from_secs(180);

/// Why a datagram was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    Forged,
    Replayed,
}

/// Where a datagram belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub path: PathId,
    /// No datagram with a higher nonce came on its path.
    pub is_highest: bool,
}

#[derive(Debug)]
pub(crate) struct Keypair {
    transport: StatelessTransportState,
    /// The index by which the peer calls these keys, and ours for the peer's.
    pub local: u32,
    remote: u32,
    pub born: Instant,
    sent: [u64; MAX_PATHS],
    /// Replay windows of the paths on which something came.
    windows: [Option<Box<Window>>; MAX_PATHS],
}

impl Keypair {
    pub fn new(transport: StatelessTransportState, local: u32, remote: u32, born: Instant) -> Self {
        let (sent, windows) = ([0; MAX_PATHS], [const { None }; MAX_PATHS]);
        Self { transport, local, remote, born, sent, windows }
    }

    /// Too old to send or accept anything.
    pub fn is_over(&self, now: Instant) -> bool {
        now.since(self.born) >= LAST_AGE
    }

    /// When a client makes another handshake.
    pub fn renewal(&self) -> Instant {
        if self.sent.iter().any(|sent| *sent >= RENEW_AFTER) { self.born } else { self.born + RENEW_AGE }
    }

    /// Makes a datagram of `plain` in `datagram`. False if these keys may send no more on `path`.
    pub fn seal(&mut self, path: PathId, plain: &[u8], datagram: &mut Vec<u8>) -> bool {
        let Some(counter) = self.sent.get_mut(path.index()).filter(|counter| **counter < LAST) else { return false };
        let nonce = u64::from(path.0) << COUNTER_BITS | *counter;
        datagram.resize(plain.len() + OVERHEAD, 0);
        datagram[..HEADER].copy_from_slice(&data_header(self.remote, nonce));
        *counter += 1;
        self.transport.write_message(nonce, plain, &mut datagram[HEADER..]).is_ok()
    }

    /// Opens a datagram's ciphertext into `plain`, whose old content is lost.
    pub fn open(&mut self, nonce: u64, sealed: &[u8], plain: &mut Vec<u8>) -> Result<Opened, Unopened> {
        let (path, counter) = ((nonce >> COUNTER_BITS) as u8, nonce & ((1 << COUNTER_BITS) - 1));
        let window = &mut self.windows[usize::from(path)];
        if window.as_ref().is_some_and(|window| !window.is_new(counter)) {
            return Err(Unopened::Replayed);
        }
        let len = sealed.len().checked_sub(TAG).filter(|_| counter < LAST).ok_or(Unopened::Forged)?;
        // With room for the tag it is opened in place.
        plain.resize(sealed.len(), 0);
        if self.transport.read_message(nonce, sealed, plain).is_err() {
            plain.clear();
            return Err(Unopened::Forged);
        }
        plain.truncate(len);
        let is_highest = window.get_or_insert_with(|| Box::new(Window::new())).note(counter);
        Ok(Opened { path: PathId(path), is_highest })
    }
}

/// Which of a session's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Replaced; what is still on its way is accepted.
    Previous,
    /// In use.
    Current,
    /// A server's that no datagram of the client has confirmed.
    Next,
}

/// The keys of a session: old ones stay until new ones are confirmed.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    previous: Option<Keypair>,
    pub current: Option<Keypair>,
    next: Option<Keypair>,
}

impl Keys {
    fn slot(&mut self, slot: Slot) -> &mut Option<Keypair> {
        match slot {
            Slot::Previous => &mut self.previous,
            Slot::Current => &mut self.current,
            Slot::Next => &mut self.next,
        }
    }

    /// The keys that the peer means with `index`.
    pub fn find(&mut self, index: u32) -> Option<(Slot, &mut Keypair)> {
        let slots = [Slot::Current, Slot::Previous, Slot::Next];
        let slot = slots.into_iter().find(|slot| self.slot(*slot).as_ref().is_some_and(|keys| keys.local == index))?;
        self.slot(slot).as_mut().map(|keys| (slot, keys))
    }

    /// The keys in use, unless they are over.
    pub fn in_use(&mut self, now: Instant) -> Option<&mut Keypair> {
        self.current.as_mut().filter(|keys| !keys.is_over(now))
    }

    /// Keys that wait to be confirmed. Returns the index of those that waited before.
    pub fn propose(&mut self, keys: Keypair) -> Option<u32> {
        self.next.replace(keys).map(|keys| keys.local)
    }

    /// Those that waited are in use. Returns the index of those that are forgotten for it.
    pub fn confirm(&mut self) -> Option<u32> {
        let keys = self.next.take()?;
        self.adopt(keys)
    }

    /// These are in use. Returns the index of those that are forgotten for it.
    pub fn adopt(&mut self, keys: Keypair) -> Option<u32> {
        let replaced = self.current.replace(keys);
        core::mem::replace(&mut self.previous, replaced).map(|keys| keys.local)
    }

    /// Forgets the keys that are over, and calls `gone` with their indices.
    pub fn expire(&mut self, now: Instant, mut gone: impl FnMut(u32)) {
        for slot in [Slot::Previous, Slot::Current, Slot::Next] {
            if let Some(keys) = self.slot(slot).take_if(|keys| keys.is_over(now)) {
                gone(keys.local);
            }
        }
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.previous.is_none() && self.current.is_none() && self.next.is_none()
    }

    /// When the first of them is over.
    pub fn next_expiry(&self) -> Instant {
        let all = [&self.previous, &self.current, &self.next].into_iter().flatten();
        all.map(|keys| keys.born + LAST_AGE).min().unwrap_or(Instant::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Initiator, Payload, Responder, SESSION};
    use crate::time::Timestamp;
    use crate::{Secret, StaticKey};

    /// The keys of both ends of a handshake.
    fn pair() -> [Keypair; 2] {
        let (client, server) = (StaticKey::new(Secret::new([1; 32])), StaticKey::new(Secret::new([2; 32])));
        let (preshared, work) = (Secret::new([3; 32]), Default::default());
        let payload = Payload { timestamp: Timestamp::default(), session: [4; SESSION] };
        let (mut initiator, first) =
            Initiator::begin(&client, &server.public(), &preshared, [5; 32], payload, &work).unwrap();
        let (second, at_server) = Responder::read(&server, [6; 32], &first, &work).unwrap().reply(&preshared).unwrap();
        initiator.finish(&second).unwrap();
        let at_client = initiator.transport().unwrap();
        [Keypair::new(at_client, 7, 8, Instant::ZERO), Keypair::new(at_server, 8, 7, Instant::ZERO)]
    }

    /// Sends one and opens it.
    fn carry([from, to]: &mut [Keypair; 2], path: PathId) -> Option<Result<Opened, Unopened>> {
        let (mut datagram, mut plain) = (Vec::new(), Vec::new());
        from.seal(path, b"content", &mut datagram).then(|| {
            let nonce = u64::from_le_bytes(datagram[8..16].try_into().unwrap());
            let opened = to.open(nonce, &datagram[HEADER..], &mut plain);
            assert!(opened.is_err() || plain == b"content");
            opened
        })
    }

    #[test]
    fn keys_are_renewed_before_a_path_has_no_nonce_left_and_none_is_used_twice() {
        let (mut pair, few, many) = (pair(), PathId(0), PathId(15));
        let opened = |path| Some(Ok(Opened { path, is_highest: true }));
        pair[0].sent[many.index()] = RENEW_AFTER - 1;
        assert_eq!(pair[0].renewal(), Instant::ZERO + RENEW_AGE);
        assert_eq!(carry(&mut pair, many), opened(many));
        assert_eq!(pair[0].renewal(), Instant::ZERO, "a new handshake is due");
        pair[0].sent[many.index()] = LAST - 1;
        assert_eq!(carry(&mut pair, many), opened(many), "meanwhile these serve");
        // Another nonce would be the next path's, or the first one's again.
        assert_eq!(carry(&mut pair, many), None);
        assert_eq!(carry(&mut pair, few), opened(few));
    }
}
