//! A kernel's socket as its application sees it.

use crate::Clock;
use anabranch_trace::Event;
use anabranch_units::{ConnId, Duration, Instant, Range, Rate};
use anabranch_workload::Stream;
use bytes::{Bytes, BytesMut};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// A report of the applications.
#[derive(Clone, Debug)]
pub enum Report {
    /// An event, its time and its connection.
    Event(Instant, ConnId, Event),
    /// All applications are done; the first error, if there was one.
    Done(Result<(), String>),
}

/// Waits up to `nap` for one of the `wanted` events; returns those that occurred.
pub(super) fn wait(socket: &Socket, wanted: PollFlags, nap: Duration) -> io::Result<PollFlags> {
    let mut polled = [PollFd::new(socket.as_fd(), wanted)];
    let nap = PollTimeout::try_from(nap.as_millis().max(1)).unwrap_or(PollTimeout::MAX);
    poll(&mut polled, nap)?;
    Ok(polled[0].revents().unwrap_or(PollFlags::empty()))
}

/// Reports the application's actions as the events that the engine's connection would record.
pub(super) struct KernelStream<'a> {
    socket: Socket,
    clock: Clock,
    id: ConnId,
    tell: Sender<Report>,
    written: u64,
    read: u64,
    /// The socket accepted less than was offered.
    pub blocked: bool,
    /// The application has left bytes unread, and reads no more until its next wake-up.
    pub left_unread: bool,
    /// The peer has finished.
    ended: bool,
    error: Option<io::Error>,
    buffer: BytesMut,
    /// The host's tickets.
    tickets: &'a AtomicU64,
}

/// Bytes per read.
const PIECE: usize = 256 << 10;
/// Size of the memory that pieces are cut from.
const CHUNK: usize = 4 * PIECE;

impl<'a> KernelStream<'a> {
    pub fn new(socket: Socket, clock: Clock, id: ConnId, tell: Sender<Report>, tickets: &'a AtomicU64) -> Self {
        Self {
            socket,
            clock,
            id,
            tell,
            written: 0,
            read: 0,
            blocked: false,
            left_unread: false,
            ended: false,
            error: None,
            buffer: BytesMut::new(),
            tickets,
        }
    }

    fn event(&self, event: Event) {
        // After the end of a run there is no receiver.
        let _ = self.tell.send(Report::Event(self.clock.now(), self.id, event));
    }

    /// Waits up to `nap` for the events that the application needs.
    pub fn wait(&self, nap: Duration) -> io::Result<PollFlags> {
        let mut wanted = PollFlags::empty();
        if !self.ended && !self.left_unread {
            wanted |= PollFlags::POLLIN;
        }
        if self.blocked {
            wanted |= PollFlags::POLLOUT;
        }
        wait(&self.socket, wanted, nap)
    }

    /// Both ends have finished.
    pub fn is_over(&self) -> bool {
        self.ended
    }

    /// # Errors The socket's error.
    pub fn check(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Makes the close send a reset.
    pub fn reset_on_close(&self) -> io::Result<()> {
        self.socket.set_linger(Some(std::time::Duration::ZERO))
    }

    fn failed(&mut self, error: io::Error) {
        self.ended = true;
        self.error.get_or_insert(error);
    }
}

impl Stream for KernelStream<'_> {
    fn write(&mut self, data: Bytes) -> usize {
        match self.socket.write(&data) {
            Ok(taken) => {
                self.blocked = taken < data.len();
                self.event(Event::Written(Range::new(self.written, self.written + taken as u64)));
                self.written += taken as u64;
                taken
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.blocked = true;
                0
            }
            Err(error) => {
                self.failed(error);
                0
            }
        }
    }

    fn request_segment(&mut self, rate: Rate, size: u64) {
        self.event(Event::SegmentRequested { bps: rate.as_bps(), size });
    }

    fn writable(&self) -> u64 {
        if self.blocked || self.error.is_some() { 0 } else { u64::MAX }
    }

    fn finish(&mut self) {
        self.event(Event::WriteEnd(self.written));
        if let Err(error) = self.socket.shutdown(Shutdown::Write) {
            self.failed(error);
        }
    }

    fn read(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if self.buffer.len() < PIECE {
            self.buffer = BytesMut::zeroed(CHUNK);
        }
        match self.socket.read(&mut self.buffer[..PIECE]) {
            Ok(0) => {
                self.ended = true;
                None
            }
            Ok(len) => {
                self.event(Event::Delivered(Range::new(self.read, self.read + len as u64)));
                self.read += len as u64;
                Some(self.buffer.split_to(len).freeze())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.left_unread = false;
                None
            }
            Err(error) => {
                self.failed(error);
                None
            }
        }
    }

    fn read_finished(&self) -> bool {
        self.ended && self.error.is_none()
    }

    fn take_ticket(&mut self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }
}
