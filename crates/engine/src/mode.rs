//! The protocol that a connection speaks. The session knows it; both streams learn each change.

use crate::schedule::Numbering;
use crate::settings::Settings;

/// The protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// MPTCP was offered or requested and is not agreed yet.
    Opening,
    /// MPTCP; the peer has not shown yet that it got our keys.
    Agreed,
    /// MPTCP; the peer has shown that it got our keys (RFC 8684 §3.1).
    Confirmed,
    /// Plain TCP: never offered, refused, or fallen back to (RFC 8684 §3.7).
    Plain,
}

impl Mode {
    /// Before anything was exchanged.
    pub fn at_first(settings: &Settings) -> Self {
        if settings.mptcp { Self::Opening } else { Self::Plain }
    }

    /// Plain TCP.
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Plain)
    }

    /// MPTCP is agreed on.
    #[inline(always)]
    pub fn is_multipath(self) -> bool {
        matches!(self, Self::Agreed | Self::Confirmed)
    }
}

impl From<Mode> for Numbering {
    #[inline(always)]
    fn from(mode: Mode) -> Self {
        if mode.is_plain() { Self::Subflow } else { Self::Data }
    }
}

/// A fixed distance between a subflow's sequence and the data sequence: plain TCP and infinite mappings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offset {
    pub sub: u64,
    pub data: u64,
}
