//! The cost of each scheduler of the registry: per decision, and per packet of a whole run, beside `minrtt`.
//!
//! `decisions [--instructions] [NAME…]`: transfers like `w1` of `speed` over 2, 4 and 8 paths. CPU time by default;
//! with `--instructions` callgrind's counts, which other programs on the machine do not disturb.
//! `decisions --kernel PATHS ROUNDS SEGMENTS`: for callgrind, the least that the rule of `playahead` takes.

#![allow(clippy::disallowed_methods, reason = "a program with arguments that starts another")]

#[path = "../callgrind.rs"]
mod callgrind;
mod kernel;
#[allow(dead_code, reason = "speed uses the rest")]
#[path = "../workloads.rs"]
mod workloads;

use anabranch_engine::schedule::{Around, AroundRounds, Round, Scheduler};
use cpu_time::ProcessTime;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use workloads::Workload;

/// Numbers of paths.
const PATHS: [usize; 3] = [2, 4, 8];
/// Simulated seconds: by CPU time, under callgrind.
const SECONDS: (u64, u64) = (60, 6);
/// The baseline.
const BASE: &str = "minrtt";
/// The limit of a scheduler's cost, in multiples of `minrtt`'s run.
const LIMIT: f64 = 2.0;
/// Those that may cost more, with the reason.
const EXEMPT: [(&str, &str); 2] = [("redundant", "copies everything"), ("peekaboo", "learns")];

/// Calls of the scheduler.
static ROUNDS: AtomicU64 = AtomicU64::new(0);

/// Around a scheduler: callgrind finds the scheduler's calls by this name.
#[derive(Debug)]
struct Seat;

impl AroundRounds for Seat {
    #[inline(never)]
    fn schedule(&mut self, inner: &mut dyn Scheduler, round: &mut Round<'_>) {
        ROUNDS.fetch_add(1, Ordering::Relaxed);
        inner.schedule(round);
    }
    #[inline(never)]
    fn rescue(&mut self, inner: &mut dyn Scheduler, round: &mut Round<'_>) {
        inner.rescue(round);
    }
    fn pass_on(&mut self) -> Self {
        Self
    }
}

/// The cost of a run.
struct Cost {
    segments: u64,
    rounds: u64,
    /// Nanoseconds or instructions.
    whole: f64,
    /// Instructions inside the scheduler, a part of the above; unknown without callgrind.
    scheduler: Option<f64>,
}

impl Cost {
    fn per_packet(&self) -> f64 {
        self.whole / self.segments.max(1) as f64
    }
}

fn workload(name: &str, paths: usize, seconds: u64) -> Workload {
    workloads::wireless(name, paths, seconds).seated(|scheduler| Box::new(Around { wrapper: Seat, inner: scheduler }))
}

/// Costs by CPU time: the faster of two runs.
fn timed(name: &str, paths: usize) -> Cost {
    let run = || {
        ROUNDS.store(0, Ordering::Relaxed);
        let begun = ProcessTime::now();
        let segments = workload(name, paths, SECONDS.0).run().segments;
        let whole = begun.elapsed().as_nanos() as f64;
        Cost { segments, rounds: ROUNDS.load(Ordering::Relaxed), whole, scheduler: None }
    };
    let (first, second) = (run(), run());
    if first.whole <= second.whole { first } else { second }
}

/// Costs by instructions, in a separate process; those of the first second are subtracted, and with them those of the start.
fn counted(name: &str, paths: usize) -> Result<Cost, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let run = |seconds: u64| {
        let arguments = ["--one".into(), name.into(), paths.to_string(), seconds.to_string()];
        let (printed, counted) = callgrind::run(&this, &arguments, "decisions::Seat")?;
        let numbers: Vec<u64> = printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [segments, rounds] = numbers[..] else { return Err(format!("it printed {printed:?}")) };
        Ok([segments, rounds, counted.whole, counted.inside])
    };
    let (all, first) = (run(SECONDS.1)?, run(1)?);
    let [segments, rounds, whole, scheduler] = std::array::from_fn(|i| all[i].saturating_sub(first[i]));
    Ok(Cost { segments, rounds, whole: whole as f64, scheduler: Some(scheduler as f64) })
}

/// For callgrind: one run, and nothing else.
fn one(name: &str, paths: &str, seconds: &str) {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let segments = workload(name, number(paths) as usize, number(seconds)).run().segments;
    println!("{segments} {}", ROUNDS.load(Ordering::Relaxed));
}

/// The cost of a packet in minRTT's run if this scheduler did minRTT's work, in packets of minRTT. Runs differ in more
/// than the scheduler: one that sends less on the lossy path, or nothing on the other, has other acknowledgments and
/// repairs per packet. Without callgrind the two cannot be separated.
fn share(cost: &Cost, base: &Cost) -> f64 {
    let each = |cost: &Cost| cost.scheduler.map(|inside| inside / cost.segments.max(1) as f64);
    match (each(cost), each(base)) {
        (Some(own), Some(its)) => 1.0 + (own - its) / base.per_packet(),
        _ => cost.per_packet() / base.per_packet(),
    }
}

/// Prints a row; false if the scheduler exceeds the limit.
fn row(name: &str, paths: usize, cost: &Cost, base: &Cost) -> bool {
    let ratio = share(cost, base);
    let rounds = cost.rounds as f64 / cost.segments.max(1) as f64;
    let each = |of: f64, by: u64| format!("{:.0}", of / by.max(1) as f64);
    let [decision, packet] = match cost.scheduler {
        Some(inside) => [each(inside, cost.rounds), each(inside, cost.segments)],
        None => ["–".into(), "–".into()],
    };
    let exempt = EXEMPT.iter().find(|(exempt, _)| *exempt == name).map(|(_, why)| *why);
    let verdict = match (ratio <= LIMIT, exempt) {
        (true, _) => "yes".to_owned(),
        (false, Some(why)) => format!("no: it {why}"),
        (false, None) => "NO".to_owned(),
    };
    println!(
        "{name:<16} {paths:>5} {:>9} {:>9.0} {rounds:>9.2} {decision:>11} {packet:>9} {ratio:>8.2}   {verdict}",
        cost.segments,
        cost.per_packet()
    );
    ratio <= LIMIT || exempt.is_some()
}

fn table(names: &[&str], measure: &dyn Fn(&str, usize) -> Result<Cost, String>) -> Result<bool, String> {
    println!(
        "{:>32} {:>9} {:>9} {:>11} {:>9} {:>8}",
        "", "whole run", "decisions", "scheduler", "scheduler", "in runs"
    );
    println!(
        "{:<16} {:>5} {:>9} {:>9} {:>9} {:>11} {:>9} {:>8}   within {LIMIT}×",
        "scheduler",
        "paths",
        "packets",
        "a packet",
        "a packet",
        "a decision",
        "a packet",
        format!("× {BASE}")
    );
    let mut fine = true;
    for paths in PATHS {
        let base = measure(BASE, paths)?;
        for name in names {
            let cost = if *name == BASE { None } else { Some(measure(name, paths)?) };
            fine &= row(name, paths, cost.as_ref().unwrap_or(&base), &base);
        }
    }
    Ok(fine)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, paths, seconds] = &arguments[..]
        && flag == "--one"
    {
        one(name, paths, seconds);
        return ExitCode::SUCCESS;
    }
    if let [flag, numbers @ ..] = &arguments[..]
        && flag == "--kernel"
        && let [Ok(paths), Ok(rounds), Ok(segments)] = numbers.iter().map(|n| n.parse()).collect::<Vec<_>>()[..]
    {
        println!("{}", kernel::run(paths, rounds, segments));
        return ExitCode::SUCCESS;
    }
    let (flags, asked): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.starts_with("--"));
    let all: Vec<&str> = anabranch_schedulers::all().iter().map(|entry| entry.name).collect();
    let known = asked.iter().all(|name| anabranch_schedulers::resolve(name).is_ok());
    if !known || flags.iter().any(|flag| *flag != "--instructions") {
        eprintln!("usage: decisions [--instructions] [NAME…]; there are {}", all.join(", "));
        return ExitCode::from(2);
    }
    let names = if asked.is_empty() { all } else { asked };
    let fine = match (flags.is_empty(), callgrind::is_here()) {
        (false, false) => Err("valgrind is not here".to_owned()),
        (false, true) => {
            println!("instructions, of {} simulated seconds", SECONDS.1);
            table(&names, &counted)
        }
        (true, _) => {
            println!("nanoseconds of CPU time, of {} simulated seconds", SECONDS.0);
            table(&names, &|name, paths| Ok(timed(name, paths)))
        }
    };
    match fine {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}
