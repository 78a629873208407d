//! The program as a process.

use assert_cmd::Command;
use std::io::Read;
use std::process::Stdio;

fn anabranch() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
}

#[test]
fn exit_codes_and_streams() {
    anabranch().assert().success().stderr("");
    anabranch().arg("--version").assert().success().stdout(format!("anabranch {}\n", env!("CARGO_PKG_VERSION")));
    anabranch().arg("nonsense").assert().code(2).stdout("");
    anabranch().args(["explain", "nonsense"]).assert().code(2).stdout("");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Closing the pipe unread makes the child's write fail.
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(errors, "");
}

const SCENARIO: &str = r#"
name = "short"
repeat = 2
[[path]]
name = "a"
rate = "8mbit"
delay = "10ms"
loss = "0.5%"
[[path]]
name = "b"
rate = "4mbit"
delay = "20ms"
[[traffic]]
kind = "bulk"
size = "512KiB"
"#;

#[test]
fn the_same_version_and_seed_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let run = |jobs: &str| {
        let mut command = anabranch();
        command.arg("run").arg(&file).args(["--scheduler", "minrtt+pr,blest", "--format", "json", "--jobs", jobs]);
        command.assert().success().stderr("").get_output().stdout.clone()
    };
    let text = run("1");
    assert!(text == run("2"));
    let results: anabranch_run::Results = serde_json::from_slice(&text).unwrap();
    assert_eq!(results.runs.len(), 2 * 4);
    for run in results.runs.iter() {
        assert!(run.finished && run.metrics["completion_s"] > 0.0, "{run:?}");
        let shares: f64 = run.paths.values().map(|values| values["share"]).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{run:?}");
    }
}

/// Starts the program, ends it by one SIGINT when `begun` says that runs are under way; what it printed on standard error.
#[cfg(target_os = "linux")]
fn interrupted(arguments: &[&str], begun: impl Fn() -> bool) -> String {
    ended_by("-INT", arguments, begun).1
}

/// The same by any signal; what it printed on standard output and on standard error.
#[cfg(target_os = "linux")]
fn ended_by(signal: &str, arguments: &[&str], begun: impl Fn() -> bool) -> (String, String) {
    ended_by_id(signal, arguments, |_| begun())
}

/// The same where the process tells whether runs are under way.
#[cfg(target_os = "linux")]
fn ended_by_id(signal: &str, arguments: &[&str], begun: impl Fn(u32) -> bool) -> (String, String) {
    let program = assert_cmd::cargo::cargo_bin!("anabranch");
    let mut child = std::process::Command::new(program)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = std::time::Instant::now();
    while !begun(child.id()) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        if started.elapsed().as_secs() >= 60 {
            child.kill().unwrap();
            panic!("no run is under way after a minute");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if std::time::Instant::now() > deadline {
            child.kill().unwrap();
            panic!("one signal does not end {arguments:?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    (String::from_utf8(ended.stdout).unwrap(), String::from_utf8(ended.stderr).unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn one_signal_ends_a_run_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.toml");
    // It would take hours.
    std::fs::write(&file, SCENARIO.replace("512KiB", "10000GB")).unwrap();
    for signal in ["-TERM", "-INT"] {
        let trace = folder.path().join(signal);
        let begun = || std::fs::metadata(&trace).is_ok_and(|file| file.len() > 100_000);
        let arguments = ["run", file.to_str().unwrap(), "--no-baselines", "--trace", trace.to_str().unwrap()];
        let (_, text) = ended_by(signal, &arguments, begun);
        assert!(text.contains("interrupted after 0 of 2 runs"), "{text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_runs_in_virtual_time_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let names = |folder: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let file = folder.path().join("short.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    // The directory for series is made after signals are listened to.
    let begun = || names(&out).iter().any(|name| out.join(name).join("series").exists());
    let arguments = ["run", file.to_str().unwrap(), "--repeat", "1000000", "--out", out.to_str().unwrap()];
    let text = interrupted(&arguments, begun);
    assert!(text.contains("interrupted after") && text.contains("the same command continues from here"), "{text}");
    std::fs::remove_dir_all(&out).unwrap();

    let kept = out.join("kept/virtual-time.jsonl");
    let begun = || std::fs::metadata(&kept).is_ok_and(|file| file.len() > 0);
    let text = interrupted(&["reproduce", "blest", "table3", "--out", out.to_str().unwrap()], begun);
    assert!(text.contains("finished runs are kept: the same command continues from here"), "{text}");
    assert_eq!(names(&out), ["kept"]);
}

/// All but the manifest, which has machine and times, and the report, which shows it.
#[cfg(target_os = "linux")]
fn results_of(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let files = ["results.json", "runs.csv", "runs.parquet"];
    files.map(|name| (name.to_owned(), std::fs::read(folder.join(name)).unwrap())).into()
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_sweep_goes_on_and_ends_as_if_nothing_had_been() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.toml");
    std::fs::write(&file, SCENARIO.replace("512KiB", "4MiB")).unwrap();
    let arguments = |out: &std::path::Path| {
        let words = ["run", file.to_str().unwrap(), "--sweep", "path.b.delay=10ms..80ms*2", "--repeat", "20", "--out"];
        words.iter().map(|word| (*word).to_owned()).chain([out.to_str().unwrap().to_owned()]).collect::<Vec<_>>()
    };
    let whole = folder.path().join("whole");
    anabranch().args(arguments(&whole)).assert().success();
    assert!(!whole.join("kept").exists(), "what is in the results is not kept twice");
    for (signal, code) in [("-KILL", None), ("-TERM", Some(130))] {
        let out = folder.path().join(signal);
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"))
            .args(arguments(&out))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let journal = out.join("kept/virtual-time.jsonl");
        while !std::fs::metadata(&journal).is_ok_and(|file| file.len() > 50_000) {
            assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), code);
        if code.is_some() {
            let (said, printed) = (String::from_utf8(ended.stderr).unwrap(), String::from_utf8(ended.stdout).unwrap());
            assert!(said.contains("finished runs are kept: the same command continues from here"), "{said}");
            assert!(printed.contains("INCOMPLETE: ") && printed.contains("minrtt"), "{printed}");
            let part: anabranch_run::Results =
                serde_json::from_slice(&std::fs::read(out.join("results.json")).unwrap()).unwrap();
            assert!(part.incomplete.unwrap().finished == part.runs.len() && !part.runs.is_empty());
        }
        // Another command in the same directory leaves these runs in place.
        let other = ["run", file.to_str().unwrap(), "--seed", "77", "--out", out.to_str().unwrap()];
        anabranch().args(other).assert().success();
        let before = std::fs::read_to_string(&journal).unwrap().lines().count();
        assert!(before > 5, "{before} runs were kept");
        anabranch().args(arguments(&out)).assert().success();
        assert!(results_of(&out) == results_of(&whole), "after {signal}");
        assert!(!out.join("kept").exists());
    }
}

/// Whether a process has a handler of its own for SIGINT.
#[cfg(target_os = "linux")]
fn catches_signals(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).is_some_and(|set| set & 1 << 1 != 0)
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_comparison_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("short.toml"), SCENARIO).unwrap();
    let arguments = ["compare", "--grid", folder.path().to_str().unwrap(), "--repeat", "100000", "--jobs", "1"];
    let (output, errors) = ended_by_id("-INT", &arguments, catches_signals);
    assert_eq!(output, "", "nothing was finished");
    assert!(errors.contains("interrupted after") && errors.contains("nothing was finished"), "{errors}");
}

#[test]
fn tshark_dissects_a_capture_as_mptcp() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("short.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let captures = folder.path().join("captures");
    anabranch().arg("run").arg(&file).arg("--no-baselines").arg("--pcap").arg(&captures).assert().success();
    let capture = captures.join("minrtt-cubic-seed1.server.pcapng");
    let tshark = |arguments: &[&str]| {
        let ran = std::process::Command::new("tshark").arg("-r").arg(&capture).args(arguments).output();
        ran.ok().map(|ran| String::from_utf8(ran.stdout).unwrap())
    };
    let fields = ["-T", "fields", "-e", "tcp.flags", "-e", "tcp.options.mptcp.subtype", "-e", "tcp.len"];
    let Some(packets) = tshark(&fields) else {
        return println!("SKIPPED: tshark is not installed");
    };
    let lines: Vec<Vec<&str>> = packets.lines().map(|line| line.split('\t').collect()).collect();
    let of = |flags: &str, subtype: &str| lines.iter().filter(|l| l[0].ends_with(flags) && l[1] == subtype).count();
    // MP_CAPABLE and MP_JOIN on the SYNs of the two paths (RFC 8684 §3.1, §3.2).
    assert_eq!((of("0002", "0"), of("0002", "1")), (1, 1), "{packets}");
    // DSS on every segment with payload.
    assert!(lines.iter().filter(|l| l[2] != "0").all(|l| l[1] == "2"), "{packets}");
    let errors = tshark(&["-Y", "_ws.expert.severity == error || _ws.malformed"]).unwrap();
    assert_eq!(errors, "");
    let streams = tshark(&["-T", "fields", "-e", "mptcp.stream"]).unwrap();
    // The first SYN names no keys yet; all else is one connection.
    let known: Vec<&str> = streams.lines().filter(|stream| !stream.is_empty()).collect();
    assert!(known.len() > lines.len() / 2 && known.iter().all(|stream| *stream == "0"), "{streams}");
}

/// A desktop whose opener writes down what it is given, or has none.
#[cfg(target_os = "linux")]
#[test]
fn a_report_is_shown_where_there_is_a_desktop() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    std::fs::create_dir(&results).unwrap();
    std::fs::write(results.join("report.json"), "{}").unwrap();
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    let report = |path: &str| {
        let mut command = anabranch();
        command.arg("report").arg(&results).arg("--open").env("PATH", path);
        command
    };
    let errors = |mut command: Command, output: String| {
        String::from_utf8(command.assert().code(1).stdout(output).get_output().stderr.clone()).unwrap()
    };
    let text = errors(report(programs.to_str().unwrap()), String::new());
    assert!(text.contains("xdg-open") && text.contains("--open"), "{text}");

    let (opener, told) = (programs.join("xdg-open"), folder.path().join("told"));
    let script = |end: &str| {
        std::fs::write(&opener, format!("#!/bin/sh\necho \"$1\" > {}\n{end}\n", told.display())).unwrap();
        std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("exit 0");
    report(programs.to_str().unwrap()).assert().success();
    assert_eq!(std::fs::read_to_string(&told).unwrap().trim(), results.join("report.html").to_str().unwrap());
    script("exit 3");
    // The report is there.
    let page = format!("{}\n", results.join("report.html").display());
    let text = errors(report(programs.to_str().unwrap()), page);
    assert!(text.contains("did not open") && text.contains("report.html"), "{text}");
}

#[test]
fn the_size_of_a_large_page_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let report = |length: usize| {
        std::fs::write(folder.path().join("report.json"), format!("{{\"title\": \"{}\"}}", "x".repeat(length)))
            .unwrap();
        anabranch().arg("report").arg(folder.path()).assert().success()
    };
    // The page has the title twice.
    report(6_000_000).stderr("report.html has 13 MB\n");
    report(60).stderr("");
}
