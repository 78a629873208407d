//! The parts of testbeds that papers, or a file, leave open, inferred from baselines.

mod making;
mod study;

use crate::artifacts::{Machine, command_line};
use crate::failure::Failure;
use crate::folder::Folder;
use crate::kept::{Kept, through};
use crate::out_folder::{OutFolder, Owner};
use crate::progress::Progress;
use crate::results_folder::{self, PAGE, make_report};
use crate::runs_parquet::write_columns;
use crate::runs_table::Column;
use anabranch_report::of_inference::{self, claims_csv};
use anabranch_report::of_reproduction::Around;
use anabranch_reproduce::infer::Inference;
use anabranch_run::{Driver, Shard};
use making::{Bearing, Making};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;
pub use study::Study;

/// An inference to make.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// A file of unknowns and measured values; a paper's key, `all`, or a folder, as [`papers::find`](crate::papers::find) takes it.
    pub source: &'a Path,
    /// Testbeds drawn in a round; `None` = the source's number.
    pub draws: Option<NonZeroUsize>,
    /// Testbeds kept, in the same form.
    pub keep: Option<NonZeroUsize>,
    /// Threads; one per core if `None`.
    pub jobs: Option<NonZeroUsize>,
    /// Directory of results, report and finished runs.
    pub out: Option<&'a Path>,
    /// Replace other results there.
    pub force: bool,
    /// Make the runs of one machine of several; needs `out`.
    pub shard: Option<Shard>,
    /// Directories with the runs of shards; need `out`.
    pub from: &'a [PathBuf],
}

/// The outcome of an inference, perhaps of a part.
pub struct Ended {
    /// One for each source.
    pub inferences: Vec<Inference>,
    /// Runs that a shard made, if it lacks those of others.
    pub made: Option<usize>,
    /// The report, if it was written.
    pub page: Option<PathBuf>,
    /// Everything that went wrong.
    pub wrong: Vec<Failure>,
}

impl Ended {
    /// The tables in lines of at most `width` columns.
    pub fn text(&self, width: u16) -> String {
        of_inference::text(&self.inferences, width)
    }

    /// The claims, one per line, as `claims.csv` has them.
    pub fn claims(&self) -> String {
        claims_csv(&self.inferences)
    }

    /// The whole document.
    pub fn json(&self) -> String {
        json(&self.inferences)
    }
}

/// Infers the parameters that `studies` leave open, which are those of [`Study::find`].
///
/// # Errors
/// The directory has other results; a run fails; no draw is nearer than others.
pub fn infer(
    studies: &[Study],
    request: &Request<'_>,
    driver: &dyn Driver,
    progress: &dyn Progress,
) -> Result<Ended, Failure> {
    let whole = request.out.filter(|_| request.shard.is_none());
    let out = whole.map(|folder| OutFolder::claim(folder, &Owner::Inference, request.force)).transpose()?;
    let journal = Kept::in_out(request.out, driver, false)?;
    for from in request.from {
        journal.iter().try_for_each(|journal| journal.add(from))?;
    }
    let begun = Instant::now();
    let making = Making {
        driver: Bearing::new(through(journal.as_ref(), driver)),
        journal: journal.as_ref(),
        jobs: request.jobs,
        shard: request.shard,
        progress,
        made: Cell::new(0),
    };
    let mut found = Vec::new();
    for study in studies {
        found.extend(study.infer(&making)?);
    }
    let mut ended = Ended {
        inferences: found.iter().map(|(inference, _)| inference.clone()).collect(),
        made: (found.len() < studies.len()).then(|| making.made.get()),
        page: None,
        wrong: journal.iter().filter_map(Kept::failure).collect(),
    };
    if let Some(out) = out {
        let settings = [
            ("command", command_line().join(" ")),
            ("wall time", format!("{:.1} s, without runs that were kept from before", begun.elapsed().as_secs_f64())),
            ("machine", Machine::here().to_string()),
        ];
        let settings = settings.map(|(key, value)| (key.to_owned(), value)).to_vec();
        match write(out, &found, &ended.inferences, settings, progress) {
            Ok(page) => ended.page = Some(page),
            Err(failure) => ended.wrong.push(failure),
        }
    }
    Ok(ended)
}

fn json(inferences: &[Inference]) -> String {
    serde_json::to_string_pretty(inferences).unwrap_or_default() + "\n"
}

/// Writes all, and the report, whose page it names.
fn write(
    out: OutFolder,
    found: &[(Inference, Vec<Column>)],
    inferences: &[Inference],
    settings: Vec<(String, String)>,
    progress: &dyn Progress,
) -> Result<PathBuf, Failure> {
    let beside = Folder::make(out.beside())?;
    beside.write("inference.json", json(inferences))?;
    beside.write("claims.csv", claims_csv(inferences))?;
    for (inference, draws) in found {
        let mut bytes = Vec::new();
        let name = format!("draws-{}.parquet", inference.source);
        write_columns("draws", draws, &mut bytes).map_err(|error| Failure::unwritable(Path::new(&name), &error))?;
        beside.write(&name, bytes)?;
    }
    let (made_by, schedulers) = (results_folder::made_by(), results_folder::scheduler_names());
    let report = of_inference::report(inferences, Around { made_by, settings, seeds: Vec::new(), schedulers });
    beside.write("report.json", serde_json::to_string(&report).unwrap_or_default() + "\n")?;
    make_report(out.beside(), None, progress)?;
    Ok(out.take()?.join(PAGE))
}
