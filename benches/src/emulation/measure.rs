//! The measurements, each a table.

use anabranch_lab::LabError;
use anabranch_lab::preflight::preflight;
use anabranch_lab::probe::{Probe, Sample, Shot};
use anabranch_network::{
    Bottleneck, BottleneckSpec, CapacitySpec, LossSpec, PathSpec, QueueSpec, ReorderSpec, Topology, WaySpec,
};
use anabranch_run::Preflight;
use anabranch_units::{Direction, Duration, Rate};
use std::fmt::Write as _;

type Table = Result<String, LabError>;

/// Bytes of a full IP packet.
const FULL: u16 = 1500;
/// Bytes of a small one.
const SMALL: u16 = 100;

fn mbit(mbit: u64) -> Rate {
    Rate::from_bps(mbit * 1_000_000)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// One path whose direction down is `change`d.
fn topology(rate: Rate, delay: Duration, packets: u32, change: impl FnOnce(&mut WaySpec)) -> Topology {
    let bottleneck = BottleneckSpec::new(CapacitySpec::Fixed(rate), QueueSpec::Packets(packets));
    let up = WaySpec::clean(Bottleneck::Own(bottleneck), delay);
    let mut down = up.clone();
    change(&mut down);
    Topology { paths: vec![PathSpec { name: "path".into(), down, up }], links: Vec::new() }
}

/// `n` packets, one every `gap`.
fn evenly(n: u64, gap: Duration, size: u16) -> Vec<Shot> {
    (0..n).map(|n| Shot { after: Duration::from_nanos(gap.as_nanos() * n), size }).collect()
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Two seconds of full packets, a tenth faster than the path: its queue is never empty.
pub fn rates() -> Table {
    let mut text = "| rate, Mbit/s | measured | deviation, ppm | late p50, µs | late p99 | latest | in a burst | \
                    dropped by devices |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for rate in [1, 10, 100, 300, 600, 1000] {
        let takes = mbit(rate).time_for(FULL.into());
        let (delay, queue) = (ms(5), (50_000_000 / takes.as_nanos()).max(20) as u32);
        let mut probe = Probe::new(&topology(mbit(rate), delay, queue, |_| {}), 1, false)?;
        let begin = u64::from(queue) / 2;
        let gap = Duration::from_nanos(takes.as_nanos() * 10 / 11);
        let mut shots = vec![Shot { after: Duration::ZERO, size: FULL }; begin as usize];
        shots.extend(evenly(2_000_000_000 / gap.as_nanos(), gap, FULL));
        let samples = probe.send(0, Direction::Down, &shots, Duration::ZERO)?;
        let late = probe.lateness();
        let measured = match dispersion(&samples, delay, takes) {
            Some(bps) => format!("{:.4} | {:+.0}", bps / 1e6, (bps / (rate as f64 * 1e6) - 1.0) * 1e6),
            None => "the sender was too slow | ".into(),
        };
        let _ = writeln!(
            text,
            "| {rate} | {measured} | {:.0} | {:.0} | {:.0} | {} | {} |",
            micros(late.median),
            micros(late.p99),
            micros(late.max),
            late.burst,
            probe.device_drops()?
        );
    }
    Ok(text)
}

/// Bits per second while packets waited; `None` if fewer than half did.
fn dispersion(samples: &[Sample], delay: Duration, takes: Duration) -> Option<f64> {
    let alone = delay + takes + Duration::from_nanos(takes.as_nanos() / 2);
    let waited = samples.windows(2).filter(|pair| pair[1].delay() > alone);
    let (n, nanos) = waited.fold((0, 0), |(n, t), p| (n + 1, t + p[1].received.since(p[0].received).as_nanos()));
    (2 * n > samples.len() && nanos > 0).then(|| n as f64 * f64::from(FULL) * 8e9 / nanos as f64)
}

/// Single small packets.
pub fn delays() -> Table {
    let mut text =
        "| delay, ms | mean | p50 | p99 | greatest | jitter (mean step), ms |\n|---|---|---|---|---|---|\n".to_owned();
    for delay in [1, 5, 20, 100] {
        let rate = mbit(100);
        let mut probe = Probe::new(&topology(rate, ms(delay), 100, |_| {}), 1, false)?;
        let samples = probe.send(0, Direction::Down, &evenly(1000, ms(1), SMALL), Duration::ZERO)?;
        let transmission = rate.time_for(SMALL.into());
        let mut delays: Vec<f64> =
            samples.iter().map(|s| s.delay().saturating_sub(transmission).as_secs_f64() * 1e3).collect();
        let n = delays.len().max(1);
        let jitter = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum::<f64>() / n as f64;
        let mean = delays.iter().sum::<f64>() / n as f64;
        delays.sort_by(f64::total_cmp);
        let at = |p: usize| delays.get((n - 1) * p / 100).copied().unwrap_or(f64::NAN);
        let _ =
            writeln!(text, "| {delay} | {mean:.3} | {:.3} | {:.3} | {:.3} | {jitter:.3} |", at(50), at(99), at(100));
    }
    Ok(text)
}

/// Many small packets; the interval is that of 95 of 100 seeds.
pub fn losses() -> Table {
    const N: u64 = 20_000;
    let mut text = "| loss, % | packets | lost, % | 95 % of seeds, % |\n|---|---|---|---|\n".to_owned();
    for percent in [0.1, 1.0, 10.0] {
        let p = percent / 100.0;
        let lossy = topology(mbit(100), ms(5), 10_000, |down| down.loss = LossSpec::Bernoulli(p));
        let mut probe = Probe::new(&lossy, 1, false)?;
        let shots = evenly(N, Duration::from_micros(60), SMALL);
        let samples = probe.send(0, Direction::Down, &shots, Duration::ZERO)?;
        let lost = (N - samples.len() as u64) as f64 / N as f64 * 100.0;
        let half = 196.0 * (p * (1.0 - p) / N as f64).sqrt();
        let _ = writeln!(text, "| {percent} | {N} | {lost:.3} | {:.3} to {:.3} |", percent - half, percent + half);
    }
    Ok(text)
}

/// Times by the method of the pre-flight check.
pub fn queues() -> Table {
    let mut text = "| queue, packets | measured | at, Mbit/s |\n|---|---|---|\n".to_owned();
    for (rate, packets) in [(10, 10), (10, 100), (100, 100), (100, 1000), (300, 1000)] {
        let measured = preflight(&topology(mbit(rate), ms(5), packets, |_| {}), false, Preflight::LIMIT)?;
        let found = measured.ways.first().and_then(|way| way.measured.queue_packets);
        let found = found.map_or("was never full".into(), |found| format!("{found:.0}"));
        let _ = writeln!(text, "| {packets} | {found} | {rate} |");
    }
    Ok(text)
}

/// Packets that others overtook.
pub fn reorderings() -> Table {
    const N: u64 = 10_000;
    let mut text = "| reordering, % | packets | overtaken, % | 95 % of seeds, % |\n|---|---|---|---|\n".to_owned();
    for percent in [1.0, 5.0] {
        let p = percent / 100.0;
        let reorder = ReorderSpec { probability: p, by: ms(5) };
        let mut probe = Probe::new(&topology(mbit(100), ms(5), 1000, |down| down.reorder = reorder), 1, false)?;
        let shots = evenly(N, Duration::from_micros(100), SMALL);
        let samples = probe.send(0, Direction::Down, &shots, ms(50))?;
        let mut last = 0;
        let overtaken = samples.iter().filter(|sample| {
            let late = sample.index < last;
            last = last.max(sample.index);
            late
        });
        let share = overtaken.count() as f64 / samples.len().max(1) as f64 * 100.0;
        let half = 196.0 * (p * (1.0 - p) / N as f64).sqrt();
        let _ = writeln!(text, "| {percent} | {N} | {share:.3} | {:.3} to {:.3} |", percent - half, percent + half);
    }
    Ok(text)
}
