//! `serve --native` between two namespaces with two pairs of interfaces: an unmodified kernel is the client. Needs root, `nft` and Multipath TCP; SKIPPED
//! without.

use super::native::{
    DOWN, Ground, PATIENCE, PIECE, Running, UP, carried, fill, keeper, nobody, privileges, run, signal, status,
    take_and_give, verify,
};
use super::{listening, ran};
use anabranch_lab::kernel::counters;
use anabranch_wire::Flags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// The server's first address, and the port that has a target.
const SERVER: &str = "10.99.0.1:8080";
/// Denominator of the least part of each direction that an interface carries.
const PART: u64 = 20;

/// The hosts of `native.rs` with the parts exchanged: its client listens, its server connects, as a Linux client does that joins what is announced.
fn ground() -> Option<Ground> {
    let ground = Ground::new()?;
    run(&ground.server, "ip", "mptcp limits set add_addr_accepted 8 subflows 8");
    // ARP continues while a host is away: Linux ends a join for good when it gives a neighbour up.
    (0..2).for_each(|n| drop(run(&ground.server, "sysctl", &format!("-w net.ipv4.neigh.vb{n}.mcast_solicit=60"))));
    Some(ground)
}

/// Starts a server by the command of the systemd unit; programs of its host listen at port 80, and none does at port 9.
fn start(ground: &Ground, more: &[&str]) -> Running {
    let unit = include_str!("../../../../packaging/anabranch-serve-native.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/anabranch ")).unwrap();
    let line = line.replace("eth0,eth1", "va0,va1");
    let command: Vec<&str> =
        line.split_whitespace().chain(["--forward", "8081:127.0.0.1:9", "--socket", "proxy.sock"]).collect();
    let folder = ground.folder.path();
    let start = || listening(folder, &[&command[..], more].concat(), "said");
    let (process, address) = ground.client.enter(start).unwrap();
    assert_eq!(address, SERVER, "{}", ground.said());
    Running(process)
}

/// The target: takes a stream of each of so many connections, and gives one.
fn target(ground: &Ground, times: usize) -> JoinHandle<Result<(), anabranch_lab::LabError>> {
    let listener = ground.client.enter(|| TcpListener::bind("127.0.0.1:80").unwrap()).unwrap();
    ground.client.spawn("target", move || take_and_give(&listener, times)).unwrap()
}

/// An unmodified client's connection.
fn connect(ground: &Ground, protocol: Protocol, to: &str) -> std::io::Result<TcpStream> {
    let connect = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.connect(&SockAddr::from(to.parse::<SocketAddr>().unwrap()))?;
        Ok(TcpStream::from(socket))
    };
    ground.server.enter(connect).unwrap()
}

/// A client sends a stream, and gets one, whole. It has sent all and the target begins when `ready` has returned.
fn exchange(ground: &Ground, protocol: Protocol, ready: impl FnOnce(), at: impl FnMut(u64)) {
    let mut client = connect(ground, protocol, SERVER).unwrap();
    fill(&mut client, 0..PIECE as u64);
    ready();
    fill(&mut client, PIECE as u64..UP);
    verify(&mut client, DOWN, at);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the stream ends where the target's does");
}

fn count(ground: &Ground, name: &str) -> u64 {
    counters(&ground.server).unwrap().get(&format!("MPTcpExt{name}")).copied().unwrap_or_default()
}

/// Waits for so many joins of the client's. If they do not come: what the client's kernel and the server counted says why.
fn await_joins(ground: &Ground, joins: u64) {
    let until = Instant::now() + PATIENCE;
    while count(ground, "MPJoinSynAckRx") < joins {
        if Instant::now() > until {
            let state = status(ground.folder.path());
            panic!("less than {joins} joins: {:?} {state}", counters(&ground.server).unwrap());
        }
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_unmodified_client_uses_both_interfaces_in_both_directions_and_nothing_is_left() {
    let Some(ground) = ground() else { return };
    let before = ground.traces();
    let mut process = start(&ground, &["--scheduler", "blest"]);
    assert_eq!(privileges(&process.0), nobody(), "no privilege is kept");
    let serving = target(&ground, 2);
    exchange(&ground, Protocol::MPTCP, || await_joins(&ground, 1), |_| {});
    let folder = ground.folder.path();
    let (down, up) = (carried(folder, "sent_bytes"), carried(folder, "received_bytes"));
    assert!(
        down.iter().all(|bytes| *bytes > DOWN / PART) && up.iter().all(|bytes| *bytes > UP / PART),
        "{down:?} {up:?}"
    );
    assert_eq!(status(folder)["clients"][0]["scheduler"], "blest");
    let of = ["MPCapableSYNACKRX", "MPJoinSynAckRx", "AddAddr", "EchoAddTx"].map(|name| count(&ground, name));
    // An echo may come late, and then the address is announced again.
    assert!(of[..2] == [1, 1] && of[2] >= 1 && of[3] >= 1, "{:?}", counters(&ground.server).unwrap());

    // RFC 8684 §3.7: a client without Multipath TCP.
    exchange(&ground, Protocol::TCP, || {}, |_| {});
    serving.join().unwrap().unwrap();
    assert_eq!(count(&ground, "MPJoinSynAckRx"), 1);

    let second = ["serve", "--native", "--via", "va1", "--forward", "99:127.0.0.1:80"];
    let (_, said, code) = ground.client.enter(|| ran(folder, &second)).unwrap();
    assert!(code == 1 && said.contains("va1 is in use by another proxy or server"), "{said}");
    process.end(&ground);
    assert_eq!(ground.traces(), before);
    assert!(!folder.join("proxy.sock").exists());
}

/// A kernel cuts packets up and loses single ones: a retransmission has the mapping of the packet that was lost.
#[test]
fn packets_that_are_lost_one_by_one_reset_no_subflow() {
    let Some(ground) = ground() else { return };
    for n in 0..2 {
        run(&ground.client, "ip", &format!("link set va{n} gso_max_segs 1"));
    }
    run(&ground.server, "nft", "add table ip losing");
    run(&ground.server, "nft", "add chain ip losing in { type filter hook prerouting priority -300 ; }");
    run(&ground.server, "nft", "add rule ip losing in tcp sport 8080 numgen random mod 300 < 1 drop");
    let process = start(&ground, &[]);
    let serving = target(&ground, 1);
    exchange(&ground, Protocol::MPTCP, || await_joins(&ground, 1), |_| {});
    serving.join().unwrap().unwrap();
    let faults = ["DSSNotMatching", "MPRstTx", "MPRstRx"].map(|name| count(&ground, name));
    assert_eq!(faults, [0; 3], "{:?}", counters(&ground.server).unwrap());
    drop(process);
}

/// A connection whose target does not answer is reset, and a port that is not forwarded stays the kernel's.
#[test]
fn what_is_not_for_its_ports_reaches_no_device() {
    let Some(ground) = ground() else { return };
    let mut process = start(&ground, &[]);
    let (before, address) = ground.device(&process.0);
    run(&ground.server, "ip", &format!("route add {address} via 10.99.0.1"));
    let synack = Flags(Flags::SYN.0 | Flags::ACK.0);
    ground.forge(address, &[Flags::SYN, synack, Flags::RST, Flags(Flags::RST.0 | Flags::ACK.0), Flags::ACK, Flags(0)]);
    let refused = |port: &str| connect(&ground, Protocol::TCP, &format!("10.99.0.1:{port}")).unwrap_err().kind();
    assert_eq!(refused("9"), ErrorKind::ConnectionRefused);
    let direct = || {
        let to = SocketAddr::from((address, 8080));
        TcpStream::connect_timeout(&to, Duration::from_millis(500)).map_err(|error| error.kind())
    };
    // Another host, and a program of this one.
    for namespace in [&ground.server, &ground.client] {
        assert_eq!(namespace.enter(direct).unwrap().unwrap_err(), ErrorKind::TimedOut);
    }
    assert_eq!(ground.device(&process.0).0, before, "none of these reaches the device");
    for protocol in [Protocol::MPTCP, Protocol::TCP] {
        // The reset may come before the client looks at its connection for the first time.
        let ended = connect(&ground, protocol, "10.99.0.1:8081").and_then(|mut client| client.read(&mut [0; 1]));
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    assert!(ground.device(&process.0).0 > before);
    let state = status(ground.folder.path());
    assert_eq!(state["counters"]["refused: Refused"], 2, "{state}");
    process.end(&ground);
}

#[test]
fn a_download_outlives_interfaces_that_go_and_come() {
    let Some(ground) = ground() else { return };
    let mut process = start(&ground, &[]);
    let serving = target(&ground, 1);
    // Each of these has to be used: the other interface, the one that came back, the one with another address.
    let steps: [(u64, &dyn Fn()); 5] = [
        (DOWN / 24, &|| {
            ground.cut(0);
            ground.await_subflows([false, true]);
        }),
        (DOWN * 2 / 24, &|| {
            ground.raise(0);
            ground.await_subflows([true, true]);
        }),
        (DOWN * 3 / 24, &|| {
            ground.cut(1);
            ground.await_subflows([true, false]);
        }),
        (DOWN * 4 / 24, &|| {
            ground.readdress(1, 7);
            ground.await_subflows([true, true]);
        }),
        (DOWN * 5 / 24, &|| ground.cut(0)),
    ];
    let mut step = 0;
    let at = |got: u64| {
        if let Some((_, act)) = steps.get(step).filter(|(at, _)| got >= *at) {
            act();
            step += 1;
        }
    };
    exchange(&ground, Protocol::MPTCP, || ground.await_subflows([true, true]), at);
    assert_eq!(step, steps.len());
    serving.join().unwrap().unwrap();
    assert!(
        count(&ground, "MPJoinSynAckRx") >= 3 && count(&ground, "RmAddr") >= 3,
        "{:?}",
        counters(&ground.server).unwrap()
    );
    process.end(&ground);
}

/// An interface of the server's has as many subflows as the client joins from addresses of its own.
#[test]
fn a_client_joins_from_another_address_of_its_own() {
    let Some(ground) = ground() else { return };
    run(&ground.server, "ip", "addr add 10.99.0.253/24 dev vb0");
    run(&ground.server, "ip", "mptcp endpoint add 10.99.0.253 dev vb0 subflow");
    let mut process = start(&ground, &[]);
    let serving = target(&ground, 1);
    exchange(&ground, Protocol::MPTCP, || await_joins(&ground, 2), |_| {});
    serving.join().unwrap().unwrap();
    let down = carried(ground.folder.path(), "sent_bytes");
    assert!(down.iter().sum::<u64>() >= DOWN && down.iter().all(|bytes| *bytes > DOWN / PART), "{down:?}");
    process.end(&ground);
}

#[test]
fn a_start_takes_back_what_a_killed_server_left() {
    let Some(ground) = ground() else { return };
    let before = ground.traces();
    let mut process = start(&ground, &[]);
    process.0.kill().unwrap();
    ground.await_nothing_but(&before);

    // No process is left to take anything back.
    let mut process = start(&ground, &[]);
    let listener = ground.client.enter(|| TcpListener::bind("127.0.0.1:80").unwrap()).unwrap();
    let mut client = connect(&ground, Protocol::TCP, SERVER).unwrap();
    signal(keeper(&process.0), "KILL");
    process.0.wait().unwrap();
    drop(listener);
    assert_ne!(ground.traces(), before);
    let mut process = start(&ground, &[]);
    // The devices have the addresses that connection tracking remembers.
    client.write_all(b"more").unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    let serving = target(&ground, 1);
    exchange(&ground, Protocol::MPTCP, || await_joins(&ground, 1), |_| {});
    serving.join().unwrap().unwrap();
    process.end(&ground);
    assert_eq!(ground.traces(), before);
}

/// The kernel removes the routes of an interface that goes from every table, and its return is all that the keeper sees.
#[test]
fn an_interface_that_is_down_for_a_moment_has_its_routes_again() {
    let Some(ground) = ground() else { return };
    let mut process = start(&ground, &[]);
    let whole = ground.traces();
    let flap = "link set va0 down\nlink set va0 up\nroute replace default via 10.99.0.254 dev va0 metric 100\n";
    ground.client.command("ip", &["-batch", "-"], flap).unwrap();
    ground.await_nothing_but(&whole);
    process.end(&ground);
}

/// A firewall that is loaded again may remove all rules of nftables, those included that keep the host from being a router.
#[test]
fn a_flush_of_all_rules_ends_the_server_and_nothing_is_left() {
    let Some(ground) = ground() else { return };
    let before = ground.traces();
    let mut process = start(&ground, &[]);
    run(&ground.client, "nft", "flush ruleset");
    let until = Instant::now() + PATIENCE;
    let code = loop {
        if let Some(ended) = process.0.try_wait().unwrap() {
            break ended.code();
        }
        assert!(Instant::now() < until, "it serves without the rules: {}", ground.said());
        sleep(Duration::from_millis(20));
    };
    assert!(code == Some(1) && ground.said().contains("removed the nftables table"), "{code:?} {}", ground.said());
    assert_eq!(ground.traces(), before);

    // No process is left that could notice it.
    let mut process = start(&ground, &[]);
    signal(keeper(&process.0), "KILL");
    process.0.wait().unwrap();
    run(&ground.client, "nft", "flush ruleset");
    start(&ground, &[]).end(&ground);
    assert_eq!(ground.traces(), before);
}

/// Every mistake is named before anything is changed.
#[test]
fn its_options_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |options: &[&str], code, part: &str| {
        let (_, said, found) = ran(folder.path(), &[&["serve", "--native"], options].concat());
        assert!(found == code && said.contains(part), "{options:?}: {said}");
    };
    wrong(&["--via", "lo"], 2, "--forward");
    wrong(&["--forward", "80:127.0.0.1:81"], 2, "--via");
    let whole = ["--via", "lo", "--forward", "80:127.0.0.1:81"];
    let with = |more: &[&'static str]| [&whole[..], more].concat();
    wrong(&with(&["--measure"]), 2, "--measure");
    wrong(&with(&["--proxy"]), 2, "--proxy");
    wrong(&with(&["--key", "server.key"]), 2, "--key");
    wrong(&with(&["--via", "lo"]), 2, "lo stands there twice");
    wrong(&with(&["--forward", "80:127.0.0.1:82"]), 2, "port 80 stands there twice");
    wrong(&with(&["--forward", "127.0.0.1:80:a:82"]), 2, "--forward 127.0.0.1:80:a:82: this is no port with a target");
    wrong(&with(&["--scheduler", "blesst"]), 2, "did you mean \"blest\"?");
    let (_, said, code) = ran(folder.path(), &["serve", "--measure", "--forward", "80:127.0.0.1:81"]);
    assert!(code == 2 && said.contains("--native"), "{said}");
    if super::is_root() {
        let taken = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let forward = format!("{port}:127.0.0.1:81");
        let (_, said, code) = ran(folder.path(), &["serve", "--native", "--via", "lo", "--forward", &forward]);
        assert!(code == 1 && said.contains(&format!("taking port {port}")) && said.contains("--forward"), "{said}");
    } else {
        wrong(&whole, 1, "it needs root (CAP_NET_ADMIN)");
    }
}
