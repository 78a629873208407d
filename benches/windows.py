#!/usr/bin/env python3
"""CPU time per segment with a window of up to 10⁵ packets, beside that of a small window.

    python3 benches/windows.py target/dist/anabranch [SCHEDULER…]

Every scheduler, and minrtt+pr, over two paths of 1 Gbit/s: loss of 0, 0.01 and 1 %, CUBIC and BBR, with and without an outage of one path, whose
data the other rescues. The one-way delay is 282 ms, and 5 ms for the small window. Fails if a segment takes more than twice as much CPU time,
three times in a row: other programs share the caches.
"""

import json
import os
import subprocess
import sys
import tempfile

LIMIT = 2.0
ATTEMPTS = 3
# CPU seconds after which a run counts as too slow.
PATIENCE = 60
# One-way delay, packets of the first window and of the queue, buffer in bytes, times of the run and of the outage.
WIDE = ("282ms", 10_000, 60_000, 512 << 20, "8s", '["5s", "6s"]')
SMALL = ("5ms", 10, 1_000, 16 << 20, "4s", '["1s", "2s"]')


def scenario(scheduler, congestion, loss, outage, window):
    delay, first, queue, buffer, duration, times = window
    text = f'duration = "{duration}"\n[connection]\nscheduler = "{scheduler}"\ncongestion = "{congestion}"\n'
    text += f'send_buffer = "{buffer}B"\nrecv_buffer = "{buffer}B"\n[tcp]\ninitial_window = {first}\n'
    for name in "ab":
        text += f'[[path]]\nname = "{name}"\nrate = "1gbit"\ndelay = "{delay}"\nloss = "{loss}%"\nqueue = "{queue}p"\n'
        text += f"outage = [{times}]\n" if outage and name == "b" else ""
    return text + '[[traffic]]\nkind = "bulk"\n'


def run(program, text, *options):
    """CPU seconds and data segments of one run; a run that exceeds the patience has no segments."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        words = ["prlimit", f"--cpu={PATIENCE}", program, "run", file.name, "--no-baselines", "--no-cache"]
        words += ["--jobs", "1", "--format", "json", *options]
        child = subprocess.Popen(words, stdout=subprocess.PIPE)
        out = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if os.WIFSIGNALED(status):
        return seconds, 0
    if status:
        sys.exit(f"{text}\nfailed with {status}")
    paths = json.loads(out)["runs"][0]["paths"].values()
    return seconds, sum(path.get("sent_bytes", 0) for path in paths) / 1400


def each(program, text, start):
    """Microseconds of CPU time per segment, without the program's start."""
    seconds, segments = run(program, text)
    return (max(seconds - start, 0) / segments * 1e6 if segments else float("inf")), segments


def main(program, names):
    listed = subprocess.run([program, "list", "schedulers", "--format", "json"], stdout=subprocess.PIPE, check=True).stdout
    names = names or [entry["name"] for entry in json.loads(listed)] + ["minrtt+pr"]
    start = min(run(program, scenario("minrtt", "cubic", 0, False, SMALL), "--duration", "1us")[0] for _ in range(3))
    fine = True
    print(f"{'scheduler':<16} {'control':<8} {'loss':>6} {'outage':<7} {'segments':>9} {'small, µs':>9} {'wide, µs':>9} {'ratio':>7}")
    for cell in [(n, c, l, o) for n in names for c in ("cubic", "bbr") for l in (0, 0.01, 1) for o in (False, True)]:
        for _ in range(ATTEMPTS):
            (small, _), (wide, segments) = (each(program, scenario(*cell, window), start) for window in (SMALL, WIDE))
            if wide <= LIMIT * small:
                break
        slow = wide > LIMIT * small
        fine &= not slow
        name, congestion, loss, outage = cell
        row = f"{name:<16} {congestion:<8} {loss:>5}% {'yes' if outage else 'no':<7} {segments:>9.0f} {small:>9.2f} {wide:>9.2f}"
        print(f"{row} {wide / small if small else float('inf'):>7.2f}{'  SLOW' if slow else ''}", flush=True)
    return fine


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(0 if main(sys.argv[1], sys.argv[2:]) else 1)
