//! Instructions of a program's run, and of those parts of it whose names are given, counted by callgrind.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Callgrind's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Everything.
    pub whole: u64,
    /// Inside the functions whose names contain the part that is given, with those that they call.
    pub inside: u64,
}

/// True if there is a valgrind.
pub fn is_here() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|ran| ran.status.success())
}

/// Runs `program` with `arguments` under callgrind. Returns its output and the counts, the inner ones of functions whose names contain
/// `part`.
pub fn run(program: &Path, arguments: &[String], part: &str) -> Result<(String, Counted), String> {
    let kept = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = kept.path().join("profile");
    let ran = Command::new("valgrind")
        .args(["-q", "--tool=callgrind", &format!("--callgrind-out-file={}", file.display())])
        .arg(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned());
    }
    let profile = std::fs::read_to_string(&file).map_err(|error| format!("no profile: {error}"))?;
    Ok((String::from_utf8_lossy(&ran.stdout).into_owned(), read(&profile, part)))
}

/// Reads a profile. A name is complete once, as `(12) name`; later it is `(12)` alone. After `calls=` comes a line with
/// the inclusive cost of these calls.
fn read(profile: &str, part: &str) -> Counted {
    let mut counted = Counted::default();
    let mut parts: BTreeSet<&str> = BTreeSet::new();
    let (mut within, mut called, mut cost_follows) = (false, false, false);
    for line in profile.lines() {
        if let Some(total) = line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")) {
            counted.whole = total.trim().parse().unwrap_or(0);
            continue;
        }
        let function = line.strip_prefix("fn=").map(|name| (name, false));
        if let Some((name, callee)) = function.or(line.strip_prefix("cfn=").map(|name| (name, true))) {
            let (id, text) = name.split_once(' ').unwrap_or((name, ""));
            if text.contains(part) {
                parts.insert(id);
            }
            *if callee { &mut called } else { &mut within } = parts.contains(id);
        } else if line.starts_with("calls=") {
            cost_follows = true;
        } else if core::mem::take(&mut cost_follows) && called && !within {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            counted.inside += cost.unwrap_or(0);
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inclusive_cost_of_calls_from_outside_is_added_up() {
        let profile = "\
events: Ir
fn=(1) main
0 100
cfn=(2) decisions::Seat::schedule
calls=3 0
0 250
cfn=(3) other
calls=1 0
0 999

fn=(2)
0 50
cfn=(4) decisions::Seat::deeper
calls=1 0
0 40

fn=(3)
0 7
cfn=(2)
calls=1 0
0 30
summary: 5000
";
        assert_eq!(read(profile, "Seat"), Counted { whole: 5000, inside: 280 });
    }
}
