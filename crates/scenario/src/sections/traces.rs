//! The files that a scenario names, each read once.

use super::value;
use crate::diagnostic::Code;
use crate::keys::Key;
use crate::source::Resolver;
use crate::tree::{Node, Report};
use anabranch_network::{CapacityTrace, DelayTable, Recording, RecordingError, TraceError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a file cannot be used.
#[derive(Clone, Debug)]
enum Trouble {
    Unreadable(String),
    NotATrace(TraceError),
    NotARecording(RecordingError),
}

/// The content of a file.
#[derive(Clone, Debug)]
pub enum Trace {
    /// Opportunities, in mahimahi's format.
    Capacity(Arc<CapacityTrace>),
    /// Rate, delay, loss over time.
    Recording(Arc<Recording>),
}

/// Recorded capacities by file name.
pub(crate) struct Traces<'r> {
    resolver: &'r dyn Resolver,
    files: BTreeMap<String, Result<Trace, Trouble>>,
}

impl<'r> Traces<'r> {
    pub fn new(resolver: &'r dyn Resolver) -> Self {
        Self { resolver, files: BTreeMap::new() }
    }

    /// The trace that `node` names.
    pub fn read(&mut self, report: &mut Report, key: &'static Key, node: &Node) -> Option<Trace> {
        let file = value::reference(report, key, node)?;
        if !self.files.contains_key(&file) {
            let loaded = self.load(&file);
            self.files.insert(file.clone(), loaded);
        }
        match &self.files[&file] {
            Ok(trace) => return Some(trace.clone()),
            Err(Trouble::Unreadable(why)) => unreadable(report, node, &file, why, "a trace"),
            Err(Trouble::NotARecording(error)) => {
                report
                    .error(Code::BadTrace, node.at, format!("\"{file}\" is not a trace: {error}"))
                    .label("this file")
                    .help("expected CSV with a header such as time_s,rate_mbps,delay_ms; `anabranch trace convert` makes it of other formats");
            }
            Err(Trouble::NotATrace(error)) => {
                report
                    .error(Code::BadTrace, node.at, format!("\"{file}\" is not a capacity trace: {error}"))
                    .label("this file")
                    .help("expected one ascending whole number of milliseconds a line (mahimahi's format), or CSV with a header such as time_s,rate_mbps");
            }
        }
        None
    }

    /// The table of a distribution in `file`, which `node` names.
    pub fn table(&self, report: &mut Report, node: &Node, file: &str) -> Option<Arc<DelayTable>> {
        let text = self.resolver.read(file).map_err(|why| unreadable(report, node, file, &why, "a table")).ok()?;
        match DelayTable::parse(file, &text) {
            Ok(table) => Some(Arc::new(table)),
            Err(error) => {
                report
                    .error(Code::BadTrace, node.at, format!("\"{file}\" is not a table of a distribution: {error}"))
                    .label("this file")
                    .help("expected quantiles in iproute2's format: whole numbers, of which 8192 are one spread");
                None
            }
        }
    }

    fn load(&self, file: &str) -> Result<Trace, Trouble> {
        let text = self.resolver.read(file).map_err(Trouble::Unreadable)?;
        if Recording::is_one(&text) {
            return Recording::parse(&text).map(Arc::new).map(Trace::Recording).map_err(Trouble::NotARecording);
        }
        CapacityTrace::parse(&text).map(Arc::new).map(Trace::Capacity).map_err(Trouble::NotATrace)
    }
}

fn unreadable(report: &mut Report, node: &Node, file: &str, why: &str, what: &str) {
    report
        .error(Code::UnreadableFile, node.at, format!("cannot read \"{file}\": {why}"))
        .label("this file")
        .help(format!("{what} is found relative to the scenario file"));
}
