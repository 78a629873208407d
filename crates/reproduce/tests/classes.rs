//! From claims, anchors and readings to one class per claim.

mod common;

use anabranch_reproduce::{Class, ItemOutcome, PaperOutcome, Ran, Stand, conclude, read};
use anabranch_run::Results;
use common::{HEAD, record};

/// A paper whose authors repeated each measurement twenty times.
fn head() -> String {
    HEAD.replacen("venue = \"V\"", "venue = \"V\"\nrepetitions = 20", 1)
}

/// Values around `mean`, no two alike; a row and its seeds.
fn spread(mean: f64) -> Vec<f64> {
    (0..10).map(|seed| mean * (1.0 + 0.002 * f64::from((seed * 7) % 10 - 5))).collect()
}

/// Results of the three rows, all with the same relative spread.
fn results(minrtt: f64, blest: f64, otias: f64) -> Results {
    let rows = [("minrtt", minrtt, 1.0), ("blest+or", blest, 1.001), ("otias", otias, 0.999)];
    let of_row = |(row, mean, tilt): (&str, f64, f64)| {
        let record = |(seed, value): (usize, f64)| record(row, seed, None, value * [1.0, tilt, tilt * tilt][seed % 3]);
        spread(mean).into_iter().enumerate().map(record).collect::<Vec<_>>()
    };
    Results {
        schema: 1,
        anabranch: String::new(),
        scenario: String::new(),
        digest: String::new(),
        runs: rows.into_iter().flat_map(of_row).collect(),
        summary: Vec::new(),
        comparisons: Vec::new(),
        incomplete: None,
        diagnosis: Vec::new(),
        sweep: Default::default(),
    }
}

/// The outcome of a paper of one item: as written, and in as many readings as there are further results.
fn paper(text: &str, main: &Results, readings: &[Option<&Results>]) -> PaperOutcome {
    let paper = read(&(head() + text)).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let ran: Vec<Ran<'_>> = readings.iter().map(|whole| Ran { baselines: None, whole: *whole }).collect();
    let item = conclude(&paper.items[0], "", main, &ran);
    PaperOutcome::new(&paper, vec![item])
}

/// The outcome of the item.
fn outcome(text: &str, main: &Results, readings: &[Option<&Results>]) -> ItemOutcome {
    paper(text, main, readings).items.remove(0)
}

fn claim(rest: &str) -> String {
    format!("[[item.claim]]\ntext = \"c\"\nmetric = \"goodput_bps\"\nof = \"blest+or\"\nagainst = \"minrtt\"\n{rest}\n")
}

const READING: &str = "[[item.reading]]\nname = \"otherwise\"\nwhy = \"it is not said\"\nset = { mss = \"1000\" }\n";
const ANCHOR: &str = "[[item.anchor]]\ntext = \"a\"\nmetric = \"goodput_bps\"\nvalue = \"minrtt\"\npublished = 100\n";

#[test]
fn the_first_row_of_the_decision_table_that_applies() {
    let runs = results(100.0, 112.0, 90.0);
    let class = |rest: &str| outcome(&claim(rest), &runs, &[]).claims[0].class;
    assert_eq!(class("published = 12\nopen = \"no rate\""), Class::Open);
    assert_eq!(class("published = 12\ncontradicted = \"table 2\""), Class::Contradicted);
    assert_eq!(class("published = 12\ntrivial = \"why\""), Class::Trivial);
    assert_eq!(class("published = 12\nduplicate = \"other\""), Class::Trivial);
    assert_eq!(class("published = 10"), Class::InSize);
    // Half to twice, where no band is committed.
    assert_eq!([class("published = 24"), class("published = 25")], [Class::InSize, Class::Direction]);
    assert_eq!(class("published = 30\nband = [20, 40]"), Class::Direction);
    assert_eq!(class("band = [0, inf]"), Class::Direction);
    assert_eq!(class("published = -12"), Class::UnderNone);
    // A band of a sign alone does not reproduce the size.
    assert_eq!(class("published = 40\nband = [0, inf]"), Class::Direction);
}

#[test]
fn a_published_interval_stands_for_the_band() {
    let runs = results(100.0, 112.0, 90.0);
    let class = |rest: &str| outcome(&claim(rest), &runs, &[]).claims[0].class;
    assert_eq!(class("published = 15\nuncertainty = 2"), Class::Direction);
    assert_eq!(class("published = 15\nuncertainty = 4"), Class::InSize);
    // 2.8 standard errors of 6/1.96 are 8.6.
    assert_eq!(class("published = 8\nuncertainty = 6"), Class::BelowResolution);
}

#[test]
fn what_the_papers_repetitions_cannot_tell_is_below_resolution() {
    // Each row varies by 0.6 %, so that 20 unpaired repetitions tell 2.8 · 0.6 · √(2/20) = 0.5 %.
    let runs = results(100.0, 101.0, 90.0);
    let class = |rest: &str| outcome(&claim(rest), &runs, &[]).claims[0].class;
    assert_eq!([class("published = 0.4"), class("published = 0.7")], [Class::BelowResolution, Class::InSize]);
    // Also one that would not reproduce; "about equal" has no size to be distinguished.
    assert_eq!(class("published = -0.4"), Class::BelowResolution);
    assert_eq!(class("published = 0\nband = [-3, 3]"), Class::InSize);
}

#[test]
fn about_equal_needs_the_whole_interval_within_the_margin() {
    let runs = results(100.0, 101.0, 90.0);
    let class = |rest: &str| outcome(&claim(rest), &runs, &[]).claims[0].class;
    assert_eq!(class("published = 0\nband = [-1, 1]"), Class::UnderNone, "the mean lies at the margin");
    assert_eq!(class("published = 0\nband = [-2, 2]"), Class::InSize);
}

#[test]
fn baselines_decide_which_readings_count() {
    let (near, far) = (results(100.0, 90.0, 90.0), results(150.0, 170.0, 90.0));
    let text = format!("{}{ANCHOR}{READING}", claim("published = 12"));
    let item = outcome(&text, &far, &[Some(&near)]);
    let admissible: Vec<bool> = item.readings.iter().map(|reading| reading.admissible).collect();
    assert_eq!(admissible, [false, true]);
    assert!((item.readings[0].distance.unwrap() - libm::log(1.5)).abs() < 2e-3, "{:?}", item.readings[0].distance);
    // It stands as written, which the baselines refute.
    let claim = &item.claims[0];
    assert_eq!((claim.class, claim.under.as_slice()), (Class::UnderSome, &["as written".to_owned()][..]));
    // Without a published baseline nothing refutes a reading: the claim must stand in all of them.
    let text = text.replace(ANCHOR, "");
    let item = outcome(&text, &far, &[Some(&near)]);
    assert!(item.readings.iter().all(|reading| reading.admissible));
    assert_eq!(item.claims[0].class, Class::UnderSome);
    assert_eq!(outcome(&text, &far, &[Some(&far)]).claims[0].class, Class::InSize);
}

#[test]
fn an_assumption_made_otherwise_is_no_reading() {
    let (plain, moved) = (results(100.0, 90.0, 90.0), results(100.0, 112.0, 90.0));
    let text = format!("{}{ANCHOR}{}", claim("published = 12"), READING.replace("reading", "sensitivity"));
    let item = outcome(&text, &plain, &[Some(&moved)]);
    assert_eq!(item.readings.iter().map(|reading| reading.admissible).collect::<Vec<_>>(), [true, false]);
    assert_eq!((item.claims[0].class, item.claims[0].under[0].as_str()), (Class::UnderSome, "otherwise"));
    assert_eq!(outcome(&text, &plain, &[None]).claims[0].class, Class::UnderNone);
}

#[test]
fn many_contrasts_share_one_rate_of_false_finds() {
    // One claim in eight holds, by a p that eight tests do not allow: of ten pairs, eight on one side.
    let mut runs = results(100.0, 100.0, 90.0);
    let mut records = runs.runs.to_vec();
    for (n, run) in records.iter_mut().filter(|run| run.scheduler == "blest+or").enumerate() {
        let base = spread(100.0)[n];
        let shift = if n < 8 { 1.0 + 0.001 * (n + 3) as f64 } else { 1.0 - 0.001 * (n - 7) as f64 };
        run.metrics.insert("goodput_bps".into(), base * shift);
    }
    runs.runs = records.into_iter().collect();
    let one = claim("band = [0, inf]");
    let others =
        "[[item.claim]]\ntext = \"d\"\nmetric = \"goodput_bps\"\norder = [\"otias\", \"minrtt\"]\nbest = \"most\"\n";
    let alone = outcome(&one, &runs, &[]);
    let p = alone.claims[0].p.unwrap();
    assert!(p < 0.05 && alone.claims[0].class == Class::Direction, "{p}");
    let item = outcome(&(one + &others.repeat(30)), &runs, &[]);
    assert_eq!(item.claims[0].class, Class::UnderNone, "p = {p} of 31 tests");
    assert_eq!(item.readings[0].claims[0].stand, Stand::No);
}

#[test]
fn a_finding_is_told_only_if_runs_show_it() {
    let (plain, moved) = (results(100.0, 90.0, 90.0), results(100.0, 112.0, 90.0));
    let finding = |band: &str| {
        format!(
            "{}{READING}[[item.finding]]\nid = \"f\"\ntext = \"Because.\"\nshown = [{{ reading = \"otherwise\", metric = \
             \"goodput_bps\", of = \"blest+or\", against = \"minrtt\", band = {band} }}]\n",
            claim("published = 12\nreason = \"f\"")
        )
    };
    let item = outcome(&finding("[10, 15]"), &plain, &[Some(&moved)]);
    assert!(item.findings[0].holds(), "{:?}", item.findings);
    assert_eq!(item.findings[0].shown[0].ours.split(':').count(), 1);
    assert_eq!(item.claims[0].reason.as_deref(), Some("Because."));
    let item = outcome(&finding("[20, 30]"), &plain, &[Some(&moved)]);
    assert!(!item.findings[0].holds() && item.claims[0].reason.is_none());
    // Not run is not shown.
    let item = outcome(&finding("[10, 15]"), &plain, &[None]);
    assert_eq!((item.findings[0].shown[0].holds, item.findings[0].holds()), (None, false));
}

#[test]
fn more_readings_than_a_dozen_are_a_search() {
    let readings: String = (0..12).map(|n| READING.replace("otherwise", &format!("r{n}"))).collect();
    let mistakes = read(&(head() + &claim("published = 12") + &readings)).unwrap_err();
    assert_eq!(mistakes[0].message, "an item has at most 12 readings, the one as written among them");
    let eleven = readings.replacen(&READING.replace("otherwise", "r11"), "", 1);
    assert!(read(&(head() + &claim("published = 12") + &eleven)).is_ok());
}

#[test]
fn what_holds_in_one_reading_is_found_though_nothing_holds_in_all() {
    let (plain, moved) = (results(100.0, 90.0, 90.0), results(100.0, 112.0, 90.0));
    let text = format!("{}{READING}", claim("published = 12"));
    let item = outcome(&text, &plain, &[Some(&moved)]);
    assert_eq!((item.claims[0].class, item.claims[0].under[0].as_str()), (Class::UnderSome, "otherwise"));
}

#[test]
fn pairs_of_rows_and_sizes_are_counted_apart() {
    const ORDER: &str = "[[item.claim]]\ntext = \"o\"\nmetric = \"goodput_bps\"\norder = [\"blest+or\", \"minrtt\", \"otias\"]\nbest = \"most\"\n";
    let (plain, moved) = (results(100.0, 112.0, 90.0), results(100.0, 95.0, 90.0));
    let counts = |text: &str, readings: &[Option<&Results>]| {
        let outcome = paper(text, &plain, readings);
        (outcome.pairs().to_string(), outcome.sizes().to_string())
    };
    let told = |pairs: &str, sizes: &str| (pairs.to_owned(), sizes.to_owned());
    assert_eq!(counts(ORDER, &[]), told("3 of 3", "0 of 0"));
    // In the other reading BLEST is second: two of the three pairs are as published in both.
    let both = format!("{ORDER}{READING}");
    assert_eq!(counts(&both, &[Some(&moved)]), told("2 of 3", "0 of 0"));
    // A change is a pair, and a size if one is published.
    assert_eq!(counts(&claim("published = 12"), &[]), told("1 of 1", "1 of 1"));
    assert_eq!(counts(&claim("published = 40"), &[]), told("1 of 1", "0 of 1"));
    assert_eq!(counts(&claim("band = [0, inf]"), &[]), told("1 of 1", "0 of 0"));
    assert_eq!(counts(&claim("published = -12"), &[]), told("0 of 1", "0 of 1"));
    // About equal is a size alone; what is not tested is neither.
    assert_eq!(counts(&claim("published = 0\nband = [-20, 20]"), &[]), told("0 of 0", "1 of 1"));
    assert_eq!(counts(&claim("published = 12\nduplicate = \"other\""), &[]), told("0 of 0", "0 of 0"));
    assert_eq!(counts(&claim("published = 0.01"), &[]), told("0 of 0", "0 of 0"), "below resolution");
}
