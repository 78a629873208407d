//! One run: the job, and its outcome.

use crate::curves::Curves;
use crate::live::Live;
use crate::plan::is_random;
use crate::values::Values;
use anabranch_metrics::WrittenFrames;
use anabranch_scenario::{Cell, Over, PlugIn, Scenario};
use anabranch_units::{ConnId, Duration, Instant};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// The first connection under test. Others follow it, and then cross traffic.
pub const CONNECTION: ConnId = ConnId(0);

/// How one run uses the scenario's paths.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Multipath TCP with this scheduler over all paths.
    Multipath(PlugIn),
    /// A baseline: plain TCP, without MPTCP options, over the path with this index alone. Events call the path by that
    /// index too.
    Single(usize),
}

impl Choice {
    /// Whether the run uses the path with this index.
    pub fn uses(&self, path: usize) -> bool {
        match self {
            Self::Multipath(_) => true,
            Self::Single(own) => *own == path,
        }
    }
}

/// One run. Its result is a function of these values alone.
#[derive(Clone, Debug)]
pub struct Job {
    /// The scenario with the cell's values in place. Its own `scheduler`, `congestion`, `seed` and `repeat` do not
    /// count: the fields below do.
    pub scenario: Arc<Scenario>,
    /// The sweep's cell; empty without a sweep.
    pub cell: Cell,
    /// Scheduler, or single path.
    pub choice: Choice,
    /// Congestion control; the single-path form for a baseline.
    pub congestion: PlugIn,
    /// Seed of every random stream.
    pub seed: u64,
    /// The bin of [`RunOutcome::curves`]; `None` = no curves. They change nothing else.
    pub curves: Option<Duration>,
}

/// Everything that decides the outcome of a job in virtual time, as names: two jobs of one identity need one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// Name of everything but the seed.
    pub row: u128,
    /// `None` of a single path that nothing random happens to.
    pub seed: Option<u64>,
}

impl Identity {
    /// The same with a seed, though it may decide nothing: each run has a name of its own.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// One name for both.
    pub fn name(self) -> u128 {
        let mut name = Xxh3::new();
        name.update(&self.row.to_le_bytes());
        self.seed.into_iter().for_each(|seed| name.update(&seed.to_le_bytes()));
        name.digest128()
    }
}

/// The part of an identity that all seeds of a row share.
#[derive(Clone, Copy, Debug)]
struct Common {
    row: u128,
    /// The seed decides something.
    is_random: bool,
}

impl Common {
    fn with(self, seed: u64) -> Identity {
        Identity { row: self.row, seed: self.is_random.then_some(seed) }
    }
}

impl Job {
    /// A run of a scenario without a sweep, with its own congestion control and without curves.
    pub fn of(scenario: Arc<Scenario>, choice: Choice, seed: u64) -> Self {
        let congestion = scenario.congestion.clone();
        Self { scenario, cell: Cell::default(), choice, congestion, seed, curves: None }
    }

    /// The identity. A path alone does not depend on the others, unless other flows cross them.
    pub fn identity(&self) -> Identity {
        self.common().with(self.seed)
    }

    fn common(&self) -> Common {
        let nothing = || PlugIn { name: String::new(), parameters: Vec::new() };
        let mut scenario = Scenario {
            name: String::new(),
            seed: 0,
            repeat: 0,
            scheduler: nothing(),
            congestion: nothing(),
            ..(*self.scenario).clone()
        };
        if let Choice::Single(own) = self.choice {
            // A flow over a link may take its delay from any path across that link.
            let is_idle =
                |path: usize| scenario.cross.iter().all(|cross| matches!(cross.over, Over::Path(of) if of != path));
            for other in
                (0..scenario.topology.paths.len()).filter(|&path| path != own && is_idle(path)).collect::<Vec<_>>()
            {
                let [down, up] =
                    [&scenario.topology.paths[own].down, &scenario.topology.paths[own].up].map(Clone::clone);
                (scenario.topology.paths[other].down, scenario.topology.paths[other].up) = (down, up);
                scenario.paths[other] = scenario.paths[own];
            }
        }
        let mut name = Name(Xxh3::new());
        // Hashing cannot fail.
        let _ = write!(name, "{scenario:?} {:?} {:?} {:?}", self.choice, self.congestion, self.curves);
        // A scheduler may have random draws of its own.
        let is_random = matches!(self.choice, Choice::Multipath(_)) || is_random(&scenario);
        Common { row: name.0.digest128(), is_random }
    }

    fn is_of_row(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.scenario, &other.scenario)
            && (&self.choice, &self.congestion, self.curves) == (&other.choice, &other.congestion, other.curves)
    }
}

/// The identities of many jobs: what those of a row have in common is named once.
#[derive(Debug, Default)]
pub struct Identities {
    /// One job of each row, with the name of what the row has in common. The key is the address of the job's scenario; the
    /// job holds the scenario, so no other one gets that address.
    rows: Mutex<BTreeMap<usize, Vec<(Job, Common)>>>,
}

impl Identities {
    /// [`Job::identity`].
    pub fn of(&self, job: &Job) -> Identity {
        // Rows are added whole, so a panic elsewhere leaves nothing half done.
        let rows = || self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let address = Arc::as_ptr(&job.scenario).addr();
        let of_row = |(known, common): &(Job, Common)| known.is_of_row(job).then_some(*common);
        let known = rows().get(&address).and_then(|rows| rows.iter().find_map(of_row));
        let common = known.unwrap_or_else(|| {
            // Other threads need not wait for it.
            let common = job.common();
            rows().entry(address).or_default().push((job.clone(), common));
            common
        });
        common.with(job.seed)
    }
}

/// Hashes what is written.
struct Name(Xxh3);

impl fmt::Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

/// The outcome of a run. In virtual time, nothing here depends on wall time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Metrics of the connection. What needs the baselines is filled in later.
    pub metrics: Values,
    /// Metrics of each path that the run used, in the scenario's order.
    pub paths: IndexMap<String, Values>,
    /// Hash over the canonical encoding of the run's events, in hexadecimal.
    pub digest: String,
    /// How many events the driver handled.
    pub events: u64,
    /// False if a sized transfer did not end within the duration.
    pub finished: bool,
    /// Empty unless the job requests them.
    pub curves: Curves,
    /// Facts of a run in real time alone.
    pub live: Option<Live>,
    /// Inputs of a bound on a run in virtual time alone.
    pub measured: Option<Measured>,
}

/// The inputs of a bound on a run, beside its job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The measured time.
    pub time: (Instant, Instant),
    /// Frames whose delays count.
    pub frames: WrittenFrames,
}

/// Why a run yields nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The driver cannot run the scenario.
    Unsupported {
        /// The unsupported part.
        what: String,
    },
    /// The run broke one of its own rules: a wrong byte was delivered, or nothing could ever happen again.
    Fault {
        /// Which, and when.
        what: String,
    },
    /// The store of the runs' values has no room, or they cannot be read from it.
    Unheld {
        /// The store's error.
        why: String,
    },
    /// The user or the system asked to stop.
    Interrupted,
}

/// A driver cannot do `what`.
pub fn unsupported(what: &str) -> RunError {
    RunError::Unsupported { what: what.to_owned() }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { what } => write!(f, "not supported: {what}"),
            Self::Fault { what } => write!(f, "the run failed: {what}"),
            Self::Unheld { why } => write!(f, "the values of finished runs cannot be held: {why}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for RunError {}
