//! Counts of all that came and was refused.

use crate::keypair::Unopened;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the beginning.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Every count with its name.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Handshakes completed: at a client by message 2, at a server by the first datagram under the new keys.
    handshakes,
    /// Multiplications on the curve: Diffie-Hellman operations, and public keys made of private ones.
    multiplications,
    /// Packets delivered.
    delivered,
    /// Packets sent.
    sent,
    /// Those of them that were sent in two pieces, for their path does not carry them whole.
    cut,
    /// Datagrams of no known kind or length.
    malformed,
    /// Handshake messages without a valid `mac1`, and cookies that do not open.
    bad_macs,
    /// Handshake messages answered with a cookie.
    cookies,
    /// Handshake messages that a full second refused.
    overloaded,
    /// Handshake messages that do not authenticate, and those that were not awaited.
    bad_handshakes,
    /// First messages of keys that are not authorised.
    unauthorized,
    /// First messages with a timestamp that is not later than the last.
    old_handshakes,
    /// Datagrams for keys that do not exist, or no longer.
    unknown_keys,
    /// Datagrams that do not authenticate.
    forged,
    /// Datagrams that came before, or fell out of the window.
    replayed,
    /// Packets with inner addresses that are not those of their session and path.
    foreign,
    /// Authenticated datagrams with a content of no known kind, or on a path that does not exist.
    unknown_contents,
    /// Paths that moved to another address.
    moved,
    /// Packets not sent, because their address has to answer first.
    held_back,
    /// Packets not sent, because two datagrams of their path do not carry them.
    too_large,
}

impl Counters {
    /// Counts a datagram that was not opened.
    pub(crate) fn unopened(&mut self, why: Unopened) {
        match why {
            Unopened::Forged => self.forged += 1,
            Unopened::Replayed => self.replayed += 1,
        }
    }
}
