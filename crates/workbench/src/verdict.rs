//! Whether results come out again, and what differs.

use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::{RESULTS, why};
use crate::inputs::Inputs;
use crate::kept::PROGRAM;
use anabranch_run::Results;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The document of earlier results.
pub struct Earlier {
    text: String,
    results: Results,
}

/// The outcome of a comparison.
pub struct Verdict {
    /// Every byte of the document is the same.
    pub is_same: bool,
    /// In sentences, each a line.
    pub text: String,
}

/// Digests of the runs, by row, cell and seed.
type Digests = BTreeMap<String, String>;

impl Earlier {
    /// Those of a results directory.
    pub fn read(folder: &Folder) -> Result<Self, Failure> {
        let unusable = |why: String| {
            let message = format!("cannot read {}: {why}", folder.path().join("results.json").display());
            Failure::unusable("anabranch::cli::unreadable", message, None)
        };
        let text = folder.read_within(RESULTS, 0, "results.json").map_err(|error| unusable(why(&error)))?;
        let results = serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
        Ok(Self { text, results })
    }

    /// Compares them with `results`, which were made from `inputs`.
    pub fn compare(&self, inputs: &Inputs, results: &Results) -> Verdict {
        let is_same = self.text == results.to_json();
        let mut text = other_program(inputs);
        inputs.whole.changed_files().for_each(|line| text += &line);
        text += &match is_same {
            true => format!("{} runs: results.json comes out again, byte for byte.\n", results.runs.len()),
            false => self.differences(results),
        };
        Verdict { is_same, text }
    }

    fn differences(&self, results: &Results) -> String {
        let (then, now) = (digests(&self.results), digests(results));
        let mut text = String::new();
        if let Some(part) = self.results.incomplete {
            let _ = writeln!(text, "The earlier results are incomplete: {} of {} runs.", part.finished, part.planned);
        }
        let differs = |name: &&String| now.get(*name).is_some_and(|digest| *digest != then[*name]);
        let kinds: [(&str, Vec<&String>); 3] = [
            ("Other events", then.keys().filter(differs).collect()),
            ("Not made again", then.keys().filter(|name| !now.contains_key(*name)).collect()),
            ("Not in the earlier results", now.keys().filter(|name| !then.contains_key(*name)).collect()),
        ];
        let all = then.len().max(now.len());
        for (kind, names) in kinds {
            if let Some(first) = names.first() {
                let _ = writeln!(text, "{kind}: {} of {all} runs; the first is {first}.", names.len());
            }
        }
        if then == now {
            text += "All runs have the same events; the documents differ in what is made from them.\n";
        }
        text
    }
}

fn digests(results: &Results) -> Digests {
    let mut digests = Digests::new();
    for row in results.runs.rows() {
        let cell: String = row.cell().iter().map(|(key, value)| format!(", {key}={value}")).collect();
        for (seed, digest) in row.seeds().iter().zip(row.digests()) {
            digests.insert(format!("{}, {}{cell}, seed {seed}", row.scheduler(), row.congestion()), digest);
        }
    }
    digests
}

/// A line if another build made them.
fn other_program(inputs: &Inputs) -> String {
    match inputs.program == PROGRAM {
        true => String::new(),
        false => format!("The earlier results are of build {}, these of build {PROGRAM}.\n", inputs.program),
    }
}
