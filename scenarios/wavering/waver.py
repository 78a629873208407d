"""Draws the path sets of the frontier's part *wavering*: jitter, rates that step, paths that come and go, policers.

    python3 scenarios/wavering/waver.py            # writes them
    python3 scenarios/wavering/waver.py --check    # fails unless the files are those that it would write

Only `Random.random` is used, whose values are the same in every version of Python.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "forward"))
from draw import Draw, burst, path, rate, wander  # noqa: E402

# The digits of the square root of 2, taken from no run.
SEED = 14142135
KINDS = {"jitter": 6, "steps": 6, "come and go": 6, "policed": 6}


def jitter(draw: Draw, ms: float) -> dict[str, str]:
    """Up to three quarters of the delay, as often reordered as kept."""
    words = [f'spread = "{draw.even(0.1, 0.75) * ms:.1f}ms"']
    words.append(f'distribution = "{draw.one_of("uniform", "normal", "pareto")}"')
    words.append(f'order = "{draw.one_of("kept", "free")}"')
    words.append(f'correlation = "{draw.even(0, 75):.0f}%"')
    return {"jitter": "{ " + ", ".join(words) + " }"}


def presence(draw: Draw, goes: bool) -> dict[str, str]:
    """A path that goes, or one that appears."""
    if goes:
        return {"stop": f'"{draw.even(2, 8) * 1000:.0f}ms"'}
    return {"start": f'"{draw.even(1, 4) * 1000:.0f}ms"'}


def police(draw: Draw, mbit: float) -> dict[str, str]:
    """A contract of a quarter to three quarters of the rate, with 20 to 200 ms of it at once."""
    contract = draw.even(0.25, 0.75) * mbit
    size = max(contract * 1e6 / 8 * draw.log(0.02, 0.2), 6000)
    return {"police": f'{{ rate = {rate(contract)}, burst = "{size:.0f}B" }}'}


def path_set(draw: Draw, kind: str, title: str) -> str:
    """The text of a scenario."""
    names = ["a", "b", "c"][: 3 if kind == "come and go" or draw.often(0.25) else 2]
    paths, bursts, changes = [], [], []
    for name in names:
        mbit, ms, more = draw.log(2, 16), draw.log(8, 120), {}
        chosen = name == "a" or draw.often(0.5)
        if kind == "jitter" and chosen:
            more |= jitter(draw, ms)
        if kind == "steps":
            more["queue"] = f'"{draw.log(40, 400):.0f}KB"'
            if chosen:
                changes.append(wander(draw, name, mbit))
        # Path b stays, so that there is always one.
        if kind == "come and go" and name != "b":
            more |= presence(draw, goes=name == "a")
        if kind == "policed" and chosen:
            more |= police(draw, mbit)
        paths.append(path(name, mbit, ms, **more))
        bursts.append(burst(name, mbit))
    head = f'# Kind: {kind}. Part: wavering.\nname = "{title}, {kind}"\nduration = "10s"\nrepeat = 5\n'
    return "\n".join([head + 'start_jitter = "1s"\n', *paths, *changes, *bursts])


def files() -> dict[str, str]:
    """The files by name."""
    draw = Draw(SEED)
    kinds = [kind for kind, count in KINDS.items() for _ in range(count)]
    named = enumerate(kinds, 1)
    return {f"{n:02}-{kind.replace(' ', '-')}.toml": path_set(draw, kind, f"Wavering {n:02}") for n, kind in named}


def main(arguments: list[str]) -> int:
    wanted = files()
    if arguments == ["--check"]:
        there = {file.name: file.read_text() for file in HERE.glob("*.toml")}
        return 0 if there == wanted else 1
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    for name, text in wanted.items():
        (HERE / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
