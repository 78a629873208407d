"""Results: what the runs of a scenario gave."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html import escape
from importlib.util import find_spec
from os import PathLike
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import CommandError, ResultsError
from .scenario import UNNAMED
from .tables import Table

if TYPE_CHECKING:
    from .again import Kept
    from .plots import Plots
    from .scenario import Scenario
    from .work import Work

_SUMMARY = [
    ("metric", "text"),
    ("n", "whole"),
    ("mean", "real"),
    ("sd", "real"),
    ("ci95_low", "real"),
    ("ci95_high", "real"),
    ("median", "real"),
    ("p95", "real"),
]
_COMPARISON = [
    ("metric", "text"),
    ("n", "whole"),
    ("mean_diff", "real"),
    ("ci95_low", "real"),
    ("ci95_high", "real"),
    ("p", "real"),
    ("p_wilcoxon", "real"),
    ("effect_size", "real"),
]
_PACKET = [
    ("data_start", "whole"),
    ("data_end", "whole"),
    ("bound_s", "real"),
    ("sent_s", "real"),
    ("arrived_s", "real"),
    ("subflow_in_order_s", "real"),
    ("delivered_s", "real"),
    ("kind", "text"),
    ("fate", "text"),
]

#: What is wrong with a file that is not what its name says.
_NONSENSE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, csv.Error)


class Results:
    """All results of one scenario; :func:`anabranch.run` makes them, :func:`anabranch.load` reads them."""

    def __init__(
        self,
        native: _native.Results,
        *,
        work: Work | None = None,
        folder: FilePath | None = None,
        wall_time_s: float = 0.0,
        objects: list[Kept] | None = None,
    ) -> None:
        self._native = native
        self._document: dict[str, Any] = json.loads(native.to_json())
        self._work, self._folder, self._wall_time_s = work, folder, wall_time_s
        # As the objects of Python are now: their attributes may change later.
        self._objects = work.kept() if work is not None and objects is None else objects or []
        self._kept: tempfile.TemporaryDirectory[str] | None = None
        self._packets = -1
        self.scenario: Scenario | None = None if work is None else work.scenario
        """The scenario; ``None`` of results that were read."""

    @property
    def digest(self) -> str:
        """Hash over all events of all runs: equal to that of the command line for the same runs."""
        return self._native.digest

    @property
    def name(self) -> str:
        """The scenario's title."""
        return str(self._document["scenario"])

    @property
    def schedulers(self) -> list[str]:
        """The names of the rows, in their order: schedulers, and ``single:PATH`` for one path alone."""
        return list(dict.fromkeys(run["scheduler"] for run in self._document["runs"]))

    @cached_property
    def runs(self) -> Table:
        """One row per run: names, seed, ``cell.KEY`` of a sweep, every metric, digest. The columns are those of
        ``runs.csv``; ``anabranch.explain(NAME)`` explains a metric."""
        return Table(self._native.runs())

    @cached_property
    def summary(self) -> Table:
        """One row per scheduler, congestion control, cell and metric: mean with its 95 % interval, median, 95th
        percentile. The interval is empty where fewer than ten runs have another value than the most frequent one."""
        return self._entries("summary", ["scheduler", "congestion"], _SUMMARY)

    @cached_property
    def comparisons(self) -> Table:
        """Differences ``a − b`` between schedulers, run by run with the same seed: mean with its 95 % interval, p values,
        effect size."""
        return self._entries("comparisons", ["a", "b", "congestion"], _COMPARISON)

    @cached_property
    def diagnosis(self) -> Table:
        """What limited the runs, as far as they measured it: one row per finding, with the schedulers that it is about, its
        kind (``one_draw``, ``short_trace``, ``overlap``, ``same``, ``window``, ``loss``), a short and a long text."""
        entries: list[dict[str, Any]] = self._document.get("diagnosis", [])
        columns = [("schedulers", "text", [", ".join(entry["schedulers"]) for entry in entries])]
        columns.append(("congestion", "text", [entry["congestion"] for entry in entries]))
        columns += [(f"cell.{key}", "text", [entry["cell"].get(key) for entry in entries]) for key in self._cell_keys()]
        columns += [(name, "text", [entry[name] for entry in entries]) for name in ("kind", "summary", "text")]
        return Table.of(columns)

    def _entries(self, of: str, names: Sequence[str], values: Sequence[tuple[str, str]]) -> Table:
        entries: list[dict[str, Any]] = self._document[of]
        columns = [(name, "text", [entry[name] for entry in entries]) for name in names]
        for key in self._cell_keys():
            columns.append((f"cell.{key}", "text", [entry["cell"].get(key) for entry in entries]))
        columns += [(name, kind, [entry.get(name) for entry in entries]) for name, kind in values]
        return Table.of(columns)

    def _cell_keys(self) -> list[str]:
        return list(dict.fromkeys(key for run in self._document["runs"] for key in run["cell"]))

    @cached_property
    def series(self) -> Table:
        """Windows, RTTs, queues and goodput over time, of the first repetition of each row: one row per sample. These runs
        are done again when this is read first; they come out the same."""

        def rows(text: str) -> list[dict[str, Any]]:
            lines = csv.DictReader(io.StringIO(text, newline=""), strict=True)
            return [{name: float(cell) if cell else None for name, cell in line.items()} for line in lines]

        tables = self._read("series", ".csv", rows)
        heads = list(dict.fromkeys(name for _, rows in tables for row in rows[:1] for name in row))
        columns = self._names([(run, len(rows)) for run, rows in tables])
        columns += [(head, "real", [row.get(head) for _, rows in tables for row in rows]) for head in heads]
        return Table.of(columns)

    @cached_property
    def timeline(self) -> Table:
        """The fates of the first packets (2,000 unless :meth:`follow` says otherwise) of the measured time, of the first
        repetition of each row: one row per packet. These runs are done again when this is read first."""

        def packets(text: str) -> list[dict[str, Any]]:
            document = json.loads(text)
            return [{**packet, "path": str(document["paths"][packet["path"]])} for packet in document["packets"]]

        documents = self._read("timeline", ".json", packets)
        columns = self._names([(run, len(of)) for run, of in documents])
        named = [("path", "text"), *_PACKET]
        columns += [(name, kind, [p.get(name) for _, of in documents for p in of]) for name, kind in named]
        try:
            return Table.of(columns)
        except _NONSENSE as error:
            raise ResultsError(f"the timelines in {self._folder} cannot be read: {error}") from error

    def _names(self, runs: Sequence[tuple[Mapping[str, Any], int]]) -> list[tuple[str, str, Sequence[Any]]]:
        def repeated(of: Callable[[Mapping[str, Any]], Any]) -> list[Any]:
            return [of(run) for run, rows in runs for _ in range(rows)]

        def cell(key: str) -> list[Any]:
            return repeated(lambda run: run["cell"].get(key))

        columns: list[tuple[str, str, Sequence[Any]]] = [
            ("scheduler", "text", repeated(lambda run: run["scheduler"])),
            ("congestion", "text", repeated(lambda run: run["congestion"])),
            ("seed", "whole", repeated(lambda run: run["seed"])),
        ]
        return columns + [(f"cell.{key}", "text", cell(key)) for key in self._cell_keys()]

    def _files(self, kind: str, ending: str) -> list[tuple[dict[str, Any], FilePath]]:
        """The files of this kind with the runs that they belong to."""
        folder = self.follow()._folder
        if folder is None:
            raise ResultsError("these results have no time series: they were read from a document alone")
        found = [(run, folder / kind / (_stem(run) + ending)) for run in self._document["runs"]]
        return [(run, file) for run, file in found if os.path.lexists(file)]

    def _read(
        self, kind: str, ending: str, parse: Callable[[str], list[dict[str, Any]]]
    ) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """What the files of this kind have, which may be a stranger's."""

        def read(file: FilePath) -> list[dict[str, Any]]:
            try:
                return parse(_native.read_text(file))
            except _NONSENSE as error:
                raise ResultsError(f"cannot read {file}: {type(error).__name__}: {error}") from error

        return [(run, read(file)) for run, file in self._files(kind, ending)]

    def follow(self, packets: int = 2000) -> Results:
        """Does the first repetition of each row again and records time series and the fates of so many packets.

        ``series``, ``timeline`` and ``report`` do so themselves. Returns these results.
        """
        if self._work is not None and packets > self._packets:
            self._kept = tempfile.TemporaryDirectory(prefix="anabranch-")
            self._folder, self._packets = FilePath(self._kept.name), packets
            self._work.follow(self._folder, packets)
            self.__dict__.pop("series", None)
            self.__dict__.pop("timeline", None)
        return self

    @cached_property
    def plot(self) -> Plots:
        """Charts: ``r.plot.goodput()``, ``r.plot.timeline()``."""
        from .plots import Plots

        return Plots(self)

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> FilePath:
        """Writes the results directory that ``run --out`` writes, with its report; :func:`anabranch.load` reads it. It takes the
        place of earlier results of the same scenario there; with ``force``, of any.

        Raises :class:`~anabranch.errors.CommandError` if it cannot be written, or if files of another program would be lost.
        """
        folder = FilePath(folder)
        self.follow()
        source, text = self._source()
        out = _native.Folder(folder, source, text, force)
        assert out.beside is not None
        beside = FilePath(out.beside)
        try:
            self._native.write(beside)
            for kind, ending in (("series", ".csv"), ("timeline", ".json")):
                for _, file in self._files(kind, ending) if self._folder is not None else []:
                    self._keep(f"{kind}/{file.name}", beside)
            if self._work is not None:
                self._work.inputs(self._objects).write(beside)
            else:
                self._keep("inputs.json", beside)
            if self._work is not None or not self._keep("manifest.json", beside):
                checked = None if self.scenario is None else self.scenario._checked
                command = [f"python {platform.python_version()}", *sys.argv]
                self._native.write_manifest(beside, checked, source, text, command, self._wall_time_s)
        except OSError as error:
            raise CommandError(f"cannot write to {folder}: {error.strerror}") from error
        _native.write_report(beside)
        out.take()
        return folder

    def _keep(self, name: str, beside: FilePath) -> bool:
        """Copies a file of the folder that was read, if it is there."""
        if self._folder is None or not os.path.lexists(self._folder / name):
            return False
        (beside / name).parent.mkdir(exist_ok=True)
        (beside / name).write_text(_native.read_text(self._folder / name))
        return True

    def _source(self) -> tuple[str, str]:
        """The scenario's name and text, as the manifest has them. One of Python has no file: its title names it."""
        if self.scenario is None:
            return self._read_source() or (self.name, "")
        checked = self.scenario._checked
        return (self.name if checked.source == UNNAMED else checked.source), checked.text

    def _read_source(self) -> tuple[str, str] | None:
        """The same of results that were read, if they have a manifest."""
        if self._folder is None or not os.path.lexists(self._folder / "manifest.json"):
            return None
        try:
            scenario = json.loads(_native.read_text(self._folder / "manifest.json"))["scenario"]
            return str(scenario["source"]), str(scenario["text"])
        except _NONSENSE as error:
            raise ResultsError(f"cannot read {self._folder / 'manifest.json'}: {type(error).__name__}: {error}") from error

    def report(self, file: str | PathLike[str]) -> FilePath:
        """Writes the report, one HTML page that needs no other file."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(folder)
            return FilePath(shutil.copyfile(FilePath(folder) / "report.html", file))

    def to_json(self) -> str:
        """The document of ``run --format json``."""
        return self._native.to_json()

    def __reduce__(self) -> tuple[Any, ...]:
        # Files of followed runs are temporary: they are made again.
        folder = self._folder if self._work is None else None
        return (_again, (self.to_json(), self._work, folder, self._wall_time_s, self._objects))

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        return f"<Results of {self.name!r}: {len(self.runs)} runs, digest {self.digest[:12]}>"

    def _repr_html_(self) -> str:
        chart = ""
        if not self._cell_keys() and find_spec("matplotlib") is not None:
            chart = self.plot._svg()
        return f"<div>{chart}<pre>{escape(str(self))}</pre></div>"


def _stem(run: Mapping[str, Any]) -> str:
    """The name of a run's files: that of ``run --out``."""
    name = f"{run['scheduler']}-{run['congestion']}-seed{run['seed']}"
    name += "".join(f"-{key}={value}" for key, value in run["cell"].items())
    return "".join(c if c.isascii() and (c.isalnum() or c in "+-._=%") else "-" for c in name)


def load(folder: str | PathLike[str]) -> Results:
    """Reads a results directory, which ``run --out`` or :meth:`Results.save` wrote, or a document ``results.json``.

    Raises :class:`~anabranch.errors.ResultsError` if it is none, or of another version.
    """
    folder = FilePath(folder)
    is_document = os.path.lexists(folder) and not folder.is_dir()
    file = folder if is_document else folder / "results.json"
    return Results(_native.Results.read(file, not is_document), folder=file.parent)


def _again(text: str, work: Work | None, folder: FilePath | None, wall_time_s: float, objects: list[Kept]) -> Results:
    native = _native.Results.from_json(text)
    return Results(native, work=work, folder=folder, wall_time_s=wall_time_s, objects=objects)
