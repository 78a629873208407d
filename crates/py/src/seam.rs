//! The round of a scheduler and its paths, as Python objects. A round is lent to Python for one call: objects that outlive it
//! read nothing.

use anabranch_engine::schedule::{Cause, Command, PathView, RecoveryPhase, Repeat, Round as EngineRound, View};
use anabranch_trace::SendKind;
use anabranch_units::{Duration, PathId, Range};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use scoped_tls_hkt::scoped_thread_local;

/// The connection that is lent for one call.
pub trait Lent {
    fn view(&self) -> &View;
    fn cause(&self) -> Option<Cause>;
    /// Carries out a command; `None` where none is allowed.
    fn carry_out(&mut self, command: Command) -> Option<bool>;
}

impl Lent for EngineRound<'_> {
    fn view(&self) -> &View {
        self
    }
    fn cause(&self) -> Option<Cause> {
        Some(EngineRound::cause(self))
    }
    fn carry_out(&mut self, command: Command) -> Option<bool> {
        Some(EngineRound::carry_out(self, command))
    }
}

/// A view without commands: events are facts.
pub struct Shown<'a>(pub &'a View);

impl Lent for Shown<'_> {
    fn view(&self) -> &View {
        self.0
    }
    fn cause(&self) -> Option<Cause> {
        None
    }
    fn carry_out(&mut self, _: Command) -> Option<bool> {
        None
    }
}

scoped_thread_local!(static mut LENT: for<'a> &'a mut (dyn Lent + 'a));

/// Lends `lent` to the Python code that `call` runs.
pub fn lend<T>(lent: &mut dyn Lent, call: impl FnOnce() -> T) -> T {
    LENT.set(lent, call)
}

fn over() -> PyErr {
    PyRuntimeError::new_err("a round, and its paths, may be read only during the call that they are given to")
}

fn read<T>(of: impl FnOnce(&View) -> T) -> PyResult<T> {
    if LENT.is_set() { Ok(LENT.with(|lent| of(lent.view()))) } else { Err(over()) }
}

fn order(command: Command) -> PyResult<bool> {
    let refused = || PyRuntimeError::new_err("only `schedule` and `rescue` may give commands");
    if LENT.is_set() { LENT.with(|lent| lent.carry_out(command)).ok_or_else(refused) } else { Err(over()) }
}

/// A path, as an argument: its object or its id.
#[derive(FromPyObject)]
enum PathArgument<'py> {
    Object(PyRef<'py, Path>),
    Id(u8),
}

impl PathArgument<'_> {
    fn id(&self) -> PathId {
        match self {
            Self::Object(path) => path.id(),
            Self::Id(id) => PathId(*id),
        }
    }
}

enum Source {
    /// Read again each time.
    Live(PathId),
    /// As it was.
    Copy(Box<PathView>),
}

/// A path as schedulers and congestion controls see it. Windows and counts are in packets of `mss` bytes, times in
/// nanoseconds.
#[pyclass(frozen, module = "anabranch")]
pub struct Path(Source);

impl Path {
    pub fn copy(of: &PathView) -> Self {
        Self(Source::Copy(Box::new(*of)))
    }

    fn id(&self) -> PathId {
        match &self.0 {
            Source::Live(id) => *id,
            Source::Copy(path) => path.id,
        }
    }

    fn get<T>(&self, of: impl FnOnce(&PathView) -> T) -> PyResult<T> {
        match &self.0 {
            Source::Copy(path) => Ok(of(path)),
            Source::Live(id) => {
                let gone = || PyValueError::new_err(format!("path {} has no subflow any more", id.0));
                read(|view| view.path(*id).map(of))?.ok_or_else(gone)
            }
        }
    }
}

fn nanos(time: Option<Duration>) -> Option<u64> {
    time.map(Duration::as_nanos)
}

fn phase(phase: RecoveryPhase) -> &'static str {
    match phase {
        RecoveryPhase::Open => "open",
        RecoveryPhase::Disorder => "disorder",
        RecoveryPhase::Recovery => "recovery",
        RecoveryPhase::Loss => "loss",
    }
}

#[pymethods]
impl Path {
    /// The path's number; the first of the scenario is 0.
    #[getter(id)]
    fn number(&self) -> u8 {
        self.id().0
    }
    /// Established and not failing: it may be given data.
    #[getter]
    fn usable(&self) -> PyResult<bool> {
        self.get(|p| p.usable)
    }
    /// Only to be used when no other path is usable.
    #[getter]
    fn backup(&self) -> PyResult<bool> {
        self.get(|p| p.backup)
    }
    /// The path may take a segment now.
    #[getter]
    fn eligible(&self) -> PyResult<bool> {
        self.get(PathView::eligible)
    }
    /// Packets that the window has room for, beyond those in flight and queued.
    #[getter]
    fn room(&self) -> PyResult<u32> {
        self.get(PathView::room)
    }
    /// Largest payload in bytes.
    #[getter]
    fn mss(&self) -> PyResult<u32> {
        self.get(|p| p.mss)
    }
    /// Packets that may be in flight now.
    #[getter]
    fn cwnd(&self) -> PyResult<u32> {
        self.get(|p| p.cwnd)
    }
    /// Slow-start threshold in packets; `None` = none yet.
    #[getter]
    fn ssthresh(&self) -> PyResult<Option<u32>> {
        self.get(|p| (p.ssthresh != u32::MAX).then_some(p.ssthresh))
    }
    /// Packets sent, neither acknowledged, SACKed nor marked lost.
    #[getter]
    fn in_flight(&self) -> PyResult<u32> {
        self.get(|p| p.in_flight)
    }
    /// Payload bytes sent and not acknowledged at subflow level.
    #[getter]
    fn in_flight_bytes(&self) -> PyResult<u64> {
        self.get(|p| p.in_flight_bytes)
    }
    /// Packets bound to the path and not yet sent.
    #[getter]
    fn queued(&self) -> PyResult<u32> {
        self.get(|p| p.queued)
    }
    /// Bytes bound to the path and not yet sent.
    #[getter]
    fn queued_bytes(&self) -> PyResult<u64> {
        self.get(|p| p.queued_bytes)
    }
    /// Smoothed RTT in ns; `None` before the first sample.
    #[getter]
    fn srtt_ns(&self) -> PyResult<Option<u64>> {
        self.get(|p| nanos(p.srtt))
    }
    /// Smoothed RTT in ns for comparisons: unknown counts as longest.
    #[getter]
    fn rtt_or_max_ns(&self) -> PyResult<u64> {
        self.get(|p| p.rtt_or_max().as_nanos())
    }
    /// RTT variation in ns.
    #[getter]
    fn rttvar_ns(&self) -> PyResult<u64> {
        self.get(|p| p.rttvar.as_nanos())
    }
    /// The newest RTT sample in ns.
    #[getter]
    fn latest_rtt_ns(&self) -> PyResult<Option<u64>> {
        self.get(|p| nanos(p.latest_rtt))
    }
    /// Least RTT sample of the subflow in ns.
    #[getter]
    fn min_rtt_ns(&self) -> PyResult<Option<u64>> {
        self.get(|p| nanos(p.min_rtt))
    }
    /// Retransmission timeout without back-off in ns.
    #[getter]
    fn rto_ns(&self) -> PyResult<u64> {
        self.get(|p| p.rto.as_nanos())
    }
    /// Estimated probability of losing a packet.
    #[getter]
    fn loss(&self) -> PyResult<f64> {
        self.get(|p| p.loss)
    }
    /// Phase of loss recovery: `open`, `disorder`, `recovery` or `loss`.
    #[getter]
    fn recovery(&self) -> PyResult<&'static str> {
        self.get(|p| phase(p.recovery))
    }
    /// Bits per second at which the path is paced, or would be by Linux's rule; `None` without an RTT sample.
    #[getter]
    fn pacing_rate_bps(&self) -> PyResult<Option<u64>> {
        self.get(|p| p.pacing_rate().map(|rate| rate.as_bps()))
    }
    /// Bytes per second that the window admits: cwnd/srtt; zero without an RTT sample.
    #[getter]
    fn window_rate(&self) -> PyResult<f64> {
        self.get(PathView::window_rate)
    }
    /// Bytes per second of its bottleneck by its acknowledgments; `None` until the bottleneck was busy between two of them, and
    /// unless the scheduler has `measures_capacity`.
    #[getter]
    fn capacity(&self) -> PyResult<Option<f64>> {
        self.get(PathView::capacity_rate)
    }
    /// How much the capacity varies: the standard deviation of the time per byte over its mean. `None` as for `capacity`.
    #[getter]
    fn capacity_spread(&self) -> PyResult<Option<f64>> {
        self.get(|p| p.capacity.and_then(|capacity| capacity.spread()))
    }
    /// Least forward delay in ns by the clocks of both hosts: only differences between paths mean anything. `None` before the first sample,
    /// and unless the scheduler has `measures_capacity`.
    #[getter]
    fn least_forward_ns(&self) -> PyResult<Option<u64>> {
        self.get(|p| nanos(p.least_forward()))
    }
    /// When the newest segment left, in ns of virtual time; `None` before the first, and unless the scheduler has `measures_capacity`.
    #[getter]
    fn last_sent_ns(&self) -> PyResult<Option<u64>> {
        self.get(|p| p.capacity.and_then(|capacity| capacity.last_sent()).map(|at| at.as_nanos()))
    }
    /// Bytes that the host's other connections have in flight or queued between the same two addresses; those whose schedulers have
    /// `measures_capacity`, and zero unless this one has.
    #[getter]
    fn elsewhere_bytes(&self) -> PyResult<u64> {
        self.get(PathView::elsewhere)
    }
    /// Payload bytes that the connection has sent on it, repetitions included.
    #[getter]
    fn used_bytes(&self) -> PyResult<u64> {
        self.get(|p| p.used_bytes)
    }
    /// Price per byte, as the scenario says.
    #[getter]
    fn price(&self) -> PyResult<f64> {
        self.get(|p| p.policy.price)
    }
    /// Share of the traffic in the scenario; `None` = not said.
    #[getter]
    fn weight(&self) -> PyResult<Option<f64>> {
        self.get(|p| p.policy.weight)
    }
    fn __repr__(&self) -> String {
        format!("<Path {}>", self.id().0)
    }
}

/// One round of a scheduler: it reads the connection and takes commands. Reads reflect the round's own commands.
#[pyclass(frozen, module = "anabranch")]
#[derive(Default)]
pub struct Round {
    paths: PyOnceLock<Vec<Py<Path>>>,
}

impl Round {
    fn object<'a>(&'a self, py: Python<'_>, id: PathId) -> PyResult<&'a Py<Path>> {
        let make = || (0..PathId::LIMIT as u8).map(|id| Py::new(py, Path(Source::Live(PathId(id))))).collect();
        Ok(&self.paths.get_or_try_init(py, make)?[id.index()])
    }

    fn objects<'py>(&self, py: Python<'py>, ids: &[PathId]) -> PyResult<Bound<'py, PyTuple>> {
        let objects = ids.iter().map(|id| self.object(py, *id)).collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, objects)
    }

    fn perhaps(&self, py: Python<'_>, id: Option<PathId>) -> PyResult<Option<Py<Path>>> {
        id.map(|id| self.object(py, id).map(|path| path.clone_ref(py))).transpose()
    }
}

/// The ids of up to 32 paths, without a heap.
struct Ids([PathId; PathId::LIMIT], usize);

impl Ids {
    fn of<'v>(paths: impl Iterator<Item = &'v PathView>) -> Self {
        let mut ids = Self([PathId(0); PathId::LIMIT], 0);
        for path in paths {
            ids.0[ids.1] = path.id;
            ids.1 += 1;
        }
        ids
    }
    fn list(&self) -> &[PathId] {
        &self.0[..self.1]
    }
}

fn pair(range: Range) -> (u64, u64) {
    (range.start, range.end)
}

fn range(start: u64, end: u64) -> PyResult<Range> {
    match start <= end {
        true => Ok(Range::new(start, end)),
        false => Err(PyValueError::new_err(format!("a range from {start} to {end}"))),
    }
}

#[pymethods]
impl Round {
    /// The virtual time in ns since the run began.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        read(|view| view.now().as_nanos())
    }
    /// Why the scheduler is called: `written`, `ack`, `window`, `path_change`, `timeout` or `wakeup`; `event` outside rounds.
    #[getter]
    fn cause(&self) -> PyResult<&'static str> {
        if !LENT.is_set() {
            return Err(over());
        }
        Ok(match LENT.with(|lent| lent.cause()) {
            None => "event",
            Some(Cause::Written) => "written",
            Some(Cause::Ack(_)) => "ack",
            Some(Cause::Window) => "window",
            Some(Cause::PathChange(_)) => "path_change",
            Some(Cause::Timeout(_)) => "timeout",
            Some(Cause::Wakeup) => "wakeup",
        })
    }
    /// All paths that have a subflow, in the order of their ids, usable or not.
    #[getter]
    fn paths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ids = read(|view| Ids::of(view.paths().iter()))?;
        self.objects(py, ids.list())
    }
    /// The paths that may carry new data now: usable; backups only if nothing else is.
    #[getter]
    fn candidates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let ids = read(|view| Ids::of(view.candidates()))?;
        self.objects(py, ids.list())
    }
    /// The path with this id; `None` if it has no subflow.
    fn path(&self, py: Python<'_>, id: u8) -> PyResult<Option<Py<Path>>> {
        let id = read(|view| view.path(PathId(id)).map(|path| path.id))?;
        self.perhaps(py, id)
    }
    /// The candidate with the lowest smoothed RTT that has room; ties go to the lower id.
    fn fastest_eligible(&self, py: Python<'_>) -> PyResult<Option<Py<Path>>> {
        let id = read(|view| view.fastest_eligible().map(|path| path.id))?;
        self.perhaps(py, id)
    }
    /// The candidate with the lowest smoothed RTT, with or without room.
    fn fastest(&self, py: Python<'_>) -> PyResult<Option<Py<Path>>> {
        let id = read(|view| view.fastest().map(|path| path.id))?;
        self.perhaps(py, id)
    }
    /// The candidate with the lowest smoothed RTT that has room or is safe to wait for.
    fn fastest_live(&self, py: Python<'_>) -> PyResult<Option<Py<Path>>> {
        let live = |view: &View, path: &PathView| path.eligible() || view.may_wait_for(path.id);
        let fastest = |view: &View| {
            view.candidates().filter(|p| live(view, p)).min_by_key(|p| (p.rtt_or_max(), p.id)).map(|p| p.id)
        };
        self.perhaps(py, read(fastest)?)
    }
    /// True if it is safe to send nothing now and wait for the path.
    fn may_wait_for(&self, path: PathArgument<'_>) -> PyResult<bool> {
        read(|view| view.may_wait_for(path.id()))
    }
    /// Bytes written and bound to no subflow.
    #[getter]
    fn backlog(&self) -> PyResult<u64> {
        read(|view| view.backlog().bytes())
    }
    /// Bytes sent and not acknowledged at connection level, counted once.
    #[getter]
    fn outstanding(&self) -> PyResult<u64> {
        read(|view| view.outstanding().bytes())
    }
    /// Data sent and not acknowledged: (start, end, the ids of the paths that carry it), ascending.
    fn outstanding_runs(&self) -> PyResult<Vec<(u64, u64, Vec<u8>)>> {
        let ids = |paths: u32| (0..32u8).filter(|id| paths & (1 << id) != 0).collect();
        read(|view| view.outstanding().iter().map(|(r, copies)| (r.start, r.end, ids(copies.paths))).collect())
    }
    /// Bytes stranded by a timeout or a lost subflow, to be retransmitted elsewhere.
    #[getter]
    fn stranded(&self) -> PyResult<u64> {
        read(|view| view.rescue().bytes())
    }
    /// Data bound to a path and not yet sent, first to go first: (start, end, why).
    fn queue(&self, path: PathArgument<'_>) -> PyResult<Vec<(u64, u64, &'static str)>> {
        read(|view| view.queue(path.id()).map(|q| (q.range.start, q.range.end, kind(q.kind))).collect())
    }
    /// The next new segment of at most `mss` bytes, `skip` unassigned bytes further on, as (start, end); `None` if there is
    /// none or Nagle's rule holds it back.
    #[pyo3(signature = (skip=0, mss=65535))]
    fn next_new(&self, skip: u64, mss: u32) -> PyResult<Option<(u64, u64)>> {
        read(|view| view.next_new(skip, mss).map(pair))
    }
    /// The messages that the application announced and the peer has not wholly acknowledged: (start, end), ascending.
    fn messages(&self) -> PyResult<Vec<(u64, u64)>> {
        read(|view| view.messages().map(pair).collect())
    }
    /// The peer's whole window in bytes, as last advertised.
    #[getter]
    fn send_window(&self) -> PyResult<u64> {
        read(View::send_window)
    }
    /// First offset that the peer's window does not admit.
    #[getter]
    fn window_edge(&self) -> PyResult<u64> {
        read(View::window_edge)
    }
    /// New data waits and the peer's window does not admit its next segment.
    #[getter]
    fn window_blocked(&self) -> PyResult<bool> {
        read(View::window_blocked)
    }
    /// First offset that the peer has not acknowledged at connection level.
    #[getter]
    fn data_acked(&self) -> PyResult<u64> {
        read(View::data_acked)
    }
    /// First offset not yet written by the application.
    #[getter]
    fn written(&self) -> PyResult<u64> {
        read(View::written)
    }
    /// The application will write no more.
    #[getter]
    fn write_ended(&self) -> PyResult<bool> {
        read(View::write_ended)
    }
    /// Bytes that the application may have written and the peer not yet acknowledged.
    #[getter]
    fn send_buffer(&self) -> PyResult<u64> {
        read(View::send_buffer)
    }
    /// The application wants to write and the send buffer is full.
    #[getter]
    fn send_buffer_full(&self) -> PyResult<bool> {
        read(View::send_buffer_full)
    }
    /// Paths known beforehand, whether or not they have a subflow yet.
    #[getter]
    fn known_paths(&self) -> PyResult<usize> {
        read(View::known_paths)
    }
    /// Binds the next new segment to `path`, to be sent now. False, without effect, if the path is not eligible, if there is
    /// no new data, or if the peer's window does not admit it.
    fn send_next(&self, path: PathArgument<'_>) -> PyResult<bool> {
        order(Command::SendNext(path.id()))
    }
    /// As `send_next` while it succeeds. True if the path has no room left, false if data or the peer's window ran out.
    fn fill(&self, path: PathArgument<'_>) -> PyResult<bool> {
        order(Command::Fill(path.id()))
    }
    /// As `send_next`, but skips `skip` bytes of unassigned data first.
    fn send_ahead(&self, path: PathArgument<'_>, skip: u64) -> PyResult<bool> {
        order(Command::SendAhead(path.id(), skip))
    }
    /// Binds the unassigned bytes from `start` to `end`, at most a segment, to `path`, to be sent now.
    fn send(&self, path: PathArgument<'_>, start: u64, end: u64) -> PyResult<bool> {
        order(Command::Send(path.id(), range(start, end)?))
    }
    /// Binds the next new segment to `path`, to be sent when its window and the peer's allow.
    fn enqueue_next(&self, path: PathArgument<'_>) -> PyResult<bool> {
        order(Command::EnqueueNext(path.id()))
    }
    /// Sends outstanding data once more on another path; `why` is `copy`, `opportunistic` or `rescue`.
    #[pyo3(signature = (path, start, end, why="copy"))]
    fn repeat(&self, path: PathArgument<'_>, start: u64, end: u64, why: &str) -> PyResult<bool> {
        let why = match why {
            "copy" => Repeat::Copy,
            "opportunistic" => Repeat::Opportunistic,
            "rescue" => Repeat::Rescue,
            other => {
                let text = format!("`{other}` is no reason to repeat: use copy, opportunistic or rescue");
                return Err(PyValueError::new_err(text));
            }
        };
        order(Command::Repeat(path.id(), range(start, end)?, why))
    }
    /// A path with nothing in flight may repeat what of these bytes it carried. True if there was such data.
    fn release(&self, path: PathArgument<'_>, start: u64, end: u64) -> PyResult<bool> {
        order(Command::Release(path.id(), range(start, end)?))
    }
    /// Takes back what was bound to `path` and never left.
    fn recall(&self, path: PathArgument<'_>) -> PyResult<()> {
        order(Command::Recall(path.id())).map(drop)
    }
    /// Penalises `path`; congestion control decides how much.
    fn penalise(&self, path: PathArgument<'_>) -> PyResult<()> {
        order(Command::Penalise(path.id())).map(drop)
    }
    /// Sends stranded data on the candidate with the lowest RTT that has not carried it.
    fn rescue_by_rtt(&self) -> PyResult<()> {
        order(Command::RescueByRtt).map(drop)
    }
}

fn kind(kind: SendKind) -> &'static str {
    match kind {
        SendKind::First => "first",
        SendKind::Opportunistic => "opportunistic",
        SendKind::Rescue => "rescue",
        SendKind::Copy => "copy",
        SendKind::Retransmission => "retransmission",
    }
}
