//! Runs with a driver whose outcomes are known: what is printed and what is written.

mod common;

use anabranch_run::Results;
use common::{ask, errors, output};
use parquet::basic::Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::fs;

const SCENARIO: &str = r#"
name = "two paths"
duration = "10s"
repeat = 3

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

/// The scenario under another name, with a path of its own: its runs are not those of the first.
fn other(name: &str) -> String {
    SCENARIO.replace("two paths", name).replace("65ms", "66ms")
}

/// A directory with `two.toml` in it, and that file's name.
fn scenario() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.toml");
    fs::write(&file, SCENARIO).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (folder, name)
}

#[test]
fn the_table_shows_schedulers_then_baselines() {
    let (_folder, file) = scenario();
    insta::assert_snapshot!(output(&["run", &file, "--scheduler", "minrtt+pr,rr", "--congestion", "olia"]), @r#"
    two paths

    scheduler    goodput  n      against  × best  benefit      of  OFO mean       PR     % on
                  Mbit/s     minrtt+pr %    path           oracle       KiB  packets  wlan/3g
    ─────────────────────────────────────────────────────────────────────────────────────────
    minrtt+pr     29.523  3                1.474    2.360   0.900     200.0   1234.5    50/50
    roundrobin    29.023  3       -1.7 *   1.449    2.236   0.900     200.0   1234.5    50/50
    single:wlan   20.027  3                                           200.0
    single:3g      4.023  3                                           200.0

    ± is the longer side of the 95 % interval of the mean over n seeds.
    There is none where fewer than 10 runs have another value than the most frequent one: so few have
    hardly met the rare events that decide a mean.
    * shown by the seeds: p < 0.05 (paired t test, Holm's correction), 0 outside the interval.
    "#);
}

#[test]
fn a_sweep_has_a_table_a_cell() {
    let (_folder, file) = scenario();
    fs::write(&file, format!("{SCENARIO}[sweep]\n\"path.wlan.loss\" = [\"0%\", \"2%\"]\n")).unwrap();
    insta::assert_snapshot!(output(&["run", &file, "--no-baselines"]), @r#"
    two paths

    path.wlan.loss = 0%
    scheduler  goodput  n      of  OFO mean       PR     % on
                Mbit/s     oracle       KiB  packets  wlan/3g
    ─────────────────────────────────────────────────────────
    minrtt      31.040  1   0.900     200.0   1234.5    50/50

    path.wlan.loss = 2%
    scheduler  goodput  n      of  OFO mean       PR     % on
                Mbit/s     oracle       KiB  packets  wlan/3g
    ─────────────────────────────────────────────────────────
    minrtt      31.030  3   0.900     200.0   1234.5    50/50

    ± is the longer side of the 95 % interval of the mean over n seeds.
    There is none where fewer than 10 runs have another value than the most frequent one: so few have
    hardly met the rare events that decide a mean.
    n = 1, deterministic: nothing is random in 1 of 2 cells, so one run suffices.
    "#);
}

#[test]
fn the_json_document_has_the_promised_shape() {
    let (_folder, file) = scenario();
    let arguments = ["run", &file, "--scheduler", "minrtt,blest", "--seed", "9", "--repeat", "2", "--format", "json"];
    let text = output(&arguments);
    assert_eq!(text, output(&[&arguments[..], &["--jobs", "1"]].concat()), "jobs do not matter");
    let mut results: Results = serde_json::from_str(&text).unwrap();
    let third = results.runs.to_vec().swap_remove(2);
    assert_eq!((results.runs.len(), third.scheduler.as_str(), third.seed), (8, "blest", 9));
    // One of each, in the order of the document.
    results.runs = [third].into_iter().collect();
    results.summary.truncate(1);
    results.comparisons.truncate(1);
    insta::assert_snapshot!(results.to_json(), @r#"
    {
      "schema": 1,
      "anabranch": "0.1.0",
      "scenario": "two paths",
      "incomplete": null,
      "sweep": {},
      "digest": "8adb8d144e15c503153dff8153810c3b",
      "runs": [
        {
          "scheduler": "blest",
          "congestion": "cubic",
          "seed": 9,
          "cell": {},
          "finished": true,
          "metrics": {
            "goodput_bps": 31510000.0,
            "ofo_mean_bytes": 204800.0,
            "opportunistic_packets": 1234.5,
            "aggregation_benefit": 2.8511166253101736,
            "best_single_ratio": 1.5739260739260739,
            "oracle_ratio": 0.9
          },
          "paths": {
            "wlan": {
              "share": 0.5,
              "timeouts": 1.0
            },
            "3g": {
              "share": 0.5,
              "timeouts": 1.0
            }
          },
          "digest": "00000000000000000000000000000009",
          "events": 2,
          "curves": {},
          "live": null
        }
      ],
      "summary": [
        {
          "scheduler": "minrtt",
          "congestion": "cubic",
          "cell": {},
          "metric": "goodput_bps",
          "n": 2,
          "mean": 31005000.0,
          "sd": 7071.067811865475,
          "ci95_low": null,
          "ci95_high": null,
          "median": 31005000.0,
          "p95": 31009500.0,
          "deterministic": false,
          "unfinished": 0
        }
      ],
      "comparisons": [
        {
          "a": "blest",
          "b": "minrtt",
          "congestion": "cubic",
          "cell": {},
          "metric": "goodput_bps",
          "n": 2,
          "mean_diff": 500000.0,
          "ci95_low": null,
          "ci95_high": null,
          "p": null,
          "p_wilcoxon": 0.5,
          "effect_size": null
        }
      ],
      "diagnosis": []
    }
    "#);
}

#[test]
fn compare_ranks_schedulers_over_a_grid() {
    let (folder, _) = scenario();
    let (grid, out) = (folder.path().to_str().unwrap(), folder.path().join("out"));
    let page = folder.path().join("page.md");
    fs::write(&page, "before\n<!-- frontier -->\nold\n<!-- /frontier -->\nafter\n").unwrap();
    let (results, target) = (out.to_str().unwrap(), page.to_str().unwrap());
    let arguments =
        ["compare", "--grid", grid, "--scheduler", "minrtt,rr", "--out", results, "--update", target, "--repeat", "2"];
    let once = [&arguments[..], &["--congestion", "cubic"]].concat();
    insta::assert_snapshot!(output(&once), @r"
    cubic: 2 schedulers, 6 cells of 1 path sets, 2 seeds

    scheduler       ratio %  sets  bulk   web  256 KB  2 MB  8 MB  frames  lacks  near %  slower  rank  last
    ────────────────────────────────────────────────────────────────────────────────────────────────────────
    minrtt       90.0 ± 0.0        90.0  90.0    90.0  90.0  90.0    90.0    0.0     100       0   1.5     0
    roundrobin   90.0 ± 0.0        90.0  90.0    90.0  90.0  90.0    90.0    0.0     100       0   1.5     0
    single:best  58.1 ± 0.4        58.1  58.1    58.1  58.1  58.1    58.1   35.4       0

    Ratio: mean over all cells (path set × application) of what was reached ÷ the oracle's bound, in percent, ± its 95 %
    interval over the seeds; sets: its 95 % interval over path sets, by bootstrap; then by application. Lacks: mean over the
    cells of what is missing from the best scheduler of the cell, in percent of it; near: cells in which that is 2 % or less.
    Slower: cells in which the best path alone is faster by more than 2.5 % (and paired t test, p < 0.05 after Holm's
    correction for the schedulers of the cell); Multipath TCP's options alone take 1.9 %. Rank: mean place; schedulers tie in
    a cell unless they differ by more than 0.5 % and the paired t test says p < 0.05, and those that tie share their places.
    Last: cells in which it is the worst, or ties with it.
    single:best is the best path alone, in plain TCP.
    ");
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.starts_with("before\n<!-- frontier -->\nRatio: mean over all cells"), "{page}");
    assert!(page.ends_with("<!-- /frontier -->\nafter\n") && !page.contains("old"), "{page}");
    assert!(page.contains("### With cubic\n\ncubic: 2 schedulers, 6 cells of 1 path sets, 2 seeds\n"), "{page}");
    assert!(page.contains("| own | 1 | all alike | all alike |"), "{page}");
    let json: Value = serde_json::from_str(&fs::read_to_string(out.join("frontier.json")).unwrap()).unwrap();
    assert_eq!(json["frontiers"][0]["standings"][0]["ratio"]["n"], 2);
    assert_eq!(json["frontiers"][0]["cells"].as_array().unwrap().len(), 6);
    // A cell has two schedulers and the best path alone.
    assert_eq!(fs::read_to_string(out.join("frontier.csv")).unwrap().lines().count(), 1 + 6 * 3);
    assert!(fs::read_to_string(out.join("frontier.svg")).unwrap().contains(">With cubic<"));
    // Three congestion controls by default, and one application by option.
    output(&[&arguments[..], &["--traffic", "16 KB"]].concat());
    let json: Value = serde_json::from_str(&fs::read_to_string(out.join("frontier.json")).unwrap()).unwrap();
    let names: Vec<&str> =
        json["frontiers"].as_array().unwrap().iter().filter_map(|f| f["congestion"].as_str()).collect();
    assert_eq!((names, json["frontiers"][2]["cells"].as_array().unwrap().len()), (vec!["cubic", "lia", "bbr"], 1));
    let text = errors(&["compare", "--grid", results], 2);
    assert!(text.contains("holds no scenario file"), "{text}");
    let text = errors(&["compare", "--scheduler", "blast"], 2);
    assert!(text.contains("blest"), "{text}");
    // The rows that know the true rates never come into a page.
    for page in [&["--update", target][..], &["--picture", "p.svg"], &["--room"], &["--first-path"]] {
        let text = errors(&[&["compare", "--grid", grid, "--known-rates"], page].concat(), 2);
        assert!(text.contains("cannot be used with") && text.contains(page[0]), "{text}");
    }
    let text = errors(&["compare", "--grid", grid, "--known-rates", "--scheduler", "minrtt,fdps"], 2);
    assert!(text.contains("none of these schedulers measures capacities"), "{text}");
    let arguments = ["compare", "--grid", grid, "--known-rates", "--scheduler", "playahead", "--congestion", "cubic"];
    let text = output(&[&arguments[..], &["--repeat", "1", "--traffic", "256 KB"]].concat());
    assert!(text.contains("known-rates+playahead  ") && text.contains("is no published scheduler"), "{text}");
    assert!(text.contains("cubic: 1 schedulers, 1 cells"), "{text}");
    let text = errors(&["compare", "--grid", grid, "--traffic", "bulk,mail"], 2);
    assert!(text.contains("no application is called `mail`") && text.contains("256 KB"), "{text}");
    let text = errors(&["compare", "--grid", grid, "--update", out.join("frontier.csv").to_str().unwrap()], 2);
    assert!(text.contains("has no place for the table"), "{text}");
}

#[test]
fn compare_opens_on_every_path_and_takes_hindrances_away() {
    let (folder, _) = scenario();
    let (grid, out) = (folder.path().to_str().unwrap(), folder.path().join("out"));
    let (results, page) = (out.to_str().unwrap(), folder.path().join("page.md"));
    fs::write(&page, "<!-- first-path -->\n<!-- /first-path -->\n<!-- room -->\n<!-- /room -->\n").unwrap();
    let arguments = ["compare", "--grid", grid, "--scheduler", "minrtt,rr", "--quick", "--out", results];
    // Without the runs there is nothing to put there.
    let target = page.to_str().unwrap();
    let text = errors(&[&arguments[..], &["--update", target]].concat(), 2);
    assert!(text.contains("has no place for the table"), "{text}");
    output(&[&arguments[..], &["--first-path", "--room", "--update", target]].concat());
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("| minrtt | 16 KB | 1 | 90.0 | 90.0 | 90.0 | 0.0 | 0 | 0.0 | two paths |"), "{page}");
    assert!(page.contains("| all | 6 | 58.1 | 90.0 | 90.0 | 90.0 | 10.0 |"), "{page}");
    assert!(page.contains("| all | 90.0 | +0.0 | +0.0 | +0.0 | +0.0 | +0.0 | +0.0 | +0.0 |"), "{page}");
    let opened: Value = serde_json::from_str(&fs::read_to_string(out.join("first-path.json")).unwrap()).unwrap();
    assert_eq!(opened[0]["ratios"].as_array().unwrap().len(), 2);
    // A head, and six applications over one kind of paths.
    assert_eq!(fs::read_to_string(out.join("room.csv")).unwrap().lines().count(), 7);
}

#[test]
fn compare_tells_what_was_finished_before_it_ended() {
    for (name, code, word) in [("halted", 130, "interrupted after 48 of 96 runs"), ("doomed", 1, "a wrong byte at")] {
        let (folder, _) = scenario();
        fs::write(folder.path().join("zzz.toml"), other(name)).unwrap();
        let (grid, out) = (folder.path().to_str().unwrap(), folder.path().join("out"));
        let page = folder.path().join("page.md");
        let marks = "<!-- frontier -->\nold\n<!-- /frontier -->\n";
        fs::write(&page, marks).unwrap();
        let (results, target) = (out.to_str().unwrap(), page.to_str().unwrap());
        let arguments = ["compare", "--grid", grid, "--scheduler", "minrtt,rr", "--out", results, "--update", target];
        let answer = ask(&[&arguments[..], &["--repeat", "2", "--jobs", "1", "--congestion", "cubic"]].concat());
        assert_eq!(answer.code, code, "{answer:?}");
        assert!(answer.errors.contains(word) && answer.errors.contains(name), "{}", answer.errors);
        let head = "cubic: 2 schedulers, 6 cells of 1 path sets, 2 seeds; INCOMPLETE: 6 cells are missing\n";
        assert!(answer.output.starts_with(head) && answer.output.contains("\nsingle:best"), "{}", answer.output);
        let json: Value = serde_json::from_str(&fs::read_to_string(out.join("frontier.json")).unwrap()).unwrap();
        assert_eq!((json["frontiers"][0]["cells"].as_array().unwrap().len(), &json["missing"]), (6, &6.into()));
        assert!(fs::read_to_string(out.join("frontier.md")).unwrap().contains(head));
        assert_eq!(fs::read_to_string(out.join("frontier.csv")).unwrap().lines().count(), 1 + 6 * 3);
        // A document never holds a part.
        assert_eq!(fs::read_to_string(&page).unwrap(), marks);
    }
    let (folder, file) = scenario();
    fs::write(&file, SCENARIO.replace("two paths", "halted")).unwrap();
    let text = errors(&["compare", "--grid", folder.path().to_str().unwrap(), "--scheduler", "minrtt"], 130);
    assert!(text.contains("interrupted after 0 of"), "{text}");
}

#[test]
fn parity_tells_the_scenarios_that_were_finished() {
    let (folder, _) = scenario();
    fs::write(folder.path().join("zzz.toml"), other("halted")).unwrap();
    let (grid, out) = (folder.path().to_str().unwrap(), folder.path().join("out"));
    let answer = ask(&["parity", "--grid", grid, "--congestion", "reno", "--out", out.to_str().unwrap()]);
    assert_eq!(answer.code, 130, "{answer:?}");
    assert!(answer.errors.contains("interrupted after"), "{}", answer.errors);
    let incomplete = "Incomplete: 1 of 2 scenarios.\n";
    assert!(answer.output.contains("two paths") && answer.output.ends_with(incomplete), "{}", answer.output);
    let json: Value = serde_json::from_str(&fs::read_to_string(out.join("parity.json")).unwrap()).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 1);
    assert!(fs::read_to_string(out.join("parity.md")).unwrap().ends_with(incomplete));
}

#[test]
fn csv_has_one_line_a_run() {
    let (_folder, file) = scenario();
    insta::assert_snapshot!(output(&["run", &file, "--repeat", "1", "--format", "csv"]), @r#"
    scheduler,congestion,seed,finished,goodput_bps,ofo_mean_bytes,opportunistic_packets,aggregation_benefit,best_single_ratio,oracle_ratio,path.wlan.share,path.wlan.timeouts,path.3g.share,path.3g.timeouts,oracle_ratio_of_all,digest,events
    minrtt,cubic,1,true,31040000,204800,1234.5,2.7388059701492535,1.5496754867698452,0.9,0.5,1,0.5,1,,00000000000000000000000000000001,2
    single:wlan,cubic,1,true,20030000,204800,,,,,1,1,,,0.5815161290322581,00000000000000000000000000000001,2
    single:3g,cubic,1,true,4019999.9999999995,204800,,,,,,,1,1,0.11670967741935484,00000000000000000000000000000001,2
    "#);
}

#[test]
fn all_stands_for_every_scheduler_once() {
    let (_folder, file) = scenario();
    let text = output(&["run", &file, "--scheduler", "all", "--repeat", "1", "--format", "json", "--no-baselines"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        document["runs"].as_array().unwrap().iter().filter_map(|r| r["scheduler"].as_str()).collect();
    assert_eq!(names, anabranch_schedulers::all().iter().map(|entry| entry.name).collect::<Vec<_>>());
}

#[test]
fn auto_repeats_until_the_interval_is_narrow() {
    let (_folder, file) = scenario();
    let text = output(&["run", &file, "--repeat", "auto", "--format", "csv", "--no-baselines"]);
    assert_eq!(text.lines().count(), 1 + 30);
    let text = output(&["run", &file, "--repeat", "auto", "--no-baselines"]);
    assert!(!text.contains("are not enough"), "{text}");
}

#[test]
fn results_go_into_a_directory() {
    let (folder, file) = scenario();
    let out = folder.path().join("results");
    let path = |name: &str| out.join(name);
    let text = output(&["run", &file, "--format", "json", "--out", out.to_str().unwrap(), "--set", "seed=4"]);
    assert_eq!(fs::read_to_string(path("results.json")).unwrap(), text);
    assert_eq!(fs::read_to_string(path("runs.csv")).unwrap().lines().count(), 1 + 9);
    let manifest: Value = serde_json::from_str(&fs::read_to_string(path("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["scenario"]["text"], SCENARIO);
    assert_eq!(manifest["scenario"]["overrides"], serde_json::json!(["seed=4"]));
    assert_eq!(manifest["seeds"], serde_json::json!([4, 5, 6]));
    let wlan = &manifest["network"]["paths"][0];
    assert_eq!((&wlan["name"], &wlan["rate_bps"], &wlan["loss"]), (&"wlan".into(), &25e6.into(), &0.01.into()));
    assert!(manifest["machine"]["cores"].as_u64() > Some(0) && manifest["wall_time_s"].is_f64());
    let mut series: Vec<_> = fs::read_dir(path("series")).unwrap().map(|e| e.unwrap().file_name()).collect();
    series.sort();
    assert_eq!(series, ["minrtt-cubic-seed4.csv", "single-3g-cubic-seed4.csv", "single-wlan-cubic-seed4.csv"]);
    let series = fs::read_to_string(path("series/single-wlan-cubic-seed4.csv")).unwrap();
    let mut lines = series.lines();
    assert!(
        lines.next().unwrap().starts_with("time_s,ofo_bytes,delivered_bytes,ofo_packets,path.wlan.cwnd_packets"),
        "{series}"
    );
    assert!(!series.contains("path.3g") && lines.clone().count() == 3, "{series}");
    assert_eq!(lines.nth(2).unwrap(), "0.02,0,1400,0,,,0,0,0");
}

#[test]
fn the_parquet_file_holds_what_the_csv_file_does() {
    let (folder, file) = scenario();
    fs::write(&file, format!("{SCENARIO}[sweep]\n\"path.wlan.loss\" = [\"1%\", \"2%\"]\n")).unwrap();
    let out = folder.path().join("results");
    output(&["run", &file, "--out", out.to_str().unwrap(), "--set", "seed=4"]);
    let table = SerializedFileReader::new(fs::File::open(out.join("runs.parquet")).unwrap()).unwrap();
    let columns = table.metadata().file_metadata().schema_descr().columns().to_vec();
    let mut csv = csv::Reader::from_path(out.join("runs.csv")).unwrap();
    let names: Vec<String> = csv.headers().unwrap().iter().map(String::from).collect();
    assert_eq!(columns.iter().map(|c| c.name().to_owned()).collect::<Vec<_>>(), names);
    let types = |name: &str| columns.iter().find(|c| c.name() == name).unwrap().physical_type();
    assert_eq!(
        ["scheduler", "seed", "cell.path.wlan.loss", "finished", "goodput_bps", "path.3g.share"].map(types),
        [Type::BYTE_ARRAY, Type::INT64, Type::BYTE_ARRAY, Type::BOOLEAN, Type::DOUBLE, Type::DOUBLE]
    );
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::ULong(count) => count.to_string(),
        Field::Double(value) => value.to_string(),
        Field::Bool(truth) => truth.to_string(),
        other => panic!("{other:?}"),
    };
    let rows: Vec<Vec<String>> = table
        .get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().get_column_iter().map(|(_, f)| text(f)).collect())
        .collect();
    let lines: Vec<Vec<String>> = csv.records().map(|line| line.unwrap().iter().map(String::from).collect()).collect();
    assert_eq!(rows.len(), 2 * 3 * 3);
    assert_eq!(rows, lines);
}

#[test]
fn a_timeline_follows_packets_unless_told_not_to() {
    let (folder, file) = scenario();
    let read = |name: &str, options: &[&str]| {
        let out = folder.path().join(name);
        output(&[&["run", &file, "--out", out.to_str().unwrap(), "--no-baselines"], options].concat());
        fs::read_to_string(out.join("timeline/minrtt-cubic-seed1.json"))
    };
    // The driver here sends nothing; its last event is at 25 ms.
    let expected = "{\"paths\":[\"wlan\",\"3g\"],\"duration_s\":0.025,\"packets\":[]}";
    assert_eq!(read("usual", &[]).unwrap(), expected);
    assert!(read("none", &["--timeline", "0"]).is_err());
    assert!(errors(&["run", &file, "--timeline", "5"], 2).contains("--out"));
}

#[test]
fn a_connection_that_is_to_be_followed_must_exist() {
    let (folder, file) = scenario();
    let out = folder.path().join("out");
    let run = ["run", &file, "--out", out.to_str().unwrap(), "--connection", "3", "--set"];
    let said = errors(&[&run[..], &["traffic.flows=2"]].concat(), 2);
    assert!(said.contains("--connection 3") && said.contains("there are 2"), "{said}");
    assert!(!out.exists());
    output(&[&run[..], &["traffic.flows=3"]].concat());
    assert!(out.join("series").exists());
}

#[test]
fn a_directory_belongs_to_the_command_that_wrote_last() {
    let (folder, file) = scenario();
    let out = folder.path().join("results");
    let run = |options: &[&str]| output(&[&["run", &file, "--out", out.to_str().unwrap()], options].concat());
    run(&["--scheduler", "minrtt,blest"]);
    fs::write(out.join("notes.txt"), "mine").unwrap();
    // A report that `reproduce` left would become the page.
    fs::write(out.join("report.json"), r#"{"title": "A paper", "made_by": {"version": "0.1.0"}}"#).unwrap();
    let list = fs::read_to_string(out.join("files.json")).unwrap();
    fs::write(out.join("files.json"), list.replace("\"report.html\"", "\"report.html\", \"report.json\"")).unwrap();
    // A run that fails destroys nothing.
    let doomed = folder.path().join("doomed.toml");
    fs::write(&doomed, SCENARIO.replace("two paths", "doomed")).unwrap();
    errors(&["run", doomed.to_str().unwrap(), "--out", out.to_str().unwrap(), "--force"], 1);
    assert!(out.join("series/blest-cubic-seed1.csv").exists() && out.join("report.json").exists());

    run(&["--scheduler", "otias", "--no-baselines"]);
    let names = |name: &str| {
        let entries = fs::read_dir(out.join(name)).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(
        (names("series"), names("timeline")),
        (vec!["otias-cubic-seed1.csv".into()], vec!["otias-cubic-seed1.json".into()])
    );
    let left = [
        "comparisons.csv",
        "files.json",
        "inputs.json",
        "manifest.json",
        "notes.txt",
        "report.html",
        "results.json",
        "runs.csv",
        "runs.parquet",
        "series",
        "summary.csv",
        "tables",
        "timeline",
    ];
    assert_eq!(names(""), left);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("otias") && !page.contains("\"name\":\"minrtt\"") && !page.contains("A paper"));
}

#[test]
fn results_of_another_program_are_not_overwritten() {
    let (folder, file) = scenario();
    let foreign = folder.path().join("results.json");
    fs::write(&foreign, "[1, 2, 3]").unwrap();
    let out = folder.path().to_str().unwrap();
    for command in [&["run", &file, "--out", out][..], &["reproduce", "fdps", "a1", "--quick", "--out", out]] {
        let text = errors(command, 2);
        assert!(text.contains("results.json is not of this program"), "{text}");
    }
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "[1, 2, 3]");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing was begun");
}

#[test]
fn n_is_that_of_the_figure_beside_it() {
    let (folder, _) = scenario();
    let file = folder.path().join("slow.toml");
    let sized = SCENARIO.replace("two paths", "slow").replace("kind = \"bulk\"", "kind = \"bulk\"\nsize = \"1MB\"");
    fs::write(&file, sized).unwrap();
    let out = folder.path().join("results");
    let text = output(&["run", file.to_str().unwrap(), "--no-baselines", "--out", out.to_str().unwrap()]);
    insta::assert_snapshot!(text, @r#"
    slow

    scheduler  completion       n      of  OFO mean       PR     % on
                   time s          oracle       KiB  packets  wlan/3g
    ─────────────────────────────────────────────────────────────────
    minrtt          1.200  2 of 3   0.900     200.0   1234.5    50/50

    ± is the longer side of the 95 % interval of the mean over n seeds.
    There is none where fewer than 10 runs have another value than the most frequent one: so few have
    hardly met the rare events that decide a mean.
    minrtt (cubic): 1 of 3 transfers did not finish.
    "#);
    let table = fs::read_to_string(out.join("tables/summary-summary.csv")).unwrap();
    // For programs: mean, n. Three runs have no interval.
    let row: Vec<&str> = table.lines().nth(1).unwrap().split(',').collect();
    assert!(table.starts_with("scheduler,n,\"completion time, s\",\"completion time, s n\""), "{table}");
    assert_eq!(row[..4], ["minrtt", "3", "1.2", "2"], "{table}");
}

#[test]
fn a_row_that_two_hundred_seeds_do_not_settle_is_told() {
    let (folder, _) = scenario();
    let file = folder.path().join("wild.toml");
    fs::write(&file, SCENARIO.replace("two paths", "wild")).unwrap();
    let auto = |options: &[&str]| {
        output(&[&["run", file.to_str().unwrap(), "--repeat", "auto", "--no-baselines"], options].concat())
    };
    let text = auto(&[]);
    let told = text.lines().last().unwrap();
    assert!(told.starts_with("minrtt (cubic): 200 seeds are not enough for an interval of ± 1 % (± "), "{text}");
    assert_eq!(auto(&["--format", "csv"]).lines().count(), 1 + 200);
}

#[test]
fn a_report_is_written_with_the_results_and_made_again_from_them() {
    let (folder, file) = scenario();
    let out = folder.path().join("results");
    let (out_name, page) = (out.to_str().unwrap(), out.join("report.html"));
    output(&["run", &file, "--scheduler", "minrtt,blest", "--out", out_name]);
    let text = fs::read_to_string(&page).unwrap();
    for part in [
        "single:3g",
        "blest",
        "Differences, seed by seed",
        "Over time",
        "25 Mbit/s · 25 ms one way · 1 % lost",
        "Scenario: ",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let table = fs::read_to_string(out.join("tables/summary-summary.csv")).unwrap();
    assert!(table.starts_with("scheduler,n,\"goodput, Mbit/s\""), "{table}");
    assert_eq!(table.lines().count(), 1 + 4);
    assert!(fs::read_to_string(out.join("tables/summary-summary.tex")).unwrap().contains("\\toprule"));

    fs::remove_file(&page).unwrap();
    assert_eq!(output(&["report", out_name]), format!("{}\n", page.display()));
    assert_eq!(fs::read_to_string(&page).unwrap(), text);

    // A timeline put beside the results is drawn.
    fs::create_dir_all(out.join("timeline")).unwrap();
    fs::write(out.join("timeline/blest.json"), r#"{"paths": ["wlan"], "duration_s": 1, "packets": []}"#).unwrap();
    output(&["report", out_name]);
    assert!(fs::read_to_string(&page).unwrap().contains("Packet timelines"));

    // Of a long one the page shows as many packets as are wanted; 30,000 unless given, which the five timelines share.
    let packet = |n: u32| {
        format!(
            r#"{{"data_start": {n}, "data_end": {}, "path": 0, "bound_s": 0, "sent_s": 0, "arrived_s": null, "delivered_s": null, "kind": "first",
            "fate": "lost"}}"#,
            n + 1
        )
    };
    let packets: Vec<String> = (0..20_100).map(packet).collect();
    let timeline = format!(r#"{{"paths": ["wlan"], "duration_s": 1, "packets": [{}]}}"#, packets.join(","));
    fs::write(out.join("timeline/blest.json"), timeline).unwrap();
    let cut = |options: &[&str]| {
        output(&[&["report", out_name], options].concat());
        let text = fs::read_to_string(&page).unwrap();
        let cuts = text.split("The first ").filter_map(|rest| rest.split(" that were").next());
        cuts.filter(|cut| cut.ends_with(" packets")).map(str::to_owned).collect::<String>()
    };
    assert_eq!(cut(&[]), "6000 of 20100 packets");
    assert_eq!(cut(&["--packets", "7"]), "7 of 20100 packets");
    assert_eq!(cut(&["--packets", "20100"]), "");
    fs::write(out.join("timeline/blest.json"), r#"{"paths": ["wlan"], "duration_s": 1, "packets": []}"#).unwrap();

    // A whole report takes the place of the results.
    fs::write(out.join("report.json"), r#"{"title": "A paper, reproduced"}"#).unwrap();
    output(&["report", out_name]);
    let text = fs::read_to_string(&page).unwrap();
    assert!(
        text.contains("A paper, reproduced") && text.contains("Packet timelines") && !text.contains("seed by seed")
    );
}

#[test]
fn a_directory_without_results_or_with_broken_ones_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().to_str().unwrap();
    let text = errors(&["report", name], 2);
    assert!(text.contains("results.json") && text.contains("--out"), "{text}");
    fs::write(folder.path().join("report.json"), "{\n  \"title\": 7\n}").unwrap();
    let text = errors(&["report", name], 2);
    assert!(text.contains("report.json") && text.contains("column 12"), "{text}");
    fs::write(folder.path().join("report.json"), "{}").unwrap();
    fs::create_dir(folder.path().join("timeline")).unwrap();
    fs::write(folder.path().join("timeline/a.json"), "[]").unwrap();
    assert!(errors(&["report", name], 2).contains("a.json"));
    assert!(errors(&["run", "wifi-lte", "--open"], 2).contains("--out"));
}

#[test]
fn a_trace_holds_the_very_first_run() {
    let (folder, file) = scenario();
    let trace = folder.path().join("trace.jsonl");
    output(&["run", &file, "--events", trace.to_str().unwrap()]);
    let text = fs::read_to_string(&trace).unwrap();
    let names: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].take()).collect();
    assert_eq!(names, ["connectivity:connected", "application:delivered"]);
}

#[test]
fn captures_are_written_once_a_row() {
    let (folder, file) = scenario();
    let captures = folder.path().join("captures");
    output(&["run", &file, "--pcap", captures.to_str().unwrap(), "--no-baselines"]);
    let file = fs::read(captures.join("minrtt-cubic-seed1.server.pcapng")).unwrap();
    assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a section header block");
    assert_eq!(fs::read_dir(captures).unwrap().count(), 2, "one a host");
}

#[test]
fn the_demo_compares_six_schedulers_and_two_paths() {
    let text = output(&["demo", "--repeat", "2"]);
    for name in ["minrtt+pr", "minrtt", "daps", "otias", "blest+or", "roundrobin", "single:wlan", "single:3g"] {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let document: Value = serde_json::from_str(&output(&["demo", "--repeat", "1", "--format", "json"])).unwrap();
    assert_eq!(document["runs"].as_array().unwrap().len(), 8);
}

#[test]
fn real_time_tells_how_true_it_was() {
    let (folder, file) = scenario();
    let out = folder.path().join("results");
    let text = output(&["run", &file, "--realtime", "--no-baselines", "--out", out.to_str().unwrap()]);
    let expected = "Real time, Linux 6.18.0: 99 of 100 packets at most 1.20 ms late, the latest 1.50 ms, 0 dropped by \
                    devices: NOT accurate in 1 of 3 runs: use a quieter machine or lower rates.\nNot applied: tcp.pacing: no.\n";
    assert!(text.ends_with(expected), "{text}");
    let manifest: Value = serde_json::from_str(&fs::read_to_string(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["real_time"]["settings"]["client"]["mtu"], "1500");
    assert_eq!(
        (&manifest["real_time"]["accurate_runs"], &manifest["real_time"]["kernel"]),
        (&2.into(), &"6.18.0".into())
    );
    // In real time no two runs are equal, even if nothing in the scenario is random.
    let text = output(&["run", &file, "--receiver", "linux", "--set", "path.wlan.loss=0%", "--format", "csv"]);
    assert_eq!(text.lines().count(), 1 + 9);
}

#[test]
fn a_word_that_the_host_lacks_is_underlined() {
    let (_folder, file) = scenario();
    let text = errors(&["run", &file, "--sender", "linux", "--scheduler", "blest"], 2);
    assert!(text.contains("blest") && text.contains("not here") && text.contains("take `fifo`"), "{text}");
    output(&["run", &file, "--sender", "linux", "--scheduler", "fifo", "--repeat", "1"]);
    assert!(errors(&["run", "wifi-lte", "--sender", "windows"], 2).contains("linux"));
}

#[test]
fn what_the_system_lacks_fails_and_a_signal_interrupts() {
    let (folder, _) = scenario();
    let named = |name: &str| {
        let file = folder.path().join(format!("{name}.toml"));
        fs::write(&file, SCENARIO.replace("two paths", name)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let text = errors(&["run", &named("locked"), "--realtime"], 1);
    assert!(text.contains("no root") && text.contains("become root"), "{text}");
    let anabranch_cli::Answer { output, errors: text, code } = ask(&["run", &named("stopped"), "--realtime"]);
    assert!(text.contains("interrupted after 3 of 9 runs: minrtt, cubic, seed 2"), "{text}");
    assert!(code == 130 && output.ends_with("INCOMPLETE: 3 of 9 runs.\n"), "{output}");
    let text = errors(&["parity", &named("locked")], 1);
    assert!(text.contains("no root") && text.contains("become root"), "{text}");
    let text = errors(&["parity", &named("stopped")], 130);
    assert!(
        text.contains("interrupted after") && text.contains(": engine→linux, linux-default, reno, seed 2"),
        "{text}"
    );
}

#[test]
fn options_are_checked() {
    for (option, value) in
        [("--repeat", "0"), ("--repeat", "often"), ("--jobs", "0"), ("--format", "xml"), ("--seed", "x")]
    {
        assert!(errors(&["run", "wifi-lte", option, value], 2).contains(option), "{option}");
    }
    assert!(errors(&["run", "wifi-lte", "--duration", "10"], 2).contains("--duration"));
}

#[test]
fn a_failed_run_is_an_error_of_its_own() {
    let (folder, _) = scenario();
    let file = folder.path().join("doomed.toml");
    fs::write(&file, SCENARIO.replace("two paths", "doomed")).unwrap();
    let text = errors(&["run", file.to_str().unwrap()], 1);
    assert!(text.contains("minrtt, cubic, seed 1") && text.contains("a wrong byte at 1400"), "{text}");
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let (_folder, file) = scenario();
    let inside_a_file = format!("{file}/results");
    let text = errors(&["run", &file, "--out", &inside_a_file], 1);
    assert!(text.contains("cannot write"), "{text}");
}

#[test]
fn a_sweep_from_the_command_line_has_numeric_columns() {
    let (_folder, file) = scenario();
    let sweep = ["--sweep", "path.3g.delay=65ms,130ms", "--sweep", "path.wlan.queue=10p,1bdp"];
    let csv = output(&[&["run", &file, "--no-baselines", "--format", "csv"][..], &sweep].concat());
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').take(7).collect()).collect();
    assert_eq!(lines[0][3..7], ["cell.path.3g.delay", "path.3g.delay", "cell.path.wlan.queue", "finished"]);
    assert_eq!(lines[1][3..6], ["65ms", "0.065", "10p"]);
    assert_eq!((lines.len(), &lines[12][3..6]), (1 + 4 * 3, &["130ms", "0.13", "1bdp"][..]));
    let json: Value = serde_json::from_str(&output(&["run", &file, "--format", "json", sweep[0], sweep[1]])).unwrap();
    assert_eq!(
        json["sweep"]["path.3g.delay"],
        serde_json::json!({ "unit": "s", "values": { "65ms": 0.065, "130ms": 0.13 } })
    );
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let words = ["run", &file, "--scheduler", "minrtt,blest", "--out", out.to_str().unwrap()];
    output(&[&words[..], &sweep].concat());
    let lines = |name: &str| fs::read_to_string(out.join(name)).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let (summary, pairs) = (lines("summary.csv"), lines("comparisons.csv"));
    let head = "scheduler,congestion,cell.path.3g.delay,path.3g.delay,cell.path.wlan.queue,metric,n,mean,sd,ci95_low,ci95_high,";
    assert!(summary[0].starts_with(head), "{}", summary[0]);
    assert!(summary[1].starts_with("minrtt,cubic,65ms,0.065,10p,goodput_bps,3,"), "{}", summary[1]);
    assert!(pairs[1].starts_with("blest,minrtt,cubic,65ms,0.065,10p,goodput_bps,3,"), "{}", pairs[1]);
    assert!(!out.join("series").exists() && !out.join("timeline").exists(), "a sweep writes them on request alone");
    let none = folder.path().join("none");
    let words =
        ["run", &file, "--scheduler", "minrtt", "--repeat", "1", "--packets", "0", "--out", none.to_str().unwrap()];
    output(&[&words[..], &sweep].concat());
    assert!(!none.join("series").exists() && !none.join("timeline").exists(), "no packets were requested");
    let zipped = output(&[&["run", &file, "--zip", "--format", "csv", "--no-baselines"][..], &sweep].concat());
    assert_eq!(zipped.lines().count(), 1 + 2 * 3);
}

#[test]
fn what_cannot_be_swept_is_told() {
    let (_folder, file) = scenario();
    let told = |arguments: &[&str]| errors(&[&["run", &file][..], arguments].concat(), 2);
    let text = told(&["--sweep", "path.3g.dely=65ms,130ms"]);
    assert!(text.contains("--sweep") && text.contains("did you mean `delay`?"), "{text}");
    let text = told(&["--sweep", "scheduler=minrtt,blest", "--scheduler", "rr"]);
    assert!(text.contains("--scheduler and --sweep scheduler: only one of them can apply"), "{text}");
    assert!(told(&["--zip"]).contains("--sweep"), "--zip needs a sweep");
    assert!(output(&["explain", "sweep"]).contains("--sweep path.lte.delay=10ms..320ms*2"));
}
