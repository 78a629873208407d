"""The environment for agents."""

import warnings

import anabranch as ab
import gymnasium
import numpy
import pytest
from gymnasium.utils.env_checker import check_env
from test_run import TWO


def lowest_rtt(observation, paths):
    per_path = observation[: 7 * paths].reshape(paths, 7)
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
