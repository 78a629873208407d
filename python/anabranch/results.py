"""Results: what the runs of a scenario gave."""

from __future__ import annotations

import csv
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import CommandError, ResultsError
from .tables import Table

if TYPE_CHECKING:
    from .plots import Plots
    from .scenario import Scenario

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

#: Writes the files of the first repetition of each row into a folder: so many packets of each.
Follow = Callable[[FilePath, int], None]


class Results:
    """All results of one scenario; :func:`anabranch.run` makes them, :func:`anabranch.load` reads them."""

    def __init__(
        self,
        native: _native.Results,
        *,
        scenario: Scenario | None = None,
        follow: Follow | None = None,
        folder: FilePath | None = None,
        wall_time_s: float = 0.0,
    ) -> None:
        self._native = native
        self._document: dict[str, Any] = json.loads(native.to_json())
        self._follow, self._folder, self._wall_time_s = follow, folder, wall_time_s
        self._kept: tempfile.TemporaryDirectory[str] | None = None
        self._packets = -1
        self.scenario = scenario
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
        kind (``one_draw``, ``short_trace``, ``same``, ``window``, ``loss``), a short and a long text."""
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
        tables = []
        for run, file in self._files("series", ".csv"):
            with file.open(newline="") as lines:
                tables.append((run, list(csv.DictReader(lines))))
        heads = list(dict.fromkeys(name for _, rows in tables for row in rows[:1] for name in row))

        def number(text: str | None) -> float | None:
            return float(text) if text else None

        columns = self._names([(run, len(rows)) for run, rows in tables])
        columns += [(head, "real", [number(row.get(head)) for _, rows in tables for row in rows]) for head in heads]
        return Table.of(columns)

    @cached_property
    def timeline(self) -> Table:
        """The fates of the first packets (2,000 unless :meth:`follow` says otherwise) of the measured time, of the first
        repetition of each row: one row per packet. These runs are done again when this is read first."""
        documents = [(run, json.loads(file.read_text())) for run, file in self._files("timeline", ".json")]
        columns = self._names([(run, len(of["packets"])) for run, of in documents])
        columns.append(("path", "text", [of["paths"][p["path"]] for _, of in documents for p in of["packets"]]))
        columns += [(name, kind, [p.get(name) for _, of in documents for p in of["packets"]]) for name, kind in _PACKET]
        return Table.of(columns)

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
        return [(run, file) for run, file in found if file.is_file()]

    def follow(self, packets: int = 2000) -> Results:
        """Does the first repetition of each row again and records time series and the fates of so many packets.

        ``series``, ``timeline`` and ``report`` do so themselves. Returns these results.
        """
        if self._follow is not None and self._packets < 0 or (self._follow and packets > self._packets):
            self._kept = tempfile.TemporaryDirectory(prefix="anabranch-")
            self._folder, self._packets = FilePath(self._kept.name), packets
            self._follow(self._folder, packets)
            self.__dict__.pop("series", None)
            self.__dict__.pop("timeline", None)
        return self

    @cached_property
    def plot(self) -> Plots:
        """Charts: ``r.plot.goodput()``, ``r.plot.timeline()``."""
        from .plots import Plots

        return Plots(self)

    def save(self, folder: str | PathLike[str]) -> FilePath:
        """Writes the results directory that ``run --out`` writes, with its report; :func:`anabranch.load` reads it. It takes the
        place of earlier results there.

        Raises :class:`~anabranch.errors.CommandError` if it cannot be written, or if files of another program would be lost.
        """
        from .commands import command

        folder = FilePath(folder)
        self.follow()
        out = _native.Folder(folder)
        assert out.beside is not None
        beside = FilePath(out.beside)
        try:
            for kind in ("series", "timeline"):
                if self._folder is not None and (self._folder / kind).is_dir():
                    shutil.copytree(self._folder / kind, beside / kind)
            self._native.write(beside)
            earlier = None if self._folder is None else self._folder / "manifest.json"
            if self.scenario is None and earlier is not None and earlier.exists():
                shutil.copyfile(earlier, beside / "manifest.json")
            else:
                (beside / "manifest.json").write_text(json.dumps(self._manifest(), indent=2) + "\n")
        except OSError as error:
            raise CommandError(f"cannot write to {folder}: {error.strerror}") from error
        command("report", str(beside))
        out.take()
        return folder

    def _manifest(self) -> dict[str, Any]:
        scenario = self.scenario
        text = {
            "source": scenario._checked.source if scenario else self.name,
            "text": scenario._checked.text if scenario else "",
            "overrides": [f"{key}={value}" for key, value in scenario._set] if scenario else [],
        }
        machine = {"os": platform.system().lower(), "architecture": platform.machine(), "cores": os.cpu_count() or 1}
        return {
            "schema": self._document["schema"],
            "anabranch": self._document["anabranch"],
            "git_commit": None,
            "command": [f"python {platform.python_version()}", *sys.argv],
            "scenario": text,
            "seeds": sorted({run["seed"] for run in self._document["runs"]}),
            "digest": self.digest,
            "started_unix_s": int(time.time() - self._wall_time_s),
            "wall_time_s": self._wall_time_s,
            "machine": machine,
        }

    def report(self, file: str | PathLike[str]) -> FilePath:
        """Writes the report, one HTML page that needs no other file."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(folder)
            return FilePath(shutil.copyfile(FilePath(folder) / "report.html", file))

    def to_json(self) -> str:
        """The document of ``run --format json``."""
        return self._native.to_json()

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        return f"<Results of {self.name!r}: {len(self.runs)} runs, digest {self.digest[:12]}>"

    def _repr_html_(self) -> str:
        chart = ""
        if not self._cell_keys():
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
    file = folder if folder.is_file() else folder / "results.json"
    try:
        text = file.read_text()
    except OSError as error:
        help = "give a directory that `anabranch run --out` or `Results.save` wrote"
        raise ResultsError(f"cannot read {file}: {error.strerror}; {help}") from error
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ResultsError(f"{file} is no JSON document: {error}") from error
    version = document.get("schema") if isinstance(document, dict) else None
    if version is None:
        raise ResultsError(f"{file} has no key `schema`: these are no results of anabranch")
    if version != _native.schema():
        made = document.get("anabranch", "another version")
        raise ResultsError(
            f"{file} has results of schema {version}, written by anabranch {made}; "
            f"anabranch {_native.__version__} reads schema {_native.schema()}"
        )
    try:
        native = _native.Results.from_json(text)
    except ResultsError as error:
        raise ResultsError(f"cannot read {file}: {error}") from error
    return Results(native, folder=file.parent)
