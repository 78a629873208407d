//! A run that stops at each decision of its scheduler, so that the decision can come from outside.

use crate::errors;
use crate::scenario::Checked;
use anabranch_engine::schedule::{Command, PathView, Round, Scheduler};
use anabranch_network::{Bottleneck, Topology};
use anabranch_run::fields::{Field, PATH_FIELDS, VIEW_FIELDS, path_numbers, view_numbers};
use anabranch_run::layout::Layout;
use anabranch_run::{Choice, Job};
use anabranch_scenario::PlugIn;
use anabranch_sim::{Checks, End, Halt, World};
use anabranch_units::{Direction, Instant, PathId, Side};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The place that the scheduler and the session share.
#[derive(Debug, Default)]
struct Desk {
    /// A decision is due.
    open: AtomicBool,
    inner: Mutex<Papers>,
}

#[derive(Debug, Default)]
struct Papers {
    /// The decision: an index of a path; beyond the paths = wait.
    action: Option<usize>,
    observation: Vec<f32>,
    /// Bytes acknowledged at connection level.
    acked: u64,
}

impl Desk {
    fn papers(&self) -> MutexGuard<'_, Papers> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The facts of an observation: places in the tables of fields.
#[derive(Debug, Default)]
struct Facts {
    of_path: Vec<usize>,
    of_view: Vec<usize>,
}

/// The names of the facts in a table.
fn names(fields: &[Field]) -> Vec<String> {
    fields.iter().map(Field::number_name).collect()
}

/// The places of names in a table.
fn places(fields: &[Field], wanted: &[String]) -> PyResult<Vec<usize>> {
    let names = names(fields);
    let place = |name: &String| {
        let found = names.iter().position(|known| known == name);
        found.ok_or_else(|| PyValueError::new_err(format!("`{name}` is no fact: there are {}", names.join(", "))))
    };
    wanted.iter().map(place).collect()
}

/// The names of the facts that an observation may have: of paths, and of the connection.
#[pyfunction]
pub fn facts() -> (Vec<String>, Vec<String>) {
    (names(PATH_FIELDS), names(VIEW_FIELDS))
}

/// Requests a decision by doing nothing, and carries it out one nanosecond later.
#[derive(Debug)]
struct Stepwise {
    desk: Arc<Desk>,
    facts: Facts,
    paths: usize,
    wakeup: Option<Instant>,
}

impl Stepwise {
    /// Puts the facts of all paths into an observation, and then those of the connection; an unknown one is zero.
    fn observe(&self, round: &Round<'_>, into: &mut Vec<f32>) {
        let Facts { of_path, of_view } = &self.facts;
        let known = |number: f64| if number.is_nan() { 0.0 } else { number as f32 };
        into.clear();
        into.resize(self.paths * of_path.len(), 0.0);
        for path in round.paths().iter().filter(|path| path.id.index() < self.paths) {
            let numbers = path_numbers(path);
            let own = into[path.id.index() * of_path.len()..].iter_mut();
            own.zip(of_path).for_each(|(value, place)| *value = known(numbers[*place]));
        }
        let numbers = view_numbers(round);
        into.extend(of_view.iter().map(|place| known(numbers[*place])));
    }
}

impl Scheduler for Stepwise {
    fn schedule(&mut self, round: &mut Round<'_>) {
        self.wakeup = None;
        let desk = self.desk.clone();
        let mut papers = desk.papers();
        papers.acked = round.data_acked();
        if let Some(action) = papers.action.take() {
            let sent = action < self.paths && round.carry_out(Command::SendNext(PathId(action as u8)));
            if !sent {
                return;
            }
        }
        if round.candidates().nth(1).is_none() {
            let only = round.candidates().next().map(|path| path.id);
            if let Some(only) = only {
                round.carry_out(Command::Fill(only));
            }
            return;
        }
        let can_send =
            round.candidates().any(PathView::eligible) && !round.backlog().is_empty() && !round.window_blocked();
        if can_send && round.next_new(0, u32::from(u16::MAX)).is_some() {
            self.observe(round, &mut papers.observation);
            self.wakeup = Some(round.now().next());
            desk.open.store(true, Ordering::Relaxed);
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakeup
    }
}

/// Bits per second on this way, of all paths and links when the run begins.
fn capacity(topology: &Topology, way: Direction) -> f64 {
    let of = |bottleneck: &Bottleneck| bottleneck.own().map_or(0.0, |own| own.capacity.initial_rate().as_bps() as f64);
    let own: f64 = topology.paths.iter().map(|path| of(&path.way(way).bottleneck)).sum();
    let links: f64 =
        topology.links.iter().map(|link| link.bottleneck(way).capacity.initial_rate().as_bps() as f64).sum();
    own + links
}

/// One run, decision by decision.
#[pyclass(module = "anabranch._native", unsendable)]
pub struct Session {
    world: World,
    /// The host whose scheduler decides.
    sender: Side,
    desk: Arc<Desk>,
    until: Instant,
    /// Bits per second of all paths.
    capacity: f64,
    /// Bytes of the whole transfer; `None` = without end.
    total: Option<u64>,
    /// Bytes acknowledged, and the time, at the last decision.
    last: (u64, Instant),
}

/// A decision: the reward since the last one, whether the transfer is done, whether the time is over, the virtual time in
/// seconds, the bytes acknowledged at connection level.
type Step = (f64, bool, bool, f64, u64);

#[pymethods]
impl Session {
    /// The first cell of `scenario`, up to its first decision; an observation has these facts of each path and of the connection.
    #[new]
    fn new(
        py: Python<'_>,
        scenario: &Checked,
        seed: u64,
        of_path: Vec<String>,
        of_connection: Vec<String>,
    ) -> PyResult<Self> {
        let facts = Facts { of_path: places(PATH_FIELDS, &of_path)?, of_view: places(VIEW_FIELDS, &of_connection)? };
        let failed = |error: &dyn std::fmt::Display| errors::error(py, "RunFailed", &error.to_string());
        let first = scenario.0.document.cells.first().map(|(_, scenario)| scenario.clone());
        let scenario = Arc::new(first.unwrap_or_else(|| scenario.0.document.scenario.clone()));
        let minrtt = PlugIn { name: "minrtt".to_owned(), parameters: Vec::new() };
        let job = Job::of(scenario.clone(), Choice::Multipath(minrtt), seed);
        let layout = Layout::of(&job).map_err(|error| failed(&error))?;
        let mut flows = layout.flows(&job).map_err(|error| failed(&error))?;
        let desk = Arc::new(Desk::default());
        let paths = scenario.topology.paths.len();
        let direction = scenario.direction();
        let (way, sender) = (direction.first(), direction.first().sender());
        let end =
            flows.first_mut().map(|flow| if sender == Side::Client { &mut flow.client } else { &mut flow.server });
        match end {
            Some(End::Engine { parties, .. })
                if parties.len() == 1 && scenario.traffic.len() == 1 && !direction.is_both() =>
            {
                parties[0].setup.scheduler = Box::new(Stepwise { desk: desk.clone(), facts, paths, wakeup: None });
            }
            _ => return Err(failed(&"the traffic must be one connection between engines, with data one way")),
        }
        let world = World::new(layout.world(&job, Checks::default()).map_err(|error| failed(&error))?, flows);
        let until = scenario.duration.map_or(Instant::MAX, |time| Instant::ZERO + scenario.warmup + time);
        let capacity = capacity(&scenario.topology, way).max(1.0);
        let total = scenario.traffic.first().and_then(|traffic| traffic.total());
        let mut session = Self { world, sender, desk, until, capacity, total, last: (0, Instant::ZERO) };
        session.proceed(py)?;
        Ok(session)
    }

    /// The values that a decision may use; see `anabranch.gym`.
    fn observation(&self) -> Vec<f32> {
        self.desk.papers().observation.clone()
    }

    /// Takes the decision and runs up to the next one.
    fn step(&mut self, py: Python<'_>, action: usize) -> PyResult<Step> {
        self.desk.papers().action = Some(action);
        self.proceed(py)
    }
}

impl Session {
    fn proceed(&mut self, py: Python<'_>) -> PyResult<Step> {
        self.desk.open.store(false, Ordering::Relaxed);
        let (mut done, mut over) = (false, false);
        while !self.desk.open.load(Ordering::Relaxed) && !done && !over {
            let next = self.world.poll_timeout().min(self.until);
            match self.world.run(next, &mut ()) {
                Ok(Halt::Done) => done = true,
                Ok(Halt::Time) => over = next >= self.until,
                Ok(Halt::GivenUp) => over = true,
                Err(stuck) => return Err(errors::error(py, "RunFailed", &stuck.to_string())),
            }
        }
        let now = self.world.now();
        let mut papers = self.desk.papers();
        papers.acked = match self.world.connection(0, self.sender) {
            _ if done => self.total.unwrap_or(papers.acked),
            Some(connection) => connection.view().data_acked(),
            None => papers.acked,
        };
        let bits = 8.0 * (papers.acked - self.last.0.min(papers.acked)) as f64;
        let reward = bits / self.capacity - now.since(self.last.1).as_secs_f64();
        self.last = (papers.acked, now);
        Ok((reward, done, over, now.as_secs_f64(), papers.acked))
    }
}
