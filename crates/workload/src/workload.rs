//! The interface between an application and its connection.

use anabranch_units::{Instant, Rate};
use bytes::Bytes;
use core::fmt::{self, Debug};

/// An application's view of its connection.
pub trait Stream {
    /// Passes bytes to send; returns how many of them, from the front, the send buffer accepted.
    fn write(&mut self, data: Bytes) -> usize;
    /// The next `len` bytes passed are one message: a file, an object, a frame. It is late after `deadline`. A hint, for schedulers that
    /// use it.
    fn begin_message(&mut self, _len: u64, _deadline: Option<Instant>) {}
    /// A segment of a video is requested: its rate, and its size in bytes. For recorders.
    fn request_segment(&mut self, _rate: Rate, _size: u64) {}
    /// Free bytes of the send buffer; zero after [`Self::finish`].
    fn writable(&self) -> u64;
    /// No more writes; idempotent.
    fn finish(&mut self);
    /// The next bytes in order; `None` if there are none now.
    fn read(&mut self) -> Option<Bytes>;
    /// The peer finished, and everything it sent was read.
    fn read_finished(&self) -> bool;
    /// The next of the numbers 0, 1, 2… that all connections of this host share, each used once: connections divide
    /// work by it. `u64::MAX` where nothing is shared.
    fn take_ticket(&mut self) -> u64 {
        u64::MAX
    }
}

/// One application at one end of one connection.
///
/// Its driver calls `on_established` once and first, the others as their events occur, and after each call reads
/// [`Self::next_wakeup`] again.
pub trait Workload: Debug + Send {
    /// The connection is established.
    fn on_established(&mut self, _now: Instant, _io: &mut dyn Stream) {}
    /// The send buffer has room again.
    fn on_writable(&mut self, _now: Instant, _io: &mut dyn Stream) {}
    /// There are bytes to read, or the peer has finished.
    fn on_readable(&mut self, now: Instant, io: &mut dyn Stream);
    /// The time of [`Self::next_wakeup`] has come.
    fn on_wakeup(&mut self, _now: Instant, _io: &mut dyn Stream) {}
    /// When to be called if nothing else happens first.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }
    /// The application has finished all its writing and reading, and has nothing to do ever after.
    fn is_done(&self) -> bool;
    /// The application has read all that it requested, though its connection may not have closed yet.
    fn is_served(&self) -> bool {
        self.is_done()
    }
    /// The first fault of the connection.
    fn fault(&self) -> Option<Fault>;
}

/// A fault of a connection, as its application sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The byte at this offset differs from the one written.
    WrongByte {
        /// From the beginning of the stream.
        offset: u64,
    },
    /// The stream ended, or continued, at the wrong place.
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
