//! The MPTCP session: what both ends agreed on, which keys they have, what the options of our segments say, and what those of
//! the peer's prove (RFC 8684 §3).

mod effects;
mod failure;
mod handshake;
mod keys;
mod offers;
mod options;
mod segments;

pub(crate) use effects::{Effect, Ended};
pub(crate) use failure::MappedTo;
pub(crate) use handshake::{Agreement, Learned, Shown};
pub(crate) use keys::{Keys, fresh_key};
pub(crate) use offers::{asked, offers_multipath, reason_in};

use crate::mode::Mode;
use crate::peer_stream::PeerStream;
use crate::settings::{DssWidth, Settings};
use crate::subflow::Subflow;
use failure::{Failure, Infinite};

/// The terms that both ends agreed on.
#[derive(Debug)]
pub(crate) struct Session {
    mode: Mode,
    keys: Keys,
    /// The settings want MPTCP.
    wanted: bool,
    /// Our data sequence numbers have 8 bytes.
    wide: bool,
    checksum: bool,
    /// A second subflow has come into use: the streams are no longer one subflow's sequences.
    pub joined: bool,
    /// The peer has sent a DSS: from then on a segment without one is no sign of plain TCP.
    dss_seen: bool,
    /// Bytes of its data that MP_CAPABLE mapped.
    pub first_len: u64,
    /// The peer has sent a data sequence number of 8 bytes: it must be acknowledged with 8 (RFC 8684 §3.3).
    peer_wide: bool,
    failure: Failure,
    /// The mapping that shows the peer a fall back, after one.
    infinite: Option<Infinite>,
}

impl Session {
    pub fn new(settings: &Settings) -> Self {
        Self {
            mode: Mode::at_first(settings),
            keys: Keys::default(),
            wanted: settings.mptcp,
            wide: settings.dss == DssWidth::Eight,
            checksum: settings.checksum,
            joined: false,
            dss_seen: false,
            first_len: 0,
            peer_wide: false,
            failure: Failure::None,
            infinite: None,
        }
    }

    /// The protocol that is spoken.
    #[inline(always)]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Plain TCP is spoken.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.mode.is_plain()
    }

    /// MPTCP is spoken.
    pub fn is_multipath(&self) -> bool {
        self.mode.is_multipath()
    }

    /// MPTCP is spoken, and the peer has shown that it got our keys.
    pub fn is_confirmed(&self) -> bool {
        self.mode == Mode::Confirmed
    }

    /// From here on plain TCP is spoken.
    pub fn become_plain(&mut self) {
        self.mode = Mode::Plain;
    }

    /// Our keys.
    pub fn set_keys(&mut self, keys: Keys) {
        self.keys = keys;
    }

    /// Our key.
    pub fn local_key(&self) -> u64 {
        self.keys.local
    }

    /// Our token; `None` without MPTCP.
    pub fn token(&self) -> Option<u32> {
        self.wanted.then_some(self.keys.local_token)
    }

    /// The peer speaks MPTCP, and has shown so by a DSS or a join.
    pub fn is_mapped(&self) -> bool {
        (self.dss_seen || self.joined) && self.is_multipath()
    }

    /// How the peer's stream is numbered.
    #[inline(always)]
    pub fn peer_stream(&self) -> PeerStream {
        PeerStream { idsn: self.keys.remote_idsn, checksum: self.checksum }
    }

    /// No more than one of the subflows is or ever was in use. A join whose SYN/ACK we have answered may be in use on the other
    /// side.
    pub fn is_alone(&self, subflows: &[Subflow]) -> bool {
        !self.joined && !subflows.iter().any(|s| s.join && s.state.is_synchronized())
    }
}
