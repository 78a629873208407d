//! An application on a kernel's socket: the same workloads as on the engine's connections.

use crate::{Clock, LabError, Namespace};
use anabranch_trace::Event;
use anabranch_units::{Duration, Instant, Range, Side};
use anabranch_workload::{Stream, Workload};
use bytes::{Bytes, BytesMut};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol as Number, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// What a socket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Plain TCP.
    Tcp,
    /// Multipath TCP.
    Mptcp,
}

/// What an application tells.
#[derive(Clone, Debug)]
pub enum Told {
    /// Something that a run records.
    Event(Instant, Event),
    /// It is done; the error, if there was one.
    Done(Result<(), String>),
}

/// An application on a thread of its own, inside a host's namespace.
#[derive(Debug)]
pub struct Application {
    told: Receiver<Told>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), LabError>>>,
}

/// What an application needs to reach its peer.
#[derive(Clone, Debug)]
pub struct Line {
    /// Client or server.
    pub side: Side,
    /// The server's address and port.
    pub server: SocketAddr,
    /// What to speak.
    pub protocol: Protocol,
    /// Congestion control, by the kernel's name.
    pub congestion: String,
    /// The world's time.
    pub clock: Clock,
    /// When a client connects.
    pub start: Instant,
}

/// How long an idle application sleeps before it looks whether it shall stop.
const NAP: Duration = Duration::from_millis(50);

impl Application {
    /// A server's listens when this returns; a client's connects.
    ///
    /// # Errors
    /// The socket is refused.
    pub fn start(namespace: &Namespace, line: Line, workload: Box<dyn Workload>) -> Result<Self, LabError> {
        let (tell, told) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let socket = namespace.enter(|| prepare(&line))?.map_err(LabError::system("opening a socket"))?;
        let stopped = Arc::clone(&stop);
        let thread = namespace.spawn("application", move || {
            let outcome = serve(socket, &line, workload, &stopped, &tell);
            let _ = tell.send(Told::Done(outcome.map_err(|error| error.to_string())));
        })?;
        Ok(Self { told, stop, thread: Some(thread) })
    }

    /// What it has told since the last call.
    pub fn poll(&self) -> Option<Told> {
        self.told.try_recv().ok()
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its outcome was told.
            let _ = thread.join();
        }
    }
}

fn prepare(line: &Line) -> io::Result<Socket> {
    let number = match line.protocol {
        Protocol::Tcp => Number::TCP,
        Protocol::Mptcp => Number::MPTCP,
    };
    let socket = Socket::new(Domain::for_address(line.server), Type::STREAM, Some(number))?;
    socket.set_tcp_congestion(line.congestion.as_bytes())?;
    if line.side == Side::Server {
        socket.set_reuse_address(true)?;
        // On every address: the kernel takes an MP_JOIN only where one listens.
        let any = if line.server.is_ipv6() { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
        socket.bind(&SocketAddr::new(any, line.server.port()).into())?;
        socket.listen(1024)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn serve(
    socket: Socket,
    line: &Line,
    mut workload: Box<dyn Workload>,
    stop: &AtomicBool,
    tell: &Sender<Told>,
) -> io::Result<()> {
    let Some((socket, _listener)) = connect(socket, line, stop)? else { return Ok(()) };
    let mut io = KernelStream {
        socket,
        clock: line.clock,
        tell,
        written: 0,
        read: 0,
        blocked: false,
        ended: false,
        error: None,
        buffer: BytesMut::new(),
    };
    workload.on_established(line.clock.now(), &mut io);
    while !stop.load(Ordering::Relaxed) {
        if let Some(error) = io.error.take() {
            return Err(error);
        }
        if let Some(fault) = workload.fault() {
            return Err(io::Error::other(fault.to_string()));
        }
        if workload.is_done() && io.is_over() {
            return Ok(());
        }
        let now = line.clock.now();
        if workload.next_wakeup().is_some_and(|at| at <= now) {
            workload.on_wakeup(now, &mut io);
            continue;
        }
        let nap = workload.next_wakeup().map_or(NAP, |at| at.since(now).min(NAP));
        let ready = io.wait(nap)?;
        if ready.intersects(PollFlags::POLLOUT) {
            io.blocked = false;
            workload.on_writable(line.clock.now(), &mut io);
        }
        if ready.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) {
            workload.on_readable(line.clock.now(), &mut io);
        }
    }
    // Told to stop in the middle: a reset tells the peer at once.
    io.socket.set_linger(Some(std::time::Duration::ZERO))
}

/// A connected socket, and a server's listener, which further subflows need; `None` if it was stopped before.
fn connect(socket: Socket, line: &Line, stop: &AtomicBool) -> io::Result<Option<(Socket, Option<Socket>)>> {
    let wanted = match line.side {
        Side::Client => {
            line.clock.wait(line.start, &[]);
            match socket.connect(&line.server.into()) {
                Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => return Err(error),
                _ => PollFlags::POLLOUT,
            }
        }
        Side::Server => PollFlags::POLLIN,
    };
    while !stop.load(Ordering::Relaxed) {
        if wait(&socket, wanted, NAP)?.is_empty() {
            continue;
        }
        if line.side == Side::Client {
            return match socket.take_error()? {
                Some(error) => Err(error),
                None => Ok(Some((socket, None))),
            };
        }
        let (accepted, _) = socket.accept()?;
        accepted.set_nonblocking(true)?;
        return Ok(Some((accepted, Some(socket))));
    }
    Ok(None)
}

fn wait(socket: &Socket, wanted: PollFlags, nap: Duration) -> io::Result<PollFlags> {
    let mut polled = [PollFd::new(socket.as_fd(), wanted)];
    let nap = PollTimeout::try_from(nap.as_millis().max(1)).unwrap_or(PollTimeout::MAX);
    poll(&mut polled, nap)?;
    Ok(polled[0].revents().unwrap_or(PollFlags::empty()))
}

/// A socket as its application sees it. What an application does is told as the engine's connection would.
struct KernelStream<'a> {
    socket: Socket,
    clock: Clock,
    tell: &'a Sender<Told>,
    written: u64,
    read: u64,
    /// The socket took less than was offered.
    blocked: bool,
    /// The peer has finished.
    ended: bool,
    error: Option<io::Error>,
    buffer: BytesMut,
}

/// Read at once.
const PIECE: usize = 256 << 10;

impl KernelStream<'_> {
    fn event(&self, event: Event) {
        // Nobody listens any more when a run is over.
        let _ = self.tell.send(Told::Event(self.clock.now(), event));
    }

    fn wait(&self, nap: Duration) -> io::Result<PollFlags> {
        let mut wanted = PollFlags::empty();
        if !self.ended {
            wanted |= PollFlags::POLLIN;
        }
        if self.blocked {
            wanted |= PollFlags::POLLOUT;
        }
        wait(&self.socket, wanted, nap)
    }

    /// The peer has finished, and so have we.
    fn is_over(&self) -> bool {
        self.ended
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
        self.buffer.resize(PIECE, 0);
        match self.socket.read(&mut self.buffer) {
            Ok(0) => {
                self.ended = true;
                None
            }
            Ok(len) => {
                self.event(Event::Delivered(Range::new(self.read, self.read + len as u64)));
                self.read += len as u64;
                Some(self.buffer.split_to(len).freeze())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => {
                self.failed(error);
                None
            }
        }
    }

    fn read_finished(&self) -> bool {
        self.ended && self.error.is_none()
    }
}
