//! The relay between a socket and a connection of the engine: what comes from one goes to the other.

use crate::poller::Readiness;
use anabranch_engine::Cx;
use anabranch_engine::connection::Connection;
use anabranch_link::Reservation;
use anabranch_units::{Duration, Instant};
use bytes::Bytes;
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Bytes in each direction before other connections have their turn.
const TURN: usize = 256 << 10;
/// Bytes taken from the connection that the socket has not taken.
const HELD: usize = 64 << 10;
/// Bytes taken from the socket that the connection has not sent, at least.
const AHEAD: u64 = 128 << 10;
/// Pieces that one system call writes.
const PIECES: usize = 64;
/// After a socket's failure: how long the other end has to acknowledge what the socket brought before.
const DELIVERY: Duration = Duration::from_secs(10);
/// After a connection's failure: how long its program has to read what came before. Closing with a reset drops what is unread.
const READING: Duration = Duration::from_secs(1);

/// How far a relay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is more to do at once.
    More,
    /// The relay waits for the socket or the connection.
    Waits,
    /// Both directions have ended in order.
    Done,
    /// The socket failed; the peer has until then to acknowledge what came before.
    Fails(Instant),
    /// The socket failed, and nothing is left to be waited for.
    Failed,
}

/// A socket, relayed to a connection and back.
#[derive(Debug)]
pub(crate) struct Relay {
    socket: TcpStream,
    readable: bool,
    writable: bool,
    over: bool,
    /// For the socket.
    held: VecDeque<Bytes>,
    held_len: usize,
    /// The socket's peer writes no more, and the connection has been ended for that.
    ended: bool,
    /// The connection's peer writes no more, and the socket has been shut for that.
    shut: bool,
    /// Nothing is cut off when it is closed.
    whole: bool,
    /// The socket takes nothing any more: what it has for us is still to be read.
    deaf: bool,
    /// The socket failed; the connection is aborted then at the latest.
    failed: Option<Instant>,
    /// The connection was cut off; the socket is reset then.
    cut: Option<Instant>,
    /// Place among those of other hosts' programs.
    pub place: Option<Reservation>,
    /// Payload so far, from the socket and to it.
    pub up: u64,
    pub down: u64,
}

impl Relay {
    /// The relay of a socket that does not block.
    pub fn new(socket: TcpStream) -> Self {
        // Whole messages come from the connection: none waits for an acknowledgment.
        let _ = socket.set_nodelay(true);
        // Closed unprepared it is cut off: also by the system, where this process is killed.
        let _ = SockRef::from(&socket).set_linger(Some(core::time::Duration::ZERO));
        Self {
            socket,
            readable: true,
            writable: true,
            over: false,
            held: VecDeque::new(),
            held_len: 0,
            ended: false,
            shut: false,
            whole: false,
            deaf: false,
            failed: None,
            cut: None,
            place: None,
            up: 0,
            down: 0,
        }
    }

    /// The system's report.
    pub fn set_ready(&mut self, readiness: Readiness) {
        self.readable |= readiness.readable;
        self.writable |= readiness.writable;
        self.over |= readiness.over;
    }

    /// Both directions of the socket are over, or it failed.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Puts bytes before those of the connection.
    pub fn say(&mut self, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            self.held_len += bytes.len();
            self.held.push_back(bytes);
        }
    }

    /// Reads bytes that are not for the connection; empty at the end, `None` if there are none yet or it fails.
    pub fn hear<'a>(&mut self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        match self.socket.read(buffer) {
            Ok(len) => Some(&buffer[..len]),
            Err(_) => {
                self.readable = false;
                None
            }
        }
    }

    /// Writes what is held. False if the socket failed.
    pub fn flush(&mut self) -> bool {
        while self.writable && self.held_len > 0 {
            let mut slices = [IoSlice::new(&[]); PIECES];
            let count = self.held.len().min(PIECES);
            slices.iter_mut().zip(&self.held).for_each(|(slice, bytes)| *slice = IoSlice::new(bytes));
            match self.socket.write_vectored(&slices[..count]) {
                Ok(len) => self.taken(len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn taken(&mut self, mut len: usize) {
        self.held_len -= len;
        self.down += len as u64;
        while let Some(first) = self.held.front_mut().filter(|_| len > 0) {
            let part = first.len().min(len);
            let _ = first.split_to(part);
            len -= part;
            if first.is_empty() {
                self.held.pop_front();
            }
        }
    }

    /// Takes all that is left to be read of a connection that has ended, at most a receive buffer, for the socket.
    pub fn drain(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) {
        while let Some(bytes) = connection.read(cx) {
            self.say(bytes);
        }
        self.whole = true;
    }

    /// The same of a connection that was cut off: the program reads what it would have read without a proxy, and then a reset. Returns
    /// when that is.
    pub fn cut(&mut self, now: Instant, connection: &mut Connection, cx: &mut Cx<'_>) -> Instant {
        self.drain(connection, cx);
        self.whole = false;
        *self.cut.insert(now + READING)
    }

    /// The socket has not got its last bytes.
    pub fn is_ending(&mut self, now: Instant) -> bool {
        self.flush() && self.cut.map_or(self.held_len > 0, |cut| now < cut)
    }

    /// The bytes that are held are the last.
    pub fn conclude(&mut self) {
        self.whole = true;
    }

    /// Moves what can be moved, a turn at most in each direction.
    pub fn exchange(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        cx: &mut Cx<'_>,
        buffer: &mut [u8],
    ) -> Progress {
        let more_up = self.upwards(now, connection, cx, buffer);
        let more_down = self.downwards(connection, cx);
        if let Some(until) = self.failed {
            let delivered = connection.unacknowledged() == 0;
            return if delivered || now >= until { Progress::Failed } else { Progress::Fails(until) };
        }
        match (self.ended && self.shut, more_up || more_down) {
            (true, _) => {
                self.whole = true;
                Progress::Done
            }
            (false, true) => Progress::More,
            (false, false) => Progress::Waits,
        }
    }

    /// From the socket into the send buffer, as far as that has room. True if there may be more at once.
    fn upwards(&mut self, now: Instant, connection: &mut Connection, cx: &mut Cx<'_>, buffer: &mut [u8]) -> bool {
        let mut left = TURN;
        while self.readable && !self.ended && self.failed.is_none() {
            let room = room(connection).min(buffer.len().min(left) as u64) as usize;
            if room == 0 {
                return left == 0;
            }
            match self.socket.read(&mut buffer[..room]) {
                Ok(0) if !self.deaf => {
                    self.ended = true;
                    connection.finish(cx);
                }
                Ok(len) if len > 0 => {
                    connection.write(cx, Bytes::copy_from_slice(&buffer[..len]));
                    self.up += len as u64;
                    left -= len;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !self.deaf => self.readable = false,
                Ok(_) | Err(_) => self.failed = Some(now + DELIVERY),
            }
        }
        if self.deaf && self.ended {
            self.failed.get_or_insert(now + DELIVERY);
        }
        false
    }

    /// From the receive buffer into the socket. A socket that takes nothing leaves the rest in the receive window. True if there may be
    /// more at once.
    fn downwards(&mut self, connection: &mut Connection, cx: &mut Cx<'_>) -> bool {
        if self.deaf || self.failed.is_some() {
            while connection.read(cx).is_some() {}
            return false;
        }
        let mut left = TURN;
        loop {
            while self.held_len < HELD
                && let Some(bytes) = connection.read(cx)
            {
                self.say(bytes);
            }
            let before = self.held_len;
            if !self.flush() {
                // The system still gives what came before the reset.
                (self.deaf, self.readable) = (true, true);
                return true;
            }
            left = left.saturating_sub(before - self.held_len);
            if self.held_len > 0 || before == 0 {
                break;
            }
            if left == 0 {
                return true;
            }
        }
        if self.held_len == 0 && connection.read_finished() && !self.shut {
            self.shut = true;
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        false
    }
}

/// Bytes that a connection takes now. A peer that is quicker than the paths does not fill the send buffer: as much waits there as is in flight,
/// for one acknowledgment may open the whole window.
fn room(connection: &Connection) -> u64 {
    let flying = connection.view().outstanding().bytes();
    let waiting = connection.unacknowledged().saturating_sub(flying);
    connection.writable().min(flying.max(AHEAD).saturating_sub(waiting))
}

impl Drop for Relay {
    /// A stream that was cut off ends with a reset: a program must not take what it has for the whole.
    fn drop(&mut self) {
        if self.whole {
            let _ = SockRef::from(&self.socket).set_linger(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_table::ConnectionTable;
    use crate::setup::ConnectionSettings;
    use anabranch_engine::FourTuple;
    use anabranch_engine::connection::PathSetup;
    use anabranch_engine::endpoint::Endpoint;
    use anabranch_scenario::PlugIn;
    use anabranch_units::{PathId, Side};

    /// Otherwise each of 500 downloads over slow paths held all of its send buffer.
    #[test]
    fn a_connection_that_sends_nothing_takes_little_into_its_buffer() {
        let mut table: ConnectionTable<()> = ConnectionTable::new(Endpoint::new(4), Side::Client).unwrap();
        let congestion = PlugIn { name: "cubic".to_owned(), parameters: Vec::new() };
        let connections = ConnectionSettings { congestion, orphan_timeout: Duration::from_secs(60), ecn: true };
        let ends = FourTuple { local: ([10, 1, 2, 1], 1_024).into(), remote: ([10, 1, 2, 129], 2).into() };
        let setup = connections.setup(4 << 20, vec![PathSetup::new(PathId(0), ends)]).unwrap();
        let handle = table.connect(Instant::ZERO, setup);
        let taken = table.with(Instant::ZERO, handle, |connection, cx| {
            while room(connection) > 0 {
                let piece = room(connection).min(10_000) as usize;
                assert_eq!(connection.write(cx, vec![0; piece].into()), piece);
            }
            (connection.unacknowledged(), connection.writable())
        });
        assert_eq!(taken, Some((AHEAD, (4 << 20) - AHEAD)));
    }
}
