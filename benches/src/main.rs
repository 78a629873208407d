//! The speed of the simulator: data segments per CPU second on four workloads, beside a calibration loop.
//!
//! `speed [--only] [WORKLOAD…]` runs all, or those named. With `--only` only the workload runs, so that instructions
//! can be counted; it prints the number of data segments and the digest of the run.

#![allow(clippy::disallowed_methods, reason = "a program with arguments")]

mod calibration;
#[allow(dead_code, reason = "decisions uses the rest")]
mod workloads;

use cpu_time::ProcessTime;
use workloads::Workload;

/// The command has the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let (flags, named): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let all = || {
        let crowds = workloads::CROWDS.map(|(flows, seconds)| workloads::crowd(flows, seconds));
        workloads::all().into_iter().chain(crowds)
    };
    let chosen: Vec<Workload> = all().filter(|w| named.is_empty() || named.contains(&w.name)).collect();
    if chosen.is_empty() || flags.iter().any(|flag| flag != "--only") {
        let names: Vec<String> = all().map(|w| w.name).collect();
        eprintln!("usage: speed [--only] [{}]", names.join("|"));
        std::process::exit(2);
    }
    if !flags.is_empty() {
        for workload in chosen {
            let outcome = workload.run();
            println!("{} {} {:032x}", workload.name, outcome.segments, outcome.digest);
        }
        return;
    }
    let pace = calibration::operations_per_second();
    println!("calibration: {:.1} M heap operations per CPU second", pace / 1e6);
    println!("{:<12} {:>10} {:>9} {:>14} {:>16}", "workload", "segments", "CPU s", "segments/CPU s", "÷ calibration");
    for workload in chosen {
        let begun = ProcessTime::now();
        let segments = workload.run().segments;
        let seconds = begun.elapsed().as_secs_f64();
        let rate = segments as f64 / seconds;
        println!("{:<12} {segments:>10} {seconds:>9.3} {rate:>14.0} {:>16.4}", workload.name, rate / pace);
    }
}
