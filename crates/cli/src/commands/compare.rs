//! `anabranch compare`

use crate::args::{CompareArguments, ListFormat};
use crate::bar::Bar;
use crate::marked::Marked;
use crate::outcome::Outcome;
use anabranch_run::Driver;
use anabranch_workbench::compare::Request;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::output::Output;

/// Runs all schedulers over the grid.
pub fn compare(arguments: &CompareArguments, driver: &dyn Driver) -> Result<Outcome, Failure> {
    let request = request(arguments);
    let grid = request.grid()?;
    let targets = arguments.update.iter().map(|file| Marked::read(file, &request.sections()));
    let targets = targets.collect::<Result<Vec<_>, Failure>>()?;
    let picture_file = arguments.picture.as_deref().map(Output::claim).transpose()?;
    let mut ended = request.run(&grid, driver, &Bar::new())?;
    if ended.found.is_nothing() {
        return Ok(Outcome::new(String::new(), ended.wrong));
    }
    let output = match arguments.format {
        ListFormat::Table => ended.found.text(),
        ListFormat::Json => ended.found.json(),
    };
    // A document never holds a part.
    if ended.is_whole() {
        let found = &ended.found;
        ended.wrong.extend(targets.iter().filter_map(|target| target.write(|name| found.section(name)).err()));
        ended.wrong.extend(picture_file.and_then(|file| file.write(found.picture()).err()));
    }
    Ok(Outcome::new(output, ended.close()))
}

fn request(arguments: &CompareArguments) -> Request<'_> {
    Request {
        schedulers: &arguments.scheduler,
        congestions: &arguments.congestion,
        traffic: &arguments.traffic,
        grid: arguments.grid.as_deref(),
        wavering: arguments.wavering,
        quick: arguments.quick,
        repeat: arguments.repeat,
        jobs: arguments.jobs,
        first_path: arguments.first_path,
        room: arguments.room,
        known_rates: arguments.known_rates,
        out: arguments.out.as_deref(),
    }
}
