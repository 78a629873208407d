"""The extras of the package: which one a missing package belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def remedy(name: str, needs: str, extra: str) -> str:
    """The remedy for a package that is missing."""
    return f"{needs} needs the package `{name}`: pip install 'anabranch[{extra}]'"


@contextmanager
def needed_by(needs: str, extra: str) -> Iterator[None]:
    """Imports of packages that ``extra`` has; one that is missing raises :class:`ImportError` with the remedy."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(remedy(error.name or extra, needs, extra)) from error
