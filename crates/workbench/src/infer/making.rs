//! The runs of an inference, of one machine or of several.

use crate::failure::Failure;
use crate::kept::{Kept, salvage};
use crate::progress::Progress;
use crate::shard::missing;
use crate::stage::{Stage, carry_out, carry_out_shard};
use crate::watch::Wanted;
use anabranch_run::{Driver, Plan, Results, Shard};
use std::cell::Cell;
use std::num::NonZeroUsize;

/// How runs are made.
pub(super) struct Making<'a> {
    pub driver: &'a dyn Driver,
    pub journal: Option<&'a Kept<'a>>,
    pub jobs: Option<NonZeroUsize>,
    pub shard: Option<Shard>,
    pub progress: &'a dyn Progress,
    /// Runs that this shard made.
    pub made: Cell<usize>,
}

impl Making<'_> {
    /// The results of plans. `None` of a shard that lacks some runs: then it has made its part of them.
    pub fn carry(&self, name: &str, plans: Vec<Plan>) -> Result<Option<Vec<Results>>, Failure> {
        let stage = |plan: Plan| Stage {
            plan,
            driver: self.driver,
            real_time: false,
            jobs: self.jobs,
            name: format!("{name}: "),
            kept: salvage(self.journal),
            folder: None,
            order: None,
        };
        let stages: Vec<Stage<'_>> = plans.into_iter().map(stage).collect();
        if let (Some(shard), Some(journal)) = (self.shard, self.journal)
            && stages.iter().any(|stage| missing(&stage.plan, |job| journal.has(job)).0 > 0)
        {
            for stage in &stages {
                self.made.set(self.made.get() + carry_out_shard(stage, shard, self.progress)?);
            }
            return Ok(None);
        }
        let mut carried = carry_out(&stages, Wanted::default(), self.progress)?;
        match carried.wrong.is_empty() {
            true => Ok(Some(carried.results)),
            false => Err(carried.wrong.remove(0)),
        }
    }
}
