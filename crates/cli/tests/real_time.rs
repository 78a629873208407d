//! Real runs with Linux hosts: what a machine must have, and what is left when a run ends in the middle.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = r#"
name = "live"
duration = "DURATION"
[connection]
scheduler = "linux-default"
[hosts]
sender = "linux"
receiver = "linux"
[[path]]
name = "a"
rate = "10mbit"
delay = "5ms"
[[path]]
name = "b"
rate = "10mbit"
delay = "20ms"
[[traffic]]
kind = "bulk"
"#;

/// A directory that every user may read, with the program and a scenario of `duration` in it.
fn bench(duration: &str) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("live.toml"), SCENARIO.replace("DURATION", duration)).unwrap();
    // By a process of its own: a child that another test starts meanwhile would inherit the file open for writing, and
    // what is open for writing cannot be run.
    let copied = Command::new("cp").arg(assert_cmd::cargo::cargo_bin!("anabranch")).arg(folder.path()).status();
    assert!(copied.unwrap().success());
    folder
}

fn run(folder: &Path) -> Command {
    let mut command = Command::new(folder.join("anabranch"));
    command.current_dir(folder).args(["run", "live.toml", "--no-baselines"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// True if this machine lets us make Linux hosts; says so if not.
fn can() -> bool {
    match anabranch_lab::privilege::acquire() {
        Ok(()) if anabranch_lab::kernel::facts::has_mptcp() => true,
        Ok(()) => {
            println!("SKIPPED: this kernel has no MPTCP");
            false
        }
        Err(error) => {
            println!("SKIPPED: {error}");
            false
        }
    }
}

/// The network namespaces of a process's threads, but for our own.
fn namespaces(of: u32) -> BTreeSet<u64> {
    let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
    let threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let inode = |thread: fs::DirEntry| Some(fs::metadata(thread.path().join("ns/net")).ok()?.ino());
    threads.filter_map(inode).filter(|inode| *inode != own).collect()
}

/// Every process that has a thread in one of these namespaces.
fn inhabitants(of: &BTreeSet<u64>) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|process| !namespaces(*process).is_disjoint(of)).collect()
}

/// A run in full swing, with the namespaces of its hosts.
fn in_mid_run(folder: &Path) -> (Child, BTreeSet<u64>) {
    let mut child = run(folder).spawn().unwrap();
    let begun = Instant::now();
    while namespaces(child.id()).len() < 2 && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let seen = namespaces(child.id());
    if seen.len() < 2 {
        child.kill().unwrap();
        let Output { stderr, .. } = child.wait_with_output().unwrap();
        panic!("the hosts never came up: {}", text(&stderr));
    }
    (child, seen)
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn named_namespaces() -> Vec<u8> {
    Command::new("ip").args(["netns", "list"]).output().unwrap().stdout
}

#[test]
fn nothing_is_left_when_a_run_is_killed() {
    if !can() {
        return;
    }
    let folder = bench("60s");
    let before = named_namespaces();
    for (name, code) in [("-INT", Some(130)), ("-TERM", Some(130)), ("-KILL", None)] {
        let (child, seen) = in_mid_run(folder.path());
        signal(&child, name);
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        assert_eq!((status.code(), stdout.len()), (code, 0), "{name}: {}", text(&stderr));
        if code.is_some() {
            let told = text(&stderr);
            assert!(told.contains("interrupted after 0 of 1 runs: linux-default, cubic, seed 1"), "{told}");
        }
        assert_eq!(inhabitants(&seen), Vec::<u32>::new(), "{name}");
        assert_eq!(named_namespaces(), before, "{name}");
    }
}

#[test]
fn a_run_tells_what_the_kernels_did() {
    if !can() {
        return;
    }
    let folder = bench("2s");
    let Output { status, stdout, stderr } = run(folder.path()).args(["--format", "json"]).output().unwrap();
    assert!(status.success(), "{}", text(&stderr));
    let results: anabranch_run::Results = serde_json::from_slice(&stdout).unwrap();
    let runs = results.runs.to_vec();
    let (record, live) = (&runs[0], runs[0].live.as_ref().unwrap());
    assert!(record.metrics["goodput_bps"] > 1e6 && !record.metrics.contains_key("window_blocked_s"));
    for path in ["a", "b"] {
        let info = &live.tcp_info["server"][path];
        assert!(info["tcpi_bytes_sent"] > 10_000 && info["tcpi_snd_mss"] >= 1400, "{info:?}");
        let values = &record.paths[path];
        assert!(
            values["share"] > 0.1 && values["srtt_mean_s"] > 0.01 && values["cwnd_mean_packets"] > 1.0,
            "{values:?}"
        );
    }
    assert_eq!(live.counters["server"]["MPTcpExtMPJoinAckRx"], 1);
    let settings = &live.settings["client"];
    assert_eq!((settings["mtu"].as_str(), settings["congestion"].as_str()), ("1476", "cubic"));
    assert!(live.kernel.is_some() && live.not_applied.is_empty());
}

/// Runs `script` as a user without any privilege, in a mount namespace where `/dev/net/tun` has these permissions.
fn unprivileged(folder: &Path, tun: &str, arguments: &str) -> Output {
    let script = format!(
        "mount -t tmpfs none /mnt && mknod -m {tun} /mnt/tun c 10 200 && mount --bind /mnt/tun /dev/net/tun && exec setpriv \
         --reuid 65534 --regid 65534 --clear-groups ./anabranch run live.toml --no-baselines {arguments}"
    );
    Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(folder).output().unwrap()
}

#[test]
fn a_user_needs_no_root_where_tun_devices_may_be_opened() {
    if !can() || !is_root() {
        return println!("SKIPPED: only root can become another user");
    }
    let folder = bench("1s");
    let Output { status, stdout, stderr } = unprivileged(folder.path(), "0666", "--format json");
    assert!(status.success(), "{}", text(&stderr));
    let results: anabranch_run::Results = serde_json::from_slice(&stdout).unwrap();
    assert!(results.runs.to_vec()[0].metrics["goodput_bps"] > 1e6);

    let Output { status, stderr, .. } = unprivileged(folder.path(), "0600", "");
    let told = text(&stderr);
    assert!(status.code() == Some(1) && told.contains("/dev/net/tun") && told.contains("chmod 0666"), "{told}");
    // Between two engines there is nothing to ask the system for.
    let engines = unprivileged(folder.path(), "0600", "--realtime --sender engine --receiver engine");
    assert!(engines.status.success(), "{}", text(&engines.stderr));
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[test]
fn a_word_that_the_kernel_lacks_is_unusable_input() {
    let folder = bench("1s");
    let refused = |option: &str, word: &str| {
        let Output { status, stderr, .. } = run(folder.path()).args([option, word]).output().unwrap();
        assert_eq!(status.code(), Some(2), "{}", text(&stderr));
        text(&stderr)
    };
    let told = refused("--scheduler", "blest");
    assert!(told.contains("blest") && told.contains("--scheduler linux-default"), "{told}");
    let told = refused("--congestion", "olia");
    assert!(told.contains("olia") && told.contains("--congestion reno"), "{told}");
}

/// The output of tshark for a capture, one line per packet; `None` without tshark.
fn dissect(capture: &Path, arguments: &[&str]) -> Option<String> {
    let ran = Command::new("tshark").args(["-n", "-r"]).arg(capture).args(arguments).output().ok()?;
    assert!(ran.status.success(), "{}: {}", capture.display(), text(&ran.stderr));
    Some(text(&ran.stdout))
}

#[test]
fn captures_of_both_hosts_are_dissected() {
    if !can() {
        return;
    }
    for sender in ["linux", "engine"] {
        let folder = bench("1s");
        let arguments = ["--pcap", "captures", "--sender", sender, "--no-preflight"];
        let ran = run(folder.path()).args(arguments).output().unwrap();
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        for side in ["client", "server"] {
            let capture = folder.path().join(format!("captures/linux-default-cubic-seed1.{side}.pcapng"));
            let fields =
                ["frame.interface_name", "tcp.flags.syn", "tcp.options.mptcp.subtype", "tcp.len", "mptcp.stream"];
            let fields: Vec<&str> = fields.iter().flat_map(|field| ["-e", field]).collect();
            let Some(packets) = dissect(&capture, &[&["-T", "fields"], &*fields].concat()) else {
                return println!("SKIPPED: tshark is not installed");
            };
            let packets: Vec<Vec<&str>> = packets.lines().map(|line| line.split('\t').collect()).collect();
            let syns =
                |subtype: &str| packets.iter().filter(|p| ["1", "True"].contains(&p[1]) && p[2] == subtype).count();
            // MP_CAPABLE and MP_JOIN: a SYN and its answer each (RFC 8684 §3.1, §3.2); both paths carry data of one connection.
            assert_eq!((syns("0"), syns("1")), (2, 2), "{sender}, {side}");
            for path in ["a", "b"] {
                let interface = format!("{side}:{path}");
                let data = packets.iter().filter(|p| p[0] == interface && p[3] != "0");
                assert!(data.clone().count() > 20, "{sender}, {interface}");
                assert!(data.clone().all(|p| p[4].is_empty() || p[4] == "0"), "{sender}, {interface}");
            }
            let broken = dissect(
                &capture,
                &["-Y", "_ws.malformed || tcp.checksum.status == 0", "-o", "tcp.check_checksum:TRUE"],
            );
            assert_eq!(broken.unwrap(), "", "{sender}, {side}");
        }
    }
}
