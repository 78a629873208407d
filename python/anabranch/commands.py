"""What the commands `explain`, `list`, `model`, `compare` and `reproduce` answer."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from os import PathLike, fspath
from pathlib import Path as FilePath
from typing import Any

from . import _native
from .errors import CommandError
from .scenario import toml
from .tables import Table


def command(*arguments: str) -> str:
    """What the command ``anabranch ARGUMENTS`` prints.

    Raises :class:`CommandError` with its messages if it fails.
    """
    output, errors, code = _native.answer(arguments)
    if code != 0:
        raise CommandError("\n" + (errors.rstrip() or output.rstrip()))
    return output


class Page(str):
    """A text that notebooks show as it is."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


def explain(name: str) -> Page:
    """The reference page of a scheduler, congestion control, metric, scenario key, word or model."""
    return Page(command("explain", "--", name))


def names(what: str) -> Table:
    """A list: ``schedulers``, ``congestion``, ``scenarios``, ``papers``, ``metrics``, ``keys`` or ``models``."""
    entries: list[dict[str, Any]] = json.loads(command("list", what, "--format", "json"))
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
    name: str, *arguments: str, sweep: Mapping[str, Sequence[object] | str] | None = None, **parameters: object
) -> Table:
    """The rows of a closed-form model: ``ab.model("mathis", rtt="30ms")``; ``names("models")`` lists them.

    ``sweep`` has one row per value of a parameter, as a list or ``"FROM..TO"``. The model ``oracle`` takes a scenario.
    """
    words = ["model", name, *arguments, "--format", "csv"]
    for key, value in parameters.items():
        words += ["--set", f"{key}={value if isinstance(value, str) else toml(value)}"]
    for key, values in (sweep or {}).items():
        listed = values if isinstance(values, str) else ",".join(str(value) for value in values)
        words += ["--sweep", f"{key}={listed}"]
    return _table(command(*words))


def _joined(given: str | Sequence[str]) -> str:
    return given if isinstance(given, str) else ",".join(given)


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
    words = ["compare"]
    options = [("--scheduler", schedulers), ("--congestion", congestion), ("--traffic", traffic)]
    for option, given in options:
        words += [option, _joined(given)] if given else []
    words += ["--grid", fspath(grid)] if grid is not None else []
    words += ["--quick"] if quick else []
    words += ["--repeat", str(repeat)] if repeat is not None else []
    words += ["--jobs", str(jobs)] if jobs is not None else []
    with tempfile.TemporaryDirectory() as folder:
        text = command(*words, "--out", folder)
        place = FilePath(folder)
        document = json.loads((place / "frontier.json").read_text())
        picture = (place / "frontier.svg").read_text()
        return Comparison(document, picture, _table((place / "frontier.csv").read_text()), text)


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
    words = ["reproduce", paper, *([item] if item else []), "--out", fspath(out)]
    words += ["--quick"] if quick else []
    words += ["--readings"] if readings else []
    words += ["--repeat", str(repeat)] if repeat is not None else []
    words += ["--jobs", str(jobs)] if jobs is not None else []
    text = command(*words)
    folder = FilePath(out)
    return Reproduction(json.loads((folder / "reproduction.json").read_text()), text, folder)
