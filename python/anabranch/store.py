"""Stores: the runs of a sweep as shards, one Parquet file each, in any place that fsspec reaches.

The native half divides the runs, names the shards and makes results of their columns.
"""

from __future__ import annotations

import io
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, BinaryIO

from . import _native
from ._native import Shard
from .errors import AnabranchError, StoreError
from .extras import needed_by
from .pages import pages
from .results import Results
from .scenario import Scenario
from .tables import Table
from .work import Work


#: The format of a store.
FORMAT = 1
#: Everything that the shards are made from.
SWEEP = "sweep.json"
#: Files are written here, and become visible when they leave.
_UNFINISHED = "_unfinished"
#: File systems on which a rename shows a file at once. The others are object stores, whose objects appear when they are
#: whole.
_WITH_RENAME = {"file", "local", "memory", "sftp", "ssh", "smb", "hdfs", "arrow_hdfs", "webhdfs"}
#: Events of a shard: about two seconds of one core.
_EVENTS = 4_000_000
#: Runs of a shard at most, since a worker holds them until they are written: some 3 KB each.
_MOST_RUNS = 5_000
#: Shards of a sweep, about, at most: a cluster's scheduler hands out some hundred tasks per second.
_MOST_SHARDS = 20_000
#: Limits for the files of a store, which may be a stranger's: bytes of its document, its shards, and of a shard the columns, the
#: bytes of a run once they are unpacked, and the types of columns.
_DOCUMENT = 1 << 30
_ANY_SHARDS = 1_000_000
_COLUMNS = 20_000
_RUN_BYTES = 1 << 18
_TYPES = {"string", "uint64", "double", "bool"}
#: What is wrong with a document or a shard that is not what its name says.
_NONSENSE = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError, AnabranchError)


class _Sweep:
    """A sweep as its document in the store says."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = dict(document)

    @classmethod
    def of(cls, work: Work, shard_runs: int | None) -> _Sweep:
        checked, plan = work.scenario._checked, work.plan()
        scenario = {
            "source": checked.source,
            "text": checked.text,
            "files": checked.files,
            "set": work.scenario._set,
        }
        return cls(
            {
                "format": FORMAT,
                "anabranch": _native.__version__,
                "program": _native.program(),
                "identity": plan.identity(),
                "runs": len(plan),
                "shard_runs": shard_runs or _shard_runs(plan),
                "schedulers": work.schedulers,
                "congestion": work.congestions,
                "baselines": work.baselines,
                "scenario": scenario,
            }
        )

    def checked(self) -> _Sweep:
        """Raises an exception unless the parts of the document agree."""
        per_shard, runs = self.document["shard_runs"], len(self.plan)
        if type(per_shard) is not int or not 0 < per_shard < 1 << 32 or runs // per_shard > _ANY_SHARDS:
            raise ValueError(f"{runs} runs cannot be divided into shards of {per_shard}")
        if self.document["runs"] != runs or self.identity != self.plan.identity():
            raise ValueError("it describes other runs than it names")
        return self

    @property
    def identity(self) -> str:
        return str(self.document["identity"])

    @cached_property
    def work(self) -> Work:
        of = self.document["scenario"]
        files, changes = (tuple((name, text) for name, text in of[key]) for key in ("files", "set"))
        scenario = Scenario._again(of["source"], of["text"], files, changes)
        return Work(
            scenario, self.document["schedulers"], self.document["congestion"], self.document["baselines"], False
        )

    @cached_property
    def plan(self) -> _native.Plan:
        return self.work.plan()

    @cached_property
    def shards(self) -> list[Shard]:
        return self.plan.shards(self.document["shard_runs"])

    def part(self, shard: Shard) -> _native.Plan:
        return self.plan.part(shard.cells, shard.repetitions)


def _shard_runs(plan: _native.Plan) -> int:
    """How many runs make a shard, from the events of one repetition of the first cell and of the last one.

    Not from a clock, so that the same sweep is divided in the same way everywhere.
    """
    cells = len(plan.shape())
    samples = []
    for cell in {0, cells - 1}:
        results, _ = plan.part((cell, cell + 1), (0, 1)).run()
        samples += results.runs()["events"]
    few = int(min(_MOST_RUNS, _EVENTS * len(samples) // max(1, sum(samples))))
    return max(1, few, len(plan) // _MOST_SHARDS)


def _most(shard: Shard) -> int:
    """The bytes of a shard at most, packed or not."""
    return (shard.runs + 4) * _RUN_BYTES


def _checked(file: BinaryIO, shard: Shard) -> Any:
    """The schema of an open shard.

    Raises an exception if it is not of the size and the types that its runs have, by its footer and by the headers of its pages.
    """
    from pyarrow import parquet

    metadata = parquet.read_metadata(file)
    if metadata.num_rows != shard.runs or not 0 < metadata.num_row_groups <= shard.runs:
        raise ValueError(f"it has {metadata.num_rows} runs, and its name promises {shard.runs}")
    if metadata.num_columns > _COLUMNS:
        raise ValueError(f"it has {metadata.num_columns} columns")
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    chunks = [group.column(n) for group in groups for n in range(metadata.num_columns)]
    if any(chunk.num_values > shard.runs for chunk in chunks):
        raise ValueError(f"a column has more values than {shard.runs} runs")
    schema, unpacked = metadata.schema.to_arrow_schema(), 0
    for field in schema:
        if str(field.type) not in _TYPES:
            raise ValueError(f"the column `{field.name}` has the type {field.type}")
    for chunk in chunks:
        # Each page has a value, but for that of the words.
        unpacked += sum(page.unpacked for page in pages(file, chunk, shard.runs + 1))
    if unpacked > _most(shard):
        raise ValueError(f"unpacked it has {unpacked} bytes, which {shard.runs} runs never have")
    return schema


class Store:
    """The runs of a sweep in shards, which :func:`anabranch.sweep` writes; :func:`anabranch.open_store` opens one.

    A shard is a Parquet file with the columns of ``runs.csv``. It becomes visible whole, by one rename, or on an object
    store by one upload. What is there is not run again.
    """

    def __init__(self, url: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> None:
        with needed_by("a store", "dask"):
            import fsspec
            import pyarrow  # noqa: F401
        self.url, self.storage_options = os.fspath(url), dict(storage_options or {})
        try:
            self._fs, self._root = fsspec.core.url_to_fs(self.url, **self.storage_options)
        except (ValueError, ImportError) as error:
            raise StoreError(f"cannot use the store {url}: {error}") from error
        protocol = self._fs.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self._renames, self._is_local = bool(protocols & _WITH_RENAME), "file" in protocols
        if self._is_local:
            # Workers may have another working directory.
            self.url = self._root

    def __repr__(self) -> str:
        return f"<Store {self.url}: {len(self.files)} of {len(self._sweep.shards)} shards>"

    def _error(self, doing: str, error: Exception) -> StoreError:
        return StoreError(f"cannot {doing} the store {self.url}: {type(error).__name__}: {error}")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _read(self, name: str) -> bytes | None:
        """A file; ``None`` if there is none."""
        try:
            self._check_file(name, _DOCUMENT)
            return bytes(self._fs.cat_file(self._path(name), end=_DOCUMENT))
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._error("read", error) from error

    def _check_file(self, name: str, most: int) -> None:
        """Refuses what is no file, such as a pipe, which would keep us waiting, and one with more than ``most`` bytes."""
        self._refuse_links(name)
        info = self._fs.info(self._path(name))
        if info.get("type") != "file":
            raise OSError(f"{name} is not a regular file")
        if (info.get("size") or 0) > most:
            raise OSError(f"{name} has more than {most} bytes")

    def _write(self, name: str, data: bytes) -> None:
        """Writes a file, which becomes visible whole."""
        try:
            if not self._renames:
                self._fs.pipe_file(self._path(name), data)
                return
            # Two workers may write the same shard: each has a name of its own.
            hidden = self._path(f"{_UNFINISHED}/{name}.{uuid.uuid4().hex}")
            self._refuse_links(_UNFINISHED, name)
            self._fs.makedirs(self._path(_UNFINISHED), exist_ok=True)
            with self._fs.open(hidden, "wb") as file:
                file.write(data)
                if self._is_local:
                    file.flush()
                    os.fsync(file.fileno())
            self._fs.mv(hidden, self._path(name))
        except Exception as error:
            raise self._error("write to", error) from error

    def _refuse_links(self, *names: str) -> None:
        """A link in a folder may be a stranger's: what is behind it is not written to."""
        for name in names:
            if self._is_local and os.path.islink(self._path(name)):
                raise OSError(f"{self._path(name)} is a symbolic link")

    def _probe(self) -> None:
        """Raises :class:`StoreError` if files cannot be written here."""
        name = f"{_UNFINISHED}-{uuid.uuid4().hex}"
        self._write(name, b"")
        self._fs.rm_file(self._path(name))

    def _names(self) -> set[str]:
        self._fs.invalidate_cache()
        try:
            return {path.rsplit("/", 1)[-1] for path in self._fs.ls(self._root, detail=False)}
        except FileNotFoundError:
            return set()
        except Exception as error:
            raise self._error("list", error) from error

    @cached_property
    def _sweep(self) -> _Sweep:
        text = self._read(SWEEP)
        if text is None:
            raise StoreError(f"{self.url} is no store of a sweep: it has no file {SWEEP}")
        try:
            document = json.loads(text)
            version = document["format"], document["program"], document["anabranch"]
        except _NONSENSE as error:
            raise StoreError(f"cannot read {self.url}/{SWEEP}: {type(error).__name__}: {error}") from error
        if version[:2] != (FORMAT, _native.program()):
            raise StoreError(
                f"{self.url} has runs of another version: anabranch {version[2]}, build {version[1]}, format {version[0]}; "
                f"this is anabranch {_native.__version__}, build {_native.program()}, format {FORMAT}"
            )
        try:
            return _Sweep(document).checked()
        except _NONSENSE as error:
            raise StoreError(f"cannot use {self.url}/{SWEEP}: {type(error).__name__}: {str(error).lstrip()}") from error

    def begin(self, work: Work, shard_runs: int | None = None) -> None:
        """Makes the store that of ``work``, or finds that it is so already: then its division into shards stays.

        Raises :class:`StoreError` if it cannot be written, or has another sweep.
        """
        self._probe()
        if self._read(SWEEP) is None:
            sweep = _Sweep.of(work, shard_runs)
            self._write(SWEEP, json.dumps(sweep.document, indent=1).encode() + b"\n")
            # What another process reads, whatever JSON makes of it.
            self.__dict__.pop("_sweep", None)
            return
        if self._sweep.identity != work.plan().identity():
            raise StoreError(
                f"{self.url} has the runs of another sweep: another scenario, other values, schedulers or seeds; "
                "give this one another store"
            )

    @property
    def files(self) -> list[str]:
        """The names of the shards that are there, in their order."""
        there = self._names()
        return [shard.file for shard in self._sweep.shards if shard.file in there]

    @property
    def is_complete(self) -> bool:
        """All shards are there."""
        return not self.missing()

    def missing(self) -> list[Shard]:
        """The shards that are not there."""
        there = self._names()
        return [shard for shard in self._sweep.shards if shard.file not in there]

    @property
    def planned_runs(self) -> int:
        """The number of runs when all shards are there."""
        return int(self._sweep.document["runs"])

    def make(self, number: int, jobs: int | None) -> int:
        """Runs a shard with so many threads, one per core unless given, and writes it: its number of runs."""
        import pyarrow
        from pyarrow import parquet

        shard = self._sweep.shards[number]
        results, is_complete = self._sweep.part(shard).run(None, jobs)
        if not is_complete:
            raise KeyboardInterrupt
        table = pyarrow.table(Table(results.runs()))
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(table, sink, compression="zstd")
        self._write(shard.file, sink.getvalue().to_pybytes())
        return int(table.num_rows)

    def make_all(self, jobs: int | None, progress: Callable[[int, int], object]) -> None:
        """Makes the missing shards here, one after the other; ``progress`` gets the numbers of runs, done and planned."""
        missing = self.missing()
        done = self.planned_runs - sum(shard.runs for shard in missing)
        for shard in missing:
            progress(done, self.planned_runs)
            done += self.make(shard.number, jobs)
        self.tidy()

    def tidy(self) -> None:
        """Removes what lost workers left half-written. Nobody may be writing."""
        if self._renames and self._fs.exists(self._path(_UNFINISHED)):
            try:
                self._refuse_links(_UNFINISHED)
            except OSError as error:
                raise self._error("tidy", error) from error
            self._fs.rm(self._path(_UNFINISHED), recursive=True)

    def dataset(self) -> Any:
        """The shards that are there as a ``pyarrow.dataset.Dataset``, which reads what a query needs.

        pyarrow, duckdb (``duckdb.sql("select … from data")``), polars (``polars.scan_pyarrow_dataset``) and Dask take it.
        A value that a shard does not have is null.
        """
        import pyarrow
        import pyarrow.dataset

        there = self._names()
        shards = [shard for shard in self._sweep.shards if shard.file in there]
        if not shards:
            raise StoreError(f"{self.url} has no finished shards yet")
        with ThreadPoolExecutor(16) as pool:
            schemas = list(pool.map(self._schema, shards))
        paths = [self._path(shard.file) for shard in shards]
        schema = pyarrow.unify_schemas(schemas)
        return pyarrow.dataset.dataset(paths, schema=schema, format="parquet", filesystem=self._fs)

    def _schema(self, shard: Shard) -> Any:
        """The schema of a shard that is there, which is found to be of the size that its runs have, before any of them is unpacked."""
        try:
            self._check_file(shard.file, _most(shard))
            with self._fs.open(self._path(shard.file), "rb") as file:
                return _checked(file, shard)
        except Exception as error:
            raise self._unusable(shard, error) from error

    def _unusable(self, shard: Shard, error: Exception) -> StoreError:
        return StoreError(f"cannot read {self.url}/{shard.file}: {error}; delete it, and it is run again")

    def _table(self, shard: Shard) -> dict[str, list[Any]]:
        """The columns of a shard."""
        from pyarrow import compute, parquet, types

        most = _most(shard)
        self._check_file(shard.file, most)
        # What is checked is what is read.
        file = io.BytesIO(self._fs.cat_file(self._path(shard.file), end=most))
        # A word that all rows have is held once.
        words = [field.name for field in _checked(file, shard) if types.is_string(field.type)]
        table = parquet.read_table(file, read_dictionary=words)
        chunks = [chunk for word in words for chunk in table[word].chunks]
        lengths = [compute.take(compute.binary_length(chunk.dictionary), chunk.indices) for chunk in chunks]
        if sum(compute.sum(of_each).as_py() or 0 for of_each in lengths) > most:
            raise ValueError(f"its words have more than {most} bytes, which {shard.runs} runs never have")
        columns: dict[str, list[Any]] = table.to_pydict()
        return columns

    def results(self) -> Results:
        """All runs, in memory, with their statistics: those of a run on one machine.

        Raises :class:`StoreError` if shards are missing.
        """
        return Results(self.rebuilt(), work=self._sweep.work)

    def rebuilt(self) -> _native.Results:
        """As :meth:`results`."""
        self._demand_all()
        return self._rebuilt(self._sweep.plan, self._sweep.shards)

    def state(self) -> str:
        """How much is there, in words."""
        return f"{len(self.files)} of {len(self._sweep.shards)} shards are in {self.url}"

    def _demand_all(self) -> None:
        if not self.is_complete:
            raise StoreError(f"only {self.state()}: the same sweep makes the others")

    def summary(self) -> Table:
        """The table :attr:`Results.summary` of all runs; one cell is held in memory at a time."""
        return self._statistics("summary")

    def comparisons(self) -> Table:
        """The table :attr:`Results.comparisons` of all runs; one cell is held in memory at a time."""
        return self._statistics("comparisons")

    def _statistics(self, of: str) -> Table:
        import pyarrow

        tables = [pyarrow.table(getattr(results, of)) for results in self._by_cells()]
        whole = pyarrow.concat_tables(tables, promote_options="default").to_pydict()
        kinds = dict(zip(tables[0].schema.names, [_kind(field.type) for field in tables[0].schema], strict=True))
        return Table.of([(name, kinds[name], cells) for name, cells in whole.items()])

    def _by_cells(self) -> Iterator[Results]:
        """The results of the cells that the shards have whole, one or some at a time."""
        self._demand_all()
        shape, shards = self._sweep.plan.shape(), self._sweep.shards
        begin = 0
        while begin < len(shards):
            end = begin + 1
            while end < len(shards) and shards[end].cells[0] == shards[begin].cells[0]:
                end += 1
            cells = shards[begin].cells
            part = self._sweep.plan.part(cells, (0, max(repeat for _, repeat in shape[slice(*cells)])))
            yield Results(self._rebuilt(part, shards[begin:end]))
            begin = end

    def _rebuilt(self, plan: _native.Plan, shards: Sequence[Shard]) -> _native.Results:
        """The results of ``plan``, whose runs these shards have."""
        outcomes = _native.Outcomes()
        for shard in shards:
            try:
                outcomes.add_table(self._sweep.part(shard), self._table(shard))
            except StoreError:
                raise
            except Exception as error:
                raise self._unusable(shard, error) from error
        native, is_complete = plan.run(outcomes, known_only=True)
        if not is_complete:
            raise StoreError(f"the shards of {self.url} lack runs that their names promise: delete them")
        return native


def _kind(of: Any) -> str:
    import pyarrow

    if pyarrow.types.is_integer(of):
        return "whole"
    return "real" if pyarrow.types.is_floating(of) else "text"


def open_store(url: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Store:
    """Opens the store of a sweep. ``storage_options`` are those of its file system, as for fsspec.

    Raises :class:`StoreError` if there is none, or if its runs are of another version.
    """
    store = Store(url, storage_options)
    store._sweep  # noqa: B018
    return store
