//! Trains of datagrams between two kernels: they measure the paths and the loop.

use crate::kernel::{Addresses, KernelHost, KernelSettings};
use crate::{Exchange, LabError, LatenessReport, Middlebox, Outside};
use anabranch_engine::Settings;
use anabranch_network::Topology;
use anabranch_sim::{Checks, End, FlowSetup, World, WorldSetup};
use anabranch_units::{Direction, Duration, Instant, Side};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;

/// One datagram to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shot {
    /// The earliest time after the first datagram.
    pub after: Duration,
    /// Size of its IP packet, [`SMALLEST`] to the MTU.
    pub size: u16,
}

/// One datagram that arrived. Both times are of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The index of its shot in the train.
    pub index: usize,
    /// Just before the sender's kernel got it.
    pub sent: Instant,
    /// When the receiver's kernel read it from its device.
    pub received: Instant,
}

impl Sample {
    /// The one-way delay.
    pub fn delay(&self) -> Duration {
        self.received.since(self.sent)
    }
}

/// Two kernels, the paths between them, and a socket at each end of each path. All of it ends with this value.
#[derive(Debug)]
pub struct Probe {
    exchange: Exchange,
    addresses: Addresses,
    server: UdpSocket,
    /// One socket per path.
    clients: Vec<UdpSocket>,
    trains: u32,
}

/// Smallest IP packet of a datagram: header of either family, train, index, time of sending.
pub const SMALLEST: u16 = 64;
/// The index of the datagram that ends a train.
const END: u32 = u32::MAX;
/// The interval at which it is repeated until it arrives.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(20);
/// The interval at which a receiver checks whether its train was given up.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
/// The interval at which the loop checks whether a train is over.
const SLICE: Duration = Duration::from_millis(2);
/// The longest wait beyond the expected time.
const PATIENCE: Duration = Duration::from_secs(1);
/// The receive buffer: it must not drop delivered packets.
const BUFFER: usize = 64 << 20;

impl Probe {
    /// Sets up a world of `topology` alone, whose time begins now.
    ///
    /// # Errors
    /// A lack of privilege, or a failed system call.
    pub fn new(topology: &Topology, seed: u64, v6: bool) -> Result<Self, LabError> {
        let addresses = Addresses { v6: vec![v6; topology.paths.len()] };
        let over: Vec<usize> = (0..addresses.paths()).collect();
        // Devices with packets of 1500 bytes: payload, 52 bytes of header and timestamps.
        let settings = Settings { mptcp: false, mss: 1448, ..Settings::default() };
        let settings = KernelSettings::new(&settings, "");
        let host = |side| KernelHost::new(side, addresses.clone(), &over, &[], &settings);
        let (client, server) = (host(Side::Client)?, host(Side::Server)?);
        let socket = |host: &KernelHost, address| {
            host.namespace.enter(|| open(address))?.map_err(LabError::system("opening a socket for probes"))
        };
        let clients = over.iter().map(|path| socket(&client, addresses.client(*path))).collect::<Result<_, _>>()?;
        let flow = FlowSetup::between(End::Outside, End::Outside, addresses.routes());
        let setup = WorldSetup {
            topology: topology.clone(),
            seed,
            timeline: Vec::new(),
            sources: Vec::new(),
            checks: Checks::default(),
        };
        let listener = socket(&server, addresses.server(0))?;
        let outside = vec![Outside::new(Side::Client, client), Outside::new(Side::Server, server)];
        let mut exchange = Exchange::new(World::new(setup, vec![flow]), outside);
        exchange.captured = false;
        Ok(Self { exchange, addresses, server: listener, clients, trains: 0 })
    }

    /// Sends a train over a path and returns the arrivals in their order. `rest` is the time that the path gets after
    /// the last shot before the train is over; packets that are not overtaken need none.
    ///
    /// # Errors
    /// A socket or the loop fails.
    pub fn send(
        &mut self,
        path: usize,
        direction: Direction,
        shots: &[Shot],
        rest: Duration,
    ) -> Result<Vec<Sample>, LabError> {
        self.trains += 1;
        let (client, address) = (&self.clients[path], self.addresses.client(path));
        let (from, to, address) = match direction {
            Direction::Down => (&self.server, client, address),
            Direction::Up => (client, &self.server, self.addresses.server(path)),
        };
        let port = to.local_addr().map_err(LabError::system("asking a socket for its port"))?.port();
        let train = Train {
            number: self.trains,
            to: SocketAddr::new(address, port),
            header: if self.addresses.v6[path] { 48 } else { 28 },
            shots,
            rest,
            over: AtomicBool::new(false),
        };
        let exchange = &mut self.exchange;
        let sampled = thread::scope(|scope| {
            let receiver = scope.spawn(|| train.receive(to));
            let sender = scope.spawn(|| train.fire(from));
            while !(receiver.is_finished() && sender.is_finished()) {
                let until = exchange.clock.now() + SLICE;
                if let Err(error) = exchange.run(until, &mut ()) {
                    train.over.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            let broken = || Err(io::Error::other("a thread of the probe panicked"));
            let fired = sender.join().unwrap_or_else(|_| broken());
            let received = receiver.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the probe panicked")));
            Ok(fired.and(received))
        })?;
        sampled.map_err(LabError::system("probing a path"))
    }

    /// Puts a middlebox between a host and the network.
    pub fn set_middlebox(&mut self, side: Side, middlebox: Middlebox) {
        if let Some(outside) = self.exchange.outside.iter_mut().find(|outside| outside.side == side) {
            outside.middlebox = Some(middlebox);
        }
    }

    /// The lateness of packets so far.
    pub fn lateness(&self) -> LatenessReport {
        self.exchange.lateness.report()
    }

    /// Packets that devices dropped because the loop did not read them in time.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub fn device_drops(&self) -> Result<u64, LabError> {
        self.exchange.outside.iter().map(|outside| outside.host.device_drops()).sum()
    }
}

fn open(address: std::net::IpAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    // Only root may exceed the system's limit; otherwise a busy machine may lose some packets.
    if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
    }
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// A train under way.
struct Train<'a> {
    number: u32,
    to: SocketAddr,
    /// Bytes of the IP and UDP headers.
    header: u16,
    shots: &'a [Shot],
    rest: Duration,
    /// The train arrived, or was given up.
    over: AtomicBool,
}

impl Train<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn fire(&self, from: &UdpSocket) -> io::Result<()> {
        let fired = self.fire_all(from);
        self.over.store(true, Ordering::Relaxed);
        fired
    }

    fn fire_all(&self, from: &UdpSocket) -> io::Result<()> {
        let begun = std::time::Instant::now();
        let mut buffer = [0; 1500];
        for (n, shot) in self.shots.iter().enumerate() {
            let early = std::time::Duration::from_nanos(shot.after.as_nanos()).checked_sub(begun.elapsed());
            if let Some(early) = early {
                thread::sleep(early);
            }
            self.shoot(from, n as u32, shot.size, &mut buffer)?;
        }
        thread::sleep(std::time::Duration::from_nanos(self.rest.as_nanos()));
        let ended = std::time::Instant::now();
        let patience = std::time::Duration::from_nanos((self.rest + PATIENCE).as_nanos());
        // The queue may be full at first. A later copy is behind all other packets.
        while !self.is_over() && ended.elapsed() < patience {
            self.shoot(from, END, SMALLEST, &mut buffer)?;
            thread::sleep(AGAIN);
        }
        Ok(())
    }

    fn shoot(&self, from: &UdpSocket, index: u32, size: u16, buffer: &mut [u8; 1500]) -> io::Result<()> {
        let len = usize::from(size.clamp(SMALLEST, 1500) - self.header);
        buffer[..4].copy_from_slice(&self.number.to_be_bytes());
        buffer[4..8].copy_from_slice(&index.to_be_bytes());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        buffer[8..16].copy_from_slice(&(now.as_nanos() as u64).to_be_bytes());
        match from.send_to(&buffer[..len], self.to) {
            // The device's queue is full because the loop is late.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::StorageFull) => Ok(()),
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => Ok(()),
            sent => sent.map(|_| ()),
        }
    }

    fn receive(&self, to: &UdpSocket) -> io::Result<Vec<Sample>> {
        let mut samples = Vec::with_capacity(self.shots.len());
        let mut buffer = [0; 1500];
        while !self.is_over() {
            let Some((len, received)) = receive_stamped(to, &mut buffer)? else { continue };
            let Some((number, index, sent)) = parse(&buffer[..len]) else { continue };
            match index {
                _ if number != self.number => {}
                END => break,
                index => samples.push(Sample { index: index as usize, sent, received }),
            }
        }
        self.over.store(true, Ordering::Relaxed);
        Ok(samples)
    }
}

fn parse(datagram: &[u8]) -> Option<(u32, u32, Instant)> {
    let (number, rest) = datagram.split_first_chunk()?;
    let (index, rest) = rest.split_first_chunk()?;
    let (sent, _) = rest.split_first_chunk()?;
    let sent = Instant::from_nanos(u64::from_be_bytes(*sent));
    Some((u32::from_be_bytes(*number), u32::from_be_bytes(*index), sent))
}

/// A datagram's length and its time of reception by the kernel; `None` after a while without one.
fn receive_stamped(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Option<(usize, Instant)>> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut pieces = [IoSliceMut::new(buffer)];
    let message = match recvmsg::<()>(socket.as_raw_fd(), &mut pieces, Some(&mut control), MsgFlags::empty()) {
        Ok(message) => message,
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let stamp = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(at) => Some(std::time::Duration::from(at)),
        _ => None,
    });
    Ok(stamp.map(|at| (message.bytes, Instant::from_nanos(at.as_nanos() as u64))))
}
