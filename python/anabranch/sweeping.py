"""The command ``anabranch-sweep``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from .errors import AnabranchError, Interrupted
from .extras import needed_by
from .running import fill, planned
from .scenario import Scenario
from .store import Store


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "anabranch-sweep",
        description="Runs a sweep on the workers of a Dask cluster and keeps its runs as Parquet files.",
        epilog="What stops it leaves the finished shards in the store: the same command continues.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("scenario", metavar="FILE", help="a scenario file with a table [sweep], or a built-in scenario")
    add("--scheduler-address", metavar="URL", help="the cluster's scheduler: tcp://HOST:8786; without it, run here")
    add("--out", metavar="URL", required=True, help="the store: a folder that all workers see, or a URL of fsspec")
    add("--set", metavar="KEY=VALUE", action="append", default=[], help="""set a key; 'sweep.KEY=["A", "B"]' sweeps it""")
    add("--scheduler", metavar="NAMES", help="packet schedulers, with commas between them")
    add("--congestion", metavar="NAMES", help="congestion controls, with commas between them")
    add("--repeat", metavar="N", type=int, help="seeds per row")
    add("--seed", metavar="N", type=int, help="the first seed")
    add("--no-baselines", action="store_true", help="do not run each path alone")
    add("--shard-runs", metavar="N", type=int, help="runs per shard, about; two seconds' worth without it")
    add("--jobs", metavar="N", type=int, help="threads, without a cluster")
    return parser


def _client(address: str | None) -> Any:
    if address is None:
        return None
    with needed_by("--scheduler-address", "dask"):
        from distributed import Client
    try:
        return Client(address)
    except (OSError, ValueError) as error:
        raise AnabranchError(f"cannot reach a Dask scheduler at {address}: {error}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Executes the command; returns its exit code."""
    given = _arguments().parse_args(arguments)
    try:
        scenario = Scenario.load(given.scenario)
        for one in given.set:
            key, equals, value = one.partition("=")
            if not equals:
                raise AnabranchError(f"--set {one}: write KEY=VALUE")
            scenario = scenario.set(key.strip(), value)
        work = planned(
            scenario,
            given.scheduler,
            congestion=given.congestion,
            repeat=given.repeat,
            seed=given.seed,
            baselines=not given.no_baselines,
            jobs=given.jobs,
        )
        store = Store(given.out)
        fill(store, work, _client(given.scheduler_address), shard_runs=given.shard_runs, jobs=given.jobs)
    except (AnabranchError, ImportError, ValueError) as error:
        print(f"error: {str(error).lstrip()}", file=sys.stderr)
        return 130 if isinstance(error, Interrupted) else 1
    print(f"{store.planned_runs} runs: {store.state()}")
    return 0
