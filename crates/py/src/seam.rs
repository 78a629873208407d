//! The round of a scheduler and its paths, as Python objects. A round is lent to Python for one call: objects that outlive it
//! read nothing.

use anabranch_engine::schedule::{Cause, Command, PathView, RecoveryPhase, Repeat, Round as EngineRound, View};
use anabranch_run::fields::PHASES;
use anabranch_trace::SendKind;
use anabranch_units::{Duration, Instant, PathId, Range, Rate};
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

/// A fact as Python has it: times in nanoseconds, rates in bits per second, what is unknown as `None`.
trait Plain {
    type Out;
    fn plain(self) -> Self::Out;
}

macro_rules! as_it_is {
    ($($kind:ty),*) => {$(
        impl Plain for $kind {
            type Out = Self;
            fn plain(self) -> Self {
                self
            }
        }
    )*};
}

as_it_is!(bool, u32, u64, f64);

impl Plain for Duration {
    type Out = u64;
    fn plain(self) -> u64 {
        self.as_nanos()
    }
}

impl Plain for Instant {
    type Out = u64;
    fn plain(self) -> u64 {
        self.as_nanos()
    }
}

impl Plain for Rate {
    type Out = u64;
    fn plain(self) -> u64 {
        self.as_bps()
    }
}

impl Plain for RecoveryPhase {
    type Out = &'static str;
    fn plain(self) -> &'static str {
        PHASES[self as usize]
    }
}

impl<T: Plain> Plain for Option<T> {
    type Out = Option<T::Out>;
    fn plain(self) -> Self::Out {
        self.map(T::plain)
    }
}

macro_rules! path_getters {
    ($($name:ident, $_js:literal, $kind:ty, $about:literal, |$path:ident| $read:expr;)*) => {
        #[pymethods]
        impl Path {$(
            #[doc = $about]
            #[getter]
            fn $name(&self) -> PyResult<<$kind as Plain>::Out> {
                self.get(|$path| -> $kind { $read }).map(Plain::plain)
            }
        )*}
    };
}

macro_rules! round_getters {
    ($($name:ident, $_js:literal, $kind:ty, $about:literal, |$view:ident| $read:expr;)*) => {
        #[pymethods]
        impl Round {$(
            #[doc = $about]
            #[getter]
            fn $name(&self) -> PyResult<<$kind as Plain>::Out> {
                read(|$view| -> $kind { $read }).map(Plain::plain)
            }
        )*}
    };
}

anabranch_run::path_fields!(path_getters);
anabranch_run::view_fields!(round_getters);

#[pymethods]
impl Path {
    /// The path's number; the first of the scenario is 0.
    #[getter(id)]
    fn number(&self) -> u8 {
        self.id().0
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
    /// Data sent and not acknowledged: (start, end, the ids of the paths that carry it), ascending.
    fn outstanding_runs(&self) -> PyResult<Vec<(u64, u64, Vec<u8>)>> {
        let ids = |paths: u32| (0..32u8).filter(|id| paths & (1 << id) != 0).collect();
        read(|view| view.outstanding().iter().map(|(r, copies)| (r.start, r.end, ids(copies.paths))).collect())
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
