//! The host under test, as a script sees it.

use crate::script::{After, Call, Closed};
use core::time::Duration;

/// A packet that the host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When, since the beginning.
    pub at: Duration,
    /// The IP packet.
    pub bytes: Vec<u8>,
}

/// What the application can see of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The handshake was completed.
    pub established: bool,
    /// It speaks MPTCP.
    pub multipath: bool,
    /// How it ended.
    pub closed: Option<Closed>,
}

/// What an application gets when it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// These bytes, not none.
    Bytes(Vec<u8>),
    /// Nothing yet.
    Nothing,
    /// The end of the stream.
    End,
    /// The connection was broken.
    Broken(String),
}

/// A host under test. Times count from its beginning. Errors say what cannot be done.
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

    /// The application calls. Reading has a method of its own.
    ///
    /// # Errors
    /// The call failed, or would have to wait.
    fn call(&mut self, call: &Call, data: Vec<u8>) -> Result<(), String>;

    /// Reads at most `most` bytes.
    fn read(&mut self, most: usize) -> Got;

    /// What the application can see.
    ///
    /// # Errors
    /// It cannot be asked.
    fn status(&mut self) -> Result<Status, String>;

    /// A counter of the host's own; `None` if it is another host's.
    fn count(&mut self, counter: crate::script::Counter, name: &str) -> Result<Option<u64>, String>;

    /// The earliest and the latest time that `after` allows, from the step before.
    fn bounds(&self, after: &After) -> (Duration, Duration);

    /// How long an application waits at most for what should be there at once.
    fn patience(&self) -> Duration;

    /// How long to listen at the end for packets that should not come.
    fn afterwards(&self) -> Duration;
}
