#!/usr/bin/env python3
"""The pictures and the estimator's table of forward.md, from runs of the simulator. Usage:

docs/lab/forward.py ANABRANCH picture        writes docs/lab/forward.svg: the packets of one transfer, by two schedulers
docs/lab/forward.py ANABRANCH capacity       writes docs/lab/forward-capacity.svg, and prints the table over synthetic traces
docs/lab/forward.py ANABRANCH capacity FILE… prints the table over recorded traces (mahimahi's format)
docs/lab/forward.py ANABRANCH window         prints the table of tight windows
docs/lab/forward.py goals FOLDER [KNOWN]     prints the goals' figures from the frontier.json of `anabranch compare --out FOLDER`, with the rows
                                         that know the true rates from KNOWN, made with --known-rates
docs/lab/forward.py known FOLDER             prints what the true rates change, by application, from a comparison with --known-rates
"""

import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import tomllib
from bisect import bisect_left, bisect_right
from pathlib import Path

DOCS = Path(__file__).parent
# Payload and headers of a full packet: IPv4, TCP with timestamps, Multipath TCP's option.
MSS, HEADERS = 1400, 80
SHARE = MSS / (MSS + HEADERS)
NEAR, FAR, INK, PALE = "#1f6fb4", "#c2571a", "#23272d", "#b9bfc6"

IDEA = """
name = "Frames over a near and a far path"
duration = "5s"
[[path]]
name = "near"
rate = "6mbit"
delay = "10ms"
[[path]]
name = "far"
rate = "6mbit"
delay = "50ms"
[[traffic]]
kind = "frames"
size = 60_000
interval = "80ms"
"""
# The frames that are drawn.
FRAME, SHOWN = 60_000, range(38, 42)

BESIDE = """
name = "{name}"
duration = "30s"
[connection]
mss = {mss}
send_buffer = "4MiB"
recv_buffer = "4MiB"
[[path]]
name = "trace"
trace = {{ down = "{down}", up = "{up}" }}
delay = "20ms"
queue = "{queue}"
[[path]]
name = "steady"
rate = "6mbit"
delay = "40ms"
[[traffic]]
{traffic}
"""


def timelines(anabranch, folder, scenario, schedulers, packets):
    """The packet timeline of one run with each scheduler."""
    (folder / "scenario.toml").write_text(scenario)
    out = folder / "out"
    words = ["run", folder / "scenario.toml", "--scheduler", ",".join(schedulers), "--repeat", "1", "--out", out]
    subprocess.run([anabranch, *words, "--timeline", str(packets)], check=True, stdout=subprocess.DEVNULL)
    read = lambda name: json.loads(next((out / "timeline").glob(f"{name}*.json")).read_text())
    return [read(name) for name in schedulers]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


# ---- pictures ----


class Picture:
    """Panels side by side, as SVG."""

    def __init__(self, width, height, label):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="sans-serif" font-size="11" fill="{INK}" role="img" aria-label="{label}">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        ]

    def text(self, x, y, text, **style):
        style = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{style}>{text}</text>')

    def line(self, points, colour, width=1.0, opacity=1.0):
        at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(
            f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-opacity="{opacity}"/>'
        )

    def dot(self, x, y, colour):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.9" fill="{colour}"/>')

    def panel(self, box, title, x, y):
        """An axis for each of x and y: name, greatest value, values with a mark. Returns the place of a point."""
        left, top, width, height = box
        place = lambda a, b: (left + width * a / x[1], top + height * (1 - b / y[1]))
        self.text(left, top - 8, title, font_weight="bold")
        for at in x[2]:
            self.line([place(at, 0), place(at, y[1])], PALE, 0.5)
            self.text(*place(at, 0 - y[1] * 0.055), f"{at:g}", text_anchor="middle")
        for at in y[2]:
            self.line([place(0, at), place(x[1], at)], PALE, 0.5)
            self.text(left - 5, place(0, at)[1] + 4, f"{at:g}", text_anchor="end")
        self.text(left + width, top + height + 30, x[0], text_anchor="end")
        self.text(left - 34, top - 8, y[0], text_anchor="start")
        return place

    def write(self, file):
        file.write_text("\n".join([*self.parts, "</svg>", ""]))


def idea(anabranch):
    """The packets of four frames: each a line from its sending to its arrival; black, what the application has."""
    with tempfile.TemporaryDirectory() as folder:
        runs = timelines(anabranch, Path(folder), IDEA, ["minrtt", "playahead"], 3000)
    picture = Picture(940, 330, "The packets of four frames by minRTT and by playahead")
    for n, (run, name) in enumerate(zip(runs, ("minrtt", "playahead"))):
        packets = [p for p in run["packets"] if p["data_start"] // FRAME in SHOWN and p["delivered_s"]]
        waits = mean(p["delivered_s"] - p["arrived_s"] for p in packets) * 1000
        begin, first, most = min(p["sent_s"] for p in packets) - 0.01, SHOWN[0] * FRAME, len(SHOWN) * FRAME / 1000
        title = f"{name}: after its arrival a packet waits for {waits:.0f} ms"
        place = picture.panel((52 + n * 465, 40, 410, 235), title, ("ms", 400, range(0, 401, 100)), ("KB", most, range(0, 250, 60)))
        at = lambda packet, key: place((packet[key] - begin) * 1000, (packet["data_end"] - first) / 1000)
        for packet in packets:
            colour = NEAR if run["paths"][packet["path"]] == "near" else FAR
            picture.line([at(packet, "sent_s"), at(packet, "arrived_s")], colour, 0.8, 0.55)
            picture.dot(*at(packet, "arrived_s"), colour)
        picture.line([at(packet, "delivered_s") for packet in sorted(packets, key=lambda p: p["data_end"])], INK, 1.4)
    for n, (colour, text) in enumerate([(NEAR, "near path, 10 ms"), (FAR, "far path, 50 ms"), (INK, "delivered in order")]):
        picture.line([(52 + n * 150, 318), (72 + n * 150, 318)], colour, 2)
        picture.text(78 + n * 150, 322, text)
    picture.write(DOCS / "forward.svg")


# ---- the estimator ----


def steps(_):
    return lambda at: [8, 2, 16, 4, 20, 8][int(at * 2) % 6]


def cellular(rng):
    """An autoregressive process of the rate's logarithm, with a correlation of 1 s."""
    course, value = [], 0.0
    for _ in range(1500):
        value = value * math.exp(-0.02) + rng.gauss(0, 0.6 * math.sqrt(1 - math.exp(-0.04)))
        course.append(10 * math.exp(value - 0.18))
    return lambda at: course[min(int(at / 0.02), len(course) - 1)]


def satellite(rng):
    """Another satellite each 15 s, and 100 ms without any between two."""
    levels = [rng.uniform(8, 40) for _ in range(3)]
    return lambda at: 0.0 if at % 15 < 0.1 and at > 1 else levels[int(at / 15)]


def opportunities(rate):
    """Milliseconds at which 1500 bytes may leave, for 30 s of a rate in Mbit/s."""
    times, credit = [], 0.0
    for ms in range(30_000):
        credit += rate(ms / 1000) / 12
        while credit >= 1:
            times.append(ms + 1)
            credit -= 1
    return times if times[-1] == 30_000 else [*times, 30_000]


def bunched(times, rng):
    """The same capacity in frames of Wi-Fi: all that falls into 4 to 12 ms leaves at their end."""
    ends, at = [], 0
    while at < 30_000:
        at += rng.randint(4, 12)
        ends.append(min(at, 30_000))
    return [ends[bisect_left(ends, time)] for time in times]


def synthetic():
    rng = random.Random(20)
    wifi = opportunities(lambda at: 30 if int(at / 3) % 2 == 0 else 18)
    return {
        "steps": opportunities(steps(rng)),
        "cellular": opportunities(cellular(rng)),
        "Wi-Fi, bunched": bunched(wifi, rng),
        "satellite": opportunities(satellite(rng)),
    }


def estimates(anabranch, times, traffic):
    """The course of the estimate, and of a window per round trip, in Mbit/s of payload: (time, estimate, w/R)."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "down").write_text("\n".join(map(str, times)) + "\n")
        (folder / "up").write_text("\n".join(str(n) for n in range(1, 1001)) + "\n")
        mean = len(times) * 1500 / (times[-1] / 1000)
        queue = f"{max(30, int(mean * 0.1 / 1500))}p"
        text = BESIDE.format(name="trace", mss=MSS, down=folder / "down", up=folder / "up", queue=queue, traffic=traffic(mean))
        run = timelines(anabranch, folder, text, ["playahead"], 400_000)[0]
    decisions, known = run["decisions"], run["decisions"]["path_state"].index("capacity_mbit")
    course = []
    for at, _, _, _, paths, _ in decisions["rows"]:
        _, _, _, srtt, cwnd, _, _, *own = paths[0]
        own = own[0] if own and isinstance(own[0], list) else own
        if srtt and len(own) > known and own[known] is not None:
            course.append((at, own[known], cwnd * MSS * 8 / srtt / 1e6))
    return course


def truth_of(times):
    """Mean capacity in Mbit/s of payload over 200 ms around a time."""
    period = times[-1]

    def truth(at):
        middle = at * 1000
        low, high = max(middle - 100, 0), min(middle + 100, period)
        return (bisect_right(times, high) - bisect_right(times, low)) * 12 * SHARE / (high - low) if high > low else 0.0

    return truth


def judge(course, truth):
    """Median of |estimate − truth| / truth, mean distance by mean truth, and the lag in ms at which the two are most alike."""
    grid = [1 + n / 50 for n in range(int((min(course[-1][0], 30) - 1) * 50))]
    times = [at for at, *_ in course]
    judged = []
    for of in (1, 2):
        held = [course[max(bisect_right(times, at) - 1, 0)][of] for at in grid]
        true = [truth(at) for at in grid]
        relative = statistics.median(abs(a / b - 1) for a, b in zip(held, true) if b > 0)
        mean = sum(abs(a - b) for a, b in zip(held, true)) / sum(true)

        def alike(steps, held=held):
            moved = [truth(at - steps / 50) for at in grid]
            return statistics.correlation(held, moved) if len(set(moved)) > 1 and len(set(held)) > 1 else 0.0

        lag = max(range(0, 51), key=alike) * 20
        judged.append((relative, mean, lag))
    return judged


BULK = ("bulk", lambda _: 'kind = "bulk"')
# Frames that fill 60 % of the trace's mean and of the other path.
FRAMES = ("frames", lambda mean: f'kind = "frames"\nsize = {int((mean + 750_000) * 0.6 / 25)}\ninterval = "40ms"')


def capacity(anabranch, files):
    traces = {Path(f).name: [int(line) for line in Path(f).read_text().split()] for f in files} or synthetic()
    print("| trace | traffic | error, median % | error of the mean % | lag, ms | w/R: median % | of the mean % | lag, ms |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    drawn = {}
    for name, times in traces.items():
        truth = truth_of(times)
        for traffic, text in (BULK, FRAMES):
            course = estimates(anabranch, times, text)
            (a, b, c), (d, e, f) = judge(course, truth)
            print(f"| {name} | {traffic} | {a:.0%} | {b:.0%} | {c} | {d:.0%} | {e:.0%} | {f} |".replace("%", ""))
            if traffic == "frames":
                drawn[name] = (course, truth)
    if not files:
        courses(drawn)


def courses(drawn):
    """Truth and estimate over ten seconds, a panel per trace."""
    picture = Picture(940, 40 + 265 * math.ceil(len(drawn) / 2), "The capacity of a path and its estimate over time")
    for n, (name, (course, truth)) in enumerate(drawn.items()):
        grid = [3 + k / 50 for k in range(501)]
        most = max(truth(at) for at in grid) * 1.25
        step = 10 ** math.floor(math.log10(most / 2))
        ticks = [step * k for k in range(int(most / step) + 1)][:: max(1, int(most / step / 5))]
        box = (52 + n % 2 * 465, 40 + n // 2 * 265, 410, 175)
        place = picture.panel(box, f"{name}, frames", ("s", 10, range(0, 11, 2)), ("Mbit/s", most, ticks))
        picture.line([place(at - 3, truth(at)) for at in grid], INK, 1.2)
        shown = [row for row in course if 3 <= row[0] <= 13]
        picture.line([place(at - 3, min(window, most)) for at, _, window in shown], PALE, 1)
        picture.line([place(at - 3, min(known, most)) for at, known, _ in shown], FAR, 1.4)
    foot = 22 + 265 * math.ceil(len(drawn) / 2)
    for n, (colour, text) in enumerate([(INK, "capacity"), (FAR, "estimate"), (PALE, "a window per round trip")]):
        picture.line([(52 + n * 110, foot), (72 + n * 110, foot)], colour, 2)
        picture.text(78 + n * 110, foot + 4, text)
    picture.write(DOCS / "forward-capacity.svg")


# ---- tight windows ----

TIGHT, FAR_PATH = DOCS.parent.parent / "scenarios" / "frontier" / "22-tight-delay-10.toml", "b"
BUFFERS, TIGHT_BY = (96, 128, 192, 256, 384), ("playahead", "otias", "f2pdps", "stms")


def window(anabranch):
    """Percent of the oracle, and of the bytes on the far path, by the buffers of both ends."""
    print(f"| buffers | {' | '.join(f'`{name}`' for name in TIGHT_BY)} |")
    print("|---|" + "---:|" * len(TIGHT_BY))
    for kib in BUFFERS:
        buffers = [word for end in ("send", "recv") for word in ("--set", f"connection.{end}_buffer={kib}KiB")]
        words = ["run", TIGHT, "--scheduler", ",".join(TIGHT_BY), "--congestion", "cubic", *buffers, "--format", "json"]
        runs = json.loads(subprocess.run([anabranch, *words], check=True, capture_output=True).stdout)["runs"]
        row = [reached([run for run in runs if run["scheduler"] == name]) for name in TIGHT_BY]
        print(f"| {kib} KiB | {' | '.join(row)} |")


def reached(runs):
    ratio = mean(run["metrics"]["oracle_ratio"] for run in runs)
    sent = lambda run: {name: path["sent_bytes"] for name, path in run["paths"].items()}
    far = mean(sent(run)[FAR_PATH] / sum(sent(run).values()) for run in runs)
    return f"{ratio * 100:.1f} ({far * 100:.0f})"


# ---- the goals ----

OWN, SINGLE, TWIN = "playahead", "single:best", "known-rates+"
FIRST_OF = DOCS.parent.parent / "scenarios" / "frontier"


def interval(values):
    """Mean and half a 95 % interval over five seeds (Student's t, 4 degrees of freedom); of other numbers of seeds the normal one."""
    half = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.776}.get(len(values), 1.96) * statistics.stdev(values) / len(values) ** 0.5
    return f"{mean(values) * 100:+.1f} ± {half * 100:.1f}"


def published(cell):
    own = lambda name: name in (OWN, SINGLE) or name.startswith(TWIN) or "capacity=true" in name
    return {entry["scheduler"]: entry["ratios"] for entry in cell["entries"] if not own(entry["scheduler"])}


def chosen_without(rows, seed):
    """The scheduler that is best by the other seeds."""
    return max(rows, key=lambda name: sum(rows[name]) - rows[name][seed])


def read(folder, known):
    """The comparison in a folder, with the rows of another one that know the true rates."""
    one, other = (json.loads((Path(at) / "frontier.json").read_text()) for at in (folder, known or folder))
    key = lambda frontier, cell: (frontier["congestion"], cell["paths"], cell["traffic"])
    twins = {}
    for frontier in other["frontiers"] if known else []:
        for cell in frontier["cells"]:
            twins[key(frontier, cell)] = [e for e in cell["entries"] if e["scheduler"] == TWIN + OWN]
    for frontier in one["frontiers"]:
        whole = all(key(frontier, cell) in twins for cell in frontier["cells"])
        for cell in frontier["cells"] if whole else []:
            cell["entries"] += twins[key(frontier, cell)]
    return one


def goals(folder, known=None):
    """Own mean against that of the best published of each cell, chosen by all seeds, and by the other seeds than the one it counts for."""
    comparison = read(folder, known)
    first = {}
    for file in sorted(FIRST_OF.glob("*.toml")):
        scenario = tomllib.loads(file.read_text())
        first[scenario["name"]] = scenario["path"][0]["name"]
    for frontier in comparison["frontiers"]:
        cells = frontier["cells"]
        print(f"\n{frontier['congestion']}: {len(cells)} cells\n")
        seeds = range(len(cells[0]["entries"][0]["ratios"]))
        rows = [(published(cell), cell) for cell in cells]
        names = [entry["scheduler"] for entry in cells[0]["entries"] if entry["scheduler"] not in rows[0][0]]
        best = [max(map(mean, rows.values())) for rows, _ in rows]
        leader = max(rows[0][0], key=lambda name: sum(mean(published[name]) for published, _ in rows))
        fair = [[rows[chosen_without(rows, seed)][seed] for seed in seeds] for rows, _ in rows]
        print(f"per-cell best {mean(best):.3f}; chosen by the other seeds {mean(map(mean, fair)):.3f}; leader {leader}")
        print(f"the choice by the other seeds is within 2 % of the best in {share(mean(a) >= 0.98 * b for a, b in zip(fair, best))} of cells")
        for name in [name for name in names if name != SINGLE] + [leader]:
            entries = [next(entry for entry in cell["entries"] if entry["scheduler"] == name) for _, cell in rows]
            of = [entry["ratios"] for entry in entries]
            against = lambda other: interval([mean(a[s] - b[s] for a, b in zip(of, other)) for s in seeds])
            top = [max(rows.values(), key=mean) for rows, _ in rows]
            below = [e["against_single"] < 0.975 and c["best_single"] == first.get(c["paths"]) for e, (_, c) in zip(entries, rows)]
            where = [f"{c['paths']}, {c['traffic']} {e['against_single']:.3f}" for is_below, e, (_, c) in zip(below, entries, rows) if is_below]
            near = share(mean(a) >= 0.98 * b for a, b in zip(of, best))
            nearer = share(mean(a) >= 0.98 * mean(b) for a, b in zip(of, fair))
            print(f"{name}: mean {mean(map(mean, of)):.3f}, against the best {against(top)}, against the choice {against(fair)}")
            print(f"  within 2 % of the best {near}, of the choice {nearer}; below the first path alone {share(below)}: {'; '.join(where)}")
        lacking(rows, best)


def alone(cell, scenarios):
    """One connection that shares no bottleneck, but for the bursts of 5 % that all path sets have; no outage, no device's queue."""
    scenario = scenarios[cell["paths"]]
    # A loss of everything is an outage.
    gone = any(change["set"].endswith(".loss") and change["value"] == "100%" for change in scenario.get("timeline", []))
    shared = any({"link", "outage", "device"} & set(path) for path in scenario["path"])
    rival = any(flow["kind"] != "udp-onoff" for flow in scenario.get("cross", []))
    return not shared and not gone and not rival and "traffic" not in scenario and cell["traffic"] != "web"


def known_rates(folder):
    """The mean ratio with the estimate and with the true rates, and the paired difference over the seeds."""
    scenarios = {text["name"]: text for text in (tomllib.loads(file.read_text()) for file in FIRST_OF.glob("*.toml"))}
    for frontier in json.loads((Path(folder) / "frontier.json").read_text())["frontiers"]:
        cells = frontier["cells"]
        groups = {"all": cells, "one connection alone": [cell for cell in cells if alone(cell, scenarios)]}
        for traffic in dict.fromkeys(cell["traffic"] for cell in cells):
            groups[traffic] = [cell for cell in cells if cell["traffic"] == traffic]
            groups[f"{traffic}, alone"] = [cell for cell in groups["one connection alone"] if cell["traffic"] == traffic]
        print(f"\n{frontier['congestion']}\n\n| scheduler | cells | n | plain | with the estimate | with the true rates | difference |")
        print("|---|---|---:|---:|---:|---:|---:|")
        names = {entry["scheduler"] for entry in cells[0]["entries"]}
        for twin in sorted(name for name in names if name.startswith(TWIN)):
            plain = twin.removeprefix(TWIN)
            estimating = f"{plain}(capacity=true)" if f"{plain}(capacity=true)" in names else plain
            for title, group in groups.items():
                if group:
                    print(line_of(title, group, (plain, estimating, twin)))


def line_of(title, cells, names):
    of = [[next(e["ratios"] for e in cell["entries"] if e["scheduler"] == name) for cell in cells] for name in names]
    means = " | ".join(f"{mean(map(mean, ratios)) * 100:.1f}" for ratios in of)
    difference = interval([mean(b[s] - a[s] for a, b in zip(of[1], of[2])) for s in range(len(of[1][0]))])
    return f"| {names[0]} | {title} | {len(cells)} | {means} | {difference} |"


def share(cases):
    return f"{mean(map(float, cases)):.1%}"


def lacking(rows, best):
    """The cells in which more than 2 % of the best are missing, the worst first."""
    print("\n| paths | application | best | playahead | with the true rates | lacks % | best published |")
    print("|---|---|---:|---:|---:|---:|---|")
    table = []
    for (others, cell), most in zip(rows, best):
        of = {entry["scheduler"]: mean(entry["ratios"]) for entry in cell["entries"]}
        lack = 1 - of[OWN] / most if most else 0
        if lack > 0.02:
            twin = f"{of[TWIN + OWN]:.3f}" if TWIN + OWN in of else ""
            name = max(others, key=lambda name: mean(others[name]))
            table.append((lack, f"| {cell['paths']} | {cell['traffic']} | {most:.3f} | {of[OWN]:.3f} | {twin} | {lack * 100:.1f} | {name} |"))
    print("\n".join(row for _, row in sorted(table, reverse=True)))


def main():
    match sys.argv[1:]:
        case ["goals", folder, *known]:
            goals(folder, *known)
        case ["known", folder]:
            known_rates(folder)
        case [anabranch, "picture"]:
            idea(anabranch)
        case [anabranch, "window"]:
            window(anabranch)
        case [anabranch, "capacity", *files]:
            capacity(anabranch, files)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
