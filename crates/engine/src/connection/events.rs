//! Events for drivers and applications.

use anabranch_trace::CloseReason;

/// An event for the driver or application. Each is reported once until it is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The first subflow is established.
    Established,
    /// Multipath TCP was given up for plain TCP (RFC 8684 §3.7). Where a checksum had failed, data that was changed on the
    /// way may be delivered from here on.
    FellBack,
    /// There is something to read, or the end of the stream was reached.
    Readable,
    /// There is room in the send buffer again.
    Writable,
    /// The connection ended. Nothing follows.
    Closed(CloseReason),
}

/// Events that wait to be polled.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub established: bool,
    pub fell_back: bool,
    pub closed: Option<CloseReason>,
    /// `closed` was polled.
    pub over: bool,
}

impl Pending {
    /// The next event. `readable` and `writable` wait elsewhere, and are taken there.
    pub fn poll(&mut self, readable: &mut bool, writable: &mut bool) -> Option<ConnectionEvent> {
        let flags = [
            (&mut self.established, ConnectionEvent::Established),
            (&mut self.fell_back, ConnectionEvent::FellBack),
            (readable, ConnectionEvent::Readable),
            (writable, ConnectionEvent::Writable),
        ];
        for (flag, event) in flags {
            if core::mem::take(flag) {
                return Some(event);
            }
        }
        let reason = self.closed.take()?;
        self.over = true;
        Some(ConnectionEvent::Closed(reason))
    }

    /// There is something in [`Self::poll`].
    pub fn is_any(&self, readable: bool, writable: bool) -> bool {
        self.established | self.fell_back | readable | writable | self.closed.is_some()
    }
}
