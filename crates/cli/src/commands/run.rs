//! `anabranch run`

use crate::args::{Format, Output, RunArguments};
use crate::bar::Bar;
use crate::opener::Opener;
use crate::outcome::Outcome;
use anabranch_report::text::{auto_notes, results_table};
use anabranch_run::{Driver, Options, Plan, Repeat, Results, Shard};
use anabranch_scenario::{Host, Override, PlugIn, Role};
use anabranch_workbench::drivers::Drivers;
use anabranch_workbench::failure::{Failure, Salvage};
use anabranch_workbench::folder::Folder;
use anabranch_workbench::inputs::Whole;
use anabranch_workbench::kept::Kept;
use anabranch_workbench::load::{Loaded, congestions, schedulers, set_overrides};
use anabranch_workbench::making::{self, Made, Making, Repetitions};
use anabranch_workbench::runs_csv::runs_csv;
use anabranch_workbench::shard::ShardFile;
use anabranch_workbench::stage::{Stage, carry_out_shard};
use anabranch_workbench::watch::Wanted;

/// Runs a scenario.
pub fn run(arguments: &RunArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let loaded = Loaded::read(&arguments.scenario, overrides(arguments))?;
    check_plug_ins(arguments, &loaded)?;
    let real_time = is_real_time(arguments, &loaded);
    let options = Options {
        schedulers: contestants(arguments)?,
        congestions: congestions("--congestion", &arguments.congestion)?,
        baselines: !arguments.no_baselines,
        repeat: match arguments.repeat {
            Some(Repetitions::Auto) => Repeat::Auto,
            _ => Repeat::AsWritten,
        },
        real_time,
        ..Options::default()
    };
    if let Some(shard) = arguments.shard {
        return run_shard(&loaded, &options, &arguments.output, shard, drivers.virtual_time);
    }
    let preflighted = arguments.preflight.limit().filter(|_| real_time).map(drivers.preflight);
    let driver = match &preflighted {
        Some(driver) => driver.as_ref(),
        None if real_time => drivers.real_time,
        None => drivers.virtual_time,
    };
    let wanted = Wanted { captures: arguments.pcap.clone(), events: arguments.events.clone(), ..Wanted::default() };
    let (results, wrong) = execute(&loaded, &options, &arguments.output, wanted, Making::Kept(driver))?;
    let notes = options.repeat == Repeat::Auto && arguments.output.format == Format::Table;
    let notes = if notes { auto_notes(&results) } else { String::new() };
    Ok(Outcome::new(print(&results, arguments.output.format) + &notes, wrong))
}

/// The schedulers that are named, the reference first: all others are compared with it.
fn contestants(arguments: &RunArguments) -> Result<Vec<PlugIn>, Failure> {
    let named = schedulers("--scheduler", &arguments.scheduler)?;
    let Some(name) = &arguments.reference else { return Ok(named) };
    let [reference] = &schedulers("--reference", &[name])?[..] else {
        let message = format!("--reference {name}: all schedulers are compared with a single one");
        return Err(Failure::unusable("anabranch::cli::usage", message, Some("name one scheduler".into())));
    };
    let others = named.into_iter().filter(|other| other != reference);
    Ok([reference.clone()].into_iter().chain(others).collect())
}

/// The options that are keys of the scenario by another name.
fn overrides(arguments: &RunArguments) -> Vec<Override> {
    let count = match arguments.repeat {
        Some(Repetitions::Count(count)) => Some(count.to_string()),
        _ => None,
    };
    let options = [
        ("--seed", "seed", arguments.seed.map(|seed| seed.to_string())),
        ("--repeat", "repeat", count),
        ("--duration", "duration", arguments.duration.clone()),
        ("--sender", "hosts.sender", arguments.sender.clone()),
        ("--receiver", "hosts.receiver", arguments.receiver.clone()),
    ];
    let mut overrides = set_overrides(&arguments.set);
    let given = options.into_iter().filter_map(|(option, key, value)| Some(Override::new(option, key, value?)));
    overrides.extend(given);
    overrides.extend(arguments.sweep.iter().map(|text| Override::sweep("--sweep", text, arguments.zip)));
    overrides
}

/// Options that name schedulers or congestion controls take the place of the scenario's: a sweep over them would be lost.
fn check_plug_ins(arguments: &RunArguments, loaded: &Loaded) -> Result<(), Failure> {
    let options = [("scheduler", &arguments.scheduler), ("congestion", &arguments.congestion)];
    for (key, _) in options.into_iter().filter(|(_, given)| !given.is_empty()) {
        let is_it = |o: &&Override| o.role != Role::Set && o.key.rsplit('.').next() == Some(key);
        if let Some(swept) = loaded.overrides.iter().find(is_it) {
            let message = format!("--{key} and --sweep {}: only one of them can apply", swept.key);
            let help = Some(format!("name every value after --{key}"));
            return Err(Failure::unusable("anabranch::cli::usage", message, help));
        }
    }
    Ok(())
}

/// Whether the run is in real time: by option, or because a host is a kernel.
fn is_real_time(arguments: &RunArguments, loaded: &Loaded) -> bool {
    let linux = |host| matches!(host, Host::Linux);
    arguments.realtime || loaded.document.cells.iter().any(|(_, s)| linux(s.hosts.sender) || linux(s.hosts.receiver))
}

/// Makes and keeps the runs of one of several machines.
fn run_shard(
    loaded: &Loaded,
    options: &Options,
    output: &Output,
    shard: Shard,
    driver: &dyn Driver,
) -> Result<Outcome, Failure> {
    let refuse = |why: &str, help: &str| {
        Err(Failure::unusable("anabranch::cli::usage", format!("--shard: {why}"), Some(help.into())))
    };
    if options.real_time {
        return refuse("runs follow the clock", "leave the Linux host out");
    }
    if options.repeat == Repeat::Auto {
        return refuse("`--repeat auto` needs the results of all shards", "give a number of repetitions");
    }
    let Some(folder) = &output.out else { return refuse("it keeps runs in a directory", "give --out DIR") };
    ShardFile::new(shard, Whole::of(loaded, options)).write(&Folder::make(folder)?)?;
    let journal = Kept::in_folder(folder, driver, false)?;
    let plan = Plan::new(&loaded.variants(), options);
    let (name, kept) = (String::new(), Salvage::Kept);
    let stage =
        Stage { plan, driver: &journal, real_time: false, jobs: output.jobs, name, kept, folder: None, order: None };
    let done = carry_out_shard(&stage, shard, &Bar::new())?;
    let Shard { number, of } = shard;
    let text = format!("Shard {number}/{of}: {done} runs are kept in {}.\n", folder.display());
    Ok(Outcome::new(text, journal.failure().into_iter().collect()))
}

/// Plans, runs, writes the files of `--out`, and opens the report if asked: the results, and what went wrong beside them.
///
/// # Errors
/// There are no results.
pub fn execute(
    loaded: &Loaded,
    options: &Options,
    output: &Output,
    wanted: Wanted,
    making: Making<'_>,
) -> Result<(Results, Vec<Failure>), Failure> {
    // The program that opens the report is located before the runs.
    let opener = output.open.then(Opener::find).transpose()?;
    let made = making::execute((loaded, options), &output.filing(), wanted, making, &Bar::new())?;
    Ok(opened(made, opener))
}

/// Results with everything that went wrong, after the report was opened if asked.
pub fn opened(Made { results, page, mut wrong }: Made, opener: Option<Opener>) -> (Results, Vec<Failure>) {
    wrong.extend(opener.zip(page).and_then(|(opener, page)| opener.open(&page).err()));
    (results, wrong)
}

/// The results in the requested format.
pub fn print(results: &Results, format: Format) -> String {
    match format {
        Format::Table => results_table(results),
        Format::Json => results.to_json(),
        Format::Csv => runs_csv(results),
    }
}
