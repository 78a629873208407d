"""What Python costs: decisions of a scheduler in Python, and steps of the environment, per second of wall time.

Run with the package installed: `python python/benches/speed.py`.
"""

import time

import anabranch as ab
import gymnasium


class MinRtt(ab.Scheduler):
    calls = 0

    def schedule(self, round):
        MinRtt.calls += 1
        while (path := round.fastest_eligible()) and round.fill(path):
            pass


def wall(scenario, scheduler):
    begun = time.perf_counter()
    ab.run(scenario, scheduler, repeat=1, baselines=False, jobs=1)
    return time.perf_counter() - begun


def decisions(rounds=3):
    scenario = ab.Scenario.load("wifi-lte").set({"duration": "20s", "traffic.size": "1GB"})
    built_in = min(wall(scenario, "minrtt") for _ in range(rounds))
    ours = min(wall(scenario, MinRtt()) for _ in range(rounds))
    calls = MinRtt.calls / rounds
    print(f"minRTT in Python: {calls / ours:,.0f} calls per second, {(ours - built_in) / calls * 1e6:.2f} µs per call")


def steps():
    scenario = ab.Scenario.load("wifi-lte").set({"duration": "20s", "traffic.size": "1GB"})
    env = gymnasium.make("anabranch/Scheduling-v0", scenario=scenario).unwrapped
    observation, ended, count = env.reset(seed=1)[0], False, 0
    begun = time.perf_counter()
    while not ended:
        observation, _, done, over, _ = env.step(0 if observation[0] else 1)
        count, ended = count + 1, done or over
    print(f"environment: {count / (time.perf_counter() - begun):,.0f} steps per second")


decisions()
steps()
