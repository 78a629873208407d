"""Schedulers and congestion controls in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from ._native import Acked, Event, Path, Round, Window


class _Named:
    name: str = ""
    """The name in results; the class's unless set."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" not in cls.__dict__:
            cls.name = cls.__name__


class Scheduler(_Named):
    """Chooses which bytes travel on which subflow, and when to send nothing.

    Each end of each connection gets a deep copy of the object, so the object that is given to :func:`anabranch.run` does not
    change. A scheduler must not read a clock, nor draw from the module ``random``: then the same seed gives the same run.
    """

    serves_lone_path: bool = False
    """True: called also while only one path may carry data. Otherwise a plain window check decides then."""

    waits_for_timeouts: bool = False
    """True: what a silent path strands waits for its retransmission timer. Otherwise it is retransmitted elsewhere as soon as
    the path is silent while others deliver."""

    measures_capacity: bool = False
    """True: a path's ``capacity``, ``capacity_spread``, ``least_forward_ns``, ``last_sent_ns`` and ``elsewhere_bytes`` are measured."""

    def schedule(self, round: Round) -> None:
        """Gives this round's commands; none means: wait.

        A scheduler that waits for a path must check ``round.may_wait_for(path)``; otherwise nothing may ever call it again.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method `schedule`")

    if TYPE_CHECKING:
        # Optional: each is called only if a class has it.

        def seed(self, seed: int) -> None:
            """64 random bits, given once before anything else: they depend on the run's seed and the connection alone."""

        def rescue(self, round: Round) -> None:
            """Repeats data that a timeout or a lost subflow stranded; without this method on the path with the lowest RTT
            that has not carried it."""

        def on_event(self, event: Event, view: Round) -> None:
            """A fact; ``view`` takes no commands."""

        def next_wakeup_ns(self) -> int | None:
            """When to be called again if nothing else happens first, in ns of virtual time."""

        def values(self) -> tuple[str, float] | None:
            """A value worth a trace after a round, with its name. ``None`` always or never."""


class CongestionControl(_Named):
    """Decides how much may be in flight on every subflow of a connection. ``path`` is a path's id.

    A loss-based algorithm needs :meth:`on_ack` alone, and :meth:`ssthresh` unless it halves. Each end of each connection gets
    a deep copy. The runs over single paths, which stand beside the schedulers, have Reno.
    """

    windows: dict[int, Window]
    """The windows of the subflows, by path."""

    def __new__(cls, *arguments: object, **options: object) -> Self:
        self = super().__new__(cls)
        self.windows = {}
        return self

    def on_ack(self, path: int, ack: Acked, paths: Sequence[Path]) -> None:
        """An acknowledgment that moved something. ``paths`` are copies of all paths of the connection."""
        raise NotImplementedError(f"{type(self).__name__} has no method `on_ack`")

    def ssthresh(self, path: int, paths: Sequence[Path]) -> int:
        """The slow-start threshold after a loss, in packets: half of the window unless a class has another."""
        return max(self.windows[path].cwnd // 2, 2)

    def on_join(self, path: int, initial_window: int) -> None:
        """A subflow begins, with a window of ``initial_window`` packets and no threshold."""
        self.windows[path] = Window(initial_window)

    def on_leave(self, path: int) -> None:
        """A subflow is gone."""
        self.windows.pop(path, None)

    def on_loss(self, path: int, loss: str, paths: Sequence[Path]) -> None:
        """A loss episode begins: ``fast``, ``timeout``, ``timeout_again`` (before anything was acknowledged since the last),
        ``marked`` (ECN) or ``penalty`` (a scheduler penalises the path)."""
        self.windows[path].on_loss(loss, self.ssthresh(path, paths))

    def on_undo(self, path: int) -> None:
        """The last ``fast`` or ``timeout`` was spurious: restores the window."""
        self.windows[path].undo()

    def on_idle(self, path: int, idle_ns: int, rto_ns: int) -> None:
        """New data is about to be sent after ``idle_ns`` without any, longer than the retransmission timeout."""
        self.windows[path].restart(idle_ns, rto_ns)

    def on_underuse(self, path: int, used: int) -> None:
        """For longer than a retransmission timeout no more than ``used`` packets were in flight."""
        self.windows[path].give_back(used)

    def set_threshold(self, path: int, ssthresh: int) -> None:
        """Slow start ends at ``ssthresh`` packets at the latest: right after ``on_join``, where the settings say so."""
        self.windows[path].set_threshold(ssthresh)

    def window(self, path: int) -> float | tuple[float, float | None, int | None]:
        """The window of a subflow in packets, at least 1; or the window, the slow-start threshold in packets (``None`` = none
        yet) and the pace in bits per second (``None`` = not paced)."""
        window = self.windows[path]
        return window.cwnd, window.ssthresh, None
