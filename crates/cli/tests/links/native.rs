//! The proxy without a server, between two namespaces with two pairs of interfaces: an unmodified kernel is the target. Needs root, `nft`
//! and Multipath TCP; SKIPPED without.

use super::{listening, ran};
use anabranch_lab::Namespace;
use anabranch_lab::kernel::{counters, facts};
use anabranch_wire::{Flags, Packet, Segment};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// The target's address, which both pairs of interfaces lead to.
const TARGET: &str = "10.99.9.1:80";
const RATE: &str = "60mbit";
/// The bytes that the program sends, and those that it then gets: more than windows and buffers hold.
pub(super) const UP: u64 = 3 << 20;
pub(super) const DOWN: u64 = 24 << 20;
pub(super) const PIECE: usize = 1 << 16;
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of a stream from here on.
fn stream(from: u64, len: usize) -> Vec<u8> {
    (from..).take(len).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 11) as u8).collect()
}

/// Reads `len` bytes of a stream, with a look at each step.
pub(super) fn verify(source: &mut impl Read, len: u64, mut at: impl FnMut(u64)) {
    let (mut got, mut piece) = (0, vec![0; PIECE]);
    while got < len {
        let part = source.read(&mut piece).unwrap_or_else(|error| panic!("at {got}: {error}"));
        assert!(part > 0 && piece[..part] == stream(got, part), "at {got}, {part} bytes");
        got += part as u64;
        at(got);
    }
}

/// Writes the pieces of a stream that begin in `range`.
pub(super) fn fill(sink: &mut impl Write, range: Range<u64>) {
    range.step_by(PIECE).for_each(|from| sink.write_all(&stream(from, PIECE)).unwrap());
}

/// Takes a stream of each of so many connections, one after the other, and gives one.
pub(super) fn take_and_give(listener: &TcpListener, times: usize) {
    for _ in 0..times {
        let (mut program, _) = listener.accept().unwrap();
        verify(&mut program, UP, |_| {});
        fill(&mut program, 0..DOWN);
    }
}

pub(super) struct Ground {
    pub client: Namespace,
    pub server: Namespace,
    pub folder: tempfile::TempDir,
    /// Rate of each interface, if it is limited.
    rate: Option<&'static str>,
}

pub(super) fn run(namespace: &Namespace, program: &str, line: &str) -> String {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    namespace.command(program, &arguments, "").unwrap_or_else(|error| panic!("{error}"))
}

impl Ground {
    pub fn new() -> Option<Self> {
        Self::with(Some(RATE))
    }

    fn with(rate: Option<&'static str>) -> Option<Self> {
        let nft = anabranch_lab::tool::run("nft", &["--version"], "").is_ok();
        let (true, true, true, Ok(client), Ok(server)) =
            (nft, super::is_root(), facts::has_mptcp(), Namespace::new(), Namespace::new())
        else {
            println!("SKIPPED: root, nft, Multipath TCP and network namespaces are needed");
            return None;
        };
        let ground = Self { client, server, folder: tempfile::tempdir().unwrap(), rate };
        // The proxy makes its socket there without privileges.
        fs::set_permissions(ground.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        run(&ground.server, "ip", "link set lo up");
        run(&ground.client, "ip", "link set lo up");
        // The strict form, on every device that is made later.
        run(&ground.client, "sysctl", "-w net.ipv4.conf.default.rp_filter=1");
        run(&ground.server, "ip", "addr add 10.99.9.1/32 dev lo");
        (0..2).for_each(|n| ground.join(n));
        Some(ground)
    }

    /// A pair of interfaces.
    fn join(&self, n: u32) {
        let Self { client, server, .. } = self;
        run(client, "ip", &format!("link add va{n} type veth peer name vb{n} netns {}", server.path()));
        run(client, "ip", &format!("addr add 10.99.{n}.1/24 dev va{n}"));
        run(server, "ip", &format!("addr add 10.99.{n}.254/24 dev vb{n}"));
        run(server, "ip", &format!("link set vb{n} up"));
        self.raise(n);
        let limited = self.rate.map(|rate| (rate, [(client, format!("va{n}")), (server, format!("vb{n}"))]));
        for (rate, (namespace, device)) in limited.into_iter().flat_map(|(rate, ends)| ends.map(|end| (rate, end))) {
            run(namespace, "tc", &format!("qdisc add dev {device} root tbf rate {rate} burst 16kb limit 300000"));
        }
    }

    /// Gives an interface another address, as DHCP may.
    pub fn readdress(&self, n: u32, host: u8) {
        run(&self.client, "ip", &format!("addr flush dev va{n}"));
        run(&self.client, "ip", &format!("addr add 10.99.{n}.{host}/24 dev va{n}"));
        self.raise(n);
    }

    pub fn raise(&self, n: u32) {
        run(&self.client, "ip", &format!("link set va{n} up"));
        run(&self.client, "ip", &format!("route replace default via 10.99.{n}.254 dev va{n} metric {}", 100 + n));
    }

    pub fn cut(&self, n: u32) {
        run(&self.client, "ip", &format!("link set va{n} down"));
    }

    pub fn listen(&self, protocol: Protocol) -> TcpListener {
        let listen = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
            // An earlier connection may be in TIME-WAIT.
            socket.set_reuse_address(true).unwrap();
            let target: SocketAddr = TARGET.parse().unwrap();
            socket.bind(&SockAddr::from(target)).unwrap();
            socket.listen(16).unwrap();
            TcpListener::from(socket)
        };
        self.server.enter(listen).unwrap()
    }

    /// Serves connections one after the other: takes a stream, and gives one.
    fn serve(&self, protocol: Protocol, times: usize) -> JoinHandle<Result<(), anabranch_lab::LabError>> {
        let listener = self.listen(protocol);
        self.server.spawn("target", move || take_and_give(&listener, times)).unwrap()
    }

    /// Starts a proxy; where programs reach it by SOCKS.
    pub fn proxy(&self, more: &[&str]) -> (Running, SocketAddr) {
        self.proxy_via("va0,va1", more)
    }

    fn proxy_via(&self, via: &str, more: &[&str]) -> (Running, SocketAddr) {
        let options = ["proxy", "--native", "--via", via, "--socks", "127.0.0.1:0", "--socket", "proxy.sock"];
        let folder = self.folder.path();
        let start = || listening(folder, &[&options[..], more].concat(), "said");
        let (process, address) = self.client.enter(start).unwrap();
        (Running(process), address.parse().unwrap())
    }

    /// A program and the reply to its request, which has this address and port.
    fn request(&self, socks: SocketAddr, target: &[u8]) -> (TcpStream, u8) {
        let mut program = TcpStream::connect(socks).unwrap();
        program.set_read_timeout(Some(PATIENCE)).unwrap();
        program.write_all(&[5, 1, 0]).unwrap();
        program.read_exact(&mut [0; 2]).unwrap();
        program.write_all(&[&[5, 1, 0], target].concat()).unwrap();
        let mut reply = [0; 10];
        program.read_exact(&mut reply).unwrap();
        (program, reply[1])
    }

    /// A program sends a stream to the target, and gets one, whole.
    fn exchange(&self, socks: SocketAddr, at: impl FnMut(u64) + Send) {
        self.exchange_once(socks, || {}, at);
    }

    /// The same; the target has the program's whole stream, and begins with its own, when `ready` has returned.
    fn exchange_once(&self, socks: SocketAddr, ready: impl FnOnce() + Send, at: impl FnMut(u64) + Send) {
        let work = move || {
            let (mut program, reply) = self.request(socks, &[1, 10, 99, 9, 1, 0, 80]);
            assert_eq!(reply, 0, "{}", self.said());
            let last = UP - PIECE as u64;
            fill(&mut program, 0..last);
            ready();
            fill(&mut program, last..UP);
            verify(&mut program, DOWN, at);
            assert_eq!(program.read(&mut [0; 1]).unwrap(), 0, "the stream ends where the target's does");
        };
        self.client.enter(work).unwrap();
    }

    /// Subflows that joined a connection of the target's.
    fn joins(&self) -> u64 {
        counters(&self.server).unwrap().get("MPTcpExtMPJoinAckRx").copied().unwrap_or_default()
    }

    /// Waits for so many of them. If they do not come: what the target's kernel and the proxy counted says why.
    fn await_joins(&self, count: u64) {
        let until = Instant::now() + PATIENCE;
        while self.joins() < count {
            if Instant::now() > until {
                let state = status(self.folder.path());
                panic!("{} joins instead of {count}: {:?} {state}", self.joins(), counters(&self.server).unwrap());
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the process that is under test has subflows over these interfaces alone: the keeper notices an interface later than it goes, and a client counts
    /// a join before the server does.
    pub fn await_subflows(&self, expected: [bool; 2]) {
        let until = Instant::now() + PATIENCE;
        let uses = |state: &serde_json::Value, path: usize| {
            state["clients"][0]["paths"][path]["cwnd_packets"].as_u64().is_some_and(|packets| packets > 0)
        };
        loop {
            let state = status(self.folder.path());
            if [0, 1].map(|path| uses(&state, path)) == expected {
                return;
            }
            assert!(Instant::now() < until, "{expected:?} is not so: {state} {:?}", counters(&self.server).unwrap());
            sleep(Duration::from_millis(20));
        }
    }

    /// Sends segments to the device of path 0, straight from the neighbour.
    pub fn forge(&self, address: Ipv4Addr, flags: &[Flags]) {
        let (src, dst) = (Ipv4Addr::new(10, 99, 0, 254).into(), address.into());
        let send = || {
            // IPPROTO_RAW: with an IP header of ours (raw(7)).
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255))).unwrap();
            for flags in flags {
                let segment = Segment { src_port: 80, dst_port: 2_000, flags: *flags, ..Segment::default() };
                let to = SocketAddr::from((address, 0)).into();
                socket.send_to(&Packet { src, dst, segment }.emit(), &to).unwrap();
            }
        };
        self.server.enter(send).unwrap();
    }

    /// The packets that the kernel gave to the device of path 0, and the engine's address there.
    pub fn device(&self, process: &Child) -> (u64, Ipv4Addr) {
        let name = format!("anab{}-0", process.id());
        let shown = run(&self.client, "ip", &format!("-json -s link show {name}"));
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let routes = run(&self.client, "ip", &format!("-4 route show table all dev {name}"));
        let address = routes.split_whitespace().next().unwrap().parse().unwrap();
        (shown[0]["stats64"]["tx"]["packets"].as_u64().unwrap(), address)
    }

    pub fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }

    /// Everything that a proxy could leave behind.
    pub fn traces(&self) -> BTreeMap<String, String> {
        let show = |program: &str, line: &str| (line.to_owned(), run(&self.client, program, line));
        let links = run(&self.client, "ip", "-o link");
        let links = links.lines().filter_map(|line| Some(line.split_once(": ")?.1.split(':').next()?.to_owned()));
        let mut traces = BTreeMap::from([
            show("ip", "rule"),
            show("ip", "-4 route show table all"),
            show("nft", "list ruleset"),
            show("sysctl", "-a --pattern net.ipv4.conf.*(forwarding|rp_filter)|net.ipv4.ip_forward|disable_ipv6"),
        ]);
        traces.insert("links".into(), links.collect::<Vec<_>>().join(" "));
        traces.insert("records".into(), self.records().len().to_string());
        traces
    }

    /// The records of keepers in the client's namespace.
    fn records(&self) -> Vec<PathBuf> {
        let own = || fs::read_link("/proc/thread-self/ns/net").unwrap();
        let own = self.client.enter(own).unwrap().display().to_string();
        let of_ours = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains(&own));
        let all = fs::read_dir("/run/anabranch-native").into_iter().flatten().flatten().map(|entry| entry.path());
        all.filter(of_ours).collect()
    }

    /// Waits until nothing is left.
    pub fn await_nothing_but(&self, before: &BTreeMap<String, String>) {
        let until = Instant::now() + PATIENCE;
        while self.traces() != *before {
            assert!(Instant::now() < until, "{:#?} is left of {before:#?}", self.traces());
            sleep(Duration::from_millis(20));
        }
    }
}

/// A command that runs. It does not outlive a test that fails.
pub(super) struct Running(pub Child);

impl Running {
    /// Ends it by SIGTERM, which is a success.
    pub fn end(&mut self, ground: &Ground) {
        signal(self.0.id(), "TERM");
        assert_eq!(self.0.wait().unwrap().code(), Some(0), "{}", ground.said());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap().success());
}

/// The process's child that keeps the network.
pub(super) fn keeper(process: &Child) -> u32 {
    let id = process.id();
    fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap().trim().parse().unwrap()
}

/// A third network behind the client, which the server's host may reach through it.
struct Behind {
    _third: Namespace,
    v4: TcpListener,
    v6: TcpListener,
}

impl Behind {
    /// The client forwards IPv6 for all, and IPv4 for answers alone.
    fn new(ground: &Ground) -> Self {
        let (Ground { client, server, .. }, third) = (ground, Namespace::new().unwrap());
        run(client, "ip", &format!("link add va2 type veth peer name vb2 netns {}", third.path()));
        run(client, "sysctl", "-w net.ipv6.conf.all.forwarding=1");
        run(client, "sysctl", "-w net.ipv4.conf.va2.forwarding=1");
        run(client, "ip", "addr add 10.99.2.1/24 dev va2");
        run(&third, "ip", "addr add 10.99.2.254/24 dev vb2");
        for (namespace, device, address) in [
            (client, "va0", "fd99::1"),
            (server, "vb0", "fd99::254"),
            (client, "va2", "fd99:2::1"),
            (&third, "vb2", "fd99:2::254"),
        ] {
            run(namespace, "ip", &format!("addr add {address}/64 dev {device} nodad"));
            run(namespace, "ip", &format!("link set {device} up"));
        }
        run(server, "ip", "route add 10.99.2.0/24 via 10.99.0.1");
        run(server, "ip", "route add fd99:2::/64 via fd99::1");
        run(&third, "ip", "route add default via 10.99.2.1");
        run(&third, "ip", "route add default via fd99:2::1");
        let listen = |address: &str| third.enter(|| TcpListener::bind(address).unwrap()).unwrap();
        let (v4, v6) = (listen("10.99.2.254:80"), listen("[fd99:2::254]:80"));
        Self { _third: third, v4, v6 }
    }

    /// The server's host gets an answer from there.
    fn answers(&self, ground: &Ground, listener: &TcpListener, within: Duration) -> bool {
        let target = listener.local_addr().unwrap();
        ground.server.enter(|| TcpStream::connect_timeout(&target, within).is_ok()).unwrap()
    }
}

/// The lines of a process's state that name its users and capabilities.
pub(super) fn privileges(process: &Child) -> Vec<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let named = |line: &&str| {
        ["Uid:", "Gid:", "Groups:", "CapEff:", "CapPrm:", "NoNewPrivs:"].iter().any(|n| line.starts_with(n))
    };
    status.lines().filter(named).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The lines of a process without any privilege.
pub(super) fn nobody() -> [String; 6] {
    let nobody = "65534 65534 65534 65534";
    let none = "0000000000000000";
    [
        format!("Uid: {nobody}"),
        format!("Gid: {nobody}"),
        "Groups:".to_owned(),
        format!("CapPrm: {none}"),
        format!("CapEff: {none}"),
        "NoNewPrivs: 1".to_owned(),
    ]
}

/// The state of the proxy or the server.
pub(super) fn status(folder: &Path) -> serde_json::Value {
    let (json, said, _) = ran(folder, &["status", "--json", "--socket", "proxy.sock"]);
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// The payload that came over each path, in the order of the paths.
pub(super) fn received(folder: &Path) -> Vec<u64> {
    carried(folder, "received_bytes")
}

/// A value of each path in the state.
pub(super) fn carried(folder: &Path, what: &str) -> Vec<u64> {
    let state = status(folder);
    let paths = state["clients"][0]["paths"].as_array().unwrap();
    assert!(paths[0]["address"] == "va0" && paths[1]["address"] == "va1", "{state}");
    paths.iter().map(|path| path[what].as_u64().unwrap()).collect()
}

#[test]
fn an_unmodified_server_answers_over_both_interfaces_and_nothing_is_left() {
    let Some(ground) = Ground::new() else { return };
    let before = ground.traces();
    let serving = ground.serve(Protocol::MPTCP, 1);
    let (mut process, socks) = ground.proxy(&["--scheduler", "blest"]);
    assert_ne!(ground.traces(), before);
    assert_eq!(privileges(&process.0), nobody(), "no privilege is kept");
    // A download uses the interfaces that have joined: it waits for the second one.
    ground.exchange_once(socks, || ground.await_joins(1), |_| {});
    serving.join().unwrap().unwrap();
    let received = received(ground.folder.path());
    assert!(received.iter().all(|bytes| *bytes > DOWN / 10), "{received:?}");
    let counters = counters(&ground.server).unwrap();
    let count = |name: &str| counters.get(name).copied().unwrap_or_default();
    assert!(count("MPTcpExtMPCapableACKRX") == 1 && count("MPTcpExtMPJoinAckRx") == 1, "{counters:?}");

    // RFC 1928 §6: refused by its host; unreachable, because it is loopback by its name, or IPv6.
    let names = [&[3, 9][..], b"localhost", &[0, 80]].concat();
    let v6 = [&[4][..], &std::net::Ipv6Addr::LOCALHOST.octets(), &[0, 80]].concat();
    for (target, code) in [(&[1, 10, 99, 9, 1, 0, 81][..], 5), (&names, 3), (&v6, 3)] {
        assert_eq!(ground.client.enter(|| ground.request(socks, target).1).unwrap(), code, "{target:?}");
    }
    let second = ground.client.enter(|| ran(ground.folder.path(), &["proxy", "--native", "--via", "va1"])).unwrap();
    assert!(second.2 == 1 && second.1.contains("va1 is in use by another proxy"), "{}", second.1);
    process.end(&ground);
    assert_eq!(ground.traces(), before);
    assert!(!ground.folder.path().join("proxy.sock").exists());
}

/// The target is faster than the program: the window is what holds it, and Linux counts that of a subflow.
#[test]
fn a_server_that_fills_the_window_stays_in_it() {
    const SLOW: u64 = 192 << 20;
    let Some(ground) = Ground::with(None) else { return };
    let (mut process, socks) = ground.proxy(&[]);
    let listener = ground.listen(Protocol::MPTCP);
    let work = move || fill(&mut listener.accept().unwrap().0, 0..SLOW);
    let serving = ground.server.spawn("target", work).unwrap();
    let read = || {
        let (mut program, reply) = ground.request(socks, &[1, 10, 99, 9, 1, 0, 80]);
        assert_eq!(reply, 0, "{}", ground.said());
        // At intervals it pauses, for as long as a window takes to be filled.
        verify(&mut program, SLOW, |got| {
            if got % (4 << 20) < PIECE as u64 {
                sleep(Duration::from_millis(10));
            }
        });
    };
    ground.client.enter(read).unwrap();
    serving.join().unwrap().unwrap();
    let state = status(ground.folder.path());
    let beyond = state["counters"].as_object().unwrap().get("violation: BeyondWindow");
    assert_eq!(beyond, None, "{state}");
    process.end(&ground);
}

#[test]
fn nothing_but_answers_reaches_a_device_and_the_host_becomes_no_router() {
    let Some(ground) = Ground::new() else { return };
    let behind = Behind::new(&ground);
    let (mut process, socks) = ground.proxy(&[]);
    let (before, address) = ground.device(&process.0);
    run(&ground.server, "ip", &format!("route add {address} via 10.99.0.1"));
    let synack = Flags(Flags::SYN.0 | Flags::ACK.0);
    ground.forge(address, &[Flags::SYN, synack, Flags::RST, Flags(Flags::RST.0 | Flags::ACK.0), Flags::ACK, Flags(0)]);
    assert!(!behind.answers(&ground, &behind.v4, Duration::from_millis(500)), "IPv4 passes");
    assert!(behind.answers(&ground, &behind.v6, PATIENCE), "it forwards IPv6 as before");
    assert_eq!(ground.device(&process.0).0, before, "of a neighbour's packets none reaches the device");
    // RFC 1928 §6: refused by its host, whose answer does.
    assert_eq!(ground.client.enter(|| ground.request(socks, &[1, 10, 99, 9, 1, 0, 81]).1).unwrap(), 5);
    assert!(ground.device(&process.0).0 > before);
    process.end(&ground);
    // It was the proxy that kept the host from being a router.
    run(&ground.client, "sysctl", "-w net.ipv4.conf.va0.forwarding=1");
    assert!(behind.answers(&ground, &behind.v4, PATIENCE));
}

#[test]
fn a_server_without_multipath_tcp_is_reached_by_plain_tcp_and_one_with_it_outlives_an_interface() {
    let Some(ground) = Ground::new() else { return };
    let (mut process, socks) = ground.proxy(&[]);
    let serving = ground.serve(Protocol::TCP, 1);
    ground.exchange(socks, |_| {});
    serving.join().unwrap().unwrap();
    assert_eq!(ground.joins(), 0);

    // Each of these has to be used: the other interface, the one that came back, the one with another address.
    let serving = ground.serve(Protocol::MPTCP, 1);
    let steps: [(u64, &(dyn Fn() + Sync)); 5] = [
        (DOWN / 24, &|| {
            ground.cut(0);
            ground.await_subflows([false, true]);
        }),
        (DOWN * 2 / 24, &|| {
            ground.raise(0);
            ground.await_joins(2);
        }),
        (DOWN * 3 / 24, &|| {
            ground.cut(1);
            ground.await_subflows([true, false]);
        }),
        (DOWN * 4 / 24, &|| {
            ground.readdress(1, 7);
            ground.await_joins(3);
        }),
        (DOWN * 5 / 24, &|| ground.cut(0)),
    ];
    let mut step = 0;
    ground.exchange(socks, |got| {
        if let Some((_, act)) = steps.get(step).filter(|(at, _)| got >= *at) {
            act();
            step += 1;
        }
    });
    assert_eq!(step, steps.len());
    serving.join().unwrap().unwrap();
    process.end(&ground);
}

#[test]
fn a_download_outlives_the_loss_of_all_interfaces() {
    let Some(ground) = Ground::new() else { return };
    let exchange = |socks, protocol, act: &(dyn Fn() + Sync)| {
        let serving = ground.serve(protocol, 1);
        let mut done = false;
        ground.exchange(socks, |got| {
            if got >= DOWN / 4 && !std::mem::replace(&mut done, true) {
                act();
            }
        });
        serving.join().unwrap().unwrap();
    };
    let away = |interfaces: std::ops::Range<u32>| {
        interfaces.clone().for_each(|n| ground.cut(n));
        sleep(Duration::from_millis(700));
        interfaces.for_each(|n| ground.raise(n));
    };
    let (mut process, socks) = ground.proxy(&[]);
    exchange(socks, Protocol::MPTCP, &|| away(0..2));
    process.end(&ground);

    let (mut process, socks) = ground.proxy_via("va0", &[]);
    // The same address: plain TCP has what it needs.
    exchange(socks, Protocol::TCP, &|| away(0..1));
    // Multipath TCP is joined again, also with another one.
    exchange(socks, Protocol::MPTCP, &|| ground.readdress(0, 7));
    // Plain TCP is over with that, and its program gets a reset.
    let listener = ground.listen(Protocol::TCP);
    let endless = move || {
        let (mut program, _) = listener.accept().unwrap();
        while program.write_all(&[0; PIECE]).is_ok() {}
    };
    ground.server.spawn("endless", endless).unwrap();
    let (mut program, reply) = ground.client.enter(|| ground.request(socks, &[1, 10, 99, 9, 1, 0, 80])).unwrap();
    assert_eq!(reply, 0);
    program.read_exact(&mut vec![0; PIECE]).unwrap();
    ground.readdress(0, 8);
    let mut read = || program.read(&mut [0; PIECE]).inspect(|len| assert_ne!(*len, 0, "this is no end of the stream"));
    let ended = std::iter::repeat_with(&mut read).find_map(Result::err).unwrap();
    assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionReset);
    process.end(&ground);
}

#[test]
fn a_start_takes_back_what_a_killed_command_left() {
    let Some(ground) = Ground::new() else { return };
    let before = ground.traces();
    // The keeper outlives the proxy.
    let (mut process, _) = ground.proxy(&[]);
    process.0.kill().unwrap();
    ground.await_nothing_but(&before);

    // No process is left to take anything back.
    let (mut process, _) = ground.proxy(&[]);
    signal(keeper(&process.0), "KILL");
    process.0.wait().unwrap();
    assert!(ground.said().contains("the process that keeps the network of --native has ended"), "{}", ground.said());
    let left = ground.traces();
    assert!(
        ["nft list ruleset", "list ruleset", "rule", "records"].iter().any(|kind| left.get(*kind) != before.get(*kind))
    );
    let (mut process, _) = ground.proxy(&[]);
    assert_eq!(received(ground.folder.path()), [0, 0], "status finds the second one");
    process.end(&ground);
    assert_eq!(ground.traces(), before);
}

/// One of two simultaneous starts waits. Records of other networks are left alone.
#[test]
fn one_start_at_a_time_looks_at_the_records_and_none_at_those_of_other_networks() {
    let Some(ground) = Ground::new() else { return };
    let (before, folder) = (ground.traces(), Path::new("/run/anabranch-native"));
    fs::create_dir_all(folder).unwrap();
    // No process has that id, and no test that runs beside this one takes it.
    let keeper = u32::MAX - std::process::id();
    let other = folder.join(format!("{keeper}.json"));
    let record = format!(
        r#"{{"keeper":{keeper},"began":1,"namespace":"net:[1]","interfaces":["va0"],"table":"anabranch-{keeper}",
             "addresses":["198.18.0.1"],"forwarding":[{{"interface":"va0","all":"0"}}]}}"#
    );
    fs::write(&other, &record).unwrap();
    let lock = fs::File::options().write(true).create(true).truncate(false).open(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let (mut process, _) = std::thread::scope(|scope| {
        let starting = scope.spawn(|| ground.proxy(&[]));
        sleep(Duration::from_millis(500));
        assert_eq!(ground.traces()["list ruleset"], before["list ruleset"], "it waits");
        drop(lock);
        starting.join().unwrap()
    });
    process.end(&ground);
    assert_eq!(ground.traces(), before);
    assert_eq!(fs::read_to_string(&other).unwrap(), record);
    fs::remove_file(other).unwrap();
}

/// The examples of docs/native.md and docs/links.md, at their shortest.
#[test]
fn the_examples_of_the_pages_end_with_a_result() {
    let is_there =
        |program: &&str| Command::new(program).arg("--version").output().is_ok_and(|done| done.status.success());
    if !(super::is_root() && facts::has_mptcp() && ["nft", "curl", "python3"].iter().all(is_there)) {
        println!("SKIPPED: root, nft, curl, python3 and Multipath TCP are needed");
        return;
    }
    let run = |script: &str, options: &[&str]| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(script);
        let binary = assert_cmd::cargo::cargo_bin!("anabranch");
        let done = Command::new("sh").arg(path).arg(binary).args(options).env("MB", "2").output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{script}: {said}");
        String::from_utf8(done.stdout).unwrap()
    };
    let native = run("native.sh", &[]);
    assert!(native.starts_with("2097152 bytes in ") && native.contains("wlan0 "), "{native}");
    let links = run("links.sh", &["--no-baselines", "--repeat", "1", "--duration", "1s"]);
    assert!(links.contains("minrtt"), "{links}");
}

/// Every mistake is named before anything is changed.
#[test]
fn it_needs_root_and_interfaces_that_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let native = |options: &[&str]| ran(folder.path(), &[&["proxy", "--native"], options].concat());
    let (_, said, code) = native(&["--via", "lo,lo"]);
    assert!(code == 2 && said.contains("lo stands there twice"), "{said}");
    let (_, said, code) = native(&["--via", "lo", "--server-key", "x"]);
    assert!(code == 2 && said.contains("--server-key"), "{said}");
    if super::is_root() {
        return;
    }
    let (_, said, code) = native(&["--via", "lo", "--socks", "127.0.0.1:0"]);
    assert!(code == 1 && said.contains("it needs root (CAP_NET_ADMIN)"), "{said}");
}
