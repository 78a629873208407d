"""The environment for agents."""

import warnings

import anabranch as ab
import gymnasium
import numpy
import pytest
from anabranch.gym import CONNECTION_FACTS, PATH_FACTS, PATH_VALUES
from gymnasium.utils.env_checker import check_env
from test_run import TWO


def lowest_rtt(observation, paths):
    width = len(PATH_VALUES)
    per_path = observation[: width * paths].reshape(paths, width)
    rtt = numpy.where(per_path[:, 0] > 0, numpy.where(per_path[:, 1] > 0, per_path[:, 1], 1e9), numpy.inf)
    return int(rtt.argmin())


def episode(env, policy, seed):
    observation, _ = env.reset(seed=seed)
    total, steps, ended = 0.0, 0, False
    while not ended:
        observation, reward, done, over, info = env.step(policy(observation, 2))
        total, steps, ended = total + reward, steps + 1, done or over
    return total, steps, info


def test_it_passes_the_check():
    env = gymnasium.make("anabranch/Scheduling-v0", scenario=TWO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped, skip_render_check=True)


def test_an_observation_has_any_facts_of_the_table():
    """Those that schedulers in Python read, under the same names."""
    assert {name.removesuffix("_s") for name in PATH_FACTS} == {
        name.removesuffix("_ns") for name in vars(ab.Path) if name[0] != "_" and name != "id"
    }
    options = {"path_values": PATH_FACTS, "connection_values": CONNECTION_FACTS}
    env = gymnasium.make("anabranch/Scheduling-v0", scenario=TWO, **options)
    observation, _ = env.reset(seed=1)
    for _ in range(50):
        observation, *_ = env.step(0)
    seen = dict(zip(PATH_FACTS, observation, strict=False))
    assert seen["mss"] > 1000 and seen["usable"] == 1 and 0.02 < seen["srtt_s"] < 0.2
    of_connection = dict(zip(CONNECTION_FACTS, observation[2 * len(PATH_FACTS) :], strict=True))
    assert of_connection["known_paths"] == 2 and 0 < of_connection["now_s"] < 2
    with pytest.raises(ValueError, match="`srtt` is no fact of a path: there are usable, .*srtt_s"):
        gymnasium.make("anabranch/Scheduling-v0", scenario=TWO, path_values=["srtt"])


def test_a_seed_decides_everything():
    env = gymnasium.make("anabranch/Scheduling-v0", scenario=TWO)
    assert episode(env, lowest_rtt, 3) == episode(env, lowest_rtt, 3)
    assert episode(env, lowest_rtt, 3) != episode(env, lowest_rtt, 4)


def test_the_lowest_rtt_first_is_about_minrtt():
    """Decisions take effect a nanosecond later, so that events differ, but not what they amount to."""
    env = gymnasium.make("anabranch/Scheduling-v0", scenario=TWO)
    acked = numpy.mean([episode(env, lowest_rtt, seed)[2]["acked_bytes"] for seed in range(8)])
    runs = ab.run(TWO, "minrtt", repeat=8, baselines=False).runs
    assert acked * 8 / 2 == pytest.approx(numpy.mean(runs["goodput_bps"]), rel=0.15)


def test_the_sum_of_rewards_is_the_time_lost():
    env = gymnasium.make("anabranch/Scheduling-v0", scenario=TWO)
    total, _, info = episode(env, lowest_rtt, 1)
    assert total == pytest.approx(info["acked_bytes"] * 8 / 30e6 - info["time_s"], abs=0.2)
