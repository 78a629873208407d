//! The host under test, as a script sees it.

use crate::script::{After, Call, Closed};
use core::time::Duration;

/// A packet that the host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The time since the beginning.
    pub at: Duration,
    /// The IP packet.
    pub bytes: Vec<u8>,
}

/// The state of the connection that an application can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The handshake was completed.
    pub established: bool,
    /// The connection speaks MPTCP.
    pub multipath: bool,
    /// How it ended.
    pub closed: Option<Closed>,
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// At least one byte.
    Bytes(Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// The end of the stream.
    End,
    /// The connection was broken.
    Broken(String),
}

/// A host under test. Times count from its beginning. Errors name the operation that is impossible.
pub trait Subject {
    /// The present time.
    fn now(&self) -> Duration;

    /// The next packet that the host sends up to `until`; `None` when that time has come.
    ///
    /// # Errors
    /// The host is gone.
    fn receive(&mut self, until: Duration) -> Result<Option<Sent>, String>;

    /// Gives the host a packet.
    ///
    /// # Errors
    /// The host is gone.
    fn inject(&mut self, bytes: &[u8]) -> Result<(), String>;

    /// Makes a call of the application. Reading has its own method.
    ///
    /// # Errors
    /// The call failed, or would block.
    fn call(&mut self, call: &Call, data: Vec<u8>) -> Result<(), String>;

    /// Reads at most `most` bytes.
    fn read(&mut self, most: usize) -> Got;

    /// The state that the application can see.
    ///
    /// # Errors
    /// The state cannot be read.
    fn status(&mut self) -> Result<Status, String>;

    /// A counter of the host; `None` if it belongs to another kind of host.
    fn count(&mut self, counter: crate::script::Counter, name: &str) -> Result<Option<u64>, String>;

    /// The earliest and the latest time that `after` allows, counted from the previous step.
    fn bounds(&self, after: &After) -> (Duration, Duration);

    /// The longest wait of an application for data that is due at once.
    fn patience(&self) -> Duration;

    /// How long to listen at the end for unwanted packets.
    fn afterwards(&self) -> Duration;
}
