//! The driver of runs over real links.

use crate::event_log::{EVENTS, EventLogReader, MOST, too_long};
use crate::idle::IdleRtts;
use crate::message::{ClientMessage, ServerMessage};
use crate::path_sample::PacketRecorder;
use crate::record::{PathRecord, is_recordable};
use crate::request;
use crate::session::{MeasurementSession, SILENCE, check};
use crate::setup::overhead;
use crate::station::RunHost;
use anabranch_link::{HEADERS, LinkError, PeerError};
use anabranch_metrics::{Meter, RunMetrics, names};
use anabranch_run::layout::{Layout, outcome};
use anabranch_run::{Choice, Driver, Job, Plan, Refusal, RunError, RunOutcome};
use anabranch_scenario::{Scenario, Traffic, TrafficKind};
use anabranch_trace::{Digest, Event, Origin, Recorder, Tee};
use anabranch_units::{Duration, Instant, PathId, Side};
use std::sync::{Mutex, PoisonError};

/// Challenges on each idle path before each run.
const CHALLENGES: u32 = 10;

/// Makes runs over the paths of a session, one at a time. The server sends and the client receives, as in every run.
#[derive(Debug)]
pub struct RealLinks {
    state: Mutex<SharedSession<MeasurementSession>>,
    scenario: String,
    /// Datagrams that were not sent before the first run.
    unsent: u64,
}

#[derive(Debug)]
struct SharedSession<S> {
    session: S,
    /// Why the session was left in the middle of a run: it serves no other.
    broken: Option<RunError>,
}

impl<S> SharedSession<S> {
    /// Makes one more run with `act`, unless an earlier one left the session in its middle: then that is the error.
    fn once<T>(
        &mut self,
        is_sound: fn(&S) -> bool,
        act: impl FnOnce(&mut S) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let made = act(&mut self.session);
        self.broken = made.as_ref().err().filter(|_| !is_sound(&self.session)).cloned();
        made
    }
}

impl RealLinks {
    /// For runs of a scenario, which is here in full; its paths are those of the session.
    pub fn new(session: MeasurementSession, scenario: String) -> Self {
        let unsent = session.driver.link.unsent();
        Self { state: Mutex::new(SharedSession { session, broken: None }), scenario, unsent }
    }

    /// Datagrams of the runs that this host's system did not take: metrics show them as losses of the paths.
    pub fn unsent(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.session.driver.link.unsent().saturating_sub(self.unsent)
    }

    /// Each path's name and what its downloads showed, if the session records; `None` for a path through which nothing came. All traces
    /// together have at most `room` bytes.
    pub fn records(&self, room: u64) -> Vec<(String, Option<PathRecord>)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.session.records(room)
    }

    /// Whether real links can have such runs.
    ///
    /// # Errors
    /// Names what they cannot.
    pub fn admit(scenario: &Scenario) -> Result<(), RunError> {
        request::admit(scenario)
    }
}

impl Driver for RealLinks {
    fn prepare(&self, plan: &Plan) -> Result<(), Refusal> {
        let refused = |error: RunError| Refusal::Missing { what: error.to_string(), help: None };
        plan.jobs().try_for_each(|job| request::admit(&job.scenario)).map_err(refused)
    }

    fn run(&self, job: &Job, listener: &mut dyn Recorder) -> Result<RunOutcome, RunError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.once(|session| session.sound, |session| run(session, &self.scenario, job, listener))
    }
}

/// One run, with its paths probed before it.
pub(super) fn run(
    session: &mut MeasurementSession,
    scenario: &str,
    job: &Job,
    listener: &mut dyn Recorder,
) -> Result<RunOutcome, RunError> {
    let plan = Layout::of_one(job)?;
    session.sound = false;
    session.drain().map_err(why)?;
    let idle = session.probe(CHALLENGES).map_err(why)?;
    fits(session, &plan.over, job)?;
    let mut seen = recorded_path(session, job).map(|_| PacketRecorder::default());
    let mut listener = Tee(&mut seen, listener);
    let made = make(session, scenario, job, &mut listener)?;
    let events = made.merged()?;
    let mut recorder = Tee(Tee(Tee(Meter::new(plan.meter(job)), Digest::new()), plan.curves(job)), listener);
    let count = events.len() as u64;
    events.iter().for_each(|(at, origin, event)| recorder.record(*at, *origin, event));
    let Tee(Tee(Tee(meter, digest), drawn), _) = recorder;
    keep(session, job, &idle, seen.as_ref());
    let mut metrics = meter.finish(made.end);
    plan.judge(job, &mut metrics);
    leave_out(&mut metrics);
    // The paths that the run used, in their order.
    for (path, number) in metrics.paths.iter_mut().zip(&plan.over) {
        path.values.extend(idle.get(*number).map(IdleRtts::values).unwrap_or_default());
    }
    let curves = drawn.map(|drawn| drawn.finish(&metrics)).unwrap_or_default();
    Ok(RunOutcome { curves, ..outcome(&metrics, digest.finish(), count) })
}

/// The path that a run shows, if the session records and the run is a download over one path alone.
fn recorded_path(session: &MeasurementSession, job: &Job) -> Option<usize> {
    match job.choice {
        Choice::Single(path) if session.recordings.is_some() && is_recordable(&job.scenario) => Some(path),
        _ => None,
    }
}

/// Keeps what a run shows of the paths.
fn keep(session: &mut MeasurementSession, job: &Job, idle: &[IdleRtts], seen: Option<&PacketRecorder>) {
    let (path, overhead) = (recorded_path(session, job), overhead(session.address()));
    let recordings = session.recordings.iter_mut().flatten();
    for (n, (recording, idle)) in recordings.zip(idle).enumerate() {
        recording.add_idle(&idle.times);
        recording.add(seen.filter(|_| path == Some(n)).and_then(|seen| seen.read(overhead)));
    }
}

/// Why a run failed, as runs say it.
pub(super) fn why(error: LinkError) -> RunError {
    match error {
        LinkError::Interrupted => RunError::Interrupted,
        error => {
            let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
            RunError::Fault { what: format!("{error}{help}") }
        }
    }
}

/// Removes metrics that depend on the capacity, the queues or the outages of the paths: none is known.
fn leave_out(metrics: &mut RunMetrics) {
    metrics.values.retain(|(name, _)| *name != names::ORACLE_RATIO);
    for path in &mut metrics.paths {
        path.values.retain(|(name, _)| !["utilisation", "queue_max_packets", "return_s"].contains(name));
    }
}

impl IdleRtts {
    /// As metrics of a path, as it was before the run.
    fn values(&self) -> Vec<(&'static str, f64)> {
        let values = [
            (names::IDLE_RTT, self.least().map(Duration::as_secs_f64)),
            (names::IDLE_JITTER, self.jitter_s()),
            (names::IDLE_LOSS, self.loss()),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A run that was made.
struct FinishedRun {
    /// The events of both ends.
    client: Vec<u8>,
    server: Vec<u8>,
    /// The server's.
    count: u64,
    /// The server's time less the client's, in nanoseconds.
    offset: i64,
    /// End of the run, in its time.
    end: Instant,
}

fn make(
    session: &mut MeasurementSession,
    scenario: &str,
    job: &Job,
    listener: &mut dyn Recorder,
) -> Result<FinishedRun, RunError> {
    let port = match session.ask(&ClientMessage::Run(request::ask(scenario, job))).map_err(why)? {
        ServerMessage::Ready { port } => port,
        other => return Err(no(session, &other)),
    };
    let offset = session.offset().map_err(why)?;
    let base = session.driver.now();
    let addresses = session.driver.link.addresses();
    let run = RunHost::new(job, Side::Client, addresses, port, base)?;
    let offset = offset.wrapping_add(base.as_nanos() as i64);
    let lost = || why(session_lost());
    session.driver.station(()).ok_or_else(lost)?.run = Some(run);
    let end = to_the_end(session, job, base, listener);
    let run = session.driver.station(()).and_then(|station| station.run.take()).ok_or_else(lost)?;
    let end = end?;
    if let Some(fault) = run.fault() {
        return Err(RunError::Fault { what: fault });
    }
    let (client, _) = run.finish().finish().ok_or_else(|| RunError::Fault { what: too_long("this host") })?;
    let (server, count) = events_of_server(session)?;
    session.sound = true;
    Ok(FinishedRun { client, server, count, offset, end })
}

/// An answer that ends a run. After a refusal the session has no run.
fn no(session: &mut MeasurementSession, reply: &ServerMessage) -> RunError {
    session.sound = matches!(reply, ServerMessage::Refused { .. });
    why(session.unexpected(reply))
}

/// Segments that no path takes would be lost without a sign, so they are refused.
fn fits(session: &MeasurementSession, over: &[usize], job: &Job) -> Result<(), RunError> {
    let mss = job.scenario.settings.mss;
    for (name, path) in over.iter().filter_map(|path| Some((session.names().get(*path)?, PathId(*path as u8)))) {
        let most = session.driver.link.path(path).map_or(0, |path| path.max_packet) as u32;
        if mss.saturating_add(HEADERS) > most {
            let fitting = most.saturating_sub(HEADERS);
            let what = format!("segments of {mss} bytes are too large for {name}: give --set connection.mss={fitting}");
            return Err(RunError::Fault { what });
        }
    }
    Ok(())
}

fn session_lost() -> LinkError {
    LinkError::Malformed { what: "the session has no engine".to_owned() }
}

/// Until all applications are done or the time is over: when.
fn to_the_end(
    session: &mut MeasurementSession,
    job: &Job,
    base: Instant,
    listener: &mut dyn Recorder,
) -> Result<Instant, RunError> {
    let scenario = &job.scenario;
    let until = scenario.duration.map_or(Instant::MAX, |duration| base + scenario.warmup + duration);
    let mut stall = StallTimeout::of(scenario, base);
    loop {
        check().map_err(why)?;
        session.turn(until, listener).map_err(why)?;
        let now = session.driver.now().min(until);
        let time = Instant::ZERO + now.since(base);
        let Some(run) = session.driver.station(()).and_then(|station| station.run.as_mut()) else {
            return Err(why(session_lost()));
        };
        // A run without a whole log does not count.
        if run.is_done() || run.fault().is_some() || run.is_cut() || now == until {
            return Ok(time);
        }
        if stall.ends(now, run.exchanged(), run.opens_later()) {
            let what = "nothing was delivered for a minute, and the run has no duration".to_owned();
            return Err(RunError::Fault { what });
        }
        if session.is_silent() {
            return Err(why(LinkError::Peer(PeerError::Lost { address: session.address() })));
        }
    }
}

/// For runs that last until all is delivered.
struct StallTimeout {
    /// The longest time without a delivered byte.
    limit: Duration,
    /// Bytes so far, and when there were more of them last.
    exchanged: u64,
    since: Instant,
}

impl StallTimeout {
    fn of(scenario: &Scenario, since: Instant) -> Self {
        // Some applications wait on their own.
        let pause = |traffic: &Traffic| match traffic.kind {
            TrafficKind::Frames { interval, .. } | TrafficKind::Request { interval, .. } => interval,
            TrafficKind::Bulk { .. }
            | TrafficKind::Call { .. }
            | TrafficKind::Video { .. }
            | TrafficKind::Web { .. } => Duration::ZERO,
        };
        let own = scenario.traffic.iter().map(pause).max().unwrap_or_default();
        let limit = scenario.duration.map_or(SILENCE + own, |_| Duration::MAX);
        Self { limit, exchanged: 0, since }
    }

    /// The run is over; never while connections are still to be opened.
    fn ends(&mut self, now: Instant, exchanged: u64, opens_later: bool) -> bool {
        if exchanged > self.exchanged || opens_later {
            (self.exchanged, self.since) = (exchanged, now);
        }
        now.since(self.since) > self.limit
    }
}

/// The server's events, with their number, which the server says.
fn events_of_server(session: &mut MeasurementSession) -> Result<(Vec<u8>, u64), RunError> {
    let mut reply = session.ask(&ClientMessage::End).map_err(why)?;
    let mut bytes = Vec::new();
    loop {
        match reply {
            ServerMessage::Events(part) => bytes.extend(part),
            ServerMessage::Done { events } if events <= EVENTS => return Ok((bytes, events)),
            ServerMessage::Done { .. } => return Err(RunError::Fault { what: too_long("this host") }),
            other => return Err(no(session, &other)),
        }
        if bytes.len() > MOST {
            return Err(RunError::Fault { what: too_long("this host") });
        }
        reply = session.next_reply().map_err(why)?;
    }
}

impl FinishedRun {
    /// Both ends' events in the order of time, the client's. Those of the server after the end are left out, as if it had ended at
    /// the same time.
    fn merged(&self) -> Result<Vec<(Instant, Origin, Event)>, RunError> {
        let read = |_| RunError::Fault { what: "the server's events do not keep to the format".to_owned() };
        let theirs =
            EventLogReader::of(&self.server, Side::Server).take(self.count as usize + 1).collect::<Result<Vec<_>, _>>();
        let theirs = theirs.map_err(read)?;
        if theirs.len() as u64 != self.count {
            return Err(RunError::Fault {
                what: format!("the server's events are not the {} that it says", self.count),
            });
        }
        let end = i128::from(self.end.as_nanos());
        let theirs = theirs.into_iter().filter_map(|(at, origin, event)| {
            let at = i128::from(at.as_nanos()) - i128::from(self.offset);
            // The clocks' error may put the first ones before the beginning.
            (at <= end).then(|| (Instant::from_nanos(at.max(0) as u64), origin, event))
        });
        let mut events = EventLogReader::of(&self.client, Side::Client).collect::<Result<Vec<_>, _>>().map_err(read)?;
        events.extend(theirs);
        // Stable: events of one end keep their order.
        events.sort_by_key(|(at, ..)| *at);
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_log::EventLog;
    use anabranch_units::Range;

    fn logged(times: &[u64]) -> (Vec<u8>, u64) {
        let mut log = EventLog::new(MOST);
        let written = Event::Written(Range::new(0, 1));
        times.iter().for_each(|ms| log.record(Instant::from_millis(*ms), Origin::network(PathId(0)), &written));
        log.finish().unwrap()
    }

    /// The server's clock is 5 ms ahead; the run ends at 20 ms.
    fn made(count: u64) -> FinishedRun {
        let (server, all) = logged(&[4, 6, 25, 26, 900]);
        let end = Instant::from_millis(20);
        FinishedRun { client: logged(&[0, 20]).0, server, count: all - 5 + count, offset: 5_000_000, end }
    }

    #[test]
    fn events_of_the_server_after_the_end_do_not_count() {
        let merged = made(5).merged().unwrap();
        let times: Vec<(u64, Option<Side>)> =
            merged.iter().map(|(at, origin, _)| (at.as_nanos() / 1_000_000, origin.host)).collect();
        let (client, server) = (Some(Side::Client), Some(Side::Server));
        assert_eq!(times, [(0, client), (0, server), (1, server), (20, client), (20, server)]);
    }

    #[test]
    fn events_of_another_number_than_the_server_says_are_refused() {
        for count in [4, 6] {
            assert!(made(count).merged().unwrap_err().to_string().contains("that it says"));
        }
    }

    #[test]
    fn a_session_that_was_left_in_the_middle_serves_no_other_run() {
        let fault = |what: &str| RunError::Fault { what: what.to_owned() };
        let mut state = SharedSession { session: true, broken: None };
        let sound = |session: &bool| *session;
        assert_eq!(state.once(sound, |_| Err::<(), _>(fault("refused"))), Err(fault("refused")));
        assert_eq!(state.once(sound, |_| Ok(1)), Ok(1), "a refusal breaks nothing");
        let broken = state.once(sound, |session| {
            *session = false;
            Err::<(), _>(fault("first"))
        });
        assert_eq!(broken, Err(fault("first")));
        assert_eq!(state.once(sound, |_| Ok(2)), Err(fault("first")), "it is not even begun");
    }

    #[test]
    fn a_run_without_a_duration_ends_when_nothing_is_delivered_for_a_minute() {
        let path = "[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
        let of = |more: &str| {
            let text =
                format!("{more}{path}[[traffic]]\nkind = \"request\"\nsize = \"1KB\"\ninterval = \"5s\"\ncount = 3\n");
            let scenario = anabranch_scenario::read_unswept("test", &text).unwrap();
            StallTimeout::of(&scenario, Instant::ZERO)
        };
        let at = |s: u64| Instant::from_millis(s * 1_000);
        let mut stall = of("");
        assert!(!stall.ends(at(64), 0, true), "a connection is still to come");
        assert!(!stall.ends(at(100), 7, false));
        assert!(!stall.ends(at(165), 7, false));
        assert!(stall.ends(at(166), 7, false));
        assert!(!of("duration = \"3600s\"\n").ends(at(3_000), 0, false), "it ends by itself");
    }
}
