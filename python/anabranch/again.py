"""Results made again: what is kept of objects of Python, and :func:`rerun`."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path as FilePath
from types import FunctionType, ModuleType
from typing import Any

from . import _native
from .bar import Bar
from .errors import PlugInError, ResultsError
from .plugins import CongestionControl, Scheduler
from .scenario import Scenario

#: Name, class, source, state: what ``inputs.json`` has of an object.
Kept = tuple[str, str, str | None, str | None]
#: Annotations need no names.
_BEGIN = "from __future__ import annotations\n"


class _NotKept(Exception):
    """Its definition is not to be found."""


def kept(one: Any) -> Kept:
    """An object of Python as ``inputs.json`` has it: the source of its class and its attributes, as far as they can be kept."""
    cls = type(one)
    parts: list[str] = []
    try:
        _define(cls.__name__, cls, parts, set())
    except (_NotKept, SyntaxError, ValueError, RecursionError):
        return one.name, cls.__name__, None, _literal(vars(one))
    return one.name, cls.__name__, "\n".join([_BEGIN, *parts]), _literal(vars(one))


def _literal(value: object) -> str | None:
    """A value as Python writes it; ``None`` if it is more than numbers, texts and collections of them."""
    try:
        text = repr(value)
        return text if ast.literal_eval(text) == value else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _define(name: str, value: Any, parts: list[str], begun: set[str]) -> None:
    """Adds to ``parts`` what makes ``name`` mean ``value``, after all that this needs; ``begun`` has the names so far."""
    if name in begun:
        return
    begun.add(name)
    if isinstance(value, ModuleType):
        parts.append(f"import {value.__name__} as {name}\n")
    elif isinstance(value, type | FunctionType) and _is_own(value.__module__):
        text, around = _segment(value)
        for needed in _names(text):
            if needed in around:
                _define(needed, around[needed], parts, begun)
        parts.append(text if value.__name__ == name else f"{text}{name} = {value.__name__}\n")
    elif getattr(value, "__module__", None) and getattr(value, "__qualname__", None):
        parts.append(f"from {value.__module__} import {value.__qualname__} as {name}\n")
    elif (literal := _literal(value)) is not None:
        parts.append(f"{name} = {literal}\n")
    else:
        raise _NotKept


def _is_own(module: str) -> bool:
    """Neither of this package nor installed: the user's own."""
    file = getattr(sys.modules.get(module), "__file__", None)
    is_installed = file is not None and ("site-packages" in file or "dist-packages" in file)
    is_library = module.partition(".")[0] in {*sys.stdlib_module_names, "anabranch"} - {"__main__"}
    return not is_installed and not is_library


def _segment(value: type | FunctionType) -> tuple[str, dict[str, Any]]:
    """The text of a class or function that stands in no other, and the names around it."""
    module = sys.modules.get(value.__module__)
    functions = [value] if isinstance(value, FunctionType) else [f for f in vars(value).values() if isinstance(f, FunctionType)]
    # A notebook's cell is known by the functions that it defines.
    files = [function.__code__.co_filename for function in functions] + [getattr(module, "__file__", None) or ""]
    for file in files:
        text = "".join(linecache.getlines(file))
        for node in reversed(ast.parse(text).body):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == value.__qualname__:
                begin = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                lines = text.splitlines()[begin - 1 : node.end_lineno]
                return "\n".join(lines) + "\n", vars(module)
    raise _NotKept


def _names(text: str) -> Iterator[str]:
    """The names that a text uses, and that Python does not have itself."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
            yield node.id


def _restored(name: str, cls: str, source: str | None, state: str | None) -> Any:
    """The object of :func:`kept`. Executes its source."""
    if source is None or state is None:
        what = "source" if source is None else "attributes"
        raise PlugInError(f"the {what} of `{name}` could not be kept: give the object, as in plug_ins=[{cls}()]")
    names: dict[str, Any] = {"__name__": f"inputs.json of {name}"}
    try:
        exec(compile(source, f"<the source of {name}>", "exec"), names)
        one = names[cls].__new__(names[cls])
    except (Exception, SystemExit) as error:
        raise PlugInError(f"the source of `{name}` fails: {type(error).__name__}: {error}") from error
    if not isinstance(one, Scheduler | CongestionControl):
        raise PlugInError(f"the source of `{name}` makes no anabranch.Scheduler and no anabranch.CongestionControl")
    try:
        vars(one).update(ast.literal_eval(state))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise PlugInError(f"the attributes of `{name}` are no Python dictionary of numbers and texts: {error}") from error
    return one


def rerun(
    folder: str | PathLike[str],
    *,
    plug_ins: Sequence[Scheduler | CongestionControl] = (),
    trust: bool = False,
    out: str | PathLike[str] | None = None,
) -> str:
    """Makes the runs of a results directory again and compares them, as the command ``anabranch rerun`` does; with ``out``,
    also writes them there. Returns what the command prints.

    Objects of Python are made of the source that the directory has, which is executed only with ``trust=True``: read it
    first, in ``inputs.json``. Objects in ``plug_ins`` take the place of those with the same ``name``.

    Raises :class:`~anabranch.errors.ResultsError` with the differences, :class:`~anabranch.errors.PlugInError` if an object is
    missing.
    """
    from .running import _carry_out
    from .work import Work

    inputs = _native.Inputs.read(folder)
    if not inputs.objects:
        with Bar() as bar:
            is_same, text = _native.rerun(folder, out, bar)
        return _told(folder, is_same, text)
    given: dict[str, Any] = {one.name: one for one in plug_ins}
    for name, cls, source, state in inputs.objects:
        if name in given:
            continue
        if not trust:
            raise PlugInError(
                f"{folder} has the source of `{name}`, which would be executed: read it in inputs.json, then give trust=True; "
                "or give the object in plug_ins"
            )
        given[name] = _restored(name, cls, source, state)
    scenario = Scenario._again(inputs.source, inputs.text, tuple(inputs.files), tuple(inputs.settings))
    schedulers = [given.get(name, name) for name in inputs.schedulers]
    congestions = [given.get(name, name) for name in inputs.congestions]
    results = _carry_out(Work(scenario, schedulers, congestions, inputs.baselines, inputs.auto), None, None)
    is_same, text = inputs.compare(folder, results._native)
    if out is not None:
        results.save(out)
    return _told(folder, is_same, text)


def _told(folder: str | PathLike[str], is_same: bool, text: str) -> str:
    if not is_same:
        raise ResultsError(f"the results of {folder} do not come out again: {text}")
    return text
