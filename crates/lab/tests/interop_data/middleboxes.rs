//! Downloads through middleboxes, by the hosts at both ends: the table of `docs/lab/interoperation.md`.
//!
//! `BLESS=1 cargo test -p anabranch-lab --test interop_data -- middleboxes` writes it.

use crate::common::alone;
use anabranch_lab::RealTime;
use anabranch_run::{Choice, Driver, Job, RunError, RunOutcome, VirtualTime};
use anabranch_scenario::{Document, Host, scheduler};
use anabranch_trace::{Event, Origin, Recorder};
use anabranch_units::Instant;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const PAGE: &str = "../../docs/lab/interoperation.md";
const MARKS: [&str; 2] = ["<!-- middleboxes -->\n", "<!-- /middleboxes -->"];
const HEAD: &str = "\n| middlebox | engine → engine, simulated | engine → Linux | Linux → engine | Linux → Linux |\n|---|---|---|---|---|\n";
/// Sender and receiver of each column.
const ENDS: [[Host; 2]; 4] = [
    [Host::Engine, Host::Engine],
    [Host::Engine, Host::Linux],
    [Host::Linux, Host::Engine],
    [Host::Linux, Host::Linux],
];

/// A row: its name, the boxes of the first and of the second path, and what else the scenario has.
struct Row {
    name: &'static str,
    boxes: [String; 2],
    rest: String,
}

fn row(name: &'static str, first: &str, second: &str) -> Row {
    Row { name, boxes: [first, second].map(str::to_owned), rest: String::new() }
}

fn both(name: &'static str, boxes: &str) -> Row {
    row(name, boxes, boxes)
}

/// A box that the second path has from 0.4 s on, and which has seen no SYN.
fn reboot(name: &'static str, answer: &str) -> Row {
    let boxes = format!("[{{ kind = 'forget', idle = '60s', answer = '{answer}' }}]");
    let rest = format!("[[timeline]]\nat = '400ms'\nset = 'path.b.middlebox'\nvalue = {boxes}\n");
    Row { rest, ..both(name, "[]") }
}

/// Four requests, `every` so often, through boxes on both paths that forget what idles for 1 s.
fn idle(name: &'static str, every: &str, answer: &str, tcp: &str) -> Row {
    let boxes = format!("[{{ kind = 'forget', idle = '1s', answer = '{answer}' }}]");
    let traffic = format!("[[traffic]]\nkind = 'request'\nsize = '{REQUESTED}B'\ncount = 4\ninterval = '{every}'\n");
    Row { rest: traffic + tcp, ..both(name, &boxes) }
}

const REQUESTED: u64 = 400_000;
/// A Linux 6.18 receiver that has fallen back delivers wrong bytes behind this box, or stops, or neither: the page says why.
const UNSETTLED: &str = "terminates TCP";
/// Rows that are made side by side.
const AT_A_TIME: usize = 5;

fn rows() -> Vec<Row> {
    let capable = |kind, answer| format!("{{ kind = '{kind}', options = 'mp-capable', on = 'syn'{answer} }}");
    let join = |kind, answer| format!("{{ kind = '{kind}', options = 'mp-join', on = 'syn'{answer} }}");
    let up = |of: String| format!("{{ up = [{of}], down = [] }}");
    let down = |of: &str| format!("{{ up = [], down = [{of}] }}");
    let silence = ", answer = 'silence'";
    let dss = "[{ kind = 'strip', options = 'dss' }]";
    let terminate = down("{ kind = 'terminate' }");
    vec![
        both("none", "[]"),
        both("strips all of Multipath TCP", "[{ kind = 'strip' }]"),
        row("strips MP_CAPABLE from the SYN", &up(capable("strip", "")), "[]"),
        row("strips MP_CAPABLE from the SYN/ACK", &down(&capable("strip", "")), "[]"),
        row("strips MP_JOIN from the SYN, second path", "[]", &up(join("strip", ""))),
        row("strips MP_JOIN from the SYN/ACK, second path", "[]", &down(&join("strip", ""))),
        both("strips DSS", dss),
        row("strips DSS, second path", "[]", dss),
        both("drops ADD_ADDR", "[{ kind = 'strip', options = 'add-addr' }]"),
        both("translates sequence numbers", "[{ kind = 'translate' }]"),
        both("splits segments", "[{ kind = 'split', size = 500 }]"),
        both("coalesces segments", "[{ kind = 'coalesce' }]"),
        both("clears ECN", "[{ kind = 'ecn', flags = true }]"),
        both("lowers the MSS", "[{ kind = 'mss', most = 1000 }]"),
        both("thins acknowledgments", &up("{ kind = 'thin-acks' }".into())),
        both(UNSETTLED, &terminate),
        row("terminates TCP, second path", "[]", &terminate),
        reboot("forgets all flows at 0.4 s, second path, silence", "silence"),
        reboot("forgets all flows at 0.4 s, second path, RST", "reset"),
        idle("forgets what idles for 1 s; the flow idles for 0.5 s", "500ms", "silence", ""),
        idle("forgets what idles for 1 s, silence; the flow idles for 2 s", "2s", "silence", ""),
        idle("forgets what idles for 1 s, RST; the flow idles for 2 s", "2s", "reset", ""),
        idle("the same, silence, with keep-alive every 0.7 s", "2s", "silence", "[tcp]\nkeep_alive = '700ms'\n"),
        row("answers joins with RST", "[]", &format!("[{}]", join("reject", ""))),
        row("drops joins", "[]", &format!("[{}]", join("reject", silence))),
        row("answers MP_CAPABLE with RST", &format!("[{}]", capable("reject", "")), "[]"),
        row("drops MP_CAPABLE", &format!("[{}]", capable("reject", silence)), "[]"),
    ]
}

/// The protocol, by the hosts' events.
#[derive(Default)]
struct Spoken {
    plain: bool,
}

impl Recorder for Spoken {
    fn record(&mut self, _now: Instant, _origin: Origin, event: &Event) {
        self.plain |= matches!(event, Event::Connected(false) | Event::Fallback);
    }
}

/// The job of a row's cell, and the bytes that it is to deliver.
fn job(row: &Row, [sender, receiver]: [Host; 2]) -> (Job, f64) {
    let path = |name, delay, boxes| {
        format!("[[path]]\nname = '{name}'\nrate = '20mbit'\ndelay = '{delay}ms'\nmiddlebox = {boxes}\n")
    };
    let [a, b] = [path("a", 10, &row.boxes[0]), path("b", 15, &row.boxes[1])];
    let own = row.rest.contains("[[traffic]]");
    let traffic = if own { "" } else { "[[traffic]]\nkind = 'bulk'\nsize = '3MB'\n" };
    let ecn = if row.rest.contains("[tcp]") { "" } else { "[tcp]\necn = true\n" };
    let rest = &row.rest;
    let text = format!("duration = '12s'\n[connection]\ncongestion = 'cubic'\n{ecn}{a}{b}{traffic}{rest}");
    let mut scenario = Document::parse("x.toml", &text).unwrap_or_else(|wrong| panic!("{wrong:#?}")).scenario;
    (scenario.hosts.sender, scenario.hosts.receiver) = (sender, receiver);
    let name = if sender == Host::Linux { "linux-default" } else { "minrtt" };
    let choice = Choice::Multipath(scheduler("the test", name).expect("a scheduler"));
    (Job::of(Arc::new(scenario), choice, 1), if own { 4.0 * REQUESTED as f64 } else { 3e6 })
}

fn play(row: &Row, ends: [Host; 2]) -> &'static str {
    let (job, bytes) = job(row, ends);
    let mut spoken = Spoken::default();
    let ended = match ends {
        [Host::Engine, Host::Engine] => VirtualTime::default().run(&job, &mut spoken),
        _ => RealTime.run(&job, &mut spoken),
    };
    match ended {
        Ok(outcome) => left(&outcome, bytes, spoken.plain),
        Err(RunError::Fault { what }) => {
            eprintln!("{}, {ends:?}: {what}", row.name);
            fault(&what)
        }
        Err(other) => panic!("{}: {other}", row.name),
    }
}

/// The rest of a connection without a fault.
fn left(outcome: &RunOutcome, bytes: f64, plain: bool) -> &'static str {
    let shares = outcome.paths.values().map(|values| values.get("share").copied().unwrap_or(0.0));
    match outcome.metrics.get("delivered_bytes").copied().unwrap_or(0.0) {
        less if less < bytes => "dead",
        _ if plain => "plain TCP",
        _ if shares.fold(1.0, f64::min) > 0.01 => "Multipath TCP",
        _ => "Multipath TCP, one path",
    }
}

/// The receiving application compares each byte. A host that receives a reset says so.
fn fault(what: &str) -> &'static str {
    let said = what.to_lowercase();
    let told = ["reset", "refused", "broken pipe", "aborted"].iter().any(|word| said.contains(word));
    match said.contains("byte at offset") {
        true => "wrong bytes",
        false if told => "dead, reported",
        false => "dead",
    }
}

fn cells(row: &Row) -> String {
    let cells = ENDS.map(|ends| match (row.name, ends) {
        (UNSETTLED, [_, Host::Linux]) => {
            let cell = play(row, ends);
            assert!(["plain TCP", "wrong bytes", "dead"].contains(&cell), "{cell}");
            "differs from run to run"
        }
        _ => play(row, ends),
    });
    format!("| {} | {} |\n", row.name, cells.join(" | "))
}

/// All rows, in their order. A row mostly waits, so some are made at a time.
fn made(rows: &[Row]) -> String {
    let (next, made) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); rows.len()]));
    let work = || {
        while let Some((place, row)) = rows.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            let cells = cells(row);
            made.lock().expect("no row panics")[place] = cells;
        }
    };
    std::thread::scope(|scope| (0..AT_A_TIME).for_each(|_| drop(scope.spawn(work))));
    made.into_inner().expect("no row panics").concat()
}

#[test]
fn the_table_says_what_middleboxes_leave() {
    let Some(_alone) = alone() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let text = std::fs::read_to_string(&page).expect("the page");
    let [begin, end] = MARKS.map(|mark| text.find(mark).expect("the table's marks"));
    let begin = begin + MARKS[0].len();
    let table = made(&rows());
    if std::env::var_os("BLESS").is_some() {
        let new = format!("{}{HEAD}{table}\n{}", &text[..begin], &text[end..]);
        std::fs::write(&page, new).expect("the page is written");
        return;
    }
    let known: Vec<&str> = text[begin..end].lines().collect();
    let other: Vec<&str> = table.lines().filter(|line| !known.contains(line)).collect();
    assert!(other.is_empty() && known.len() == rows().len() + 4, "{} has other rows than:\n{}", PAGE, other.join("\n"));
}
