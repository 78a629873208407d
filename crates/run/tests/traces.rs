//! Recorded capacity: one draw of a trace, or one per seed.

use anabranch_run::{DiagnosisKind, Options, Plan, Results, Runner, Serial, Variant, VirtualTime};
use anabranch_scenario::{Document, Override, Resolver, Source, read};
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

fn document(set: &[&str]) -> Document {
    let overrides: Vec<Override> = set.iter().map(|set| Override::parse("--set", set)).collect();
    let source = Source { name: "s".into(), text: TEXT.into() };
    read(&source, &overrides, &Steps).unwrap_or_else(|wrong| panic!("{wrong:#?}"))
}

fn run(set: &[&str]) -> Results {
    let cells = document(set).cells.into_iter();
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
    assert_eq!(again.scenario.drawn_trace, [true]);
    let text = TEXT.replace("trace = 'steps.trace'", "rate = '8mbit'\ntrace_start = 'seed'");
    let wrong = read(&Source { name: "s".into(), text }, &[], &Steps).unwrap_err();
    assert_eq!(wrong[0].message, "`trace_start` is of a path that has a `trace`");
    let wrong = Override::parse("--set", "path.a.trace_start=sead");
    let wrong = read(&Source { name: "s".into(), text: TEXT.into() }, &[wrong], &Steps).unwrap_err();
    assert!(wrong[0].help.as_ref().is_some_and(|help| help.contains("seed")), "{wrong:#?}");
}
