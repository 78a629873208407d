//! The options and the scenario of a measurement, by the arguments of `anabranch measure`.

use crate::args::{MeasureArguments, TrafficName};
use anabranch_measure::{MSS, path_names};
use anabranch_run::{Options, Repeat};
use anabranch_scenario::Override;
use anabranch_workbench::failure::Failure;
use anabranch_workbench::load::{congestions, schedulers, set_overrides};
use anabranch_workbench::making::Repetitions;
use toml_writer::ToTomlValue;

/// Schedulers, congestion controls, baselines and repetitions.
pub fn options(arguments: &MeasureArguments) -> Result<Options, Failure> {
    Ok(Options {
        schedulers: schedulers("--scheduler", &arguments.scheduler)?,
        congestions: congestions("--congestion", &arguments.congestion)?,
        baselines: !arguments.no_baselines,
        repeat: if arguments.repeat == Repetitions::Auto { Repeat::Auto } else { Repeat::AsWritten },
        real_time: true,
        ..Options::default()
    })
}

/// A scenario of the traffic that was chosen, over these paths.
pub fn scenario_text(arguments: &MeasureArguments, paths: &str) -> String {
    let title = format!("{} through {}", arguments.server, path_names(&arguments.near.via).join(", "));
    let title = title.as_str().to_toml_value();
    let (traffic, ends) = match arguments.traffic {
        TrafficName::Bulk => ("kind = \"bulk\"", false),
        TrafficName::Frames => ("kind = \"frames\"\nsize = \"20KB\"\ninterval = \"20ms\"", false),
        TrafficName::Web => ("kind = \"web\"\nsize = \"2MB\"\nobjects = 100", true),
        TrafficName::Request => ("kind = \"request\"\nsize = \"10KB\"\ninterval = \"100ms\"", false),
    };
    let duration = if ends { "" } else { "duration = \"10s\"\n" };
    format!("name = {title}\n{duration}\n[connection]\nmss = {MSS}\n\n{paths}[[traffic]]\n{traffic}\n")
}

/// The options that are keys of the scenario.
pub fn overrides(arguments: &MeasureArguments) -> Vec<Override> {
    let mut overrides = set_overrides(&arguments.set);
    let mut set = |option, key, value: String| overrides.push(Override::new(option, key, value));
    set("--seed", "seed", arguments.seed.to_string());
    if let Repetitions::Count(count) = arguments.repeat {
        set("--repeat", "repeat", count.to_string());
    }
    if let Some(duration) = &arguments.duration {
        set("--duration", "duration", duration.clone());
    }
    overrides
}
