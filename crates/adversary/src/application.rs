//! The application at one end of the connection: it writes its part, reads, and checks the bytes that it reads.

use crate::parties::{End, Plan, Reading};
use crate::pattern;
use crate::verdict::Kind;
use anabranch_engine::Cx;
use anabranch_engine::connection::{Connection, ConnectionEvent};
use anabranch_engine::endpoint::{Endpoint, Handle};
use anabranch_trace::CloseReason;
use anabranch_units::{Instant, Side};

/// A violation that an application saw.
pub(crate) type Wrong = (Kind, String);

/// An application.
#[derive(Debug)]
pub(crate) struct Application {
    side: Side,
    plan: Plan,
    pub handle: Option<Handle>,
    pub established: bool,
    /// The endpoint announced data to read, and no read has found the buffer empty since.
    readable: bool,
    /// The endpoint announced room to write, and no write has filled it since.
    writable: bool,
    pub written: u64,
    /// Bytes left of the message being written.
    message: u64,
    pub finished: bool,
    /// Bytes received.
    pub delivered: u64,
    /// The peer's stream ended cleanly.
    pub saw_end: bool,
    /// The endpoint reported the fallback to plain TCP.
    pub fell_back: bool,
    /// Why the connection ended, as the endpoint reported it.
    pub closed: Option<CloseReason>,
    next_write: Instant,
    next_read: Instant,
    last_write: Instant,
    /// First byte that differs from the one written.
    pub changed: Option<u64>,
    pub aborted: bool,
}

impl Application {
    pub fn new(side: Side, plan: Plan, start: Instant) -> Self {
        let next_read = if let Reading::After(wait) = plan.reading { start + wait } else { Instant::ZERO };
        Self {
            side,
            plan,
            handle: None,
            established: false,
            readable: false,
            writable: plan.early,
            written: 0,
            message: 0,
            finished: false,
            delivered: 0,
            saw_end: false,
            fell_back: false,
            closed: None,
            next_write: Instant::ZERO,
            next_read,
            last_write: Instant::ZERO,
            changed: None,
            aborted: false,
        }
    }

    /// The next time at which the application acts without an event.
    pub fn next_wakeup(&self) -> Instant {
        if self.handle.is_none() || self.closed.is_some() {
            return Instant::MAX;
        }
        let write = if self.wants_to_write() { self.next_write } else { Instant::MAX };
        let read = if self.readable { self.next_read } else { Instant::MAX };
        write.min(read).min(self.finish_due())
    }

    /// When the stream is to end.
    fn finish_due(&self) -> Instant {
        let begun = self.established || self.plan.early;
        match self.plan.end {
            _ if self.finished || !begun || self.written < self.plan.bytes => Instant::MAX,
            End::AtOnce => self.last_write,
            End::After(wait) => self.last_write + wait,
            End::AfterPeer if self.saw_end => Instant::ZERO,
            End::AfterPeer => Instant::MAX,
        }
    }

    /// The application may write now, as far as it knows.
    fn wants_to_write(&self) -> bool {
        self.writable && !self.finished && self.written < self.allowed()
    }

    /// Bytes that may be written by now. With [`End::AfterPeer`] the last third waits for the peer's end.
    fn allowed(&self) -> u64 {
        let waits = self.plan.end == End::AfterPeer && !self.saw_end;
        if waits { self.plan.bytes - self.plan.bytes / 3 } else { self.plan.bytes }
    }

    /// Handles the endpoint's events and acts. True if a call was made that may produce segments.
    pub fn serve(&mut self, endpoint: &mut Endpoint, cx: &mut Cx<'_>) -> Result<bool, Wrong> {
        let Some(handle) = self.handle else { return Ok(false) };
        while let Some(event) = endpoint.poll_event(handle) {
            match event {
                ConnectionEvent::Established => self.established = true,
                ConnectionEvent::FellBack => self.fell_back = true,
                ConnectionEvent::Readable => self.readable = true,
                ConnectionEvent::Writable => self.writable = true,
                ConnectionEvent::Closed(why) => {
                    self.closed = Some(why);
                    // Received data is read before the connection is removed.
                    let connection = endpoint.connection_mut(handle);
                    return connection.map_or(Ok(()), |c| self.read_all(c, cx)).map(|()| true);
                }
                _ => {}
            }
        }
        if self.next_wakeup() > cx.now {
            return Ok(false);
        }
        let Some(connection) = endpoint.connection_mut(handle) else { return Ok(false) };
        self.act(connection, cx)?;
        Ok(true)
    }

    fn act(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) -> Result<(), Wrong> {
        if self.readable && self.next_read <= cx.now {
            match self.plan.reading {
                Reading::Slowly(gap) => {
                    self.next_read = cx.now + gap;
                    if !self.read_one(connection, cx) {
                        self.read_all(connection, cx)?;
                    }
                }
                _ => self.read_all(connection, cx)?,
            }
        }
        while self.wants_to_write() && self.next_write <= cx.now {
            self.write(connection, cx);
        }
        if self.finish_due() <= cx.now {
            self.finish(connection, cx);
        }
        Ok(())
    }

    fn write(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) {
        let left = self.allowed() - self.written;
        let len = if self.message > 0 { self.message.min(left) } else { self.plan.chunk.min(left) };
        if self.plan.messages && self.message == 0 && connection.begin_message(len, None) {
            self.message = len;
        }
        let taken = connection.write(cx, pattern::bytes(self.side, self.written, len)) as u64;
        self.written += taken;
        self.message = self.message.saturating_sub(taken);
        // As with a socket: an incomplete write waits for the event that announces room.
        self.writable = taken == len;
        if self.message == 0 && taken == len {
            self.next_write = cx.now + self.plan.pause;
        }
        self.last_write = cx.now;
    }

    fn read_one(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) -> bool {
        let Some(bytes) = connection.read(cx) else { return false };
        let from = self.side.peer();
        if let Some(at) = pattern::difference(from, self.delivered, &bytes) {
            self.changed = self.changed.or(Some(self.delivered + at));
        }
        self.delivered += bytes.len() as u64;
        true
    }

    fn read_all(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) -> Result<(), Wrong> {
        while self.read_one(connection, cx) {}
        self.readable = false;
        if connection.read_finished() && !self.saw_end {
            self.saw_end = true;
            // With `AfterPeer` no write has been tried since.
            self.writable |= self.plan.end == End::AfterPeer && self.written < self.plan.bytes;
        }
        if self.closed == Some(CloseReason::Finished) && !self.saw_end {
            return Err((Kind::FalseEnd, format!("{:?} got Finished without an end of the stream", self.side)));
        }
        Ok(())
    }

    /// Ends the stream, written or not.
    pub fn finish(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) {
        connection.finish(cx);
        self.finished = true;
    }

    /// The event that is missing, when nothing is due any more: there is data to read or room to write.
    pub fn overlooked(&self, connection: &Connection) -> Option<String> {
        let waits = self.written < self.allowed() && !self.finished && !self.writable;
        if waits && self.established && connection.writable() > 0 {
            return Some(format!("{:?} waits to write, and {} bytes have room", self.side, connection.writable()));
        }
        (!self.saw_end && connection.read_finished())
            .then(|| format!("{:?} got no event of the end of the peer's stream", self.side))
    }
}
