use super::*;
use crate::job::RunOutcome;
use std::sync::atomic::{AtomicBool, Ordering};

/// A run whose values have these names, each the length of its name plus the seed.
fn record(scheduler: &str, seed: u64, metrics: &[&str], paths: &[(&str, &[&str])]) -> RunRecord {
    let values =
        |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), (name.len() as u64 + seed) as f64)).collect();
    let outcome = RunOutcome {
        metrics: values(metrics),
        paths: paths.iter().map(|(path, names)| ((*path).to_owned(), values(names))).collect(),
        digest: format!("{:032x}", u128::from(seed) << 70 | 5),
        events: seed * 3,
        finished: !seed.is_multiple_of(3),
        ..RunOutcome::default()
    };
    RunRecord::new(scheduler, "cubic", seed, [("loss".to_owned(), "1%".to_owned())].into(), outcome)
}

/// Rows whose runs have different values: every third seed does not finish.
fn records() -> Vec<RunRecord> {
    let of = |scheduler: &'static str| {
        (0..10).map(move |seed| match seed % 3 {
            0 => record(scheduler, seed, &["goodput_bps"], &[("a", &["share"])]),
            _ => record(
                scheduler,
                seed,
                &["completion_s", "goodput_bps"],
                &[("a", &["share"]), ("b.c", &["share", "x"])],
            ),
        })
    };
    of("minrtt").chain(of("blest")).collect()
}

fn text(names: &[MetricRef<'_>]) -> Vec<String> {
    names.iter().map(MetricRef::to_string).collect()
}

#[test]
fn runs_are_read_as_they_were_put_there() {
    let records = records();
    let runs: Runs = records.iter().cloned().collect();
    assert_eq!((runs.len(), runs.rows().count(), runs.to_vec()), (20, 2, records.clone()));
    let chunks: Vec<Vec<RunRecord>> = runs.chunks(7).collect();
    assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [7, 7, 6]);
    assert_eq!(chunks.concat(), records);
    let read: Runs = serde_json::from_str(&serde_json::to_string(&runs).unwrap()).unwrap();
    assert_eq!(read, runs);
    assert!(serde_json::from_str::<Runs>(r#"[{"scheduler": 3}]"#).unwrap_err().to_string().contains("string"));
    assert!(Runs::default().is_empty());
}

#[test]
fn a_row_is_read_column_by_column() {
    let runs: Runs = records().into_iter().collect();
    let row = runs.rows().nth(1).unwrap();
    assert_eq!(
        (&**row.scheduler(), &**row.congestion(), row.len(), row.cell()["loss"].as_str()),
        ("blest", "cubic", 10, "1%")
    );
    let names = ["goodput_bps", "path.a.share", "completion_s", "path.b.c.share", "path.b.c.x"];
    assert_eq!(
        (text(&row.names()), text(&runs.names())),
        (names.map(String::from).to_vec(), names.map(String::from).to_vec())
    );
    assert_eq!(row.metric("goodput_bps"), (11..21).map(|value| Some(f64::from(value))).collect::<Vec<_>>());
    let x = row.values(MetricRef::of_path("b.c", "x"));
    assert_eq!(x, [None, Some(2.0), Some(3.0), None, Some(5.0), Some(6.0), None, Some(8.0), Some(9.0), None]);
    assert_eq!(row.values(MetricRef::of_path("b", "x")), [None; 10]);
    assert_eq!(row.finished().iter().filter(|finished| **finished).count(), 6);
    assert_eq!((row.seeds(), runs.seeds()), ((0..10).collect(), (0..10).collect()));
    assert_eq!(row.digests(), records()[10..].iter().map(|run| run.digest.clone()).collect::<Vec<_>>());
}

#[test]
fn runs_that_come_later_follow_in_their_row() {
    let mut runs = Runs::default();
    runs.open("minrtt", "cubic", Arc::default());
    runs.open("blest", "cubic", Arc::default());
    let of = |row: usize, seeds: std::ops::Range<u64>| {
        let name = ["minrtt", "blest"][row];
        seeds.map(|seed| RunRecord { cell: CellValues::new(), ..record(name, seed, &["goodput_bps"], &[]) }).collect()
    };
    for (row, seeds) in [(0, 0..3), (1, 0..3), (0, 3..5), (1, 3..5)] {
        runs.extend(row, of(row, seeds)).unwrap();
    }
    let expected: Vec<RunRecord> = [of(0, 0..5), of(1, 0..5)].concat();
    assert_eq!(runs.to_vec(), expected);
    assert_eq!(runs.row(0).seeds(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_digest_that_is_no_number_stays_as_it_is() {
    let of = |digest: &str| RunRecord { digest: digest.into(), ..record("minrtt", 1, &[], &[]) };
    let records = ["", "x", "00", "0123456789abcdef0123456789abcdef", "0123456789ABCDEF0123456789ABCDEF"].map(of);
    let runs: Runs = records.iter().cloned().collect();
    assert_eq!(runs.to_vec(), records);
    assert_eq!(runs.rows().next().unwrap().digests(), records.map(|run| run.digest));
}

/// Memory that fails.
#[derive(Default)]
struct Failing(Memory, AtomicBool);

impl Store for Arc<Failing> {
    fn put(&self, block: Vec<u8>) -> io::Result<u64> {
        if block.len() > 1000 { Err(io::ErrorKind::StorageFull.into()) } else { self.0.put(block) }
    }

    fn get(&self, place: u64, bytes: &mut [u8]) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) { Err(io::ErrorKind::TimedOut.into()) } else { self.0.get(place, bytes) }
    }
}

#[test]
fn a_store_that_fails_is_reported() {
    let store = Arc::new(Failing::default());
    let mut runs = Runs::new(Box::new(store.clone()));
    runs.open("minrtt", "cubic", Arc::default());
    let few = || vec![record("minrtt", 1, &["goodput_bps"], &[])];
    runs.extend(0, few()).unwrap();
    assert_eq!(runs.extend(0, vec![few().remove(0); 100]).unwrap_err().kind(), io::ErrorKind::StorageFull);
    // Runs of two shapes are two blocks: the second does not fit, and then the first does not count.
    let mut two = vec![record("minrtt", 1, &["goodput_bps"], &[]); 100];
    two.insert(0, record("minrtt", 2, &[], &[]));
    assert!(runs.extend(0, two).is_err());
    assert_eq!((runs.len(), runs.row(0).finished()), (1, vec![true]));
    assert!(runs.check().is_ok());
    store.1.store(true, Ordering::Relaxed);
    assert_eq!(runs.row(0).metric("goodput_bps"), [Some(0.0)]);
    assert_eq!(runs.check().unwrap_err().kind(), io::ErrorKind::TimedOut);
}
