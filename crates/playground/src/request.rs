//! Requests of the page, and the description of a scenario for it.

use anabranch_report::of_run::Network;
use anabranch_run::{Job, Options, Plan, Variant};
use anabranch_scenario::{Diagnostic, Document, NoFiles, Override, PlugIn, Source, TrafficKind, read};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A scenario as the page has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The name of its file, for messages.
    pub name: String,
    /// TOML.
    pub text: String,
    /// Settings of the page: `path.wifi.rate.down=30mbit`, as `--set` takes it.
    pub set: Vec<String>,
    /// Schedulers to compare in a study; empty = the scenario's.
    pub schedulers: Vec<String>,
    /// Packets that a live run follows.
    pub packets: usize,
    /// The scheduler is the page's own.
    pub own: bool,
}

/// A mistake in a scenario or a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// In one line.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// Where: the file or the setting.
    pub source: String,
    /// The line of the scenario's text, from 1; absent for a mistake elsewhere.
    pub line: Option<usize>,
}

/// The parts of a scenario that the page draws.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// The whole scenario as TOML, every default filled in: the command line runs it with the same digest.
    pub toml: String,
    /// The seed of the first run.
    pub seed: u64,
    /// The scheduler, with its parameters.
    pub scheduler: String,
    /// The congestion control, with its parameters.
    pub congestion: String,
    /// Bytes of the receive buffer.
    pub recv_buffer: u64,
    /// Kind of the traffic: `bulk`, `frames`, `request`, `web`.
    pub traffic: &'static str,
    /// The paths.
    pub network: Network,
}

/// The answer to a file with groups.
const GROUPS: &str = "the playground shows one pair of hosts: `anabranch run` runs a file with [[group]]s";

impl Mistake {
    /// One without a place.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, source: String::new(), line: None }
    }

    fn of(diagnostic: &Diagnostic, request: &Request) -> Self {
        let in_text = diagnostic.source_name() == request.name;
        let before = request.text.get(..diagnostic.at.start).filter(|_| in_text);
        Self {
            message: diagnostic.message.clone(),
            help: diagnostic.help.clone(),
            source: diagnostic.source_name().to_owned(),
            line: before.map(|text| text.matches('\n').count() + 1),
        }
    }
}

impl Request {
    /// The checked scenario.
    ///
    /// # Errors
    /// Every mistake.
    pub fn document(&self) -> Result<Document, Vec<Mistake>> {
        let source = Source { name: self.name.clone(), text: self.text.clone() };
        let overrides: Vec<Override> = self.set.iter().map(|text| Override::parse("set", text)).collect();
        let mistakes = |all: Vec<Diagnostic>| all.iter().map(|one| Mistake::of(one, self)).collect::<Vec<_>>();
        let document = read(&source, &overrides, &NoFiles).map_err(mistakes)?;
        match document.scenario.groups.is_empty() {
            true => Ok(document),
            false => Err(vec![Mistake::plain(GROUPS)]),
        }
    }

    /// The scenario, as the page draws it.
    ///
    /// # Errors
    /// Every mistake.
    pub fn describe(&self) -> Result<Described, Vec<Mistake>> {
        let document = self.document()?;
        let scenario = &document.scenario;
        let traffic = match scenario.traffic.first().map(|traffic| &traffic.kind) {
            Some(TrafficKind::Bulk { .. }) => "bulk",
            Some(TrafficKind::Frames { .. }) => "frames",
            Some(TrafficKind::Call { .. }) => "call",
            Some(TrafficKind::Video { .. }) => "video",
            Some(TrafficKind::Request { .. }) => "request",
            Some(TrafficKind::Web { .. }) => "web",
            None => "none",
        };
        Ok(Described {
            toml: document.resolved(),
            seed: scenario.seed,
            scheduler: scenario.scheduler.with_parameters(),
            congestion: scenario.congestion.with_parameters(),
            recv_buffer: scenario.settings.recv_buffer,
            traffic,
            network: Network::of(scenario),
        })
    }

    /// The scenario's first run: its scheduler, its first seed, the first cell of its sweep.
    ///
    /// # Errors
    /// Every mistake.
    pub fn job(&self) -> Result<Job, Vec<Mistake>> {
        let plan = self.plan(&Options { baselines: false, ..Options::default() })?;
        plan.runs().next().ok_or_else(|| vec![Mistake::plain("the scenario has no run")])
    }

    /// Plan of the runs.
    ///
    /// # Errors
    /// Every mistake.
    pub fn plan(&self, options: &Options) -> Result<Plan, Vec<Mistake>> {
        let cells = self.document()?.cells.into_iter();
        let variants: Vec<Variant> =
            cells.map(|(cell, scenario)| Variant { cell, scenario: Arc::new(scenario) }).collect();
        Ok(Plan::new(&variants, options))
    }

    /// The schedulers to compare.
    ///
    /// # Errors
    /// Every mistake in a name or a parameter.
    pub fn schedulers(&self) -> Result<Vec<PlugIn>, Vec<Mistake>> {
        let read = |name: &String| anabranch_scenario::scheduler("schedulers", name);
        let (mut known, mut wrong) = (Vec::new(), Vec::new());
        for one in self.schedulers.iter().map(read) {
            match one {
                Ok(plug_in) => known.push(plug_in),
                Err(all) => wrong.extend(all.iter().map(|one| Mistake::of(one, self))),
            }
        }
        if wrong.is_empty() { Ok(known) } else { Err(wrong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_groups_is_refused_in_a_sentence() {
        let text = "duration = '1s'\n[[path]]\nname = 'p'\nrate = '1mbit'\ndelay = '1ms'\n";
        let request = |text: String| -> Request {
            serde_json::from_value(serde_json::json!({ "name": "a.toml", "text": text })).unwrap()
        };
        assert!(request(text.to_owned()).document().is_ok());
        let wrong = request(format!("{text}[[group]]\nname = 'g'\n")).document().unwrap_err();
        assert_eq!((wrong.len(), &*wrong[0].message), (1, GROUPS));
    }
}
