//! `anabranch infer`

use crate::args::{InferArguments, ListFormat};
use crate::bar::Bar;
use crate::opener::Opener;
use crate::outcome::Outcome;
use crate::terminal::text_width;
use anabranch_run::Shard;
use anabranch_workbench::drivers::Drivers;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::infer::{self, Request, Study};

/// Infers the parameters that papers, or a file, leave open.
pub fn infer(arguments: &InferArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let request = request(arguments);
    let studies = Study::find(&request)?;
    let opener = arguments.open.then(Opener::find).transpose()?;
    let mut ended = infer::infer(&studies, &request, drivers.virtual_time, &Bar::new())?;
    if let (Some(made), Some(Shard { number, of }), Some(folder)) = (ended.made, arguments.shard, &arguments.out) {
        let text = format!("Shard {number}/{of}: {made} runs are kept in {}.\n", folder.display());
        return Ok(Outcome::new(text, ended.wrong));
    }
    if let Some((opener, page)) = opener.zip(ended.page.as_ref()) {
        ended.wrong.extend(opener.open(page).err());
    }
    let output = match arguments.format {
        ListFormat::Json => ended.json(),
        ListFormat::Table => ended.text(text_width()),
    };
    Ok(Outcome::new(output, ended.wrong))
}

fn request(arguments: &InferArguments) -> Request<'_> {
    Request {
        source: &arguments.source,
        draws: arguments.draws,
        keep: arguments.keep,
        jobs: arguments.jobs,
        out: arguments.out.as_deref(),
        force: arguments.force,
        shard: arguments.shard,
        from: &arguments.from,
    }
}
