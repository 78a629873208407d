//! A Linux kernel as the host under test: a namespace with one TUN device, and sockets in it.

use super::settings;
use anabranch_conformance::play::world::{SERVER_PORT, World, address};
use anabranch_conformance::play::{Got, Sent, Status, Subject};
use anabranch_conformance::script::{Address, After, Call, Closed, Counter, Most, Script};
use anabranch_lab::kernel::counters;
use anabranch_lab::{LabError, Namespace, Tun};
use anabranch_sim::Raw;
use anabranch_wire::VnetHeader;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// One jiffy of a kernel, and the delay of a busy machine.
const EARLY: Duration = Duration::from_millis(10);
const LATE: Duration = Duration::from_millis(200);
/// How long a device may take to come up.
const READY: Duration = Duration::from_secs(2);

/// A kernel with the connection of the script.
pub struct KernelHost {
    script: Script,
    namespace: Namespace,
    device: Tun,
    begun: Instant,
    before: BTreeMap<String, u64>,
    sent: VecDeque<Sent>,
    listener: Option<Socket>,
    socket: Option<Socket>,
    /// The host has been connected.
    established: bool,
    closed: Option<Closed>,
    /// The local direction was ended.
    finished: bool,
}

/// A new device carries nothing before the kernel has noticed it and it has its addresses.
fn wait_for_the_link(namespace: &Namespace, family: &str, v6: bool) -> Result<(), String> {
    let begun = Instant::now();
    let routes = |table| namespace.command("ip", &[family, "route", "show", "table", table], "").map_err(text);
    let ready = || {
        let local = routes("local")?;
        let known = |index| local.contains(&format!("local {} ", address(v6, Address::Local(index))));
        Ok::<bool, String>((0..settings::ADDRESSES).all(known) && !routes("main")?.contains("linkdown"))
    };
    while !ready()? {
        if begun.elapsed() > READY {
            return Err("the device does not come up".into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn text(error: LabError) -> String {
    error.to_string()
}

impl KernelHost {
    pub fn new(script: &Script) -> Result<Self, String> {
        let namespace = Namespace::new().map_err(text)?;
        for (name, value) in settings::sysctls(&script.settings) {
            let file = format!("/proc/sys/{}", name.replace('.', "/"));
            let written = namespace.enter(|| std::fs::write(&file, &value)).map_err(text)?;
            written.map_err(|error| format!("setting {name} to {value}: {error}"))?;
        }
        let mtu = settings::mtu(&script.settings);
        let device = namespace.enter(|| Tun::open(settings::DEVICE, mtu, false)).map_err(text)?.map_err(text)?;
        let family = if script.settings.ipv6 { "-6" } else { "-4" };
        namespace.command("ip", &[family, "-batch", "-"], &settings::script(script)).map_err(text)?;
        wait_for_the_link(&namespace, family, script.settings.ipv6)?;
        let before = counters(&namespace).map_err(text)?;
        Ok(Self {
            script: script.clone(),
            namespace,
            device,
            begun: Instant::now(),
            before,
            sent: VecDeque::new(),
            listener: None,
            socket: None,
            established: false,
            closed: None,
            finished: false,
        })
    }

    fn open(&self) -> Result<Socket, String> {
        let settings = &self.script.settings;
        let protocol = if settings.mptcp { Protocol::MPTCP } else { Protocol::TCP };
        let domain = if settings.ipv6 { Domain::IPV6 } else { Domain::IPV4 };
        let open = || -> io::Result<Socket> {
            let socket = Socket::new(domain, Type::STREAM, Some(protocol))?;
            socket.set_nonblocking(true)?;
            socket.set_reuse_address(true)?;
            self.adjust(&socket)?;
            Ok(socket)
        };
        self.namespace.enter(open).map_err(text)?.map_err(|error| format!("opening a socket: {error}"))
    }

    fn adjust(&self, socket: &Socket) -> io::Result<()> {
        let settings = &self.script.settings;
        socket.set_tcp_congestion(settings.congestion.as_bytes())?;
        socket.set_tcp_nodelay(!settings.nagle)?;
        if let Some(time) = settings.keep_alive {
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(time).with_interval(time))?;
        }
        Ok(())
    }

    fn listen(&mut self) -> Result<(), String> {
        let socket = self.open()?;
        // On every address, because a kernel accepts joins only on a listening one.
        let any: IpAddr =
            if self.script.settings.ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let bound = socket.bind(&SockAddr::from(SocketAddr::new(any, SERVER_PORT)));
        bound.and_then(|()| socket.listen(16)).map_err(|error| format!("listening: {error}"))?;
        self.listener = Some(socket);
        Ok(())
    }

    fn connect(&mut self) -> Result<(), String> {
        let socket = self.open()?;
        let path = &World::new(&self.script).paths[0];
        let local = SocketAddr::new(path.local, path.local_port.unwrap_or(0));
        socket.bind(&local.into()).map_err(|error| format!("binding to {local}: {error}"))?;
        match socket.connect(&path.peer.into()) {
            Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => Err(format!("connecting: {error}")),
            _ => {
                self.socket = Some(socket);
                Ok(())
            }
        }
    }

    fn accept(&mut self) -> Result<(), String> {
        if self.socket.is_some() {
            return Ok(());
        }
        let listener = self.listener.as_ref().ok_or("nobody listens")?;
        let (socket, _) = listener.accept().map_err(|error| format!("accepting: {error}"))?;
        socket.set_nonblocking(true).and_then(|()| self.adjust(&socket)).map_err(|error| error.to_string())?;
        (self.socket, self.established) = (Some(socket), true);
        Ok(())
    }

    fn socket(&self) -> Result<&Socket, String> {
        self.socket.as_ref().ok_or_else(|| "there is no socket".into())
    }

    fn ip(&self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.namespace.command("ip", &words, "").map(drop).map_err(text)
    }

    fn address(&self, whose: Address) -> IpAddr {
        address(self.script.settings.ipv6, whose)
    }

    fn broken(&mut self, error: &io::Error) {
        self.closed = match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Some(Closed::Reset),
            ErrorKind::TimedOut | ErrorKind::HostUnreachable => Some(Closed::TimedOut),
            ErrorKind::ConnectionRefused => Some(Closed::Refused),
            _ => self.closed,
        };
    }

    /// The output of `ss` with `arguments`.
    fn sockets(&self, arguments: &[&str]) -> Result<String, String> {
        self.namespace.command("ss", arguments, "").map_err(text)
    }

    fn look_for_the_end(&mut self) -> Result<(), String> {
        if self.closed.is_some() {
            return Ok(());
        }
        if let Some(socket) = &self.socket {
            let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN | PollFlags::POLLOUT)];
            let _ = poll(&mut polled, PollTimeout::ZERO);
            let came = polled[0].revents().unwrap_or(PollFlags::empty());
            if let Some(error) = socket.take_error().map_err(|error| error.to_string())? {
                self.broken(&error);
                return Ok(());
            }
            self.established |= came.contains(PollFlags::POLLOUT) && socket.peer_addr().is_ok();
        }
        if self.finished {
            let alive = |line: &&str| !line.starts_with("LISTEN") && !line.starts_with("TIME-WAIT");
            if self.sockets(&["-Htan"])?.lines().all(|line| !alive(&line)) {
                self.closed = Some(Closed::Finished);
            }
        }
        Ok(())
    }
}

impl Subject for KernelHost {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn receive(&mut self, until: Duration) -> Result<Option<Sent>, String> {
        loop {
            if let Some(sent) = self.sent.pop_front() {
                return Ok(Some(sent));
            }
            while let Some(Raw { bytes, .. }) = self.device.read().map_err(|error| error.to_string())? {
                self.sent.push_back(Sent { at: self.now(), bytes: bytes.to_vec() });
            }
            let left = until.saturating_sub(self.now());
            if self.sent.is_empty() && left.is_zero() {
                return Ok(None);
            }
            if self.sent.is_empty() {
                // poll counts milliseconds; the rest below one millisecond is spent without it.
                let nap = PollTimeout::try_from(left.as_millis()).unwrap_or(PollTimeout::MAX);
                let mut polled = [PollFd::new(self.device.as_fd(), PollFlags::POLLIN)];
                poll(&mut polled, nap).map_err(|error| error.to_string())?;
            }
        }
    }

    fn inject(&mut self, bytes: &[u8]) -> Result<(), String> {
        let raw = Raw { bytes: bytes.to_vec().into(), left: VnetHeader::default() };
        self.device.write(&raw).map_err(|error| error.to_string())
    }

    fn call(&mut self, call: &Call, data: Vec<u8>) -> Result<(), String> {
        let said = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
        match *call {
            Call::Listen => self.listen(),
            Call::Connect => self.connect(),
            Call::Accept => self.accept(),
            Call::Write(_) | Call::WriteText(_) => match self.socket()?.write(&data) {
                Ok(taken) if taken == data.len() => Ok(()),
                Ok(taken) => Err(format!("only {taken} of {} bytes were taken", data.len())),
                Err(error) => {
                    self.broken(&error);
                    Err(format!("writing: {error}"))
                }
            },
            Call::Shutdown => {
                self.finished = true;
                self.socket()?.shutdown(Shutdown::Write).map_err(said("shutting down"))
            }
            Call::Close => {
                self.finished = true;
                self.socket = None;
                Ok(())
            }
            Call::Abort => {
                self.socket()?.set_linger(Some(Duration::ZERO)).map_err(said("setting SO_LINGER"))?;
                self.closed = Some(Closed::Aborted);
                self.socket = None;
                Ok(())
            }
            Call::Announce(id, whose, port) => {
                let port = port.map_or_else(String::new, |port| format!(" port {port}"));
                self.ip(&format!("mptcp endpoint add {}{port} id {id} signal", self.address(whose)))
            }
            Call::Withdraw(0) => self.ip(&format!("mptcp endpoint delete id 0 {}", self.address(Address::Local(0)))),
            Call::Withdraw(id) => self.ip(&format!("mptcp endpoint delete id {id}")),
            Call::Backup(path, backup) => {
                self.ip(&format!("mptcp endpoint change id {path} {}", if backup { "backup" } else { "nobackup" }))
            }
            Call::ResetPath(_) => Err("a kernel's application cannot reset a subflow".into()),
            Call::Read(..) | Call::ReadText(_) | Call::ReadEnd | Call::ReadNothing => Ok(()),
        }
    }

    fn read(&mut self, most: usize) -> Got {
        let Some(mut socket) = self.socket.as_ref() else { return Got::Broken("there is no socket".into()) };
        let mut bytes = vec![0; most];
        match socket.read(&mut bytes) {
            Ok(0) => Got::End,
            Ok(len) => {
                bytes.truncate(len);
                Got::Bytes(bytes)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Got::Nothing,
            Err(error) => {
                self.broken(&error);
                Got::Broken(error.to_string())
            }
        }
    }

    fn status(&mut self) -> Result<Status, String> {
        if self.listener.is_some() && self.socket.is_none() && !self.established {
            // The connection may be ready to accept.
            let _ = self.accept();
        }
        self.look_for_the_end()?;
        // A connection that never spoke MPTCP, or fell back, is not listed, or is listed as such.
        let listed = self.sockets(&["-HMnia", "state", "connected"])?;
        let multipath = !listed.trim().is_empty() && !listed.contains("fallback");
        Ok(Status { established: self.established, multipath, closed: self.closed })
    }

    fn count(&mut self, counter: Counter, name: &str) -> Result<Option<u64>, String> {
        if counter != Counter::Kernel {
            return Ok(None);
        }
        let now = counters(&self.namespace).map_err(text)?;
        let count = now.get(name).ok_or_else(|| format!("this kernel has no counter {name}"))?;
        Ok(Some(count - self.before.get(name).copied().unwrap_or(0)))
    }

    fn bounds(&self, after: &After) -> (Duration, Duration) {
        let most = match after.most {
            Most::Until(most) => most,
            Most::Exactly | Most::Open => after.least,
        };
        (after.least.saturating_sub(after.least / 20 + EARLY), most * 5 + LATE)
    }

    fn patience(&self) -> Duration {
        LATE
    }

    fn afterwards(&self) -> Duration {
        Duration::from_millis(30)
    }
}
