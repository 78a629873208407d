//! Links that waver between programs, in `anabranch shell`: a recorded delay, and paths that come and go. Where this machine cannot (root,
//! TUN and MPTCP are needed) a test says SKIPPED and passes.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const SCENARIO: &str = r#"
name = "a delay that varies"
[[path]]
name = "a"
rate = "1gbit"
trace = "delay.csv"
delay = { up = "5ms" }
"#;
/// Delays to the client in ms, each for [`STEP_MS`].
const DELAYS_MS: [u32; 7] = [20, 35, 10, 60, 15, 45, 25];
const STEP_MS: u32 = 600;
/// Echoes as of `ping -i 0.03`: each tells the milliseconds until its answer, whose time is the kernel's (SO_TIMESTAMPNS), as ping has it.
const PING: &str = r"
import os, socket, struct, time
sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
sock.settimeout(1)
TIMESTAMP = 35
sock.setsockopt(socket.SOL_SOCKET, TIMESTAMP, 1)
def now():
    return time.clock_gettime_ns(time.CLOCK_REALTIME)
def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff
for number in range(NUMBER):
    head = struct.pack('!BBHHH', 8, 0, 0, os.getpid() & 0xffff, number)
    packet = head[:2] + struct.pack('!H', checksum(head)) + head[4:]
    sent = now()
    sock.sendto(packet, (os.environ['ANABRANCH_SERVER'], 0))
    while True:
        answer, notes, _, _ = sock.recvmsg(2048, 128)
        if answer[20] == 0 and struct.unpack('!H', answer[26:28])[0] == number:
            break
    seconds, nanos = next(struct.unpack('ll', data) for level, kind, data in notes if kind == TIMESTAMP)
    print(1e-6 * (seconds * 10**9 + nanos - sent), flush=True)
    time.sleep(max(0, 0.03 - 1e-9 * (now() - sent)))
";
/// The greatest deviation of the median, and the trials in which it may be reached.
const TOLERANCE_MS: f64 = 0.2;
const TRIALS: usize = 5;

/// Round trips in ms, and the emulation's own judgement: the median lateness of packets in ms.
fn trial(folder: &std::path::Path) -> Result<(Vec<f64>, f64), String> {
    let command =
        ["shell", "paths.toml", "-q", "--no-preflight", "--summary", "summary.json", "--", "python3", "ping.py"];
    let shell = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
        .current_dir(folder)
        .args(command)
        .stdin(Stdio::null())
        .output();
    let Output { status, stdout, stderr } = shell.unwrap();
    let errors = String::from_utf8_lossy(&stderr).into_owned();
    if errors.contains("needs root") || errors.contains("python3") {
        return Err(errors);
    }
    assert!(status.success(), "{errors}");
    let summary: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("summary.json")).unwrap()).unwrap();
    let late = summary["emulation"]["late_median_s"].as_f64().expect("the summary tells how late packets were");
    let times = String::from_utf8(stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    Ok((times, 1e3 * late))
}

/// How much longer than its step's delay the quickest echo of each step took, and the median of that. An echo belongs to the longest
/// delay that it can have had: none is quicker than the trace.
fn median_excess(times: &[f64]) -> f64 {
    let trip = |delay: u32| f64::from(delay + 5);
    let mut steps: Vec<u32> = DELAYS_MS.to_vec();
    steps.sort_unstable();
    let mut least = vec![f64::INFINITY; steps.len()];
    for time in times {
        let step = steps.iter().rposition(|delay| trip(*delay) <= *time);
        let step = step.unwrap_or_else(|| panic!("{time} ms is less than the shortest delay: {times:?}"));
        least[step] = least[step].min(time - trip(steps[step]));
    }
    least.sort_by(f64::total_cmp);
    least[least.len() / 2]
}

#[test]
fn echoes_take_as_long_as_the_trace_says() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let lines = DELAYS_MS.iter().enumerate().map(|(n, delay)| format!("{},{delay}\n", n as u32 * STEP_MS));
    write("delay.csv", &format!("time_ms,delay_ms_down\n{}", lines.collect::<String>()));
    write("paths.toml", SCENARIO);
    // Two rounds of the trace at most.
    write("ping.py", &PING.replace("NUMBER", &(DELAYS_MS.len() as u32 * STEP_MS / 30).to_string()));
    let mut said = Vec::new();
    for _ in 0..TRIALS {
        let (times, late) = match trial(folder.path()) {
            Ok(found) => found,
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED echoes_take_as_long_as_the_trace_says: {}", why.trim());
                return;
            }
        };
        // Each delay was replayed: on the busiest machine an echo only takes longer.
        let excess = median_excess(&times);
        said.push((excess, late));
        if excess <= TOLERANCE_MS {
            return println!("the median of the quickest echoes is {excess:.3} ms above the trace: {said:?}");
        }
    }
    // On a busy machine an echo waits for its reader: nothing about the emulation can be said there.
    let is_idle = said.iter().all(|(_, late)| *late <= TOLERANCE_MS / 2.0) && load_per_core() < 0.5;
    assert!(!is_idle, "packets were in time and echoes were not: {said:?}");
    let _ = writeln!(std::io::stderr(), "SKIPPED the upper bound: this machine is busy: {said:?}");
}

/// Processes that want to run, over the last minute, per core.
fn load_per_core() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(f64::INFINITY);
    load / std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

const PRESENCE: &str = r#"
name = "one path goes, another appears"
[[path]]
name = "a"
rate = "10mbit"
delay = "5ms"
stop = "4s"
[[path]]
name = "b"
rate = "10mbit"
delay = "5ms"
start = "3s"
"#;
/// Waits for each state of the client's addresses and MPTCP endpoints, and prints it.
const STATES: &str = r"
until ip -4 addr | grep -q 10.1.0.1; do echo before; ip -4 -o addr; sleep 0.2; done
until ! ip -4 addr | grep -q 10.0.0.1; do sleep 0.1; done
echo after; ip mptcp endpoint; ip route
";

#[test]
fn addresses_and_endpoints_come_and_go_with_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("paths.toml"), PRESENCE).unwrap();
    let command = ["shell", "paths.toml", "-q", "--no-preflight", "--", "sh", "-c", STATES];
    let mut shell = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let Output { status, stdout, stderr } =
        shell.current_dir(folder.path()).args(command).stdin(Stdio::null()).output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    if errors.contains("needs root") {
        let _ = writeln!(std::io::stderr(), "SKIPPED addresses_and_endpoints_come_and_go_with_their_paths: {errors}");
        return;
    }
    assert!(status.success(), "{errors}");
    let (before, after) = output.split_once("after\n").expect("both states");
    assert!(before.is_empty() || before.contains("10.0.0.1"), "{output}");
    assert!(after.contains("10.1.0.1 id 2 subflow dev path1") && !after.contains("path0"), "{output}");
}
