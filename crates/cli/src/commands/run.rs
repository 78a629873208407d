//! `anabranch run`

use crate::args::{Format, Output, RunArguments};
use crate::artifacts;
use crate::drivers::Drivers;
use crate::failure::{Failure, Salvage};
use crate::folder::Folder;
use crate::inputs::Whole;
use crate::kept::{Kept, salvage, through};
use crate::load::{Loaded, congestions, schedulers, set_overrides};
use crate::number::Repetitions;
use crate::opener::Opener;
use crate::out_folder::{OutFolder, Owner};
use crate::outcome::Outcome;
use crate::results_folder::{PAGE, make_run_report};
use crate::runs_csv::runs_csv;
use crate::shard::{ShardFile, refuse_shard};
use crate::stage::{Carried, Stage, carry_out, carry_out_shard};
use crate::watch::Wanted;
use anabranch_report::text::{auto_notes, results_table};
use anabranch_run::{Driver, Options, Plan, Repeat, Results, Shard};
use anabranch_scenario::{Host, Override, Role, Scenario, Traffic};
use anabranch_units::ConnId;
use std::num::NonZeroUsize;
use std::time::{Instant, SystemTime};

/// Packets that timelines follow unless the user says otherwise.
const PACKETS: usize = 20_000;

/// Runs a scenario.
pub fn run(arguments: &RunArguments, drivers: &Drivers<'_>) -> Result<Outcome, Failure> {
    let loaded = Loaded::read(&arguments.scenario, overrides(arguments))?;
    check_plug_ins(arguments, &loaded)?;
    let real_time = is_real_time(arguments, &loaded);
    let options = Options {
        schedulers: schedulers("--scheduler", &arguments.scheduler)?,
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
    let done = carry_out_shard(&stage, shard)?;
    let Shard { number, of } = shard;
    let text = format!("Shard {number}/{of}: {done} runs are kept in {}.\n", folder.display());
    Ok(Outcome::new(text, journal.failure().into_iter().collect()))
}

/// The maker of runs.
#[derive(Clone, Copy)]
pub enum Making<'a> {
    /// A driver whose runs a journal keeps, so that an interrupted command continues.
    Kept(&'a dyn Driver),
    /// Networks that change: the runs of each repetition come in a random order with this seed, and those of an earlier command
    /// cannot be continued.
    Changing(&'a dyn Driver, u64),
}

/// Plans, runs, and writes the files of `--out`: the results, and the errors of files that could not be written.
///
/// # Errors
/// There are no results.
pub fn execute(
    loaded: &Loaded,
    options: &Options,
    output: &Output,
    mut wanted: Wanted,
    making: Making<'_>,
) -> Result<(Results, Vec<Failure>), Failure> {
    // The program that opens the report is located before the runs.
    let opener = output.open.then(Opener::find).transpose()?;
    let (started, clock) = (SystemTime::now(), Instant::now());
    wanted.connection = followed(loaded, output.connection.get())?;
    refuse_shard(output.out.as_deref())?;
    let owner = Owner::of(&loaded.source);
    let out = output.out.as_deref().map(|folder| OutFolder::claim(folder, &owner, output.force)).transpose()?;
    let plan = Plan::new(&loaded.variants(), options);
    // Those of each cell would be most of what a sweep writes.
    let unless_given = (!plan.is_sweep()).then_some(PACKETS).max(output.packets.filter(|packets| *packets > 0));
    let timeline = output.timeline.or(unless_given);
    wanted.series = out.as_ref().filter(|_| timeline.is_some()).map(OutFolder::series);
    wanted.timeline = out.as_ref().zip(timeline.filter(|packets| *packets > 0)).map(|(out, n)| (out.timeline(), n));
    // Runs that follow the clock disturb each other where they share the machine: only if asked.
    let jobs = output.jobs.or(NonZeroUsize::new(1).filter(|_| options.real_time));
    let (driver, folder, order) = match making {
        Making::Kept(driver) => (driver, output.out.as_deref(), None),
        Making::Changing(driver, seed) => (driver, None, Some(seed)),
    };
    let journal = Kept::in_out(folder, driver, options.real_time)?;
    let (driver, kept) = (through(journal.as_ref(), driver), salvage(journal.as_ref()));
    let folder = out.as_ref().map(|out| out.beside().to_owned());
    let stage = Stage { plan, driver, real_time: options.real_time, jobs, name: String::new(), kept, folder, order };
    let Carried { mut results, part, mut wrong } = carry_out(&[stage], wanted)?;
    let Some(results) = results.pop().or(part) else { return Err(wrong.remove(0)) };
    // Whole results of an earlier command do not give way to a part.
    let out = out.filter(|out| results.incomplete.is_none() || out.is_free());
    let keep = |out: OutFolder| {
        artifacts::write(&Folder::make(out.beside())?, (loaded, options), &results, started, clock.elapsed())?;
        make_run_report(out.beside(), &results, output.packets)?;
        let report = out.take()?.join(PAGE);
        opener.map_or(Ok(()), |opener| opener.open(&report))
    };
    wrong.extend(out.and_then(|out| keep(out).err()));
    journal.into_iter().for_each(|journal| journal.close(&mut wrong));
    Ok((results, wrong))
}

/// The connection that its number names, counted from 1, if every cell has one.
fn followed(loaded: &Loaded, number: u32) -> Result<ConnId, Failure> {
    let count = |scenario: &Scenario| scenario.traffic.iter().map(Traffic::connections).sum::<u32>();
    let fewest = loaded.document.cells.iter().map(|(_, scenario)| count(scenario)).min().unwrap_or(1);
    if number > fewest {
        let message = format!("--connection {number}: there is no such connection");
        let help = if fewest == 1 { "there is one".to_owned() } else { format!("there are {fewest}") };
        return Err(Failure::unusable("anabranch::cli::usage", message, Some(help)));
    }
    Ok(ConnId(number - 1))
}

/// The results in the requested format.
pub fn print(results: &Results, format: Format) -> String {
    match format {
        Format::Table => results_table(results),
        Format::Json => results.to_json(),
        Format::Csv => runs_csv(results),
    }
}
