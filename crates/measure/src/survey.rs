//! Rate and delay of each path, measured before the first run.

use crate::real_links::{run, why};
use crate::session::MeasurementSession;
use anabranch_metrics::names;
use anabranch_run::{Choice, Job, RunError};
use anabranch_scenario::{Document, PlugIn};
use anabranch_units::Duration;
use std::sync::Arc;

/// Challenges on each idle path; more of them show how a recorded path varies.
const CHALLENGES: u32 = 20;
const RECORDED: u32 = 100;

/// A path as measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSurvey {
    /// The path's name.
    pub name: String,
    /// Goodput of plain TCP from the server over this path alone, with CUBIC, after the first second. Bit/s.
    pub goodput_bps: f64,
    /// The least round-trip time of the idle path.
    pub rtt: Duration,
    /// Mean difference between one round-trip time and the next.
    pub jitter: Duration,
    /// Share of challenges without an answer.
    pub loss: f64,
}

impl MeasurementSession {
    /// Measures the idle paths, and then downloads over each alone: for a second that does not count, and `time` after it.
    ///
    /// # Errors
    /// The server is gone, or a path carries nothing.
    pub fn survey(&mut self, time: Duration) -> Result<Vec<PathSurvey>, RunError> {
        let count = if self.recordings.is_some() { RECORDED } else { CHALLENGES };
        let idle = self.probe(count).map_err(why)?;
        let recordings = self.recordings.iter_mut().flatten();
        recordings.zip(&idle).for_each(|(recording, idle)| recording.add_idle(&idle.times));
        let names: Vec<String> = self.names().to_vec();
        let text = scenario(&names, time);
        let read = |_| RunError::Fault { what: "the scenario of the survey cannot be read".to_owned() };
        let parsed = Arc::new(Document::parse("survey", &text).map_err(read)?.scenario);
        let mut found = Vec::new();
        for ((n, name), idle) in names.into_iter().enumerate().zip(&idle) {
            let cubic = PlugIn { name: "cubic".to_owned(), parameters: Vec::new() };
            let job = Job { congestion: cubic, ..Job::of(parsed.clone(), Choice::Single(n), 1) };
            let outcome = run(self, &text, &job, &mut ())?;
            let goodput_bps = outcome.metrics.get(names::GOODPUT).copied().unwrap_or(0.0);
            let Some(rtt) = idle.least().filter(|_| goodput_bps > 0.0) else {
                return Err(RunError::Fault { what: format!("nothing comes through {name}") });
            };
            let jitter = idle.jitter_s().map_or(Duration::ZERO, Duration::from_secs_f64);
            let loss = idle.loss().unwrap_or_default();
            found.push(PathSurvey { name, goodput_bps, rtt, jitter, loss });
        }
        Ok(found)
    }
}

/// A download; rates and delays have no part in it.
fn scenario(names: &[String], time: Duration) -> String {
    let path = |name: &String| format!("[[path]]\nname = {name:?}\nrate = \"1gbit\"\ndelay = \"1ms\"\n");
    let paths: String = names.iter().map(path).collect();
    let (mss, time) = (crate::MSS, time.as_millis());
    format!(
        "name = \"survey\"\nwarmup = \"1s\"\nduration = \"{time}ms\"\n[connection]\nmss = {mss}\n{paths}[[traffic]]\nkind = \"bulk\"\n"
    )
}
