//! The speed of the simulator: data segments per CPU second of each workload, beside a calibration loop.
//!
//! - `speed [WORKLOAD…]` runs all, or those named.
//! - `speed --only [WORKLOAD…]` does nothing else, so that instructions can be counted: it prints the number of data segments and the
//!   digest of each run.
//! - `speed --against COMMAND [WORKLOAD…]` counts the instructions of `w1`, `w1-lossless` and `w3`, or of those named, and of `COMMAND run`
//!   with the same scenarios. It fails if a digest differs or the command takes more than 2 % more.

#![allow(clippy::disallowed_methods, reason = "a program with arguments")]

mod against;
mod calibration;
mod callgrind;
#[allow(dead_code, reason = "decisions uses the rest")]
mod workloads;

use cpu_time::ProcessTime;
use std::path::Path;
use std::process::ExitCode;
use workloads::Workload;

/// The command has the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Workloads that are compared with the command, unless others are named.
const COMPARED: [&str; 3] = ["w1", "w1-lossless", "w3"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let crowds = workloads::CROWDS.map(|(flows, seconds)| workloads::crowd(flows, seconds));
    let all: Vec<Workload> = workloads::all().into_iter().chain(crowds).collect();
    let fine = match arguments[..] {
        ["--only", ref named @ ..] => chosen(all, named).map(count),
        ["--against"] => Err("--against: name the command, as in target/dist/anabranch".into()),
        ["--against", command, ref named @ ..] => {
            let named = if named.is_empty() { &COMPARED } else { named };
            chosen(all, named).and_then(|workloads| against::compare(Path::new(command), &workloads))
        }
        ref named => chosen(all, named).map(time),
    };
    match fine {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(wrong) => {
            eprintln!("{wrong}");
            ExitCode::from(2)
        }
    }
}

/// Those that are named, or all.
fn chosen(all: Vec<Workload>, named: &[&str]) -> Result<Vec<Workload>, String> {
    let names: Vec<&str> = all.iter().map(|workload| workload.name.as_str()).collect();
    if let Some(unknown) = named.iter().find(|name| !names.contains(name)) {
        return Err(format!(
            "no workload {unknown:?}\nusage: speed [--only | --against COMMAND] [{}]",
            names.join("|")
        ));
    }
    Ok(all.into_iter().filter(|workload| named.is_empty() || named.contains(&workload.name.as_str())).collect())
}

fn count(workloads: Vec<Workload>) -> bool {
    for workload in workloads {
        let outcome = workload.run();
        println!("{} {} {:032x}", workload.name, outcome.segments, outcome.digest);
    }
    true
}

fn time(workloads: Vec<Workload>) -> bool {
    let pace = calibration::operations_per_second();
    println!("calibration: {:.1} M heap operations per CPU second", pace / 1e6);
    println!("{:<12} {:>10} {:>9} {:>14} {:>16}", "workload", "segments", "CPU s", "segments/CPU s", "÷ calibration");
    for workload in workloads {
        let begun = ProcessTime::now();
        let segments = workload.run().segments;
        let seconds = begun.elapsed().as_secs_f64();
        let rate = segments as f64 / seconds;
        println!("{:<12} {segments:>10} {seconds:>9.3} {rate:>14.0} {:>16.4}", workload.name, rate / pace);
    }
    true
}
