//! Keys, and what is derived from them (RFC 8684 §3.1).

use anabranch_units::{DataSeq, Rng};
use anabranch_wire::crypto;

/// The keys of both ends, with tokens and initial data sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keys {
    pub local: u64,
    pub remote: u64,
    pub local_token: u32,
    pub remote_token: u32,
    pub local_idsn: DataSeq,
    pub remote_idsn: DataSeq,
}

/// A key whose token is not among `taken` (RFC 8684 §3.1).
pub(crate) fn fresh_key(rng: &mut Rng, taken: &dyn Fn(u32) -> bool) -> u64 {
    Keys::generate(rng, taken).local
}

impl Keys {
    /// A fresh key whose token is not among `taken` (RFC 8684 §3.1).
    pub fn generate(rng: &mut Rng, taken: &dyn Fn(u32) -> bool) -> Self {
        loop {
            let keys = Self::of(rng.bits());
            if !taken(keys.local_token) {
                return keys;
            }
        }
    }

    /// The keys with one of ours, and what follows from it.
    pub fn of(local: u64) -> Self {
        let (local_token, local_idsn) = crypto::token_and_idsn(local);
        Self { local, local_token, local_idsn, ..Self::default() }
    }

    /// The peer's key is known.
    pub fn learn(&mut self, remote: u64) {
        self.remote = remote;
        (self.remote_token, self.remote_idsn) = crypto::token_and_idsn(remote);
    }

    /// The wire's number of our data at `offset`. The first byte has IDSN + 1.
    pub fn local_number(&self, offset: u64) -> DataSeq {
        self.local_idsn.at(offset + 1)
    }
}
