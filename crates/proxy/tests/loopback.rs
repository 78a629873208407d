//! A proxy and its server, with programs on one side and targets on the other.

mod common;
#[path = "../../link/tests/common/mod.rs"]
mod link;

use anabranch_link::{Server, secrets};
use anabranch_proxy::{Rules, parse_block, system};
use common::{End, Running, Setting, connect, credentials, exchange, open, run, serve, session, with_proxy};
use link::{admit, stop};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn listener() -> (TcpListener, u16) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// A target that reads everything, and then answers with it backwards.
fn backwards() -> u16 {
    let (socket, port) = listener();
    thread::spawn(move || {
        for program in socket.incoming() {
            let mut program = program.unwrap();
            thread::spawn(move || {
                let mut bytes = Vec::new();
                program.read_to_end(&mut bytes).unwrap();
                bytes.reverse();
                program.write_all(&bytes).unwrap();
            });
        }
    });
    port
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

#[test]
fn both_directions_end_on_their_own_and_every_byte_arrives() {
    let port = backwards();
    with_proxy(Setting::default(), |proxy| {
        for len in [0, 1, 70_000, 3 << 20] {
            let sent = bytes(len);
            let expected: Vec<u8> = sent.iter().rev().copied().collect();
            for host in ["127.0.0.1", "target.test"] {
                let mut program = connect(proxy.socks, host, port, None).unwrap();
                let mut writer = program.try_clone().unwrap();
                let sent = sent.clone();
                let writing = thread::spawn(move || {
                    writer.write_all(&sent).unwrap();
                    writer.shutdown(Shutdown::Write).unwrap();
                });
                let mut got = Vec::new();
                program.read_to_end(&mut got).unwrap();
                writing.join().unwrap();
                assert!(got == expected, "{len} bytes to {host}: {} came", got.len());
            }
        }
    });
}

/// The target writes no more from the beginning on, and the program still does.
#[test]
fn a_target_that_ends_first_still_gets_everything() {
    let (socket, port) = listener();
    let (got, all) = channel();
    thread::spawn(move || {
        for program in socket.incoming() {
            let (mut program, mut bytes) = (program.unwrap(), Vec::new());
            program.write_all(b"over").unwrap();
            program.shutdown(Shutdown::Write).unwrap();
            program.read_to_end(&mut bytes).unwrap();
            got.send(bytes).unwrap();
        }
    });
    with_proxy(Setting::default(), |proxy| {
        for len in [0, 1, 3 << 20] {
            let (mut program, mut text) = (connect(proxy.socks, "127.0.0.1", port, None).unwrap(), Vec::new());
            program.read_to_end(&mut text).unwrap();
            assert_eq!(text, b"over");
            program.write_all(&bytes(len)).unwrap();
            drop(program);
            assert!(all.recv_timeout(Duration::from_secs(60)).unwrap() == bytes(len), "{len} bytes");
        }
    });
}

/// 255 bytes are the most that SOCKS5 can name; in spellings of addresses that only resolvers read, nothing hides.
#[test]
fn names_that_are_too_long_or_hide_an_address_are_refused() {
    let setting = Setting { allow: Vec::new(), lookup: system(), ..Setting::default() };
    with_proxy(setting, |proxy| {
        let long = ["a".repeat(255), format!("{}.test", "b".repeat(64)), vec!["c"; 128].join(".")];
        for name in &long {
            assert_eq!(connect(proxy.socks, name, 80, None).unwrap_err(), 4, "{name} has no address");
        }
        for name in ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost", "localhost."] {
            let code = connect(proxy.socks, name, 80, None).unwrap_err();
            assert!([2, 4].contains(&code), "{name}: {code}");
        }
    });
}

#[test]
fn what_the_server_does_not_dial_is_refused_with_its_reason() {
    let (socket, port) = listener();
    let closed = listener().1;
    let setting = Setting { allow: vec![parse_block("127.0.0.1").unwrap()], ..Setting::default() };
    with_proxy(setting, |proxy| {
        let refused = |host: &str, port| connect(proxy.socks, host, port, None).unwrap_err();
        assert_eq!(refused("127.0.0.1", closed), 5, "refused by the host");
        assert_eq!(refused("127.0.0.2", port), 2, "not allowed");
        assert_eq!(refused("192.168.1.1", port), 2);
        assert_eq!(refused("::1", port), 2);
        assert_eq!(refused("::ffff:127.0.0.2", port), 2);
        assert_eq!(refused("unknown.test", port), 4, "a name that is not known");
        assert!(connect(proxy.socks, "127.0.0.1", port, None).is_ok());
    });
    drop(socket);
}

/// The name has an allowed address when it is looked up first, and a private one ever after.
#[test]
fn a_name_is_resolved_once_and_what_was_checked_is_dialled() {
    let target = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = target.local_addr().unwrap().port();
    let private = TcpListener::bind(("127.0.0.1", port)).unwrap();
    private.set_nonblocking(true).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let lookup = move |name: &str| {
        let times = count.fetch_add(1, Ordering::Relaxed);
        let (good, bad) = ([127, 0, 0, 2].into(), [127, 0, 0, 1].into());
        Ok(match name {
            "rebound.test" if times == 0 => vec![good],
            "mixed.test" => vec![bad, good],
            _ => vec![bad],
        })
    };
    let allow = vec![parse_block("127.0.0.2").unwrap()];
    with_proxy(Setting { allow, lookup: Arc::new(lookup), ..Setting::default() }, |proxy| {
        assert!(connect(proxy.socks, "rebound.test", port, None).is_ok());
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(connect(proxy.socks, "rebound.test", port, None).unwrap_err(), 2);
        assert!(connect(proxy.socks, "mixed.test", port, None).is_ok(), "what is allowed is dialled");
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    });
    assert_eq!(private.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody came to the private address");
}

#[test]
fn a_port_with_credentials_admits_users_alone() {
    let port = backwards();
    let setting = Setting { credentials: credentials(), ..Setting::default() };
    with_proxy(setting, |proxy| {
        assert!(connect(proxy.socks, "127.0.0.1", port, Some(("ann", "secret"))).is_ok());
        assert!(connect(proxy.socks, "127.0.0.1", port, Some(("ann", "guess"))).is_err());
        assert!(connect(proxy.socks, "127.0.0.1", port, None).is_err());
    });
}

/// A program reads nothing of a target that sends without end: it is held back, and others are not.
#[test]
fn a_slow_reader_holds_up_nobody_and_takes_bounded_memory() {
    let (socket, flood) = listener();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let flooding = thread::spawn(move || {
        let (mut program, _) = socket.accept().unwrap();
        let piece = vec![7; 64 << 10];
        while let Ok(len) = program.write(&piece) {
            count.fetch_add(len, Ordering::Relaxed);
        }
    });
    let port = backwards();
    with_proxy(Setting::default(), |proxy| {
        let slow = connect(proxy.socks, "127.0.0.1", flood, None).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let mut before = usize::MAX;
        while sent.load(Ordering::Relaxed) != before {
            assert!(Instant::now() < until, "it is never held back");
            before = sent.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(500));
            assert_eq!(exchange(proxy.socks, port, b"abc"), b"cba", "another one is served");
        }
        // Both buffers of the connection, and what the system's sockets hold.
        assert!(before < 64 << 20, "{before} bytes");
        drop(slow);
    });
    flooding.join().unwrap();
}

#[test]
fn hundreds_at_once_and_one_after_another() {
    anabranch_link::raise_file_limit();
    let (socket, port) = listener();
    thread::spawn(move || {
        let mut all = Vec::new();
        for program in socket.incoming() {
            let mut program = program.unwrap();
            program.write_all(b"hello").unwrap();
            all.push(program);
        }
    });
    let greeted = |program: &mut TcpStream| {
        let mut text = [0; 5];
        program.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"hello");
    };
    with_proxy(Setting::default(), |proxy| {
        let open = |_| connect(proxy.socks, "127.0.0.1", port, None).unwrap();
        let mut all: Vec<TcpStream> = (0..300).map(open).collect();
        all.iter_mut().for_each(greeted);
        drop(all);
        (0..300).map(open).for_each(|mut program| greeted(&mut program));
    });
}

/// A target that reads the first bytes, answers, and resets the connection. Counts those that came.
fn resetting(answer: &'static [u8]) -> (u16, Arc<AtomicUsize>) {
    let (socket, port) = listener();
    let count = Arc::new(AtomicUsize::new(0));
    let came = count.clone();
    thread::spawn(move || {
        for program in socket.incoming() {
            let mut program = program.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let _ = program.read(&mut [0; 100]).unwrap();
            program.write_all(answer).unwrap();
            // It ends with a reset.
            socket2::SockRef::from(&program).set_linger(Some(Duration::ZERO)).unwrap();
        }
    });
    (port, came)
}

/// As without a proxy: a server that does not read the rest of an upload says why, and resets.
#[test]
fn what_a_target_said_before_its_reset_arrives_and_then_the_reset() {
    let answer = b"HTTP/1.1 413 Content Too Large\r\n\r\n";
    let (port, came) = resetting(answer);
    with_proxy(Setting::default(), |proxy| {
        for n in 1..=5 {
            let mut program = connect(proxy.socks, "127.0.0.1", port, None).unwrap();
            program.write_all(&bytes(50)).unwrap();
            let mut got = Vec::new();
            let end = program.read_to_end(&mut got);
            assert_eq!((got.as_slice(), end.unwrap_err().kind()), (&answer[..], ErrorKind::ConnectionReset));
            assert_eq!(came.load(Ordering::Relaxed), n, "no request is made twice");
        }
    });
}

/// The program sends its request before the answer to SOCKS, and the target resets as soon as it has that.
#[test]
fn a_request_that_a_target_has_had_is_not_repeated() {
    let (port, came) = resetting(b"");
    with_proxy(Setting::default(), |proxy| {
        for n in 1..=20 {
            let mut program = TcpStream::connect(proxy.socks).unwrap();
            program.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let socks = [&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes()].concat();
            program.write_all(&[&socks[..], b"POST"].concat()).unwrap();
            let _ = program.read_to_end(&mut Vec::new());
            assert_eq!(came.load(Ordering::Relaxed), n);
        }
    });
}

#[test]
fn a_server_without_memory_says_so_at_once() {
    let port = backwards();
    with_proxy(Setting { memory: 2 << 20, ..Setting::default() }, |proxy| {
        let begun = Instant::now();
        let all: Vec<_> = (0..20).map(|_| connect(proxy.socks, "127.0.0.1", port, None)).collect();
        assert!(all.iter().any(|program| program.as_ref().is_err_and(|code| *code == 1)), "{all:?}");
        assert!(all.iter().any(Result::is_ok));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        drop(all);
        thread::sleep(Duration::from_secs(3));
        assert_eq!(exchange(proxy.socks, port, b"abc"), b"cba", "what was given back can be had");
    });
}

#[test]
fn a_server_that_serves_no_proxies_is_named_before_programs_come() {
    let (server, client, stopped) = (secrets::new_key(), secrets::new_key(), stop());
    let (public, admitted) = (server.key.public(), admit(&client, "laptop"));
    let mut host = Server::listen((Ipv4Addr::LOCALHOST, 0).into(), server.key, vec![admitted], Vec::new()).unwrap();
    let address = host.local().unwrap();
    thread::scope(|scope| {
        let _end = End(&stopped);
        scope.spawn(|| host.run(&stopped, None).unwrap());
        let said = open(session(client, public, address), None, &stopped).err().unwrap().to_string();
        assert!(said.contains("serve --proxy"), "{said}");
    });
}

/// The server is started again: connections end, and new ones are made, without waiting for `orphan_timeout`.
#[test]
fn a_server_that_was_started_again_is_used_again() {
    let port = backwards();
    let (server, client) = (secrets::new_key(), secrets::new_key());
    let (public, admitted) = (server.key.public(), admit(&client, "laptop"));
    let stopped = stop();
    thread::scope(|scope| {
        let _end = End(&stopped);
        let serving = |local| {
            let (flag, (ready, address)) = (stop(), channel());
            let (stopper, key, admitted) = (flag.clone(), server.clone(), admitted.clone());
            let Setting { allow, lookup, memory, .. } = Setting::default();
            let thread = scope.spawn(move || serve(local, key, admitted, (allow, lookup, memory), &flag, &ready));
            (address.recv().unwrap(), stopper, thread)
        };
        let (address, stopper, thread) = serving((Ipv4Addr::LOCALHOST, 0).into());
        let (session, flag, (ready, running)) = (session(client, public, address), &*stopped, channel());
        scope.spawn(move || run(session, None, flag, &ready));
        let proxy = running.recv().unwrap();
        assert_eq!(exchange(proxy.socks, port, b"abc"), b"cba");
        let mut old = connect(proxy.socks, "127.0.0.1", port, None).unwrap();
        stopper.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        let (_, stopper, _) = serving(address);
        let _stopper = End(&stopper);
        let begun = Instant::now();
        old.write_all(b"abc").unwrap();
        assert_eq!(exchange(proxy.socks, port, b"def"), b"fed");
        assert!(old.read(&mut [0; 10]).is_err(), "it is gone");
        assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    });
}

/// A program that uploads to a target, and is answered with a byte when four megabytes have arrived.
struct Upload(TcpStream);

impl Upload {
    const LEN: usize = 4 << 20;

    fn begin(socks: std::net::SocketAddr) -> Self {
        let (socket, port) = listener();
        thread::spawn(move || {
            let (mut program, _) = socket.accept().unwrap();
            let mut piece = vec![0; Self::LEN];
            while program.read_exact(&mut piece).is_ok() {
                program.write_all(b".").unwrap();
            }
        });
        Self(connect(socks, "127.0.0.1", port, None).unwrap())
    }

    /// The less used path's part of what the paths carry for four megabytes of the program's.
    fn lesser_share(&mut self, proxy: &Running) -> f64 {
        let sent = || proxy.paths().iter().map(|path| path.sent_bytes).collect::<Vec<_>>();
        let before = sent();
        self.0.write_all(&bytes(Self::LEN)).unwrap();
        self.0.read_exact(&mut [0]).unwrap();
        let each: Vec<u64> = sent().iter().zip(&before).map(|(now, before)| now - before).collect();
        assert!(each.len() == 2 && each.iter().sum::<u64>() >= Self::LEN as u64, "{each:?}");
        *each.iter().min().unwrap() as f64 / Self::LEN as f64
    }
}

/// The load of each path shows the scheduler: `roundrobin` uses both paths, `active-backup` one.
#[test]
fn rules_may_change_while_connections_run() {
    let scheduler = |name| anabranch_scenario::scheduler("test", name).unwrap();
    with_proxy(Setting::default(), |proxy| {
        let rule = |name: &str| {
            let text = format!("* * scheduler={name}\n");
            proxy.rules.send(Rules::parse("rules", &text, scheduler("blest"), &["lo".into()]).unwrap()).unwrap();
            thread::sleep(Duration::from_millis(300));
        };
        rule("roundrobin");
        let mut old = Upload::begin(proxy.socks);
        let both = old.lesser_share(proxy);
        assert!(both >= 0.05, "{both} on the lesser path by roundrobin");
        rule("active-backup");
        for (which, upload) in [("old", &mut old), ("new", &mut Upload::begin(proxy.socks))] {
            let one = upload.lesser_share(proxy);
            assert!(one < 0.02, "{one} on the lesser path by active-backup, {which} connection");
        }
    });
}

/// Sends the request and its first bytes, and gives up with a reset as soon as the server has it.
fn give_up(socks: std::net::SocketAddr, asked: &dyn Fn() -> bool, request: &[u8]) {
    let mut program = TcpStream::connect(socks).unwrap();
    program.write_all(request).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !asked() {
        assert!(Instant::now() < until, "the server never resolves the name");
        thread::sleep(Duration::from_millis(5));
    }
    socket2::SockRef::from(&program).set_linger(Some(Duration::ZERO)).unwrap();
}

/// The name of the target takes long to resolve, and the program is gone before it is known: the target gets nothing of it.
#[test]
fn a_request_that_its_program_gave_up_reaches_no_target() {
    let (socket, port) = listener();
    let (release, held) = channel::<()>();
    let (held, asked) = (Mutex::new(held), Arc::new(AtomicUsize::new(0)));
    let count = asked.clone();
    let lookup = move |_: &str| {
        count.fetch_add(1, Ordering::Relaxed);
        let _ = held.lock().unwrap().recv();
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    };
    with_proxy(Setting { lookup: Arc::new(lookup), ..Setting::default() }, |proxy| {
        let name = b"slow.test";
        let head = [&[5, 1, 0, 5, 1, 0, 3, name.len() as u8][..], name, &port.to_be_bytes()].concat();
        give_up(proxy.socks, &|| asked.load(Ordering::Relaxed) > 0, &[&head[..], b"given up"].concat());
        thread::sleep(Duration::from_millis(500));
        release.send(()).unwrap();
        release.send(()).unwrap();
        // Another program's request is the first that the target gets.
        let mut program = connect(proxy.socks, "slow.test", port, None).unwrap();
        program.write_all(b"waited").unwrap();
        let mut got = [0; 6];
        socket.accept().unwrap().0.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"waited");
        thread::sleep(Duration::from_millis(300));
        socket.set_nonblocking(true).unwrap();
        assert_eq!(socket.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "and the only one");
    });
}

/// Silent programs, as many as fill the proxy: without a limit of their own no other would be served for 30 s.
#[test]
fn silent_programs_lock_no_other_out() {
    anabranch_link::raise_file_limit();
    let port = backwards();
    with_proxy(Setting::default(), |proxy| {
        let mut all: Vec<TcpStream> = (0..4_300).map(|_| TcpStream::connect(proxy.socks).unwrap()).collect();
        assert_eq!(exchange(proxy.socks, port, b"abc"), b"cba");
        // The oldest had to go, and must not take it for an answer.
        all[0].set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(all[0].read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        // The youngest is served.
        let last = all.last_mut().unwrap();
        last.write_all(&[5, 1, 0]).unwrap();
        let mut answer = [0; 2];
        last.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [5, 0]);
        assert!(proxy.status().counters["crowded out"] >= 4_300 - 1_025);
    });
}
