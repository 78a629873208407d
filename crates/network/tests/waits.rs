//! Mean waits in a drop-tail bottleneck against queueing theory: M/D/1 with packets of one size, M/G/1 with packets of several.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on a host")]

mod common;

use anabranch_network::{Bottleneck, BottleneckSpec, CapacitySpec, Network, QueueSpec, Topology};
use anabranch_units::{Direction, Duration, Instant, Rate, Rng};
use common::{path, way};
use std::collections::VecDeque;

const RATE_BPS: u64 = 12_000_000;
/// Batches whose means give the standard error.
const BATCHES: usize = 100;
/// Deviation from the theory that is allowed.
const TOLERANCE: f64 = 0.01;
const FIXED: &[(u32, f64)] = &[(1500, 1.0)];
/// Sizes and their shares. The mix has a coefficient of variation above 1, so that its waits are far from those of one size.
const MIXED: &[(u32, f64)] = &[(40, 0.6), (576, 0.2), (1500, 0.2)];

/// Seconds at the bottleneck.
fn service_s(size: u32) -> f64 {
    8.0 * f64::from(size) / RATE_BPS as f64
}

/// The mean of `power` of the service time.
fn moment(sizes: &[(u32, f64)], power: i32) -> f64 {
    sizes.iter().map(|(size, share)| share * service_s(*size).powi(power)).sum()
}

/// Mean wait at this load, in seconds: λ·E[S²] / (2·(1 − ρ)), of Pollaczek and Khinchine.
fn expected_s(load: f64, sizes: &[(u32, f64)]) -> f64 {
    load / moment(sizes, 1) * moment(sizes, 2) / (2.0 * (1.0 - load))
}

fn draw(rng: &mut Rng, sizes: &[(u32, f64)]) -> u32 {
    let mut left = rng.unit();
    let chosen = sizes.iter().find(|(_, share)| {
        left -= share;
        left < 0.0
    });
    chosen.unwrap_or(&sizes[sizes.len() - 1]).0
}

/// Waits of Poisson arrivals in a bottleneck without a bound: the mean of each batch, in seconds.
fn waits_s(load: f64, sizes: &[(u32, f64)], arrivals: usize) -> Vec<f64> {
    let spec = BottleneckSpec::new(CapacitySpec::Fixed(Rate::from_bps(RATE_BPS)), QueueSpec::Packets(1 << 20));
    let paths = vec![path("a", way(Bottleneck::Own(spec), Duration::ZERO))];
    let mut network: Network<u32> = Network::new(&Topology { paths, links: vec![] }, 1);
    let mut rng = Rng::stream(1, "waits");
    let gap_s = moment(sizes, 1) / load;
    let (mut at_s, mut sums, mut seen) = (0.0, vec![0.0; BATCHES], 0);
    // Arrival and size of what is inside, first in, first out.
    let mut inside: VecDeque<(Instant, u32)> = VecDeque::new();
    for number in 0..=arrivals {
        at_s += gap_s * rng.exponential();
        // After the last arrival everything leaves.
        let now = if number < arrivals { Instant::from_nanos((1e9 * at_s) as u64) } else { Instant::MAX };
        while let Some(due) = network.poll_timeout().filter(|due| *due <= now) {
            while network.poll_deliver(due, Direction::Down, due, &mut ()).is_some() {
                let (came, size) = inside.pop_front().expect("what leaves has come");
                sums[seen * BATCHES / arrivals] += due.since(came).as_secs_f64() - service_s(size);
                seen += 1;
            }
        }
        if number < arrivals {
            let size = draw(&mut rng, sizes);
            network.send(now, &mut (), 0, Direction::Down, size, 0);
            inside.push_back((now, size));
        }
    }
    assert_eq!(seen, arrivals, "nothing is dropped");
    sums.iter().map(|sum| sum * BATCHES as f64 / arrivals as f64).collect()
}

/// The mean and its standard error, both as parts of `expected`.
fn against(expected: f64, batches: &[f64]) -> (f64, f64) {
    let count = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / count;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean / expected - 1.0, (variance / count).sqrt() / expected)
}

fn check(name: &str, sizes: &[(u32, f64)], load: f64, arrivals: usize) {
    let expected = expected_s(load, sizes);
    let (error, standard) = against(expected, &waits_s(load, sizes, arrivals));
    let [error, standard] = [100.0 * error, 100.0 * standard];
    println!("{name}, load {load}: {:.1} µs expected, {error:+.2} %, standard error {standard:.2} %", 1e6 * expected);
    assert!(error.abs() <= 100.0 * TOLERANCE, "{name}, load {load}: {error:+.2} % ± {standard:.2} %");
    // With a greater error a queue that is wrong by the tolerance could pass.
    assert!(standard <= 50.0 * TOLERANCE, "{name}, load {load}: too few arrivals: ± {standard:.2} %");
}

#[test]
fn packets_of_one_size_wait_as_in_m_d_1() {
    check("M/D/1", FIXED, 0.5, 1_600_000);
    check("M/D/1", FIXED, 0.8, 4_000_000);
    check("M/D/1", FIXED, 0.9, 16_000_000);
}

#[test]
fn packets_of_several_sizes_wait_as_in_m_g_1() {
    check("M/G/1", MIXED, 0.5, 2_000_000);
    check("M/G/1", MIXED, 0.8, 8_000_000);
}
