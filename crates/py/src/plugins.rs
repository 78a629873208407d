//! Schedulers and congestion controls that are written in Python, as the engine calls them.

use crate::seam::{Lent, Path, Round, Shown, lend};
use anabranch_congestion::WindowState;
use anabranch_engine::congestion::{Acked as EngineAcked, CongestionControl, Loss, Window};
use anabranch_engine::schedule::{PathView, Round as EngineRound, Scheduler, SchedulerEvent, View};
use anabranch_sim::{End, FlowSetup, Party};
use anabranch_units::{Duration, Instant, PathId, Rate, Rng};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of a run's plug-ins, and the flag that ends the run.
#[derive(Clone)]
pub struct Fate(Arc<Inner>);

struct Inner {
    raised: Mutex<Option<Raised>>,
    stop: &'static AtomicBool,
}

/// An exception and its place.
pub struct Raised {
    /// As Python raised it.
    pub error: PyErr,
    /// `scheduler`, `congestion control`.
    pub kind: &'static str,
    /// The plug-in's name.
    pub name: String,
    /// The virtual time.
    pub at: Instant,
}

/// Flags that no run uses: the engine needs one that lives for ever.
static FREE: Mutex<Vec<&'static AtomicBool>> = Mutex::new(Vec::new());

fn free() -> std::sync::MutexGuard<'static, Vec<&'static AtomicBool>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.store(false, Ordering::Relaxed);
        free().push(self.stop);
    }
}

impl Fate {
    pub fn new() -> Self {
        let stop = free().pop().unwrap_or_else(|| Box::leak(Box::new(AtomicBool::new(false))));
        Self(Arc::new(Inner { raised: Mutex::new(None), stop }))
    }

    pub fn flag(&self) -> &'static AtomicBool {
        self.0.stop
    }

    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    fn raise(&self, raised: Raised) {
        self.0.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(raised);
        self.stop();
    }

    pub fn take(&self) -> Option<Raised> {
        self.0.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fate({})", self.is_stopped())
    }
}

/// The engine keeps names of values for ever: each is leaked once.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(known) => known,
        None => {
            let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(leaked);
            leaked
        }
    }
}

/// Gives the connections under test copies of these objects.
pub fn equip(
    py: Python<'_>,
    flows: &mut [FlowSetup],
    scheduler: Option<(&str, &Py<PyAny>)>,
    congestion: Option<(&str, &Py<PyAny>)>,
    fate: &Fate,
) {
    for end in flows.iter_mut().flat_map(|flow| [&mut flow.client, &mut flow.server]) {
        let End::Engine { parties, .. } = end else { continue };
        for Party { setup, .. } in parties {
            if let Some((name, object)) = scheduler {
                match PyScheduler::new(py, name, object, fate) {
                    Ok(made) => setup.scheduler = Box::new(made),
                    Err(error) => fate.raise(Raised { error, kind: SCHEDULER, name: name.into(), at: Instant::ZERO }),
                }
            }
            if let Some((name, object)) = congestion {
                match PyCongestion::new(py, name, object, fate) {
                    Ok(made) => setup.congestion = Box::new(made),
                    Err(error) => fate.raise(Raised { error, kind: CONGESTION, name: name.into(), at: Instant::ZERO }),
                }
            }
        }
    }
}

const SCHEDULER: &str = "scheduler";
const CONGESTION: &str = "congestion control";

/// An object of its own for each connection's end.
fn copied<'py>(py: Python<'py>, object: &Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    py.import(intern!(py, "copy"))?.call_method1(intern!(py, "deepcopy"), (object,))
}

fn method(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Py<PyAny>>> {
    Ok(object.getattr_opt(name)?.filter(|found| found.is_callable()).map(Bound::unbind))
}

fn flag(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    object.getattr_opt(name)?.map_or(Ok(false), |value| value.extract())
}

/// A scheduler that is an object of Python.
#[derive(Debug)]
struct PyScheduler {
    name: String,
    schedule: Py<PyAny>,
    rescue: Option<Py<PyAny>>,
    on_event: Option<Py<PyAny>>,
    next_wakeup: Option<Py<PyAny>>,
    values: Option<Py<PyAny>>,
    seed: Option<Py<PyAny>>,
    serves_lone_path: bool,
    waits_for_timeouts: bool,
    measures_capacity: bool,
    /// The round as the object sees it.
    round: Py<Round>,
    arguments: Py<PyTuple>,
    value: Option<(&'static str, f64)>,
    wakeup: Option<Instant>,
    fate: Fate,
}

impl PyScheduler {
    fn new(py: Python<'_>, name: &str, object: &Py<PyAny>, fate: &Fate) -> PyResult<Self> {
        let object = copied(py, object)?;
        let round = Py::new(py, Round::default())?;
        let mut new = Self {
            name: name.to_owned(),
            schedule: object.getattr("schedule")?.unbind(),
            rescue: method(&object, "rescue")?,
            on_event: method(&object, "on_event")?,
            next_wakeup: method(&object, "next_wakeup_ns")?,
            values: method(&object, "values")?,
            seed: method(&object, "seed")?,
            serves_lone_path: flag(&object, "serves_lone_path")?,
            waits_for_timeouts: flag(&object, "waits_for_timeouts")?,
            measures_capacity: flag(&object, "measures_capacity")?,
            arguments: PyTuple::new(py, [&round])?.unbind(),
            round,
            value: None,
            wakeup: None,
            fate: fate.clone(),
        };
        new.look(py)?;
        Ok(new)
    }

    /// Reads the values that the engine may request later. They change in calls only.
    fn look(&mut self, py: Python<'_>) -> PyResult<()> {
        if let Some(values) = &self.values {
            let pair = values.bind(py).call0()?;
            let pair: Option<(String, f64)> =
                pair.extract().map_err(|_| returned("values", &pair, "(name, number) or None"))?;
            self.value = pair.map(|(name, value)| match self.value {
                Some((known, _)) if known == name => (known, value),
                _ => (kept(&name), value),
            });
        }
        if let Some(next) = &self.next_wakeup {
            let at = next.bind(py).call0()?;
            let at: Option<u64> = at.extract().map_err(|_| returned("next_wakeup_ns", &at, "whole ns or None"))?;
            self.wakeup = at.map(Instant::from_nanos);
        }
        Ok(())
    }

    /// Makes a call at `at`, unless the run has failed.
    fn call(&mut self, at: Instant, call: impl FnOnce(&Self, Python<'_>) -> PyResult<()>) {
        if self.fate.is_stopped() {
            return;
        }
        Python::attach(|py| {
            let done = call(self, py).and_then(|()| self.look(py));
            if let Err(error) = done {
                self.fate.raise(Raised { error, kind: SCHEDULER, name: self.name.clone(), at });
            }
        });
    }
}

impl Scheduler for PyScheduler {
    fn seed(&mut self, mut rng: Rng) {
        self.call(Instant::ZERO, |own, py| match &own.seed {
            Some(seed) => seed.bind(py).call1((rng.bits(),)).map(drop),
            None => Ok(()),
        });
    }

    fn schedule(&mut self, round: &mut EngineRound<'_>) {
        let now = round.now();
        self.call(now, |own, py| {
            lend(round as &mut dyn Lent, || own.schedule.bind(py).call1(own.arguments.bind(py)).map(drop))
        });
    }

    fn rescue(&mut self, round: &mut EngineRound<'_>) {
        if self.rescue.is_none() {
            return round.rescue_by_rtt();
        }
        let now = round.now();
        self.call(now, |own, py| {
            let Some(rescue) = &own.rescue else { return Ok(()) };
            lend(round as &mut dyn Lent, || rescue.bind(py).call1(own.arguments.bind(py)).map(drop))
        });
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, view: &View) {
        if self.on_event.is_none() {
            return;
        }
        let Some(event) = Event::of(event) else { return };
        self.call(view.now(), |own, py| {
            let Some(on_event) = &own.on_event else { return Ok(()) };
            let event = Py::new(py, event)?;
            lend(&mut Shown(view), || on_event.bind(py).call1((event, &own.round)).map(drop))
        });
    }

    fn serves_lone_path(&self) -> bool {
        self.serves_lone_path
    }

    fn waits_for_timeouts(&self) -> bool {
        self.waits_for_timeouts
    }
    fn measures_capacity(&self) -> bool {
        self.measures_capacity
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.wakeup
    }

    fn values(&self) -> Option<(&'static str, f64)> {
        self.value
    }
}

/// A fact for schedulers that learn or plan.
#[pyclass(frozen, get_all, module = "anabranch")]
pub struct Event {
    /// `ack`, `data_ack`, `loss`, `timeout`, `path_up`, `path_down`.
    kind: &'static str,
    /// The path's id; `None` for `data_ack`.
    path: Option<u8>,
    /// Offset of `data_ack`: everything below it arrived.
    upto: Option<u64>,
    /// Content of `ack`.
    acked: Option<Acked>,
}

impl Event {
    fn of(event: &SchedulerEvent<'_>) -> Option<Self> {
        let of = |kind, path: &PathId| Self { kind, path: Some(path.0), upto: None, acked: None };
        Some(match event {
            SchedulerEvent::Ack { path, acked } => Self { acked: Some(Acked::of(acked)), ..of("ack", path) },
            SchedulerEvent::DataAck { upto } => Self { kind: "data_ack", path: None, upto: Some(*upto), acked: None },
            SchedulerEvent::Loss { path } => of("loss", path),
            SchedulerEvent::Timeout { path } => of("timeout", path),
            SchedulerEvent::PathUp { path } => of("path_up", path),
            SchedulerEvent::PathDown { path } => of("path_down", path),
            _ => return None,
        })
    }
}

/// One acknowledgment, as far as it concerns a subflow.
#[pyclass(frozen, get_all, from_py_object, module = "anabranch")]
#[derive(Clone, Copy)]
pub struct Acked {
    /// When it came, in ns of virtual time.
    now_ns: u64,
    /// Packets newly acknowledged or SACKed.
    packets: u32,
    /// Part of these that counts for the growth of the window.
    counted: u32,
    /// In congestion avoidance it counts as one packet, whatever it acknowledges.
    one_in_avoidance: bool,
    /// Slow start includes a window that equals its threshold.
    slow_start_at_threshold: bool,
    /// Payload bytes newly acknowledged or SACKed.
    bytes: u64,
    /// Round-trip sample in ns.
    rtt_ns: Option<u64>,
    /// Packets in flight just before.
    prior_in_flight: u32,
    /// The window was the limit since the last round: an increase is allowed.
    cwnd_limited: bool,
    /// False during fast recovery: windows must not grow.
    may_grow: bool,
    /// A round trip ended.
    round_ended: bool,
    /// End of the highest data newly acknowledged, as an offset in the stream.
    data_end: u64,
    /// The DATA_ACK of this very segment.
    data_ack: Option<u64>,
    /// Packets that this acknowledgment showed to be lost.
    lost: u32,
}

impl Acked {
    fn of(acked: &EngineAcked) -> Self {
        Self {
            now_ns: acked.now.as_nanos(),
            packets: acked.packets,
            counted: acked.counted,
            one_in_avoidance: acked.one_in_avoidance,
            slow_start_at_threshold: acked.slow_start_at_threshold,
            bytes: acked.bytes,
            rtt_ns: acked.rtt.map(Duration::as_nanos),
            prior_in_flight: acked.prior_in_flight,
            cwnd_limited: acked.cwnd_limited,
            may_grow: acked.may_grow,
            round_ended: acked.round_ended,
            data_end: acked.data_end,
            data_ack: acked.data_ack,
            lost: acked.lost,
        }
    }

    /// The part of it that windows read.
    fn engine(&self) -> EngineAcked {
        let mut acked = EngineAcked::default();
        acked.now = Instant::from_nanos(self.now_ns);
        acked.packets = self.packets;
        acked.counted = self.counted;
        acked.one_in_avoidance = self.one_in_avoidance;
        acked.slow_start_at_threshold = self.slow_start_at_threshold;
        acked.cwnd_limited = self.cwnd_limited;
        acked.may_grow = self.may_grow;
        acked
    }
}

/// A window in whole packets, with the fraction that its increases have accumulated, and the reactions that loss-based
/// algorithms share.
#[pyclass(name = "Window", module = "anabranch")]
pub struct PyWindow(WindowState);

fn loss_of(word: &str) -> PyResult<Loss> {
    Ok(match word {
        "fast" => Loss::Fast,
        "timeout" => Loss::Timeout { again: false },
        "timeout_again" => Loss::Timeout { again: true },
        "marked" => Loss::Marked,
        "penalty" => Loss::Penalty,
        other => return Err(PyValueError::new_err(format!("`{other}` is no loss episode"))),
    })
}

#[pymethods]
impl PyWindow {
    /// A window of `initial` packets and no threshold yet.
    #[new]
    fn new(initial: u32) -> Self {
        Self(WindowState::new(initial))
    }
    /// Whole packets that may be in flight, at least 1.
    #[getter]
    fn cwnd(&self) -> u32 {
        self.0.cwnd()
    }
    /// The window with its fraction of a packet.
    #[getter]
    fn exact(&self) -> f64 {
        self.0.exact()
    }
    /// Slow-start threshold in packets; `None` = none yet.
    #[getter]
    fn ssthresh(&self) -> Option<u32> {
        Some(self.0.ssthresh()).filter(|packets| *packets != u32::MAX)
    }
    /// Below the threshold.
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.0.in_slow_start()
    }
    /// Grows by the part of `ack` that slow start permits, and returns the packets left for congestion avoidance.
    fn slow_start(&mut self, ack: PyRef<'_, Acked>) -> u32 {
        self.0.slow_start(&ack.engine())
    }
    /// Adds a real number of packets, which may be negative.
    fn add(&mut self, packets: f64) {
        self.0.add(packets);
    }
    /// Sets the window.
    fn set(&mut self, packets: u32) {
        self.0.set(packets);
    }
    /// Reduces the window and ends slow start there; it never raises it.
    fn shrink(&mut self, packets: u32) {
        self.0.shrink(packets);
    }
    /// Ends slow start at the present window.
    fn end_slow_start(&mut self) {
        self.0.end_slow_start();
    }
    /// The reaction of loss-based algorithms, with the threshold that this one computed. A penalty and a repeated timeout
    /// ignore that threshold.
    fn on_loss(&mut self, loss: &str, ssthresh: u32) -> PyResult<()> {
        self.0.on_loss(loss_of(loss)?, ssthresh);
        Ok(())
    }
    /// The last loss was spurious.
    fn undo(&mut self) {
        self.0.undo();
    }
    /// Restart after idling.
    fn restart(&mut self, idle_ns: u64, rto_ns: u64) {
        self.0.restart(Duration::from_nanos(idle_ns), Duration::from_nanos(rto_ns));
    }
    /// At most `used` packets were in flight for a while: half of the rest is given up.
    fn give_back(&mut self, used: u32) {
        self.0.give_back(used);
    }
    /// Slow start ends at `ssthresh` packets at the latest.
    fn set_threshold(&mut self, ssthresh: u32) {
        self.0.set_threshold(ssthresh);
    }
    fn __repr__(&self) -> String {
        format!("<Window of {} packets>", self.0.exact())
    }
}

/// The forms of the value of `window`.
const WINDOW: &str = "packets, or (packets, slow-start threshold or None, bits per second or None)";

fn returned(method: &str, value: &Bound<'_, PyAny>, instead: &str) -> PyErr {
    let value = value.repr().map(|text| text.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("`{method}` returned {value}; it must return {instead}"))
}

/// A congestion control that is an object of Python.
#[derive(Debug)]
struct PyCongestion {
    name: String,
    on_join: Py<PyAny>,
    on_ack: Py<PyAny>,
    on_loss: Py<PyAny>,
    window: Py<PyAny>,
    on_leave: Option<Py<PyAny>>,
    on_undo: Option<Py<PyAny>>,
    on_idle: Option<Py<PyAny>>,
    on_underuse: Option<Py<PyAny>>,
    set_threshold: Option<Py<PyAny>>,
    /// The windows of the paths that joined, as the object last said.
    windows: Vec<(PathId, Window)>,
    /// The latest time that the engine said.
    now: Instant,
    fate: Fate,
}

/// `window` of Python: packets, and perhaps the slow-start threshold in packets and the pace in bits per second.
type PathWindow = (f64, Option<f64>, Option<u64>);

impl PyCongestion {
    fn new(py: Python<'_>, name: &str, object: &Py<PyAny>, fate: &Fate) -> PyResult<Self> {
        let object = copied(py, object)?;
        let needed = |name: &str| object.getattr(name).map(Bound::unbind);
        Ok(Self {
            name: name.to_owned(),
            on_join: needed("on_join")?,
            on_ack: needed("on_ack")?,
            on_loss: needed("on_loss")?,
            window: needed("window")?,
            on_leave: method(&object, "on_leave")?,
            on_undo: method(&object, "on_undo")?,
            on_idle: method(&object, "on_idle")?,
            on_underuse: method(&object, "on_underuse")?,
            set_threshold: method(&object, "set_threshold")?,
            windows: Vec::new(),
            now: Instant::ZERO,
            fate: fate.clone(),
        })
    }

    /// Reads the windows of all paths that joined: a coupled algorithm may have changed any of them.
    fn look(&mut self, py: Python<'_>) -> PyResult<()> {
        for (id, window) in &mut self.windows {
            let said = self.window.bind(py).call1((id.0,))?;
            let (cwnd, ssthresh, pacing): PathWindow = match said.extract::<f64>() {
                Ok(cwnd) => (cwnd, None, None),
                Err(_) => said.extract().map_err(|_| returned("window", &said, WINDOW))?,
            };
            if !(cwnd >= 1.0 && ssthresh.is_none_or(|threshold| threshold >= 1.0)) {
                let text = format!("the window of path {} is {said}: it must be at least one packet", id.0);
                return Err(PyValueError::new_err(text));
            }
            // Saturates.
            let ssthresh = ssthresh.map_or(u32::MAX, |threshold| threshold as u32);
            *window = Window { cwnd: cwnd as u32, ssthresh, pacing: pacing.map(Rate::from_bps) };
        }
        Ok(())
    }

    fn call(&mut self, call: impl FnOnce(&Self, Python<'_>) -> PyResult<()>) {
        if self.fate.is_stopped() {
            return;
        }
        Python::attach(|py| {
            if let Err(error) = call(self, py).and_then(|()| self.look(py)) {
                let (name, at) = (self.name.clone(), self.now);
                self.fate.raise(Raised { error, kind: CONGESTION, name, at });
            }
        });
    }
}

fn copies<'py>(py: Python<'py>, paths: &[PathView]) -> PyResult<Bound<'py, PyTuple>> {
    let paths = paths.iter().map(|path| Py::new(py, Path::copy(path))).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, paths)
}

impl CongestionControl for PyCongestion {
    fn on_join(&mut self, id: PathId, initial_window: u32) {
        let cwnd = initial_window.max(1);
        self.windows.retain(|(known, _)| *known != id);
        self.windows.push((id, Window { cwnd, ssthresh: u32::MAX, pacing: None }));
        self.call(|own, py| own.on_join.bind(py).call1((id.0, initial_window)).map(drop));
    }

    fn on_leave(&mut self, id: PathId) {
        self.windows.retain(|(known, _)| *known != id);
        self.call(|own, py| match &own.on_leave {
            Some(on_leave) => on_leave.bind(py).call1((id.0,)).map(drop),
            None => Ok(()),
        });
    }

    fn on_ack(&mut self, id: PathId, ack: &EngineAcked, paths: &[PathView]) {
        self.now = ack.now;
        self.call(|own, py| own.on_ack.bind(py).call1((id.0, Acked::of(ack), copies(py, paths)?)).map(drop));
    }

    fn on_loss(&mut self, id: PathId, now: Instant, loss: Loss, paths: &[PathView]) {
        self.now = now;
        let why = match loss {
            Loss::Fast => "fast",
            Loss::Timeout { again: false } => "timeout",
            Loss::Timeout { again: true } => "timeout_again",
            Loss::Marked => "marked",
            Loss::Penalty => "penalty",
        };
        self.call(|own, py| own.on_loss.bind(py).call1((id.0, why, copies(py, paths)?)).map(drop));
    }

    fn on_undo(&mut self, id: PathId, now: Instant) {
        self.now = now;
        self.call(|own, py| match &own.on_undo {
            Some(on_undo) => on_undo.bind(py).call1((id.0,)).map(drop),
            None => Ok(()),
        });
    }

    fn on_idle(&mut self, id: PathId, now: Instant, idle: Duration, rto: Duration) {
        self.now = now;
        self.call(|own, py| match &own.on_idle {
            Some(on_idle) => on_idle.bind(py).call1((id.0, idle.as_nanos(), rto.as_nanos())).map(drop),
            None => Ok(()),
        });
    }

    fn on_underuse(&mut self, id: PathId, used: u32) {
        self.call(|own, py| match &own.on_underuse {
            Some(on_underuse) => on_underuse.bind(py).call1((id.0, used)).map(drop),
            None => Ok(()),
        });
    }

    fn set_threshold(&mut self, id: PathId, ssthresh: u32) {
        self.call(|own, py| match &own.set_threshold {
            Some(set_threshold) => set_threshold.bind(py).call1((id.0, ssthresh)).map(drop),
            None => Ok(()),
        });
    }

    fn window(&self, id: PathId) -> Window {
        let known = self.windows.iter().find(|(known, _)| *known == id).map(|(_, window)| *window);
        known.unwrap_or(Window { cwnd: 1, ssthresh: u32::MAX, pacing: None })
    }
}
