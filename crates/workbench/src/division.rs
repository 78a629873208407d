//! A plan's runs in parts of about one size, for stores that keep each part as a file.

use crate::digest::sha256;
use crate::kept::PROGRAM;
use anabranch_run::{Job, Plan};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_128;

/// Some repetitions of some cells, with all their rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Cells, counted from 0.
    pub cells: Range<usize>,
    /// Repetitions, counted from 0.
    pub repetitions: Range<u32>,
    /// The number of runs.
    pub runs: usize,
}

impl Part {
    /// The runs of this part of `whole`.
    pub fn plan(&self, whole: &Plan) -> Plan {
        whole.part(self.cells.clone(), self.repetitions.clone())
    }
}

/// Parts of about so many runs, in the order of the cells: a range of the seeds of one cell, or several small cells.
///
/// `shape` has the rows and the repetitions of each cell, as [`Plan::shape`] has them.
pub fn divide(shape: &[(usize, u32)], runs: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut begin, mut held, mut most) = (0, 0, 0);
    for (cell, &(rows, repeat)) in shape.iter().enumerate() {
        let own = rows * repeat as usize;
        if held > 0 && held + own > runs {
            parts.push(Part { cells: begin..cell, repetitions: 0..most, runs: held });
            (begin, held, most) = (cell, 0, 0);
        }
        let step = u32::try_from(runs / rows.max(1)).unwrap_or(u32::MAX).max(1);
        if repeat <= step {
            (held, most) = (held + own, most.max(repeat));
            continue;
        }
        for first in (0..repeat).step_by(step as usize) {
            let repetitions = first..first.saturating_add(step).min(repeat);
            let runs = rows * repetitions.len();
            parts.push(Part { cells: cell..cell + 1, repetitions, runs });
        }
        begin = cell + 1;
    }
    if held > 0 {
        parts.push(Part { cells: begin..shape.len(), repetitions: 0..most, runs: held });
    }
    parts
}

/// The name of a run in a journal of one build. Cells that share a run have one each: an outcome that a table was read for serves no
/// other cell.
pub fn run_name(job: &Job) -> u128 {
    xxh3_128(run_text(job).as_bytes())
}

/// The text of everything that decides the outcome of a run, within one build.
fn run_text(job: &Job) -> String {
    format!("{:?} {:032x}", job.cell, job.identity().with_seed(job.seed).name())
}

/// SHA-256 of the build, the scenario, the options and the seeds: two plans of one identity have the same results.
pub fn identity(plan: &Plan) -> String {
    let row = |job: Job| format!("{:?} {:?} {:?} {}\n", job.cell, job.choice, job.congestion, run_text(&job));
    let rows: String = plan.jobs().map(row).collect();
    sha256(format!("{PROGRAM}\n{rows}{:?}\n", plan.shape()))
}

/// The file of the part with this number among those of `whole`, counted from 0: its place, and the key of its runs.
pub fn part_file(number: usize, part: &Part, whole: &Plan) -> String {
    format!("part-{number:06}-{}.parquet", &identity(&part.plan(whole))[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_in_one_part() {
        let shape = [(4, 5), (4, 5), (2, 1), (2, 30), (4, 2)];
        let all: Vec<(usize, u32)> =
            shape.iter().enumerate().flat_map(|(cell, (_, repeat))| (0..*repeat).map(move |n| (cell, n))).collect();
        for runs in [1, 3, 4, 7, 20, 24, 41, 1000] {
            let parts = divide(&shape, runs);
            let mut found = Vec::new();
            for part in &parts {
                let of = |cell: usize| part.repetitions.start..part.repetitions.end.min(shape[cell].1);
                let before = found.len();
                found.extend(part.cells.clone().flat_map(|cell| of(cell).map(move |n| (cell, n))));
                let own: usize = found[before..].iter().map(|(cell, _)| shape[*cell].0).sum();
                assert_eq!(own, part.runs);
                assert!(part.runs <= runs.max(4), "{runs}: {part:?}");
            }
            assert_eq!(found, all, "{runs}");
        }
    }

    #[test]
    fn nothing_has_no_parts() {
        assert_eq!(divide(&[], 10), []);
        assert_eq!(divide(&[(0, 0)], 10), []);
    }
}
