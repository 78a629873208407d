"""Runs and sweeps."""

from __future__ import annotations

import inspect
import multiprocessing
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from os import PathLike
from typing import Any

from . import _native
from .bar import Bar
from .errors import Interrupted, RunFailed, ScenarioError, StoreError
from .extras import needed_by
from .plugins import CongestionControl, Scheduler
from .results import Results
from .scenario import Scenario, as_scenario, toml
from .store import Store
from .tables import Table
from .work import Work

Given = Scenario | str | PathLike[str] | Mapping[str, Any]
Schedulers = str | Scheduler | Sequence[str | Scheduler] | None
#: Runs that a caller may hold in memory.
_IN_MEMORY = 1_000_000
Congestions = str | CongestionControl | Sequence[str | CongestionControl] | None


def _listed(given: Any) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, str | Scheduler | CongestionControl):
        return [given]
    listed = list(given)
    for one in listed:
        if not isinstance(one, str | Scheduler | CongestionControl):
            kind = "a class: give an object, as in Mine()" if isinstance(one, type) else type(one).__name__
            raise TypeError(f"a scheduler or congestion control is a name or an object, not {kind}")
    return listed


def _outcomes_of(work: Work) -> bytes:
    """In another process: the outcomes, as lines of a journal."""
    outcomes = _native.Outcomes()
    work.plan().run(outcomes)
    return outcomes.lines()


def _in_processes(work: Work, outcomes: _native.Outcomes, processes: int, bar: Callable[[int, int], None]) -> bool:
    repeat = work.scenario._checked.seeds[1]
    step = max(1, repeat // (4 * processes))
    parts = [work.part(first, min(step, repeat - first)) for first in range(0, repeat, step)]
    # A class of a notebook or a script can only be found again in a process that is a copy of this one.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in methods else None)
    with ProcessPoolExecutor(min(processes, len(parts)), mp_context=context) as pool:
        try:
            for done, lines in enumerate(pool.map(_outcomes_of, parts), 1):
                outcomes.add(lines)
                bar(done, len(parts))
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            return False
    return True


def run(
    scenario: Given,
    schedulers: Schedulers = None,
    *,
    congestion: Congestions = None,
    repeat: int | str | None = None,
    seed: int | None = None,
    baselines: bool = True,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Results:
    """Runs a scenario.

    ``schedulers`` and ``congestion`` are names, with parameters as in ``"blest(delta=0.01)"``, ``"all"``, or objects of
    :class:`Scheduler` and :class:`CongestionControl`; without them the scenario's own count. ``repeat`` is the number of
    seeds, or ``"auto"`` for as many as a narrow 95 % interval takes, at most 200. Unless ``baselines`` is false, each path
    also runs alone. ``jobs`` is the number of threads, one per core unless given; objects of Python run on one thread, or in
    that many processes.

    Raises a :class:`ScenarioError` for mistakes in the scenario, :class:`PlugInError` if an object of Python raises,
    :class:`Interrupted` on Ctrl-C, with the results of the runs that were done.
    """
    return _carry_out(_work(scenario, schedulers, congestion, repeat, seed, baselines, jobs), jobs, progress)


def planned(*given: Any, **options: Any) -> Work:
    """The work of :func:`run` with these arguments, checked."""
    bound = inspect.signature(run).bind(*given, **options)
    bound.apply_defaults()
    return _work(**{name: value for name, value in bound.arguments.items() if name != "progress"})


def _work(
    scenario: Given,
    schedulers: Schedulers,
    congestion: Congestions,
    repeat: int | str | None,
    seed: int | None,
    baselines: bool,
    jobs: int | None,
) -> Work:
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs = {jobs}: at least one is needed")
    checked = as_scenario(scenario)
    if repeat is not None and repeat != "auto":
        checked = checked.set("repeat", repeat)
    if seed is not None:
        checked = checked.set("seed", seed)
    if checked._checked.is_real_time:
        raise RunFailed("a host of this scenario is a Linux kernel: run it with the command `anabranch`, in real time")
    return Work(checked, _listed(schedulers), _listed(congestion), baselines, repeat == "auto")


def _carry_out(work: Work, jobs: int | None, progress: bool | None) -> Results:
    begun = time.monotonic()
    # Rows of Python objects are run apart from the others.
    outcomes = _native.Outcomes() if work.has_objects else None
    plan = work.plan()
    with Bar(progress) as bar:
        built_in = work.built_in() if work.has_objects else None
        native, is_complete = built_in.plan().run(outcomes, jobs, bar) if built_in is not None else (None, True)
        if is_complete:
            if outcomes is not None and jobs is not None and jobs > 1 and not work.auto:
                is_complete = _in_processes(work, outcomes, jobs, bar)
            native, all_done = plan.run(outcomes, jobs, bar, not is_complete)
            is_complete &= all_done
    assert native is not None
    results = Results(native, work=work, wall_time_s=time.monotonic() - begun)
    if not is_complete:
        done, planned = len(results.runs), len(plan)
        error = Interrupted(f"interrupted after {done} of {planned} runs; `.results` has those that were done")
        error.results = results if done else None
        raise error
    return results


def sweep(
    scenario: Given,
    keys: Mapping[str, Iterable[object]],
    schedulers: Schedulers = None,
    *,
    client: Any = None,
    store: str | PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    shard_runs: int | None = None,
    lazy: bool = False,
    **options: Any,
) -> Any:
    """Runs every combination of the values of ``keys``; the other arguments are those of :func:`run`.

    Returns an ``xarray.Dataset``. Its dimensions are the keys, ``scheduler``, ``congestion`` if there are several, and
    ``seed``; its variables are the metrics, ``path.NAME.METRIC`` for those of a path. A baseline's congestion control is
    the single-path form of that of the schedulers. The coordinate of a key has the values as they are given; where they are
    quantities, ``KEY.value`` has them as numbers in SI units. ``dataset.attrs["digest"]`` is the digest,
    ``dataset.encoding["results"]`` are the :class:`Results`: there, files of the dataset do not need them.

    With ``store``, a folder or a URL of fsspec, the runs are kept there in shards of about ``shard_runs`` runs; shards that
    are there are not run again. With ``client``, a ``distributed.Client``, its workers make them, one thread per shard; the
    store must be one that all of them see. ``lazy=True`` returns the :class:`Store` and holds nothing in memory.

    Raises :class:`ScenarioError` for mistakes in a key or a value, and if a list is empty; :class:`StoreError` if the store
    cannot be used, :class:`WorkerError` if workers cannot.
    """
    if not lazy:
        # Before the runs: a package that is missing ends no sweep at its end.
        with needed_by("a sweep", "sweep"):
            import xarray  # noqa: F401
    lists, checked = _grid(scenario, keys)
    if store is None:
        if client is not None or lazy:
            raise StoreError("give the place of the shards: store=URL, a folder that all workers see or any URL of fsspec")
        return _dataset(checked, lists, run(checked, schedulers, **options))
    begun, work = time.monotonic(), planned(checked, schedulers, **options)
    runs = len(work.plan())
    if runs > _IN_MEMORY and not lazy:
        raise StoreError(f"{runs} runs are too many to hold in memory: lazy=True returns the store")
    filled = Store(store, storage_options)
    fill(filled, work, client, shard_runs=shard_runs, jobs=options.get("jobs"), progress=options.get("progress"))
    if lazy:
        return filled
    results = Results(filled.rebuilt(), work=work, wall_time_s=time.monotonic() - begun)
    return _dataset(checked, lists, results)


def fill(
    store: Store,
    work: Work,
    client: Any = None,
    *,
    shard_runs: int | None = None,
    jobs: int | None = None,
    progress: bool | None = None,
) -> None:
    """Makes the runs of ``work`` that ``store`` lacks, as :func:`sweep` says."""
    if work.auto:
        raise StoreError("`repeat=\"auto\"` needs the results of all shards: give a number of repetitions")
    if work.has_objects:
        raise StoreError("a store takes schedulers and congestion controls by their names: an object has no key")
    store.begin(work, shard_runs)
    try:
        with Bar(progress) as bar:
            if client is None:
                store.make_all(jobs, bar)
            else:
                from .cluster import make_all

                make_all(client, store, bar)
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted: {store.state()}; the same call continues") from error


def _grid(scenario: Given, keys: Mapping[str, Iterable[object]]) -> tuple[dict[str, list[object]], Scenario]:
    """The lists of values, and the scenario that sweeps them."""
    if not keys:
        raise ScenarioError("the grid is empty: give at least one key with its values, as in {'path.lte.delay': ['10ms']}")
    lists = {key: list(values) for key, values in keys.items()}
    for key, values in lists.items():
        if not values:
            raise ScenarioError(f"the grid is empty: `{key}` has no values")
    if "seed" in lists:
        raise ScenarioError("`seed` is a dimension of every sweep: `repeat` counts seeds, from the scenario's `seed` on")
    # What was set before would otherwise hold in every cell.
    checked = as_scenario(scenario).without(lists)
    swept = {f"sweep.{key}": "[" + ", ".join(toml(value) for value in values) + "]" for key, values in lists.items()}
    checked = checked.set(swept)
    axes = {key for key, _ in checked._checked.axes}
    for key in lists:
        if key not in axes:
            raise ScenarioError(f"`{key}` is both set and swept: leave one of the two out")
    return lists, checked


def _dataset(checked: Scenario, lists: Mapping[str, list[object]], results: Results) -> Any:
    with needed_by("a sweep", "sweep"):
        import numpy
        import xarray

    runs = results.runs
    table = {name: runs[name] for name in runs.column_names if not _is_value(runs, name)}
    axes = dict(checked._checked.axes)
    names = [f"cell.{key}" for key in axes if f"cell.{key}" in table]
    written = {f"cell.{key}": [_as_written(value) for value in values] for key, values in axes.items()}
    places: dict[str, list[Any]] = {name: written[name] for name in names}
    places["scheduler"] = list(dict.fromkeys(table["scheduler"]))
    multipath = [c for s, c in zip(table["scheduler"], table["congestion"], strict=True) if not s.startswith("single:")]
    congestions = list(dict.fromkeys(multipath or table["congestion"]))
    if len(congestions) > 1:
        congestions = list(dict.fromkeys(table["congestion"]))
        places["congestion"] = congestions
    places["seed"] = sorted(set(table["seed"]))
    numbers_of = {name: {value: n for n, value in enumerate(place)} for name, place in places.items()}
    index = tuple(numpy.array([numbers[cell] for cell in table[name]], int) for name, numbers in numbers_of.items())
    dimensions = [_dimension(name) for name in places]
    coordinates: dict[str, Any] = {
        _dimension(name): _coordinate(_dimension(name), place, lists) for name, place in places.items()
    }
    shape = [len(place) for place in places.values()]
    variables = {}
    swept: dict[str, dict[str, Any]] = results._document.get("sweep", {})
    for name, place in places.items():
        key = _dimension(name)
        if name in names and key in swept:
            numbers = [swept[key]["values"].get(value, numpy.nan) for value in place]
            coordinates[f"{key}.value"] = (key, numbers, {"units": swept[key]["unit"]})
    for name in runs.column_names:
        if name not in table and name not in axes:
            array = numpy.full(shape, numpy.nan)
            array[index] = numpy.array(runs[name], float)  # None is no number
            variables[name] = (dimensions, array)
    dataset = xarray.Dataset(variables, coordinates, {"digest": results.digest, "scenario": results.name})
    dataset.encoding["results"] = results
    return dataset


def _is_value(runs: Table, name: str) -> bool:
    """A column of measured values, or of yes and no."""
    return runs._native.column_type(name) in ("Float64", "Boolean")


def _dimension(name: str) -> str:
    return name.removeprefix("cell.")


def _as_written(value: str) -> str:
    """A value of an axis as results have it: strings without quotes."""
    import tomllib

    read = tomllib.loads(f"x = {value}")["x"]
    return read if isinstance(read, str) else value


def _coordinate(dimension: str, written: list[Any], lists: Mapping[str, list[object]]) -> list[Any]:
    """The values as they were given, if they are plain."""
    given = lists.get(dimension, [])
    plain = all(isinstance(value, str | int | float) for value in given)
    return list(given) if plain and len(given) == len(written) else written
