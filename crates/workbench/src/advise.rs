//! Advice for someone's own links, from a scenario or from numbers that are typed in.

use crate::failure::{Failure, Salvage};
use crate::load::{Loaded, congestions, schedulers, set_overrides};
use crate::pool::Threads;
use crate::progress::Progress;
use crate::watch::{Wanted, Watch};
use anabranch_run::{Driver, Options, Plan, RunError, Variant};
use anabranch_scenario::{Override, PlugIn, quoted};
use anabranch_studies::advise::{Advice, Question, Use};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// Code of a question that cannot be asked.
const USAGE: &str = "anabranch::cli::usage";
/// The keys of the values after `NAME=`, in their order.
const VALUES: [&str; 4] = ["rate", "delay", "loss", "queue"];
/// Keys that may follow them.
const FURTHER: [&str; 2] = ["price", "cap"];

/// A question, as a user asks it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// A scenario file, a recording of `measure --record`, or the name of a built-in scenario.
    pub scenario: Option<&'a Path>,
    /// Links in its place, each as `NAME=RATE,DELAY[,LOSS[,QUEUE]][,price=P][,cap=BYTES]`.
    pub paths: &'a [String],
    /// Settings of the scenario.
    pub set: &'a [String],
    /// Names of uses; empty = all.
    pub uses: &'a [String],
    /// Schedulers; empty = every one.
    pub schedulers: &'a [String],
    /// Congestion control; `None` = that of the scenario.
    pub congestion: Option<&'a str>,
    /// Error of the input as a part of it, 0 to below 1.
    pub error: f64,
    /// Threads; one per core if `None`.
    pub jobs: Option<NonZeroUsize>,
}

/// Advice, and the commands that follow it.
pub struct Advised {
    /// The advice.
    pub advice: Advice,
    /// Names of the lines, in the scenario's order.
    pub paths: Vec<String>,
}

impl Request<'_> {
    /// Reads the links and asks.
    ///
    /// # Errors
    /// The links cannot be read, are fewer than two or those of groups, or a run failed or was interrupted.
    pub fn answer(&self, driver: &dyn Driver, progress: &dyn Progress) -> Result<Advised, Failure> {
        let question = self.question()?;
        let variant = Variant { cell: Vec::new(), scenario: Arc::new(question.scenario.clone()) };
        let options = Options { schedulers: question.schedulers.clone(), ..Options::default() };
        driver.prepare(&Plan::new(&[variant], &options)).map_err(Failure::refused)?;
        let watch = Watch::new(Wanted::default(), progress)?;
        let answer = question.answer(driver, &Threads::new(self.jobs), &watch);
        let so_far = watch.progress_so_far();
        let lost = watch.finish();
        let advice = answer.map_err(|failure| match failure.error {
            RunError::Interrupted => Failure::interrupted(&format!("interrupted {so_far}"), Salvage::Nothing),
            _ => Failure::failed("anabranch::run::failed", failure.to_string()),
        })?;
        let paths = question.scenario.topology.paths.iter().map(|path| path.name.clone()).collect();
        lost.map_or(Ok(Advised { advice, paths }), Err)
    }

    fn question(&self) -> Result<Question, Failure> {
        if !(0.0..1.0).contains(&self.error) {
            let help = Some("give a part from 0 % to below 100 %, such as 10 %".to_owned());
            return Err(Failure::unusable(USAGE, "the error of the input is out of range", help));
        }
        let loaded = self.loaded()?;
        let scenario = match &loaded.document.cells[..] {
            [(_, scenario)] => scenario.clone(),
            cells => {
                let message = format!("{} is a sweep of {} scenarios", loaded.source.name, cells.len());
                return Err(Failure::unusable(USAGE, message, Some("give the links of one".to_owned())));
            }
        };
        if scenario.topology.paths.len() < 2 {
            let message = format!("{} has one line: there is nothing to choose", loaded.source.name);
            return Err(Failure::unusable(USAGE, message, Some("name a second [[path]], or a second --path".into())));
        }
        if !scenario.groups.is_empty() {
            let message = format!("{} has groups of hosts: advice is for one pair", loaded.source.name);
            return Err(Failure::unusable(USAGE, message, Some("leave the [[group]]s out".to_owned())));
        }
        let names = if self.schedulers.is_empty() { &["all".to_owned()][..] } else { self.schedulers };
        let congestion = match self.congestion {
            Some(name) => only(congestions("--congestion", &[name])?)?,
            None => scenario.congestion.clone(),
        };
        let schedulers = schedulers("--scheduler", names)?;
        Ok(Question { uses: uses(self.uses)?, schedulers, congestion, error: self.error, scenario })
    }

    fn loaded(&self) -> Result<Loaded, Failure> {
        let overrides = || -> Vec<Override> { set_overrides(self.set) };
        match (self.scenario, self.paths) {
            (Some(_), [_, ..]) => {
                let help = Some("leave one of them out".to_owned());
                Err(Failure::unusable(USAGE, "both a scenario and --path name the links", help))
            }
            (Some(scenario), []) => Loaded::read(scenario, overrides()),
            (None, []) => {
                let help = "give a scenario, or --path wifi=30mbit,10ms,0.5%,1bdp for each line";
                Err(Failure::unusable(USAGE, "no links are named", Some(help.to_owned())))
            }
            (None, paths) => Loaded::given("--path", &typed(paths)?, overrides()),
        }
    }
}

fn only(mut plug_ins: Vec<PlugIn>) -> Result<PlugIn, Failure> {
    match plug_ins.len() {
        1 => Ok(plug_ins.remove(0)),
        n => Err(Failure::unusable(USAGE, format!("{n} congestion controls are named"), Some("name one".into()))),
    }
}

/// The uses of these names.
fn uses(names: &[String]) -> Result<Vec<Use>, Failure> {
    let known: Vec<&str> = Use::ALL.iter().map(|of| of.name()).collect();
    let find = |name: &String| {
        let found = Use::ALL.into_iter().find(|of| of.name() == name.trim());
        found.ok_or_else(|| Failure::unknown_word("use", name, &known, &format!("there are {}", known.join(", "))))
    };
    if names.is_empty() { Ok(Use::ALL.to_vec()) } else { names.iter().map(find).collect() }
}

/// A scenario of the links `paths`, each as a user types it.
fn typed(paths: &[String]) -> Result<String, Failure> {
    let mut text = "name = \"your lines\"\nduration = \"10s\"\n".to_owned();
    for path in paths {
        let refused = |what: &str| {
            let help = "write NAME=RATE,DELAY,LOSS,QUEUE, such as wifi=30mbit,10ms,0.5%,1bdp: the delay is one way, half of a ping";
            Failure::unusable(USAGE, format!("--path {path}: {what}"), Some(help.to_owned()))
        };
        let (name, values) = path.split_once('=').ok_or_else(|| refused("there is no `=` after the name"))?;
        let _ = writeln!(text, "[[path]]\nname = {}", quoted(name));
        let mut seen = 0;
        for value in values.split(',').map(str::trim) {
            let (key, value) = match value.split_once('=') {
                Some((key, value)) if FURTHER.contains(&key) => (key, value),
                Some((key, _)) => return Err(refused(&format!("`{key}` is neither `price` nor `cap`"))),
                None => {
                    let key = *VALUES.get(seen).ok_or_else(|| refused("there are more than four values"))?;
                    seen += 1;
                    (key, value)
                }
            };
            let _ = writeln!(text, "{key} = {}", quoted(value));
        }
        if seen < 2 {
            return Err(refused("a line has a rate and a delay at least"));
        }
    }
    Ok(text)
}

impl Advised {
    /// The advice in words, each use with a command that follows it.
    pub fn text(&self) -> String {
        let mut text = self.advice.text();
        let mut commands: Vec<String> = Vec::new();
        for one in self.advice.uses.iter().filter(|one| one.bond) {
            let command = self.command(&one.scheduler, &one.open_on);
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        if !commands.is_empty() {
            let _ = write!(text, "\nTo use it, with your interfaces in the place of the lines' names:\n\n");
            commands.iter().for_each(|command| text += &format!("  {command}\n"));
        }
        text
    }

    /// Command that runs this scheduler over the lines.
    fn command(&self, scheduler: &str, first: &str) -> String {
        if scheduler == "linux-default" {
            return "sysctl -w net.mptcp.enabled=1 net.mptcp.scheduler=default; mptcpize run PROGRAM".to_owned();
        }
        let others = self.paths.iter().map(String::as_str).filter(|path| *path != first);
        let via: Vec<&str> = [first].into_iter().chain(others).collect();
        format!("anabranch proxy SERVER --via {} --server-key KEY --scheduler '{scheduler}'", via.join(","))
    }

    /// The document.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&self.advice).unwrap_or_default() + "\n"
    }
}
