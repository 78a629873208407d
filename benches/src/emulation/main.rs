//! The accuracy of emulated paths: configured beside measured values, as tables for `docs/lab/emulation.md`.
//!
//! `emulation [FILE]` measures for about a minute, prints Markdown, and puts it into FILE between the lines
//! `<!-- emulation -->` and `<!-- /emulation -->`. It needs root, and an otherwise idle machine.

#![allow(clippy::disallowed_methods, reason = "a program that looks at its machine")]

mod measure;

use std::fmt::Write as _;

const MARKS: (&str, &str) = ("<!-- emulation -->", "<!-- /emulation -->");

fn main() {
    let file = std::env::args().nth(1);
    if file.as_deref().is_some_and(|file| file.starts_with('-')) {
        eprintln!("usage: emulation [FILE]");
        std::process::exit(2);
    }
    let tables = match tables() {
        Ok(tables) => tables,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    print!("{tables}");
    if let Some(file) = file
        && let Err(error) = update(&file, &tables)
    {
        eprintln!("{file}: {error}");
        std::process::exit(1);
    }
}

fn tables() -> Result<String, anabranch_lab::LabError> {
    let mut text = machine();
    for table in [measure::rates, measure::delays, measure::losses, measure::queues, measure::reorderings] {
        let _ = write!(text, "\n{}", table()?);
    }
    Ok(text)
}

/// The machine and its load before the measurement.
fn machine() -> String {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!("Linux {}, {cpus} virtual CPUs, load before: {load}.\n", kernel.trim())
}

fn update(file: &str, tables: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let (before, rest) = text.split_once(MARKS.0).ok_or(format!("there is no line {}", MARKS.0))?;
    let (_, after) = rest.split_once(MARKS.1).ok_or(format!("there is no line {}", MARKS.1))?;
    let text = format!("{before}{}\n{tables}{}{after}", MARKS.0, MARKS.1);
    std::fs::write(file, text).map_err(|error| error.to_string())
}
