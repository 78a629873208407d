//! Recorded capacity: one draw of a trace, or one per seed.

use anabranch_metrics::Verdict;
use anabranch_run::{Diagnosis, DiagnosisKind, Options, Plan, Results, Runner, Serial, Variant, VirtualTime};
use anabranch_scenario::{Document, Override, Resolver, Source, TraceStart, read};
use std::sync::Arc;

/// A trace of two seconds: a fast second and a slow one.
struct Steps;

impl Resolver for Steps {
    fn read(&self, _file: &str) -> Result<String, String> {
        let fast = (1..=1000).map(|ms| format!("{ms}\n"));
        let slow = (1..=100).map(|n| format!("{}\n", 1000 + 10 * n));
        Ok(fast.chain(slow).collect())
    }
}

const TEXT: &str = "repeat = 12\n[[path]]\nname = 'a'\ntrace = 'steps.trace'\ndelay = '10ms'\n\
    [[traffic]]\nkind = 'bulk'\nsize = '400KB'\n";

/// The same trace on a link.
const LINK: &str = "repeat = 12\n[[link]]\nname = 'l'\ntrace = 'steps.trace'\n[[path]]\nname = 'a'\nlink = 'l'\ndelay = '10ms'\n\
    [[traffic]]\nkind = 'bulk'\nsize = '400KB'\n";

fn document(set: &[&str]) -> Document {
    read_text(TEXT, set)
}

fn read_text(text: &str, set: &[&str]) -> Document {
    let overrides: Vec<Override> = set.iter().map(|set| Override::parse("--set", set)).collect();
    let source = Source { name: "s".into(), text: text.into() };
    read(&source, &overrides, &Steps).unwrap_or_else(|wrong| panic!("{wrong:#?}"))
}

fn run(set: &[&str]) -> Results {
    run_document(document(set))
}

fn run_document(document: Document) -> Results {
    let cells = document.cells.into_iter();
    let variants: Vec<Variant> = cells.map(|(cell, scenario)| Variant { cell, scenario: Arc::new(scenario) }).collect();
    let plan = Plan::new(&variants, &Options::default());
    Runner { driver: &VirtualTime::default(), pool: &Serial, observer: &() }.run(&plan).unwrap()
}

#[test]
fn from_its_beginning_a_trace_is_one_draw_and_that_is_said() {
    let results = run(&[]);
    // Multipath TCP and the baseline.
    assert_eq!(results.runs.len(), 2);
    assert_eq!(results.diagnosis[0].kind, DiagnosisKind::OneDraw);
    assert!(results.diagnosis[0].text.contains("--set path.a.trace_start=seed"), "{}", results.diagnosis[0].text);
    let of_link = run_document(read_text(LINK, &[])).diagnosis.swap_remove(0);
    assert_eq!(of_link.kind, DiagnosisKind::OneDraw);
    assert_eq!(of_link.text, "This is one draw: the trace of l begins at its beginning in every run.");
}

#[test]
fn each_seed_draws_a_place_in_the_trace_that_all_schedulers_meet() {
    let set = ["path.a.trace_start=seed", "seed=5"];
    let results = run(&set);
    assert_eq!(results.runs.len(), 24);
    assert!(results.diagnosis.iter().all(|one| one.kind != DiagnosisKind::OneDraw));
    let times: Vec<f64> = results.runs.to_vec()[..12].iter().map(|run| run.metrics["completion_s"]).collect();
    let (least, most) = times.iter().fold((f64::INFINITY, 0.0f64), |(a, b), time| (a.min(*time), b.max(*time)));
    // 400 KB take a third of a second in the fast part; begun in the slow part, they wait for its end.
    assert!(least < 0.6 && most > 0.9, "{times:?}");
    // Plain TCP over the path meets the same draws.
    for (own, single) in results.runs.to_vec()[..12].iter().zip(&results.runs.to_vec()[12..]) {
        let [own, single] = [own, single].map(|run| run.metrics["completion_s"]);
        assert!((own - single).abs() < 0.1 * single, "{own} {single}");
    }
    assert_eq!(run(&set), results, "a seed means the same draw each time");
    assert!(results.runs.iter().all(|run| run.metrics["oracle_ratio"] <= 1.0));
}

#[test]
fn the_key_reads_back() {
    let document = document(&["path.a.trace_start=seed"]);
    assert!(document.resolved().contains("trace_start = \"seed\""), "{}", document.resolved());
    let again = read(&Source { name: "r".into(), text: document.resolved() }, &[], &Steps).unwrap();
    assert_eq!(again.scenario.paths[0].trace_start, TraceStart::Seed);
    let text = TEXT.replace("trace = 'steps.trace'", "rate = '8mbit'\ntrace_start = 'seed'");
    let wrong = read(&Source { name: "s".into(), text }, &[], &Steps).unwrap_err();
    assert_eq!(wrong[0].message, "`trace_start` is of a path that has a `trace`");
    let wrong = Override::parse("--set", "path.a.trace_start=sead");
    let wrong = read(&Source { name: "s".into(), text: TEXT.into() }, &[wrong], &Steps).unwrap_err();
    assert!(wrong[0].help.as_ref().is_some_and(|help| help.contains("seed")), "{wrong:#?}");
}

/// A recording whose rate falls to zero after a second.
struct Falls;

impl Resolver for Falls {
    fn read(&self, _file: &str) -> Result<String, String> {
        Ok("time_s,rate_mbps\n0,5\n1,0\n".into())
    }
}

#[test]
fn a_path_that_is_held_at_nothing_leaves_a_transfer_unfinished() {
    let text = "[[path]]\nname = 'a'\ntrace = 'falls.csv'\ntrace_end = 'hold'\ndelay = '10ms'\n\
        [[traffic]]\nkind = 'bulk'\nsize = '10MB'\n";
    let source = Source { name: "s".into(), text: text.into() };
    let results = run_document(read(&source, &[], &Falls).unwrap());
    let ends: Vec<_> =
        results.runs.iter().map(|run| (run.finished, run.metrics.get("completion_s").copied())).collect();
    assert_eq!(ends, [(false, None); 2], "both ends give up after their last retry, and the run is over");
    let repeats = |one: &Diagnosis| one.kind == DiagnosisKind::ShortTrace;
    assert!(!results.diagnosis.iter().any(repeats), "what is held is not repeated: {:?}", results.diagnosis);
}

/// Two paths with one recording.
const TOGETHER: &str = "repeat = 5\nduration = '500ms'\n[[path]]\nname = 'a'\ntrace = 'steps.trace'\ndelay = '10ms'\n\
    [[path]]\nname = 'b'\ntrace = 'steps.trace'\ndelay = '10ms'\n";

#[test]
fn what_was_recorded_together_is_replayed_together() {
    let set = ["path.a.trace_start=seed", "path.b.trace_start=seed"];
    let results = run_document(read_text(TOGETHER, &set));
    let goodput = |name: &str| -> Vec<f64> {
        let runs = results.runs.iter().filter(|run| run.scheduler == name);
        runs.map(|run| run.metrics["goodput_bps"]).collect()
    };
    assert_eq!(goodput("single:a"), goodput("single:b"));
    assert!(goodput("single:a").windows(2).any(|pair| pair[0] != pair[1]), "the seeds draw places");
}

#[test]
fn a_stated_place_is_the_same_in_every_run() {
    let slow = ["path.a.trace_start=1s"];
    assert_eq!(run(&slow).runs.len(), 2, "nothing is random");
    // 400 KB of the slow second, 150 KB, and the fast one.
    let [fast, slow] = [&[][..], &slow].map(|set| run(set).runs.to_vec()[0].metrics["completion_s"]);
    assert!(fast < 0.6 && slow > 1.0, "{fast} {slow}");
    let resolved = document(&["path.a.trace_start=1500ms"]).resolved();
    assert!(resolved.contains("trace_start = \"1.5s\""), "{resolved}");
    let refused = |value: &str| {
        let set = Override::parse("--set", &format!("path.a.trace_start={value}"));
        let wrong = read(&Source { name: "s".into(), text: TEXT.into() }, &[set], &Steps).unwrap_err();
        wrong[0].message.clone()
    };
    assert_eq!(refused("2s"), "`path.trace_start` is 2s, and the trace ends at 2s");
    assert_eq!(refused("1.5us"), "`path.trace_start` is not a whole number of milliseconds");
    assert_eq!(refused("5"), "`path.trace_start` cannot be an integer");
}

#[test]
fn a_trace_that_is_too_short_is_said_and_gives_no_interval() {
    let is_it = |one: &&Diagnosis| matches!(one.kind, DiagnosisKind::ShortTrace | DiagnosisKind::Overlap);
    let kind = |results: &Results| results.diagnosis.iter().find(is_it).cloned();
    let has_interval = |results: &Results| results.summary.iter().any(|one| one.ci95_low.is_some());
    // Five runs of 500 ms do not fit into two seconds.
    let set =
        ["path.a.trace_start=seed", "path.b.trace_start=seed", "path.b.delay=50ms", "connection.recv_buffer=32KiB"];
    let text = format!("{TOGETHER}[sweep]\nscheduler = ['minrtt', 'roundrobin']\n");
    let results = run_document(read_text(&text, &set));
    let compared = results.comparisons.iter().filter(|one| one.n == 5);
    assert!(compared.map(|one| (one.p, one.p_wilcoxon)).all(|p| p == (None, None)) && !results.comparisons.is_empty());
    let verdicts: Vec<Verdict> = results.verdicts("goodput_bps", "minrtt").into_iter().map(|one| one.1).collect();
    assert_eq!(verdicts, [Verdict::Untested]);
    assert_eq!(
        kind(&results).unwrap().text,
        "5 runs of 500ms overlap in the 2s of the trace of a and b: they are not independent, so there is no interval (±), and no test."
    );
    assert!(!has_interval(&results) && results.comparisons.iter().all(|one| one.ci95_low.is_none()));
    let results = run_document(read_text(
        TOGETHER,
        &["path.a.trace_start=seed", "duration=100ms", "repeat=19", "path.b.loss=5%"],
    ));
    assert!(kind(&results).is_none() && has_interval(&results));
    // Without a draw, too, a run that repeats the trace says so.
    let results = run_document(read_text(TOGETHER, &["duration=5s"]));
    assert_eq!(kind(&results).unwrap().text, "The trace of a and b lasts 2s, and a run of 5s repeats it.");
}
