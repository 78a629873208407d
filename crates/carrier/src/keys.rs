//! Static keys and pre-shared keys, as bytes and as text.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use core::fmt;
use rand_core::CryptoRng;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use zeroize::Zeroizing;

/// Bytes of every key.
pub const KEY_LEN: usize = 32;

/// A public static key (X25519, RFC 7748 §5). Its text is base64 of 44 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; KEY_LEN]);

/// A secret of 32 bytes, overwritten when it is dropped. Neither `Debug` nor an error shows it.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; KEY_LEN]>);

/// A static key pair.
#[derive(Clone, Debug)]
pub struct StaticKey {
    secret: Secret,
    public: PublicKey,
}

/// A text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoKey;

impl fmt::Display for NoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key is 32 bytes as base64: 44 characters, the last of them `=`")
    }
}

impl core::error::Error for NoKey {}

fn decode(text: &str) -> Result<Zeroizing<[u8; KEY_LEN]>, NoKey> {
    let bytes = Zeroizing::new(BASE64_STANDARD.decode(text).map_err(|_| NoKey)?);
    let mut key = Zeroizing::new([0; KEY_LEN]);
    if bytes.len() != KEY_LEN {
        return Err(NoKey);
    }
    key.copy_from_slice(&bytes);
    Ok(key)
}

impl PublicKey {
    /// The key that `text` spells.
    ///
    /// # Errors
    /// It is not base64 of 32 bytes.
    pub fn parse(text: &str) -> Result<Self, NoKey> {
        decode(text).map(|key| Self(*key))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Secret {
    /// These bytes.
    pub fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Random bytes.
    pub fn random(rng: &mut dyn CryptoRng) -> Self {
        let mut secret = Self::new([0; KEY_LEN]);
        rng.fill_bytes(&mut *secret.0);
        secret
    }

    /// The secret that `text` spells.
    ///
    /// # Errors
    /// It is not base64 of 32 bytes.
    pub fn parse(text: &str) -> Result<Self, NoKey> {
        decode(text).map(Self)
    }

    /// Base64. The caller keeps it secret.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(BASE64_STANDARD.encode(*self.0))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl StaticKey {
    /// The pair of a private key, which is any 32 bytes.
    pub fn new(secret: Secret) -> Self {
        let mut public = [0; KEY_LEN];
        if let Some(mut dh) = DefaultResolver.resolve_dh(&DHChoice::Curve25519) {
            dh.set(secret.bytes());
            public.copy_from_slice(dh.pubkey());
        }
        Self { secret, public: PublicKey(public) }
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// The private half.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> [u8; KEY_LEN] {
        core::array::from_fn(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).unwrap())
    }

    #[test]
    fn a_public_key_follows_from_the_private_one() {
        // RFC 7748 §5.2: the first iteration, X25519(9, 9).
        let mut nine = [0; KEY_LEN];
        nine[0] = 9;
        let public = hex("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
        assert_eq!(StaticKey::new(Secret::new(nine)).public(), PublicKey(public));
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let key = PublicKey([7; KEY_LEN]);
        assert_eq!(PublicKey::parse(&key.to_string()), Ok(key));
        let secret = Secret::new([9; KEY_LEN]);
        assert_eq!(Secret::parse(&secret.reveal()).unwrap().bytes(), secret.bytes());
        for bad in [
            "",
            "AAAA",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "é",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        ] {
            assert_eq!(PublicKey::parse(bad), Err(NoKey), "{bad}");
        }
    }

    #[test]
    fn no_debug_text_shows_a_secret() {
        let key = StaticKey::new(Secret::new([9; KEY_LEN]));
        let text = format!("{key:?}");
        assert!(!text.contains('9') || !text.contains(key.secret().reveal().as_str()), "{text}");
        assert!(text.contains("secret: Secret,"), "{text}");
    }
}
