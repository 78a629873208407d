//! A part of a command's runs, for one of several machines, and what brings the parts together.

use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::{RESULTS, why};
use crate::inputs::Whole;
use crate::kept::PROGRAM;
use anabranch_run::{Plan, Shard};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file beside the journal of a part.
const SHARD: &str = "shard.json";

/// Which part, and everything that the whole is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardFile {
    /// Version.
    pub anabranch: String,
    /// Version and digest of what decides a run's outcome.
    program: String,
    /// Number of the part, from 1.
    pub number: u32,
    /// Number of all parts.
    pub of: u32,
    /// The runs.
    pub whole: Whole,
}

impl ShardFile {
    /// The file of the part `shard` of `whole`, made by this program.
    pub fn new(shard: Shard, whole: Whole) -> Self {
        let anabranch = env!("CARGO_PKG_VERSION").to_owned();
        Self { anabranch, program: PROGRAM.to_owned(), number: shard.number, of: shard.of, whole }
    }

    /// Writes it into `folder`. A part of other runs that is there stays, and is an error.
    pub fn write(&self, folder: &Folder) -> Result<(), Failure> {
        if folder.kind(SHARD).is_some() && Self::read(folder.path())? != *self {
            let message = format!("{} holds a shard of other runs", folder.path().display());
            let help = "give --out another directory".to_owned();
            return Err(Failure::unusable("anabranch::cli::other_shard", message, Some(help)));
        }
        // Strings and whole numbers only: this cannot fail.
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        folder.write(SHARD, text)
    }

    /// That of `folder`.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join(SHARD);
        let unusable = |why: String| {
            let message = format!("cannot read {}: {why}", file.display());
            let help = "give directories that `anabranch run --shard` wrote".to_owned();
            Failure::unusable("anabranch::cli::unreadable", message, Some(help))
        };
        let text = Folder::open(folder).and_then(|folder| folder.read_within(RESULTS, 0, SHARD));
        let text = text.map_err(|error| unusable(why(&error)))?;
        serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))
    }

    /// Refuses one that another build made.
    pub fn check(&self, folder: &Path) -> Result<(), Failure> {
        if self.program == PROGRAM {
            return Ok(());
        }
        let message = format!("{} was made by another build, of version {}", folder.display(), self.anabranch);
        let help = "use one build for all shards and for `merge`".to_owned();
        Err(Failure::unusable("anabranch::cli::other_version", message, Some(help)))
    }
}

/// Refuses a shard as the directory of whole results.
pub fn refuse_shard(out: Option<&Path>) -> Result<(), Failure> {
    let Some(folder) = out.filter(|folder| folder.join(SHARD).symlink_metadata().is_ok()) else { return Ok(()) };
    let message = format!("{} is a shard", folder.display());
    Err(Failure::unusable("anabranch::cli::shards", message, Some("give --out another directory".into())))
}

/// The runs of `plan` that `has` does not find, in numbers.
pub fn missing(plan: &Plan, has: impl Fn(&anabranch_run::Job) -> bool) -> (usize, usize) {
    plan.runs().fold((0, 0), |(missing, all), job| (missing + usize::from(!has(&job)), all + 1))
}
