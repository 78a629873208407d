//! The driver of runs over real links.

use super::message::{Ask, Reply};
use super::order;
use super::running::Running;
use super::session::{Idle, Session, check};
use super::tape::Events;
use crate::LinkError;
use crate::error::Unmet;
use anabranch_metrics::{Meter, RunMetrics, names};
use anabranch_run::layout::{Layout, outcome};
use anabranch_run::{Driver, Job, Plan, Refusal, RunError, RunOutcome};
use anabranch_scenario::Scenario;
use anabranch_trace::{Digest, Event, Origin, Recorder, Tee};
use anabranch_units::{Instant, Side};
use std::sync::{Mutex, PoisonError};

/// Challenges on each idle path before each run.
const CHALLENGES: u32 = 10;

/// Makes runs over the paths of a session, one at a time. The server sends and the client receives, as in every run.
#[derive(Debug)]
pub struct RealLinks {
    session: Mutex<Session>,
    scenario: String,
}

impl RealLinks {
    /// For runs of a scenario, which is here in full; its paths are those of the session.
    pub fn new(session: Session, scenario: String) -> Self {
        Self { session: Mutex::new(session), scenario }
    }

    /// Whether real links can have such runs.
    ///
    /// # Errors
    /// Names what they cannot.
    pub fn admit(scenario: &Scenario) -> Result<(), RunError> {
        order::admit(scenario)
    }
}

impl Driver for RealLinks {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        let refused = |error: RunError| Refusal::Missing { what: error.to_string(), help: None };
        plan.jobs().try_for_each(|job| order::admit(&job.scenario)).map_err(refused)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        // A session is used again only if the run before came to its end.
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        run(&mut session, &self.scenario, job, listener)
    }
}

/// One run, with its paths probed before it.
pub(super) fn run(
    session: &mut Session,
    scenario: &str,
    job: &Job,
    listener: &mut dyn Recorder,
) -> Result<RunOutcome, RunError> {
    let plan = Layout::of(job)?;
    session.drain().map_err(why)?;
    let idle = session.probe(CHALLENGES).map_err(why)?;
    let made = make(session, scenario, job, listener)?;
    let events = made.merged()?;
    let mut recorder = Tee(Tee(Tee(Meter::new(plan.meter(job)), Digest::new()), plan.curves(job)), listener);
    let count = events.len() as u64;
    events.iter().for_each(|(at, origin, event)| recorder.record(*at, *origin, event));
    let Tee(Tee(Tee(meter, digest), drawn), _) = recorder;
    let mut metrics = meter.finish(made.end);
    plan.judge(job, &mut metrics);
    leave_out(&mut metrics);
    // The paths that the run used, in their order.
    for (path, number) in metrics.paths.iter_mut().zip(&plan.over) {
        path.values.extend(idle.get(*number).map(Idle::values).unwrap_or_default());
    }
    let curves = drawn.map(|drawn| drawn.finish(&metrics)).unwrap_or_default();
    Ok(RunOutcome { curves, ..outcome(&metrics, digest.finish(), count) })
}

/// Why a run failed, as runs say it.
pub(super) fn why(error: LinkError) -> RunError {
    match error {
        LinkError::Unmet(Unmet::Interrupted) => RunError::Interrupted,
        error => {
            let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
            RunError::Fault { what: format!("{error}{help}") }
        }
    }
}

/// Removes metrics that depend on the capacity or the queues of the paths: neither is known.
fn leave_out(metrics: &mut RunMetrics) {
    metrics.values.retain(|(name, _)| *name != names::ORACLE_RATIO);
    for path in &mut metrics.paths {
        path.values.retain(|(name, _)| !["utilisation", "queue_max_packets"].contains(name));
    }
}

impl Idle {
    /// As metrics of a path, as it was before the run.
    fn values(&self) -> Vec<(&'static str, f64)> {
        let seconds: Vec<f64> = self.times.iter().map(|time| time.as_secs_f64()).collect();
        let steps: Vec<f64> = seconds.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
        let least = seconds.iter().copied().reduce(f64::min);
        let lost = 1.0 - seconds.len() as f64 / f64::from(self.sent.max(1));
        let values = [
            (names::IDLE_RTT, least),
            (names::IDLE_JITTER, anabranch_metrics::mean(&steps)),
            (names::IDLE_LOSS, (self.sent > 0).then_some(lost)),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A run that was made.
struct Made {
    /// The events of both ends.
    client: Vec<u8>,
    server: Vec<u8>,
    /// The server's time less the client's, in nanoseconds.
    offset: i64,
    /// Of the run, in its time.
    end: Instant,
}

fn make(session: &mut Session, scenario: &str, job: &Job, listener: &mut dyn Recorder) -> Result<Made, RunError> {
    let port = match session.ask(&Ask::Run(order::ask(scenario, job))).map_err(why)? {
        Reply::Ready { port } => port,
        other => return Err(why(session.unexpected(&other))),
    };
    let offset = session.offset().map_err(why)?;
    let base = session.driver.now();
    let addresses = session.driver.link.addresses();
    let run = Running::new(job, Side::Client, addresses, port, base)?;
    let offset = offset.wrapping_add(base.as_nanos() as i64);
    let lost = || why(session_lost());
    session.driver.station(()).ok_or_else(lost)?.run = Some(run);
    let end = to_the_end(session, job, base, listener);
    let run = session.driver.station(()).and_then(|ends| ends.run.take()).ok_or_else(lost)?;
    let end = end?;
    if let Some(fault) = run.fault() {
        return Err(RunError::Fault { what: fault });
    }
    let (client, _) = run.finish().finish().ok_or_else(|| too_long("this host"))?;
    Ok(Made { client, server: events_of_server(session)?, offset, end })
}

fn session_lost() -> LinkError {
    LinkError::Malformed { what: "the session has no engine".to_owned() }
}

fn too_long(host: &str) -> RunError {
    let what = format!("the run has more events than {host} keeps (64 MiB, five million): make it shorter");
    RunError::Fault { what }
}

/// Until all applications are done or the time is over: when.
fn to_the_end(
    session: &mut Session,
    job: &Job,
    base: Instant,
    listener: &mut dyn Recorder,
) -> Result<Instant, RunError> {
    let scenario = &job.scenario;
    let until = scenario.duration.map_or(Instant::MAX, |duration| base + scenario.warmup + duration);
    loop {
        check().map_err(why)?;
        session.turn(until, listener).map_err(why)?;
        let now = session.driver.now().min(until);
        let time = Instant::ZERO + now.since(base);
        let Some(run) = session.driver.station(()).and_then(|ends| ends.run.as_mut()) else {
            return Err(why(session_lost()));
        };
        if run.is_done() || run.fault().is_some() || now == until {
            return Ok(time);
        }
        if session.is_silent() {
            return Err(why(LinkError::Unmet(Unmet::Lost { address: session.address() })));
        }
    }
}

fn events_of_server(session: &mut Session) -> Result<Vec<u8>, RunError> {
    let mut reply = session.ask(&Ask::End).map_err(why)?;
    let mut bytes = Vec::new();
    loop {
        match reply {
            Reply::Events(part) => bytes.extend(part),
            Reply::Done { .. } => return Ok(bytes),
            other => return Err(why(session.unexpected(&other))),
        }
        if bytes.len() > 2 * super::tape::MOST {
            return Err(too_long("this host"));
        }
        reply = session.next_reply().map_err(why)?;
    }
}

impl Made {
    /// Both ends' events in the order of time, the client's.
    fn merged(&self) -> Result<Vec<(Instant, Origin, Event)>, RunError> {
        let ours = Events::of(&self.client, Side::Client);
        let theirs = Events::of(&self.server, Side::Server).map(|event| {
            let (at, origin, event) = event?;
            let at = i128::from(at.as_nanos()) - i128::from(self.offset);
            let at = Instant::from_nanos(at.clamp(0, self.end.as_nanos().into()) as u64);
            Ok((at, origin, event))
        });
        let read = |_| RunError::Fault { what: "the server's events do not keep to the format".to_owned() };
        let mut events = ours.chain(theirs).collect::<Result<Vec<_>, _>>().map_err(read)?;
        // Stable: events of one end keep their order.
        events.sort_by_key(|(at, ..)| *at);
        Ok(events)
    }
}
