//! `inputs.json` of a results directory: everything that its runs are made from.

use crate::digest::sha256;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::input::{RESULTS, TRACES, read_within, why};
use crate::kept::PROGRAM;
use crate::load::{Loaded, congestions, schedulers};
use anabranch_run::{Options, Repeat};
use anabranch_scenario::{Override, PlugIn, Role, Source};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file's name.
pub const INPUTS: &str = "inputs.json";

/// Everything from which a command's runs are made, with the program that made them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// Version.
    pub anabranch: String,
    /// Version and digest of what decides a run's outcome.
    pub program: String,
    /// The runs.
    pub whole: Whole,
    /// Schedulers and congestion controls that are objects of Python.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub plug_ins: Vec<Object>,
}

/// An object of Python.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Name of the object in results.
    pub name: String,
    /// Class of the object.
    pub class: String,
    /// The definition of the class and of all that this needs of its module; absent where Python does not have it.
    pub source: Option<String>,
    /// Attributes as a literal of Python; absent where there are none.
    pub state: Option<String>,
}

/// A command's runs, wherever they are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Whole {
    /// The scenario's file or name.
    pub source: String,
    /// The scenario.
    pub text: String,
    /// The files that the scenario names, with their texts.
    pub files: Vec<(String, String)>,
    /// Settings from outside.
    pub overrides: Vec<Setting>,
    /// Schedulers instead of the scenario's, as options take them; empty = the scenario's.
    pub schedulers: Vec<String>,
    /// Congestion controls instead of the scenario's, in the same form.
    pub congestions: Vec<String>,
    /// Every path runs alone, too.
    pub baselines: bool,
    /// Repetitions are added until the results are narrow enough.
    pub auto: bool,
    /// Runs follow the clock.
    pub real_time: bool,
}

/// An [`Override`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    origin: String,
    /// The key.
    pub key: String,
    /// As written.
    pub value: String,
    swept: bool,
    together: bool,
}

impl Setting {
    fn of(o: &Override) -> Self {
        let (swept, together) = (o.role != Role::Set, o.role == Role::Zip);
        Self { origin: o.origin.clone(), key: o.key.clone(), value: o.value.clone(), swept, together }
    }

    fn again(&self) -> Override {
        let Self { origin, key, value, swept, together } = self;
        match swept {
            true => Override::sweep(origin, &format!("{key}={value}"), *together),
            false => Override::new(origin, key, value),
        }
    }
}

impl Whole {
    /// The whole of a command that runs `loaded` with `options`.
    pub fn of(loaded: &Loaded, options: &Options) -> Self {
        let names = |plug_ins: &[PlugIn]| plug_ins.iter().map(PlugIn::with_parameters).collect();
        Self {
            source: loaded.source.name.clone(),
            text: loaded.source.text.clone(),
            files: loaded.files.clone(),
            overrides: loaded.overrides.iter().map(Setting::of).collect(),
            schedulers: names(&options.schedulers),
            congestions: names(&options.congestions),
            baselines: options.baselines,
            auto: options.repeat == Repeat::Auto,
            real_time: options.real_time,
        }
    }

    /// A line for each file that has another text than the one that was kept. A missing file is none of them.
    pub fn changed_files(&self) -> impl Iterator<Item = String> {
        let folder = Path::new(&self.source).parent().unwrap_or(Path::new(""));
        self.files.iter().filter_map(move |(name, text)| {
            let now = read_within(TRACES, 0, &folder.join(name)).ok().filter(|now| now != text)?;
            let (then, now) = (sha256(text), sha256(&now));
            Some(format!("{name} has changed: SHA-256 {then} then, {now} now. The text that was kept is used.\n"))
        })
    }

    /// The scenario and the options of that command.
    pub fn again(&self) -> Result<(Loaded, Options), Failure> {
        let source = Source { name: self.source.clone(), text: self.text.clone() };
        let overrides = self.overrides.iter().map(Setting::again).collect();
        let options = Options {
            schedulers: schedulers("--scheduler", &self.schedulers)?,
            congestions: congestions("--congestion", &self.congestions)?,
            baselines: self.baselines,
            repeat: if self.auto { Repeat::Auto } else { Repeat::AsWritten },
            real_time: self.real_time,
            ..Options::default()
        };
        Ok((Loaded::again(source, overrides, self.files.clone())?, options))
    }
}

impl Inputs {
    /// Inputs of runs that this program makes.
    pub fn new(whole: Whole, plug_ins: Vec<Object>) -> Self {
        Self { anabranch: env!("CARGO_PKG_VERSION").to_owned(), program: PROGRAM.to_owned(), whole, plug_ins }
    }

    /// The document.
    pub fn to_json(&self) -> String {
        // Strings and truth values only: this cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// That of a results directory.
    pub fn read(folder: &Folder) -> Result<Self, Failure> {
        let unusable = |why: &str| {
            let message = format!("cannot read {}: {why}", folder.path().join(INPUTS).display());
            let help = "give a directory that `--out` of `run`, `demo` or `merge`, or Python's `save` wrote".to_owned();
            Failure::unusable("anabranch::cli::unreadable", message, Some(help))
        };
        let text = folder.read_within(RESULTS, 0, INPUTS).map_err(|error| unusable(&why(&error)))?;
        serde_json::from_str(&text).map_err(|error| unusable(&error.to_string()))
    }
}
