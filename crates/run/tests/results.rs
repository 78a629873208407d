//! Plans and results, with a driver whose outcomes are known.

use anabranch_run::{
    Choice, Driver, Job, Labelled, Observer, Options, Plan, Pool, Repeat, Results, RunError, RunOutcome, Runner, Runs,
    Serial, Store, Summary, Variant,
};
use anabranch_scenario::{Document, PlugIn};
use anabranch_trace::Recorder;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const RANDOM: &str = r#"
name = "two paths"
duration = "10s"
seed = 5
repeat = 4

[connection]
scheduler = "blest"
congestion = "olia"

[[path]]
name = "wlan"
rate = "25mbit"
delay = "25ms"
loss = "1%"

[[path]]
name = "3g"
rate = "5mbit"
delay = "65ms"

[[traffic]]
kind = "bulk"
"#;

/// Single paths reach 20 and 5 Mbit/s; a scheduler reaches 20 plus its name's length; each seed adds a little.
struct Fake;

impl Driver for Fake {
    fn run(&self, job: &Job, _listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let paths: &[&str] = match &job.choice {
            Choice::Multipath(scheduler) if scheduler.name == "otias" => {
                return Err(RunError::Fault { what: "a wrong byte".into() });
            }
            Choice::Multipath(_) => &["wlan", "3g"],
            Choice::Single(0) => &["wlan"],
            Choice::Single(_) => &["3g"],
        };
        let base = match &job.choice {
            Choice::Multipath(scheduler) => 20.0 + scheduler.name.len() as f64,
            Choice::Single(index) => [20.0, 5.0][*index],
        };
        // Seeds scatter: 0, 3, 1, 4, 2, 0, …
        let luck = if job.scenario.repeat > 1 { 0.01 * (job.seed * 3 % 5) as f64 } else { 0.0 };
        Ok(RunOutcome {
            metrics: [("goodput_bps".to_owned(), 1e6 * (base + luck)), ("timeouts".to_owned(), f64::NAN)].into(),
            paths: paths.iter().map(|path| ((*path).to_owned(), [("share".to_owned(), 0.5)].into())).collect(),
            digest: format!("{:?}{}{}", job.choice, job.congestion.name, job.seed),
            events: 7,
            finished: job.seed != 6,
            ..RunOutcome::default()
        })
    }
}

/// Does the last task first.
struct Backwards;

impl Pool for Backwards {
    fn for_each(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).rev().for_each(task);
    }
}

fn variants(text: &str) -> Vec<Variant> {
    let cells = Document::parse("test.toml", text).expect("a valid scenario").cells;
    cells.into_iter().map(|(cell, scenario)| Variant { cell, scenario: Arc::new(scenario) }).collect()
}

fn plug_ins(names: &[&str]) -> Vec<PlugIn> {
    names.iter().map(|name| PlugIn { name: (*name).to_owned(), parameters: Vec::new() }).collect()
}

fn run(text: &str, options: &Options) -> Results {
    let plan = Plan::new(&variants(text), options);
    Runner { driver: &Fake, pool: &Serial, observer: &() }.run(&plan).expect("no run fails")
}

fn schedulers(names: &[&str]) -> Options {
    Options { schedulers: plug_ins(names), ..Options::default() }
}

fn names(results: &Results) -> Vec<String> {
    let mut names: Vec<String> = results.runs.iter().map(|r| format!("{} {}", r.scheduler, r.congestion)).collect();
    names.dedup();
    names
}

#[test]
fn baselines_stand_beside_the_schedulers_with_the_same_seeds() {
    let results = run(RANDOM, &schedulers(&["minrtt", "blest+or"]));
    assert_eq!(names(&results), ["minrtt olia", "blest+or olia", "single:wlan reno", "single:3g reno"]);
    assert_eq!(results.runs.iter().map(|r| r.seed).collect::<Vec<_>>(), [5, 6, 7, 8].repeat(4));
    let without = run(RANDOM, &Options { baselines: false, ..Options::default() });
    assert_eq!(names(&without), ["blest olia"]);
    assert!(without.runs.iter().all(|r| !r.metrics.contains_key("aggregation_benefit")));
}

#[test]
fn ratios_are_taken_seed_by_seed() {
    let results = run(RANDOM, &schedulers(&["minrtt"]));
    // minrtt: 26 Mbit/s beside 20 and 5; seed 5 has no luck, seed 6 adds 0.03 to each.
    assert_eq!(results.runs.to_vec()[0].metrics["aggregation_benefit"], 6.0 / 5.0);
    assert_eq!(results.runs.to_vec()[0].metrics["best_single_ratio"], 26.0 / 20.0);
    assert!((results.runs.to_vec()[1].metrics["aggregation_benefit"] - 6.0 / 5.03).abs() < 1e-9);
    assert_eq!(
        results.runs.to_vec()[0].metrics.keys().collect::<Vec<_>>(),
        ["goodput_bps", "aggregation_benefit", "best_single_ratio"],
        "in the order of the metrics' table, and nothing that is not a number"
    );
    assert!(results.runs.iter().all(|r| r.scheduler == "minrtt" || r.metrics.len() == 1));
}

#[test]
fn congestion_controls_have_baselines_of_their_own_form() {
    let options = Options { congestions: plug_ins(&["olia", "lia", "cubic"]), ..Options::default() };
    let results = run(RANDOM, &options);
    let rows = ["blest olia", "blest lia", "blest cubic", "single:wlan reno", "single:3g reno"];
    assert_eq!(names(&results), [&rows[..], &["single:wlan cubic", "single:3g cubic"]].concat());
    assert!(results.runs.to_vec()[..12].iter().all(|r| r.metrics.contains_key("aggregation_benefit")));
}

#[test]
fn without_randomness_one_run_says_all() {
    let text = RANDOM.replace("loss = \"1%\"\n", "");
    for repeat in [Repeat::AsWritten, Repeat::Auto] {
        let results = run(&text, &Options { repeat, ..Options::default() });
        assert_eq!(results.runs.len(), 3);
        assert!(results.summary.iter().all(|s| s.deterministic && s.n == 1 && s.sd.is_none()));
        let pair = run(&text, &Options { repeat, ..schedulers(&["minrtt", "roundrobin"]) }).comparisons;
        assert!(!pair.is_empty() && pair.iter().all(|c| c.n == 1 && c.p.is_none() && c.p_wilcoxon.is_none()));
    }
    assert!(run(RANDOM, &Options::default()).summary.iter().all(|s| !s.deterministic && s.n == 4));
}

#[test]
fn summaries_and_paired_comparisons() {
    let results = run(RANDOM, &schedulers(&["minrtt", "roundrobin", "fifo"]));
    let summary = &results.summary[0];
    assert_eq!((&*summary.scheduler, &*summary.metric, summary.n), ("minrtt", "goodput_bps", 4));
    // 26 Mbit/s plus 0, 0.03, 0.01, 0.04.
    assert!((summary.mean - 26.02e6).abs() < 1.0);
    assert_eq!(summary.ci95_low, None, "four runs are too few for an interval");
    assert_eq!(summary.unfinished, 1, "seed 6");
    assert!(results.summary.iter().any(|s| &*s.metric == "path.3g.share" && s.mean == 0.5));

    let pairs: Vec<_> = results.comparisons.iter().filter(|c| &*c.metric == "goodput_bps").collect();
    let named: Vec<_> = pairs.iter().map(|c| (&*c.a, &*c.b)).collect();
    assert_eq!(named, [("roundrobin", "minrtt"), ("fifo", "minrtt"), ("fifo", "roundrobin")]);
    assert!((pairs[0].mean_diff - 4e6).abs() < 1.0 && pairs[0].n == 4);
    // The same difference for every seed: four ranks that tie, and one of sixteen choices of signs, with its opposite.
    assert_eq!(pairs[0].p_wilcoxon, Some(0.125));
}

#[test]
fn comparisons_have_a_rank_test_and_an_effect_size() {
    /// `minrtt` has 10 Mbit/s, others 1, 2, 3 and 6 Mbit/s more.
    struct Lucky;
    impl Driver for Lucky {
        fn run(&self, job: &Job, _listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
            let is_first = matches!(&job.choice, Choice::Multipath(scheduler) if scheduler.name == "minrtt");
            let luck = if is_first { 0.0 } else { [1e6, 2e6, 3e6, 6e6][job.seed as usize % 4] };
            let metrics = [("goodput_bps".to_owned(), 1e7 + luck)].into();
            Ok(RunOutcome { metrics, finished: true, ..RunOutcome::default() })
        }
    }
    let plan = Plan::new(&variants(RANDOM), &Options { baselines: false, ..schedulers(&["minrtt", "fifo"]) });
    let results = Runner { driver: &Lucky, pool: &Serial, observer: &() }.run(&plan).unwrap();
    let comparison = &results.comparisons[0];
    // All four positive: one of sixteen choices of signs, and its opposite.
    assert_eq!(comparison.p_wilcoxon, Some(0.125));
    // d_z = 3/√(14/3); Hedges' factor for three degrees of freedom is Γ(3/2)/(√(3/2)·Γ(1)) = 0.7236.
    let expected = 3.0 / (14.0f64 / 3.0).sqrt() * 0.723_601_3;
    assert!((comparison.effect_size.unwrap() - expected).abs() < 1e-6, "{comparison:?}");
}

#[test]
fn many_schedulers_are_held_against_the_first_alone() {
    let many = ["minrtt", "roundrobin", "fifo", "daps", "blest", "blest-linux", "redundant"];
    let results = run(RANDOM, &schedulers(&many));
    let pairs = results.comparisons.iter().filter(|c| &*c.metric == "goodput_bps");
    assert_eq!(pairs.clone().count(), 6);
    assert!(pairs.clone().all(|c| &*c.b == "minrtt"));
}

#[test]
fn sweeps_make_cells_and_swept_schedulers_make_rows() {
    let sweep = "[sweep]\nscheduler = [\"minrtt\", \"blest\"]\n\"path.wlan.loss\" = [\"0%\", \"2%\"]\n";
    let results = run(&format!("{RANDOM}{sweep}"), &Options::default());
    // The cell without loss is run once, the other four times: two schedulers and two paths each.
    assert_eq!(results.runs.len(), 4 + 16);
    assert_eq!(results.runs.to_vec()[0].cell["path.wlan.loss"], "0%");
    assert_eq!(results.runs.to_vec()[19].cell["path.wlan.loss"], "2%");
    assert!(results.runs.iter().all(|r| r.cell.len() == 1));
}

#[test]
fn equal_names_are_told_apart_by_their_parameters() {
    let with = |delta| PlugIn { name: "blest".into(), parameters: vec![("delta".into(), delta)] };
    let options = Options { schedulers: vec![with(0.01), with(0.5), with(0.01)], ..Options::default() };
    let results = run(RANDOM, &Options { baselines: false, ..options });
    assert_eq!(names(&results), ["blest(delta=0.01) olia", "blest(delta=0.5) olia"]);
}

#[test]
fn auto_stops_when_the_interval_is_narrow() {
    // Seeds scatter by far less than 2 %. A quarter of them share a value, so that the first ten give no interval; the third ten
    // confirm that of the second.
    let results = run(RANDOM, &Options { repeat: Repeat::Auto, ..Options::default() });
    assert_eq!(results.runs.len(), 3 * 30);
    let Summary { mean, ci95_low, ci95_high, .. } = &results.summary[0];
    assert!(ci95_low.unwrap() < *mean && *mean < ci95_high.unwrap());

    /// Luck of half the mean.
    struct Wild;
    impl Driver for Wild {
        fn run(&self, job: &Job, _listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
            let metrics = [("goodput_bps".to_owned(), if job.seed.is_multiple_of(2) { 1e6 } else { 2e6 })].into();
            Ok(RunOutcome { metrics, finished: true, ..RunOutcome::default() })
        }
    }
    let options = Options { repeat: Repeat::Auto, baselines: false, ..Options::default() };
    let plan = Plan::new(&variants(RANDOM), &options);
    let results = Runner { driver: &Wild, pool: &Serial, observer: &() }.run(&plan).unwrap();
    assert_eq!(results.runs.iter().map(|r| r.seed).collect::<Vec<_>>(), (5..205).collect::<Vec<_>>());
}

#[test]
fn auto_watches_the_metric_that_the_table_shows() {
    /// Goodput is sure; the other metric is luck of half its mean.
    struct Late(&'static str);
    impl Driver for Late {
        fn run(&self, job: &Job, _listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
            let luck = if job.seed.is_multiple_of(2) { 1.0 } else { 2.0 };
            let metrics = [("goodput_bps".to_owned(), 1e6), (self.0.to_owned(), luck)].into();
            Ok(RunOutcome { metrics, finished: true, ..RunOutcome::default() })
        }
    }
    for (metric, runs) in [("completion_s", 200), ("app_delay_mean_s", 200), ("timeouts", 20)] {
        let plan =
            Plan::new(&variants(RANDOM), &Options { repeat: Repeat::Auto, baselines: false, ..Options::default() });
        let results = Runner { driver: &Late(metric), pool: &Serial, observer: &() }.run(&plan).unwrap();
        assert_eq!(results.runs.len(), runs, "{metric}");
    }
}

#[test]
fn the_document_does_not_depend_on_who_runs_first() {
    let plan = Plan::new(&variants(RANDOM), &schedulers(&["minrtt", "blest"]));
    let with = |pool: &dyn Pool| Runner { driver: &Fake, pool, observer: &() }.run(&plan).unwrap().to_json();
    assert!(with(&Serial) == with(&Backwards));
    let read: Results = serde_json::from_str(&with(&Serial)).unwrap();
    assert!(read.to_json() == with(&Serial), "it reads back");
}

#[test]
fn the_digest_covers_every_run() {
    let digest = |options: &Options| run(RANDOM, options).digest;
    assert_eq!(digest(&schedulers(&["minrtt"])), digest(&schedulers(&["minrtt"])));
    assert_ne!(digest(&schedulers(&["minrtt"])), digest(&schedulers(&["blest"])));
    assert_eq!(digest(&Options::default()).len(), 32);
}

#[test]
fn the_first_failure_in_order_is_told() {
    let plan = Plan::new(&variants(RANDOM), &schedulers(&["minrtt", "otias"]));
    let failure = Runner { driver: &Fake, pool: &Backwards, observer: &() }.run(&plan).unwrap_err();
    assert_eq!(failure.to_string(), "otias, olia, seed 5: the run failed: a wrong byte");
}

#[test]
fn observers_see_every_run_and_its_progress() {
    #[derive(Default)]
    struct Watch(Mutex<Vec<String>>, AtomicUsize);
    impl Observer for Watch {
        fn observe(&self, job: &Labelled<'_>, run: &mut dyn FnMut(&mut dyn Recorder)) {
            self.0.lock().unwrap().push(format!("{job}: row {} repetition {}", job.row, job.repetition));
            run(&mut ());
        }
        fn progress(&self, done: usize, planned: usize) {
            assert_eq!(planned, 12);
            self.1.store(done, Ordering::Relaxed);
        }
    }
    let watch = Watch::default();
    let plan = Plan::new(&variants(RANDOM), &Options::default());
    Runner { driver: &Fake, pool: &Serial, observer: &watch }.run(&plan).unwrap();
    let seen = watch.0.into_inner().unwrap();
    assert_eq!((seen.len(), watch.1.into_inner()), (12, 12));
    assert_eq!(seen[5], "single:3g, reno, seed 6: row 2 repetition 1");
}

/// A store that cannot be read.
struct Unreadable;

impl Store for Unreadable {
    fn put(&self, _: Vec<u8>) -> io::Result<u64> {
        Ok(0)
    }

    fn get(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::TimedOut.into())
    }
}

#[test]
fn values_that_cannot_be_read_are_in_no_result() {
    let plan = Plan::new(&variants(RANDOM), &schedulers(&["minrtt"]));
    let (results, failure) =
        Runner { driver: &Fake, pool: &Serial, observer: &() }.run_into(&plan, Runs::new(Box::new(Unreadable)));
    assert_eq!(failure.unwrap().error, RunError::Unheld { why: "timed out".into() });
    assert!(results.runs.is_empty() && results.summary.is_empty(), "{results:?}");
}

/// A store that is full after some blocks.
struct Full(AtomicUsize);

impl Store for Full {
    fn put(&self, _: Vec<u8>) -> io::Result<u64> {
        if self.0.fetch_add(1, Ordering::Relaxed) < 3 { Ok(0) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn get(&self, _: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.fill(0);
        Ok(())
    }
}

#[test]
fn a_full_store_ends_the_runs_with_its_error() {
    let plan = Plan::new(&variants(RANDOM), &schedulers(&["minrtt", "blest"]));
    let runs = Runs::new(Box::new(Full(AtomicUsize::new(0))));
    let (results, failure) = Runner { driver: &Fake, pool: &Serial, observer: &() }.run_into(&plan, runs);
    let failure = failure.unwrap().to_string();
    assert!(failure.starts_with("results: the values of finished runs cannot be held: no storage space"), "{failure}");
    assert_eq!(results.incomplete.map(|part| (part.finished, part.planned)), Some((12, 16)));
}
