"""What a sweep costs by the command, in Python and on Dask: wall time, CPU time, memory and files, side by side.

Run with the package installed: `python python/benches/sweep.py --runs 100000 --command target/dist/anabranch`.
Each way is a process of its own; CPU time and memory are those of it and all its children.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SCENARIO = "wifi-lte"
DELAYS = ["10ms", "20ms", "40ms", "80ms"]
# Without loss all seeds would have the same outcome, and one would be run.
SET = {"traffic.size": "14KB", "duration": "60s", "warmup": "0s", "path.wifi.loss": "1%"}
SCHEDULERS = ["minrtt", "blest"]
ROWS = len(SCHEDULERS) + 2


def by_python(repeat, jobs, folder):
    import anabranch as ab

    s = ab.Scenario.load(SCENARIO).set(SET)
    data = ab.sweep(s, {"path.lte.delay": DELAYS}, SCHEDULERS, repeat=repeat, jobs=jobs, progress=False)
    return data.attrs["digest"]


def by_store(repeat, jobs, folder):
    import anabranch as ab

    s = ab.Scenario.load(SCENARIO).set(SET)
    ab.sweep(
        s, {"path.lte.delay": DELAYS}, SCHEDULERS, repeat=repeat, jobs=jobs, store=folder, lazy=True, progress=False
    )


def by_dask(repeat, jobs, folder):
    import anabranch as ab
    from distributed import Client, LocalCluster

    s = ab.Scenario.load(SCENARIO).set(SET)
    with (
        LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=":0") as workers,
        Client(workers) as client,
    ):
        begun = time.perf_counter()
        ab.sweep(
            s,
            {"path.lte.delay": DELAYS},
            SCHEDULERS,
            repeat=repeat,
            client=client,
            store=folder,
            lazy=True,
            progress=False,
        )
        return f"sweep alone {time.perf_counter() - begun:.2f} s"


WAYS = {"python": by_python, "store": by_store, "dask": by_dask}


def tree(root):
    """The processes that come from `root`, itself included."""
    children = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def resident(process):
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmRSS")), "0 0 kB")
    return int(line.split()[1]) * 1024


def measure(words):
    """Wall time, CPU time and the greatest memory of a command with its children, and its last line."""
    before, begun = os.times(), time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    most, over = 0, threading.Event()

    def watch():
        nonlocal most
        while not over.wait(0.05):
            most = max(most, sum(map(resident, tree(process.pid))))

    thread = threading.Thread(target=watch)
    thread.start()
    output, _ = process.communicate()
    wall, after = time.perf_counter() - begun, os.times()
    over.set()
    thread.join()
    assert process.returncode == 0, words
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu, most, output.strip().splitlines()[-1:]


def size(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--command", help="the program `anabranch`; without it that row is left out")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    given = parser.parse_args()
    repeat = given.runs // (len(DELAYS) * ROWS)
    if given.way:
        print(WAYS[given.way](repeat, given.jobs, given.out) or "")
        return
    words = {
        way: [sys.executable, __file__, "--runs", str(given.runs), "--jobs", str(given.jobs), "--way", way, "--out"]
        for way in WAYS
    }
    if given.command:
        sets = [word for key, value in SET.items() for word in ("--set", f"{key}={value}")]
        sweep = ["--sweep", f"path.lte.delay={','.join(DELAYS)}", "--scheduler", ",".join(SCHEDULERS)]
        options = ["--repeat", str(repeat), "--jobs", str(given.jobs), "--format", "json", "--out"]
        words = {"command": [given.command, "run", SCENARIO, *sets, *sweep, *options], **words}
    print(json.dumps({"runs": repeat * len(DELAYS) * ROWS, "jobs": given.jobs, "load": os.getloadavg()[0]}))
    print(f"{'way':8} {'wall s':>8} {'CPU s':>8} {'MB held':>8} {'MB files':>8}")
    for way, command in words.items():
        folder = tempfile.mkdtemp(prefix="anabranch-")
        wall, cpu, most, said = measure([*command, str(Path(folder) / "out")])
        said = "" if way == "command" else " ".join(said)
        print(f"{way:8} {wall:8.2f} {cpu:8.2f} {most / 1e6:8.0f} {size(folder) / 1e6:8.1f} {said}")
        shutil.rmtree(folder)


# The workers of a local cluster import this file.
if __name__ == "__main__":
    main()
