//! How often the 95 % intervals of results cover the mean of many runs.

use anabranch_metrics::{mean, mean_interval, student_interval};
use anabranch_run::{Options, Plan, Repeat, Results, Runner, Serial, Variant, VirtualTime};
use anabranch_scenario::{NoFiles, PlugIn, Source, read};
use std::sync::Arc;

/// Two paths with random loss, and what is sent over them: a name, both losses, the traffic, the metrics.
struct Kind {
    name: &'static str,
    losses: [&'static str; 2],
    traffic: &'static str,
    metrics: &'static [&'static str],
}

const ONE: [&str; 2] = ["'1%'", "'1%'"];
const BULK: &[&str] = &["goodput_bps", "completion_s", "ofo_mean_bytes", "path.a.share"];

const KINDS: [Kind; 7] = [
    Kind {
        name: "100 KB, 1 % loss",
        losses: ONE,
        traffic: "kind = 'bulk'\nsize = '100KB'",
        metrics: &["goodput_bps", "completion_s"],
    },
    Kind {
        name: "500 KB, 0.1 % loss",
        losses: ["'0.1%'", "'0.05%'"],
        traffic: "kind = 'bulk'\nsize = '500KB'",
        metrics: BULK,
    },
    Kind {
        name: "2 MiB, bursts of loss",
        losses: ["{ kind = 'gilbert-elliott', p = '0.1%', r = '10%', h = '50%' }", "'0%'"],
        traffic: "kind = 'bulk'\nsize = '2MiB'",
        metrics: BULK,
    },
    Kind { name: "2 MB, 1 % loss", losses: ONE, traffic: "kind = 'bulk'\nsize = '2MB'", metrics: BULK },
    Kind {
        name: "20 requests, 1 % loss",
        losses: ONE,
        traffic: "kind = 'request'\nsize = '64KB'\ninterval = '50ms'\ncount = 20",
        metrics: &["response_mean_s", "response_p95_s", "response_p99_s", "response_max_s", "retransmitted_packets"],
    },
    Kind {
        name: "a page, 1 % loss",
        losses: ONE,
        traffic: "kind = 'web'\nsize = '512KiB'\nobjects = 20\nsizes = 'lognormal'",
        metrics: &["completion_s", "ofo_mean_bytes", "retransmitted_packets"],
    },
    Kind {
        name: "100 frames, 1 % loss",
        losses: ONE,
        traffic: "kind = 'frames'\nsize = '30KB'\ninterval = '33ms'\ncount = 100",
        metrics: &["app_delay_mean_s", "app_delay_p95_s", "app_delay_p99_s", "app_delay_max_s"],
    },
];

/// Over both paths; of `seeds` seeds from `first` on, or as many as [`Repeat::Auto`] takes.
fn run(kind: &Kind, schedulers: &[&str], first: u64, seeds: Option<u32>) -> Results {
    let path = |name, rate, delay, loss| {
        format!("[[path]]\nname = '{name}'\nrate = '{rate}mbit'\ndelay = '{delay}ms'\nloss = {loss}\n")
    };
    let text = format!(
        "seed = {first}\nrepeat = {}\n[connection]\ncongestion = 'cubic'\n{}{}[[traffic]]\n{}\n",
        seeds.unwrap_or(1),
        path("a", 20, 15, kind.losses[0]),
        path("b", 10, 40, kind.losses[1]),
        kind.traffic
    );
    let document =
        read(&Source { name: kind.name.into(), text }, &[], &NoFiles).unwrap_or_else(|wrong| panic!("{wrong:#?}"));
    let schedulers =
        schedulers.iter().map(|name| PlugIn { name: (*name).to_owned(), parameters: Vec::new() }).collect();
    let repeat = if seeds.is_some() { Repeat::AsWritten } else { Repeat::Auto };
    let options = Options { schedulers, baselines: false, repeat, ..Options::default() };
    let plan = Plan::new(&[Variant { cell: Vec::new(), scenario: Arc::new(document.scenario) }], &options);
    Runner { driver: &VirtualTime::default(), pool: &Serial, observer: &() }.run(&plan).unwrap()
}

/// The metric in each run of a row.
fn values(results: &Results, row: usize, metric: &str) -> Vec<f64> {
    let row = results.runs.rows().nth(row).unwrap();
    row.values(anabranch_metrics::MetricRef::parse(metric)).into_iter().flatten().collect()
}

/// Over disjoint blocks: Student's interval covers the mean in so many, the interval of results in so many of those in which there is
/// one, and there is one in so many. All in percent.
#[derive(Clone, Copy, Debug)]
struct Coverage {
    student: f64,
    own: f64,
    given: f64,
}

impl Coverage {
    fn of(values: &[f64], n: usize, most: usize) -> Self {
        let truth = mean(values).unwrap();
        let blocks: Vec<&[f64]> = values.chunks_exact(n).take(most).collect();
        let covers = |interval: &(f64, f64)| (interval.0..=interval.1).contains(&truth);
        let own: Vec<(f64, f64)> = blocks.iter().filter_map(|block| mean_interval(block)).collect();
        let student = blocks.iter().filter_map(|block| student_interval(block)).filter(covers).count();
        let percent = |part: usize, of: usize| 100.0 * part as f64 / of as f64;
        Self {
            student: percent(student, blocks.len()),
            own: percent(own.iter().filter(|interval| covers(interval)).count(), own.len()),
            given: percent(own.len(), blocks.len()),
        }
    }

    /// `58 → 93 (69)`; `58 → –` where fewer than one block in twenty has an interval.
    fn cell(&self) -> String {
        let Self { student, own, given } = self;
        if *given < 5.0 { format!("{student:.0} → –") } else { format!("{student:.0} → {own:.0} ({given:.0})") }
    }
}

#[test]
fn intervals_of_a_short_transfer_cover_its_mean_or_are_not_given() {
    let results = run(&KINDS[0], &["minrtt"], 1, Some(4000));
    for metric in KINDS[0].metrics {
        let values = values(&results, 0, metric);
        let few = Coverage::of(&values, 5, 200);
        assert!(few.given == 0.0 && few.student < 85.0, "{metric} {few:?}");
        let more = Coverage::of(&values, 20, 200);
        assert!(more.own > 91.0 && more.given > 50.0 && more.student < 92.0, "{metric} {more:?}");
    }
}

/// The table of docs/lab/validation.md.
#[test]
#[ignore = "takes minutes without optimisation"]
fn intervals_of_every_kind_of_metric() {
    const SIZES: [usize; 4] = [5, 10, 20, 50];
    println!("| Traffic | Metric | n = 5 | n = 10 | n = 20 | n = 50 |\n|---|---|--:|--:|--:|--:|");
    let mut all: Vec<Coverage> = Vec::new();
    for kind in &KINDS {
        let results = run(kind, &["minrtt", "otias"], 1, Some(10_000));
        let mut line = |name: &str, values: &[f64]| {
            let coverage = SIZES.map(|n| Coverage::of(values, n, 200));
            println!("| {} | {name} | {} |", kind.name, coverage.map(|one| one.cell()).join(" | "));
            all.extend(coverage.iter().filter(|one| one.given >= 5.0));
        };
        kind.metrics.iter().for_each(|metric| line(metric, &values(&results, 0, metric)));
        let [a, b] = [0, 1].map(|row| values(&results, row, kind.metrics[0]));
        let difference: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        line(&format!("{}, minrtt − otias", kind.metrics[0]), &difference);
    }
    let within = all.iter().filter(|one| one.own >= 92.0).count();
    println!("\n{within} of {} at 92 % or above.", all.len());
    assert!(within * 10 >= all.len() * 8 && all.iter().all(|one| one.own >= 80.0), "{all:?}");
}

/// The second table there.
#[test]
#[ignore = "takes minutes without optimisation"]
fn intervals_of_runs_that_stop_where_they_are_narrow() {
    println!("| Traffic | Metric | Covered, % | Given, % | Mean seeds |\n|---|---|--:|--:|--:|");
    for kind in &KINDS[..3] {
        let truth = mean(&values(&run(kind, &["minrtt"], 1, Some(20_000)), 0, "completion_s")).unwrap();
        let (mut covered, mut given, mut seeds) = (0, 0, 0);
        for sequence in 0..200 {
            let results = run(kind, &["minrtt"], 1_000_000 + 1000 * sequence, None);
            let summary = results.summary.iter().find(|one| &*one.metric == "completion_s").unwrap();
            seeds += summary.n;
            if let Some((low, high)) = summary.ci95_low.zip(summary.ci95_high) {
                given += 1;
                covered += usize::from((low..=high).contains(&truth));
            }
        }
        let percent = 100.0 * f64::from(covered as u32) / f64::from(given as u32);
        println!(
            "| {} | completion_s | {percent:.1} | {:.1} | {} |",
            kind.name,
            f64::from(given as u32) / 2.0,
            seeds / 200
        );
        assert!(percent > 85.0, "{}", kind.name);
    }
}
