//! `preset`: its keys, what overrides them, and what each does beside the measurement's published numbers.

mod common;

use anabranch_network::{Network, Topology};
use anabranch_scenario::Document;
use anabranch_units::{Direction, Instant};
use common::rendered;

const NAMES: [&str; 7] = ["lte", "5g-mid", "5g-mmwave", "starlink", "wifi-busy", "3g-2012", "dsl"];

fn document(path: &str) -> Document {
    let text = format!("duration = '10s'\n[[path]]\nname = 'a'\n{path}");
    Document::parse("x.toml", &text).unwrap_or_else(|errors| panic!("{}", rendered(&errors)))
}

fn mistake(path: &str) -> String {
    let text = format!("duration = '10s'\n[[path]]\nname = 'a'\n{path}");
    rendered(&Document::parse("x.toml", &text).map(|_| path).expect_err("is refused"))
}

#[test]
fn every_preset_is_a_whole_path_that_check_prints() {
    for name in NAMES {
        let preset = document(&format!("preset = '{name}'\n"));
        let resolved = preset.resolved();
        assert!(!resolved.contains("preset"), "{resolved}");
        assert_eq!(Document::parse("x.toml", &resolved).unwrap().scenario, preset.scenario, "{name}");
    }
    let words = anabranch_scenario::find_keys("path.preset")[0].form.words();
    assert_eq!(words, NAMES);
}

#[test]
fn keys_beside_a_preset_override_it_per_direction_and_within_tables() {
    let resolved = |path: &str| document(path).scenario;
    let plain = "rate = { down = '13mbit', up = '2mbit' }\ndelay = '34.5ms'\nqueue = '500KB'\n\
        arq = { loss = '10%', delay = '5ms', attempts = 3 }\n\
        wake = { down = { idle = '11.576s', delay = '260.1ms' }, up = { idle = '11.576s', delay = '0s' } }\n";
    let over = "preset = 'lte'\nrate = { up = '2mbit' }\narq = { delay = '5ms', attempts = 3 }\nwake = { up = { delay = '0s' } }\n";
    assert_eq!(resolved(over), resolved(plain));
    // A link or a trace takes the place of the preset's bottleneck.
    let link = "preset = 'dsl'\nlink = 'l'\n[[link]]\nname = 'l'\nrate = '3mbit'\n";
    assert_eq!(resolved(link), resolved("delay = '15ms'\nlink = 'l'\n[[link]]\nname = 'l'\nrate = '3mbit'\n"));
}

#[test]
fn mistakes_with_presets_are_located() {
    let near = mistake("preset = 'let'\n");
    assert!(near.contains("x.toml:4:10") && near.contains("did you mean \"lte\"?"), "{near}");
    // A step of 17 ms needs a delay of as much; the step is the preset's.
    let step = mistake("preset = 'starlink'\ndelay = '9ms'\n");
    assert!(step.contains("x.toml:4:10") && step.contains("a step of 17ms around a delay of 9ms"), "{step}");
    let forever = mistake("preset = 'lte'\narq = { loss = '100%' }\n");
    assert!(forever.contains("an ARQ that never gives up"), "{forever}");
}

/// Quantiles of the round trip of a small packet each 200 ms, over many seeds, in milliseconds.
fn round_trips(topology: &Topology, quantiles: &[f64]) -> Vec<f64> {
    let mut all = vec![];
    for seed in 0..40 {
        let mut network = Network::new(topology, seed);
        let mut sent = Vec::new();
        for n in 0..3_000u32 {
            // The first minute is left out: then the device is awake.
            let now = Instant::from_millis(200 * u64::from(n));
            fetch(&mut network, now, &sent, &mut all);
            sent.push(now);
            network.send(now, &mut (), 0, Direction::Up, 84, n);
        }
        fetch(&mut network, Instant::from_millis(700_000), &sent, &mut all);
    }
    all.sort_unstable_by(f64::total_cmp);
    quantiles.iter().map(|q| all[((all.len() - 1) as f64 * q) as usize]).collect()
}

/// Answers what comes to the server, and notes what comes back.
fn fetch(network: &mut Network<u32>, until: Instant, sent: &[Instant], all: &mut Vec<f64>) {
    while let Some(now) = network.poll_timeout().filter(|at| *at <= until) {
        let toward = if network.due(Direction::Down) <= now { Direction::Down } else { Direction::Up };
        while let Some(delivery) = network.poll_deliver(now, toward, now, &mut ()) {
            match delivery.direction {
                Direction::Up => network.send(now, &mut (), 0, Direction::Down, 84, delivery.item),
                Direction::Down if delivery.item >= 300 => {
                    all.push(now.since(sent[delivery.item as usize]).as_secs_f64() * 1e3);
                }
                Direction::Down => {}
            }
        }
    }
}

/// The judge: published quantiles of round trips, and the distance of each preset from them, as `docs/radio.md` states it.
#[test]
fn round_trips_are_those_of_the_measurements() {
    // A quantile, its published value, and the most by which the preset differs.
    type Quantile = (f64, f64, f64);
    let published: [(&str, &[Quantile]); 2] = [
        // Huang et al. 2012: the median.
        ("lte", &[(0.5, 69.5, 0.5)]),
        // Michel et al. 2022: quartiles, and the least.
        ("starlink", &[(0.25, 40.0, 1.0), (0.5, 50.0, 1.0), (0.75, 60.0, 1.0), (0.0, 20.0, 4.0)]),
    ];
    for (name, quantiles) in published {
        let scenario = document(&format!("preset = '{name}'\n")).scenario;
        let at: Vec<f64> = quantiles.iter().map(|(q, ..)| *q).collect();
        let found = round_trips(&scenario.topology, &at);
        println!("{name}: {found:?}");
        for ((q, published, within), found) in quantiles.iter().zip(found) {
            assert!((found - published).abs() <= *within, "{name}, {q}: {found} ms, published {published} ms");
        }
    }
}
