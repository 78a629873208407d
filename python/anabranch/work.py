"""What is to be run."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from . import _native
from .again import Kept, kept
from .scenario import Scenario


class Work:
    """What to run; other processes get it as it is."""

    def __init__(self, scenario: Scenario, schedulers: list[Any], congestions: list[Any], baselines: bool, auto: bool):
        self.scenario, self.schedulers, self.congestions = scenario, schedulers, congestions
        self.baselines, self.auto = baselines, auto

    def plan(self) -> _native.Plan:
        checked = self.scenario._checked
        return _native.Plan(checked, self.schedulers, self.congestions, self.baselines, self.auto)

    @property
    def has_objects(self) -> bool:
        return any(not isinstance(one, str) for one in self.schedulers + self.congestions)

    def kept(self) -> list[Kept]:
        """Its objects of Python, as they are now."""
        return [kept(one) for one in self.schedulers + self.congestions if not isinstance(one, str)]

    def inputs(self, objects: list[Kept]) -> _native.Inputs:
        """What its runs are made from, with the objects as :meth:`kept` had them."""
        checked = self.scenario._checked
        return _native.Inputs.of(checked, self.schedulers, self.congestions, self.baselines, self.auto, objects)

    def follow(self, folder: FilePath, packets: int) -> None:
        """Does the first repetition of each row again, and writes its files into ``folder``: so many packets of each."""
        once = self.scenario.set("repeat", 1)
        first = Work(once, self.schedulers, self.congestions, self.baselines, False)
        first.plan().follow(folder, packets)

    def part(self, first: int, count: int) -> Work:
        """The rows that need Python, with `count` seeds from the `first` one on."""
        scenario = self.scenario.set({"seed": self.scenario._checked.seeds[0] + first, "repeat": count})
        schedulers = self.schedulers
        if all(isinstance(one, str) for one in self.congestions):
            schedulers = [one for one in schedulers if not isinstance(one, str)]
        return Work(scenario, schedulers, self.congestions, False, False)

    def built_in(self) -> Work | None:
        """The rows that need none; `None` if there are none."""
        if any(not isinstance(one, str) for one in self.congestions):
            return None
        schedulers = [one for one in self.schedulers if isinstance(one, str)]
        return Work(self.scenario, schedulers, self.congestions, self.baselines, self.auto) if schedulers else None
