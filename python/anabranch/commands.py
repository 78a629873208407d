"""The work of the commands `explain`, `list`, `model`, `compare`, `reproduce` and `infer`."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

from . import _native
from .bar import Bar
from .errors import CommandError
from .scenario import toml
from .tables import Table


def command(*arguments: str) -> str:
    """What the program ``anabranch ARGUMENTS`` prints. It is the one on the path, or that which the variable ``ANABRANCH`` names.

    Raises :class:`CommandError` with its messages if it fails, or if there is no such program.
    """
    program = os.environ.get("ANABRANCH", "anabranch")
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, encoding="utf-8")
    except OSError as error:
        remedy = "`cargo install --path crates/cli` installs it; the variable ANABRANCH may name it"
        raise CommandError(f"cannot run the program `{program}`: {error.strerror}. {remedy}") from error
    if done.returncode != 0:
        raise CommandError("\n" + (done.stderr.rstrip() or done.stdout.rstrip()))
    return done.stdout


class Page(str):
    """A text that notebooks show as it is."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def explain(name: str) -> Page:
    """The reference page of a scheduler, congestion control, metric, scenario key, word or model."""
    return Page(_native.page(name))


def names(what: str) -> Table:
    """A list: ``schedulers``, ``congestion``, ``scenarios``, ``papers``, ``metrics``, ``keys`` or ``models``."""
    entries: list[dict[str, Any]] = json.loads(_native.listed(what))
    keys = list(dict.fromkeys(key for entry in entries for key in entry))

    def text(value: object) -> str | None:
        match value:
            case None | str():
                return value
            case list():
                return ", ".join(one if isinstance(one, str) else one["name"] for one in value)
            case bool():
                return str(value).lower()
        return str(value)

    return Table.of([(key, "text", [text(entry.get(key)) for entry in entries]) for key in keys])


def _table(text: str) -> Table:
    """A CSV document; a column of numbers is one of numbers."""
    rows = list(csv.reader(io.StringIO(text)))
    columns: list[tuple[str, str, Sequence[Any]]] = []
    for name, *cells in zip(*rows, strict=True):
        try:
            columns.append((name, "real", [float(cell) if cell else None for cell in cells]))
        except ValueError:
            columns.append((name, "text", cells))
    return Table.of(columns)


def model(
    name: str, scenario: str | PathLike[str] | None = None, /, *, sweep: Mapping[str, Sequence[object] | str] | None = None, **parameters: object
) -> Table:
    """The rows of a closed-form model: ``ab.model("mathis", rtt="30ms")``; ``names("models")`` lists them.

    ``sweep`` has one row per value of a parameter, as a list or ``"FROM..TO"``. The model ``oracle`` takes a scenario.
    """
    set_ = [f"{key}={value if isinstance(value, str) else toml(value)}" for key, value in parameters.items()]
    swept = []
    for key, values in (sweep or {}).items():
        listed = values if isinstance(values, str) else ",".join(str(value) for value in values)
        swept.append(f"{key}={listed}")
    return _table(_native.model(name, scenario, set_, swept))


def _listed(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) and given else list(given)


class Comparison:
    """Schedulers over a grid of paths, each against the best that any could reach."""

    def __init__(self, document: Any, picture: str, table: Table, text: str) -> None:
        self.document = document
        """The whole document, as ``anabranch compare --format json`` writes it."""
        self.svg = picture
        """Each scheduler's distance from the best by kind of paths and application."""
        self.table = table
        """The document's rows."""
        self._text = text

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}<pre>{escape(self._text)}</pre></div>"


def compare(
    schedulers: str | Sequence[str] = (),
    *,
    congestion: str | Sequence[str] = (),
    traffic: str | Sequence[str] = (),
    grid: str | PathLike[str] | None = None,
    quick: bool = False,
    repeat: int | None = None,
    jobs: int | None = None,
) -> Comparison:
    """Compares schedulers over a grid of paths and applications with the best that any could reach.

    Without ``grid``, a folder of scenario files, it is the reference grid, which takes hours unless ``quick`` or few
    schedulers and applications are given. The names are those of ``anabranch compare --help``.
    """
    applications = [word for given in _listed(traffic) for word in given.split(",")]
    with Bar() as bar:
        text, document, rows, picture = _native.compare(
            _listed(schedulers), _listed(congestion), applications, grid, quick, repeat, jobs, bar
        )
    return Comparison(json.loads(document), picture, _table(rows), text)


class Reproduction:
    """Papers' claims, each with what the runs say of it."""

    def __init__(self, document: Any, text: str, folder: FilePath) -> None:
        self.document = document
        """The whole document: versions, papers, items, claims, verdicts."""
        self._text = text
        self._folder = folder

    def report(self, file: str | PathLike[str]) -> FilePath:
        """Writes the report, one HTML page that needs no other file."""
        return FilePath(shutil.copyfile(self._folder / "report.html", file))

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


def reproduce(
    paper: str,
    item: str | None = None,
    *,
    quick: bool = False,
    repeat: int | None = None,
    readings: bool = False,
    out: str | PathLike[str] = "reproduction",
    jobs: int | None = None,
) -> Reproduction:
    """Runs a paper's tables and figures again, or one of them, and judges its claims. ``names("papers")`` lists them.

    Finished runs are kept in the directory ``out``: the same call continues where the last one stopped.
    """
    folder = FilePath(out)
    with Bar() as bar:
        text = _native.reproduced(paper, item, quick, repeat, readings, folder, jobs, bar)
    return Reproduction(json.loads((folder / "reproduction.json").read_text()), text, folder)


class Inference:
    """The testbeds whose baselines are nearest to those that were measured or published."""

    def __init__(self, document: Any, claims: Table, text: str) -> None:
        self.document = document
        """The whole document, as ``anabranch infer --format json`` writes it: one object per source, with its ``unknowns``,
        ``anchors`` and ``claims``."""
        self.claims = claims
        """What the kept testbeds say of each claim; no rows without claims."""
        self._text = text

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


def infer(
    source: str | PathLike[str],
    *,
    draws: int | None = None,
    keep: int | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
) -> Inference:
    """Finds the values of a testbed's unknown parts with which simulated baselines are the measured ones.

    ``source`` is a file of unknowns and measured values, a paper of ``names("papers")``, ``"all"``, or a paper's folder. In each round
    ``draws`` testbeds are drawn, and ``keep`` of all are kept, instead of the source's numbers. ``jobs`` is the number of threads, one
    per core unless given.

    With ``out``, a directory, results and report are written there, and finished runs are kept: the same call continues where the last one
    stopped. ``force`` replaces other results there.

    Raises :class:`CommandError` for mistakes in the source, if a run fails, or if no draw is nearer than others.
    """
    with Bar() as bar:
        text, document, claims = _native.inferred(source, draws, keep, out, force, jobs, bar)
    return Inference(json.loads(document), _table(claims), text)
