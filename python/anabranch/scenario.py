"""Scenarios: what runs, over which paths, with which traffic."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path as FilePath
from typing import Any, Self, TypeVar

from . import _native

#: The source of a scenario that stands in no file.
UNNAMED = "scenario"
#: Keys and values, or names and texts.
Pairs = tuple[tuple[str, str], ...]
_S = TypeVar("_S", bound="Scenario")


def toml(value: object) -> str:
    """A value in TOML, on one line.

    Raises ``TypeError`` if TOML has no such value.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # TOML's basic strings have JSON's escapes.
            return json.dumps(value)
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else str(value)
        case Mapping():
            return "{ " + ", ".join(f"{_key(key)} = {toml(of)}" for key, of in value.items()) + " }"
        case Iterable():
            return "[" + ", ".join(toml(of) for of in value) + "]"
    if hasattr(value, "item"):
        # A number of numpy.
        return toml(value.item())
    raise TypeError(f"a scenario cannot hold {value!r}, which is a {type(value).__name__}")


def _key(key: object) -> str:
    text = str(key)
    bare = text.isascii() and text.replace("-", "").replace("_", "").isalnum()
    return text if bare else json.dumps(text)


def _document(table: Mapping[str, Any]) -> str:
    """A scenario in TOML: sections with headers, as people write them, so that messages show readable lines."""
    plain: list[str] = []
    sections: list[str] = []
    for key, value in table.items():
        if isinstance(value, Mapping):
            body = "".join(f"{_key(k)} = {toml(v)}\n" for k, v in value.items())
            sections.append(f"\n[{_key(key)}]\n{body}")
        elif isinstance(value, list | tuple) and value and all(isinstance(one, Mapping) for one in value):
            for one in value:
                body = "".join(f"{_key(k)} = {toml(v)}\n" for k, v in one.items())
                sections.append(f"\n[[{_key(key)}]]\n{body}")
        else:
            plain.append(f"{_key(key)} = {toml(value)}\n")
    return "".join(plain + sections)


def _setting(value: object) -> str:
    """A value as ``--set`` takes it: words are bare."""
    return value if isinstance(value, str) else toml(value)


class Scenario:
    """One experiment. It does not change: :meth:`set` makes another one.

    ``Scenario(dict)`` takes the tables of a scenario file as dictionaries and lists. Every mistake raises a
    :class:`~anabranch.errors.ScenarioError` at once.
    """

    _checked: _native.Checked
    _folder: str
    _set: Pairs
    _files: Pairs | None = None
    """The texts of the files that it names, if they are not read from ``_folder``."""
    _resolved: dict[str, Any] | None

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._build(UNNAMED, _document(table), "", ())

    def _build(self, source: str, text: str, folder: str, changes: Pairs) -> None:
        self._folder, self._set, self._resolved = folder, changes, None
        if self._files is not None:
            self._checked = _native.Checked.again(source, text, self._files, list(changes))
        else:
            self._checked = _native.Checked.parse(source, text, folder, list(changes))

    @classmethod
    def _again(cls, source: str, text: str, files: Pairs, changes: Pairs) -> Self:
        """One whose files are not here: their texts were kept."""
        return _again(cls, source, text, "", changes, files)

    @classmethod
    def load(cls, source: str | PathLike[str]) -> Self:
        """Reads a scenario file, or the built-in scenario of this name."""
        checked = _native.Checked.read(source, [])
        self = cls.__new__(cls)
        self._checked, self._set, self._resolved = checked, (), None
        # A name that is no file is a built-in scenario, which names no files of its own.
        self._folder = str(FilePath(fspath(source)).parent)
        return self

    @classmethod
    def from_toml(cls, text: str, *, folder: str | PathLike[str] = "") -> Self:
        """Reads the text of a scenario file; the traces that it names are in ``folder``."""
        self = cls.__new__(cls)
        self._build(UNNAMED, text, fspath(folder), ())
        return self

    def set(self, key: str | Mapping[str, object], value: object = None) -> Self:
        """The same with ``key`` set to ``value``, or with every key of a mapping.

        A key is written as for ``--set``: ``path.lte.delay``, ``connection.recv_buffer``, ``traffic.size``.
        """
        changes = key if isinstance(key, Mapping) else {key: value}
        added = tuple((one, _setting(of)) for one, of in changes.items())
        return self._with(self._set + added)

    def without(self, keys: Iterable[str]) -> Self:
        """The same where none of ``keys`` was :meth:`set`."""
        left = tuple((key, value) for key, value in self._set if key not in set(keys))
        return self._with(left)

    def _with(self, changes: Pairs) -> Self:
        """The same text with these changes alone."""
        return _again(type(self), self._checked.source, self._checked.text, self._folder, changes, self._files)

    @property
    def resolved(self) -> dict[str, Any]:
        """The scenario with every default filled in, as dictionaries and lists."""
        if self._resolved is None:
            self._resolved = tomllib.loads(self._checked.resolved())
        return self._resolved

    @property
    def name(self) -> str:
        """The title."""
        return str(self.resolved.get("name", self._checked.source))

    @property
    def paths(self) -> list[dict[str, Any]]:
        """The paths, with every default filled in."""
        paths: list[dict[str, Any]] = self.resolved["path"]
        return paths

    @property
    def changes(self) -> dict[str, str]:
        """What :meth:`set` changed, as written."""
        return dict(self._set)

    def to_toml(self) -> str:
        """The scenario file with every default filled in: what ``anabranch check`` prints."""
        return self._checked.resolved()

    def _repr_html_(self) -> str:
        from .sketch import sketch

        return sketch(self.name, self.resolved.get("connection", {}), self.paths)

    def __repr__(self) -> str:
        if not hasattr(self, "_checked"):
            return "<Scenario, not readable>"
        names = ", ".join(str(path["name"]) for path in self.paths)
        return f"<Scenario {self.name!r}: {names}>"

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._checked.source, self._checked.text, self._folder, self._set, self._files)
        return (_again, (type(self), *arguments))


def _again(
    cls: type[_S],
    source: str,
    text: str,
    folder: str,
    changes: Pairs,
    files: Pairs | None,
) -> _S:
    self = cls.__new__(cls)
    self._files = files
    self._build(source, text, folder, changes)
    return self


def as_scenario(given: Scenario | str | PathLike[str] | Mapping[str, Any]) -> Scenario:
    """A scenario, its name, its file, or its tables."""
    if isinstance(given, Scenario):
        return given
    if isinstance(given, Mapping):
        return Scenario(given)
    return Scenario.load(given)
