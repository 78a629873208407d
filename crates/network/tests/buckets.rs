//! Token buckets against Linux: nftables' limit as a policer, TBF and HTB as shapers, on identical arrivals.
//!
//! `tests/judges/*.txt` has the kernel's answers: per packet its arrival in nanoseconds, its bytes, and when it left, or `-`. As root, the
//! kernel is asked again (`kernel_buckets.py`).

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests run on a host with files and a kernel")]

mod common;

use anabranch_network::{Bottleneck, BottleneckSpec, BucketSpec, CapacitySpec, Network, QueueSpec, Topology, WaySpec};
use anabranch_units::{Direction, Duration, Instant, Rate};
use common::{Log, deliver, path, way};
use std::process::Command;

/// A packet: its arrival and departure in nanoseconds, and its bytes.
type Answer = (u64, u32, Option<u64>);

const SEED: &str = "1";
/// nftables keeps a second of its rate beside the burst.
const POLICER: BucketSpec = BucketSpec { rate: Rate::from_bps(800_000), burst: 20_000 + 100_000 };
const SHAPER: BucketSpec = BucketSpec { rate: Rate::from_bps(6_000_000), burst: 16_000 };
/// TBF and HTB count Ethernet's header.
const ETHERNET: i32 = 14;

fn answers(text: &str) -> Vec<Answer> {
    let number = |word: &str| word.parse().unwrap();
    let mut answers: Vec<Answer> = text
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .map(|words| (number(words[0]), number(words[1]) as u32, (words[2] != "-").then(|| number(words[2]))))
        .collect();
    answers.sort_unstable_by_key(|answer| answer.0);
    answers
}

/// The kernel's answers now; `None` if it cannot be asked.
fn live(kind: &str, rate: Rate, burst: u64) -> Option<Vec<Answer>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/judges/kernel_buckets.py");
    let ask = [kind.into(), rate.as_bps().to_string(), burst.to_string(), SEED.into()];
    let output = Command::new("python3").arg(script).args(ask).output();
    let told = match &output {
        Ok(output) if output.status.success() => return Some(answers(&String::from_utf8_lossy(&output.stdout))),
        Ok(output) => String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    };
    println!("SKIPPED {kind}: {told}");
    None
}

/// When each of these packets leaves in the simulator.
fn ours(spec: BottleneckSpec, overhead: i32, arrivals: &[Answer]) -> Vec<Option<u64>> {
    let down = WaySpec { overhead, ..way(Bottleneck::Own(spec), Duration::ZERO) };
    let mut network = Network::new(&Topology { paths: vec![path("a", down)], links: vec![] }, 1);
    let (mut log, mut left) = (Log::default(), vec![None; arrivals.len()]);
    for (number, (at, size, _)) in arrivals.iter().enumerate() {
        network.send(Instant::from_nanos(*at), &mut log, 0, Direction::Down, *size, number as u32);
    }
    for (at, delivery) in deliver(&mut network, &mut log, Instant::from_millis(100_000)) {
        left[delivery.item as usize] = Some(at.as_nanos());
    }
    left
}

fn policed(answers: &[Answer]) -> (usize, usize, usize) {
    // A rate at which nothing waits.
    let capacity = CapacitySpec::Fixed(Rate::from_bps(1_000_000_000_000));
    let spec = BottleneckSpec { police: Some(POLICER), ..BottleneckSpec::new(capacity, QueueSpec::Packets(1 << 20)) };
    let ours = ours(spec, 0, answers);
    let differ = ours.iter().zip(answers).filter(|(ours, answer)| ours.is_some() != answer.2.is_some()).count();
    let dropped = ours.iter().filter(|ours| ours.is_none()).count();
    (dropped, answers.iter().filter(|answer| answer.2.is_none()).count(), differ)
}

/// Differences between the kernel's departures and ours in microseconds, in order; positive where the kernel's is later.
fn lateness(answers: &[Answer], burst: u64) -> Vec<i64> {
    let bucket = CapacitySpec::Bucket(BucketSpec { burst, ..SHAPER });
    let ours = ours(BottleneckSpec::new(bucket, QueueSpec::Packets(1 << 20)), ETHERNET, answers);
    let late = |(ours, answer): (&Option<u64>, &Answer)| Some((answer.2? as i64 - (*ours)? as i64) / 1000);
    let mut late: Vec<i64> = ours.iter().zip(answers).map(late).collect::<Option<_>>().expect("nothing is dropped");
    late.sort_unstable();
    late
}

#[test]
fn the_policer_is_that_of_nftables() {
    let kept = answers(include_str!("judges/nft.txt"));
    assert_eq!(policed(&kept), (209, 209, 0), "of {}", kept.len());
    let trial = || live("nft", POLICER.rate, POLICER.burst - 100_000);
    for (trial, answers) in std::iter::repeat_with(trial).take(5).flatten().enumerate() {
        let (ours, kernel, differ) = policed(&answers);
        println!("nftables: {kernel} dropped, {ours} by the simulator, {differ} of {} differ", answers.len());
        // The rule reads the clock after the packet's arrival: on a busy machine, long after.
        if differ * 50 <= answers.len() {
            return;
        }
        assert!(trial < 4, "{differ} of {}, as in each trial before", answers.len());
    }
}

#[test]
fn the_shaper_is_tbf() {
    let kept = lateness(&answers(include_str!("judges/tbf.txt")), SHAPER.burst);
    let of = |late: &[i64]| [late[0], late[late.len() / 2], late[late.len() * 99 / 100], late[late.len() - 1]];
    println!("TBF is later by {:?} µs (least, median, 99 %, most)", of(&kept));
    assert!(kept[0] >= 0 && of(&kept)[2] <= 50 && of(&kept)[3] <= 300, "{:?}", of(&kept));
    if let Some(answers) = live("tbf", SHAPER.rate, SHAPER.burst) {
        let late = lateness(&answers, SHAPER.burst);
        println!("now by {:?} µs", of(&late));
        // A busy machine is late, never early.
        assert!(late[0] >= -50, "{:?}", of(&late));
    }
}

/// HTB sends while its bucket is not in debt, so that it is up to a packet ahead of TBF.
#[test]
fn htb_lends_a_packet() {
    let check = |answers: &[Answer], busy: bool| {
        let (without, with) = (lateness(answers, SHAPER.burst), lateness(answers, SHAPER.burst + 1514));
        println!(
            "HTB is later by {} to {} µs, with a packet more {} to {}",
            without[0],
            without[without.len() - 1],
            with[0],
            with[with.len() - 1]
        );
        assert!(without[0] >= -2_019 - 50, "a packet of 1514 bytes takes 2019 µs: {}", without[0]);
        assert!(with[0] >= -50, "{}", with[0]);
        assert!(busy || without[without.len() - 1] <= 50, "{}", without[without.len() - 1]);
    };
    check(&answers(include_str!("judges/htb.txt")), false);
    if let Some(answers) = live("htb", SHAPER.rate, SHAPER.burst) {
        check(&answers, true);
    }
}
