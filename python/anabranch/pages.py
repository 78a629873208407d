"""Sizes of the pages of a Parquet file, by the headers that stand before them: what a reader unpacks, whatever the file's footer says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

#: Bytes of the longest header: it may have the least and the greatest word of its page.
_HEADER = 1 << 14
#: Encodings in which a value is not longer than its place in the page: PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY.
_ENCODINGS = {0, 2, 3, 8}
#: Structures inside a header that say how its page is encoded, and their field for that: of data, of words, of data of version 2.
_ENCODED = {5: 2, 7: 2, 8: 4}
#: Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_NUMBERS = {4, 5, 6}


class Page(NamedTuple):
    """What a header says of its page."""

    packed: int
    unpacked: int


def pages(file: BinaryIO, chunk: Any, most: int) -> Iterator[Page]:
    """The pages of a column chunk of an open file, ``most`` at most; ``chunk`` is a ``pyarrow.parquet.ColumnChunkMetaData``.

    Raises :class:`ValueError` for a header that a file of runs does not have.
    """
    first = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
    at = min(chunk.data_page_offset, first) if first else chunk.data_page_offset
    end = at + chunk.total_compressed_size
    for _ in range(most):
        if at >= end:
            break
        file.seek(at)
        header = _Header(file.read(_HEADER))
        page = header.page()
        at += header.at + page.packed
        yield page
    if at != end:
        raise ValueError("the pages of a column do not end where it does")


class _Header:
    """A header in Thrift's compact protocol, and how far it is read.

    https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
    https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift (PageHeader)
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def page(self) -> Page:
        fields = self._fields()
        packed, unpacked = fields.get(3), fields.get(2)
        if not isinstance(packed, int) or not isinstance(unpacked, int) or packed < 0 or unpacked < 0:
            raise ValueError("the header of a page is without its sizes")
        for structure, field in _ENCODED.items():
            if structure in fields and fields[structure].get(field) not in _ENCODINGS:
                raise ValueError("a page is encoded as no page of runs is")
        return Page(packed, unpacked)

    def _fields(self) -> dict[int, Any]:
        """The fields of a structure, by number."""
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._number()
            if number in fields:
                raise ValueError("the header of a page has a field twice")
            fields[number] = self._value(head & 15)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in _NUMBERS:
            return self._number()
        if kind == _STRUCT:
            return self._fields()
        lengths = {_BYTE: lambda: 1, _DOUBLE: lambda: 8, _BINARY: self._unsigned}
        if kind not in lengths:
            raise ValueError("the header of a page has a field of an unknown type")
        length = lengths[kind]()
        self.at += length
        return None

    def _byte(self) -> int:
        if self.at >= len(self.data):
            raise ValueError(f"the header of a page is cut off, or has more than {_HEADER} bytes")
        self.at += 1
        return self.data[self.at - 1]

    def _unsigned(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7

    def _number(self) -> int:
        """A signed number, in zigzag form."""
        number = self._unsigned()
        return number >> 1 ^ -(number & 1)
