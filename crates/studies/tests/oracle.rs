//! The oracle is a bound: no scheduler and no path alone beats it, whichever path opens the connection.
//!
//! Over the reference grid, over path sets that waver, and over random networks. There is no tolerance where every byte is timed: transfers, pages and
//! frames. Unlimited data is bounded in expectation only: with random loss, a run's share of lost packets may be smaller by
//! chance; three standard deviations are allowed for.

use anabranch_network::LossSpec;
use anabranch_run::{Choice, Driver, Job, Options, Plan, Variant, VirtualTime, bounds};
use anabranch_scenario::{Cell, Document, PlugIn, Scenario};
use anabranch_studies::frontier::{APPLICATIONS, applications, with_first};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// None.
const TOLERANCE: f64 = 0.0;

fn plug_in(name: &str) -> PlugIn {
    PlugIn { name: name.to_owned(), parameters: Vec::new() }
}

/// The part by which luck may exceed the expectation: three standard deviations of the share of packets that arrive, over
/// the paths of most loss.
fn luck(scenario: &Scenario, goodput: f64) -> f64 {
    let loss = |loss: &LossSpec| match *loss {
        LossSpec::Bernoulli(p) => p,
        // A burst counts as one draw: the state's length is not known here.
        LossSpec::GilbertElliott { .. } => 0.5,
        LossSpec::None => 0.0,
    };
    let most = scenario.topology.paths.iter().map(|path| loss(&path.down.loss)).fold(0.0, f64::max);
    let packets = goodput * scenario.duration.map_or(1.0, |d| d.as_secs_f64()) / 8.0 / 1400.0;
    3.0 * (most * (1.0 - most) / packets.max(1.0)).sqrt()
}

/// Runs `choice` and says by how much it is better than the bound over all paths, as a part of it; below zero if it is not.
fn above(scenario: &Arc<Scenario>, choice: Choice, congestion: &str, seed: u64) -> f64 {
    let seeded = Scenario { seed, ..(**scenario).clone() };
    let variant = Variant { cell: Cell::default(), scenario: Arc::new(seeded) };
    let options = Options { baselines: false, schedulers: vec![plug_in("minrtt")], ..Options::default() };
    let bound = bounds(&Plan::new(&[variant], &options)).unwrap().remove(0);
    let job = Job { congestion: plug_in(congestion), ..Job::of(scenario.clone(), choice, seed) };
    let outcome = VirtualTime::default().run(&job, &mut ()).unwrap();
    let Some(reached) = outcome.metrics.get(bound.metric).copied() else { return -1.0 };
    let best = bound.value.expect("what arrived has a bound");
    match bound.metric {
        "goodput_bps" => reached / best - 1.0 - luck(scenario, reached),
        // The bound is of the frames that were written, which only the run knows: its ratio, never shown above 1.
        "app_delay_mean_s" => outcome.metrics["oracle_ratio"] - 1.0 + f64::EPSILON,
        _ => best / reached - 1.0,
    }
}

/// Every choice of schedulers, or of one path alone, for `scenario` opened on each of its paths: the greatest excess, and
/// where.
fn greatest(scenario: &Scenario, schedulers: &[&str], congestion: &str, seed: u64) -> (f64, String) {
    let paths = scenario.topology.paths.len();
    let mut worst = (f64::NEG_INFINITY, String::new());
    for first in 0..paths {
        let scenario = Arc::new(with_first(scenario, first));
        let multipath = schedulers.iter().map(|name| Choice::Multipath(plug_in(name)));
        // A path alone does not care which is called the first.
        let alone = (0..paths).filter(|_| first == 0).map(Choice::Single);
        for choice in multipath.chain(alone) {
            let excess = above(&scenario, choice.clone(), congestion, seed);
            if excess > worst.0 {
                worst = (excess, format!("{choice:?}, path {first} first"));
            }
        }
    }
    worst
}

/// The path sets of the reference grid, and those that waver.
#[expect(clippy::disallowed_methods, reason = "a test reads the repository's own files")]
fn grid() -> Vec<Scenario> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let inside = |folder: &str| std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = ["frontier", "wavering"].into_iter().flat_map(inside).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).unwrap();
        Document::parse(&file.to_string_lossy(), &text).unwrap().cells.remove(0).1
    };
    files.iter().map(read).collect()
}

/// Asserts the bound over the grid.
fn judge(schedulers: &[&str], traffic: &[&str], congestions: &[&str]) {
    for (set, seed) in grid().iter().zip(1..) {
        for application in applications(set, traffic) {
            for congestion in congestions {
                let (excess, which) = greatest(&application.scenario, schedulers, congestion, seed);
                assert!(excess <= TOLERANCE, "{}, {}, {congestion}, {which}: {excess}", set.name, application.name);
            }
        }
    }
}

#[test]
fn short_transfers_over_the_grid_do_not_beat_the_oracle() {
    assert!(grid().len() >= 70);
    judge(&["minrtt", "fdps", "redundant", "roundrobin"], &["16 KB", "256 KB"], &["cubic"]);
}

#[test]
#[ignore = "the whole grid"]
fn nothing_over_the_grid_beats_the_oracle() {
    let all: Vec<&str> = anabranch_schedulers::all().iter().map(|entry| entry.name).collect();
    judge(&all, &APPLICATIONS, &["cubic"]);
}

#[test]
#[ignore = "the whole grid"]
fn nor_with_another_congestion_control() {
    judge(&["minrtt", "fdps", "redundant"], &APPLICATIONS, &["lia", "bbr"]);
}

/// A path: rate in kbit/s, delays in ms towards the client and back, loss, an outage, a rate and a delay that it has later.
type AnyPath = (u32, (u32, u32), f64, Option<(u32, u32)>, Option<(u32, u32, u32)>);

fn any_path() -> impl Strategy<Value = AnyPath> {
    let loss = prop_oneof![3 => Just(0.0), 1 => 0.001..0.05];
    let outage = prop::option::of((0..2000u32, 50..500u32));
    let change = prop::option::of((100..3000u32, 500..20_000u32, 1..80u32));
    (500..20_000u32, (0..80u32, 0..80u32), loss, outage, change)
}

fn text(paths: &[AnyPath], shared: bool, (traffic, flows): (&str, u32)) -> String {
    let mut text = String::new();
    for (n, (rate, (down, up), loss, outage, change)) in paths.iter().enumerate() {
        let bottleneck = match shared && n > 0 {
            true => "link = \"common\"".to_owned(),
            false => format!("rate = \"{rate}kbit\"\nqueue = \"50p\""),
        };
        text += &format!("[[path]]\nname = \"p{n}\"\n{bottleneck}\nloss = {loss:?}\n");
        text += &format!("delay = {{ down = \"{down}ms\", up = \"{up}ms\" }}\n");
        if let Some((from, long)) = outage {
            text += &format!("outage = [[\"{from}ms\", \"{}ms\"]]\n", from + long);
        }
        if let Some((at, rate, delay)) = change {
            let set = |key: &str, value: String| {
                format!("[[timeline]]\nat = \"{at}ms\"\nset = \"path.p{n}.{key}\"\nvalue = \"{value}\"\n")
            };
            text += &set("delay", format!("{delay}ms"));
            if !(shared && n > 0) {
                text += &set("rate", format!("{rate}kbit"));
            }
        }
    }
    if shared && paths.len() > 1 {
        text += "[[link]]\nname = \"common\"\nrate = \"6mbit\"\nqueue = \"50p\"\n";
    }
    format!("start_jitter = \"500ms\"\nduration = \"4s\"\n{text}[[traffic]]\n{traffic}\nflows = {flows}\n")
}

const SCHEDULERS: [&str; 6] = ["minrtt", "fdps", "redundant", "roundrobin", "otias", "linux-default"];
const TRAFFIC: [&str; 4] = [
    "kind = \"bulk\"",
    "kind = \"bulk\"\nsize = 20000",
    "kind = \"bulk\"\nsize = 300000",
    "kind = \"frames\"\nsize = 6000\ninterval = \"40ms\"",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_over_random_networks_beats_the_oracle(
        paths in prop::collection::vec(any_path(), 1..4),
        shared in any::<bool>(),
        traffic in prop::sample::select(&TRAFFIC[..]),
        flows in prop_oneof![3 => Just(1u32), 1 => 2..5u32],
        scheduler in prop::sample::select(&SCHEDULERS[..]),
        congestion in prop::sample::select(&["cubic", "lia", "bbr"][..]),
        seed in 0..1000u64,
    ) {
        let text = text(&paths, shared, (traffic, flows));
        let scenario = Document::parse("random", &text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).cells.remove(0).1;
        let (excess, which) = greatest(&scenario, &[scheduler], congestion, seed);
        prop_assert!(excess <= TOLERANCE, "{which}, {congestion}: {excess}\n{text}");
    }
}
