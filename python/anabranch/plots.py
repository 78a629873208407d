"""Charts of results, for papers: vectors, fonts that journals take, colours that everyone can tell apart."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from . import _native
from .errors import AnabranchError
from .extras import needed_by
from .sketch import COLOURS
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Text stays text in PDF and SVG, and has the size of a column's captions.
STYLE: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "anabranch",
    "figure.dpi": 150,
    "savefig.bbox": "tight",
    "figure.constrained_layout.use": True,
}

_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)))
_MARKERS = "os^Dvp*X"
#: Units in which charts show a metric's: factor and name.
_SHOWN = {"_bps": (1e-6, "Mbit/s"), "_bytes": (1 / 1024, "KiB")}
_COLUMN = 3.5
"""Inches: the width of a column of two in most journals."""


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _styled(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    @wraps(draw)
    def styled(*arguments: _P.args, **options: _P.kwargs) -> _R:
        with needed_by("a chart", "plot"):
            import matplotlib
            import matplotlib.pyplot as plt

        with plt.rc_context(STYLE):
            drawn = draw(*arguments, **options)
            is_interactive = plt.isinteractive()
        # A notebook's backend becomes interactive with its first figure, and shows no later one otherwise.
        matplotlib.interactive(is_interactive)
        return drawn

    return styled


class Measured(Protocol):
    """The tables that charts are drawn from."""

    @property
    def summary(self) -> Table: ...

    @property
    def runs(self) -> Table: ...

    @property
    def series(self) -> Table: ...

    @property
    def timeline(self) -> Table: ...


class Plots:
    """Charts of :class:`Results`. Each takes Axes to draw into, or makes a figure one column wide, and returns the Axes."""

    def __init__(self, results: Measured) -> None:
        self._results = results

    @_styled
    def goodput(self, ax: Axes | None = None) -> Axes:
        """Mean goodput of each row with its 95 % interval."""
        return self.metric("goodput_bps", ax, label="goodput")

    @_styled
    def metric(self, metric: str, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """The mean of a metric of each row, with its 95 % interval, and each run as a dot.

        Raises :class:`AnabranchError` if no run has the metric.
        """
        from matplotlib.lines import Line2D

        found = [row for row in self._results.summary.rows() if row["metric"] == metric]
        if not found:
            known = ", ".join(sorted(set(self._results.summary["metric"])))
            raise AnabranchError(f"no run has the metric `{metric}`; there are {known}")
        factor, unit = _unit(metric, [row["mean"] for row in found])
        cells = [name for name in self._results.summary.column_names if name.startswith("cell.")]
        several = len(set(row["congestion"] for row in found if not row["scheduler"].startswith("single:"))) > 1

        def named(row: dict[str, Any]) -> str:
            parts = [row["scheduler"]] + ([row["congestion"]] if several else [])
            parts += [f"{name.removeprefix('cell.')}={row[name]}" for name in cells]
            return ", ".join(parts)

        ax = _axes(ax, 0.6 + 0.22 * len(found))
        table = self._results.runs
        values = table[metric] if metric in table.column_names else []
        keys = ["scheduler", "congestion", *cells]
        for place, row in enumerate(found):
            single = row["scheduler"].startswith("single:")
            colour = "#666666" if single else COLOURS[0]
            same = [all(table[key][n] == row[key] for key in keys) for n in range(len(table))]
            dots = [value * factor for value, yes in zip(values, same, strict=False) if yes and value is not None]
            ax.plot(dots, [place] * len(dots), "|", color=colour, alpha=0.35, markersize=6, zorder=1)
            low, high = row["ci95_low"], row["ci95_high"]
            mean = row["mean"] * factor
            error = None if low is None else [[mean - low * factor], [high * factor - mean]]
            marker = "s" if single else "o"
            ax.errorbar(mean, place, xerr=error, fmt=marker, color=colour, markersize=3.5, capsize=2, zorder=2)
        ax.set_yticks(range(len(found)), [named(row) for row in found])
        ax.set_ylim(len(found) - 0.5, -0.5)
        ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
        ax.set_xlabel(f"{label or _name(metric)}{f' ({unit})' if unit else ''}")
        ax.grid(axis="x", linewidth=0.4, alpha=0.5)
        handles = [
            Line2D([], [], color=COLOURS[0], marker="o", markersize=3.5, linestyle="none", label="all paths"),
            Line2D([], [], color="#666666", marker="s", markersize=3.5, linestyle="none", label="one path"),
        ]
        if any(row["scheduler"].startswith("single:") for row in found):
            ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
        return ax

    @_styled
    def series(self, name: str = "goodput_bps", schedulers: Sequence[str] = (), ax: Axes | None = None) -> Axes:
        """A column of ``Results.series`` over time, one line per scheduler: of the first repetition. The rows over one path
        are shown if ``schedulers`` names them.

        Raises :class:`AnabranchError` if there is no such column.
        """
        table = self._results.series
        if name not in table.column_names:
            raise AnabranchError(f"there is no series `{name}`; there are {', '.join(table.column_names)}")
        ax = _axes(ax, 2.2)
        factor, unit = _unit(name, table[name])
        lines: dict[str, list[tuple[float, float]]] = {}
        for row in table.rows():
            wanted = row["scheduler"] in schedulers if schedulers else not row["scheduler"].startswith("single:")
            if wanted and row[name] is not None:
                lines.setdefault(row["scheduler"], []).append((row["time_s"], row[name] * factor))
        for number, (scheduler, points) in enumerate(lines.items()):
            style = {"color": COLOURS[number % 6], "linestyle": _DASHES[number // 6 % 4 if number < 6 else 1]}
            ax.plot(*zip(*points, strict=True), label=scheduler, **style)
        ax.set_xlabel("time (s)")
        ax.set_ylabel(f"{name}{f' ({unit})' if unit else ''}")
        ax.set_xlim(left=0)
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
        return ax

    @_styled
    def timeline(
        self, scheduler: str | None = None, packets: int = 120, start_s: float | None = None, ax: Axes | None = None
    ) -> Axes:
        """Packets of a row: from the time when each is sent to that when it arrives, and, in a lighter line, until it is
        delivered in order. Without ``scheduler``, the first row; without ``start_s``, from the first packet on the last path
        that comes into use.

        Raises :class:`AnabranchError` if no row has that name, or if its recorded packets end before ``start_s``.
        """
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D

        table = self._results.timeline
        rows = list(dict.fromkeys(table["scheduler"]))
        chosen = scheduler if scheduler is not None else (rows[0] if rows else "")
        if chosen not in rows:
            raise AnabranchError(f"no row is called `{chosen}`; there are {', '.join(rows)}")
        own_packets = [row for row in table.rows() if row["scheduler"] == chosen]
        if start_s is None:
            begun: dict[str, float] = {}
            for row in own_packets:
                begun.setdefault(row["path"], row["sent_s"])
            start_s = max(begun.values(), default=0.0)
        shown = [row for row in own_packets if row["sent_s"] >= start_s][:packets]
        if own_packets and not shown:
            last = max(row["sent_s"] for row in own_packets)
            raise AnabranchError(f"no packet is recorded after {last:.3f} s: `Results.follow` records more of them")
        ax = _axes(ax, 2.8)
        used = {row["path"] for row in shown}
        # In the order in which they came into use, so that a path has one colour in all charts of a run.
        paths = [path for path in dict.fromkeys(row["path"] for row in own_packets) if path in used]
        first = min((row["data_start"] for row in shown), default=0)
        for number, path in enumerate(paths):
            colour = COLOURS[number % len(COLOURS)]
            own = [(row, (row["data_start"] - first) / 1024) for row in shown if row["path"] == path]
            way = [[(r["sent_s"], y), (r["arrived_s"], y)] for r, y in own if r["arrived_s"] is not None]
            wait = [[(r["arrived_s"], y), (r["delivered_s"], y)] for r, y in own if r["delivered_s"] is not None]
            lost = [(r["sent_s"], y) for r, y in own if r["fate"] == "lost"]
            ax.add_collection(LineCollection(way, colors=colour, linewidths=0.9))
            ax.add_collection(LineCollection(wait, colors=colour, linewidths=0.9, alpha=0.25))
            ax.plot([r["sent_s"] for r, _ in own], [y for _, y in own], _MARKERS[number % 8], color=colour, markersize=1.2)
            ax.plot([x for x, _ in lost], [y for _, y in lost], "x", color="black", markersize=3.5)
        ax.autoscale()
        ax.set_xlabel("time (s)")
        ax.set_ylabel("data sequence (KiB)")
        handles = [
            Line2D([], [], color=COLOURS[n % len(COLOURS)], marker=_MARKERS[n % 8], markersize=3, label=path)
            for n, path in enumerate(paths)
        ]
        handles.append(Line2D([], [], color="#666666", linewidth=0.9, alpha=0.4, label="waits at the receiver"))
        if any(row["fate"] == "lost" for row in shown):
            handles.append(Line2D([], [], color="black", marker="x", markersize=3.5, linestyle="none", label="lost"))
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)
        ax.text(0.98, 0.03, chosen, transform=ax.transAxes, ha="right")
        return ax

    def _svg(self) -> str:
        """The chart of the main metric, for notebooks."""
        import matplotlib
        import matplotlib.pyplot as plt

        with plt.rc_context(STYLE):
            ax = self.metric(_native.main_metric(self._results.summary["metric"]))
            text = io.StringIO()
            figure: Any = ax.figure
            figure.savefig(text, format="svg", metadata={"Date": None})
            plt.close(figure)
            is_interactive = plt.isinteractive()
        matplotlib.interactive(is_interactive)
        return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]


def _axes(given: Axes | None, height: float) -> Axes:
    import matplotlib.pyplot as plt

    if given is not None:
        return given
    _, ax = plt.subplots(figsize=(_COLUMN, max(1.3, height)))
    return ax


def _unit(metric: str, values: Iterable[float | None]) -> tuple[float, str]:
    """The factor and the name of the unit in which a chart shows a metric, whose name ends in its unit."""
    if metric.endswith("_s"):
        return (1e3, "ms") if max((abs(value) for value in values if value is not None), default=0) < 1 else (1.0, "s")
    found = [shown for ending, shown in _SHOWN.items() if metric.endswith(ending)]
    return found[0] if found else (1.0, "")


def _name(metric: str) -> str:
    """A metric's name in words, without its unit."""
    return re.sub("_(bps|s|bytes)$", "", metric).replace("_", " ")
