//! Programs between emulated paths, in real time. Where this machine cannot (root, TUN and MPTCP are needed) a test says
//! SKIPPED and passes. The machine may be busy: nothing here depends on exact timing.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = r#"
name = "two paths"
duration = "10s"
[[path]]
name = "near"
rate = "20mbit"
delay = "10ms"
[[path]]
name = "far-off"
rate = "10mbit"
delay = "30ms"
"#;

/// A folder with a scenario.
struct Place {
    folder: tempfile::TempDir,
}

/// `None`, and a word on standard error, where this machine cannot or one of `programs` is missing.
fn place(programs: &[&str]) -> Option<Place> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("paths.toml"), SCENARIO).unwrap();
    let place = Place { folder };
    let is_there = |program: &&&str| Command::new(program).arg("--version").output().is_ok();
    let missing = programs.iter().find(|program| !is_there(program)).map(|program| format!("{program} is missing"));
    let tried = place.shell(&["-q"], &["true"]);
    let refused = String::from_utf8_lossy(&tried.stderr).contains("needs root").then(|| "this needs root".to_owned());
    let Some(why) = missing.or(refused) else { return Some(place) };
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // Not by a macro: a test's captured output is shown only when it fails.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
    None
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, options: &[&str], command: &[&str]) -> Command {
        let mut anabranch = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        anabranch.current_dir(self.folder.path()).args([
            "shell",
            "paths.toml",
            "--summary",
            "summary.json",
            "--no-preflight",
        ]);
        anabranch.args(options).arg("--").args(command).stdin(Stdio::null());
        anabranch
    }

    fn shell(&self, options: &[&str], command: &[&str]) -> Output {
        self.command(options, command).output().unwrap()
    }

    /// Standard output of a command that succeeds, and the summary.
    #[track_caller]
    fn succeed(&self, options: &[&str], command: &[&str]) -> (String, Value) {
        let Output { status, stdout, stderr } = self.shell(options, command);
        let (output, errors) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
        assert!(status.success(), "{status}\n{output}\n{errors}");
        let summary = std::fs::read_to_string(self.path("summary.json")).unwrap();
        (output, serde_json::from_str(&summary).unwrap())
    }
}

fn number(value: &Value, keys: &[&str]) -> f64 {
    let found = keys.iter().try_fold(value, |value, key| value.get(key));
    found.and_then(Value::as_f64).unwrap_or(0.0)
}

/// The bytes that crossed a path.
fn bytes(summary: &Value, path: &str, way: &str) -> f64 {
    number(summary, &["paths", path, way, "bytes"])
}

#[test]
fn the_exit_code_and_the_streams_are_those_of_the_command() {
    let Some(place) = place(&[]) else { return };
    let code = |command: &[&str]| place.shell(&["-q"], command).status.code();
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    let hello = place.shell(&["-q"], &["sh", "-c", "echo hello; echo there >&2"]);
    assert_eq!((hello.stdout.as_slice(), hello.stderr.as_slice()), (&b"hello\n"[..], &b"there\n"[..]));
    let missing = place.shell(&["-q"], &["no-such-program"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("no-such-program"));
    // Without a command, $SHELL.
    let mut unnamed = place.command(&["-q"], &[]);
    let mut unnamed = unnamed.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    unnamed.stdin.take().unwrap().write_all(b"echo $ANABRANCH_SERVER; exit 5\n").unwrap();
    let unnamed = unnamed.wait_with_output().unwrap();
    assert_eq!((unnamed.status.code(), unnamed.stdout.as_slice()), (Some(5), &b"10.0.0.2\n"[..]));
}

const MPTCP_SERVER: &str = r#"
import os, socket, hashlib
address = os.environ["ANABRANCH_SERVER"]
listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 262)
listener.bind((address, 7000))
listener.listen()
peer, _ = listener.accept()
data = bytes(i * i % 251 for i in range(1 << 12)) * 1024
peer.sendall(data)
peer.shutdown(socket.SHUT_WR)
peer.recv(1)
"#;

const MPTCP_CLIENT: &str = r#"
import os, socket
address = os.environ["ANABRANCH_SERVER"]
peer = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 262)
peer.connect((address, 7000))
data = bytearray()
while piece := peer.recv(1 << 16):
    data += piece
assert data == bytes(i * i % 251 for i in range(1 << 12)) * 1024, len(data)
peer.sendall(b"!")
print(len(data))
"#;

/// A transfer of 4 MiB over sockets of protocol 262.
#[track_caller]
fn transfer_joins(place: &Place, options: &[&str]) -> String {
    place.write("server.py", MPTCP_SERVER);
    place.write("client.py", MPTCP_CLIENT);
    let options = [options, &["--server", "python3 server.py"]].concat();
    let (output, summary) = place.succeed(&options, &["python3", "client.py"]);
    assert_eq!(output, "4194304\n");
    let counted = |host: &str, name: &str| number(&summary, &["counters", host, name]);
    assert_eq!(counted("client", "MPTcpExtMPCapableSYNTX"), 1.0, "{summary}");
    assert_eq!(counted("client", "MPTcpExtMPJoinSynAckRx"), 1.0, "{summary}");
    assert_eq!(counted("server", "MPTcpExtMPJoinAckRx"), 1.0, "{summary}");
    for fallback in ["MPTcpExtMPCapableFallbackACK", "MPTcpExtMPCapableFallbackSYNACK", "MPTcpExtInfiniteMapTx"] {
        assert_eq!(counted("server", fallback) + counted("client", fallback), 0.0, "{summary}");
    }
    let down = ["near", "far-off"].map(|path| bytes(&summary, path, "down"));
    assert!(down.iter().all(|bytes| *bytes > 100_000.0), "{summary}");
    // Headers and retransmissions are added.
    let all = down[0] + down[1];
    assert!((4_194_304.0 * 1.03..4_194_304.0 * 2.0).contains(&all), "{summary}");
    for (path, delay) in [("near", 0.010), ("far-off", 0.030)] {
        let way = |key: &str| number(&summary, &["paths", path, "down", key]);
        assert!(way("utilisation") > 0.0 && way("utilisation") <= 1.0, "{summary}");
        assert!(way("delay_mean_s") >= delay && way("delay_p99_s") >= way("delay_mean_s"), "{summary}");
        assert!(way("queue_max_packets") >= way("queue_mean_packets"), "{summary}");
    }
    summary.to_string()
}

#[test]
fn multipath_sockets_use_both_paths() {
    let Some(place) = place(&["python3"]) else { return };
    transfer_joins(&place, &["-q"]);
}

#[test]
fn multipath_sockets_use_both_paths_in_ipv6() {
    let Some(place) = place(&["python3"]) else { return };
    let summary = transfer_joins(&place, &["-q", "--set", "hosts.ip=6"]);
    assert!(summary.contains("\"emulation\""), "{summary}");
}

/// A download between programs that know nothing of Multipath TCP.
const PLAIN: &str = r#"
import os, socket, sys
if sys.argv[1] == "serve":
    listener = socket.create_server((os.environ["ANABRANCH_SERVER"], 5001))
    connection, _ = listener.accept()
    connection.sendall(bytes(4_000_000))
    connection.close()
    sys.stdin.read()
else:
    connection = socket.create_connection((os.environ["ANABRANCH_SERVER"], 5001))
    got = 0
    while part := connection.recv(1 << 16):
        got += len(part)
    print(got)
"#;

#[test]
fn mptcpize_gives_plain_programs_both_paths() {
    let Some(place) = place(&["python3", "mptcpize"]) else { return };
    place.write("plain.py", PLAIN);
    let run = |with: &str| {
        let server = format!("{with} python3 plain.py serve");
        // The server may not listen yet.
        let client = format!("until {with} python3 plain.py fetch 2>/dev/null; do sleep 0.1; done");
        place.succeed(&["-q", "--server", &server], &["sh", "-c", &client])
    };
    let (output, summary) = run("mptcpize run");
    assert_eq!(output.trim(), "4000000");
    assert!(bytes(&summary, "far-off", "down") > 100_000.0, "{summary}");
    let (output, summary) = run("");
    assert_eq!(output.trim(), "4000000");
    assert!(bytes(&summary, "far-off", "down") < 1000.0, "{summary}");
}

#[test]
fn the_summary_is_a_table_on_standard_error() {
    let Some(place) = place(&[]) else { return };
    let ran = place.shell(&[], &["true"]);
    let text = String::from_utf8(ran.stderr).unwrap();
    let rows = ["near down", "near up", "far-off down", "far-off up", "emulation:", "nsenter --net=/proc/"];
    assert!(rows.iter().all(|row| text.contains(row)), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn curl_fetches_a_file_over_plain_tcp() {
    let Some(place) = place(&["python3", "curl"]) else { return };
    let content: Vec<u8> = (0..500_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    place.write("file", &content);
    let fetch = "curl -s --max-time 60 -o fetched http://$ANABRANCH_SERVER:8000/file";
    let server = ["-q", "--server", "python3 -m http.server 8000 2>/dev/null"];
    let (_, summary) = place.succeed(&server, &["sh", "-c", fetch]);
    assert!(std::fs::read(place.path("fetched")).unwrap() == content);
    assert!(bytes(&summary, "near", "down") > 500_000.0, "{summary}");
    assert_eq!(bytes(&summary, "far-off", "down"), 0.0, "{summary}");
}

/// Echoes datagrams.
const UDP_SERVER: &str = r#"
import socket
echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
echo.bind(("0.0.0.0", 7001))
while True:
    data, peer = echo.recvfrom(2000)
    echo.sendto(data, peer)
"#;

/// `python3 ask.py icmp|udp NUMBER [SOURCE]`: round-trip times in seconds, `lost` after 3 s.
const ASK: &str = r#"
import os, socket, struct, sys, time
server, kind, count = os.environ["ANABRANCH_SERVER"], sys.argv[1], int(sys.argv[2])
def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
asker = socket.socket(socket.AF_INET, *((socket.SOCK_RAW, 1) if kind == "icmp" else (socket.SOCK_DGRAM, 0)))
if len(sys.argv) > 3: asker.bind((sys.argv[3], 0))
for n in range(count):
    payload = b"anabranch was here, and there"[:28]
    if kind == "icmp":
        head = struct.pack("!BBHHH", 8, 0, 0, 77, n)
        payload = struct.pack("!BBHHH", 8, 0, checksum(head + payload), 77, n) + payload
    begun = time.monotonic()
    asker.settimeout(3)
    asker.sendto(payload, (server, 7001))
    try:
        while True:
            answer = asker.recv(2000)
            if kind == "udp" or (answer[20] == 0 and answer[24:28] == struct.pack("!HH", 77, n)): break
        print(time.monotonic() - begun, flush=True)
    except TimeoutError:
        print("lost", flush=True)
    time.sleep(float(os.environ.get("NAP", "0")))
"#;

fn round_trips(output: &str) -> Vec<f64> {
    output.lines().map(|line| line.parse().unwrap_or(f64::INFINITY)).collect()
}

#[test]
fn pings_and_datagrams_take_twice_the_delay_and_are_captured() {
    let Some(place) = place(&["python3"]) else { return };
    place.write("ask.py", ASK);
    place.write("echo.py", UDP_SERVER);
    let options = ["-q", "--server", "python3 echo.py", "--pcap", "captures"];
    let ask = "python3 ask.py icmp 3; python3 ask.py udp 3; python3 ask.py icmp 2 $ANABRANCH_CLIENT_FAR_OFF";
    let (output, summary) = place.succeed(&options, &["sh", "-c", ask]);
    let times = round_trips(&output);
    assert_eq!(times.len(), 8, "{output}");
    assert!(times[..6].iter().all(|time| (0.020..0.5).contains(time)), "{output}");
    assert!(times[6..].iter().all(|time| (0.060..0.5).contains(time)), "{output}");
    assert_eq!(number(&summary, &["paths", "near", "up", "packets"]), 6.0, "{summary}");
    assert_eq!(number(&summary, &["paths", "far-off", "down", "packets"]), 2.0, "{summary}");
    assert!(number(&summary, &["paths", "far-off", "up", "delay_mean_s"]) >= 0.030, "{summary}");
    for file in ["client.pcapng", "server.pcapng"] {
        let capture = std::fs::read(place.path("captures").join(file)).unwrap();
        // Eight questions and eight answers, each once.
        let marks = capture.windows(19).filter(|window| window == b"anabranch was here,").count();
        assert_eq!(marks, 16, "{file}");
    }
}

#[test]
fn outages_and_the_timeline_take_effect() {
    let Some(place) = place(&["python3"]) else { return };
    let changes =
        "outage = [[\"0s\", \"600s\"]]\n[[timeline]]\nat = \"1s\"\nset = \"path.near.delay\"\nvalue = \"150ms\"\n";
    place.write("paths.toml", format!("{SCENARIO}{changes}"));
    place.write("ask.py", ASK);
    let ask = "python3 ask.py icmp 1 $ANABRANCH_CLIENT_FAR_OFF; python3 ask.py icmp 1";
    let (output, summary) = place.succeed(&["-q"], &["sh", "-c", ask]);
    let times = round_trips(&output);
    // The first question waits 3 s for an answer that never comes; the second one is asked after the change.
    assert!(times.len() == 2 && times[0].is_infinite() && (0.300..1.0).contains(&times[1]), "{output}");
    assert_eq!(number(&summary, &["paths", "far-off", "up", "outage_drops"]), 1.0, "{summary}");
    assert_eq!(number(&summary, &["paths", "near", "up", "outage_drops"]), 0.0, "{summary}");
}

#[test]
fn cross_traffic_crosses_and_a_device_may_go_down() {
    let Some(place) = place(&["python3", "ip"]) else { return };
    let cross = "[[cross]]\npath = \"near\"\nkind = \"udp\"\nrate = \"8mbit\"\npacket = 1000\n\
                 [[cross]]\npath = \"far-off\"\nkind = \"tcp\"\n";
    place.write("paths.toml", format!("{SCENARIO}{cross}"));
    let (_, summary) = place.succeed(&["-q"], &["sh", "-c", "sleep 0.5; ip link set path0 down; sleep 0.5"]);
    // A megabyte a second, for about one; and a flow that fills its path.
    assert!((500_000.0..5_000_000.0).contains(&bytes(&summary, "near", "down")), "{summary}");
    assert!(bytes(&summary, "far-off", "down") > 100_000.0, "{summary}");
    assert!(bytes(&summary, "far-off", "up") > 1000.0, "{summary}");
}

/// Leaves a child that does not want to end.
const STUBBORN: &str = r#"
import os, signal, socket, subprocess, time
child = subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
open("pids", "w").write(f"{os.getpid()} {child.pid}")
listener = socket.create_server(("", 7002))
time.sleep(1000)
"#;

fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn the_server_ends_with_the_shell_and_a_second_terminal_can_enter() {
    let Some(place) = place(&["python3", "nsenter", "ip"]) else { return };
    place.write("server.py", STUBBORN);
    let look = "nsenter --net=$ANABRANCH_SERVER_NS ip -o addr show lo; nsenter --net=$ANABRANCH_CLIENT_NS ip -o addr";
    let (output, _) = place.succeed(&["-q", "--server", "exec python3 server.py"], &["sh", "-c", look]);
    assert!(output.contains(" 10.0.0.2/32 ") && output.contains(" 10.1.0.1/32 "), "{output}");
    let pids = std::fs::read_to_string(place.path("pids")).unwrap();
    let left: Vec<&str> = pids.split(' ').filter(|pid| Path::new("/proc").join(pid).exists() && runs(pid)).collect();
    assert_eq!((left.as_slice(), pids.split(' ').count()), (&[][..], 2));
}

#[test]
fn a_server_that_fails_is_an_error_and_one_that_ends_is_not() {
    let Some(place) = place(&[]) else { return };
    let failed = place.shell(&["--server", "exit 3"], &["true"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("ended with 3"));
    place.succeed(&["-q", "--server", "true"], &["true"]);
}

#[test]
fn a_sweep_has_no_one_network() {
    let Some(place) = place(&[]) else { return };
    place.write("paths.toml", format!("{SCENARIO}[sweep]\n\"path.near.loss\" = [\"0%\", \"1%\"]\n"));
    let refused = place.shell(&[], &["true"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("sweep of 2 cells"));
}

#[test]
fn keys_are_the_commands_and_requests_to_end_are_passed_on() {
    let Some(place) = place(&[]) else { return };
    let script = "trap 'echo ended; exit 9' TERM; echo ready; while :; do sleep 0.1; done";
    let mut shell = place.command(&["-q"], &["sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(shell.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let send = |signal: &str| {
        let line = format!("kill -{signal} {}", shell.id());
        assert!(Command::new("sh").arg("-c").arg(line).status().unwrap().success());
    };
    send("INT");
    send("QUIT");
    std::thread::sleep(Duration::from_millis(300));
    send("TERM");
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "ended\n");
    let begun = Instant::now();
    assert_eq!(shell.wait().unwrap().code(), Some(9));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// `python3 take.py PROTOCOL`: writes the length of each stream into `got`, when it has ended.
const TAKE: &str = r#"
import os, socket, sys, threading
def take(peer):
    count = 0
    while part := peer.recv(1 << 16):
        count += len(part)
    peer.close()
    os.write(got, f"{count}\n".encode())
got = os.open("got", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[1]))
listener.bind(("", 7000))
listener.listen(64)
while True:
    peer, _ = listener.accept()
    threading.Thread(target=take, args=(peer,)).start()
    del peer
"#;

/// `python3 give.py PROTOCOL BYTES`: hands them over and ends at once.
const GIVE: &str = r#"
import os, socket, sys
peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[1]))
peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
peer.connect((os.environ["ANABRANCH_SERVER"], 7000))
peer.sendall(bytes(int(sys.argv[2])))
"#;

impl Place {
    fn got(&self) -> String {
        std::fs::read_to_string(self.path("got")).unwrap_or_default()
    }
}

#[test]
fn what_a_command_sent_arrives_though_it_has_ended() {
    let Some(place) = place(&["python3"]) else { return };
    place.write("take.py", TAKE);
    place.write("give.py", GIVE);
    // Plain, over both paths, and from Multipath TCP to a host that does not speak it.
    for (ours, theirs) in [("0", "0"), ("262", "262"), ("262", "0")] {
        let server = format!("exec python3 take.py {theirs}");
        // A process that continues in the background is ended, and the data that it had sent arrives too.
        let twice = format!("python3 give.py {ours} 100000 & exec python3 give.py {ours} 3000000");
        for command in [&["python3", "give.py", ours, "3000000"][..], &["sh", "-c", &twice]] {
            let _ = std::fs::remove_file(place.path("got"));
            let ran = place.shell(&["-q", "--server", &server], command);
            assert_eq!((ran.status.code(), String::from_utf8_lossy(&ran.stderr).as_ref()), (Some(0), ""));
            assert!(place.got().lines().any(|line| line == "3000000"), "{ours} {theirs} {command:?}: {}", place.got());
        }
    }
}

#[test]
fn datagrams_under_way_arrive_too() {
    let Some(place) = place(&["python3"]) else { return };
    place.write("paths.toml", SCENARIO.replace("10ms", "500ms").replace("20mbit", "1mbit"));
    place.write(
        "take.py",
        "import os, socket\ntaker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ntaker.bind((\"\", 7000))\n\
         got = os.open(\"got\", os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n\
         while True: os.write(got, str(len(taker.recv(2000))).encode() + b\"\\n\")\n",
    );
    let give = "import os, socket\ngiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                for _ in range(40): giver.sendto(bytes(1000), (os.environ[\"ANABRANCH_SERVER\"], 7000))";
    let ran = place.shell(&["-q", "--server", "exec python3 take.py"], &["python3", "-c", give]);
    assert_eq!(ran.status.code(), Some(0));
    assert_eq!(place.got(), "1000\n".repeat(40));
}

#[test]
fn what_cannot_arrive_is_told_and_a_signal_ends_the_wait() {
    let Some(place) = place(&["python3"]) else { return };
    place.write("paths.toml", SCENARIO.replace("delay = ", "outage = [[\"2s\", \"600s\"]]\ndelay = "));
    place.write("take.py", TAKE);
    place.write("give.py", GIVE);
    let give = "python3 give.py 262 8000000; exit 7";
    let server = ["--server", "exec python3 take.py 262"];
    let mut shell = place.command(&server, &["sh", "-c", give]).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(shell.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains("waiting for data under way") {
        assert!(errors.read_line(&mut text).unwrap() > 0, "{text}");
    }
    // It would wait for half a minute.
    let interrupt = format!("kill -INT {}", shell.id());
    assert!(Command::new("sh").arg("-c").arg(interrupt).status().unwrap().success());
    let begun = Instant::now();
    errors.read_to_string(&mut text).unwrap();
    assert_eq!(shell.wait().unwrap().code(), Some(7), "{text}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{text}");
    let left = text.lines().find(|line| line.contains("did not arrive")).unwrap_or_else(|| panic!("{text}"));
    assert!(left.contains("1 connection") && left.contains("bytes"), "{left}");
    assert_eq!(place.got(), "", "a stream without its end");
}

/// Starts children that leave their parent, session and group, and do not want to end; their numbers go to `$1`.
const LEAVING: &str = r#"
trap '' TERM HUP
setsid sh -c 'trap "" TERM HUP; echo $$ >> '$1'; while :; do sleep 1; done' &
(sh -c 'echo $$ >> '$1'; exec sleep 1000' &)
echo $$ >> $1
"#;

impl Place {
    /// The processes whose numbers are in `file`, once there are three.
    fn processes(&self, file: &str) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let text = std::fs::read_to_string(self.path(file)).unwrap_or_default();
            let pids: Vec<String> = text.lines().map(str::to_owned).collect();
            if pids.len() == 3 {
                return pids;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The network namespaces of all processes that are not ours.
fn namespaces() -> Vec<String> {
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let links = processes.filter_map(|process| std::fs::read_link(process.path().join("ns/net")).ok());
    links.filter(|link| *link != own).map(|link| link.to_string_lossy().into_owned()).collect()
}

/// Those of the processes that still run after a while.
fn remaining(pids: &[String]) -> Vec<&String> {
    let begun = Instant::now();
    while pids.iter().any(|pid| runs(pid)) && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    pids.iter().filter(|pid| runs(pid)).collect()
}

#[test]
fn programs_and_namespaces_die_with_a_shell_that_is_killed() {
    let Some(place) = place(&["setsid"]) else { return };
    place.write("leaving.sh", LEAVING);
    let server = ["-q", "--server", "sh leaving.sh server; exec sleep 1000"];
    let client = ["sh", "-c", "sh leaving.sh client; readlink /proc/self/ns/net > ns; exec sleep 1000"];
    let mut shell = place.command(&server, &client).spawn().unwrap();
    let pids = [place.processes("client"), place.processes("server")].concat();
    while !std::fs::read_to_string(place.path("ns")).is_ok_and(|text| text.ends_with('\n')) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let namespace = std::fs::read_to_string(place.path("ns")).unwrap();
    assert!(namespaces().iter().any(|other| *other == namespace.trim()));
    shell.kill().unwrap();
    assert_eq!(shell.wait().unwrap().code(), None);
    assert_eq!(remaining(&pids), Vec::<&String>::new());
    let begun = Instant::now();
    while namespaces().iter().any(|other| *other == namespace.trim()) {
        assert!(begun.elapsed() < Duration::from_secs(20), "the namespace is left");
    }
}

#[test]
fn what_a_command_leaves_behind_ends_with_the_shell() {
    let Some(place) = place(&["setsid"]) else { return };
    place.write("leaving.sh", LEAVING);
    let ran = place.shell(&["-q", "--server", "sh leaving.sh server"], &["sh", "leaving.sh", "client"]);
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    let pids = [place.processes("client"), place.processes("server")].concat();
    assert_eq!(pids.iter().filter(|pid| runs(pid)).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn programs_that_are_missing_are_named_with_their_packages_before_anything_is_set_up() {
    let told = |arguments: &[&str]| {
        let mut anabranch = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        let output = anabranch.env("PATH", "").args(["shell", "3g-wlan"]).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = told(&["--", "iperf3", "-c", "10.0.0.2"]);
    assert_eq!(code, Some(127), "{text}");
    assert!(text.contains("`iperf3` is not on the PATH") && text.contains("apt install iperf3"), "{text}");
    let (code, text) = told(&["--server", "mptcpize run iperf3 -s", "--", "/bin/true"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("`mptcpize` and `iperf3` are not on the PATH"), "{text}");
    assert!(text.contains("apt install mptcpize iperf3"), "{text}");
    // Those of the server and of the command together.
    let (code, text) = told(&["--server", "iperf -s", "--", "ping", "10.0.0.2"]);
    assert_eq!(code, Some(127), "{text}");
    assert!(text.contains("`iperf` and `ping` are not on the PATH") && text.contains("iperf iputils-ping"), "{text}");
    // Of no known package, and started by its path: the system's answer comes later.
    assert!(told(&["--", "no-such-program"]).1.contains("`no-such-program` is not on the PATH"));
}

#[test]
fn a_shell_needs_no_duration() {
    let Some(place) = place(&[]) else { return };
    place.write("paths.toml", SCENARIO.replace("duration = \"10s\"\n", ""));
    place.succeed(&["-q"], &["true"]);
}
