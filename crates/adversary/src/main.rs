//! `adversary CLASS [--from SEED] [--count N] [--jobs N] [--shrink SEED] [--show SEED] [--table]`

use anabranch_adversary::{Case, Class, Failure, Kind, hush_panics, run, shrink, told};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const USAGE: &str = "\
usage: anabranch-adversary CLASS|all [--from SEED] [--count N] [--jobs N] [--table]
       anabranch-adversary CLASS --show SEED [--all]
       anabranch-adversary CLASS --shrink SEED [--all]

Plays N transfers of a class (10000) from a seed (0) on, and prints what they broke; exit code 1 if anything.
  --jobs N       threads (1)
  --table        one row of a Markdown table for each class
  --show SEED    the exchange of one case, packet by packet
  --shrink SEED  the same of the smallest case that breaks the same
  --all          all of its lines, not only the first and the last";

/// Lines of an exchange shown at its begin and at its end.
const HEAD: usize = 30;
const TAIL: usize = 30;
/// Seeds named per kind of failure.
const NAMED: usize = 8;

#[derive(Debug)]
struct Arguments {
    classes: Vec<Class>,
    from: u64,
    count: u64,
    jobs: usize,
    table: bool,
    all: bool,
    show: Option<(u64, bool)>,
}

fn arguments() -> Option<Arguments> {
    let mut args = std::env::args().skip(1);
    let class = args.next()?;
    let classes = if class == "all" { Class::ALL.to_vec() } else { vec![Class::named(&class)?] };
    let mut parsed = Arguments { classes, from: 0, count: 10_000, jobs: 1, table: false, all: false, show: None };
    while let Some(flag) = args.next() {
        match flag.as_str() {
            "--table" => parsed.table = true,
            "--all" => parsed.all = true,
            _ => {}
        }
        if matches!(flag.as_str(), "--table" | "--all") {
            continue;
        }
        let value: u64 = args.next()?.parse().ok()?;
        match flag.as_str() {
            "--from" => parsed.from = value,
            "--count" => parsed.count = value,
            "--jobs" => parsed.jobs = value.clamp(1, 64) as usize,
            "--show" => parsed.show = Some((value, false)),
            "--shrink" => parsed.show = Some((value, true)),
            _ => return None,
        }
    }
    Some(parsed)
}

#[derive(Debug, Default)]
struct Tally {
    transfers: u64,
    packets: u64,
    fell_back: u64,
    half_open: u64,
    errors: u64,
    failures: BTreeMap<Kind, (u64, Vec<(u64, Failure)>)>,
}

impl Tally {
    fn play(&mut self, class: Class, seed: u64) {
        self.transfers += 1;
        match run(&Case::from_seed(class, seed)) {
            Ok(outcome) => {
                self.packets += outcome.packets;
                self.fell_back += u64::from(outcome.fell_back.contains(&true));
                self.half_open += u64::from(outcome.half_open);
                let finished = outcome.ended.iter().all(|why| *why == Some(anabranch_trace::CloseReason::Finished));
                self.errors += u64::from(!finished);
            }
            Err(failure) => {
                let (count, seeds) = self.failures.entry(failure.kind).or_default();
                *count += 1;
                seeds.push((seed, failure));
            }
        }
    }

    fn add(&mut self, other: Self) {
        self.transfers += other.transfers;
        self.packets += other.packets;
        self.fell_back += other.fell_back;
        self.half_open += other.half_open;
        self.errors += other.errors;
        for (kind, (count, seeds)) in other.failures {
            let ours = self.failures.entry(kind).or_default();
            ours.0 += count;
            ours.1.extend(seeds);
        }
    }
}

/// Cases that a thread takes at once.
const PART: u64 = 64;

fn play_all(class: Class, arguments: &Arguments) -> Tally {
    let (next, end) = (AtomicU64::new(arguments.from), arguments.from + arguments.count);
    let work = || {
        let mut tally = Tally::default();
        loop {
            let first = next.fetch_add(PART, Ordering::Relaxed);
            if first >= end {
                return tally;
            }
            (first..end.min(first + PART)).for_each(|seed| tally.play(class, seed));
        }
    };
    let mut whole = Tally::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..arguments.jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().for_each(|thread| whole.add(thread.join().expect("panics are caught")));
    });
    whole
}

fn print(class: Class, tally: &Tally, seconds: f64) {
    let rate = tally.transfers as f64 / seconds;
    println!(
        "{class:16} {} transfers in {seconds:.1} s: {rate:.0}/s, {} packets; fell back {}, ended by an error {}, half-open {}",
        tally.transfers, tally.packets, tally.fell_back, tally.errors, tally.half_open
    );
    for (kind, (count, seeds)) in &tally.failures {
        let mut seeds: Vec<_> = seeds.iter().collect();
        seeds.sort_by_key(|(seed, _)| *seed);
        println!("  {kind:12} {count:6}");
        for (seed, failure) in seeds.iter().take(NAMED) {
            println!("    seed {seed}: {failure}");
        }
    }
}

/// A row of the table in `docs/lab/robustness.md`. Packets are those of transfers without a violation.
fn row(class: Class, tally: &Tally) {
    let found = tally.failures.iter().map(|(kind, (count, _))| format!("{count} {kind}"));
    let found = found.collect::<Vec<_>>().join(", ");
    let found = if found.is_empty() { "none" } else { &found };
    let Tally { transfers, packets, fell_back, errors, half_open, .. } = tally;
    println!("| `{class}` | {transfers} | {packets} | {fell_back} | {errors} | {half_open} | {found} |");
}

fn show(class: Class, seed: u64, smallest: bool, all: bool) -> ExitCode {
    let mut case = Case::from_seed(class, seed);
    if smallest {
        case = shrink(&case);
    }
    let (result, deeds, lines) = told(&case);
    println!("client: {}\nserver: {}", case.parties[0].summary(), case.parties[1].summary());
    case.paths.iter().for_each(|path| println!("{path:?}"));
    println!("{} deeds", deeds.len());
    let (head, tail) = if all { (lines.len(), 0) } else { (HEAD.min(lines.len()), TAIL) };
    lines[..head].iter().for_each(|line| println!("{line}"));
    let tail = lines.len().saturating_sub(tail).max(head);
    if tail > head {
        println!("  ... {} lines ...", tail - head);
    }
    lines[tail..].iter().for_each(|line| println!("{line}"));
    match result {
        Ok(outcome) => println!("{outcome:?}"),
        Err(failure) => println!("{failure}"),
    }
    ExitCode::from(u8::from(smallest))
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    hush_panics();
    if let Some((seed, smallest)) = arguments.show {
        return show(arguments.classes[0], seed, smallest, arguments.all);
    }
    let mut clean = true;
    for class in &arguments.classes {
        let begun = Instant::now();
        let tally = play_all(*class, &arguments);
        clean &= tally.failures.is_empty();
        match arguments.table {
            true => row(*class, &tally),
            false => print(*class, &tally, begun.elapsed().as_secs_f64()),
        }
    }
    ExitCode::from(u8::from(!clean))
}
