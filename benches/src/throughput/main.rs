//! The throughput of one connection in real time: the engine against a Linux kernel, and kernels over the same devices
//! and over veth. See README.md here.

#![allow(clippy::disallowed_methods, reason = "a program with arguments")]

mod measure;
mod rig;
mod veth;

use anabranch_lab::{LabError, Namespace};
use measure::{Figures, measure};
use rig::{Case, Host, Link};

/// The options of the command line.
struct Wish {
    seconds: u64,
    runs: u32,
    only: String,
}

const HELP: &str = "usage: throughput [--seconds N] [--runs N] [--only PART-OF-A-ROW'S-NAME]";

fn wish() -> Result<Wish, String> {
    let mut wish = Wish { seconds: 3, runs: 1, only: String::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or(HELP)?;
        match word.as_str() {
            "--seconds" => wish.seconds = value.parse().map_err(|_| HELP)?,
            "--runs" => wish.runs = value.parse().map_err(|_| HELP)?,
            "--only" => wish.only = value,
            _ => return Err(HELP.into()),
        }
    }
    Ok(wish)
}

/// Every row of the table.
fn cases() -> Vec<Case> {
    let pairs = [(Host::Engine, Host::Kernel), (Host::Kernel, Host::Engine), (Host::Kernel, Host::Kernel)];
    let mut cases = Vec::new();
    for link in [Link::Plain, Link::Modelled, Link::Offload, Link::Veth] {
        for (from, to) in pairs {
            if link == Link::Veth && (from, to) != (Host::Kernel, Host::Kernel) {
                continue;
            }
            cases.extend([true, false].map(|multipath| Case { link, from, to, multipath }));
        }
    }
    cases
}

fn run(wish: &Wish) -> Result<(), LabError> {
    println!("| over | what | Gbit/s | CPU s/GiB: process | machine | kpackets/s | dropped |");
    println!("|---|---|---|---|---|---|---|");
    for case in cases().iter().filter(|case| case.to_string().contains(&wish.only)) {
        let mut best: Option<Figures> = None;
        for _ in 0..wish.runs.max(1) {
            let figures = measure(case, wish.seconds)?;
            best = best.filter(|best| best.gbps() >= figures.gbps()).or(Some(figures));
        }
        if let Some(figures) = best {
            println!("| {case} | {figures} |");
        }
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    if let Err(why) = Namespace::new() {
        eprintln!("SKIPPED: {why}");
        return std::process::ExitCode::SUCCESS;
    }
    let outcome = wish().and_then(|wish| run(&wish).map_err(|error| error.to_string()));
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            std::process::ExitCode::FAILURE
        }
    }
}
