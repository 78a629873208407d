//! Applications on a kernel's sockets: the same workloads as on the engine's connections.

use super::stream::{KernelStream, Report, wait};
use crate::{Clock, LabError, Namespace};
use anabranch_sim::{Opening, client_port};
use anabranch_units::{ConnId, Duration, Instant, Side};
use anabranch_workload::Workload;
use nix::poll::PollFlags;
use socket2::{Domain, Protocol as Number, Socket, Type};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// The protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Plain TCP.
    Tcp,
    /// Multipath TCP.
    Mptcp,
}

/// Applications on threads of their own, inside a host's namespace: one per connection.
#[derive(Debug)]
pub struct Application {
    told: Receiver<Report>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), LabError>>>,
}

/// The parameters with which applications reach their peers.
#[derive(Clone, Debug)]
pub struct Line {
    /// Client or server.
    pub side: Side,
    /// The server's address and port.
    pub server: SocketAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// Congestion control, by the kernel's name.
    pub congestion: String,
    /// Nagle's algorithm is off (TCP_NODELAY).
    pub no_delay: bool,
    /// The clock of the world's time.
    pub clock: Clock,
    /// When a client begins.
    pub start: Instant,
    /// When a client opens its connections; a server accepts all of them.
    pub opening: Opening,
    /// The client's address of the first subflow. Each connection has its own port there ([`client_port`]), by which
    /// both ends number it alike.
    pub from: IpAddr,
    /// Subflows are of both IP versions: sockets are of IPv6, with mapped addresses of IPv4 (RFC 4291 §2.5.5.2).
    pub mixed: bool,
}

impl Line {
    /// An address as the sockets name it.
    fn named(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(v4) if self.mixed => SocketAddr::new(v4.to_ipv6_mapped().into(), address.port()),
            _ => address,
        }
    }
}

/// The interval at which an idle application checks for the end of the run.
const NAP: Duration = Duration::from_millis(50);
/// Stack size of a thread that serves one connection.
const STACK: usize = 256 << 10;

impl Application {
    /// One connection for each of `workloads`, numbered in their order: as a client opens them, or as a server accepts
    /// them. A server listens when this returns.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn start(namespace: &Namespace, line: Line, workloads: Vec<Box<dyn Workload>>) -> Result<Self, LabError> {
        let (tell, told) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let listener = match line.side {
            Side::Client => None,
            Side::Server => Some(namespace.enter(|| listen(&line))?.map_err(LabError::system("opening a socket"))?),
        };
        let stopped = Arc::clone(&stop);
        let thread = namespace.spawn("application", move || {
            let (waiting, tickets) = (queue(workloads), AtomicU64::new(0));
            let crowd = Applications { line: &line, stop: &stopped, tell: &tell, waiting, tickets: &tickets };
            let outcome = match listener {
                Some(listener) => crowd.serve(&listener),
                None => crowd.connect(),
            };
            let _ = tell.send(Report::Done(outcome.map_err(|error| error.to_string())));
        })?;
        Ok(Self { told, stop, thread: Some(thread) })
    }

    /// The next report.
    pub fn poll(&self) -> Option<Report> {
        self.told.try_recv().ok()
    }
}

impl Drop for Application {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its outcome has been reported.
            let _ = thread.join();
        }
    }
}

/// An application that waits for its connection, with the connection's number.
type Party = (ConnId, Box<dyn Workload>);
type Waiting = Mutex<VecDeque<Party>>;

fn queue(workloads: Vec<Box<dyn Workload>>) -> Waiting {
    Mutex::new(workloads.into_iter().enumerate().map(|(n, workload)| (ConnId(n as u32), workload)).collect())
}

/// All applications of one host.
struct Applications<'a> {
    line: &'a Line,
    stop: &'a AtomicBool,
    tell: &'a Sender<Report>,
    waiting: Waiting,
    /// The next number that [`anabranch_workload::Stream::take_ticket`] gives.
    tickets: &'a AtomicU64,
}

impl Applications<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Party>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A server: one thread per accepted connection, with the application that the client's port names, or else the
    /// first that waits.
    fn serve(&self, listener: &Socket) -> io::Result<()> {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            // The guard must not live as long as the loop.
            let left = || self.queue().len();
            while left() > 0 {
                let Some((socket, port)) = accept(listener, self)? else { break };
                let mut queue = self.queue();
                let place = queue.iter().position(|(id, _)| client_port(*id) == port).unwrap_or(0);
                let Some((id, workload)) = queue.remove(place) else { break };
                drop(queue);
                threads.push(spawn(scope, move || self.run(id, socket, workload, Place(None)))?);
            }
            // The listener outlives the threads, because further subflows need it.
            threads.into_iter().try_for_each(finish)
        })
    }

    /// A client.
    fn connect(&self) -> io::Result<()> {
        self.line.clock.wait(self.line.start, &[]);
        match &self.line.opening {
            Opening::AtOnce(count) => self.connect_by_turns(*count),
            Opening::Served(count) => self.connect_as_served(*count),
            Opening::At(times) => self.connect_at(times),
        }
    }

    /// As many threads as simultaneous connections; each takes the next application when one is done.
    fn connect_by_turns(&self, count: usize) -> io::Result<()> {
        thread::scope(|scope| {
            let one_by_one = || {
                while let Some((party, socket)) = self.begin()? {
                    if !self.run_connected(party, socket, Place(None))? {
                        break;
                    }
                }
                Ok(())
            };
            let threads = (0..count).map(|_| spawn(scope, one_by_one)).collect::<io::Result<Vec<_>>>()?;
            threads.into_iter().try_for_each(finish)
        })
    }

    /// One thread per connection, started when fewer than `count` others are unserved.
    fn connect_as_served(&self, count: usize) -> io::Result<()> {
        let (tell, served) = channel();
        thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut busy = 0;
            while !self.stopped() {
                if busy == count {
                    // Every thread reports once; the end of the run may come before that.
                    busy -= usize::from(served.recv_timeout(std::time::Duration::from_nanos(NAP.as_nanos())).is_ok());
                    continue;
                }
                let Some((party, socket)) = self.begin()? else { break };
                busy += 1;
                let place = Place(Some(tell.clone()));
                threads.push(spawn(scope, move || self.run_connected(party, socket, place).map(drop))?);
            }
            threads.into_iter().try_for_each(finish)
        })
    }

    /// One thread per connection, started at its time.
    fn connect_at(&self, times: &[Instant]) -> io::Result<()> {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for at in times {
                while self.line.clock.now() < *at && !self.stopped() {
                    self.line.clock.wait((*at).min(self.line.clock.now() + NAP), &[]);
                }
                if self.stopped() {
                    break;
                }
                let Some((party, socket)) = self.begin()? else { break };
                threads.push(spawn(scope, move || self.run_connected(party, socket, Place(None)).map(drop))?);
            }
            threads.into_iter().try_for_each(finish)
        })
    }

    /// A client's next application, with a connecting socket. SYNs leave in the order of the applications.
    fn begin(&self) -> io::Result<Option<(Party, Socket)>> {
        let mut queue = self.queue();
        let Some(party) = queue.pop_front() else { return Ok(None) };
        let socket = open(self.line)?;
        // A previous connection from this port may still be in TIME-WAIT.
        socket.set_reuse_address(true)?;
        let from = SocketAddr::new(self.line.from, client_port(party.0));
        socket.bind(&self.line.named(from).into())?;
        match socket.connect(&self.line.named(self.line.server).into()) {
            Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => Err(error),
            _ => Ok(Some((party, socket))),
        }
    }

    /// Runs one application once its socket is connected; false if the run ends before.
    fn run_connected(&self, (id, workload): Party, socket: Socket, place: Place) -> io::Result<bool> {
        let connected = connected(&socket, self)?;
        if connected {
            self.run(id, socket, workload, place)?;
        }
        Ok(connected)
    }

    /// Runs one application from the connection's begin to its end.
    fn run(&self, id: ConnId, socket: Socket, mut workload: Box<dyn Workload>, mut place: Place) -> io::Result<()> {
        let clock = self.line.clock;
        let mut io = KernelStream::new(socket, clock, id, self.tell.clone(), self.tickets);
        workload.on_established(clock.now(), &mut io);
        while !self.stopped() {
            io.check()?;
            if let Some(fault) = workload.fault() {
                return Err(io::Error::other(fault.to_string()));
            }
            if workload.is_served() {
                place.leave();
            }
            if workload.is_done() && io.is_over() {
                return Ok(());
            }
            let now = clock.now();
            if workload.next_wakeup().is_some_and(|at| at <= now) {
                io.left_unread = false;
                workload.on_wakeup(now, &mut io);
                continue;
            }
            let nap = workload.next_wakeup().map_or(NAP, |at| at.since(now).min(NAP));
            let ready = io.wait(nap)?;
            if ready.intersects(PollFlags::POLLOUT) {
                io.blocked = false;
                workload.on_writable(clock.now(), &mut io);
            }
            if ready.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR) {
                io.left_unread = true;
                workload.on_readable(clock.now(), &mut io);
            }
        }
        // The run ends in the middle of a transfer: a reset informs the peer at once.
        io.reset_on_close()
    }
}

/// A slot among simultaneous connections; released once, at the latest on drop.
struct Place(Option<Sender<()>>);

impl Place {
    fn leave(&mut self) {
        if let Some(tell) = self.0.take() {
            // The receiver may have stopped.
            let _ = tell.send(());
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

fn spawn<'scope, 'env>(
    scope: &'scope thread::Scope<'scope, 'env>,
    work: impl FnOnce() -> io::Result<()> + Send + 'scope,
) -> io::Result<thread::ScopedJoinHandle<'scope, io::Result<()>>> {
    thread::Builder::new().name("connection".into()).stack_size(STACK).spawn_scoped(scope, work)
}

fn finish(thread: thread::ScopedJoinHandle<'_, io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("an application panicked")))
}

fn open(line: &Line) -> io::Result<Socket> {
    let number = match line.protocol {
        Protocol::Tcp => Number::TCP,
        Protocol::Mptcp => Number::MPTCP,
    };
    let socket = Socket::new(Domain::for_address(line.named(line.server)), Type::STREAM, Some(number))?;
    socket.set_tcp_congestion(line.congestion.as_bytes())?;
    socket.set_tcp_nodelay(line.no_delay)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn listen(line: &Line) -> io::Result<Socket> {
    let socket = open(line)?;
    socket.set_reuse_address(true)?;
    // On every address: the kernel accepts an MP_JOIN only on a listening one.
    let any = if line.named(line.server).is_ipv6() {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    socket.bind(&SocketAddr::new(any, line.server.port()).into())?;
    socket.listen(1024)?;
    Ok(socket)
}

/// The next accepted connection, with its client's port; `None` if the run ends first.
fn accept(listener: &Socket, crowd: &Applications<'_>) -> io::Result<Option<(Socket, u16)>> {
    while !crowd.stopped() {
        if wait(listener, PollFlags::POLLIN, NAP)?.is_empty() {
            continue;
        }
        match listener.accept() {
            Ok((socket, client)) => {
                socket.set_nonblocking(true)?;
                socket.set_tcp_nodelay(crowd.line.no_delay)?;
                return Ok(Some((socket, client.as_socket().map_or(0, |client| client.port()))));
            }
            // The connection was reset before it was accepted.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Waits until a socket is connected; false if the run ends before.
fn connected(socket: &Socket, crowd: &Applications<'_>) -> io::Result<bool> {
    while !crowd.stopped() {
        if !wait(socket, PollFlags::POLLOUT, NAP)?.is_empty() {
            return socket.take_error()?.map_or(Ok(true), Err);
        }
    }
    Ok(false)
}
