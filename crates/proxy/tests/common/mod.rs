//! A proxy with its server, each on a thread.

#![allow(dead_code, reason = "each test file uses a part")]

use crate::link::ground::{Ground, SERVER};
use crate::link::{admit, stop};
use anabranch_link::{LinkError, PathState, Server, SessionSettings, Status, StatusSocket, read_status, secrets};
use anabranch_proxy::{
    AddressFilter, ConnectionSettings, Credentials, EgressSettings, Listeners, Lookup, Proxy, ProxyService,
    ProxySettings, Resolver, Rules,
};
use anabranch_units::Duration;
use ipnet::IpNet;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Settings of both ends.
pub struct Setting {
    pub allow: Vec<IpNet>,
    pub lookup: Lookup,
    pub credentials: Option<Credentials>,
    /// Bytes of buffers at the server.
    pub memory: u64,
}

impl Default for Setting {
    fn default() -> Self {
        let lookup: Lookup = Arc::new(|name| match name {
            "target.test" => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
            _ => Err(ErrorKind::Other.into()),
        });
        Self { allow: vec!["127.0.0.0/8".parse().unwrap()], lookup, credentials: None, memory: 1 << 30 }
    }
}

/// A running proxy.
pub struct Running {
    pub socks: SocketAddr,
    /// Takes other rules.
    pub rules: Sender<Rules>,
    /// Where it shows its state.
    status_socket: PathBuf,
}

impl Running {
    /// State of the proxy.
    pub fn status(&self) -> Status {
        read_status(&self.status_socket).unwrap()
    }

    /// The state of its paths.
    pub fn paths(&self) -> Vec<PathState> {
        self.status().clients.remove(0).paths
    }
}

fn connections() -> ConnectionSettings {
    let congestion = anabranch_scenario::congestion("test", "cubic").unwrap();
    ConnectionSettings { congestion, orphan_timeout: Duration::from_secs(60), ecn: true }
}

fn minrtt() -> Rules {
    Rules::none(anabranch_scenario::scheduler("test", "minrtt").unwrap())
}

/// A server at `local` that dials what the setting says, until `stopped`. It sends its address.
pub fn serve(
    local: SocketAddr,
    server: anabranch_carrier::files::KeyFile,
    client: anabranch_carrier::files::Client,
    setting: (Vec<IpNet>, Lookup, u64),
    stopped: &AtomicBool,
    ready: &Sender<SocketAddr>,
) {
    let (allow, lookup, memory) = setting;
    let resolver = Resolver::start(lookup).unwrap();
    let settings = EgressSettings { filter: AddressFilter::new(allow), resolver, connections: connections(), memory };
    let service = Box::new(ProxyService::new(settings).unwrap());
    let mut host = Server::listen(local, server.key, vec![client], vec![service]).unwrap();
    ready.send(host.local().unwrap()).unwrap();
    host.run(stopped, None).unwrap();
}

/// A proxy over these interfaces, and where programs reach it.
pub fn open(
    session: SessionSettings,
    credentials: Option<Credentials>,
    stopped: &AtomicBool,
) -> Result<(Proxy, SocketAddr), LinkError> {
    // With passwords other hosts may come, too.
    let at = if credentials.is_some() { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let listeners = Listeners::open(&[(at, 0).into()], &[], credentials).unwrap();
    let socks = (Ipv4Addr::LOCALHOST, listeners.locals().next().unwrap().port()).into();
    let settings = ProxySettings { session, listeners, rules: minrtt(), connections: connections() };
    Ok((Proxy::open(settings, stopped)?.0, socks))
}

/// Runs a proxy until `stopped`. It sends where programs reach it.
pub fn run(session: SessionSettings, credentials: Option<Credentials>, stopped: &AtomicBool, ready: &Sender<Running>) {
    let (mut proxy, socks) = open(session, credentials, stopped).unwrap();
    let (rules, changes) = channel();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let status_socket = StatusSocket::open(&file).unwrap();
    ready.send(Running { socks, rules, status_socket: file }).unwrap();
    proxy.run(stopped, Some(&status_socket), &mut || changes.try_recv().ok(), &mut |_| {}).unwrap();
}

/// Uses a proxy over the loopback interface, twice.
pub fn with_proxy(setting: Setting, act: impl FnOnce(&Running)) {
    let (server, client, stopped) = (secrets::new_key(), secrets::new_key(), stop());
    let (public, admitted) = (server.key.public(), admit(&client, "laptop"));
    let Setting { allow, lookup, credentials, memory } = setting;
    thread::scope(|scope| {
        // A test that fails must not wait for the others.
        let _end = End(&stopped);
        let (ready, address) = channel();
        let (flag, local) = (&*stopped, (Ipv4Addr::LOCALHOST, 0).into());
        scope.spawn(move || serve(local, server, admitted, (allow, lookup, memory), flag, &ready));
        let address = address.recv().unwrap();
        let session = session(client, public, address);
        let (ready, running) = channel();
        scope.spawn(move || run(session, credentials, flag, &ready));
        act(&running.recv().unwrap());
    });
}

/// Uses a proxy over both interfaces in the client's namespace; the server in the other one dials addresses of its own, too.
pub fn with_proxy_on(ground: &Ground, act: impl FnOnce(&Running, IpAddr) + Send) {
    with_proxy_for(None, ground, act);
}

/// The same for the users of a list, who may be on other hosts.
pub fn with_proxy_for(credentials: Option<Credentials>, ground: &Ground, act: impl FnOnce(&Running, IpAddr) + Send) {
    let (server, client, stopped) = (secrets::new_key(), secrets::new_key(), stop());
    let (public, admitted) = (server.key.public(), admit(&client, "laptop"));
    let (local, host): (SocketAddr, IpAddr) = (format!("{SERVER}:4500").parse().unwrap(), SERVER.parse().unwrap());
    let Setting { lookup, memory, .. } = Setting::default();
    let (ready, address) = channel();
    let flag = stopped.clone();
    let allow = vec![host.into()];
    let serve = move || serve(local, server, admitted, (allow, lookup, memory), &flag, &ready);
    let serving = ground.server.spawn("server", serve).unwrap();
    let interfaces = vec!["va0".into(), "va1".into()];
    let session = SessionSettings { key: client, server: public, address: address.recv().unwrap(), interfaces };
    let (ready, running) = channel();
    let flag = stopped.clone();
    let proxying = ground.client.spawn("proxy", move || run(session, credentials, &flag, &ready)).unwrap();
    let end = End(&stopped);
    let running = running.recv().unwrap();
    ground.client.enter(move || act(&running, host)).unwrap();
    drop(end);
    proxying.join().unwrap().unwrap();
    serving.join().unwrap().unwrap();
}

/// A server over the loopback interface, twice.
pub fn session(
    client: anabranch_carrier::files::KeyFile,
    server: anabranch_carrier::PublicKey,
    address: SocketAddr,
) -> SessionSettings {
    SessionSettings { key: client, server, address, interfaces: vec!["lo".into(), "lo".into()] }
}

/// One user, `ann`, whose password is `secret`.
pub fn credentials() -> Option<Credentials> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users");
    std::fs::write(&file, "ann:secret\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    Some(Credentials::read(&file).unwrap())
}

/// Stops everything when it is dropped.
pub struct End<'a>(pub &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Connects to a target by SOCKS5; the error is the reply's code, or 255 if it came to none.
pub fn connect(socks: SocketAddr, host: &str, port: u16, user: Option<(&str, &str)>) -> Result<TcpStream, u8> {
    let mut program = TcpStream::connect(socks).unwrap();
    program.set_nodelay(true).unwrap();
    program.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    talk(&mut program, host, port, user)
        .map_err(|error| error.get_ref().and_then(|code| code.to_string().parse().ok()).unwrap_or(255))?;
    Ok(program)
}

fn talk(program: &mut TcpStream, host: &str, port: u16, user: Option<(&str, &str)>) -> Result<(), Error> {
    let mut answer = [0; 2];
    program.write_all(&[5, 1, if user.is_some() { 2 } else { 0 }])?;
    program.read_exact(&mut answer)?;
    if let Some((name, password)) = user {
        let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
        program.write_all(&[&[1][..], &text(name), &text(password)].concat())?;
        program.read_exact(&mut answer)?;
    }
    let address = match host.parse() {
        Ok(IpAddr::V4(v4)) => [&[1][..], &v4.octets()].concat(),
        Ok(IpAddr::V6(v6)) => [&[4][..], &v6.octets()].concat(),
        Err(_) => [&[3, host.len() as u8][..], host.as_bytes()].concat(),
    };
    program.write_all(&[&[5, 1, 0][..], &address, &port.to_be_bytes()].concat())?;
    let mut reply = [0; 10];
    program.read_exact(&mut reply)?;
    if reply[1] == 0 { Ok(()) } else { Err(Error::other(reply[1].to_string())) }
}

/// Everything that a target answers to some bytes and their end.
pub fn exchange(socks: SocketAddr, port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut program = connect(socks, "127.0.0.1", port, None).unwrap();
    program.write_all(bytes).unwrap();
    program.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    program.read_to_end(&mut got).unwrap();
    got
}
