//! `anabranch reproduce`

use crate::args::{ListFormat, ReproduceArguments};
use crate::bar::Bar;
use crate::marked::Marked;
use crate::opener::Opener;
use crate::outcome::Outcome;
use crate::terminal::text_width;
use anabranch_workbench::drivers::Drivers;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::folder::Folder;
use anabranch_workbench::papers;
use anabranch_workbench::reproduce::{self, CLAIMS, Ended, Request, SUMMARY};

/// Runs papers, or an item of one.
pub fn reproduce(arguments: &ReproduceArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let papers = papers::find(&arguments.paper)?;
    // Said before the work, not after it.
    let targets = arguments.update.iter().map(|file| Marked::read(file, &[SUMMARY, CLAIMS]));
    let targets = targets.collect::<Result<Vec<_>, Failure>>()?;
    let opener = arguments.open.then(Opener::find).transpose()?;
    let mut ended = reproduce::reproduce(&papers, &request(arguments), drivers, &Bar::new())?;
    if let Some((opener, page)) = opener.zip(ended.page.as_ref()) {
        ended.wrong.extend(opener.open(page).err());
    }
    if ended.is_whole {
        let wrong: Vec<Failure> = targets.iter().flat_map(|target| fill(target, &ended)).collect();
        ended.wrong.extend(wrong);
    }
    let output = match arguments.format {
        _ if ended.reproduction.papers.is_empty() => String::new(),
        ListFormat::Json => ended.json(),
        ListFormat::Table => ended.text(text_width()),
    };
    Ok(Outcome::new(output, ended.wrong))
}

/// Puts tables into a file, and pictures beside it: what went wrong.
fn fill(target: &Marked<'_>, ended: &Ended) -> Vec<Failure> {
    let written = target.write(|name| ended.section(name));
    let beside = || Folder::make(target.folder()).and_then(|folder| ended.write_beside(&folder));
    let beside = target.has(CLAIMS).then(beside).and_then(Result::err);
    written.err().into_iter().chain(beside).collect()
}

fn request(arguments: &ReproduceArguments) -> Request<'_> {
    Request {
        paper: &arguments.paper,
        item: arguments.item.as_deref(),
        live: arguments.live,
        quick: arguments.quick,
        readings: arguments.readings,
        repeat: arguments.repeat,
        jobs: arguments.jobs,
        out: &arguments.out,
        force: arguments.force,
    }
}
