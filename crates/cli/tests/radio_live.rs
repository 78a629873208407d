//! The layers under a link between Linux hosts, in real time: what programs see of `arq`, `aggregate`, `wake`, `slots` and `shared`. Where this
//! machine cannot (root, TUN and Python are needed) a test says SKIPPED and passes. The machine may be busy: packets are counted, and a time
//! has a lower bound alone, or is the least of many.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Answers each datagram; `flood` by as many as pass for 3 s.
const SERVER: &str = r#"
import os, socket, threading, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind((os.environ["ANABRANCH_SERVER"], 7000))
def flood(peer):
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for n in range(20): udp.sendto(bytes(1200), peer)
        time.sleep(0.01)
while True:
    data, peer = udp.recvfrom(2048)
    if data == b"flood": threading.Thread(target=flood, args=(peer,), daemon=True).start()
    elif len(data) < 1000: udp.sendto(data, peer)
"#;

/// `probe.py COUNT INTERVAL IDLE`: waits for the server, idles, and sends datagrams. Prints `number sent received` of each that comes back.
const PROBE: &str = r#"
import os, select, socket, sys, time
count, interval, idle = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.connect((os.environ["ANABRANCH_SERVER"], 7000))
def fetch(until, back):
    while (left := until - time.monotonic()) > 0:
        try:
            if select.select([udp], [], [], left)[0]:
                back.append((udp.recv(64).decode(), time.monotonic()))
        except ConnectionRefusedError: time.sleep(0.02)
hello = []
while not hello:
    try: udp.send(b"hello")
    except ConnectionRefusedError: pass
    fetch(time.monotonic() + 0.1, hello)
fetch(time.monotonic() + idle, hello)
sent, back = {}, []
for n in range(count):
    sent[str(n)] = time.monotonic()
    udp.send(str(n).encode())
    fetch(sent[str(n)] + interval, back)
fetch(time.monotonic() + 2, back)
for n, at in back:
    if n in sent: print(n, sent[n], at)
"#;

/// Floods for 3 s while the server does; prints the seconds from the first datagram to the last.
const BOTH: &str = r#"
import os, select, socket, threading, time
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.connect((os.environ["ANABRANCH_SERVER"], 7000))
came = False
while not came:
    try:
        udp.send(b"hello")
        came = select.select([udp], [], [], 0.1)[0] and udp.recv(2048)
    except ConnectionRefusedError: time.sleep(0.02)
begin = last = time.monotonic()
udp.send(b"flood")
def flood():
    while time.monotonic() < begin + 3:
        for n in range(20): udp.send(bytes(1200))
        time.sleep(0.01)
thread = threading.Thread(target=flood)
thread.start()
while select.select([udp], [], [], 1)[0]:
    udp.recv(2048)
    last = time.monotonic()
thread.join()
print(max(last, time.monotonic() - 1) - begin)
"#;

fn shell(keys: &str, program: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let scenario = format!("duration = '10s'\nseed = 5\n[[path]]\nname = 'a'\ndelay = '5ms'\n{keys}\n");
    let files = [("x.toml", &*scenario), ("server.py", SERVER), ("probe.py", PROBE), ("both.py", BOTH)];
    files.into_iter().for_each(|(name, text)| write(name, text));
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder.path()).args(["shell", "x.toml", "--no-preflight", "--summary", "s.json"]);
    command.args(["--server", "python3 server.py", "--"]).args(program).stdin(Stdio::null());
    let mut output = command.output().unwrap();
    // The summary follows what the program said.
    output.stdout.extend(std::fs::read(folder.path().join("s.json")).unwrap_or_default());
    output
}

/// `None`, and a word on standard error, where this machine cannot.
fn output(keys: &str, program: &[&str]) -> Option<String> {
    let python = Command::new("python3").arg("--version").output().is_ok();
    let tried = python.then(|| shell(keys, program));
    let refused = tried.as_ref().is_none_or(|it| String::from_utf8_lossy(&it.stderr).contains("needs root"));
    if refused {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: needs root, and python3");
        return None;
    }
    let Output { status, stdout, stderr } = tried?;
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
    Some(String::from_utf8(stdout).unwrap())
}

/// Number, time of sending and of return of each datagram that came back, in seconds.
fn probe(keys: &str, count: usize, interval: f64, idle: f64) -> Option<Vec<(usize, f64, f64)>> {
    let arguments = [count.to_string(), interval.to_string(), idle.to_string()];
    let program = ["python3", "probe.py", &arguments[0], &arguments[1], &arguments[2]];
    let said = output(&format!("rate = '20mbit'\n{keys}"), &program)?;
    let lines = said.lines().take_while(|line| !line.starts_with('{'));
    let numbers = lines.map(|line| line.split(' ').map(|word| word.parse::<f64>().unwrap()).collect::<Vec<_>>());
    Some(numbers.map(|line| (line[0] as usize, line[1], line[2])).collect())
}

#[test]
fn arq_repairs_what_it_loses_up_to_its_attempts() {
    let came = |attempts: u32| {
        probe(&format!("arq = {{ down = {{ loss = '50%', attempts = {attempts}, delay = '1ms' }} }}"), 200, 0.01, 0.0)
    };
    let (Some(one), Some(twenty)) = (came(1), came(20)) else { return };
    // Five standard deviations of 200 draws; and one in 5000 runs of this seed's like loses a packet.
    assert!((65..=135).contains(&one.len()), "{}", one.len());
    assert_eq!(twenty.len(), 200);
}

#[test]
fn a_device_that_idled_wakes_before_it_sends() {
    let Some(came) = probe("wake = { idle = '900ms', delay = '400ms' }", 80, 0.03, 2.0) else { return };
    assert_eq!(came.len(), 80);
    let trip = |n: usize| came.iter().find(|it| it.0 == n).map(|(_, sent, back)| back - sent).unwrap();
    assert!(trip(0) >= 0.41, "{}: the first waits for promotion, and 5 ms each way", trip(0));
    let least = (30..80).map(trip).fold(f64::INFINITY, f64::min);
    assert!(least < 0.4, "{least}: the last ones find it awake");
}

#[test]
fn aggregated_packets_come_together() {
    let Some(came) = probe("aggregate = { down = '250ms' }", 60, 0.02, 0.0) else { return };
    assert_eq!(came.len(), 60);
    let gaps: Vec<f64> = came.windows(2).map(|two| two[1].2 - two[0].2).collect();
    // 1.2 s are five releases or six, where packets 20 ms apart have no such gap; on a busy machine the sender itself pauses.
    let long = gaps.iter().filter(|gap| **gap > 0.12).count();
    assert!((2..=12).contains(&long), "{gaps:?}");
    assert!(gaps.iter().filter(|gap| **gap < 0.01).count() >= 30, "{gaps:?}");
}

#[test]
fn slots_lose_packets_at_their_beginning() {
    let slots = "slots = { up = { every = '1s', step = '0s', loss = '100%', burst = '500ms' } }";
    let Some(came) = probe(slots, 400, 0.01, 0.0) else { return };
    assert!((120..=280).contains(&came.len()), "{}: half of 4 s", came.len());
    // Silence between slots: more than 20 numbers in a row are missing, each time.
    let numbers: Vec<usize> = came.iter().map(|it| it.0).collect();
    let silences = numbers.windows(2).filter(|two| two[1] > two[0] + 20).count();
    assert!((2..=6).contains(&silences), "{silences}: {numbers:?}");
}

#[test]
fn both_directions_of_shared_air_carry_no_more_than_its_rate() {
    for air in ["shared = true", "medium = 'air'\n[[medium]]\nname = 'air'\npackets = 4"] {
        let keys = format!("rate = '8mbit'\nqueue = '60KB'\n{air}");
        let Some(said) = output(&keys, &["python3", "both.py"]) else { return };
        let (seconds, summary) = said.split_once('\n').unwrap();
        let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
        let [down, up] = ["down", "up"].map(|way| summary["paths"]["a"][way]["bytes"].as_f64().unwrap());
        // 1 MB per second; each alone would carry as much. Both queues are empty again at the end.
        let most = 1e6 * seconds.parse::<f64>().unwrap() + 200e3;
        assert!(down + up < most, "{air}: {down} + {up} bytes in {seconds} s");
        assert!(down.min(up) > (down + up) / 5.0, "{air}: each has its turns: {down}, {up}");
    }
}
