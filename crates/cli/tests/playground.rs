//! The playground as users have it: served by the command, read by Chromium. Screenshots are left in target/screenshots. Without
//! Chromium, or in a build without the WebAssembly module (`crates/playground/build.sh`), every test says SKIPPED.

#[path = "playground/address.rs"]
mod address;
#[path = "../../report/tests/page/axe.rs"]
mod axe;
#[path = "../../report/tests/common/browser.rs"]
#[allow(dead_code, reason = "it opens files, too")]
mod browser;
#[path = "playground/digests.rs"]
mod digests;
#[path = "playground/own.rs"]
mod own;
#[path = "playground/site.rs"]
mod site;
#[path = "playground/waver.rs"]
mod waver;

use browser::Browser;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// The page of `axe.rs`, which opens the report's sample.
fn opened() -> Option<(Server, Browser)> {
    served()
}

/// The command while it serves.
struct Server {
    process: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn anabranch() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anabranch"))
}

/// The command, serving.
fn server() -> Option<Server> {
    let mut process = anabranch()
        .args(["playground", "--port", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let Some(url) = line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:")) else {
        let told = process.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(told.contains("crates/playground/build.sh"), "{told}");
        eprintln!("SKIPPED: {told}");
        return None;
    };
    Some(Server { url: url.to_owned(), process })
}

/// The served page in a browser.
fn served() -> Option<(Server, Browser)> {
    let server = server()?;
    let mut page = Browser::start()?;
    page.prefer("light");
    page.screen(1400, 900, false);
    page.open_served(&server.url, "");
    Some((server, page))
}

/// Until the run on the page is over.
const OVER: &str = "/^[0-9a-f]{32}$/.test(document.getElementById('digest').textContent)";

fn digest(page: &mut Browser) -> String {
    page.wait_for(OVER);
    page.text("document.getElementById('digest').textContent")
}

/// `anabranch run` on a scenario's text.
fn native(toml: &str, options: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    std::fs::write(&file, toml).unwrap();
    let output = anabranch().arg("run").arg(&file).args(["--format", "json"]).args(options).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The digests of its runs.
fn digests_of(results: &Value) -> Vec<String> {
    let runs = results["runs"].as_array().unwrap();
    runs.iter().map(|run| run["digest"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_run_starts_by_itself_and_its_file_has_its_digest() {
    let Some((server, mut page)) = served() else { return };
    let first = digest(&mut page);
    let toml = page.text("document.getElementById('toml').value");
    assert_eq!(digests_of(&native(&toml, &["--repeat", "1", "--no-baselines"])), std::slice::from_ref(&first));

    // A slider by the keyboard: another scenario, another run, another address; the address alone brings it back.
    page.value("document.querySelector('.knob[data-what=delay]').focus()");
    (0..3).for_each(|_| page.press("ArrowRight"));
    page.wait_for("location.hash.includes('delay')");
    page.wait_for(&format!("{OVER} && document.getElementById('digest').textContent !== '{first}'"));
    let (second, fragment) = (digest(&mut page), page.text("location.hash"));
    page.open_served(&server.url, &fragment);
    assert_eq!(digest(&mut page), second);
    let toml = page.text("document.getElementById('toml').value");
    assert_eq!(digests_of(&native(&toml, &["--repeat", "1", "--no-baselines"])), [second]);

    // Dragged.
    let of = |what: &str| format!("document.querySelector('.knob[data-what=rate]').getBoundingClientRect().{what}");
    let (x, y) = (page.number(&of("x")) + 20.0, page.number(&of("y")) + 8.0);
    let before = page.text("document.querySelector('.knob[data-what=rate]').getAttribute('aria-valuetext')");
    let press = json!({ "button": "left", "buttons": 1, "clickCount": 1 });
    page.mouse("mousePressed", x, y, press.clone());
    page.mouse("mouseMoved", x - 40.0, y, press.clone());
    page.mouse("mouseReleased", x - 40.0, y, json!({ "button": "left", "clickCount": 1 }));
    page.wait_for("location.hash.includes('rate')");
    assert_ne!(page.text("document.querySelector('.knob[data-what=rate]').getAttribute('aria-valuetext')"), before);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn a_packet_says_why_and_a_mistake_says_where() {
    let Some((_server, mut page)) = served() else { return };
    digest(&mut page);
    page.value("document.getElementById('play').click()");
    page.value("page.player.seek(0.5)");
    page.value("document.getElementById('step').click()");
    let why = page.text("document.getElementById('why-says').textContent");
    assert!(
        why.contains("Packet ") && why.contains("smoothed RTT") && why.contains("in which minrtt+pr chose"),
        "{why}"
    );
    page.photograph("playground-why", None);

    // Acknowledgments of both kinds travel back, until they are switched off.
    let news = "(() => { const seen = new Set(); page.run.history.eachAck(0, 0.5, (part, news) => { if (part >= 0 && part <= 1) seen.add(news); }); \
                return [...seen].sort().join(); })()";
    assert_eq!(page.text(news), "1,3");
    assert!(page.number("page.picture.acks") > 2.0);
    page.value("document.getElementById('acks').click()");
    assert_eq!(page.number("page.picture.acks"), 0.0);

    // BLEST's own state is there, too.
    page.value("page.model.put('connection.scheduler', 'blest')");
    page.wait_for("document.getElementById('scheduler').value === 'blest'");
    digest(&mut page);
    page.value("page.player.seek(0.5); document.getElementById('step').click()");
    let why = page.text("document.getElementById('why-says').textContent");
    assert!(why.contains("the scheduler's lambda was "), "{why}");
    page.value("page.model.put('connection.scheduler', 'minrtt+pr')");
    page.wait_for("document.getElementById('scheduler').value === 'minrtt+pr'");
    digest(&mut page);

    page.value("document.getElementById('file').open = true");
    page.value("document.getElementById('toml').value = 'duration = \"5s\"\\n[[path]]\\nname = \"a\"\\nrate = \"5mbot\"\\ndelay = \"5ms\"\\n'");
    page.value("document.getElementById('toml-use').click()");
    page.wait_for("!document.getElementById('problem').hidden");
    let problem = page.text("document.getElementById('problem').textContent");
    assert!(problem.contains("Line 4") && problem.contains("mbit"), "{problem}");
    // The next change is one of the scenario before.
    page.value("page.model.put('connection.scheduler', 'ecf')");
    page.wait_for("document.getElementById('problem').hidden && document.getElementById('scheduler').value === 'ecf'");

    // Another cut leaves the first, and a slider what is set for the other direction.
    page.value("page.player.seek(1); document.querySelector('.lane .drop').click()");
    page.wait_for("page.described.toml.includes('[\"1s\", \"2s\"]')");
    page.value("page.player.seek(3); document.querySelector('.lane .drop').click()");
    page.wait_for("page.described.toml.includes('[[\"1s\", \"2s\"], [\"3s\", \"4s\"]]')");
    page.value("page.model.put('path.wifi.delay.up', '77ms')");
    page.wait_for("page.described.toml.includes('up = \"77ms\"')");
    page.value("document.querySelector('.knob[data-what=delay]').focus()");
    page.press("ArrowRight");
    page.wait_for("location.hash.includes('delay.down')");
    assert!(page.text("page.described.toml").contains("up = \"77ms\""));
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn schedulers_are_compared_in_the_report_of_the_command() {
    let Some((_server, mut page)) = served() else { return };
    // Stopped before its worker is ready.
    page.value("document.getElementById('study-run').click()");
    page.value("document.getElementById('study-stop').click()");
    page.wait_for("!document.getElementById('study-run').hidden");
    page.value("document.getElementById('study-schedulers').value = 'minrtt,blest'");
    page.value("document.getElementById('study-seeds').value = 3");
    page.value("document.getElementById('study-run').click()");
    page.wait_for("document.querySelector('#report iframe')?.dataset.loaded === 'yes'");
    let inside = |what: &str| format!("document.querySelector('#report iframe').contentDocument.{what}");
    page.wait_for(&inside("querySelectorAll('figure svg').length > 3"));
    let answer = page.text(&inside("querySelector('#answer .first').textContent"));
    assert!(answer.contains("blest") && answer.contains("minrtt"), "{answer}");
    let ours = page.value("page.study.results.runs.map((run) => run.digest)");
    let toml = page.text("document.getElementById('toml').value");
    let theirs = native(&toml, &["--repeat", "3", "--scheduler", "minrtt,blest"]);
    assert_eq!(ours, json!(digests_of(&theirs)));
    // Pairs and intervals.
    assert!(page.number(&inside("querySelectorAll('#comparisons, section').length")) > 3.0);
    page.photograph("playground-report", None);
    assert!(page.value("document.getElementById('study-old').hidden").as_bool().unwrap());
    page.value("page.model.put('connection.scheduler', 'ecf')");
    page.wait_for("!document.getElementById('study-old').hidden");
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn with_less_motion_nothing_plays_and_the_picture_has_packets() {
    let Some((server, mut page)) = served() else { return };
    let features = json!([{ "name": "prefers-reduced-motion", "value": "reduce" }]);
    page.ask("Emulation.setEmulatedMedia", json!({ "features": features }));
    page.open_served(&server.url, "");
    page.wait_for("page.picture.spots.length > 0");
    page.value("document.querySelector('#tours button').click()");
    page.wait_for("page.model.preset === 'tight-window'");
    digest(&mut page);
    assert_eq!(page.text("document.getElementById('play').textContent"), "Play");
    assert_eq!(page.number("page.player.time"), 0.68);
    // Acknowledgments are shown after a click.
    assert_eq!(page.number("page.picture.acks"), 0.0);
    page.value("document.getElementById('acks').click()");
    assert!(page.number("page.picture.acks") > 0.0);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn the_name_of_another_site_is_answered_with_nothing() {
    let Some(server) = server() else { return };
    let address = server.url.trim_start_matches("http://").trim_end_matches('/');
    let answer = |host: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let port = address.split(':').nth(1).unwrap();
    for host in [address, &format!("localhost:{port}")] {
        assert!(answer(host).starts_with("HTTP/1.1 200 OK"), "{host}");
    }
    for host in [&format!("rebound.example:{port}"), "127.0.0.1:1", ""] {
        let answer = answer(host);
        assert!(answer.starts_with("HTTP/1.1 421 ") && !answer.contains("Anabranch"), "{host}: {answer}");
    }
}

#[test]
fn a_phone_and_the_dark_have_it_whole() {
    let Some((_server, mut page)) = served() else { return };
    digest(&mut page);
    let Some(script) = axe::script() else { return };
    page.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    page.value(&format!("{script};0"));
    for scheme in ["light", "dark"] {
        page.prefer(scheme);
        for (width, height, mobile) in [(1400, 900, false), (420, 900, true)] {
            page.screen(width, height, mobile);
            page.value("page.player.set(false); page.player.seek(0.8)");
            page.photograph(&format!("playground-{scheme}-{width}"), None);
            assert!(page.number("document.documentElement.scrollWidth - innerWidth") <= 0.0, "{scheme} {width}");
            assert_eq!(axe::findings(&mut page, "document"), Vec::<String>::new(), "{scheme} {width}");
        }
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn the_site_is_written_whole_and_over_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let site = folder.path().join("site");
    let write = || anabranch().args(["playground", "--out"]).arg(&site).output().unwrap();
    let first = write();
    if !first.status.success() {
        assert!(String::from_utf8_lossy(&first.stderr).contains("crates/playground/build.sh"));
        eprintln!("SKIPPED: the WebAssembly module is not built");
        return;
    }
    let index = std::fs::read_to_string(site.join("index.html")).unwrap();
    assert!(!index.contains("{{"));
    assert!(anabranch_report::script_sources().iter().all(|source| index.contains(source)));
    assert!(site.join("engine.wasm").exists());
    let again = write();
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("exists"));
}

/// Prints how long the main thread works per frame of a run of a hundred thousand packets: docs/report.md.
#[test]
#[ignore = "a measurement"]
fn paint_times_at_a_hundred_thousand_packets() {
    let Some((_server, mut page)) = served() else { return };
    let toml = "duration = \"6s\"\n[connection]\nrecv_buffer = \"16MiB\"\n\
                [[path]]\nname = \"a\"\nrate = \"120mbit\"\ndelay = \"15ms\"\n\
                [[path]]\nname = \"b\"\nrate = \"80mbit\"\ndelay = \"40ms\"\n[[traffic]]\nkind = \"bulk\"\n";
    page.value(&format!("page.player.set(false), page.model.useText({})", json!(toml)));
    page.wait_for("page.described.network.paths[0].name === 'a'");
    digest(&mut page);
    let packets = page.number("page.run.history.count");
    assert!(packets > 90_000.0, "{packets}");
    let steps: Vec<String> = (0..100).map(|n| format!("page.player.seek({})", 0.3 + 0.055 * f64::from(n))).collect();
    browser::print_quantiles(&format!("playground, {packets} packets: frames"), page.work_ms(&steps));
}
