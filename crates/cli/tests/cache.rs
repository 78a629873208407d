//! The cache of single-path baselines: the same bytes with it, without it and after a hit, and no harm by what lies in it.
#![cfg(unix)]

#[expect(dead_code, reason = "others use the rest")]
mod common;

use anabranch_cli::{Answer, Drivers, answer};
use anabranch_run::{Choice, Driver, Job, RunError, RunOutcome, VirtualTime};
use anabranch_trace::Recorder;
use common::FakeLab;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two paths, of which one is random.
const SCENARIO: &str = r#"
name = "short"
repeat = 4
duration = "1s"
warmup = "0s"
[[path]]
name = "lossy"
rate = "2mbit"
delay = "10ms"
loss = "2%"
[[path]]
name = "plain"
rate = "1mbit"
delay = "10ms"
"#;

/// Three paths, of which one is random, and sized traffic.
const SIZED: &str = "repeat = 2\n[[path]]\nname = 'a'\nrate = '8mbit'\ndelay = '10ms'\nloss = '1%'\n\
    [[path]]\nname = 'b'\nrate = '2mbit'\ndelay = '40ms'\nprice = '1/MB'\n[[path]]\nname = 'c'\nrate = '1mbit'\ndelay = '5ms'\n\
    [[traffic]]\nkind = 'bulk'\nsize = '60KB'\n";

/// Virtual time that counts its runs: over all paths, over the random one, over each of the others.
#[derive(Default)]
struct Counting([AtomicUsize; 4]);

impl Driver for Counting {
    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let kind = match job.choice {
            Choice::Multipath(_) => 0,
            Choice::Single(path) => 1 + path,
        };
        self.0[kind].fetch_add(1, Ordering::Relaxed);
        VirtualTime::default().run(job, listener)
    }
}

/// A cache's directory, and a scenario beside it.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("short.toml"), SCENARIO).unwrap();
        Self { folder }
    }

    /// The same with another scenario.
    fn of(text: &str) -> Self {
        let bench = Self::new();
        fs::write(bench.folder.path().join("short.toml"), text).unwrap();
        bench
    }

    /// The runs that `words` lead to, without their cells, and how many were made of each path alone.
    fn runs(&self, words: &[&str]) -> (Vec<Value>, [usize; 3]) {
        let (output, [_, a, b, c]) = self.ask(None, &[&["run", "FILE", "--format", "json"], words].concat());
        let mut results: Value = serde_json::from_str(&output).unwrap();
        let runs = results["runs"].as_array_mut().unwrap();
        runs.iter_mut().for_each(|run| run["cell"] = Value::Null);
        (std::mem::take(runs), [a, b, c])
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn baselines(&self) -> PathBuf {
        self.cache().join("anabranch/baselines")
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = fs::read_dir(self.baselines()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// The output of `words`, and the runs that were made.
    fn ask(&self, cache: Option<&Path>, words: &[&str]) -> (String, [usize; 4]) {
        let driver = Counting::default();
        let drivers = Drivers { virtual_time: &driver, real_time: &FakeLab, preflight: |_| Box::new(FakeLab), cache };
        let file = self.folder.path().join("short.toml").display().to_string();
        let words = std::iter::once("anabranch").chain(words.iter().copied());
        let words = words.map(|word| if word == "FILE" { &file } else { word }.into());
        let Answer { output, errors, code } = answer(words, &drivers, false);
        assert_eq!((errors.as_str(), code), ("", 0));
        (output, driver.0.map(AtomicUsize::into_inner))
    }

    /// The results as JSON, with causes left aside: they make runs over all paths.
    fn run(&self, scheduler: &str) -> (String, [usize; 2]) {
        let (output, [_, lossy, plain, _]) =
            self.ask(Some(&self.cache()), &["run", "FILE", "--format", "json", "--scheduler", scheduler]);
        (output, [lossy, plain])
    }

    /// The same without a cache.
    fn without(&self, scheduler: &str) -> String {
        self.ask(None, &["run", "FILE", "--format", "json", "--scheduler", scheduler]).0
    }
}

#[test]
fn results_are_the_same_with_a_cache_without_one_and_after_a_hit() {
    let bench = Bench::new();
    assert_eq!(bench.run("minrtt"), (bench.without("minrtt"), [4, 1]), "no seed matters to the other path");
    for scheduler in ["minrtt", "blest", "redundant"] {
        assert_eq!(bench.run(scheduler), (bench.without(scheduler), [0, 0]), "{scheduler}");
    }
    let words = ["run", "FILE", "--format", "json", "--scheduler", "blest"];
    let more = [&words[..], &["--repeat", "6"]].concat();
    let (output, runs) = bench.ask(Some(&bench.cache()), &more);
    assert_eq!((runs[1], runs[2]), (2, 0));
    assert_eq!(output, bench.ask(None, &more).0);
    let (output, runs) = bench.ask(Some(&bench.cache()), &[&words[..], &["--no-cache"]].concat());
    assert_eq!((output, runs[1] > 0), (bench.without("blest"), true));
    // Another congestion control and another loss have baselines of their own.
    for other in [["--congestion", "bbr"], ["--set", "path.lossy.loss=3%"]] {
        let (_, runs) = bench.ask(Some(&bench.cache()), &[&words[..], &other].concat());
        assert_eq!(runs[1], 4, "{other:?}");
    }
}

#[test]
fn results_with_files_are_the_same_after_a_hit() {
    let bench = Bench::new();
    let of = |cache: Option<&Path>, name: &str| {
        let out = bench.folder.path().join(name);
        let (_, runs) = bench.ask(cache, &["run", "FILE", "--out", out.to_str().unwrap()]);
        (fs::read(out.join("results.json")).unwrap(), fs::read(out.join("runs.csv")).unwrap(), runs)
    };
    let cache = bench.cache();
    let (results, runs, _) = of(None, "without");
    let first = of(Some(&cache), "first");
    let second = of(Some(&cache), "second");
    assert!((&first.0, &first.1) == (&results, &runs) && (&second.0, &second.1) == (&results, &runs));
    // The first run of each row is listened to, and so made; the others of the plain path have its outcome.
    assert_eq!((&first.2[1..], &second.2[1..]), (&[4, 1, 0][..], &[1, 1, 0][..]));
}

#[test]
fn a_comparison_takes_its_baselines_from_the_cache() {
    let bench = Bench::new();
    let grid = bench.folder.path().join("grid");
    fs::create_dir(&grid).unwrap();
    fs::write(grid.join("short.toml"), SCENARIO.replace("4", "2")).unwrap();
    let words = |scheduler: &'static str| {
        let grid = grid.to_str().unwrap();
        [
            "compare",
            "--grid",
            grid,
            "--traffic",
            "256 KB",
            "--congestion",
            "cubic",
            "--format",
            "json",
            "--scheduler",
            scheduler,
        ]
    };
    let (first, made) = bench.ask(Some(&bench.cache()), &words("minrtt"));
    assert_eq!((made[1], made[2]), (2, 1));
    let (second, made) = bench.ask(Some(&bench.cache()), &words("minrtt"));
    assert_eq!((second, &made[1..]), (first, &[0, 0, 0][..]));
    let (other, made) = bench.ask(Some(&bench.cache()), &words("blest"));
    assert_eq!((other, &made[1..]), (bench.ask(None, &words("blest")).0, &[0, 0, 0][..]));
}

#[test]
fn what_is_damaged_or_foreign_in_the_cache_is_made_again() {
    let bench = Bench::new();
    let results = bench.without("minrtt");
    bench.run("minrtt");
    assert_eq!(bench.files().len(), 2);
    for damage in [
        |text: String| text.replacen("goodput_bps\":1", "goodput_bps\":2", 9),
        |text: String| text[..text.len() / 2].to_owned(),
        |_: String| "echo taken\n".repeat(1000),
        |_: String| String::new(),
    ] {
        for file in bench.files() {
            fs::write(&file, damage(fs::read_to_string(&file).unwrap())).unwrap();
        }
        let (output, made) = bench.run("minrtt");
        assert_eq!(output, results);
        assert!(made[0] > 0, "{made:?}");
        assert_eq!(bench.run("minrtt").1, [0, 0], "it is mended");
    }
}

#[test]
fn a_trace_with_other_content_has_baselines_of_its_own() {
    let bench = Bench::new();
    let scenario = SCENARIO.replace("rate = \"2mbit\"", "trace = { down = \"link\", up = \"link\" }");
    fs::write(bench.folder.path().join("short.toml"), scenario).unwrap();
    for opportunities in ["5\n10\n", "5\n12\n"] {
        fs::write(bench.folder.path().join("link"), opportunities).unwrap();
        let (output, [lossy, _]) = bench.run("minrtt");
        assert_eq!((lossy, output == bench.without("minrtt")), (4, true), "{opportunities:?}");
    }
}

#[test]
fn commands_at_the_same_time_have_the_same_results() {
    let bench = Bench::new();
    let results = bench.without("minrtt");
    for _ in 0..4 {
        let both =
            std::thread::scope(|scope| [(); 3].map(|()| scope.spawn(|| bench.run("minrtt").0)).map(|it| it.join()));
        both.into_iter().for_each(|output| assert_eq!(output.unwrap(), results));
    }
    assert_eq!(bench.run("minrtt"), (results, [0, 0]));
}

#[test]
fn a_command_makes_no_baseline_twice_without_a_cache() {
    let bench = Bench::new();
    let grid = bench.folder.path().join("grid");
    fs::create_dir(&grid).unwrap();
    fs::write(grid.join("short.toml"), SCENARIO.replace("repeat = 4", "repeat = 2")).unwrap();
    let compare = |congestion: &str| {
        let grid = grid.to_str().unwrap();
        let words = ["compare", "--grid", grid, "--traffic", "256 KB", "--scheduler", "minrtt", "--format", "json"];
        let (output, [_, lossy, plain, _]) = bench.ask(None, &[&words[..], &["--congestion", congestion]].concat());
        let found: Value = serde_json::from_str(&output).unwrap();
        (found["frontiers"].as_array().unwrap().clone(), [lossy, plain])
    };
    // Both have the same single-path form.
    let (both, made) = compare("lia,olia");
    assert_eq!(made, [2, 1]);
    assert_eq!(both, [compare("lia").0, compare("olia").0].concat());
}

#[test]
fn each_cell_of_a_sweep_has_the_results_of_a_run_of_its_own() {
    let unlimited = format!("duration = '1s'\n{}", SIZED.replace("size = '60KB'\n", ""));
    let frames =
        SIZED.replace("kind = 'bulk'\nsize = '60KB'", "kind = 'frames'\ninterval = '40ms'\nsize = '4KB'\ncount = 20");
    let keys = [
        "path.b.delay=40ms,80ms",
        "path.b.rate=2mbit,30mbit",
        "path.b.loss=0%,20%",
        "path.b.queue=10p,20p",
        "path.b.price=1/MB,2/MB",
        "path.b.backup=false,true",
        "path.b.start=0s,100ms",
        "recv_buffer=20KB,1MB",
        "first_path=a,b",
        "repeat=1,2",
        "seed=1,2",
    ];
    for text in [SIZED, &unlimited, &frames] {
        let bench = Bench::of(text);
        for key in keys {
            let (swept, _) = bench.runs(&["--sweep", key]);
            let (name, values) = key.split_once('=').unwrap();
            let alone = |value: &str| bench.runs(&["--set", &format!("{name}={value}")]).0;
            let alone: Vec<Value> = values.split(',').flat_map(alone).collect();
            assert!(swept == alone, "{key}, {text}");
        }
    }
}

#[test]
fn baselines_that_a_key_cannot_change_are_run_once() {
    let singles = |text: &str, sweep: &str| Bench::of(text).runs(&["--sweep", sweep]).1;
    // Two seeds of a; no seed matters to the others. Only b is another in each cell.
    assert_eq!(singles(SIZED, "path.b.delay=40ms..80ms/5"), [2, 5, 1]);
    assert_eq!(singles(SIZED, "recv_buffer=20KB..60KB/5"), [10, 5, 5]);
    assert_eq!(singles(SIZED, "scheduler=minrtt,blest"), [2, 1, 1]);
    // Other flows on b are the same only if b is.
    let crossed = format!("{SIZED}[[cross]]\nkind = 'udp'\npath = 'b'\nrate = '100kbit'\n");
    assert_eq!(singles(&crossed, "path.b.delay=40ms..80ms/5"), [10, 5, 5]);
    // A flow over a link may have the delay of another path across it: all paths count, with the losses of a.
    let link = "[[link]]\nname = 'l'\nrate = '1mbit'\n";
    let cross = "[[cross]]\nkind = 'tcp'\nlink = 'l'\n";
    let competing =
        SIZED.replace("rate = '2mbit'", "link = 'l'").replace("rate = '1mbit'", "link = 'l'") + link + cross;
    assert_eq!(singles(&competing, "path.b.delay=10ms..15ms/5"), [10, 10, 10]);
    let shared = SIZED.replace("name = 'c'\nrate = '1mbit'", "name = 'c'\nlink = 'l'") + link;
    assert_eq!(singles(&shared, "link.l.rate=1mbit..5mbit/5"), [10, 5, 5]);
}

#[test]
fn a_link_in_the_cache_is_neither_read_nor_written_through() {
    let bench = Bench::new();
    let results = bench.run("minrtt").0;
    let mine = bench.folder.path().join("mine");
    fs::write(&mine, "mine\n").unwrap();
    for file in bench.files() {
        fs::remove_file(&file).unwrap();
        symlink(&mine, &file).unwrap();
    }
    assert_eq!(bench.run("minrtt"), (results.clone(), [4, 1]));
    for file in bench.files() {
        fs::remove_file(&file).unwrap();
        fs::hard_link(&mine, &file).unwrap();
    }
    assert_eq!(bench.run("minrtt"), (results.clone(), [4, 1]));
    // The directories themselves.
    let theirs = bench.folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    for folder in [bench.baselines(), bench.cache().join("anabranch")] {
        fs::remove_dir_all(&folder).unwrap();
        symlink(&theirs, &folder).unwrap();
        assert_eq!(bench.run("minrtt"), (results.clone(), [4, 1]));
    }
    assert_eq!((fs::read_to_string(&mine).unwrap().as_str(), fs::read_dir(&theirs).unwrap().count()), ("mine\n", 0));
}

#[test]
fn a_cache_in_which_others_may_write_is_not_used() {
    let bench = Bench::new();
    let results = bench.run("minrtt").0;
    assert_eq!(fs::metadata(bench.baselines()).unwrap().permissions().mode() & 0o777, 0o700);
    for mode in [0o720, 0o702] {
        fs::set_permissions(bench.baselines(), Permissions::from_mode(mode)).unwrap();
        assert_eq!(bench.run("minrtt"), (results.clone(), [4, 1]), "{mode:o}");
    }
    fs::set_permissions(bench.baselines(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(bench.run("minrtt").1, [0, 0]);
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(bench.baselines(), Some(65_534), None).unwrap();
        assert_eq!(bench.run("minrtt"), (results, [4, 1]), "another user's");
    }
}

#[test]
fn a_cache_that_cannot_be_had_keeps_no_command_from_its_results() {
    let bench = Bench::new();
    fs::write(bench.cache(), "a file\n").unwrap();
    assert_eq!(bench.run("minrtt"), (bench.without("minrtt"), [4, 1]));
}

#[test]
fn the_environment_names_the_cache() {
    let bench = Bench::new();
    let ran = |variables: &[(&str, &Path)]| {
        let mut program = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        program.env_remove("ANABRANCH_NO_CACHE").env_remove("XDG_CACHE_HOME").env("HOME", bench.folder.path());
        program.envs(variables.iter().copied()).current_dir(bench.folder.path());
        program.args(["run", "short.toml"]).assert().success();
    };
    let count = |folder: &str| {
        fs::read_dir(bench.folder.path().join(folder).join("anabranch/baselines")).map_or(0, Iterator::count)
    };
    let own = bench.folder.path().join("own");
    ran(&[("ANABRANCH_NO_CACHE", Path::new("1")), ("XDG_CACHE_HOME", &own)]);
    ran(&[("HOME", &bench.folder.path().join("missing"))]);
    assert_eq!((count("own"), count(".cache"), count("missing/.cache")), (0, 0, 0));
    ran(&[("ANABRANCH_NO_CACHE", Path::new("")), ("XDG_CACHE_HOME", &own)]);
    assert_eq!((count("own"), count(".cache")), (2, 0));
    ran(&[("XDG_CACHE_HOME", Path::new("relative"))]);
    assert_eq!((count(".cache"), count("relative")), (2, 0));
}
