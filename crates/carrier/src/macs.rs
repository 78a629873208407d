//! The marks that a handshake message must have before any work is done for it: `mac1`, and under load `mac2` with a cookie. The construction is
//! WireGuard's (Donenfeld, NDSS 2017, §5.3 and §5.4.4), with labels of our own.

use crate::keys::{KEY_LEN, PublicKey};
use anabranch_units::{Duration, Instant};
use blake2::digest::{Digest, Mac, consts::U16};
use blake2::{Blake2s256, Blake2sMac};
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use rand_core::CryptoRng;
use std::net::{IpAddr, SocketAddr};

/// Bytes of `mac1`, `mac2` and a cookie.
pub(crate) const MAC: usize = 16;
/// Bytes of the nonce of a cookie reply.
pub(crate) const COOKIE_NONCE: usize = 24;
/// A cookie, sealed.
pub(crate) const SEALED_COOKIE: usize = MAC + 16;

const MAC1_LABEL: &[u8] = b"anabranch mac1 1";
const COOKIE_LABEL: &[u8] = b"anabranch cookie 1";
/// After this a server changes the secret of its cookies, and a client forgets one.
const COOKIE_LIFE: Duration = Duration::from_secs(120);

pub(crate) type Tag = [u8; MAC];

/// BLAKE2s-256 over the parts in turn.
pub(crate) fn hash(parts: &[&[u8]]) -> [u8; KEY_LEN] {
    let mut hash = Blake2s256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> Blake2sMac<U16> {
    let mut mac = <Blake2sMac<U16> as Mac>::new_from_slice(key).expect("BLAKE2s takes keys of up to 32 bytes");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

fn tag(key: &[u8], parts: &[&[u8]]) -> Tag {
    keyed(key, parts).finalize().into_bytes().into()
}

/// In constant time.
fn is_tag(key: &[u8], parts: &[&[u8]], tag: &Tag) -> bool {
    keyed(key, parts).verify_slice(tag).is_ok()
}

/// Marks handshake messages to one host. Everybody who knows the host's public key can: it keeps off those who do not.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    mac1: [u8; KEY_LEN],
    cookie: [u8; KEY_LEN],
}

impl Door {
    /// The door of the host with this key.
    pub fn of(key: &PublicKey) -> Self {
        Self { mac1: hash(&[MAC1_LABEL, &key.0]), cookie: hash(&[COOKIE_LABEL, &key.0]) }
    }

    /// `mac1` of a message without its two tags.
    pub fn mac1(&self, message: &[u8]) -> Tag {
        tag(&self.mac1, &[message])
    }

    pub fn is_mac1(&self, message: &[u8], mac1: &Tag) -> bool {
        is_tag(&self.mac1, &[message], mac1)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&self.cookie.into())
    }

    /// Seals a cookie for the sender of the message with this `mac1`.
    pub fn seal(&self, nonce: &[u8; COOKIE_NONCE], cookie: &Tag, mac1: &Tag) -> Option<[u8; SEALED_COOKIE]> {
        let sealed = self.cipher().encrypt(XNonce::from_slice(nonce), Payload { msg: cookie, aad: mac1 }).ok()?;
        sealed.try_into().ok()
    }

    /// Opens a cookie that was sealed for our message with this `mac1`.
    pub fn open(&self, nonce: &[u8; COOKIE_NONCE], sealed: &[u8; SEALED_COOKIE], mac1: &Tag) -> Option<Tag> {
        let cookie = self.cipher().decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: mac1 }).ok()?;
        cookie.try_into().ok()
    }
}

/// `mac2` of a message without its two tags.
pub(crate) fn mac2(cookie: &Tag, message: &[u8], mac1: &Tag) -> Tag {
    tag(cookie, &[message, mac1])
}

/// A cookie that a server gave us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookie {
    pub tag: Tag,
    pub since: Instant,
}

impl Cookie {
    pub fn is_fresh(&self, now: Instant) -> bool {
        now.since(self.since) < COOKIE_LIFE
    }
}

/// Makes cookies of addresses, and keeps none of them: they follow from a secret that changes.
#[derive(Debug)]
pub(crate) struct Jar {
    secret: [u8; KEY_LEN],
    since: Option<Instant>,
}

impl Jar {
    pub fn new() -> Self {
        Self { secret: [0; KEY_LEN], since: None }
    }

    /// Changes the secret when it is old.
    pub fn renew(&mut self, now: Instant, rng: &mut dyn CryptoRng) {
        if self.since.is_none_or(|since| now.since(since) >= COOKIE_LIFE) {
            rng.fill_bytes(&mut self.secret);
            self.since = Some(now);
        }
    }

    /// The cookie of an address and its port.
    pub fn cookie(&self, from: SocketAddr) -> Tag {
        let mut address = [0; 18];
        address[..16].copy_from_slice(&mapped(from.ip()));
        address[16..].copy_from_slice(&from.port().to_be_bytes());
        tag(&self.secret, &[&address])
    }

    pub fn is_mac2(&self, from: SocketAddr, message: &[u8], mac1: &Tag, mac2: &Tag) -> bool {
        is_tag(&self.cookie(from), &[message, mac1], mac2)
    }

    /// One of 256 numbers for an address, which no other host can foresee. An IPv6 host has a /64.
    pub fn place(&self, from: IpAddr) -> u8 {
        let address = mapped(from);
        let network = if from.to_canonical().is_ipv4() { &address[..] } else { &address[..8] };
        tag(&self.secret, &[b"place", network])[0]
    }
}

fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng as _;

    #[test]
    fn a_cookie_holds_for_one_address_until_the_secret_changes() {
        let mut rng = ChaCha20Rng::from_seed([1; 32]);
        let (mut jar, at): (_, SocketAddr) = (Jar::new(), "192.0.2.1:9".parse().unwrap());
        jar.renew(Instant::ZERO, &mut rng);
        let cookie = jar.cookie(at);
        let mac2 = mac2(&cookie, b"message", &[3; MAC]);
        assert!(jar.is_mac2(at, b"message", &[3; MAC], &mac2));
        assert!(!jar.is_mac2("192.0.2.1:8".parse().unwrap(), b"message", &[3; MAC], &mac2));
        assert!(!jar.is_mac2(at, b"massage", &[3; MAC], &mac2));
        jar.renew(Instant::from_millis(119_999), &mut rng);
        assert_eq!(jar.cookie(at), cookie);
        jar.renew(Instant::from_millis(120_000), &mut rng);
        assert_ne!(jar.cookie(at), cookie);
    }

    #[test]
    fn a_cookie_is_opened_with_the_mac1_that_it_was_sealed_for() {
        let door = Door::of(&PublicKey([5; KEY_LEN]));
        let sealed = door.seal(&[6; COOKIE_NONCE], &[7; MAC], &[8; MAC]).unwrap();
        assert_eq!(door.open(&[6; COOKIE_NONCE], &sealed, &[8; MAC]), Some([7; MAC]));
        assert_eq!(door.open(&[6; COOKIE_NONCE], &sealed, &[9; MAC]), None);
        let other = Door::of(&PublicKey([4; KEY_LEN]));
        assert_eq!(other.open(&[6; COOKIE_NONCE], &sealed, &[8; MAC]), None);
    }
}
