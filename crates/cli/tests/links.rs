//! The commands for real links as processes: files, permissions, what is printed, what is said of mistakes.

#![cfg(target_os = "linux")]

#[path = "../../report/tests/common/browser.rs"]
#[allow(dead_code, reason = "one page is read")]
mod browser;
#[path = "links/chromium.rs"]
mod chromium;
#[path = "links/ended.rs"]
mod ended;
#[path = "links/native.rs"]
mod native;
#[path = "links/native_server.rs"]
mod native_server;

use assert_cmd::Command;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn key(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).arg("key").args(arguments);
    command
}

fn printed(mut command: Command) -> String {
    String::from_utf8(command.assert().success().stderr("").get_output().stdout.clone()).unwrap()
}

#[test]
fn a_key_is_made_once_and_shown_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let public = printed(key(&["new", "a.key"], folder.path()));
    let file = folder.path().join("a.key");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(printed(key(&["show", "a.key"], folder.path())), public);
    assert_eq!(public.trim().len(), 44);
    let text = fs::read_to_string(&file).unwrap();
    let secrets: Vec<&str> = text.lines().filter_map(|line| line.split_once(" = ")).map(|(_, value)| value).collect();
    assert!(secrets.len() == 2 && !secrets.contains(&public.trim()));

    let line = printed(key(&["show", "a.key", "--authorize", "laptop"], folder.path()));
    assert_eq!(line, format!("{} {} laptop\n", public.trim(), secrets[1]));
    assert!(!line.contains(secrets[0]), "the private key stays where it is");

    let refused = key(&["new", "a.key"], folder.path()).assert().code(1).stdout("").get_output().stderr.clone();
    assert!(String::from_utf8(refused).unwrap().contains("making a.key"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text, "no key is overwritten");
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    printed(key(&["new", "a.key"], folder.path()));
    let file = folder.path().join("a.key");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let refused = key(&["show", "a.key"], folder.path()).assert().code(2).stdout("").get_output().stderr.clone();
    let said = String::from_utf8(refused).unwrap();
    assert!(said.contains("mode 0644") && said.contains("chmod 600 a.key"), "{said}");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    printed(key(&["new", "a.key"], folder.path()));
    key(&["show", "a.key", "--authorize", "two words"], folder.path()).assert().code(2).stdout("");
    key(&["show", "none.key"], folder.path()).assert().code(1).stdout("");
    key(&[], folder.path()).assert().code(2).stdout("");
    let file = folder.path().join("a.key");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("preshared", "shared")).unwrap();
    let refused = key(&["show", "a.key"], folder.path()).assert().code(2).stdout("").get_output().stderr.clone();
    let said = String::from_utf8(refused).unwrap();
    assert!(said.contains("a.key: line 3: the names are `private` and `preshared`"), "{said}");
    for secret in text.lines().filter_map(|line| line.split_once(" = ")).map(|(_, value)| value) {
        assert!(!said.contains(secret), "{said}");
    }
}

/// A server that runs on the loopback interface, and the folder in which it has its files; the client's key is `client.key`.
struct Server {
    folder: tempfile::TempDir,
    process: Child,
    key: String,
    address: String,
}

fn program(folder: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    command.current_dir(folder).args(arguments).env_remove("XDG_RUNTIME_DIR").stdin(Stdio::null());
    command
}

/// The command's output, what it says, and its exit code.
fn ran(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let ran = program(folder, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(ran.stdout), text(ran.stderr), ran.status.code().unwrap_or(-1))
}

/// A folder with both keys and the server's list; the server's public key.
fn keys() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let server = printed(key(&["new", "server.key"], folder.path()));
    printed(key(&["new", "client.key"], folder.path()));
    let line = printed(key(&["show", "client.key", "--authorize", "laptop"], folder.path()));
    let file = folder.path().join("authorized");
    fs::write(&file, line).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    (folder, server.trim().to_owned())
}

/// Starts a command that listens; where it does, and what it says goes to the file.
fn listening(folder: &Path, arguments: &[&str], said: &str) -> (Child, String) {
    started(program(folder, arguments), &folder.join(said))
}

#[expect(clippy::zombie_processes, reason = "the caller ends it")]
fn started(mut command: std::process::Command, said: &Path) -> (Child, String) {
    let process = command.stderr(fs::File::create(said).unwrap()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let said = fs::read_to_string(said).unwrap();
        if let Some((_, rest)) = said.split_once("listening at ").filter(|(_, rest)| rest.contains(' ')) {
            return (process, rest.split([' ', ',']).next().unwrap().to_owned());
        }
        assert!(Instant::now() < until, "{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Server {
    fn start() -> Self {
        Self::with(&["--measure"])
    }

    fn with(services: &[&str]) -> Self {
        let (folder, key) = keys();
        let arguments = [&["serve", "--listen", "127.0.0.1:0", "--socket", "status.sock"], services].concat();
        let (process, address) = listening(folder.path(), &arguments, "said");
        Self { folder, process, key, address }
    }

    fn measure(&self, options: &[&str]) -> (String, String, i32) {
        let arguments = ["measure", &self.address, "--via", "lo", "--server-key", &self.key];
        ran(self.folder.path(), &[&arguments, options].concat())
    }

    /// Ends it by SIGTERM, which is a success.
    fn end(mut self) -> String {
        let id = self.process.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        assert!(!self.folder.path().join("status.sock").exists(), "nothing is left behind");
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The unit's command serves, with the folders that systemd makes for it.
#[test]
fn the_command_of_the_systemd_unit_serves() {
    let (folder, key) = keys();
    let place = folder.path().to_str().unwrap();
    let unit = include_str!("../../../packaging/anabranch-serve.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/anabranch ")).unwrap();
    let line = line.replace("%d", place).replace("0.0.0.0:51900", "127.0.0.1:0");
    let mut command = program(folder.path(), &line.split_whitespace().collect::<Vec<_>>());
    command.env("RUNTIME_DIRECTORY", place);
    let (process, address) = started(command, &folder.path().join("said"));
    let socket = fs::metadata(folder.path().join("status.sock")).unwrap();
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let server = Server { folder, process, key, address };
    let (_, said, code) = server.measure(&["--duration", "200ms", "--scheduler", "minrtt", "--no-baselines"]);
    assert_eq!(code, 0, "{said}");
    server.end();
}

#[test]
fn a_measurement_has_the_results_and_files_of_run() {
    let server = Server::start();
    let options = ["--duration", "500ms", "--repeat", "2", "--scheduler", "blest", "--congestion", "lia"];
    let files = ["--out", "results", "--events", "events.jsonl", "--pcap", "captures", "--format", "json"];
    let (output, said, code) = server.measure(&[&options[..], &files].concat());
    assert_eq!((said.lines().count(), code), (0, 0), "{said}");
    let results: serde_json::Value = serde_json::from_str(&output).unwrap();
    let runs = results["runs"].as_array().unwrap();
    let named = |name: &str| runs.iter().filter(|run| run["scheduler"] == name).count();
    assert_eq!((named("blest"), named("single:lo"), runs.len()), (2, 2, 4));
    assert!(runs.iter().all(|run| run["metrics"]["goodput_bps"].as_f64().unwrap() > 1e6), "{output}");

    let folder = server.folder.path();
    for file in ["results.json", "runs.csv", "manifest.json", "report.html"] {
        assert!(folder.join("results").join(file).is_file(), "{file}");
    }
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    assert!(["\"client\"", "\"server\""].iter().all(|host| events.contains(&format!("\"host\":{host}"))));
    let captures: Vec<String> =
        fs::read_dir(folder.join("captures")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(captures.len() == 2 && captures.iter().all(|name| name.ends_with("client.pcapng")), "{captures:?}");
    let status = |more: &[&str]| ran(folder, &[&["status", "--socket", "status.sock"], more].concat());
    let (json, _, _) = status(&["--json"]);
    let state: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(state["clients"][0]["name"], "laptop", "{json}");
    assert!(state["clients"][0]["paths"][0]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{json}");
    let table = status(&[]).0;
    assert!(table.contains("laptop"));
    let files = files_below(folder);
    assert!(files.len() > 10, "{files:?}");
    // The keys and the list are what they are in.
    let holds = |path: &PathBuf| path.extension().is_some_and(|name| name == "key") || path.ends_with("authorized");
    let written = files.iter().filter(|path| !holds(path)).map(|path| fs::read(path).unwrap());
    let (secrets, mut shown) = (secrets(folder), written.collect::<Vec<_>>());
    let log = server.end();
    assert!(log.contains("ended; "));
    shown.extend([output, json, table, log].map(String::into_bytes));
    for secret in secrets {
        let shows = |text: &Vec<u8>| text.windows(secret.len()).any(|part| part == secret);
        assert!(!shown.iter().any(shows), "no secret in output, log, results and traces");
    }
}

/// All files in a folder and in those below it.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => files_below(&entry.path()),
            kind if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

/// The secrets of both ends, as their files have them.
fn secrets(folder: &Path) -> Vec<Vec<u8>> {
    let texts = ["client.key", "server.key"].map(|name| fs::read_to_string(folder.join(name)).unwrap());
    let values = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.split_once(" = "));
    let secrets: Vec<Vec<u8>> = values.map(|(_, value)| value.as_bytes().to_vec()).collect();
    assert_eq!(secrets.len(), 4, "a private and a pre-shared key each");
    secrets
}

/// curl through the proxy to a page of this host.
#[test]
fn curl_gets_a_page_through_the_proxy_and_rules_are_read_again() {
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        println!("SKIPPED: there is no curl");
        return;
    }
    let page = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = page.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for program in page.incoming() {
            let mut program = program.unwrap();
            let _ = program.read(&mut [0; 4096]);
            let _ = program.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\na page");
        }
    });
    let server = Server::with(&["--proxy", "--allow", "127.0.0.1/32"]);
    let folder = server.folder.path();
    fs::write(folder.join("rules"), "* * scheduler=blest\n").unwrap();
    let reach = ["proxy", &server.address, "--via", "lo", "--server-key", &server.key];
    let forward = format!("0:127.0.0.1:{port}");
    let (_, refused, code) = ran(folder, &[&reach[..], &["--socks", "0.0.0.0:0"]].concat());
    assert!(code == 2 && refused.contains("--credentials"), "{refused}");
    let options = ["--socks", "127.0.0.1:0", "--forward", &forward, "--rules", "rules", "--socket", "proxy.sock"];
    let (mut proxy, socks) = listening(folder, &[&reach[..], &options].concat(), "proxied");
    let curl = |options: &[&str]| {
        let ran = std::process::Command::new("curl").args(["--silent", "--show-error"]).args(options).output().unwrap();
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    let by_socks = format!("socks5h://{socks}");
    let url = format!("http://127.0.0.1:{port}/");
    let (got, said) = curl(&["--proxy", &by_socks, &url]);
    assert_eq!((got.as_str(), said.as_str()), ("a page", ""));
    let (got, said) = curl(&["--proxy", &by_socks, "http://127.0.0.2/"]);
    // RFC 1928 §6: X'02' connection not allowed by ruleset.
    assert!(got.is_empty() && said.contains("(2)"), "not allowed: {said}");
    let logged = |expected: &str| {
        let until = Instant::now() + Duration::from_secs(30);
        while !fs::read_to_string(folder.join("proxied")).unwrap().contains(expected) {
            assert!(Instant::now() < until, "{expected}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    logged("the server does not dial 127.0.0.2:80, which is not public: `serve --proxy --allow 127.0.0.2` there");
    let status = ran(folder, &["status", "--json", "--socket", "proxy.sock"]).0;
    assert!(status.contains("refused: NotAllowed") && status.contains("\"minrtt\""), "{status}");

    let hangup = |expected: &str| {
        assert!(std::process::Command::new("kill").args(["-HUP", &proxy.id().to_string()]).status().unwrap().success());
        logged(expected);
    };
    fs::write(folder.join("rules"), "* * scheduler=blesst\n").unwrap();
    hangup("rules: line 1: there is no scheduler \"blesst\"; did you mean \"blest\"?; the rules remain as they are");
    fs::write(folder.join("rules"), "* 80 path.lo.price=1\n").unwrap();
    hangup("the rules were read again");
    assert_eq!(curl(&["--proxy", &by_socks, &url]).0, "a page");
    let id = proxy.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(proxy.wait().unwrap().code(), Some(0));
}

#[test]
fn mistakes_of_a_measurement_are_named_before_it_begins() {
    let server = Server::start();
    let wrong = |options: &[&str], code, parts: &[&str]| {
        let (output, said, found) = server.measure(options);
        assert_eq!((output.as_str(), found), ("", code), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    };
    wrong(&["--scheduler", "blesst"], 2, &["blesst", "did you mean \"blest\"?"]);
    wrong(&["--set", "path.wlan0.loss=1%"], 2, &["wlan0"]);
    wrong(&["--set", "path.lo.outage=[[\"1s\", \"2s\"]]"], 2, &["path.lo.outage", "backup, price, cap, weight"]);
    wrong(&["--set", "sweep.connection.mss=[500, 1000]"], 2, &["a measurement has no sweep"]);
    wrong(&["--via", "lo"], 2, &["lo stands there twice"]);
    wrong(&["--via", "wlan7"], 1, &["through wlan7: No such device", "ip link"]);
    wrong(&["--set", "hosts.sender=linux"], 2, &["Linux as a host on real links"]);
    wrong(&["--timeline", "5", "--out", "x"], 2, &["--timeline"]);
    wrong(&["--packets", "5", "--out", "x"], 2, &["--packets"]);
    wrong(&["--key", "none.key"], 1, &["there is no key none.key", "key new none.key"]);
    let folder = server.folder.path();
    let measure =
        |server_key: &str, address: &str| ran(folder, &["measure", address, "--via", "lo", "--server-key", server_key]);
    let (_, said, code) = measure("AAAA", &server.address);
    assert!(code == 2 && said.contains("no public key") && said.contains("key show"), "{said}");
    let (_, said, code) = measure(&server.key, "no.such.host.invalid");
    assert!(code == 2 && said.contains("no.such.host.invalid: no address is known"), "{said}");
    // Another key than the server's: it is silent, and the advice names the reasons.
    let (_, said, code) = measure(printed(key(&["new", "other.key"], folder)).trim(), &server.address);
    assert!(code == 1 && said.contains("no answer from 127.0.0.1:") && said.contains("--server-key"), "{said}");

    let taken = ["serve", "--measure", "--listen", &server.address];
    let (_, said, code) = ran(folder, &taken);
    assert!(code == 1 && said.contains("in use") && said.contains("--listen"), "{said}");
    let (_, said, code) = ran(folder, &["serve", "--measure", "--authorized", "none"]);
    assert!(code == 1 && said.contains("no list of authorised keys none"), "{said}");
    let (_, said, code) = ran(folder, &["serve"]);
    assert!(code == 2 && said.contains("--measure"), "{said}");
    let (_, said, code) = ran(folder, &["status", "--socket", "none.sock"]);
    assert!(code == 1 && said.contains("asking at none.sock") && said.contains("anabranch serve"), "{said}");
}

/// The interfaces of docs/links.sh, as the simulator has them: `tbf` counts Ethernet's 14 bytes, the carrier has 60.
const PREDICTED: &str = r#"
duration = "2s"
[connection]
congestion = "cubic"
mss = 1080
[[path]]
name = "wlan0"
rate = "20mbit"
delay = "100us"
overhead = 74
queue = "100000B"
[[path]]
name = "usb0"
rate = "10mbit"
delay = "100us"
overhead = 74
queue = "100000B"
[[traffic]]
kind = "bulk"
"#;

/// The mean goodput of the first row in results.
fn goodput(json: &str) -> f64 {
    let results: serde_json::Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let summary = results["summary"].as_array().unwrap().iter();
    let found = summary.filter(|entry| entry["metric"] == "goodput_bps").find_map(|entry| entry["mean"].as_f64());
    found.unwrap()
}

/// Time is real: a busy machine measures less, and none measures more. docs/lab/real-links.md has the comparison on a machine that was not busy.
#[test]
fn the_example_in_two_namespaces_measures_no_more_than_the_simulator_predicts() {
    if anabranch_lab::Namespace::new().is_err() || !is_root() {
        println!("SKIPPED: no network namespaces can be made here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("predicted.toml"), PREDICTED).unwrap();
    let options = ["--no-baselines", "--format", "json"];
    let (json, said, _) = ran(folder.path(), &[&["run", "predicted.toml"], &options[..]].concat());
    assert_eq!(said, "");
    let predicted = goodput(&json);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/links.sh");
    let mut command = std::process::Command::new("sh");
    command.arg(&script).arg(assert_cmd::cargo::cargo_bin!("anabranch")).args(options);
    let ran = command.args(["--duration", "2s", "--repeat", "3"]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let ratio = goodput(&String::from_utf8(ran.stdout).unwrap()) / predicted;
    assert!((0.5..=1.05).contains(&ratio), "measured ÷ predicted: {ratio}");
}

/// A path of the emulator, whose packets the carrier lengthens by 60 bytes.
const EMULATED: &str = r#"
duration = "1s"
[[path]]
name = "a"
rate = "20mbit"
delay = "10ms"
queue = "100000B"
[[traffic]]
kind = "bulk"
"#;

/// The number before `unit` in a text lies in `band`.
fn is_within(text: &str, unit: &str, band: std::ops::RangeInclusive<f64>) -> bool {
    let before = text.split_once(unit).and_then(|(before, _)| before.rsplit(' ').next());
    before.is_some_and(|number| band.contains(&number.parse().unwrap()))
}

/// Time is real: on a busy machine the emulated path is not what it should be, so the first try is not the last.
#[test]
fn a_recorded_path_comes_back_and_predicts_what_was_measured() {
    let (folder, server) = keys();
    fs::write(folder.path().join("emulated.toml"), EMULATED).unwrap();
    let bin = assert_cmd::cargo::cargo_bin!("anabranch").to_str().unwrap();
    let serve = format!("{bin} serve --measure --listen 10.0.0.2:51900");
    let shell = ["shell", "-q", "emulated.toml", "--server", &serve, "--"];
    let measure = [bin, "measure", "10.0.0.2", "--via", "path0", "--server-key", &server, "--duration", "1s"];
    let tried = |file: &str| {
        let options = ["--repeat", "1", "--out", "out", "--record", file];
        ran(folder.path(), &[&shell[..], &measure, &options].concat())
    };
    let (output, said, code) = tried("first.toml");
    if said.contains("needs root") {
        println!("SKIPPED: {said}");
        return;
    }
    assert_eq!(code, 0, "{said}");
    assert!(output.contains("measured ÷ simulated") && folder.path().join("out/prediction.json").is_file(), "{output}");
    let (_, refused, code) = tried("first.toml");
    assert!(code == 2 && refused.contains("first.toml exists"), "{refused}");
    let predicts = || {
        let text = fs::read_to_string(folder.path().join("out/prediction.json")).unwrap();
        let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        let of = |row: &str| {
            let is_it = |found: &&serde_json::Value| found["scheduler"] == row && found["metric"] == "goodput_bps";
            let found = rows.iter().find(is_it).unwrap_or_else(|| panic!("{row}: {text}"));
            assert_eq!(found["fitted"] == true, row.starts_with("single:"), "{found}");
            found["ratio"].as_f64().unwrap()
        };
        // The band: one download of a second each, whose start alone is a tenth of it.
        [of("minrtt"), of("single:path0")].iter().all(|ratio| (0.85..=1.15).contains(ratio))
    };
    let is_near = |file: &str| {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        let path = text.lines().find(|line| line.starts_with("# path0: ")).unwrap_or_else(|| panic!("{text}"));
        // The bands: 3 % of 20 Mbit/s; two delays and 1 ms; a tenth of the queue and a packet.
        is_within(path, " Mbit/s, constant", 19.4..=20.6)
            && is_within(path, " ms at least", 20.0..=21.0)
            && is_within(path, " bytes: packets were lost there", 88_500.0..=111_500.0)
            && predicts()
    };
    let again = |n: u32| {
        let file = format!("again{n}.toml");
        tried(&file).2 == 0 && is_near(&file)
    };
    assert!(
        is_near("first.toml") || (0..3).any(again),
        "{}",
        fs::read_to_string(folder.path().join("first.toml")).unwrap()
    );
    let (json, said, code) = ran(folder.path(), &["run", "first.toml", "--format", "json"]);
    assert_eq!((said.as_str(), code), ("", 0));
    assert!(json.contains("\"goodput_bps\"") && goodput(&json) < 20e6);
}

/// `ip netns` needs root.
fn is_root() -> bool {
    let id = std::process::Command::new("id").arg("-u").output().map(|ran| ran.stdout).unwrap_or_default();
    id == b"0\n"
}
