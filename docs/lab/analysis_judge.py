#!/usr/bin/env python3
"""Every scheduler's run against the analysis of its captures: counts that a capture can show must be equal.

Usage: docs/lab/analysis_judge.py target/debug/anabranch
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SCENARIO = """
name = "a lossy and a slow path"
duration = "20s"
[connection]
scheduler = "minrtt"
[[traffic]]
kind = "bulk"
size = "1MB"
[[path]]
name = "wifi"
rate = "20mbit"
delay = "10ms"
loss = "1%"
[[path]]
name = "lte"
rate = "8mbit"
delay = "50ms"
"""
STREAM = ["delivered_bytes", "duplicate_bytes", "ofo_max_bytes", "subflow_ofo_max_bytes"]
SENT = ["retransmitted_packets", "reinjected_packets"]


def ask(*words):
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def shown(analysis):
    """The same counts, from a capture of both ends of a download."""
    connection = analysis["connections"][0]
    stream = connection["streams"][0]
    ways = [subflow["ways"][0] for subflow in connection["subflows"]]
    queue = stream["out_of_order"]
    values = [stream["delivered_bytes"], stream["duplicate_bytes"], queue["peak_bytes"], queue["subflows_peak_bytes"]]
    sums = [sum((way[kind] or {"packets": 0})["packets"] for way in ways) for kind in ("retransmitted", "reinjected")]
    return dict(zip(STREAM + SENT, values + sums))


def main(program):
    differ = 0
    for scheduler in [entry["name"] for entry in ask(program, "list", "schedulers", "--format", "json")]:
        with tempfile.TemporaryDirectory() as folder:
            scenario, captures = Path(folder) / "scenario.toml", Path(folder) / "captures"
            scenario.write_text(SCENARIO)
            run = ["run", str(scenario), "--scheduler", scheduler, "--repeat", "1", "--pcap", str(captures)]
            metrics = ask(program, *run, "--format", "json")["runs"][0]["metrics"]
            files = sorted(str(file) for file in captures.iterdir() if not file.name.startswith("single-"))
            seen = shown(ask(program, "analyse", *files, "--format", "json"))
        wrong = {name: (metrics[name], value) for name, value in seen.items() if metrics[name] != value}
        differ += bool(wrong)
        print(scheduler, wrong or "equal")
    return differ > 0


sys.exit(main(sys.argv[1]))
