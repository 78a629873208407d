"""Sweeps as data sets, and charts."""

import anabranch as ab
import numpy
import pytest
from blest import Blest
from test_run import TWO


def test_dimensions_are_the_keys():
    keys = {"path.lte.delay": ["20ms", "80ms"], "connection.recv_buffer": [65536, 262144, 1048576]}
    data = ab.sweep(TWO, keys, ["minrtt", Blest()], repeat=2)
    assert dict(data.sizes) == {
        "path.lte.delay": 2,
        "connection.recv_buffer": 3,
        "scheduler": 4,
        "seed": 2,
    }
    assert list(data["connection.recv_buffer"].values) == [65536, 262144, 1048576]
    assert list(data["path.lte.delay.value"].values) == [0.02, 0.08]
    assert data["path.lte.delay.value"].attrs == {"units": "s"}
    assert data.goodput_bps.dims == tuple(data.sizes)
    one = data.goodput_bps.sel({"path.lte.delay": "80ms", "connection.recv_buffer": 65536})
    alone = ab.Scenario(TWO).set({"path.lte.delay": "80ms", "connection.recv_buffer": 65536})
    runs = ab.run(alone, "minrtt", repeat=2, baselines=False).runs
    assert list(one.sel(scheduler="minrtt").values) == runs["goodput_bps"]
    assert not numpy.isnan(one.sel(scheduler="Blest")).any()
    assert data.encoding["results"].runs["cell.path.lte.delay"][0] == "20ms"


def test_congestion_controls_are_a_dimension_if_there_are_several():
    data = ab.sweep(TWO, {"path.wifi.loss": ["0%", "1%"]}, "minrtt", congestion=["cubic", "lia"], repeat=1)
    assert "congestion" in data.goodput_bps.dims
    assert data.goodput_bps.sel(scheduler="minrtt", congestion="lia").notnull().all()


def test_a_sweep_takes_the_place_of_what_was_set():
    scenario = ab.Scenario(TWO).set({"path.lte.delay": "60ms", "duration": "1s"})
    data = ab.sweep(scenario, {"path.lte.delay": ["20ms", "80ms"]}, "minrtt", repeat=1)
    assert data.sizes["path.lte.delay"] == 2 and data.encoding["results"].runs["path.lte.delay"][0] == 0.02
    # The same key by its short name.
    with pytest.raises(ab.ScenarioError, match="`connection.recv_buffer` is both set and swept"):
        ab.sweep(ab.Scenario(TWO).set("recv_buffer", "1MiB"), {"connection.recv_buffer": ["64KiB", "1MiB"]}, "minrtt")


def test_sizes_without_a_unit_are_bytes():
    data = ab.sweep(TWO, {"connection.recv_buffer": [65536, 262144]}, "minrtt", repeat=1)
    assert list(data["connection.recv_buffer.value"].values) == [65536, 262144]
    assert data["connection.recv_buffer.value"].attrs == {"units": "B"}


@pytest.mark.parametrize(
    ("keys", "error", "says"),
    [
        ({}, ab.ScenarioError, "the grid is empty"),
        ({"path.lte.delay": []}, ab.ScenarioError, "`path.lte.delay` has no values"),
        ({"path.lte.dealy": ["1ms"]}, ab.UnknownKey, "dealy"),
        ({"path.lte.delay": ["1ms", "1parsec"]}, ab.WrongUnit, "parsec"),
    ],
)
def test_mistakes_in_a_grid_are_named(keys, error, says):
    with pytest.raises(error, match=says):
        ab.sweep(TWO, keys, "minrtt")


def test_charts_return_axes(tmp_path):
    import matplotlib.pyplot as plt

    results = ab.run(TWO, ["minrtt", "blest"], repeat=3)
    ax = results.plot.goodput()
    assert ax.get_xlabel() == "goodput (Mbit/s)"
    assert [label.get_text() for label in ax.get_yticklabels()] == results.schedulers
    ax.figure.savefig(tmp_path / "goodput.pdf")
    assert b"/Type /Font" in (tmp_path / "goodput.pdf").read_bytes()
    _, given = plt.subplots()
    assert results.plot.timeline("blest", ax=given) is given
    assert results.plot.series("ofo_bytes").get_ylabel() == "ofo_bytes (KiB)"
    assert results.plot.metric("completion_s") if "completion_s" in results.summary["metric"] else True
    plt.close("all")
    for wrong in (
        lambda: results.plot.metric("goodputt"),
        lambda: results.plot.timeline("blst"),
        lambda: results.plot.series("x"),
        lambda: results.plot.timeline("blest", start_s=99),
    ):
        with pytest.raises(ab.AnabranchError, match="goodput|minrtt|cwnd|follow"):
            wrong()
    plt.close("all")


def test_notebooks_show_pictures_and_tables():
    scenario = ab.Scenario(TWO)
    assert scenario._repr_html_().startswith("<svg") and "lte" in scenario._repr_html_()
    results = ab.run(scenario, "minrtt", repeat=2)
    assert "<svg" in results._repr_html_() and "minrtt" in results._repr_html_()
    assert "<th>goodput_bps</th>" in results.runs._repr_html_()
    assert "<pre>" in ab.explain("blest")._repr_html_()


def test_the_seed_is_a_dimension_of_every_sweep():
    with pytest.raises(ab.ScenarioError, match="`seed` is a dimension of every sweep"):
        ab.sweep(TWO, {"seed": [1, 2]})
