//! The view of a scheduler when it chose: a witness around it takes down the view of each round that bound data, or that waited
//! although a path had room. It gives no command, so the run is the same.

use crate::fields::{Fact, of_path, of_view};
use anabranch_engine::schedule::{Around, AroundRounds, PathView, Round, Scheduler, View};
use anabranch_sim::{End, FlowSetup};
use anabranch_trace::{Decision, DecisionLog, Outcome, Recorder, SeenPath};
use anabranch_units::{PathId, Side};

/// Puts a witness around the scheduler whose views the recorder wants, at the end of the first flow that its log names;
/// `paths` are those of the scenario.
pub fn witness(flows: &mut [FlowSetup], paths: usize, recorder: &dyn Recorder) {
    let Some(log) = recorder.decisions() else { return };
    let Some(first) = flows.first_mut() else { return };
    let number = log.connection.0.wrapping_sub(first.id.0) as usize;
    let end = match log.sender {
        Side::Client => &mut first.client,
        Side::Server => &mut first.server,
    };
    let End::Engine { parties, .. } = end else { return };
    let Some(party) = parties.get_mut(number) else { return };
    let Ok(nobody) = anabranch_schedulers::build("fifo", &[]) else { return };
    let inner = core::mem::replace(&mut party.setup.scheduler, nobody);
    party.setup.scheduler = Box::new(Around { wrapper: Witness::new(paths, log), inner });
}

#[derive(Debug)]
struct Witness {
    log: DecisionLog,
    /// Paths of the scenario.
    paths: usize,
    /// Names of the scheduler's own values of the connection, and of a path, as they first appeared.
    names: [Vec<&'static str>; 2],
    /// Decisions since the log's beginning: those that only waited, those that bound data.
    kept: [usize; 2],
}

impl Witness {
    fn new(paths: usize, log: DecisionLog) -> Self {
        Self { log, paths, names: [Vec::new(), Vec::new()], kept: [0; 2] }
    }

    /// Whether more decisions are wanted.
    fn looks(&self) -> bool {
        self.kept[1] < self.log.limit || (self.log.waits && self.kept[0] < self.log.limit)
    }

    /// The view before a round.
    fn look(&self, view: &View) -> Decision {
        let mut paths = vec![SeenPath::default(); self.paths];
        for path in view.paths() {
            if let Some(seen) = paths.get_mut(path.id.index()) {
                *seen = seen_path(path);
            }
        }
        let (at_s, backlog_bytes) = (of_view::now_ns(view).number(), of_view::backlog(view));
        Decision { at_s, backlog_bytes, window_bytes: of_view::window_left(view), paths, ..Decision::default() }
    }

    /// Keeps the view of a round that chose or waited.
    fn keep(&mut self, mut before: Decision, scheduler: &dyn Scheduler, view: &View) {
        let bound = view.backlog().bytes() < before.backlog_bytes;
        let could_send = !view.backlog().is_empty() && !view.window_blocked();
        let waited = could_send && view.candidates().any(PathView::eligible);
        before.outcome = match (bound, waited) {
            (true, false) => Outcome::Bound,
            (true, true) => Outcome::BoundThenWaited,
            (false, true) => Outcome::Waited,
            (false, false) => return,
        };
        let kept = &mut self.kept[usize::from(bound)];
        if *kept >= self.log.limit || !(bound || self.log.waits) {
            return;
        }
        *kept += usize::from(view.now() >= self.log.from);
        for path in view.paths() {
            before.paths.get_mut(path.id.index()).into_iter().for_each(|seen| seen.left = room(path));
        }
        self.put_state(&mut before, scheduler);
        self.log.put(view.now(), before);
    }

    /// The scheduler's own values.
    fn put_state(&mut self, decision: &mut Decision, scheduler: &dyn Scheduler) {
        let known = self.names.each_ref().map(Vec::len);
        let names = &mut self.names;
        scheduler.state(&mut |name, path: Option<PathId>, value| {
            let values = match path {
                None => Some(&mut decision.state),
                Some(path) => decision.paths.get_mut(path.index()).map(|path| &mut path.state),
            };
            let Some(values) = values else { return };
            let names = &mut names[usize::from(path.is_some())];
            let place = names.iter().position(|known| *known == name).unwrap_or(names.len());
            if place == names.len() {
                names.push(name);
            }
            values.resize(values.len().max(place + 1), f64::NAN);
            values[place] = value;
        });
        if known != self.names.each_ref().map(Vec::len) {
            self.log.name(&self.names);
        }
    }
}

/// Packets that a path may take.
fn room(path: &PathView) -> u32 {
    if of_path::eligible(path) { of_path::room(path) } else { 0 }
}

fn seen_path(path: &PathView) -> SeenPath {
    SeenPath {
        usable: of_path::usable(path),
        room: room(path),
        left: 0,
        srtt_s: of_path::srtt_ns(path).map(Fact::number),
        cwnd: of_path::cwnd(path),
        in_flight: of_path::in_flight(path),
        queued: of_path::queued(path),
        state: Vec::new(),
    }
}

impl AroundRounds for Witness {
    fn schedule(&mut self, inner: &mut dyn Scheduler, round: &mut Round<'_>) {
        let before = self.looks().then(|| self.look(round));
        inner.schedule(round);
        if let Some(before) = before {
            self.keep(before, inner, round);
        }
    }
    fn rescue(&mut self, inner: &mut dyn Scheduler, round: &mut Round<'_>) {
        let before = self.looks().then(|| self.look(round));
        inner.rescue(round);
        // A rescue may bind new data; it is no decision to wait.
        if let Some(before) = before.filter(|before| round.backlog().bytes() < before.backlog_bytes) {
            self.keep(before, inner, round);
        }
    }
    fn pass_on(&mut self) -> Self {
        let names = core::mem::take(&mut self.names);
        Self { log: self.log.clone(), paths: self.paths, names, kept: self.kept }
    }
}
