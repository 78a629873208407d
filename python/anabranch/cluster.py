"""Sweeps on a cluster: the shards of a store as tasks of Dask distributed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

from . import _native
from .errors import AnabranchError, WorkerError
from .extras import remedy
from .store import Store

#: What a worker has. It is sent as text: one without the package has no function of it.
_ABOUT = """(lambda find, load, sys: {
    'anabranch': load('anabranch').__version__ if find('anabranch') else None,
    'program': load('anabranch._native').program() if find('anabranch') else None,
    'lacks': [name for name in ('pyarrow', 'fsspec') if not find(name)],
    'python': sys.executable,
})(__import__('importlib.util').util.find_spec, __import__('importlib').import_module, __import__('sys'))"""
#: Seconds that a scheduler may be out of reach before the sweep ends.
_PATIENCE = 10.0


@lru_cache(maxsize=2)
def _opened(url: str, options: str, identity: str) -> Store:
    """The store of a sweep, which a worker reads once."""
    store = Store(url, json.loads(options))
    if store._sweep.identity != identity:
        raise WorkerError(f"the store {url} has another sweep on this machine")
    return store


def _here() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _make(url: str, options: str, identity: str, number: int) -> int:
    """On a worker: runs a shard on one thread and writes it: its number of runs."""
    try:
        return _opened(url, options, identity).make(number, 1)
    except AnabranchError as error:
        error.add_note(f"on the worker {_here()}")
        raise


def _try(url: str, options: str, identity: str) -> str | None:
    """On a worker: why it cannot use the store."""
    try:
        _opened(url, options, identity)._probe()
    except AnabranchError as error:
        return str(error)
    return None


def _check(client: Any, store: Store, options: str) -> None:
    """Raises :class:`WorkerError` if a worker has another version, or does not see the store. One that joins later is
    checked by its first task."""
    own = {"anabranch": _native.__version__, "program": _native.program()}
    for worker, about in client.run(eval, _ABOUT, on_error="return").items():
        if isinstance(about, BaseException):
            raise WorkerError(f"the worker {worker} cannot load anabranch: {type(about).__name__}: {about}")
        if about["anabranch"] is None:
            raise WorkerError(
                f"the worker {worker} has no package `anabranch`: install {own['anabranch']} for {about['python']}"
            )
        if about["lacks"]:
            raise WorkerError(f"the worker {worker} ({about['python']}): {remedy(about['lacks'][0], 'a store', 'dask')}")
        for what, word in (("anabranch", "version"), ("program", "build")):
            if about[what] != own[what]:
                raise WorkerError(
                    f"the worker {worker} has anabranch of {word} {about[what]}, the client of {word} {own[what]}: "
                    f"results would differ; install the same for {about['python']}"
                )
    for worker, why in client.run(_try, store.url, options, store._sweep.identity).items():
        if why is not None:
            raise WorkerError(f"the worker {worker} cannot use the store {store.url}: {why}")


def make_all(client: Any, store: Store, progress: Callable[[int, int], object]) -> None:
    """Makes the missing shards of ``store`` on the workers of ``client``, a ``distributed.Client``; ``progress`` gets the
    numbers of runs, done and planned.

    What stops it leaves the finished shards in the store: the same call continues. Raises :class:`WorkerError` if workers
    do not fit or die over and over, or the cluster's scheduler is gone; what a run raises.
    """
    options = json.dumps(store.storage_options)
    _check(client, store, options)
    missing = store.missing()
    done = store.planned_runs - sum(shard.runs for shard in missing)
    make = partial(_make, store.url, options, store._sweep.identity)
    futures = client.map(make, [shard.number for shard in missing], pure=False) if missing else []
    runs = {future.key: shard.runs for future, shard in zip(futures, missing, strict=True)}
    try:
        for key in _finished(client, futures, store, lambda: progress(done, store.planned_runs)):
            done += runs[key]
    finally:
        if client.status == "running":
            client.cancel(futures)
    if not store.is_complete:
        raise WorkerError(f"only {store.state()}: the workers have written elsewhere, into folders of the same name")
    store.tidy()


def _finished(client: Any, futures: list[Any], store: Store, report: Callable[[], object]) -> Iterator[str]:
    """The keys of the tasks as they finish; ``report`` is called in between."""
    from distributed import CancelledError, KilledWorker, as_completed
    from distributed.comm.core import CommClosedError

    there = f"the finished shards are in {store.url}; the same call continues"
    finished, left, seen = as_completed(futures), len(futures), time.monotonic()
    while left:
        report()
        batch = finished.next_batch(block=False)
        for future in batch:
            # The shard is in the store: the result of its task is not fetched.
            if future.status != "finished":
                try:
                    future.result()
                except (CancelledError, CommClosedError) as error:
                    raise WorkerError(f"the cluster's scheduler is gone; {there}") from error
                except KilledWorker as error:
                    raise WorkerError(f"a shard ended several workers, as for lack of memory: {error}; {there}") from error
                except ModuleNotFoundError as error:
                    raise WorkerError(f"a worker cannot load `{error.name}`: {error}; {there}") from error
            yield future.key
        left -= len(batch)
        now = time.monotonic()
        seen = now if client.status == "running" else seen
        if now - seen > _PATIENCE:
            raise WorkerError(f"the cluster's scheduler has been out of reach for {_PATIENCE:.0f} s; {there}")
        if not batch:
            time.sleep(0.05)
