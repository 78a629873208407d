#!/usr/bin/env python3
"""Instructions per data segment by part of the source, counted by callgrind.

    python3 benches/parts.py target/dist/speed w1

An instruction belongs to the innermost file that it was compiled from, but what libraries and the crate `units` cost where they are inlined
belongs to their caller. The first table adds the files up by purpose. Needs valgrind and addr2line, and a program with line tables.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

# Parts by purpose: the first beginning of a path that fits.
PURPOSES = [
    ("sender, scoreboard", ["engine/src/subflow/sender", "engine/src/sending/acks"]),
    ("scheduler and its view", ["plugin/src/schedule", "plugin/src/path.", "plugin/src/capacity", "engine/src/sending/r", "schedulers"]),
    ("timers, what is to be sent", ["engine/src/subflow/all", "engine/src/subflow/life", "engine/src/sending/timers", "engine/src/deadlines"]),
    ("building segments", ["engine/src/connection/transmit", "engine/src/sending", "engine/src/subflow/segments", "engine/src/session", "wire"]),
    ("receiving", ["engine/src/receiving", "engine/src/subflow/receive", "engine/src/pieces"]),
    ("endpoint", ["engine/src/endpoint", "engine/src/slots", "plugin/src/ensemble", "engine/src/four_tuple"]),
    ("recorder, events", ["engine/src/cx", "trace/src/recorder", "trace/src/event"]),
    ("segments that arrive", ["engine/src/connection", "engine/src/subflow"]),
    ("rest of the engine", ["engine"]),
    ("congestion control", ["congestion", "plugin/src/congestion"]),
    ("event loop and hosts", ["sim"]),
    ("network", ["network"]),
    ("application", ["workload"]),
    ("reordering metrics", ["metrics/src/reorder"]),
    ("meter", ["metrics"]),
    ("digest", ["trace"]),
]


def profile(program, workload):
    """Cost by address of the program, and the number of segments."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "profile")
        ran = subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes", "--dump-line=no", f"--callgrind-out-file={out}"]
            + [program, "--only", workload],
            check=True,
            capture_output=True,
            text=True,
        )
        segments = int(ran.stdout.split()[1])
        return read(out.read_text().splitlines(), pathlib.Path(program).name), segments


def read(lines, program):
    """The own costs of a profile by address, where it lies in `program`, and by object elsewhere."""
    costs, names = collections.Counter(), {}
    here, at, inclusive = "", 0, False
    for line in lines:
        if line.startswith(("ob=", "cob=")):
            kind, _, object_file = line.partition("=")
            # A name is complete once, as `(2) name`, and later `(2)` alone.
            number, _, name = object_file.partition(" ")
            named = names.setdefault(number, name)
            here = named if kind == "ob" else here
        elif line.startswith("calls="):
            inclusive = True
        elif re.match(r"[+*0-9-]", line):
            place, *cost = line.split()
            at = int(place, 16) if place.startswith("0x") else at + (0 if place == "*" else int(place))
            # The line after `calls=` has the cost of what was called.
            if not inclusive and cost:
                costs[at if pathlib.Path(here).name == program else pathlib.Path(here).name] += int(cost[0])
            inclusive = False
    return costs


def sources(program, addresses):
    """The source file of each address."""
    asked = "\n".join(f"{address:#x}" for address in addresses)
    told = subprocess.run(["addr2line", "-a", "-i", "-e", program], input=asked, check=True, capture_output=True, text=True)
    found, address = {}, None
    for line in told.stdout.splitlines():
        if line.startswith("0x"):
            address = int(line, 16)
        elif (own := re.search(r"/crates/([^:]+):", line)) and "/registry/" not in line:
            if found.get(address, "units").startswith("units"):
                found[address] = own[1]
    return found


def purpose(path):
    for name, beginnings in PURPOSES:
        if any(path.startswith(beginning) for beginning in beginnings):
            return name
    return "units"


def main(program, workload):
    costs, segments = profile(program, workload)
    files = sources(program, [place for place in costs if isinstance(place, int)])
    parts, purposes = collections.Counter(), collections.Counter()
    for place, cost in costs.items():
        path = files.get(place) if isinstance(place, int) else None
        parts[path or (place if isinstance(place, str) else "libraries")] += cost
        purposes[purpose(path) if path else "libraries, memory"] += cost
    for table in (purposes, parts):
        for name, cost in table.most_common(60):
            print(f"{cost / segments:8.0f}  {name}")
        print()
    print(f"{sum(costs.values()) / segments:8.0f}  in all, {segments} segments")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
