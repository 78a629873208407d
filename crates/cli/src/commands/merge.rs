//! `anabranch merge`

use super::run::{execute, print};
use crate::args::MergeArguments;
use crate::outcome::Outcome;
use anabranch_run::Plan;
use anabranch_workbench::drivers::Drivers;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::kept::Kept;
use anabranch_workbench::making::Making;
use anabranch_workbench::shard::{ShardFile, missing, refuse_shard};
use anabranch_workbench::watch::Wanted;

/// Brings the shards of a command together.
pub fn merge(arguments: &MergeArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let shards = arguments.folders.iter().map(|folder| Ok((folder, ShardFile::read(folder)?)));
    let shards: Vec<_> = shards.collect::<Result<_, Failure>>()?;
    shards.iter().try_for_each(|(folder, shard)| shard.check(folder))?;
    let Some((first, rest)) = shards.split_first() else { return Ok(String::new().into()) };
    let unusable =
        |message: String, help: &str| Err(Failure::unusable("anabranch::cli::shards", message, Some(help.into())));
    if let Some((folder, _)) = rest.iter().find(|(_, shard)| (shard.of, &shard.whole) != (first.1.of, &first.1.whole)) {
        let message = format!("{} and {} are shards of different runs", first.0.display(), folder.display());
        return unusable(message, "name the shards of one command");
    }
    let absent: Vec<String> = (1..=first.1.of)
        .filter(|number| shards.iter().all(|(_, shard)| shard.number != *number))
        .map(|number| format!("{number}/{}", first.1.of))
        .collect();
    if !absent.is_empty() {
        return unusable(format!("shard {} is missing", absent.join(", ")), "name the directories of all shards");
    }
    let (loaded, options) = first.1.whole.again()?;
    let output = &arguments.output;
    refuse_shard(output.out.as_deref())?;
    let Some(journal) = Kept::in_out(output.out.as_deref(), drivers.virtual_time, false)? else {
        return unusable("--out DIR is missing: the directory of the whole".into(), "anabranch merge a b --out whole");
    };
    for (folder, _) in &shards {
        journal.add(folder)?;
    }
    let (missing, all) = missing(&Plan::new(&loaded.variants(), &options), |job| journal.has(job));
    if missing > 0 {
        let message = format!("{missing} of {all} runs are in none of the shards");
        return unusable(message, "a shard was interrupted: its command continues where it stopped");
    }
    // It is opened again there.
    drop(journal);
    let (results, wrong) = execute(&loaded, &options, output, Wanted::default(), Making::Kept(drivers.virtual_time))?;
    Ok(Outcome::new(print(&results, output.format), wrong))
}
