"""Tables of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from . import _native
from .extras import needed_by

_SHOWN = 20


class Table:
    """Columns of equal length.

    pandas, polars, duckdb and pyarrow take it without a copy, through Arrow's PyCapsule interface:
    ``pyarrow.table(t)``, ``polars.DataFrame(t)``, ``duckdb.sql("select * from t")``; :meth:`to_pandas`.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @classmethod
    def of(cls, columns: Sequence[tuple[str, str, Sequence[Any]]]) -> Table:
        """From (name, type, cells); a type is ``text``, ``whole``, ``real`` or ``truth``, ``None`` a missing cell."""
        return cls(_native.Table.from_columns(columns))

    @property
    def column_names(self) -> list[str]:
        """The columns' names, in order."""
        return self._native.column_names

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, name: str) -> list[Any]:
        """A column as a list; missing cells are ``None``."""
        return self._native[name]

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries."""
        columns = self._native.to_pydict()
        for cells in zip(*columns.values(), strict=True):
            yield dict(zip(columns, cells, strict=True))

    def to_pydict(self) -> dict[str, list[Any]]:
        """The columns as lists, by name."""
        return self._native.to_pydict()

    def to_pandas(self) -> Any:
        """A data frame of pandas, which must be installed."""
        with needed_by("to_pandas", "frames"):
            import pandas

        # What pandas has for Arrow needs pyarrow, too.
        try:
            import pyarrow
        except ImportError:
            return pandas.DataFrame(self.to_pydict())
        return pyarrow.table(self).to_pandas()

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        names = self.column_names
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = []
        for row in Table(self._native.head(_SHOWN)).rows():
            body.append("<tr>" + "".join(f"<td>{escape(_cell(row[name]))}</td>" for name in names) + "</tr>")
        more = f"<p>{len(self)} rows</p>" if len(self) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{more}"

    def __repr__(self) -> str:
        return f"<Table: {len(self)} rows, {len(self.column_names)} columns>"


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.6g}"
    return str(value)
