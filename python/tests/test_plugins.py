"""Schedulers and congestion controls in Python."""

import copy
import traceback

import anabranch as ab
import pytest
from blest import Blest
from test_run import TWO


class MinRtt(ab.Scheduler):
    def schedule(self, round):
        while (path := round.fastest_eligible()) and round.fill(path):
            pass


class Scores(ab.Scheduler):
    """minRTT, with the choice in Python."""

    def schedule(self, round):
        while free := [(p.rtt_or_max_ns, p.id) for p in round.candidates if p.eligible]:
            if not round.fill(min(free)[1]):
                return


class Reno(ab.CongestionControl):
    def on_ack(self, path, ack, paths):
        window = self.windows[path]
        if acked := window.slow_start(ack):
            window.add(acked / window.cwnd)


def digest(scheduler, name="tight-window", **options):
    return ab.run(ab.Scenario.load(name).set("duration", "5s"), scheduler, repeat=2, baselines=False, **options).digest


@pytest.mark.parametrize("name", ["3g-wlan", "tight-window", "wifi-lte"])
def test_a_rule_in_python_is_the_rule_in_rust(name):
    assert digest(Blest(), name) == digest("blest", name)
    assert digest(MinRtt(), name) == digest(Scores(), name) == digest("minrtt", name)


def test_a_congestion_control_in_python_is_the_one_in_rust():
    assert digest("minrtt", "wifi-lte", congestion=Reno()) == digest("minrtt", "wifi-lte", congestion="reno")
    assert digest(MinRtt(), "wifi-lte", congestion=Reno()) == digest("minrtt", "wifi-lte", congestion="reno")


def test_processes_and_order_do_not_matter():
    scenario = ab.Scenario(TWO)
    alone = ab.run(scenario, ["minrtt", Blest()], repeat=4)
    spread = ab.run(scenario, ["minrtt", Blest()], repeat=4, jobs=2)
    assert alone.to_json() == spread.to_json()
    assert alone.schedulers == ["minrtt", "Blest", "single:wifi", "single:lte"]
    assert set(alone.comparisons["a"] + alone.comparisons["b"]) == {"minrtt", "Blest"}
    assert set(alone.timeline["scheduler"]) == set(alone.schedulers)


class Measuring(MinRtt):
    measures_capacity = True
    seen: list = []

    def schedule(self, round):
        super().schedule(round)
        self.seen.extend((p.id, p.capacity, p.capacity_spread, p.least_forward_ns, p.last_sent_ns) for p in round.paths)


class Blind(Measuring):
    measures_capacity = False
    seen: list = []


def test_capacities_are_measured_for_a_scheduler_that_reads_them():
    for one in (Measuring(), Blind()):
        ab.run(ab.Scenario(TWO), one, baselines=False, repeat=1)
    known = [path for path in Measuring.seen if None not in path]
    wifi, lte = ([capacity for id, capacity, *_ in known if id == path][-1] * 8e-6 for path in (0, 1))
    assert 18 < wifi < 20 and 9 < lte < 10
    assert Blind.seen and all(set(values) == {None} for _, *values in Blind.seen)


class Beside(MinRtt):
    measures_capacity = True
    most = 0

    def schedule(self, round):
        super().schedule(round)
        Beside.most = max([Beside.most, *(p.elsewhere_bytes for p in round.paths)])


def test_a_scheduler_sees_what_the_connections_beside_it_have_out():
    ab.run(ab.Scenario(TWO), Beside(), baselines=False, repeat=1)
    assert Beside.most == 0
    three = {**TWO, "traffic": [{"kind": "bulk", "flows": 3}]}
    ab.run(ab.Scenario(three), Beside(), baselines=False, repeat=1)
    assert Beside.most > 10_000


def test_the_object_that_is_given_does_not_change():
    mine = Blest()
    before = copy.copy(mine.__dict__)
    assert digest(mine) == digest(mine) and mine.__dict__ == before


def test_an_exception_ends_the_run_with_its_place():
    class Broken(ab.Scheduler):
        calls = 0

        def schedule(self, round):
            self.calls += 1
            round.fill(0) or round.fill(1)
            if self.calls == 50:
                raise ZeroDivisionError("at last")

    with pytest.raises(ab.PlugInError) as caught:
        ab.run(TWO, Broken(), repeat=3)
    text = str(caught.value)
    assert all(word in text for word in ["`Broken`", "ZeroDivisionError", "at last", "virtual time", "seed 1"]), text
    assert "self.calls == 50" in "".join(traceback.format_exception(caught.value)) or caught.value.__cause__
    frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert frames[-1].name == "schedule"


@pytest.mark.parametrize(
    ("window", "says"), [(lambda: 0, "at least one packet"), (lambda: "much", "much"), (lambda: 1 / 0, "division")]
)
def test_a_window_that_is_none_is_named(window, says):
    class Wrong(Reno):
        def window(self, path):
            return window()

    with pytest.raises(ab.PlugInError, match="congestion control `Wrong`") as caught:
        ab.run(TWO, congestion=Wrong())
    assert says in str(caught.value) + repr(caught.value.__cause__)


def test_names_must_be_free():
    class minrtt(ab.Scheduler):
        pass

    with pytest.raises(ab.PlugInError, match="built-in"):
        ab.run(TWO, minrtt())
    with pytest.raises(ab.PlugInError, match="another object"):
        ab.run(TWO, [MinRtt(), MinRtt()])
    with pytest.raises(ab.PlugInError, match="schedule"):
        ab.run(TWO, ab.Scheduler())


def test_two_of_a_class_differ_by_name():
    one, other = Blest(), Blest()
    other.name, other.scale = "Blest-2", 2.0
    assert ab.run(TWO, [one, other], baselines=False).schedulers == ["Blest", "Blest-2"]


def test_a_round_cannot_be_kept():
    kept = []

    class Keeper(MinRtt):
        def __deepcopy__(self, memo):
            return self

        def schedule(self, round):
            kept[:] = [round, round.paths[0]]
            super().schedule(round)

    ab.run(TWO, Keeper(), baselines=False)
    round, path = kept
    for use in (lambda: round.backlog, lambda: path.cwnd, lambda: round.send_next(0)):
        with pytest.raises(RuntimeError, match="only during the call"):
            use()


def test_optional_methods_are_called():
    seen = {}

    class All(MinRtt):
        def __deepcopy__(self, memo):
            return self

        def seed(self, seed):
            seen["seed"] = seed

        def on_event(self, event, view):
            seen.setdefault(event.kind, (event, view.cause))
            if event.kind == "ack":
                seen["rtt"] = event.acked.rtt_ns
            with pytest.raises(RuntimeError, match="only `schedule`"):
                view.send_next(0)

        def next_wakeup_ns(self):
            return None

        def values(self):
            return "mine", 1.0

    ab.run(TWO, All(), baselines=False)
    assert {"seed", "ack", "data_ack", "path_up", "rtt"} <= set(seen)
    assert seen["ack"][1] == "event" and seen["ack"][0].path in (0, 1)
