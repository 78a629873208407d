"""Draws the path sets on which the forward schedulers are developed and validated, and prints the digest of each half.

    python3 scenarios/forward/draw.py            # writes development/ and validation/
    python3 scenarios/forward/draw.py --check    # fails unless the files are those that it would write
    python3 scenarios/forward/draw.py 14142136 DIR    # writes another half, of this seed, into DIR; its files and titles name the seed

Only `Random.random` is used, whose values are the same in every version of Python.
"""

import hashlib
import math
import random
import sys
from pathlib import Path

HERE = Path(__file__).parent
# One seed per half, taken from no run: the digits of pi and e.
HALVES = {"development": 31415926, "validation": 27182818}
# Seconds that timelines cover: the longest run and its latest start.
EXTENT = 14.0
BELOW_ONE = 1.0 - 1e-9


class Draw:
    """A stream of random values, in the terms of scenarios."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def even(self, low: float, high: float) -> float:
        return low + (high - low) * self.random()

    def log(self, low: float, high: float) -> float:
        """Evenly in the logarithm, to two significant digits."""
        value = math.exp(self.even(math.log(low), math.log(high)))
        return float(f"{value:.2g}")

    def one_of(self, *values: str) -> str:
        return values[int(self.random() * BELOW_ONE * len(values))]

    def often(self, probability: float) -> bool:
        return self.random() < probability


def rate(mbit: float) -> str:
    return f'"{mbit * 1000:.0f}kbit"'


def path(name: str, mbit: float, ms: float, **more: str) -> str:
    keys = {"name": f'"{name}"', "rate": rate(mbit), "delay": f'"{ms:g}ms"', **more}
    return "[[path]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items()) + "\n"


def burst(name: str, mbit: float) -> str:
    """Other traffic: one part in twenty of the bottleneck, as in the frontier's grid."""
    traffic = f'path = "{name}"\nkind = "udp-onoff"\nrate = {rate(mbit / 5)}\non = "100ms"\noff = "300ms"'
    return "[[cross]]\n" + traffic + "\n"


def connection(draw: Draw) -> str:
    buffer = f'"{draw.log(48, 512):.0f}KiB"'
    return f"[connection]\nsend_buffer = {buffer}\nrecv_buffer = {buffer}\n"


def wander(draw: Draw, name: str, mbit: float) -> str:
    """A rate that is drawn anew, or that goes up and down by factors, every 0.1 to 1 s; within a quarter and four times."""
    step, anew, present = draw.log(0.1, 1.0), draw.often(0.5), mbit
    lines, at = [], step
    while at < EXTENT:
        factor = math.exp(draw.even(-0.5, 0.5))
        present = draw.log(mbit / 4, mbit * 2) if anew else min(max(present * factor, mbit / 4), mbit * 4)
        lines.append(f'[[timeline]]\nat = "{at * 1000:.0f}ms"\nset = "path.{name}.rate"\nvalue = {rate(present)}\n')
        at += step
    return "\n".join(lines)


def path_set(draw: Draw, kind: str, title: str) -> str:
    """The text of a scenario."""
    names = ["a", "b", "c"][: 3 if draw.often(0.25) else 2]
    fastest = (20.0, 200.0) if kind == "fast" else (1.0, 16.0)
    paths, bursts, changes = [], [], []
    for name in names:
        mbit, ms, more = draw.log(*fastest), draw.log(5, 60 if kind == "fast" else 200), {}
        if kind == "loss" and (name == "a" or draw.often(0.5)):
            more["loss"] = f'"{draw.log(0.05, 3):g}%"'
        if kind == "queue" or draw.often(0.2):
            more["queue"] = f'"{draw.log(0.5, 10):g}bdp"'
        if kind == "varying":
            more["queue"] = f'"{draw.log(40, 400):.0f}KB"'
            if name == "a" or draw.often(0.5):
                changes.append(wander(draw, name, mbit))
        if kind == "asymmetric delay":
            more["delay"] = f'{{ down = "{ms:g}ms", up = "{draw.log(5, 200):g}ms" }}'
        paths.append(path(name, mbit, ms, **more))
        bursts.append(burst(name, mbit))
    buffers = [connection(draw)] if kind == "window" or (kind != "fast" and draw.often(0.15)) else []
    jitter = "200ms" if kind == "fast" else "4s" if kind == "varying" else "1s"
    head = f'# Kind: {kind}. Part: drawn.\nname = "{title}, {kind}"\nduration = "10s"\nrepeat = 5\n'
    return "\n".join([head + f'start_jitter = "{jitter}"\n', *buffers, *paths, *changes, *bursts])


KINDS = {"near/far": 7, "loss": 4, "queue": 4, "window": 6, "varying": 7, "fast": 3, "asymmetric delay": 3}


def half(seed: int, title: str = "Drawn", prefix: str = "") -> dict[str, str]:
    """Its files by name."""
    draw = Draw(seed)
    kinds = [kind for kind, count in KINDS.items() for _ in range(count)]
    files = {}
    for n, kind in enumerate(kinds, 1):
        name = f"{prefix}{n:02}-{kind.replace('/', '-').replace(' ', '-')}.toml"
        files[name] = path_set(draw, kind, f"{title} {n:02}")
    return files


def digest(files: dict[str, str]) -> str:
    """SHA-256 of all files, in the order of their names."""
    return hashlib.sha256("".join(files[name] for name in sorted(files)).encode()).hexdigest()


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text)


def fresh(seed: int, folder: Path) -> None:
    files = half(seed, f"Fresh {seed}", f"{seed}-")
    print(f"{seed}: {len(files)} path sets, SHA-256 {digest(files)}")
    write(folder, files)


def main() -> int:
    match sys.argv[1:]:
        case [seed, folder] if seed.isdecimal():
            fresh(int(seed), Path(folder))
            return 0
        case [] | ["--check"]:
            return halves()
        case _:
            sys.exit(__doc__)


def halves() -> int:
    wrong = []
    for name, seed in HALVES.items():
        files, folder = half(seed), HERE / name
        print(f"{name}: {len(files)} path sets, SHA-256 {digest(files)}")
        if "--check" in sys.argv:
            found = {file.name: file.read_text() for file in folder.glob("*.toml")}
            wrong += [name] * (found != files)
            continue
        write(folder, files)
    for name in wrong:
        print(f"{name} is not what is drawn", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
