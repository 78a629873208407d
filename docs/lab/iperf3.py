#!/usr/bin/env python3
"""A real iperf3 over presets in `anabranch shell`, beside the simulator: goodput of one TCP towards the client, after its first seconds.

docs/lab/iperf3.py BINARY [PRESET…]     as root; prints the table of docs/lab/iperf3.md
"""
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WARMUP, SECONDS, REPEAT = 4, 10, 5
PRESETS = ["dsl", "lte", "3g-2012", "wifi-busy", "starlink"]

SCENARIO = """name = "{preset}"
duration = "{seconds}s"
warmup = "{warmup}s"
seed = {seed}
[connection]
mptcp = false
congestion = "cubic"
[[path]]
name = "a"
preset = "{preset}"
"""


# A session of its own, before others on a busy machine (sched(7), autogroup).
FIRST = ["setsid", "-w", "sh", "-c", 'echo -19 > /proc/self/autogroup; exec "$@"', "sh"]


def real(binary, folder, seed):
    """Mbit/s of iperf3, its retransmissions, and the 99th percentile of the emulation's lateness in milliseconds."""
    server = f"iperf3 -s -1 -p 5201 --logfile {folder}/server-{seed}.log"
    client = f"sleep 0.5; iperf3 -c $ANABRANCH_SERVER -R -J -C cubic -O {WARMUP} -t {SECONDS}"
    options = ["-q", "--no-preflight", "--summary", "s.json", "--server", server]
    command = [binary, "shell", "x.toml", *options, "--", "sh", "-c", client]
    said = subprocess.run(FIRST + command, cwd=folder, capture_output=True, text=True, check=True).stdout
    end = json.loads(said)["end"]
    late = json.loads(Path(folder, "s.json").read_text())["emulation"]["late_p99_s"] * 1e3
    return end["sum_received"]["bits_per_second"] / 1e6, end["sum_sent"]["retransmits"], late


def simulated(binary, folder):
    """Mbit/s of the same in virtual time."""
    command = [binary, "run", "x.toml", "--scheduler", "minrtt", "--no-baselines", "--no-cache", "--format", "json"]
    said = json.loads(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout)
    return said["runs"][0]["metrics"]["goodput_bps"] / 1e6


def mean(values):
    """Mean and half-width of its 95 % interval (t with four degrees of freedom)."""
    return statistics.mean(values), 2.776 * statistics.stdev(values) / len(values) ** 0.5


def main():
    binary, presets = str(Path(sys.argv[1]).resolve()), sys.argv[2:] or PRESETS
    print("| preset | iperf3, Mbit/s | simulator, Mbit/s | difference, % | retransmissions of iperf3 | late at most, 99 %, ms |")
    print("|---|---|---|--:|--:|--:|")
    for preset in presets:
        kernel, virtual, again, late = [], [], [], []
        for seed in range(1, REPEAT + 1):
            with tempfile.TemporaryDirectory() as folder:
                text = SCENARIO.format(preset=preset, seed=seed, seconds=SECONDS, warmup=WARMUP)
                Path(folder, "x.toml").write_text(text)
                rate, retransmitted, behind = real(binary, folder, seed)
                late.append(behind)
                kernel.append(rate)
                again.append(retransmitted)
                virtual.append(simulated(binary, folder))
        (of_kernel, wide), (of_virtual, narrow) = mean(kernel), mean(virtual)
        difference = 100 * (of_kernel / of_virtual - 1)
        print(
            f"| `{preset}` | {of_kernel:.2f} ± {wide:.2f} | {of_virtual:.2f} ± {narrow:.2f} | {difference:+.1f} "
            f"| {statistics.mean(again):.0f} | {max(late):.1f} |",
            flush=True,
        )


main()
