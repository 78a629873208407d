"""Sweeps in stores: shards, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anabranch as ab
import fsspec
import pytest
from blest import Blest
from fsspec.implementations.memory import MemoryFileSystem
from test_run import TWO

KEYS = {"path.lte.delay": ["20ms", "80ms"], "connection.recv_buffer": [65536, 262144]}
SHORT = {**TWO, "duration": "500ms"}


def sweep(scenario=SHORT, keys=KEYS, **options):
    return ab.sweep(scenario, keys, ["minrtt", "blest"], repeat=5, **options)


@pytest.fixture(scope="module")
def local():
    return sweep()


def shards(folder):
    return {file.name: file.stat().st_mtime_ns for file in Path(folder).glob("*.parquet")}


@pytest.mark.parametrize("runs", [1, 8, 40, 1000])
def test_shards_are_the_runs_of_one_machine(tmp_path, local, runs):
    data = sweep(store=tmp_path, shard_runs=runs)
    ours, theirs = data.encoding["results"], local.encoding["results"]
    assert data.equals(local)
    assert ours.to_json() == theirs.to_json()
    assert ours.runs.to_pydict() == theirs.runs.to_pydict()
    store = ab.open_store(tmp_path)
    assert store.is_complete and store.planned_runs == 80
    assert store.dataset().count_rows() == 80
    order = ["cell.path.lte.delay", "cell.connection.recv_buffer", "scheduler", "seed"]
    rows = store.dataset().to_table().to_pylist()
    assert sorted(rows, key=lambda row: [row[name] for name in order]) == sorted(
        theirs.runs.rows(), key=lambda row: [row[name] for name in order]
    )
    if runs == 40:
        assert rows == list(theirs.runs.rows()), "whole cells are in the order of the results"
    assert store.summary().to_pydict() == theirs.summary.to_pydict()
    assert store.comparisons().to_pydict() == theirs.comparisons.to_pydict()
    assert not (tmp_path / "_unfinished").exists()


def test_a_shard_that_is_there_is_not_run_again(tmp_path, local):
    first = sweep(store=tmp_path, shard_runs=8)
    before = shards(tmp_path)
    lost = sorted(before)[3]
    (tmp_path / lost).unlink()
    store = ab.open_store(tmp_path)
    assert [shard.number for shard in store.missing()] == [3] and not store.is_complete
    with pytest.raises(ab.StoreError, match="only 11 of 12 shards"):
        store.results()
    # A later call keeps the division that the store has.
    again = sweep(store=tmp_path, shard_runs=50)
    after = shards(tmp_path)
    assert {name for name in after if after[name] != before[name]} == {lost}
    assert again.equals(first) and again.attrs["digest"] == local.attrs["digest"]


def test_ctrl_c_keeps_whole_shards(tmp_path):
    code = """
import anabranch as ab, sys
print("begun", flush=True)
try:
    ab.sweep("wifi-lte", {"path.lte.delay": ["20ms", "80ms"]}, "minrtt", repeat=500, store=sys.argv[1], shard_runs=6)
except ab.Interrupted as stop:
    print(stop)
"""
    words = [sys.executable, "-P", "-c", code, str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    while len(shards(tmp_path)) < 2 and process.poll() is None:
        pass
    process.send_signal(2)
    output, _ = process.communicate(timeout=60)
    store = ab.open_store(tmp_path)
    assert f"interrupted: {len(store.files)} of 500 shards" in output
    assert 2 <= len(store.files) < 500
    assert store.dataset().count_rows() == 6 * len(store.files)


class Objects(MemoryFileSystem):
    """An object store: it has no rename."""

    protocol = "objects"
    store, pseudo_dirs = {}, [""]

    def mv(self, *_, **__):
        raise AssertionError("an object is uploaded under its name")


def test_stores_are_wherever_fsspec_reaches(tmp_path, local):
    fsspec.register_implementation("objects", Objects, clobber=True)
    for url in (f"file://{tmp_path}", "memory://sweeps/one", "objects://sweeps/one"):
        assert sweep(store=url, shard_runs=20).attrs["digest"] == local.attrs["digest"]
        assert ab.open_store(url).dataset().count_rows() == 80
    assert len(shards(tmp_path)) == 4


def test_values_that_only_some_shards_have(tmp_path):
    # A transfer that does not end has no completion time.
    ends = {**TWO, "traffic": [{"kind": "bulk", "size": "100KB"}]}
    data = ab.sweep(ends, {"duration": ["10ms", "5s"]}, "minrtt", repeat=2, store=tmp_path, shard_runs=6)
    rows = ab.open_store(tmp_path).dataset().to_table(columns=["cell.duration", "completion_s"]).to_pylist()
    assert len(shards(tmp_path)) == 2
    assert {row["cell.duration"] for row in rows if row["completion_s"] is None} == {"10ms"}
    assert data.equals(ab.sweep(ends, {"duration": ["10ms", "5s"]}, "minrtt", repeat=2))


def test_traces_travel_with_the_store(tmp_path):
    (tmp_path / "lte.trace").write_text("1\n3\n4\n9\n")
    text = ab.Scenario(TWO).to_toml()
    path = '\n[[path]]\nname = "traced"\ntrace = "lte.trace"\ndelay = "10ms"\n'
    scenario = ab.Scenario.from_toml(text + path, folder=tmp_path)
    ab.sweep(scenario, {"path.lte.delay": ["20ms", "40ms"]}, "minrtt", repeat=1, store=tmp_path / "store")
    (tmp_path / "lte.trace").unlink()
    assert ab.open_store(tmp_path / "store").results().digest


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"store": "/dev/null/store"}, ["cannot write", "/dev/null/store"]),
        ({"store": "nowhere://store"}, ["nowhere"]),
        ({"lazy": True}, ["store="]),
        ({"client": object()}, ["store="]),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_before_the_first_run(options, says, monkeypatch):
    monkeypatch.setattr(ab.Store, "make", lambda *_: pytest.fail("a run was made"))
    with pytest.raises(ab.StoreError) as caught:
        sweep(**options)
    assert all(word in str(caught.value) for word in says), str(caught.value)


def test_stores_refuse_what_has_no_key(tmp_path):
    with pytest.raises(ab.StoreError, match="auto"):
        ab.sweep(SHORT, KEYS, "minrtt", repeat="auto", store=tmp_path)
    with pytest.raises(ab.StoreError, match="names"):
        ab.sweep(SHORT, KEYS, Blest(), store=tmp_path)
    with pytest.raises(ab.StoreError, match="1200000 runs are too many.*lazy"):
        ab.sweep(SHORT, KEYS, "minrtt", repeat=100_000, store=tmp_path)
    assert os.listdir(tmp_path) == []


def test_other_sweeps_and_other_versions_are_refused(tmp_path):
    assert sweep(store=tmp_path, lazy=True).is_complete
    other = {**KEYS, "path.lte.delay": ["20ms", "90ms"]}
    for wrong in (lambda: sweep(keys=other, store=tmp_path), lambda: sweep(seed=7, store=tmp_path)):
        with pytest.raises(ab.StoreError, match="another sweep"):
            wrong()
    document = json.loads((tmp_path / "sweep.json").read_text())
    for key, value in (("program", "0.0.9 abc"), ("format", 9)):
        (tmp_path / "sweep.json").write_text(json.dumps({**document, "anabranch": "0.0.9", key: value}))
        for wrong in (lambda: sweep(store=tmp_path), lambda: ab.open_store(tmp_path)):
            with pytest.raises(ab.StoreError, match=f"another version: anabranch 0.0.9.*{value}"):
                wrong()
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(ab.StoreError, match="sweep.json"):
        ab.open_store(tmp_path)
    with pytest.raises(ab.StoreError, match="no store"):
        ab.open_store(tmp_path / "nowhere")


def test_a_damaged_shard_is_named(tmp_path):
    sweep(store=tmp_path, lazy=True)
    name = sorted(shards(tmp_path))[0]
    (tmp_path / name).write_bytes(b"PAR1")
    with pytest.raises(ab.StoreError, match=f"{name}.*delete it"):
        ab.open_store(tmp_path).results()


@pytest.mark.parametrize("package", ["fsspec", "pyarrow"])
def test_a_missing_package_names_the_extra(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package}.*anabranch\[dask\]"):
        sweep(store=tmp_path)


def test_a_link_in_a_strangers_folder_is_not_written_through(tmp_path):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    (theirs / "_unfinished").symlink_to(mine)
    with pytest.raises(ab.StoreError, match="symbolic link"):
        sweep(store=theirs)
    assert list(mine.iterdir()) == []
