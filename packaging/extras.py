"""Installs a wheel with each extra alone, and runs the examples of docs/python.md that need it: `extras.py WHEEL [PYTHON]`."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/python.md"
BLOCK = re.compile(r"(?:<!-- needs: (.*?) -->\n)?```python\n(.*?)```", re.S)
#: What else an extra brings.
CONTAINS = {"dask": {"sweep"}}
EXTRAS = ["", "plot", "frames", "sweep", "dask", "sweep,frames", "dask,frames"]


def examples(extras: set[str]) -> list[str]:
    """The examples that need nothing but ``extras``."""
    brought = extras.union(*(CONTAINS.get(extra, set()) for extra in extras))
    blocks = [({*(needs or "").split(", ")} - {""}, code) for needs, code in BLOCK.findall(PAGE.read_text())]
    return [code for needs, code in blocks if needs <= brought]


def main() -> None:
    wheel, python = Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else sys.executable
    seen: set[str] = set()
    for extra in EXTRAS:
        with tempfile.TemporaryDirectory() as folder:
            codes = examples(set(extra.split(",")) - {""})
            seen.update(codes)
            subprocess.run([python, "-m", "venv", "venv"], cwd=folder, check=True)
            wanted = f"{wheel}[{extra}]" if extra else str(wheel)
            subprocess.run(["venv/bin/pip", "install", "--quiet", wanted], cwd=folder, check=True)
            script = Path(folder) / "examples.py"
            body = "\n".join(codes).replace("\n", "\n    ")
            # Workers of a local cluster import the script.
            script.write_text(f"if __name__ == '__main__':\n    {body}\n")
            subprocess.run(["venv/bin/python", "examples.py"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            print(f"[{extra}]: {len(codes)} examples run", flush=True)
    left = [code for needs, code in BLOCK.findall(PAGE.read_text()) if code not in seen]
    if left:
        sys.exit(f"no extra has run:\n{left[0]}")


if __name__ == "__main__":
    main()
