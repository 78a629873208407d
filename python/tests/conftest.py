import os
from pathlib import Path

import matplotlib

# The program that the workspace's tests built, which `ab.command` runs.
_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
os.environ.setdefault("ANABRANCH", str(_TARGET / "debug/anabranch"))

matplotlib.use("agg")
