//! `anabranch parity`

use crate::Drivers;
use crate::args::{ListFormat, ParityArguments};
use crate::failure::Failure;
use crate::load::{Loaded, plug_ins, set_overrides};
use crate::parity_table::{markdown, text};
use crate::pool::Threads;
use crate::watch::{Wanted, Watch};
use anabranch_run::parity::{Means, Parity};
use anabranch_scenario::Override;
use std::fs;
use std::path::{Path, PathBuf};

/// Where `--update` puts the table.
const MARKS: (&str, &str) = ("<!-- parity -->", "<!-- /parity -->");

/// Runs one scenario or a grid of them in all modes.
pub fn parity(arguments: &ParityArguments, drivers: &Drivers<'_>) -> Result<String, Failure> {
    let congestions: Vec<&str> = anabranch_congestion::all().iter().map(|entry| entry.name).collect();
    let congestions = plug_ins("--congestion", &arguments.congestion, &congestions, anabranch_scenario::congestion)?;
    let loaded = scenarios(arguments)?;
    // Said before the work, not after it.
    let target = arguments.update.as_deref().map(Target::read).transpose()?;
    let mut measured = Vec::new();
    for scenario in &loaded {
        let watch = Watch::new(Wanted::default())?;
        let means = Means {
            virtual_time: (drivers.virtual_time, &Threads::new(None)),
            real_time: (drivers.real_time, &Threads::new(Some(arguments.jobs))),
            observer: &watch,
        };
        let parity = Parity::measure(&scenario.variants(), &congestions, means);
        watch.finish()?;
        measured.push(parity.map_err(|failure| Failure::failed("anabranch::run::failed", failure.to_string()))?);
    }
    let json = serde_json::to_string_pretty(&measured).unwrap_or_default() + "\n";
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder).map_err(|error| Failure::unwritable(folder, &error))?;
        write(&folder.join("parity.json"), &json)?;
        write(&folder.join("parity.md"), &markdown(&measured))?;
    }
    if let Some(target) = target {
        target.write(&markdown(&measured))?;
    }
    Ok(match arguments.format {
        ListFormat::Table => text(&measured),
        ListFormat::Json => json,
    })
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| Failure::unwritable(file, &error))
}

/// The one scenario, or those of the grid by name.
fn scenarios(arguments: &ParityArguments) -> Result<Vec<Loaded>, Failure> {
    let overrides = || {
        let mut overrides = set_overrides(&arguments.set);
        overrides.push(Override::new("--repeat", "repeat", arguments.repeat.to_string()));
        overrides
    };
    let Some(folder) = &arguments.grid else {
        let name = arguments.scenario.as_deref().unwrap_or_default();
        return Ok(vec![Loaded::read(name, overrides())?]);
    };
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot read {}: {error}", folder.display());
        Failure::unusable("anabranch::cli::unreadable", message, None)
    };
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    let mut files: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    if files.is_empty() {
        let message = format!("{} holds no scenario file", folder.display());
        return Err(Failure::unusable(
            "anabranch::cli::unreadable",
            message,
            Some("scenario files end in .toml".into()),
        ));
    }
    files.iter().map(|file| Loaded::read(&file.to_string_lossy(), overrides())).collect()
}

/// A file with a place for the table.
struct Target<'a> {
    file: &'a Path,
    before: String,
    after: String,
}

impl<'a> Target<'a> {
    fn read(file: &'a Path) -> Result<Self, Failure> {
        let unusable = |message, help| Failure::unusable("anabranch::cli::unreadable", message, help);
        let text = fs::read_to_string(file)
            .map_err(|error| unusable(format!("cannot read {}: {error}", file.display()), None))?;
        let around = text.split_once(MARKS.0).and_then(|(before, rest)| Some((before, rest.split_once(MARKS.1)?.1)));
        let Some((before, after)) = around else {
            let help = format!("it needs a line `{}` and a later line `{}`", MARKS.0, MARKS.1);
            return Err(unusable(format!("{} has no place for the table", file.display()), Some(help)));
        };
        Ok(Self { file, before: before.to_owned(), after: after.to_owned() })
    }

    fn write(&self, table: &str) -> Result<(), Failure> {
        write(self.file, &format!("{}{}\n{table}{}{}", self.before, MARKS.0, MARKS.1, self.after))
    }
}
