//! The same scenarios by the command, as a user runs them, and by this program.

use crate::callgrind;
use crate::workloads::Workload;
use std::path::Path;

/// The command's run may take so many times the instructions that the benchmark counts.
const MOST: f64 = 1.02;

/// The seed of a workload's first run is the command's own; it does not run the single paths, as the workloads do not.
const AS_A_WORKLOAD: [&str; 5] = ["--no-baselines", "--jobs", "1", "--format", "json"];

/// Prints the instructions per segment of each workload by this program and by `command`, without the command's start, which is
/// counted by a run of a microsecond. False if one exceeds [`MOST`] or its digest differs.
pub fn compare(command: &Path, workloads: &[Workload]) -> Result<bool, String> {
    if !callgrind::is_here() {
        return Err("valgrind is not here".into());
    }
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    println!(
        "{:<12} {:>10} {:>10} {:>10} {:>10} {:>8}  digest",
        "workload", "segments", "speed", "command", "start", "ratio"
    );
    let mut fine = true;
    for workload in workloads {
        let (printed, own) = callgrind::run(&this, &["--only".into(), workload.name.clone()], "main")?;
        let printed: Vec<&str> = printed.split_whitespace().collect();
        let [_, segments, digest] = printed[..] else { return Err(format!("it printed {printed:?}")) };
        let segments: f64 = segments.parse().map_err(|_| format!("{segments:?} segments"))?;
        let file = folder.path().join(&workload.name).with_extension("toml");
        let Some(scenario) = workload.scenario() else { return Err(format!("{} is not one scenario", workload.name)) };
        std::fs::write(&file, scenario).map_err(|error| error.to_string())?;
        let run = |options: &[&str]| {
            let words = ["run", &file.to_string_lossy()];
            let words = words.iter().chain(&AS_A_WORKLOAD).chain(options).map(|word| (*word).to_owned());
            callgrind::run(command, &words.collect::<Vec<_>>(), "main")
        };
        let (results, whole) = run(&["--repeat", &workload.runs.to_string()])?;
        let start = run(&["--duration", "1us"])?.1.whole;
        let same = digest == format!("{:032x}", digest_of(&results)?);
        let (own, its) = (own.whole as f64 / segments, whole.whole.saturating_sub(start) as f64 / segments);
        let (name, ratio, verdict) = (&workload.name, its / own, if same { "equal" } else { "DIFFERS" });
        println!("{name:<12} {segments:>10} {own:>10.0} {its:>10.0} {start:>10} {ratio:>8.4}  {verdict}");
        fine &= same && ratio <= MOST;
    }
    Ok(fine)
}

/// The digests of all runs, joined as [`Workload::run`] does it.
fn digest_of(results: &str) -> Result<u128, String> {
    let wrong = || format!("no results: {results:.200}");
    let results: serde_json::Value = serde_json::from_str(results).map_err(|_| wrong())?;
    let runs = results["runs"].as_array().ok_or_else(wrong)?;
    runs.iter().try_fold(0, |all, run| {
        let digest = run["digest"].as_str().and_then(|digest| u128::from_str_radix(digest, 16).ok());
        Ok(all ^ digest.ok_or_else(wrong)?)
    })
}
