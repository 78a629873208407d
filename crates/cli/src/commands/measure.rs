//! `anabranch measure`

use super::links::{CODE, failed, session_settings};
use super::measurement::{options, overrides, scenario_text};
use super::record::{check_target, recorded};
use super::run::{execute, print};
use crate::args::{Format, MeasureArguments};
use crate::outcome::Outcome;
use anabranch_lab::interrupt;
use anabranch_measure::{MSS, MeasurementSession, PathSurvey, RealLinks, is_recordable, overhead, path_names};
use anabranch_report::text::{plain_table, print_table};
use anabranch_run::{Driver, RunError};
use anabranch_scenario::Override;
use anabranch_units::{Duration, Side};
use anabranch_workbench::failure::Failure;
use anabranch_workbench::load::Loaded;
use anabranch_workbench::making::Making;
use anabranch_workbench::watch::Wanted;
use std::net::SocketAddr;
use toml_writer::ToTomlValue;

/// Bytes of IPv4, TCP and its timestamps before a segment's payload.
const HEADERS: u32 = 20 + 32;

/// Keys of a path that the hosts use.
const PATH_KEYS: [&str; 4] = ["backup", "price", "cap", "weight"];

/// Measures schedulers over the interfaces of this host. What is wrong with the arguments is said before anything is measured.
pub fn measure(mut arguments: MeasureArguments, virtual_time: &dyn Driver) -> Result<Outcome, Failure> {
    arguments.record.as_deref().map_or(Ok(()), |file| check_target(file, &path_names(&arguments.near.via)))?;
    let options = options(&arguments)?;
    for (option, packets) in [("--timeline", arguments.output.timeline), ("--packets", arguments.output.packets)] {
        if packets.is_some_and(|packets| packets > 0) {
            let help = "leave it out: of the server this host gets events, and no packets";
            let message = format!("{option}: real links have no timeline");
            return Err(Failure::unusable("anabranch::cli::usage", message, Some(help.into())));
        }
    }
    // There are series all the same.
    arguments.output.timeline = arguments.output.out.is_some().then_some(0);
    check_paths(&overrides(&arguments))?;
    let settings = session_settings(&arguments.server, &arguments.server_key, &arguments.near)?;
    let address = settings.address;
    let unknown = |name| PathSurvey { name, goodput_bps: 1e6, rtt: Duration::from_millis(1), ..PathSurvey::default() };
    let unknown: Vec<PathSurvey> = path_names(&arguments.near.via).into_iter().map(unknown).collect();
    let early = loaded(&arguments, address, &unknown)?;
    let admitted = early.document.cells.iter().try_for_each(|(_, scenario)| RealLinks::admit(scenario));
    admitted.map_err(|error| Failure::unusable(CODE, error.to_string(), None))?;
    interrupt::listen().map_err(|error| Failure::failed(CODE, error.to_string()))?;
    let mut session = MeasurementSession::open(settings).map_err(failed)?;
    if arguments.record.is_some() {
        session.record();
    }
    let found = session.survey(survey_time(&arguments, &early)).map_err(|error| match error {
        RunError::Interrupted => super::links::interrupted(),
        error => Failure::failed(CODE, error.to_string()),
    })?;
    let loaded = loaded(&arguments, address, &found)?;
    let driver = RealLinks::new(session, loaded.document.resolved());
    let wanted = Wanted {
        captures: arguments.pcap.clone(),
        captured: &[Side::Client],
        events: arguments.events.clone(),
        ..Wanted::default()
    };
    let making = Making::Changing(&driver, arguments.seed);
    let (results, mut wrong) = execute(&loaded, &options, &arguments.output, wanted, making)?;
    let is_table = arguments.output.format == Format::Table;
    let paths = if is_table { table(&found) } else { String::new() };
    let mut outcome = Outcome::new(paths + &print(&results, arguments.output.format), Vec::new());
    match recorded(&arguments, overhead(address), &driver, &results, virtual_time) {
        Ok(prediction) if is_table => outcome.output += &prediction,
        Ok(prediction) => outcome.notes = prediction,
        Err(failure) => wrong.push(failure),
    }
    outcome.notes += &unsent(driver.unsent());
    Ok(Outcome { wrong, ..outcome })
}

/// How long a path's survey counts: longer if no run shows a path to a record.
fn survey_time(arguments: &MeasureArguments, loaded: &Loaded) -> Duration {
    let is_shown = !arguments.no_baselines && is_recordable(&loaded.document.scenario);
    let is_blind = arguments.record.is_some() && !is_shown;
    Duration::from_secs(if is_blind { 9 } else { 1 })
}

/// A warning of losses that are not those of the paths.
fn unsent(datagrams: u64) -> String {
    match datagrams {
        0 => String::new(),
        count => format!(
            "warning: this host's kernel did not take {count} datagrams (an interface that is down, a full queue): the runs show them \
             as losses of the paths\n"
        ),
    }
}

/// The scenario of the runs. Rates and delays of the paths are what was found; runs over real links do not use them.
fn loaded(arguments: &MeasureArguments, address: SocketAddr, found: &[PathSurvey]) -> Result<Loaded, Failure> {
    let overhead = overhead(address);
    let path = |path: &PathSurvey| {
        let rate = path.goodput_bps * f64::from(MSS + HEADERS + overhead) / f64::from(MSS);
        let delay = path.rtt.as_nanos() / 2_000;
        let name = path.name.as_str();
        let name = name.to_toml_value();
        format!("[[path]]\nname = {name}\nrate = \"{rate:.0}bit\"\ndelay = \"{delay}us\"\noverhead = {overhead}\n\n")
    };
    let paths: String = found.iter().map(path).collect();
    let text = scenario_text(arguments, &paths);
    // Results of another server are another scenario's.
    let name = format!("measure {}", arguments.server);
    let loaded = Loaded::given(&name, &text, overrides(arguments))?;
    if loaded.document.axes.is_empty() {
        return Ok(loaded);
    }
    let help = "name every scheduler after --scheduler, and measure once per value of another key";
    Err(Failure::unusable(CODE, "a measurement has no sweep", Some(help.to_owned())))
}

/// Real paths have their own rates, delays and losses.
fn check_paths(overrides: &[Override]) -> Result<(), Failure> {
    let is_foreign =
        |key: &str| key.starts_with("path.") && !PATH_KEYS.contains(&key.rsplit('.').next().unwrap_or(key));
    let Some(foreign) = overrides.iter().find(|set| is_foreign(&set.key)) else { return Ok(()) };
    let message = format!("--set {}: a real path is as it is", foreign.key);
    let help = format!("of a path only {} can be set", PATH_KEYS.join(", "));
    Err(Failure::unusable(CODE, message, Some(help)))
}

/// The survey, as a table to read.
fn table(found: &[PathSurvey]) -> String {
    let header = ["path", "alone\nMbit/s", "idle RTT\nms", "jitter\nms", "loss\n%"];
    let mut table = plain_table(header.map(str::to_owned).to_vec());
    for PathSurvey { name, goodput_bps, rtt, jitter, loss } in found {
        let ms = |time: &Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
        table.add_row([
            name.clone(),
            format!("{:.2}", goodput_bps / 1e6),
            ms(rtt),
            ms(jitter),
            format!("{:.0}", loss * 100.0),
        ]);
    }
    format!(
        "The paths before the runs (plain TCP with CUBIC over each alone; 20 datagrams to each):\n{}\n",
        print_table(&table)
    )
}
