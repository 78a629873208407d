from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

__version__: str

def builtin(name: str) -> str | None: ...
def codes() -> list[str]: ...
def facts() -> tuple[list[str], list[str]]: ...
def scenarios() -> list[tuple[str, str]]: ...
def main_metric(names: Sequence[str]) -> str: ...
def program() -> str: ...
def read_text(file: str | PathLike[str]) -> str: ...
def schema() -> int: ...
def page(name: str) -> str: ...
def listed(what: str) -> str: ...
def model(name: str, scenario: str | PathLike[str] | None, set: Sequence[str], sweep: Sequence[str]) -> str: ...
def compare(
    schedulers: Sequence[str],
    congestions: Sequence[str],
    traffic: Sequence[str],
    grid: str | PathLike[str] | None,
    quick: bool,
    repeat: int | None,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[str, str, str, str]: ...
def reproduced(
    paper: str,
    item: str | None,
    quick: bool,
    repeat: int | None,
    readings: bool,
    out: str | PathLike[str],
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> str: ...
def inferred(
    source: str | PathLike[str],
    draws: int | None,
    keep: int | None,
    out: str | PathLike[str] | None,
    force: bool,
    jobs: int | None,
    progress: Callable[[int, int], object] | None,
) -> tuple[str, str, str]: ...
def rerun(
    folder: str | PathLike[str], out: str | PathLike[str] | None, progress: Callable[[int, int], object] | None
) -> tuple[bool, str]: ...
def write_report(folder: str | PathLike[str]) -> None: ...

class Table:
    """Columns of equal length, which any library that reads Arrow takes without a copy."""

    @staticmethod
    def from_columns(columns: Sequence[tuple[str, str, Sequence[Any]]]) -> Table: ...
    @property
    def column_names(self) -> list[str]: ...
    def column_type(self, name: str) -> str: ...
    def head(self, rows: int) -> Table: ...
    def __len__(self) -> int: ...
    def __getitem__(self, name: str) -> list[Any]: ...
    def to_pydict(self) -> dict[str, list[Any]]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Checked:
    @staticmethod
    def read(path: str | PathLike[str], set: Sequence[tuple[str, str]]) -> Checked: ...
    @staticmethod
    def parse(name: str, text: str, folder: str | PathLike[str], set: Sequence[tuple[str, str]]) -> Checked: ...
    @staticmethod
    def again(
        name: str, text: str, files: Sequence[tuple[str, str]], set: Sequence[tuple[str, str]]
    ) -> Checked: ...
    @property
    def files(self) -> list[tuple[str, str]]: ...
    @property
    def source(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def axes(self) -> list[tuple[str, list[str]]]: ...
    @property
    def cells(self) -> int: ...
    @property
    def seeds(self) -> tuple[int, int]: ...
    @property
    def is_real_time(self) -> bool: ...
    def resolved(self) -> str: ...

class Outcomes:
    def __init__(self) -> None: ...
    def lines(self) -> bytes: ...
    def add(self, lines: bytes) -> None: ...
    def add_table(self, plan: Plan, columns: dict[str, list[Any]]) -> None: ...

class Shard:
    """Some repetitions of some cells, with all their rows: a file of a store."""

    @property
    def number(self) -> int:
        """Its place among the shards, from 0 on."""
    @property
    def cells(self) -> tuple[int, int]:
        """The first cell, and the one after the last."""
    @property
    def repetitions(self) -> tuple[int, int]:
        """The first repetition, and the one after the last."""
    @property
    def runs(self) -> int:
        """The number of runs."""
    @property
    def file(self) -> str:
        """The name of its file: its place, and the key of its build, scenario, options and seeds."""

class Plan:
    def __init__(
        self,
        scenario: Checked,
        schedulers: Sequence[object],
        congestions: Sequence[object],
        baselines: bool = True,
        auto: bool = False,
    ) -> None: ...
    def __len__(self) -> int: ...
    def shape(self) -> list[tuple[int, int]]: ...
    def part(self, cells: tuple[int, int], repetitions: tuple[int, int]) -> Plan: ...
    def identity(self) -> str: ...
    def shards(self, runs: int) -> list[Shard]: ...
    def run(
        self,
        outcomes: Outcomes | None = None,
        threads: int | None = None,
        progress: Callable[[int, int], object] | None = None,
        known_only: bool = False,
    ) -> tuple[Results, bool]: ...
    def follow(self, folder: str | PathLike[str], packets: int, threads: int | None = None) -> bool: ...

class Inputs:
    @staticmethod
    def of(
        scenario: Checked,
        schedulers: Sequence[object],
        congestions: Sequence[object],
        baselines: bool,
        auto: bool,
        objects: Sequence[tuple[str, str, str | None, str | None]],
    ) -> Inputs: ...
    @staticmethod
    def read(folder: str | PathLike[str]) -> Inputs: ...
    def write(self, folder: str | PathLike[str]) -> None: ...
    def compare(self, folder: str | PathLike[str], results: Results) -> tuple[bool, str]: ...
    @property
    def source(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def files(self) -> list[tuple[str, str]]: ...
    @property
    def settings(self) -> list[tuple[str, str]]: ...
    @property
    def schedulers(self) -> list[str]: ...
    @property
    def congestions(self) -> list[str]: ...
    @property
    def baselines(self) -> bool: ...
    @property
    def auto(self) -> bool: ...
    @property
    def objects(self) -> list[tuple[str, str, str | None, str | None]]: ...

class Folder:
    def __init__(self, folder: str | PathLike[str], name: str, text: str, force: bool) -> None: ...
    @property
    def beside(self) -> PathLike[str] | None: ...
    def take(self) -> None: ...

class Results:
    @staticmethod
    def from_json(text: str) -> Results: ...
    @staticmethod
    def read(file: str | PathLike[str], inside: bool) -> Results: ...
    @property
    def digest(self) -> str: ...
    def to_json(self) -> str: ...
    def text(self) -> str: ...
    def runs(self) -> Table: ...
    def write(self, folder: str | PathLike[str]) -> None: ...
    def write_manifest(
        self,
        folder: str | PathLike[str],
        scenario: Checked | None,
        source: str,
        text: str,
        command: Sequence[str],
        wall_time_s: float,
    ) -> None: ...

class Session:
    def __init__(
        self, scenario: Checked, seed: int, of_path: Sequence[str], of_connection: Sequence[str]
    ) -> None: ...
    def observation(self) -> list[float]: ...
    def step(self, action: int) -> tuple[float, bool, bool, float, int]: ...

class Path:
    """A path as schedulers and congestion controls see it.

    Windows and counts are in packets of ``mss`` bytes, times in nanoseconds.
    """

    @property
    def id(self) -> int:
        """The path's number; the first of the scenario is 0."""
    @property
    def usable(self) -> bool:
        """Established and not failing: it may be given data."""
    @property
    def backup(self) -> bool:
        """Only to be used when no other path is usable."""
    @property
    def eligible(self) -> bool:
        """It may take a segment now."""
    @property
    def room(self) -> int:
        """Packets that the window has room for, beyond those in flight and queued."""
    @property
    def mss(self) -> int:
        """Largest payload in bytes."""
    @property
    def cwnd(self) -> int:
        """Packets that may be in flight now."""
    @property
    def ssthresh(self) -> int | None:
        """Slow-start threshold in packets; ``None`` = none yet."""
    @property
    def in_flight(self) -> int:
        """Packets sent, neither acknowledged, SACKed nor marked lost."""
    @property
    def in_flight_bytes(self) -> int:
        """Payload bytes sent and not acknowledged at subflow level."""
    @property
    def queued(self) -> int:
        """Packets bound to the path and not yet sent."""
    @property
    def queued_bytes(self) -> int:
        """Bytes bound to the path and not yet sent."""
    @property
    def srtt_ns(self) -> int | None:
        """Smoothed RTT; ``None`` before the first sample."""
    @property
    def rtt_or_max_ns(self) -> int:
        """Smoothed RTT for comparisons: unknown counts as longest."""
    @property
    def rttvar_ns(self) -> int:
        """RTT variation."""
    @property
    def latest_rtt_ns(self) -> int | None:
        """The newest RTT sample."""
    @property
    def min_rtt_ns(self) -> int | None:
        """Least RTT sample of the subflow."""
    @property
    def rto_ns(self) -> int:
        """Retransmission timeout without back-off."""
    @property
    def loss(self) -> float:
        """Estimated probability of losing a packet."""
    @property
    def recovery(self) -> str:
        """Phase of loss recovery: ``open``, ``disorder``, ``recovery`` or ``loss``."""
    @property
    def pacing_rate_bps(self) -> int | None:
        """Rate at which the path is paced, or would be by Linux's rule; ``None`` without an RTT sample."""
    @property
    def window_rate(self) -> float:
        """Bytes per second that the window admits: cwnd/srtt; zero without an RTT sample."""
    @property
    def capacity(self) -> float | None:
        """Bytes per second of its bottleneck by its acknowledgments.

        ``None`` until the bottleneck was busy between two of them, and unless the scheduler has ``measures_capacity``."""
    @property
    def capacity_spread(self) -> float | None:
        """How much the capacity varies: the standard deviation of the time per byte over its mean. ``None`` as for ``capacity``."""
    @property
    def least_forward_ns(self) -> int | None:
        """Least forward delay by the clocks of both hosts: only differences between paths mean anything.

        ``None`` before the first sample, and unless the scheduler has ``measures_capacity``."""
    @property
    def last_sent_ns(self) -> int | None:
        """When the newest segment left; ``None`` before the first, and unless the scheduler has ``measures_capacity``."""
    @property
    def elsewhere_bytes(self) -> int:
        """Bytes that the host's other connections have in flight or queued between the same two addresses.

        Those whose schedulers have ``measures_capacity`` count; zero unless this one has."""
    @property
    def used_bytes(self) -> int:
        """Payload bytes that the connection has sent on it, repetitions included."""
    @property
    def price(self) -> float:
        """Price per byte, as the scenario says."""
    @property
    def weight(self) -> float | None:
        """Share of the traffic in the scenario; ``None`` = not said."""

class Round:
    """One round of a scheduler: it reads the connection and takes commands.

    Reads reflect the round's own commands. A path is an object or its id. A command that the rules refuse returns ``False``
    and has no effect.
    """

    @property
    def now_ns(self) -> int:
        """The virtual time since the run began."""
    @property
    def cause(self) -> str:
        """``written``, ``ack``, ``window``, ``path_change``, ``timeout`` or ``wakeup``; ``event`` outside rounds."""
    @property
    def paths(self) -> tuple[Path, ...]:
        """All paths that have a subflow, in the order of their ids, usable or not."""
    @property
    def candidates(self) -> tuple[Path, ...]:
        """The paths that may carry new data now: usable; backups only if nothing else is."""
    def path(self, id: int) -> Path | None:
        """The path with this id; ``None`` if it has no subflow."""
    def fastest_eligible(self) -> Path | None:
        """The candidate with the lowest smoothed RTT that has room; ties go to the lower id."""
    def fastest(self) -> Path | None:
        """The candidate with the lowest smoothed RTT, with or without room."""
    def fastest_live(self) -> Path | None:
        """The candidate with the lowest smoothed RTT that has room or is safe to wait for."""
    def may_wait_for(self, path: Path | int) -> bool:
        """It is safe to send nothing now and wait for the path."""
    @property
    def backlog(self) -> int:
        """Bytes written and bound to no subflow."""
    @property
    def outstanding(self) -> int:
        """Bytes sent and not acknowledged at connection level, counted once."""
    def outstanding_runs(self) -> list[tuple[int, int, list[int]]]:
        """Data sent and not acknowledged: (start, end, the ids of the paths that carry it), ascending."""
    @property
    def stranded(self) -> int:
        """Bytes stranded by a timeout or a lost subflow, to be retransmitted elsewhere."""
    def queue(self, path: Path | int) -> list[tuple[int, int, str]]:
        """Data bound to a path and not yet sent, first to go first: (start, end, why)."""
    def next_new(self, skip: int = 0, mss: int = 65535) -> tuple[int, int] | None:
        """The next new segment of at most ``mss`` bytes, ``skip`` unassigned bytes further on, as (start, end).

        ``None`` if there is none or Nagle's rule holds it back.
        """
    def messages(self) -> list[tuple[int, int]]:
        """The messages that the application announced and the peer has not wholly acknowledged: (start, end), ascending."""
    @property
    def window_left(self) -> int:
        """Bytes that the peer's window admits beyond all data that was bound."""
    @property
    def send_window(self) -> int:
        """The peer's whole window in bytes, as last advertised."""
    @property
    def window_edge(self) -> int:
        """First offset that the peer's window does not admit."""
    @property
    def window_blocked(self) -> bool:
        """New data waits and the peer's window does not admit its next segment."""
    @property
    def data_acked(self) -> int:
        """First offset that the peer has not acknowledged at connection level."""
    @property
    def written(self) -> int:
        """First offset not yet written by the application."""
    @property
    def write_ended(self) -> bool:
        """The application will write no more."""
    @property
    def send_buffer(self) -> int:
        """Bytes that the application may have written and the peer not yet acknowledged."""
    @property
    def send_buffer_full(self) -> bool:
        """The application wants to write and the send buffer is full."""
    @property
    def known_paths(self) -> int:
        """Paths known beforehand, whether or not they have a subflow yet."""
    def send_next(self, path: Path | int) -> bool:
        """Binds the next new segment to ``path``, to be sent now.

        Refused if the path is not eligible, if there is no new data, or if the peer's window does not admit it.
        """
    def fill(self, path: Path | int) -> bool:
        """As ``send_next`` while it succeeds.

        True if the path has no room left, false if data or the peer's window ran out.
        """
    def send_ahead(self, path: Path | int, skip: int) -> bool:
        """As ``send_next``, but skips ``skip`` bytes of unassigned data first."""
    def send(self, path: Path | int, start: int, end: int) -> bool:
        """Binds the unassigned bytes from ``start`` to ``end``, at most a segment, to ``path``, to be sent now."""
    def enqueue_next(self, path: Path | int) -> bool:
        """Binds the next new segment to ``path``, to be sent when its window and the peer's allow."""
    def repeat(self, path: Path | int, start: int, end: int, why: str = "copy") -> bool:
        """Sends outstanding data once more on another path; ``why`` is ``copy``, ``opportunistic`` or ``rescue``."""
    def release(self, path: Path | int, start: int, end: int) -> bool:
        """A path with nothing in flight may repeat what of these bytes it carried. True if there was such data."""
    def recall(self, path: Path | int) -> None:
        """Takes back what was bound to ``path`` and never left."""
    def penalise(self, path: Path | int) -> None:
        """Penalises ``path``; congestion control decides how much."""
    def rescue_by_rtt(self) -> None:
        """Sends stranded data on the candidate with the lowest RTT that has not carried it."""

class Acked:
    """One acknowledgment, as far as it concerns a subflow."""

    now_ns: int
    packets: int
    counted: int
    one_in_avoidance: bool
    slow_start_at_threshold: bool
    bytes: int
    rtt_ns: int | None
    prior_in_flight: int
    cwnd_limited: bool
    may_grow: bool
    round_ended: bool
    data_end: int
    data_ack: int | None
    lost: int

class Event:
    """A fact for schedulers that learn or plan."""

    kind: str
    path: int | None
    upto: int | None
    acked: Acked | None

class Window:
    """A window in whole packets, with the fraction that its increases have accumulated.

    It has the reactions that loss-based algorithms share.
    """

    def __init__(self, initial: int) -> None: ...
    @property
    def cwnd(self) -> int:
        """Whole packets that may be in flight, at least 1."""
    @property
    def exact(self) -> float:
        """The window with its fraction of a packet."""
    @property
    def ssthresh(self) -> int | None:
        """Slow-start threshold in packets; ``None`` = none yet."""
    @property
    def in_slow_start(self) -> bool:
        """Below the threshold."""
    def slow_start(self, ack: Acked) -> int:
        """Grows by the part of ``ack`` that slow start permits, and returns the packets left for congestion avoidance."""
    def add(self, packets: float) -> None:
        """Adds a real number of packets, which may be negative."""
    def set(self, packets: int) -> None:
        """Sets the window."""
    def shrink(self, packets: int) -> None:
        """Reduces the window and ends slow start there; it never raises it."""
    def end_slow_start(self) -> None:
        """Ends slow start at the present window."""
    def on_loss(self, loss: str, ssthresh: int) -> None:
        """The reaction of loss-based algorithms, with the threshold that this one computed.

        A penalty and a repeated timeout ignore that threshold.
        """
    def undo(self) -> None:
        """The last loss was spurious."""
    def restart(self, idle_ns: int, rto_ns: int) -> None:
        """Restart after idling."""
    def give_back(self, used: int) -> None:
        """At most ``used`` packets were in flight for a while: half of the rest is given up."""
    def set_threshold(self, ssthresh: int) -> None:
        """Slow start ends at ``ssthresh`` packets at the latest."""
