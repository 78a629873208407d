"""A small agent learns to schedule, and is compared with the catalogue on paths that it has not seen.

The policy is linear: it scores each path and waiting, and takes the best. The cross-entropy method finds the weights. Run it with
``python examples/agent.py``; it takes some minutes.
"""

import sys

import anabranch as ab
import gymnasium
import numpy

TRAINING, HELD_OUT, SEEDS = 10, 24, 3
GENERATIONS, POPULATION, ELITE = 8, 16, 4
FEATURES = 5
#: What it observes of each path, and of the connection.
OF_PATH = ["eligible", "srtt_s", "cwnd", "in_flight", "queued", "loss", "recovery", "mss"]
OF_CONNECTION = ["window_left"]


def network(number):
    """Two random paths and a receive buffer, of which the second half of the numbers is held out."""
    random = numpy.random.default_rng(1000 + number)
    path = [
        {
            "name": name,
            "rate": f"{random.uniform(2, 30):.1f}mbit",
            "delay": f"{numpy.exp(random.uniform(numpy.log(5), numpy.log(100))):.0f}ms",
            "loss": f"{random.choice([0, 0.1, 0.5, 1])}%",
        }
        for name in ("a", "b")
    ]
    buffer = int(numpy.exp(random.uniform(numpy.log(32), numpy.log(256)))) * 1024
    connection = {"recv_buffer": buffer, "send_buffer": buffer, "congestion": "cubic"}
    return ab.Scenario({"name": f"network {number}", "duration": "3s", "path": path, "connection": connection})


def policy(weights, observation):
    eligible, srtt, cwnd, in_flight, queued, loss, recovery, mss = observation[:-1].reshape(2, len(OF_PATH)).T
    srtt, load, recovering = numpy.maximum(srtt, 1e-3), in_flight + queued, recovery >= 2
    fast = int(srtt.argmin())
    ratio = srtt / srtt[fast]
    # Segments of the faster path during a round trip of this one, as a part of the window that is left.
    meanwhile = cwnd[fast] * (ratio - 1) / numpy.maximum(observation[-1] / max(mss.min(), 1), 1)
    features = numpy.stack([ratio - 1, numpy.minimum(meanwhile, 20), load / numpy.maximum(cwnd, 1), loss * 10, recovering], 1)
    scores = numpy.where(eligible > 0, features @ weights[:FEATURES], -numpy.inf)
    best = int(scores.argmax())
    # It may only wait for a path that has something in flight.
    waits = scores[best] < weights[FEATURES] and load[1 - best] > 0
    return 2 if waits else best


def acked(env, weights, seed):
    observation, _ = env.reset(seed=seed)
    ended = False
    while not ended:
        observation, _, done, over, info = env.step(policy(weights, observation))
        ended = done or over
    return info["acked_bytes"]


def train(envs, baseline):
    random = numpy.random.default_rng(7)
    mean, spread = numpy.array([-1.0, 0.0, 0.0, 0.0, 0.0, -3.0]), numpy.array([1.0, 1.0, 1.0, 1.0, 1.0, 3.0])
    for generation in range(GENERATIONS):
        candidates = mean + spread * random.standard_normal((POPULATION, FEATURES + 1))
        candidates[0] = mean
        returns = [numpy.mean([acked(env, w, 1) / base for env, base in zip(envs, baseline)]) for w in candidates]
        elite = candidates[numpy.argsort(returns)[-ELITE:]]
        mean, spread = elite.mean(0), elite.std(0) + 0.3 * 0.8**generation
        print(f"generation {generation}: mean goodput {max(returns):.3f} of minRTT's", file=sys.stderr)
    return mean


def catalogue(scenario, seeds, schedulers):
    runs = ab.run(scenario, schedulers, repeat=seeds, baselines=False).runs.to_pydict()
    goodput = {}
    for scheduler, value in zip(runs["scheduler"], runs["goodput_bps"]):
        goodput.setdefault(scheduler, []).append(value)
    return {scheduler: numpy.mean(values) for scheduler, values in goodput.items()}


def main():
    options = {"path_values": OF_PATH, "connection_values": OF_CONNECTION}
    make = lambda number: gymnasium.make("anabranch/Scheduling-v0", scenario=network(number), **options).unwrapped
    minrtt = [catalogue(network(n), 1, ["minrtt"])["minrtt"] * 3 / 8 for n in range(TRAINING)]
    weights = train([make(n) for n in range(TRAINING)], minrtt)
    print("weights", numpy.round(weights, 3).tolist())
    names = ["minrtt", "minrtt+pr", "blest", "blest+or", "ecf", "roundrobin", "otias", "daps", "linux-default"]
    relative = {}
    for number in range(TRAINING, TRAINING + HELD_OUT):
        found = catalogue(network(number), SEEDS, names)
        env = make(number)
        found["agent"] = numpy.mean([acked(env, weights, seed) * 8 / 3 for seed in range(SEEDS)])
        for name, value in found.items():
            relative.setdefault(name, []).append(value / found["minrtt"])
    print(f"{'scheduler':14} goodput over minRTT's, {HELD_OUT} held-out networks: mean ± 95 %, worst")
    for name, values in sorted(relative.items(), key=lambda item: -numpy.mean(item[1])):
        half = 2.07 * numpy.std(values, ddof=1) / numpy.sqrt(len(values))
        print(f"{name:14} {numpy.mean(values):.3f} ± {half:.3f}   {min(values):.3f}")


if __name__ == "__main__":
    main()
