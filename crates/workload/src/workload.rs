//! The seam between an application and its connection.

use anabranch_units::Instant;
use bytes::Bytes;
use core::fmt::{self, Debug};

/// What an application sees of its connection.
pub trait Stream {
    /// Hands over bytes to send; returns how many of them, from the front, the send buffer took.
    fn write(&mut self, data: Bytes) -> usize;
    /// The next `len` bytes handed over are one message: a file, an object. A hint, for schedulers that plan by it.
    fn begin_message(&mut self, _len: u64) {}
    /// Free bytes of the send buffer; zero after [`Self::finish`].
    fn writable(&self) -> u64;
    /// No more writes; idempotent.
    fn finish(&mut self);
    /// The next bytes that came in order; `None` if there are none now.
    fn read(&mut self) -> Option<Bytes>;
    /// The peer finished, and everything it sent was read.
    fn read_finished(&self) -> bool;
    /// The next of the numbers 0, 1, 2… that all connections of this host draw from, each number once: by it they share out
    /// what is to be done. `u64::MAX` where nothing is shared.
    fn take_ticket(&mut self) -> u64 {
        u64::MAX
    }
}

/// One application at one end of one connection.
///
/// Its driver calls `on_established` once and first, the others as their facts occur, and after each call asks
/// [`Self::next_wakeup`] again.
pub trait Workload: Debug + Send {
    /// The connection is established.
    fn on_established(&mut self, _now: Instant, _io: &mut dyn Stream) {}
    /// The send buffer has room again.
    fn on_writable(&mut self, _now: Instant, _io: &mut dyn Stream) {}
    /// There are bytes to read, or the peer has finished.
    fn on_readable(&mut self, now: Instant, io: &mut dyn Stream);
    /// The time that [`Self::next_wakeup`] asked for has come.
    fn on_wakeup(&mut self, _now: Instant, _io: &mut dyn Stream) {}
    /// When to be called if nothing else happens first.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }
    /// It has written and read all that it ever will.
    fn is_done(&self) -> bool;
    /// It has read all that it asked for, though its connection may not have closed yet.
    fn is_served(&self) -> bool {
        self.is_done()
    }
    /// The first thing that the connection did wrong.
    fn fault(&self) -> Option<Fault>;
}

/// What a connection did wrong, as its application sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The byte at this offset is not the one that was written.
    WrongByte {
        /// From the beginning of the stream.
        offset: u64,
    },
    /// The stream ended, or went on, at the wrong place.
    WrongLength {
        /// Bytes that came.
        got: u64,
        /// Bytes that should have come.
        expected: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::WrongByte { offset } => write!(f, "wrong byte at offset {offset}"),
            Fault::WrongLength { got, expected } => write!(f, "{got} bytes where {expected} were expected"),
        }
    }
}
