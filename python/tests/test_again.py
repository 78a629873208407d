"""Results that say what ran, and come out again."""

import json
import math
import pickle
import re
from pathlib import Path

import anabranch as ab
import pytest
from test_run import TWO

SCENARIO = """
name = "a study"
duration = "500ms"
[[path]]
name = "a"
trace = "a.trace"
delay = "10ms"
loss = "1%"
[[path]]
name = "b"
rate = "10mbit"
delay = "40ms"
"""
#: What the schedulers below need of this module.
LIMIT = 3
STEP = math.sqrt(4)


def least(paths):
    return min((path.rtt_or_max_ns, path.id) for path in paths)[1]


def checked(method):
    return method


class Base(ab.Scheduler):
    def __init__(self, limit=LIMIT):
        self.limit = limit

    @checked
    def schedule(self, round):
        for _ in range(100 * int(STEP)):
            free = [path for path in round.candidates if path.eligible and path.id < self.limit]
            if not free or not round.fill(least(free)):
                return


class Mine(Base):
    """Of a class of this module, with a parameter."""


class Window(ab.CongestionControl):
    def on_ack(self, path, ack, paths):
        window = self.windows[path]
        if acked := window.slow_start(ack):
            window.add(acked / window.cwnd)


class Odd(ab.Scheduler):
    def __init__(self):
        self.paths = iter(())

    def schedule(self, round):
        while (path := round.fastest_eligible()) and round.fill(path):
            pass


def study(folder, *schedulers, congestion=None):
    (folder / "a.trace").write_text("1\n2\n3\n")
    (folder / "study.toml").write_text(SCENARIO)
    scenario = ab.Scenario.load(folder / "study.toml")
    results = ab.run(scenario.set("connection.recv_buffer", 65536), list(schedulers), congestion=congestion, repeat=2)
    return results, results.save(folder / "results")


def test_a_study_with_plug_ins_comes_out_again(tmp_path):
    results, folder = study(tmp_path, "minrtt,blest(delta=0.01)", Mine(limit=5), congestion=Window())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert list(manifest["scenario"]["files"]) == ["a.trace"]
    assert "blest(delta=0.01)" in results.schedulers
    # Neither this module's class nor the trace is needed.
    (tmp_path / "a.trace").unlink()
    with pytest.raises(ab.PlugInError, match="trust=True"):
        ab.rerun(folder)
    text = ab.rerun(folder, trust=True, out=tmp_path / "again")
    assert text.endswith("results.json comes out again, byte for byte.\n")
    for name in ("results.json", "runs.csv", "summary.csv", "comparisons.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()
    with pytest.raises(ab.CommandError, match="anabranch.rerun"):
        ab.command("rerun", str(folder))


def test_what_differs_is_said(tmp_path):
    _, folder = study(tmp_path, Mine(limit=5))
    assert "byte for byte" in ab.rerun(folder, plug_ins=[Mine(limit=5)])
    with pytest.raises(ab.ResultsError, match=r"Other events: \d of \d runs; the first is Mine, "):
        ab.rerun(folder, plug_ins=[Mine(limit=1)])
    (tmp_path / "a.trace").write_text("1\n9\n")
    with pytest.raises(ab.ResultsError, match="do not come out again"):
        ab.rerun(folder, plug_ins=[Mine(limit=1)])


def test_what_cannot_be_kept_has_to_be_given(tmp_path):
    _, folder = study(tmp_path, Odd())
    with pytest.raises(ab.PlugInError, match=r"the attributes of `Odd` could not be kept: .*plug_ins=\[Odd\(\)\]"):
        ab.rerun(folder, trust=True)
    assert "byte for byte" in ab.rerun(folder, plug_ins=[Odd()])


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("source", "class Mine(\n", "the source of `Mine` fails: SyntaxError"),
        ("source", "raise SystemExit(3)\n", "the source of `Mine` fails: SystemExit: 3"),
        ("source", "class Mine: pass\n", "makes no anabranch.Scheduler"),
        ("state", "print(1)", "the attributes of `Mine` are no Python dictionary"),
        ("state", "[" * 5000, "the attributes of `Mine` are no Python dictionary"),
        ("state", "7", "the attributes of `Mine` are no Python dictionary"),
    ],
)
def test_a_changed_source_is_an_error_of_the_plug_in(tmp_path, key, text, message):
    _, folder = study(tmp_path, Mine(limit=5))
    inputs = json.loads((folder / "inputs.json").read_text())
    inputs["plug_ins"][0][key] = text
    (folder / "inputs.json").write_text(json.dumps(inputs))
    with pytest.raises(ab.PlugInError, match=re.escape(message)):
        ab.rerun(folder, trust=True)


def test_a_study_without_plug_ins_is_the_commands(tmp_path):
    _, folder = study(tmp_path, "minrtt")
    assert "byte for byte" in ab.rerun(folder)
    assert "byte for byte" in ab.command("rerun", str(folder))
    loaded = ab.load(folder)
    loaded.save(tmp_path / "copy")
    assert "byte for byte" in ab.rerun(tmp_path / "copy")


def test_the_source_is_as_it_was_when_the_runs_began(tmp_path):
    one = Mine(limit=5)
    scenario = ab.Scenario({**TWO, "duration": "500ms"})
    results = ab.run(scenario, [one], repeat=1, baselines=False)
    one.limit = 1
    folder = results.save(tmp_path / "results")
    kept = json.loads((folder / "inputs.json").read_text())["plug_ins"][0]
    assert kept["state"] == "{'limit': 5}"
    begins = [line for line in kept["source"].splitlines() if line and line[0] not in " @"]
    assert set(begins) == {
        "from __future__ import annotations",
        "import anabranch as ab",
        "LIMIT = 3",
        "STEP = 2.0",
        "def checked(method):",
        "def least(paths):",
        "class Base(ab.Scheduler):",
        "class Mine(Base):",
    }
    assert begins[-2:] == ["class Base(ab.Scheduler):", "class Mine(Base):"]
    assert "byte for byte" in ab.rerun(folder, trust=True)


def test_a_store_keeps_what_its_results_need(tmp_path):
    keys = {"path.lte.delay": ["20ms", "80ms"]}
    options = {"repeat": 2, "store": tmp_path / "store", "lazy": True}
    store = ab.sweep({**TWO, "duration": "200ms"}, keys, "blest(delta=0.01)", **options)
    folder = store.results().save(tmp_path / "results")
    assert json.loads((folder / "inputs.json").read_text())["whole"]["schedulers"] == ["blest(delta=0.01)"]
    assert "byte for byte" in ab.rerun(folder)


def test_results_of_another_scenario_are_not_replaced(tmp_path):
    short = ab.Scenario({**TWO, "duration": "200ms"})
    results = ab.run(short, "minrtt", repeat=1)
    other = ab.run(ab.Scenario({**TWO, "name": "others", "duration": "200ms"}), "minrtt", repeat=1)
    folder = results.save(tmp_path / "results")
    results.save(folder)
    with pytest.raises(ab.CommandError, match=r"scenario two paths\n"):
        other.save(folder)
    other.save(folder, force=True)
    assert ab.load(folder).name == "others"


def test_results_and_sweeps_are_pickled_and_written(tmp_path):
    data = ab.sweep({**TWO, "duration": "200ms"}, {"path.lte.delay": ["20ms", "80ms"]}, "minrtt", repeat=2)
    again = pickle.loads(pickle.dumps(data))
    assert again.equals(data)
    results = again.encoding["results"]
    assert results.to_json() == data.encoding["results"].to_json() and len(results.series) > 0
    folder = Path(results.save(tmp_path / "results"))
    assert "byte for byte" in ab.rerun(folder)
    import xarray

    data.to_netcdf(tmp_path / "sweep.nc", engine="scipy")
    assert xarray.open_dataset(tmp_path / "sweep.nc").attrs["digest"] == data.attrs["digest"]
