"""A progress bar."""

from __future__ import annotations

import sys
import time


class Bar:
    """A progress bar on a terminal's standard error, or in a notebook on standard output: it sets the other on red."""

    def __init__(self, wanted: bool | None = None) -> None:
        notebook = "ipykernel" in sys.modules
        self._shown = wanted if wanted is not None else (notebook or sys.stderr.isatty())
        self._out = sys.stdout if notebook else sys.stderr
        self._begun = time.monotonic()
        self._wrote = 0.0

    def __call__(self, done: int, planned: int) -> None:
        now = time.monotonic()
        passed = now - self._begun
        # Short work needs no bar, and a notebook keeps every line.
        if not self._shown or passed < 0.5 or now - self._wrote < 0.5:
            return
        filled = 30 * done // max(planned, 1)
        left = f", {passed / done * (planned - done):.0f} s left" if done else ""
        self._out.write(f"\r{'█' * filled}{'░' * (30 - filled)} {done} of {planned} runs{left}   ")
        self._out.flush()
        self._wrote = now

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._wrote:
            self._out.write("\r" + " " * 72 + "\r")
            self._out.flush()
