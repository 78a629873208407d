//! Paths that go silent: for a while, for good, all of them.

use crate::common::{Notes, Plan, Steer, beside, path};
use crate::transfer::{BOTH, MIB, each, families, plan, until};
use anabranch_lab::Exchange;
use anabranch_units::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

fn silent(plan: &mut Plan, path: usize, from: Instant, to: Instant) {
    plan.paths[path].down.outages.push((from, to));
    plan.paths[path].up.outages.push((from, to));
}

/// Two paths of 8 Mbit/s.
fn slow(engine: anabranch_units::Side) -> Plan {
    let mut plan = plan(engine, 2);
    plan.paths = vec![path("a", 8, 5), path("b", 8, 10)];
    plan.captured = true;
    plan
}

/// Both ends send continuously until the test stops them.
struct Talk {
    exchange: Exchange,
    notes: Notes,
    engine: Steer,
    kernel: Steer,
}

/// Bytes written ahead of those that arrived.
const AHEAD: u64 = 2 * MIB;

impl Talk {
    fn start(plan: &Plan) -> Self {
        let (engine, kernel) = (Steer::new(), Steer::new());
        let exchange = plan.begin(vec![engine.workload()], vec![kernel.workload()], 1, None);
        Self { exchange, notes: Notes::new(plan.engine, true), engine, kernel }
    }

    fn until(&mut self, what: &str, holds: impl Fn(&Notes) -> bool) {
        let (engine, kernel) = (&self.engine, &self.kernel);
        until(&mut self.exchange, &mut self.notes, PATIENCE, what, |_, notes| {
            for (from, to) in [(engine, kernel), (kernel, engine)] {
                let ahead = from.progress().to_write - to.progress().received;
                from.send(AHEAD.saturating_sub(ahead));
            }
            holds(notes)
        });
    }

    /// Both finish, and everything arrives intact.
    fn arrive(&mut self) {
        self.engine.finish();
        self.kernel.finish();
        let (engine, kernel) = (&self.engine, &self.kernel);
        until(&mut self.exchange, &mut self.notes, PATIENCE, "the end of both streams", |_, _| {
            engine.progress().ended && kernel.progress().ended
        });
        let (engine, kernel) = (engine.progress(), kernel.progress());
        assert_eq!((engine.fault, kernel.fault), (None, None));
        assert_eq!((engine.received, kernel.received), (kernel.to_write, engine.to_write));
        assert_eq!(self.notes.violations(), []);
    }

    /// The same, and then the engine's connection ends in order.
    fn finish(mut self) {
        self.arrive();
        until(&mut self.exchange, &mut self.notes, PATIENCE, "the engine's end", |_, notes| notes.closed().is_some());
        assert_eq!(self.notes.closed(), Some(anabranch_trace::CloseReason::Finished));
    }
}

/// Data that came over a path to the engine, or left it, after a time.
fn carried(notes: &Notes, path: usize, sent: bool, after: Instant) -> usize {
    let late = notes.packets.iter().filter(|p| p.at > after && p.sent == sent && p.path.index() == path);
    late.map(|p| p.len).sum()
}

/// A path goes silent for 10 s, and then both ends use it again.
#[test]
fn a_path_that_comes_back_carries_data_again() {
    let Some(_beside) = beside() else { return };
    let plans = BOTH.into_iter().flat_map(|engine| families(slow(engine)));
    let cases = plans.flat_map(|plan| [0, 1].map(|path| (plan.clone(), path)));
    each(cases, 8, |(mut plan, lost)| {
        silent(&mut plan, lost, at(2), at(12));
        let mut talk = Talk::start(&plan);
        talk.until("data over both paths", |notes| {
            (0..2).all(|path| [false, true].iter().all(|sent| carried(notes, path, *sent, at(0)) > 10_000))
        });
        talk.until("data over the other path meanwhile", |notes| {
            [false, true].iter().all(|sent| carried(notes, 1 - lost, *sent, at(6)) > 100_000)
        });
        talk.until("data over the path that is back", |notes| {
            [false, true].iter().all(|sent| carried(notes, lost, *sent, at(12)) > 100_000)
        });
        talk.finish();
    });
}

/// A path goes silent for good: the rest goes over the other.
#[test]
fn a_path_that_stays_away_is_done_without() {
    let Some(_beside) = beside() else { return };
    let plans = BOTH.into_iter().flat_map(|engine| families(slow(engine)));
    let cases = plans.flat_map(|plan| [0, 1].map(|path| (plan.clone(), path)));
    each(cases, 8, |(mut plan, lost)| {
        silent(&mut plan, lost, at(2), Instant::MAX);
        let mut talk = Talk::start(&plan);
        talk.until("data over both paths", |notes| {
            (0..2).all(|path| [false, true].iter().all(|sent| carried(notes, path, *sent, at(0)) > 10_000))
        });
        talk.until("data over the other path", |notes| {
            [false, true].iter().all(|sent| carried(notes, 1 - lost, *sent, at(6)) > 100_000)
        });
        talk.arrive();
        assert_eq!(carried(&talk.notes, lost, false, at(3)), 0, "a path that is away delivered");
        // The end does not wait for the silent subflow.
        talk.finish();
    });
}

/// All paths go silent for 5 s.
#[test]
fn a_connection_outlives_the_silence_of_all_its_paths() {
    let Some(_beside) = beside() else { return };
    let plans = BOTH.into_iter().flat_map(|engine| families(slow(engine)));
    let cases = plans.flat_map(|plan| [1, 2].map(|paths| (plan.clone(), paths)));
    each(cases, 8, |(mut plan, paths)| {
        plan.paths.truncate(paths);
        plan.known = paths;
        plan.endpoints.truncate(paths - 1);
        for path in 0..paths {
            silent(&mut plan, path, at(2), at(7));
        }
        let mut talk = Talk::start(&plan);
        talk.until("data after the silence", |notes| {
            let after = |sent| (0..paths).map(|path| carried(notes, path, sent, at(7))).sum::<usize>();
            after(false) > 100_000 && after(true) > 100_000
        });
        talk.finish();
    });
}
