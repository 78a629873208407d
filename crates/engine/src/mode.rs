//! The protocol that a connection speaks. Parts get it as an argument.

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

/// A fixed distance between a subflow's sequence and the data sequence: plain TCP and infinite mappings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offset {
    pub sub: u64,
    pub data: u64,
}
