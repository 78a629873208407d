//! Sweeps of real runs: their results are those of separate runs.

use anabranch_run::{
    Choice, DiagnosisKind, Driver, Job, Options, Plan, Results, RunError, RunOutcome, RunRecord, Runner, Serial,
    Summary, Values, Variant, VirtualTime,
};
use anabranch_scenario::{NoFiles, Override, Source, read};
use anabranch_trace::Recorder;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TEXT: &str = "repeat = 2\n[[path]]\nname = 'a'\nrate = '8mbit'\ndelay = '10ms'\nloss = '1%'\n\
    [[path]]\nname = 'b'\nrate = '2mbit'\ndelay = '40ms'\nprice = '1/MB'\n[[path]]\nname = 'c'\nrate = '1mbit'\ndelay = '5ms'\n\
    [[traffic]]\nkind = 'bulk'\nsize = '60KB'\n";

/// The simulator; counts runs of single paths, and fails after some runs.
#[derive(Default)]
struct Counting {
    singles: AtomicUsize,
    runs: AtomicUsize,
    most: Option<usize>,
}

impl Driver for Counting {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        if self.most.is_some_and(|most| self.runs.fetch_add(1, Ordering::Relaxed) >= most) {
            return Err(RunError::Interrupted);
        }
        if matches!(job.choice, Choice::Single(_)) {
            self.singles.fetch_add(1, Ordering::Relaxed);
        }
        VirtualTime::default().run(job, listener)
    }
}

fn plan(text: &str, sweeps: &[&str], set: &[&str]) -> Plan {
    plan_with(text, sweeps, set, &Options::default())
}

fn plan_with(text: &str, sweeps: &[&str], set: &[&str], options: &Options) -> Plan {
    let sweeps = sweeps.iter().map(|text| Override::sweep("--sweep", text, false));
    let overrides: Vec<Override> = sweeps.chain(set.iter().map(|set| Override::parse("--set", set))).collect();
    let source = Source { name: "s".into(), text: text.into() };
    let document = read(&source, &overrides, &NoFiles).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    let cells = document.cells.into_iter();
    let variants: Vec<Variant> = cells.map(|(cell, scenario)| Variant { cell, scenario: Arc::new(scenario) }).collect();
    Plan::new(&variants, options)
}

fn run(driver: &Counting, plan: &Plan) -> Results {
    Runner { driver, pool: &Serial, observer: &() }.run(plan).unwrap()
}

/// Without the cell.
fn bare(runs: &[RunRecord]) -> Vec<RunRecord> {
    runs.iter().map(|run| RunRecord { cell: Default::default(), ..run.clone() }).collect()
}

/// Each cell of a sweep has the results of a run with that value.
fn is_as_alone(text: &str, key: &str, values: &[&str]) {
    let swept = run(&Counting::default(), &plan(text, &[&format!("{key}={}", values.join(","))], &[]));
    let alone = |value: &&str| run(&Counting::default(), &plan(text, &[], &[&format!("{key}={value}")])).runs.to_vec();
    let alone: Vec<RunRecord> = values.iter().flat_map(alone).collect();
    assert_eq!(bare(&swept.runs.to_vec()), alone, "{key}");
}

#[test]
fn each_cell_has_the_results_of_a_run_of_its_own() {
    let keys = [
        "path.b.delay=40ms,80ms",
        "path.b.rate=2mbit,3mbit",
        "path.b.loss=0%,2%",
        "path.b.queue=10p,20p",
        "path.b.outage=[[\"10ms\", \"60ms\"]]",
        "path.b.price=1/MB,2/MB",
        "path.b.backup=false,true",
        "recv_buffer=20KB,1MB",
        "first_path=a,b",
        "repeat=1,2",
        "seed=1,2",
    ];
    for key in keys {
        let (name, values) = key.split_once('=').unwrap();
        let values: Vec<&str> = if values.starts_with('[') { vec![values] } else { values.split(',').collect() };
        is_as_alone(TEXT, name, &values);
    }
}

#[test]
fn parts_have_the_runs_of_the_whole() {
    let whole = plan(TEXT, &["path.a.loss=0%,1%,2%"], &["repeat=5"]);
    // Without loss, one run says all.
    let shape = whole.shape();
    assert_eq!(shape, [(4, 1), (4, 5), (4, 5)]);
    let (cells, repetitions) = (whole.part(0..2, 0..5), [whole.part(2..3, 0..2), whole.part(2..3, 2..5)]);
    let all = run(&Counting::default(), &whole).runs.to_vec();
    assert_eq!(run(&Counting::default(), &cells).runs.to_vec(), all[..24]);
    let of_last: Vec<Vec<RunRecord>> = repetitions.iter().map(|p| run(&Counting::default(), p).runs.to_vec()).collect();
    let rows = of_last[0].chunks(2).zip(of_last[1].chunks(3));
    let of_last: Vec<RunRecord> = rows.flat_map(|(early, late)| [early, late].concat()).collect();
    assert_eq!(of_last, all[24..], "with the ratios");
    assert!(whole.part(3..9, 0..5).shape().is_empty());
}

#[test]
fn swept_keys_are_numbers_beside_their_texts() {
    let results = run(&Counting::default(), &plan(TEXT, &["path.b.delay=40ms,80ms", "path.b.queue=10p,20KB"], &[]));
    assert_eq!(results.sweep.keys().collect::<Vec<_>>(), ["path.b.delay"], "packets and bytes are no one unit");
    let delay = &results.sweep["path.b.delay"];
    assert_eq!((delay.unit.as_str(), delay.values["40ms"], delay.values["80ms"]), ("s", 0.04, 0.08));
}

#[test]
fn what_was_run_before_a_failure_has_results_with_equal_seeds() {
    let plan = plan(TEXT, &["path.b.delay=40ms,80ms"], &["repeat=3"]);
    let whole = run(&Counting::default(), &plan);
    for most in 1..whole.runs.len() - 6 {
        let driver = Counting { most: Some(most), ..Counting::default() };
        let (part, failure) = Runner { driver: &driver, pool: &Serial, observer: &() }.run_as_far(&plan);
        assert_eq!(failure.unwrap().error, RunError::Interrupted);
        let incomplete = part.incomplete.unwrap();
        assert_eq!((incomplete.finished, incomplete.planned), (part.runs.len(), whole.runs.len()));
        assert!(part.runs.len() >= most, "{most}");
        // Ratios need the baselines of the same seed.
        for run in part.runs.iter() {
            let same = |other: &RunRecord| {
                (&other.scheduler, &other.cell, other.seed) == (&run.scheduler, &run.cell, run.seed)
            };
            let other = whole.runs.iter().find(same).unwrap();
            assert_eq!(run.digest, other.digest);
            let goes_on = part.runs.iter().any(|other| &*other.scheduler == "minrtt" && other.cell != run.cell);
            let is_finished = goes_on && run.cell["path.b.delay"] == "40ms";
            assert!(
                !is_finished || run.metrics == other.metrics,
                "the baselines of a finished cell are there: {run:?}"
            );
        }
        let most_of_row = part.summary.iter().map(|summary| summary.n).max().unwrap();
        let fewest =
            part.summary.iter().filter(|s| &*s.metric == "completion_s").map(|summary| summary.n).min().unwrap();
        assert!(most_of_row - fewest <= 3);
    }
}

/// The findings of runs of a scenario.
fn findings(text: &str, sweeps: &[&str], set: &[&str]) -> Vec<(DiagnosisKind, String, String)> {
    let results = run(&Counting::default(), &plan(text, sweeps, set));
    results.diagnosis.into_iter().map(|one| (one.kind, one.schedulers.join(" "), one.text)).collect()
}

const TWO: &str = "repeat = 3\nduration = '5s'\n[connection]\ncongestion = 'reno'\n[[path]]\nname = 'a'\nrate = '8mbit'\ndelay = '10ms'\n\
    [[path]]\nname = 'b'\nrate = '2mbit'\ndelay = '40ms'\n[[traffic]]\nkind = 'bulk'\n";

#[test]
fn what_limits_the_runs_is_what_they_gain_without_it() {
    let schedulers = "scheduler=minrtt,blest,roundrobin";
    let window = findings(TWO, &[schedulers], &["recv_buffer=32KiB"]);
    assert_eq!((window[0].0, window[0].1.as_str()), (DiagnosisKind::Window, "minrtt roundrobin"), "{window:?}");
    let start = "Limited by the receive window: with recv_buffer = 512KiB instead of 32KiB, minrtt has ";
    assert!(window[0].2.starts_with(start), "{window:?}");
    let lossy = findings(TWO, &[], &["path.a.loss=3%"]);
    assert_eq!(lossy[0].0, DiagnosisKind::Loss, "{lossy:?}");
    assert!(lossy[0].2.starts_with("Limited by loss on a: without it, minrtt has "), "{lossy:?}");
    // As long as no window fills, BLEST waits for none.
    let same = findings(TWO, &["scheduler=minrtt,blest,otias"], &["path.a.loss=1%"]);
    let (_, schedulers, text) = same.iter().find(|one| one.0 == DiagnosisKind::Same).expect("two rows did the same");
    assert_eq!(schedulers.as_str(), "minrtt blest");
    let start =
        "blest did the same as minrtt in all 3 runs (every value is equal). The receive window never held data back";
    assert!(
        text.starts_with(start) && text.ends_with(": with recv_buffer = 64KiB instead of 16MiB they may differ."),
        "{text}"
    );
}

/// 100 KB over a far path and a near one, opened over the far one as the file's order has it.
#[test]
fn the_path_that_another_first_path_would_beat_is_named() {
    let text = "repeat = 3\nduration = '5s'\nstart_jitter = '20ms'\n[[path]]\nname = 'far'\nrate = '8mbit'\ndelay = '80ms'\n\
        [[path]]\nname = 'near'\nrate = '8mbit'\ndelay = '10ms'\n[[traffic]]\nkind = 'bulk'\nsize = '100KB'\n";
    let of_first = |set: &[&str]| {
        let found = findings(text, &[], set);
        found.into_iter().filter(|one| one.0 == DiagnosisKind::FirstPath).map(|one| one.2).collect::<Vec<_>>()
    };
    let found = of_first(&[]);
    let start = "Limited by the path that it opens over: with connection.first_path = \"near\", minrtt has ";
    assert!(found.len() == 1 && found[0].starts_with(start), "{found:?}");
    assert_eq!(of_first(&["first_path=near"]), [""; 0]);
    assert_eq!(of_first(&["first_path=race"]), [""; 0]);
}

/// Losses are measured on `eth`, and they cost nothing: the slow path does.
#[test]
fn a_cause_that_another_run_refutes_is_not_named() {
    let text = "repeat = 3\nduration = '5s'\n[connection]\nscheduler = 'linux-default'\nrecv_buffer = '300KiB'\n[[path]]\nname = 'eth'\n\
        rate = '100mbit'\ndelay = '5ms'\nloss = '0.01%'\n[[path]]\nname = 'wlan'\nrate = '3mbit'\ndelay = '60ms'\nqueue = '200p'\n\
        [[traffic]]\nkind = 'bulk'\n";
    let found = findings(text, &[], &[]);
    assert_eq!((found[0].0, found[0].1.as_str()), (DiagnosisKind::Path, "linux-default"), "{found:?}");
    assert!(found[0].2.starts_with("eth alone is better: plain TCP has "), "{found:?}");
    assert!(found.iter().all(|one| one.0 != DiagnosisKind::Loss), "{found:?}");
}

/// A sweep makes no more runs, but has those of each path alone: they refute losses of a full queue as well.
#[test]
fn a_sweep_names_no_loss_that_a_path_alone_refutes() {
    let text = "duration = '5s'\n[connection]\nscheduler = 'linux-default'\nrecv_buffer = '300KiB'\n[[path]]\nname = 'eth'\n\
        rate = '100mbit'\ndelay = '5ms'\nloss = '0.01%'\n[[path]]\nname = 'wlan'\nrate = '3mbit'\ndelay = '60ms'\nqueue = '200p'\n\
        [[traffic]]\nkind = 'bulk'\n";
    let found = findings(text, &["path.wlan.delay=60ms,70ms"], &[]);
    let of = |kind| found.iter().filter(|one| one.0 == kind).count();
    assert_eq!((of(DiagnosisKind::Path), of(DiagnosisKind::Loss)), (2, 0), "{found:?}");
    assert!(found[0].2.starts_with("eth alone is better: plain TCP has "), "{found:?}");
    // Losses that hold the path alone back, too, are named.
    let found = findings(TWO, &["path.b.delay=10ms,20ms"], &["path.a.loss=3%"]);
    assert_eq!(found.iter().filter(|one| one.0 == DiagnosisKind::Loss).count(), 2, "{found:?}");
}

#[test]
fn other_flows_that_take_a_path_are_a_cause() {
    let text = format!("{TWO}[[cross]]\npath = 'a'\nkind = 'udp'\nrate = '6mbit'\n");
    let found = findings(&text, &[], &[]);
    assert_eq!(found[0].0, DiagnosisKind::Cross, "{found:?}");
    assert!(found[0].2.starts_with("Limited by other flows over a: without them, minrtt has "), "{found:?}");
}

#[test]
fn runs_in_which_nothing_was_sent_say_so() {
    let found = findings(TWO, &[], &["path.a.loss.up=100%"]);
    let text = "No data was sent in 3 of 3 runs of minrtt: the connection opens over a, and did not. connection.first_path = \"race\" \
        opens it over the path that answers first.";
    assert_eq!((found[0].0, found[0].2.as_str()), (DiagnosisKind::Connection, text), "{found:?}");
    assert_eq!((found[1].0, found[2].0), (DiagnosisKind::Path, DiagnosisKind::Loss));
    assert!(found[2].2.ends_with(" instead of 0.00 (goodput, Mbit/s, mean of the seeds 1 to 3)."), "{found:?}");
}

#[test]
fn a_path_that_does_not_open_is_named() {
    let found = findings(TWO, &[], &["path.b.loss.up=100%", "duration=20s"]);
    assert_eq!(found[0].0, DiagnosisKind::Lost, "{found:?}");
    assert_eq!(found[0].2, "Subflows over b were reset, refused or not answered in 3 of 3 runs of minrtt.");
}

/// Values that say which run it is.
struct Numbered;

impl Driver for Numbered {
    fn run(&self, job: &Job, _: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let base = match job.choice {
            Choice::Multipath(_) => 100.0,
            Choice::Single(path) => 20.0 + path as f64,
        };
        let mut metrics = Values::from([("goodput_bps".to_owned(), base + job.seed as f64)]);
        if job.seed.is_multiple_of(7) {
            metrics.insert("timeouts".to_owned(), 1.0);
        }
        Ok(RunOutcome { metrics, finished: true, ..RunOutcome::default() })
    }
}

#[test]
fn cells_of_many_seeds_are_whole() {
    let plan = plan(TEXT, &["path.b.delay=40ms,80ms"], &["repeat=3000"]);
    let results = Runner { driver: &Numbered, pool: &Serial, observer: &() }.run(&plan).unwrap();
    assert_eq!(results.runs.len(), 2 * 4 * 3000);
    for (place, row) in results.runs.rows().enumerate() {
        let base = [100.0, 20.0, 21.0, 22.0][place % 4];
        assert_eq!(row.seeds(), (1..=3000).collect::<Vec<_>>());
        assert_eq!(row.cell()["path.b.delay"], ["40ms", "80ms"][place / 4]);
        let goodput = row.metric("goodput_bps");
        assert!((1..).zip(&goodput).all(|(seed, value)| *value == Some(base + f64::from(seed))), "{place}");
        let benefit = row.metric("best_single_ratio");
        let ratio = |seed: f64| (place % 4 == 0).then(|| (100.0 + seed) / (22.0 + seed));
        assert!((1..).zip(&benefit).all(|(seed, value)| *value == ratio(f64::from(seed))), "{place}");
        assert_eq!(row.metric("timeouts").iter().flatten().count(), 3000 / 7);
    }
    let mean = |scheduler: &str| {
        let of = |s: &&Summary| *s.scheduler == *scheduler && &*s.metric == "goodput_bps";
        results.summary.iter().find(of).map(|s| (s.n, s.mean, s.median))
    };
    assert_eq!(mean("minrtt"), Some((3000, 1600.5, 1600.5)));
    assert_eq!(mean("single:c"), Some((3000, 1522.5, 1522.5)));
}

#[test]
fn lists_of_boxes_and_presets_are_set_and_swept() {
    // Lists and tables have commas of their own.
    let boxes = [
        "[]",
        "[{ kind = 'mss', most = 600 }, { kind = 'split', size = 300 }]",
        "{ up = [], down = [{ kind = 'terminate' }] }",
    ];
    is_as_alone(TEXT, "path.a.middlebox", &boxes);
    let without = TEXT.replacen("rate = '8mbit'\ndelay = '10ms'\nloss = '1%'\n", "preset = '3g-2012'\n", 1);
    is_as_alone(&without, "path.a.preset", &["lte", "wifi-busy", "dsl"]);
}
