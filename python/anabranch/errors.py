"""The exceptions of the package: each has the text that the command line prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Diagnostic:
    """One mistake in what was given."""

    code: str
    """Its kind, such as ``anabranch::scenario::unknown_key``."""
    message: str
    """The mistake, in one line."""
    help: str | None
    """The remedy."""


class AnabranchError(Exception):
    """Every exception of this package. ``str`` has the whole text, with the place of the mistake underlined."""

    diagnostics: tuple[Diagnostic, ...] = ()
    """All mistakes that were found, in their order; empty if the cause is none in the input."""


class ScenarioError(AnabranchError):
    """A mistake in a scenario, or in what is set in it."""


class SyntaxError(ScenarioError):  # noqa: A001
    """Not TOML."""


class UnknownKey(ScenarioError):
    """A key that does not exist."""


class MissingKey(ScenarioError):
    """A required key is absent."""


class WrongType(ScenarioError):
    """A value of the wrong type, such as a number in place of a string."""


class WrongUnit(ScenarioError):
    """A quantity that is malformed, or whose unit is missing, unknown or ambiguous."""


class ImpossibleValue(ScenarioError):
    """Negative, zero, too large, or otherwise impossible."""


class UnknownWord(ScenarioError):
    """A word that is not among the choices."""


class UnknownScheduler(ScenarioError):
    """A scheduler that does not exist, or a parameter that it does not have."""


class UnknownCongestion(ScenarioError):
    """A congestion control that does not exist."""


class UnknownName(ScenarioError):
    """A path or link that does not exist."""


class DuplicateName(ScenarioError):
    """Two paths or links with the same name."""


class Conflict(ScenarioError):
    """Two keys that exclude each other."""


class NotAvailable(ScenarioError):
    """Planned, but not in this version."""


class UnreadableFile(ScenarioError):
    """A file that cannot be read."""


class BadTrace(ScenarioError):
    """A capacity trace that does not parse."""


class MoreMistakes(ScenarioError):
    """There are more mistakes than the limit of messages."""


class CommandError(AnabranchError):
    """A command failed: a name that it does not know, a file that it cannot read or write."""


class RunFailed(AnabranchError):
    """A run broke one of its own rules, or needs what the simulation does not have."""


class PlugInError(AnabranchError):
    """A scheduler or congestion control of Python raised an exception, which is the ``__cause__``, or cannot be used."""


class ResultsError(AnabranchError):
    """Results that cannot be read: not results, or of another version."""


class StoreError(AnabranchError):
    """A store of a sweep that cannot be read or written, or has runs of another sweep or another version."""


class WorkerError(AnabranchError):
    """A cluster whose workers cannot make the runs: no package, another version, no way to the store, or none is left."""


class Interrupted(AnabranchError, KeyboardInterrupt):
    """Ctrl-C ended the runs. ``results`` has those that were done."""

    results: Any = None
    """The :class:`~anabranch.Results` of the runs that were done; ``None`` if none was."""


_FAMILIES: dict[str, type[AnabranchError]] = {
    "syntax": SyntaxError,
    "unknown_key": UnknownKey,
    "missing_key": MissingKey,
    "wrong_type": WrongType,
    "wrong_unit": WrongUnit,
    "impossible_value": ImpossibleValue,
    "unknown_word": UnknownWord,
    "unknown_scheduler": UnknownScheduler,
    "unknown_congestion": UnknownCongestion,
    "unknown_name": UnknownName,
    "duplicate_name": DuplicateName,
    "conflict": Conflict,
    "not_available": NotAvailable,
    "unreadable_file": UnreadableFile,
    "bad_trace": BadTrace,
    "more_mistakes": MoreMistakes,
}


def family(code: str) -> type[AnabranchError]:
    """The class of exceptions for a diagnostic's code."""
    *area, kind = code.split("::")
    if area == ["anabranch", "scenario"]:
        return _FAMILIES.get(kind, ScenarioError)
    return CommandError


def of_diagnostics(text: str, found: Sequence[dict[str, Any]]) -> AnabranchError:
    """The exception for diagnostics; its class is that of the first."""
    diagnostics = tuple(Diagnostic(d["code"] or "", d["message"], d["help"]) for d in found)
    error = family(diagnostics[0].code if diagnostics else "")("\n" + text.rstrip())
    error.diagnostics = diagnostics
    return error
