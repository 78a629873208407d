//! The pictures and the table of `docs/presets.md` are what the presets do. `BLESS=1` writes them.

#![expect(clippy::disallowed_methods, reason = "the page and its pictures are files of the repository")]

use anabranch_network::{Bottleneck, Network, Topology};
use anabranch_report::plot::{Plot, svg};
use anabranch_scenario::{NoFiles, Source, find_keys, read};
use anabranch_trace::{DropCause, Event, LinkEvent, Origin, Recorder};
use anabranch_units::{Direction, Instant};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Seeds of the distributions of round trips, and seconds of each.
const SEEDS: u64 = 20;
const SECONDS: u64 = 90;
/// Milliseconds between two probes, and those at the beginning that are left out of distributions: devices sleep in them.
const PROBE: u64 = 20;
const AWAKE: u64 = 3_000;
/// Packets of the saturated direction, at most, and milliseconds over which rate and loss are taken.
const PACKETS: u64 = 300_000;
const BIN: u64 = 100;

/// Published figures of a preset: quantiles of the round trip in milliseconds, and of the rate towards the client in Mbit/s.
struct Published {
    name: &'static str,
    round_trip: &'static [(f64, f64)],
    rate: &'static [(f64, f64)],
}

const fn none(name: &'static str) -> Published {
    Published { name, round_trip: &[], rate: &[] }
}

const ALL: [Published; 7] = [
    // Huang et al., MobiSys 2012: medians.
    Published { name: "lte", round_trip: &[(69.5, 0.5)], rate: &[(13.0, 0.5)] },
    none("5g-mid"),
    none("5g-mmwave"),
    // Michel et al., IMC 2022: the least and quartiles.
    Published { name: "starlink", round_trip: &[(20.0, 0.0), (40.0, 0.25), (50.0, 0.5), (60.0, 0.75)], rate: &[] },
    none("wifi-busy"),
    none("3g-2012"),
    none("dsl"),
];

fn topology(preset: &str) -> Topology {
    let text = format!("duration = '10s'\n[[path]]\nname = 'a'\npreset = '{preset}'\n");
    read(&Source { name: preset.into(), text }, &[], &NoFiles).expect("a preset").scenario.topology
}

/// Times of sending in seconds, and round trips in milliseconds, of a packet of 84 bytes per 20 ms that the server answers.
fn round_trips(topology: &Topology, seed: u64, seconds: u64) -> Vec<(f64, f64)> {
    let mut network = Network::new(topology, seed);
    let mut all = vec![];
    let sent = |n: u32| Instant::from_millis(PROBE * u64::from(n));
    let mut fetch = |network: &mut Network<u32>, until: Instant| {
        while let Some(now) = network.poll_timeout().filter(|at| *at <= until) {
            let toward = if network.due(Direction::Down) <= now { Direction::Down } else { Direction::Up };
            while let Some(delivery) = network.poll_deliver(now, toward, now, &mut ()) {
                match delivery.direction {
                    Direction::Up => network.send(now, &mut (), 0, Direction::Down, 84, delivery.item),
                    Direction::Down => {
                        let left = sent(delivery.item);
                        all.push((left.as_nanos() as f64 / 1e9, now.since(left).as_secs_f64() * 1e3));
                    }
                }
            }
        }
    };
    for n in 0..(seconds * 1_000 / PROBE) as u32 {
        fetch(&mut network, sent(n));
        network.send(sent(n), &mut (), 0, Direction::Up, 84, n);
    }
    fetch(&mut network, Instant::from_millis(1_000_000_000));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Packets that the link loses, by time.
#[derive(Default)]
struct Lost(Vec<Instant>);

impl Recorder for Lost {
    fn record(&mut self, now: Instant, _origin: Origin, event: &Event) {
        if let Event::Link { what: LinkEvent::Dropped(DropCause::Loss), .. } = event {
            self.0.push(now);
        }
    }
}

/// Mbit/s that arrive, and per cent of packets that the link loses, in each 100 ms of a direction that is always full.
fn saturated(topology: &Topology) -> [Vec<(f64, f64)>; 2] {
    let Bottleneck::Own(own) = &topology.paths[0].down.bottleneck else { panic!("presets have their own") };
    // A tenth more than the rate: the queue is full, and the rest is dropped before the link.
    let gap = 1_500 * 8 * 1_000_000_000 / (own.capacity.initial_rate().as_bps() * 11 / 10);
    let packets = PACKETS.min(60_000_000_000 / gap);
    let bins = (packets * gap / 1_000_000 / BIN) as usize;
    let (mut network, mut lost) = (Network::new(topology, 1), Lost::default());
    let mut arrived = vec![0.0f64; bins];
    let bin = |at: Instant| (at.as_nanos() / 1_000_000 / BIN) as usize;
    for n in 0..packets {
        let now = Instant::from_nanos(n * gap);
        while let Some(at) = network.poll_timeout().filter(|at| *at <= now) {
            while network.poll_deliver(at, Direction::Down, at, &mut lost).is_some() {
                arrived.get_mut(bin(at)).into_iter().for_each(|bin| *bin += 1.0);
            }
        }
        network.send(now, &mut lost, 0, Direction::Down, 1500, n as u32);
    }
    let mut gone = vec![0.0f64; bins];
    lost.0.iter().for_each(|at| gone.get_mut(bin(*at)).into_iter().for_each(|bin| *bin += 1.0));
    let time = |n: usize| n as f64 * BIN as f64 / 1e3;
    let rate = arrived.iter().enumerate().map(|(n, it)| (time(n), it * 12e3 / (BIN as f64 * 1e3)));
    let part = |gone: f64, came: f64| if gone > 0.0 { 100.0 * gone / (gone + came) } else { 0.0 };
    let loss = gone.iter().zip(&arrived).enumerate().map(|(n, (gone, came))| (time(n), part(*gone, *came)));
    [rate.collect(), loss.collect()]
}

/// The distribution function as a few hundred points.
fn distribution(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (n, last) = (values.len() as f64, values.len() - 1);
    let mut points: Vec<(f64, f64)> =
        (0..=200).map(|k| k * last / 200).map(|k| (values[k], (k + 1) as f64 / n)).collect();
    points.insert(0, (values[0], 0.0));
    points
}

/// The least and the greatest of each of some 200 groups.
fn band(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let ends = |group: &[(f64, f64)]| {
        let ordered = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let [least, greatest] = [group.iter().min_by(ordered), group.iter().max_by(ordered)];
        [least, greatest].map(|it| it.map(|(_, value)| (group[0].0, *value)))
    };
    points.chunks(points.len().div_ceil(200).max(1)).flat_map(ends).flatten().collect()
}

/// Figures of a preset.
struct Found {
    picture: String,
    round_trips: Vec<f64>,
    rates: Vec<f64>,
    loss: f64,
}

fn found(published: &Published) -> Found {
    let topology = topology(published.name);
    let over_time = round_trips(&topology, 1, 60);
    let all = (0..SEEDS).flat_map(|seed| round_trips(&topology, seed, SECONDS));
    let awake = all.filter(|(at, _)| *at * 1e3 >= AWAKE as f64).map(|(_, it)| it);
    let mut trips: Vec<f64> = awake.collect();
    trips.sort_by(f64::total_cmp);
    let [rate, loss] = saturated(&topology);
    let settled: Vec<f64> = rate.iter().filter(|(at, _)| *at * 1e3 >= AWAKE as f64).map(|(_, it)| *it).collect();
    let panel = |title: &str, x: &str, curve: Vec<(f64, f64)>, marks: &[(f64, f64)]| Plot {
        title: title.into(),
        x: x.into(),
        curves: vec![curve],
        marks: marks.to_vec(),
    };
    let rows = [
        vec![
            panel("round trip over time, ms", "s since the first packet", band(&over_time), &[]),
            panel("rate over time, Mbit/s", "s since the first packet", rate.clone(), &[]),
            panel("loss over time, %", "s since the first packet", loss.clone(), &[]),
        ],
        vec![
            panel("share of round trips below, awake", "ms", distribution(trips.iter().copied()), published.round_trip),
            panel("share of 100 ms below, awake", "Mbit/s", distribution(settled.iter().copied()), published.rate),
            panel("share of 100 ms below", "% lost", distribution(loss.iter().map(|(_, it)| *it)), &[]),
        ],
    ];
    let picture =
        svg(&rows, &format!("Preset {}: round trip, rate and loss, over time and as distributions", published.name));
    let loss = loss.iter().map(|(_, it)| it).sum::<f64>() / loss.len() as f64;
    Found { picture, round_trips: trips, rates: settled, loss }
}

fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * q) as usize]
}

/// Bounds of the Kolmogorov–Smirnov distance to a distribution of which quantiles `(x, F(x))` are known, by rising x. Below: the greatest
/// difference at a quantile, where the step of an atom counts on both sides. Above: between two quantiles the other distribution
/// is somewhere between theirs.
fn distance(sorted: &[f64], quantiles: &[(f64, f64)]) -> (f64, f64) {
    let n = sorted.len() as f64;
    let below = |x: f64| sorted.partition_point(|it| *it < x) as f64 / n;
    let within = |x: f64| sorted.partition_point(|it| *it <= x) as f64 / n;
    let least = quantiles.iter().map(|(x, q)| (below(*x) - q).max(q - within(*x)).max(0.0)).fold(0.0, f64::max);
    let ends = [(f64::NEG_INFINITY, 0.0)].into_iter().chain(quantiles.iter().copied()).chain([(f64::INFINITY, 1.0)]);
    let ends: Vec<(f64, f64)> = ends.collect();
    let between = |two: &[(f64, f64)]| (below(two[1].0) - two[0].1).max(two[1].1 - within(two[0].0));
    let most = ends.windows(2).map(between).fold(least, f64::max);
    (least, most.min(1.0))
}

#[test]
fn the_distance_is_between_its_bounds() {
    let uniform: Vec<f64> = (0..=1000).map(|n| f64::from(n) / 1000.0).collect();
    let (least, most) = distance(&uniform, &[(0.25, 0.25), (0.5, 0.5), (0.75, 0.75)]);
    assert!(least < 2e-3 && (most - 0.25).abs() < 2e-3, "{least} {most}");
    let (least, _) = distance(&uniform, &[(0.9, 0.5)]);
    assert!((least - 0.4).abs() < 2e-3, "{least}");
    // All of it is at one place, below the published median; the other distribution may be above that place altogether.
    assert_eq!(distance(&[1.0; 10], &[(2.0, 0.5)]), (0.5, 1.0));
}

fn line(published: &Published, found: &Found) -> String {
    let of = |values: &[f64]| [0.0, 0.25, 0.5, 0.75, 0.95].map(|q| format!("{:.1}", quantile(values, q))).join(", ");
    let distance = match published.round_trip {
        [] => "–".into(),
        quantiles => {
            let (least, most) = distance(&found.round_trips, quantiles);
            format!("{least:.2} to {most:.2}")
        }
    };
    let mut rates = found.rates.clone();
    rates.sort_by(f64::total_cmp);
    let (name, trips, rate) = (published.name, of(&found.round_trips), quantile(&rates, 0.5));
    format!("| [`{name}`](#{name}) | {trips} | {rate:.1} | {:.2} | {distance} |\n", found.loss)
}

fn docs(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Writes `text` with `BLESS=1`, and compares it otherwise.
fn hold(name: &str, text: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(docs(name), text).expect("docs can be written");
    }
    let written = std::fs::read_to_string(docs(name)).unwrap_or_default();
    assert!(written == text, "{name} differs: BLESS=1 cargo test -p anabranch-report --test presets");
}

#[test]
fn the_page_shows_what_the_presets_do() {
    assert_eq!(ALL.map(|published| published.name).to_vec(), find_keys("path.preset")[0].form.words());
    let mut table = String::from(
        "| preset | round trip, ms: least, quartiles, 95 % | rate, Mbit/s: median | lost, % | distance |\n|---|---|--:|--:|---|\n",
    );
    for published in &ALL {
        let found = found(published);
        hold(&format!("presets-{}.svg", published.name), &found.picture);
        let _ = write!(table, "{}", line(published, &found));
    }
    let page = std::fs::read_to_string(docs("presets.md")).expect("docs/presets.md");
    let [open, close] = ["<!-- presets -->\n", "<!-- /presets -->\n"];
    let (before, rest) = page.split_once(open).expect("the mark before the table");
    let (_, after) = rest.split_once(close).expect("the mark behind it");
    hold("presets.md", &format!("{before}{open}\n{table}\n{close}{after}"));
}
