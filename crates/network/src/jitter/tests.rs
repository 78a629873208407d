//! Draws beside closed forms and iproute2's tables.

#![allow(clippy::disallowed_methods, reason = "tests read files of the system, and compute what they compare with")]

use super::*;
use std::path::PathBuf;

const N: usize = 100_000;

fn spec(distribution: DelayDistribution) -> JitterSpec {
    JitterSpec { spread: Duration::from_millis(10), distribution, ..JitterSpec::NONE }
}

/// `n` draws in spreads, with the stream of a path.
fn draws(spec: &JitterSpec, n: usize) -> Vec<f64> {
    let mut jitter = Jitter::new(spec, Rng::stream(11, "path.wlan.down.jitter"));
    (0..n).map(|_| jitter.next() as f64 / spec.spread.as_nanos() as f64).collect()
}

/// The greatest distance between the draws' distribution and `cdf`, which may have steps.
fn distance(mut draws: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    draws.sort_unstable_by(f64::total_cmp);
    let n = draws.len() as f64;
    let above = |x: f64| draws.partition_point(|draw| *draw <= x) as f64 / n;
    draws.iter().map(|x| (above(*x) - cdf(*x)).abs()).fold(0.0, f64::max)
}

/// Kolmogorov and Smirnov's bound for [`N`] draws of a continuous distribution, at 1 %.
fn bound() -> f64 {
    1.628 / (N as f64).sqrt()
}

fn standard_normal(x: f64) -> f64 {
    libm::erfc(-x / core::f64::consts::SQRT_2) / 2.0
}

/// P(X ≤ x) of Pareto's distribution with exponent 3, moved and stretched: 1 − (3/2 + 3x/4)⁻³.
fn pareto_below(x: f64) -> f64 {
    if x >= MOST { 1.0 } else { 1.0 - (1.5 + 0.75 * x).powi(-3) }
}

/// The probability at which a quarter of one quantile and three quarters of the other make `x`.
fn pareto_normal_below(x: f64) -> f64 {
    let sum = |z: f64| {
        let pareto = ((1.0 - standard_normal(z)).powf(-1.0 / 3.0) - 1.5) / 0.75;
        (z + 3.0 * pareto.min(MOST)) / 4.0
    };
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if sum(middle) <= x { low = middle } else { high = middle }
    }
    standard_normal(low)
}

#[test]
fn draws_follow_the_closed_forms() {
    let uniform = |x: f64| (x + 1.0) / 2.0;
    let forms: [(DelayDistribution, &dyn Fn(f64) -> f64); 4] = [
        (DelayDistribution::Uniform, &uniform),
        (DelayDistribution::Normal, &standard_normal),
        (DelayDistribution::Pareto, &pareto_below),
        (DelayDistribution::ParetoNormal, &pareto_normal_below),
    ];
    for (distribution, form) in &forms {
        for (other, wrong) in &forms {
            let far = distance(draws(&spec(distribution.clone()), N), wrong);
            assert_eq!(far < bound(), distribution == other, "{distribution:?} against {other:?}: {far}");
        }
        let far = distance(draws(&spec(distribution.clone()), N), form);
        println!("{distribution:?}: {far:.5} of {:.5}", bound());
    }
}

/// Where iproute2 keeps its tables; `tc` has the same variable.
fn tables() -> Option<PathBuf> {
    let given = std::env::var_os("TC_LIB_DIR").map(PathBuf::from);
    let usual = ["/usr/lib/tc", "/usr/lib/x86_64-linux-gnu/tc", "/usr/lib/aarch64-linux-gnu/tc", "/usr/share/tc"];
    given.into_iter().chain(usual.map(PathBuf::from)).find(|folder| folder.join("normal.dist").exists())
}

#[test]
fn draws_follow_the_tables_of_iproute2() {
    let Some(folder) = tables() else { return println!("SKIPPED: iproute2's tables are not here (TC_LIB_DIR)") };
    let named = [
        ("normal.dist", DelayDistribution::Normal),
        ("pareto.dist", DelayDistribution::Pareto),
        ("paretonormal.dist", DelayDistribution::ParetoNormal),
    ];
    for (file, distribution) in named {
        let table = DelayTable::parse(file, &std::fs::read_to_string(folder.join(file)).unwrap()).unwrap();
        let (count, quantiles) = (table.quantiles.len() as f64, table.quantiles.clone());
        assert!(quantiles.is_sorted());
        // A step of the table on either side.
        let slack = 0.1 / UNITS; // Draws are whole nanoseconds.
        let below =
            |x: f64| quantiles.partition_point(|quantile| f64::from(*quantile) / UNITS <= x + slack) as f64 / count;
        let far = distance(draws(&spec(distribution), N), below);
        println!("{file}: {far:.5} of {:.5}", bound() + 2.0 / count);
        assert!(far < bound() + 2.0 / count, "{file}: {far}");
        // The file itself as the distribution.
        let far = distance(draws(&spec(DelayDistribution::Table(Arc::new(table))), N), below);
        assert!(far < bound() + 2.0 / count, "{file} itself: {far}");
    }
}

/// netem mixes uniform numbers, x' = (1 − ρ)·u + ρ·x: they correlate by ρ, and their variance shrinks by (1 − ρ)/(1 + ρ).
#[test]
fn correlation_is_that_of_the_uniform_numbers() {
    for correlation in [0.0, 0.25, 0.9] {
        let x = draws(&JitterSpec { correlation, ..spec(DelayDistribution::Uniform) }, N);
        let (n, mean) = (N as f64, x.iter().sum::<f64>() / N as f64);
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let lagged = x.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>() / n / variance;
        assert!((lagged - correlation).abs() < 0.01, "{correlation}: {lagged}");
        let expected = (1.0 - correlation) / (1.0 + correlation) / 3.0;
        assert!((variance / expected - 1.0).abs() < 0.05, "{correlation}: {variance}, not {expected}");
    }
}

#[test]
fn a_packet_has_its_draw_whenever_jitter_begins() {
    let spec = spec(DelayDistribution::Normal);
    let always = draws(&spec, 100);
    let mut jitter = Jitter::new(&JitterSpec::NONE, Rng::stream(11, "path.wlan.down.jitter"));
    assert!((0..60).all(|_| jitter.next() == 0));
    jitter.set(&spec);
    let later: Vec<f64> = (60..100).map(|_| jitter.next() as f64 / 1e7).collect();
    assert_eq!(later, always[60..]);
}

#[test]
fn the_earliest_is_the_least_quantile() {
    let earliest = |distribution| spec(distribution).earliest().as_nanos() as f64 / 1e7;
    assert_eq!(earliest(DelayDistribution::Uniform), 1.0);
    assert_eq!(earliest(DelayDistribution::Normal), 4.0);
    assert!((earliest(DelayDistribution::Pareto) - 2.0 / 3.0).abs() < 1e-6);
    assert!((earliest(DelayDistribution::ParetoNormal) - 1.5).abs() < 1e-6);
    let table = DelayTable::parse("t", "# two\n-8192 0\n  4096").unwrap();
    assert_eq!(earliest(DelayDistribution::Table(Arc::new(table))), 1.0);
}

#[test]
fn tables_are_read_or_refused_by_word() {
    let refused = |text: &str| DelayTable::parse("t", text).unwrap_err().to_string();
    assert_eq!(refused("1 2\n3 x4"), "line 2: `x4` is not a whole number from -32768 to 32767");
    assert_eq!(refused("40000"), "line 1: `40000` is not a whole number from -32768 to 32767");
    assert_eq!(refused("# nothing\n"), "line 1: a table has 1 to 16384 numbers");
    assert_eq!(refused(&"0 1\n".repeat(8_193)), "line 8193: a table has 1 to 16384 numbers");
    assert_eq!(refused(&"word ".repeat(1_000_000)), "line 1: `word` is not a whole number from -32768 to 32767");
}
