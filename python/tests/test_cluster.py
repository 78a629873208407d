"""Sweeps on Dask: equal to local ones, whatever dies."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import anabranch as ab
import dask
import pytest
from anabranch import cluster
from distributed import Client, LocalCluster
from test_run import TWO
from test_store import KEYS, SHORT, shards

SWEEP = {"scenario": TWO, "keys": KEYS, "schedulers": ["minrtt", "blest"], "repeat": 10, "shard_runs": 4}
SHARDS = 40


@pytest.fixture(scope="module")
def local():
    return ab.sweep(TWO, KEYS, ["minrtt", "blest"], repeat=10)


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        Client(workers) as client,
    ):
        yield client


@contextmanager
def once(folder, count, action):
    """Does `action` as soon as so many shards are there."""

    def watch():
        while len(shards(folder)) < count:
            time.sleep(0.005)
        action()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield
    thread.join(60)
    assert not thread.is_alive(), "the sweep was over too soon"


def check(data, folder, local):
    """The store has every run once, and they are those of one machine."""
    assert data.equals(local) and data.attrs["digest"] == local.attrs["digest"]
    assert data.encoding["results"].to_json() == local.encoding["results"].to_json()
    assert ab.open_store(folder).dataset().count_rows() == 160
    assert len(shards(folder)) == SHARDS


def test_workers_make_what_one_machine_makes(tmp_path, client, local):
    data = ab.sweep(**SWEEP, store=tmp_path, client=client)
    check(data, tmp_path, local)
    before = shards(tmp_path)
    store = ab.sweep(**SWEEP, store=tmp_path, client=client, lazy=True)
    assert shards(tmp_path) == before and store.is_complete
    assert store.summary().to_pydict() == local.encoding["results"].summary.to_pydict()


def test_killed_workers_lose_nothing(tmp_path, client, local):
    pids = list(client.run(os.getpid).values())
    with once(tmp_path, 3, lambda: [os.kill(pid, signal.SIGKILL) for pid in pids]):
        data = ab.sweep(**SWEEP, store=tmp_path, client=client)
    assert not set(client.run(os.getpid).values()) & set(pids)
    check(data, tmp_path, local)


def test_a_store_that_workers_do_not_see_is_refused(client):
    with pytest.raises(ab.WorkerError, match="the worker tcp://.* cannot use the store memory://unseen"):
        ab.sweep(SHORT, KEYS, "minrtt", store="memory://unseen", client=client)


def test_a_run_that_fails_ends_the_sweep(tmp_path, client, monkeypatch):
    store = ab.sweep(SHORT, KEYS, "minrtt", repeat=1, store=tmp_path, lazy=True, shard_runs=1)
    name = sorted(shards(tmp_path))[0]
    (tmp_path / name).unlink()
    (tmp_path / "_unfinished").write_text("in the way")
    monkeypatch.setattr(ab.Store, "begin", lambda *_: None)
    monkeypatch.setattr(cluster, "_check", lambda *_: None)
    with pytest.raises(ab.StoreError, match="cannot write") as caught:
        cluster.make_all(client, store, lambda *_: None)
    assert "on the worker tcp://" in caught.value.__notes__[0]


def test_stores_in_memory_serve_workers_of_one_process(local):
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        data = ab.sweep(**SWEEP, store="memory://threads", client=client)
    assert data.equals(local)
    assert ab.open_store("memory://threads").dataset().count_rows() == 160


class Cluster:
    """A scheduler and workers, each a process."""

    def __init__(self, folder):
        self.folder, self.processes, self.file = folder, [], folder / f"scheduler-{time.time_ns()}.json"
        self.scheduler = self.start("scheduler", "--port", "0", "--no-dashboard", "--no-show", file=self.file)

    def start(self, what, *options, file, path=None):
        words = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", str(file), *options]
        environment = {**os.environ, "PYTHONPATH": str(path)} if path else None
        log = (self.folder / f"{what}.log").open("a")
        process = subprocess.Popen(words, cwd=self.folder, env=environment, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def worker(self, path=None):
        options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--death-timeout", "20"]
        return self.start("worker", *options, file=self.file, path=path)

    def client(self, workers=1):
        while not self.file.exists() or not self.file.read_text():
            time.sleep(0.02)
        client = Client(scheduler_file=str(self.file))
        client.wait_for_workers(workers, timeout=30)
        return client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def test_a_killed_scheduler_loses_nothing(tmp_path, local, monkeypatch):
    folder = tmp_path / "store"
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with Cluster(tmp_path) as first, dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        first.worker()
        with first.client() as client, once(folder, 5, first.scheduler.kill):
            with pytest.raises(ab.WorkerError, match=f"scheduler.*{folder}.*continues"):
                ab.sweep(**SWEEP, store=folder, client=client)
    before = shards(folder)
    assert 5 <= len(before) < SHARDS
    with Cluster(tmp_path) as second:
        second.worker()
        with second.client() as client:
            data = ab.sweep(**SWEEP, store=folder, client=client)
    assert before.items() <= shards(folder).items(), "finished shards are not run again"
    check(data, folder, local)


def test_workers_of_another_version_are_refused(tmp_path):
    # A worker finds these before the package that is installed.
    packages = {
        "cannot load anabranch: .*: no such thing": "raise ImportError('no such thing')",
        "anabranch of version 0.0.9, the client of version 0.1.0": "__version__ = '0.0.9'",
        "anabranch of build 0.1.0 other, the client of build 0.1.0 [0-9a-f]+": "__version__ = '0.1.0'",
    }
    folders = [tmp_path / str(number) for number in range(len(packages))]
    for folder, text in zip(folders, packages.values(), strict=True):
        (folder / "anabranch").mkdir(parents=True)
        (folder / "anabranch/__init__.py").write_text(text)
        (folder / "anabranch/_native.py").write_text("def program(): return '0.1.0 other'")
    without = tmp_path / "without"
    without.mkdir()
    (without / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'anabranch' else find(name, *rest)\n"
    )
    expected = [*packages, "has no package `anabranch`: install 0.1.0 for .*python"]
    with Cluster(tmp_path) as own:
        for folder in [*folders, without]:
            own.worker(path=folder)
        with own.client(len(expected)) as client:
            while expected:
                with pytest.raises(ab.WorkerError, match="the worker tcp://") as caught:
                    ab.sweep(SHORT, KEYS, "minrtt", store=tmp_path / "store", client=client)
                found = [one for one in expected if re.search(f"the worker [^ ]+ .*{one}", str(caught.value))]
                assert len(found) == 1, str(caught.value)
                expected.remove(found[0])
                client.retire_workers([str(caught.value).split()[2]])
    assert not shards(tmp_path / "store")


def test_the_command(tmp_path, local):
    file = tmp_path / "two.toml"
    swept = ab.Scenario(TWO).set({f"sweep.{key}": str(values).replace("'", '"') for key, values in KEYS.items()})
    file.write_text(ab.Scenario(TWO).to_toml())
    sets = [word for key, value in swept.changes.items() for word in ("--set", f"{key}={value}")]
    words = [str(file), *sets, "--scheduler", "minrtt,blest", "--repeat", "10", "--shard-runs", "20"]
    command = Path(sys.executable).with_name("anabranch-sweep")
    with Cluster(tmp_path) as own:
        own.worker()
        own.client().close()
        address = ["--scheduler-address", own.client().scheduler.address]
        done = subprocess.run(
            [command, *words, *address, "--out", tmp_path / "store"], capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"160 runs: 8 of 8 shards are in {tmp_path}/store\n"
    assert ab.open_store(tmp_path / "store").results().digest == local.attrs["digest"]
    wrong = subprocess.run([command, file, "--out", "/dev/null/store"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and wrong.stderr.startswith("error: cannot write to the store /dev/null/store")


def test_clusters_of_dask_jobqueue(tmp_path, local, monkeypatch):
    from dask_jobqueue.local import LocalCluster as JobCluster

    # A job's Python looks for packages where it stands.
    monkeypatch.chdir(tmp_path)
    with JobCluster(cores=1, processes=1, memory="1GB", scheduler_options={"dashboard_address": ":0"}) as jobs:
        jobs.scale(1)
        with Client(jobs) as client:
            client.wait_for_workers(1, timeout=30)
            data = ab.sweep(**SWEEP, store=tmp_path, client=client)
    check(data, tmp_path, local)
