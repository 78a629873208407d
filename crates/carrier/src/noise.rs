//! The handshake `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s`, by the library snow.

use crate::keys::{KEY_LEN, PublicKey, Secret, StaticKey};
use crate::time::Timestamp;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, RingResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
/// Both ends must agree on it: the protocol and its version.
pub const PROLOGUE: &[u8] = b"anabranch carrier 1";

/// Bytes of an authentication tag.
pub(crate) const TAG: usize = 16;
/// A session's name, drawn by the client.
pub(crate) const SESSION: usize = 16;
/// The payload of message 1: timestamp and session.
const PAYLOAD: usize = Timestamp::LEN + SESSION;
/// Message 1: an ephemeral key, the encrypted static key, the encrypted payload.
pub(crate) const FIRST: usize = KEY_LEN + (KEY_LEN + TAG) + (PAYLOAD + TAG);
/// Message 2: an ephemeral key, and a tag.
pub(crate) const SECOND: usize = KEY_LEN + TAG;

/// Counts multiplications on the curve: Diffie-Hellman operations, and public keys derived from private ones.
pub(crate) type Work = Arc<AtomicU64>;

/// The message does not authenticate, or is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forged;

impl From<snow::Error> for Forged {
    fn from(_: snow::Error) -> Self {
        Self
    }
}

/// The primitives of one handshake.
struct Primitives {
    ephemeral: [u8; KEY_LEN],
    work: Work,
}

/// The handshake's only random number: the ephemeral private key.
struct Ephemeral(Option<[u8; KEY_LEN]>);

impl Random for Ephemeral {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        let key = self.0.take().filter(|key| key.len() == dest.len()).ok_or(snow::Error::Rng)?;
        dest.copy_from_slice(&key);
        Ok(())
    }
}

struct Counted {
    dh: Box<dyn Dh>,
    work: Work,
}

impl Counted {
    fn count(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
    }
}

impl Dh for Counted {
    fn name(&self) -> &'static str {
        self.dh.name()
    }
    fn pub_len(&self) -> usize {
        self.dh.pub_len()
    }
    fn priv_len(&self) -> usize {
        self.dh.priv_len()
    }
    fn set(&mut self, privkey: &[u8]) {
        self.count();
        self.dh.set(privkey);
    }
    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        self.count();
        self.dh.generate(rng)
    }
    fn pubkey(&self) -> &[u8] {
        self.dh.pubkey()
    }
    fn privkey(&self) -> &[u8] {
        self.dh.privkey()
    }
    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        self.count();
        self.dh.dh(pubkey, out)
    }
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Ephemeral(Some(self.ephemeral))))
    }
    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let dh = DefaultResolver.resolve_dh(choice)?;
        Some(Box::new(Counted { dh, work: self.work.clone() }))
    }
    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }
    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        // Three times as fast as RustCrypto's.
        RingResolver.resolve_cipher(choice)
    }
}

fn builder(ephemeral: [u8; KEY_LEN], work: &Work) -> Result<Builder<'static>, Forged> {
    let primitives = Primitives { ephemeral, work: work.clone() };
    Ok(Builder::with_resolver(PATTERN.parse()?, Box::new(primitives)).prologue(PROLOGUE)?)
}

/// A client that waits for message 2.
#[derive(Debug)]
pub(crate) struct Initiator(HandshakeState);

/// The content of message 1's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    pub timestamp: Timestamp,
    pub session: [u8; SESSION],
}

impl Initiator {
    /// Message 1 to the owner of `remote`.
    pub fn begin(
        key: &StaticKey,
        remote: &PublicKey,
        preshared: &Secret,
        ephemeral: [u8; KEY_LEN],
        payload: Payload,
        work: &Work,
    ) -> Result<(Self, [u8; FIRST]), Forged> {
        let builder = builder(ephemeral, work)?.local_private_key(key.secret().bytes())?;
        let mut state = builder.remote_public_key(&remote.0)?.psk(2, preshared.bytes())?.build_initiator()?;
        let mut plain = [0; PAYLOAD];
        plain[..Timestamp::LEN].copy_from_slice(&payload.timestamp.0);
        plain[Timestamp::LEN..].copy_from_slice(&payload.session);
        let mut message = [0; FIRST];
        state.write_message(&plain, &mut message)?;
        Ok((Self(state), message))
    }

    /// The transport keys that message 2 completes. A forged message leaves the state as it was.
    pub fn finish(&mut self, message: &[u8; SECOND]) -> Result<(), Forged> {
        self.0.read_message(message, &mut [])?;
        Ok(())
    }

    /// After [`Self::finish`].
    pub fn transport(self) -> Result<StatelessTransportState, Forged> {
        Ok(self.0.into_stateless_transport_mode()?)
    }
}

/// A server that has read message 1.
#[derive(Debug)]
pub(crate) struct Responder {
    state: HandshakeState,
    /// Key of the client, which has proved that it owns the key, though perhaps at another time.
    pub remote: PublicKey,
    pub payload: Payload,
}

impl Responder {
    /// Reads message 1.
    pub fn read(key: &StaticKey, ephemeral: [u8; KEY_LEN], message: &[u8; FIRST], work: &Work) -> Result<Self, Forged> {
        let mut state = builder(ephemeral, work)?.local_private_key(key.secret().bytes())?.build_responder()?;
        let mut plain = [0; PAYLOAD];
        state.read_message(message, &mut plain)?;
        let (mut timestamp, mut session) = (Timestamp::default(), [0; SESSION]);
        timestamp.0.copy_from_slice(&plain[..Timestamp::LEN]);
        session.copy_from_slice(&plain[Timestamp::LEN..]);
        let remote = state.get_remote_static().and_then(|key| key.try_into().ok()).ok_or(Forged)?;
        Ok(Self { state, remote: PublicKey(remote), payload: Payload { timestamp, session } })
    }

    /// Message 2, and the transport keys.
    pub fn reply(mut self, preshared: &Secret) -> Result<([u8; SECOND], StatelessTransportState), Forged> {
        self.state.set_psk(2, preshared.bytes())?;
        let mut message = [0; SECOND];
        self.state.write_message(&[], &mut message)?;
        Ok((message, self.state.into_stateless_transport_mode()?))
    }
}
