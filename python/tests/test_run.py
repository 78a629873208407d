"""Runs, results, errors."""

import json
import signal
import subprocess
import sys
import threading

import anabranch as ab
import pytest

SHORT = {"duration": "2s", "warmup": "0s"}
TWO = {
    "name": "two paths",
    "duration": "2s",
    "path": [
        {"name": "wifi", "rate": "20mbit", "delay": "10ms", "loss": "0.5%"},
        {"name": "lte", "rate": {"down": "10mbit", "up": "5mbit"}, "delay": "40ms"},
    ],
}


def short(name="wifi-lte"):
    return ab.Scenario.load(name).set(SHORT)


def by_command(*options):
    words = ["run", "wifi-lte", *options, "--set", "duration=2s", "--set", "warmup=0s", "--format", "json"]
    return json.loads(ab.command(*words))


def test_digests_are_those_of_the_command_line():
    ours = ab.run(short(), schedulers=["minrtt", "blest(delta=0.01)"], repeat=3)
    theirs = by_command("--scheduler", "minrtt,blest(delta=0.01)", "--repeat", "3")
    assert ours.digest == theirs["digest"]
    assert json.loads(ours.to_json()) == theirs


def test_threads_do_not_matter():
    digests = {ab.run(short(), "minrtt", repeat=4, jobs=jobs).digest for jobs in (1, 2, 3)}
    assert len(digests) == 1


def test_tables_reach_libraries_without_a_copy():
    import pandas
    import polars
    import pyarrow

    results = ab.run(TWO, ["minrtt", "roundrobin"], repeat=2)
    table = pyarrow.table(results.runs)
    assert table.num_rows == len(results.runs) == 8
    assert table.schema.field("goodput_bps").type == pyarrow.float64()
    assert table["goodput_bps"].to_pylist() == results.runs["goodput_bps"]
    assert polars.DataFrame(results.runs).shape == (table.num_rows, table.num_columns)
    frame = results.summary.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and set(frame["scheduler"]) >= {"minrtt", "single:wifi"}
    assert set(results.comparisons["a"] + results.comparisons["b"]) == {"minrtt", "roundrobin"}
    assert results.schedulers == ["minrtt", "roundrobin", "single:wifi", "single:lte"]


def test_a_video_has_its_metrics_in_the_tables():
    traffic = {"kind": "video", "segment": "1s", "buffer": "3s", "abr": "throughput(safety=0.9)"}
    results = ab.run({**TWO, "duration": "5s", "traffic": [traffic]}, "minrtt", repeat=2)
    for name in ("qoe", "bitrate_mean_bps", "switches", "startup_s", "stall_s", "stall_ratio", "played_s"):
        assert all(value is not None for value in results.runs[name]), name
        assert name in results.summary["metric"]
    for startup, stall, played in zip(*(results.runs[name] for name in ("startup_s", "stall_s", "played_s"))):
        assert startup + stall + played == pytest.approx(5)
    assert list(ab.names("abrs")["name"])[:2] == ["bola", "bba"]
    assert "quality of experience" in ab.explain("qoe")


def test_a_table_reaches_pandas_without_pyarrow(monkeypatch):
    import pandas

    summary = ab.run(TWO, "minrtt", repeat=2).summary
    whole = summary.to_pandas()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = summary.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == list(whole.columns)
    assert frame["mean"].tolist() == whole["mean"].tolist()


def test_series_and_timeline_are_of_the_first_repetition():
    results = ab.run(TWO, "minrtt", repeat=2)
    assert set(results.series["seed"]) == {1}
    assert {"time_s", "path.wifi.cwnd_packets"} <= set(results.series.column_names)
    assert set(results.timeline["path"]) == {"wifi", "lte"}
    assert len(results.timeline["sent_s"]) > 100
    assert results.follow(10) is results


def test_a_scenario_does_not_change():
    one = ab.Scenario.load("wifi-lte")
    other = one.set("path.lte.delay", "60ms").set({"path.wifi.loss": "2%", "seed": 5})
    assert one.changes == {} and other.changes["path.lte.delay"] == "60ms"
    assert other.paths[1]["delay"] == {"down": "60ms", "up": "60ms"}
    assert "60ms" in other.to_toml() and "60ms" not in one.to_toml()


def test_dictionaries_texts_and_files_are_scenarios(tmp_path):
    toml = ab.Scenario(TWO).to_toml()
    (tmp_path / "two.toml").write_text(toml)
    given = [ab.Scenario(TWO), ab.Scenario.from_toml(toml), ab.Scenario.load(tmp_path / "two.toml")]
    assert len({ab.run(one, "minrtt").digest for one in given}) == 1


@pytest.mark.parametrize(
    ("action", "error", "says"),
    [
        (lambda: ab.Scenario.load("wifi-lte").set("path.lte.dealy", "1ms"), ab.UnknownKey, ["dealy", "delay"]),
        (lambda: ab.Scenario.load("wifi-lte").set("path.lte.delay", "60parsec"), ab.WrongUnit, ["60parsec", "ms"]),
        (lambda: ab.Scenario.load("wifi-lte").set("path.5g.delay", "60ms"), ab.UnknownName, ["5g", "lte"]),
        (lambda: ab.Scenario({**TWO, "dration": "2s"}), ab.UnknownKey, ["dration", "duration"]),
        (lambda: ab.Scenario({}), ab.errors.MissingKey, ["path"]),
        (lambda: ab.Scenario.from_toml("x = ["), ab.errors.SyntaxError, ["x = ["]),
        (lambda: ab.Scenario.load("wifi-ltte"), ab.CommandError, ["wifi-ltte", "wifi-lte"]),
        (lambda: ab.Scenario.load("missing.toml"), ab.CommandError, ["missing.toml"]),
        (lambda: ab.run("wifi-lte", "blst"), ab.UnknownScheduler, ["blst", "blest"]),
        (lambda: ab.run("wifi-lte", "blest(dleta=1)"), ab.ScenarioError, ["dleta", "delta"]),
        (lambda: ab.run("wifi-lte", congestion="cubik"), ab.errors.UnknownCongestion, ["cubik", "cubic"]),
        (lambda: ab.explain("blst"), ab.CommandError, ["blst", "blest"]),
        (lambda: ab.run(short().set("hosts.receiver", "linux")), ab.RunFailed, ["kernel"]),
        (lambda: ab.reproduce("blst"), ab.CommandError, ["blst"]),
    ],
)
def test_mistakes_are_named_with_their_place(action, error, says):
    with pytest.raises(error) as caught:
        action()
    assert isinstance(caught.value, ab.AnabranchError)
    for word in says:
        assert word in str(caught.value), str(caught.value)


def test_every_family_of_diagnostics_has_a_class():
    from anabranch import _native

    classes = [ab.errors.family(code) for code in _native.codes()]
    assert len(set(classes)) == len(classes) and ab.ScenarioError not in classes
    with pytest.raises(ab.ScenarioError) as caught:
        ab.Scenario({**TWO, "dration": "2s", "sede": 1})
    assert len(caught.value.diagnostics) == 2
    assert caught.value.diagnostics[0].code == "anabranch::scenario::unknown_key"
    assert caught.value.diagnostics[0].help


def test_a_class_in_place_of_an_object_is_named():
    class Mine(ab.Scheduler):
        pass

    with pytest.raises(TypeError, match=r"Mine\(\)"):
        ab.run(TWO, [Mine])


def test_results_are_saved_and_read(tmp_path):
    results = ab.run(TWO, ["minrtt", "blest"], repeat=2)
    results.save(tmp_path)
    again = ab.load(tmp_path)
    assert again.digest == results.digest and str(again) == str(results)
    assert again.timeline.to_pydict() == results.timeline.to_pydict()
    assert again.series.to_pydict() == results.series.to_pydict()
    page = again.report(tmp_path / "out.html").read_text()
    assert page.startswith("<!doctype html>") and "two paths" in page


def test_saved_results_are_those_of_the_command(tmp_path):
    by_command("--scheduler", "minrtt,blest", "--repeat", "2", "--out", str(tmp_path / "theirs"))
    results = ab.run(short(), ["minrtt", "blest"], repeat=2)
    ours = results.save(tmp_path / "ours")

    def files(folder):
        return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}

    assert files(ours) == files(tmp_path / "theirs")
    for name in ("results.json", "runs.csv", "runs.parquet", "summary.csv", "comparisons.csv"):
        assert (ours / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes(), name
    manifests = [json.loads((folder / "manifest.json").read_text()) for folder in (ours, tmp_path / "theirs")]
    for key in ("schema", "anabranch", "scenario", "network", "seeds", "digest", "machine"):
        assert manifests[0][key] == manifests[1][key], key
    # Later results take the place of earlier ones.
    ab.run(short(), "roundrobin", repeat=1, baselines=False).save(ours)
    assert {name for name in files(ours) if name.startswith("series/")} == {"series/roundrobin-lia-seed1.csv"}
    # Results that were read keep their manifest, and may be saved where they were.
    manifest = (ours / "manifest.json").read_text()
    ab.load(ours).save(ours)
    assert (ours / "manifest.json").read_text() == manifest and len(ab.load(ours).timeline) > 0
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/results.json").write_text("{}")
    with pytest.raises(ab.CommandError, match="would be lost"):
        results.save(tmp_path / "foreign")
    with pytest.raises(ab.CommandError, match="/dev/null/x"):
        results.save("/dev/null/x")


def test_a_directory_of_the_command_line_is_read(tmp_path):
    by_command("--scheduler", "minrtt", "--out", str(tmp_path / "out"))
    results = ab.load(tmp_path / "out")
    assert results.digest == ab.run(short(), "minrtt").digest
    assert set(results.timeline["scheduler"]) == set(results.schedulers)


def test_results_of_another_version_are_refused(tmp_path):
    file = tmp_path / "results.json"
    document = json.loads(ab.run(TWO, "minrtt").to_json())
    for wrong, says in [
        (json.dumps({**document, "schema": 99, "anabranch": "9.1.0"}), ["99", "9.1.0", "reads schema 1"]),
        (json.dumps({"a": 1}), ["schema"]),
        (json.dumps({**document, "runs": 1}), ["list of runs", "line"]),
        ("{", ["JSON"]),
    ]:
        file.write_text(wrong)
        with pytest.raises(ab.ResultsError) as caught:
            ab.load(tmp_path)
        assert str(file) in str(caught.value)
        assert all(word in str(caught.value) for word in says), str(caught.value)
    with pytest.raises(ab.ResultsError, match="results.json"):
        ab.load(tmp_path / "nowhere")


def test_other_threads_run_meanwhile():
    count, over = 0, threading.Event()

    def turn():
        nonlocal count
        while not over.is_set():
            count += 1
            over.wait(0.001)

    thread = threading.Thread(target=turn)
    thread.start()
    ab.run(ab.Scenario.load("wifi-lte").set("duration", "20s"), "minrtt", repeat=4)
    over.set()
    thread.join()
    assert count > 20


def test_ctrl_c_keeps_what_is_done():
    code = """
import anabranch as ab, sys, threading, time
s = ab.Scenario.load("wifi-lte").set("duration", "5s")
print("begun", flush=True)
try:
    ab.run(s, ["minrtt", "blest"], repeat=5000)
except ab.Interrupted as stop:
    r = stop.results
    rows = {x: r.runs["scheduler"].count(x) for x in r.schedulers}
    print(rows, stop)
    assert max(rows.values()) - min(rows.values()) <= 2 and min(rows.values()) >= 1
    assert r.digest and r.comparisons["n"][0] == min(rows["minrtt"], rows["blest"])
    sys.exit(7)
"""
    process = subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    threading.Timer(3, process.send_signal, [signal.SIGINT]).start()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 7, output


def test_pages_lists_and_models():
    assert "wait rather than let a slow path block" in ab.explain("blest")
    assert "minrtt" in ab.names("schedulers")["name"]
    assert len(ab.model("rtt-cycle")) >= 1
    swept = ab.model("increment-efficiency")
    assert swept.column_names


def test_papers_and_comparisons(tmp_path):
    done = ab.reproduce("ocps", quick=True, out=tmp_path / "out")
    assert "OCPS" in str(done) and done.document["papers"]
    assert done.report(tmp_path / "page.html").read_text().startswith("<!doctype html>")
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid/two.toml").write_text(ab.Scenario(TWO).to_toml())
    found = ab.compare(["minrtt", "blest"], congestion="cubic", traffic="16 KB", grid=tmp_path / "grid", quick=True)
    assert "blest" in str(found) and found.svg.startswith("<svg") and len(found.table) >= 2


MEASURED = """
scenario = "home.toml"
draws    = 32
keep     = 8

[unsaid.wifi-rate]
key   = "path.wifi.rate"
range = ["2mbit", "40mbit"]
why   = "the access point does not say"

[[anchor]]
metric   = "completion_s"
of       = "single:wifi"
measured = 0.5
unit     = "s"
"""


def test_what_a_testbed_leaves_open_is_inferred(tmp_path):
    home = ab.Scenario({**TWO, "repeat": 1, "traffic": [{"kind": "bulk", "size": "500KB"}]})
    (tmp_path / "home.toml").write_text(home.to_toml())
    (tmp_path / "measured.toml").write_text(MEASURED)
    file, out = tmp_path / "measured.toml", tmp_path / "out"
    found = ab.infer(file, out=out)
    (source,) = found.document
    (unknown,) = source["unknowns"]
    median = float(unknown["median"].removesuffix("mbit"))
    assert 6 < median < 14, "500 KB take half a second over about 9 Mbit/s"
    assert "wifi-rate" in str(found) and "wifi-rate" in found._repr_html_()
    assert len(found.claims) == 0 and (out / "report.html").exists()
    assert json.loads((out / "inference.json").read_text()) == found.document
    assert ab.infer(file, out=out).document == found.document
    with pytest.raises(ab.CommandError, match="8 of 4 testbeds cannot be kept"):
        ab.infer(file, draws=4, keep=8)


def test_the_program_is_looked_for_where_the_variable_says(monkeypatch):
    monkeypatch.setenv("ANABRANCH", "/nonexistent/anabranch")
    with pytest.raises(ab.CommandError, match="cannot run the program `/nonexistent/anabranch`: .*cargo install"):
        ab.command("list", "papers")


def test_ctrl_c_ends_a_reproduction():
    code = """
import anabranch as ab, tempfile
print("begun", flush=True)
try:
    ab.reproduce("blest", out=tempfile.mkdtemp(), repeat=500)
except KeyboardInterrupt:
    print("ended")
"""
    process = subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    threading.Timer(2, process.send_signal, [signal.SIGINT]).start()
    output, _ = process.communicate(timeout=30)
    assert output == "ended\n"
