//! Prints the table of docs/lab/advise.md: the regret of advice over path sets that it knows only by numbers with errors.
//!
//! `regret [SETS [USE]]`: the first so many sets, 60 unless given, for one use, `downloads` unless given.

#![allow(clippy::disallowed_methods, reason = "a program with arguments")]

use anabranch_metrics::mean;
use anabranch_run::VirtualTime;
use anabranch_scenario::{congestion, scheduler};
use anabranch_studies::advise::{Use, judge};
use anabranch_workbench::pool::Threads;
use std::error::Error;

/// Error of the typed numbers, and runs by which each choice is judged.
const ERROR: f64 = 0.1;
const SEEDS: u32 = 12;
/// Least part of the sets in which the regret is to be small, and how small; the most that a choice may be below the best path.
const RULE: (f64, f64, f64) = (0.9, 0.02, 0.025);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u32 = arguments.next().map_or(Ok(60), |text| text.parse())?;
    let name = arguments.next().unwrap_or_else(|| "downloads".to_owned());
    let of = Use::ALL.into_iter().find(|of| of.name() == name).ok_or("no such use")?;
    let schedulers: Result<Vec<_>, _> =
        anabranch_schedulers::all().iter().map(|entry| scheduler("regret", entry.name)).collect();
    let schedulers = schedulers.map_err(|_| "a scheduler is not known")?;
    let cubic = congestion("regret", "cubic").map_err(|_| "no cubic")?;
    println!("| set | advice | best | regret % | below the best path % |\n|--:|---|---|--:|--:|");
    let (mut regrets, mut below) = (Vec::new(), Vec::new());
    for (number, set) in judge::sets(count, ERROR).iter().enumerate() {
        let found =
            set.regret((of, &schedulers, &cubic), (ERROR, SEEDS), (&VirtualTime::default(), &Threads::new(None)))?;
        let advice = if found.advice.bond { &found.advice.scheduler } else { &found.advice.best_single };
        let (regret, lack) = (100.0 * found.regret, 100.0 * found.below_single);
        println!("| {number} | {advice} | {} | {regret:.1} | {lack:.1} |", found.best);
        regrets.push(found.regret);
        below.push(found.below_single);
    }
    let (part, near, most) = RULE;
    let good = regrets.iter().filter(|regret| **regret <= near).count();
    let worst = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let n = regrets.len();
    println!(
        "\nWithin {:.0} % of the best in {good} of {n} sets (rule: {:.0} %); mean regret {:.2} %; at most {:.1} % below the best path \
         (rule: {:.1} %).",
        100.0 * near,
        100.0 * part,
        100.0 * mean(&regrets).unwrap_or(0.0),
        100.0 * worst,
        100.0 * most
    );
    Ok(())
}
