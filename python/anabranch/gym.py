"""Scheduling as an environment of Gymnasium: ``gymnasium.make("anabranch/Scheduling-v0", scenario="wifi-lte")``."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces
from numpy.typing import NDArray

from . import _native
from .scenario import Scenario, as_scenario

#: Values per path, in the order of the observation.
PATH_VALUES = ("eligible", "srtt_s", "rttvar_s", "cwnd_packets", "in_flight_packets", "loss", "recovering")
#: Values of the connection, which follow those of the paths; in segments.
CONNECTION_VALUES = ("backlog", "outstanding", "window_left", "window")

Observation = NDArray[numpy.float32]


class Scheduling(gymnasium.Env[Observation, numpy.int64]):
    """One transfer of a scenario; a step is one decision about the next segment.

    A decision is due when new data waits, the peer's window admits it, at least two paths may carry data, and one of them
    has room.

    - Observation: for each path :data:`PATH_VALUES`, then :data:`CONNECTION_VALUES`; ``float32``, none below zero.
    - Action: the index of a path, which sends the next segment, or the number of paths: wait for the next acknowledgment,
      write or timer. A path without room waits too.
    - Reward: seconds that the data acknowledged since the last decision needs at the rate of all paths together, less the
      seconds that have passed. So the sum over an episode is the time of the transfer that was lost, negative; what
      raises it raises goodput, or shortens a transfer with an end.
    - The episode terminates when the transfer is done, and is truncated when the scenario's duration is over.

    ``reset(seed=…)`` decides the seed of the run and of all that follow. ``info`` has ``time_s`` and ``acked_bytes``. A decision
    takes effect one nanosecond of virtual time after it is due.
    """

    metadata = {"render_modes": []}

    def __init__(self, scenario: Scenario | str | PathLike[str] | Mapping[str, Any] = "wifi-lte") -> None:
        self.scenario = as_scenario(scenario)
        self.path_names = [str(path["name"]) for path in self.scenario.paths]
        width = _native.Session.width(len(self.path_names))
        self.observation_space = spaces.Box(0.0, numpy.inf, (width,), numpy.float32)
        self.action_space = spaces.Discrete(len(self.path_names) + 1)
        self._session: _native.Session | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._session = _native.Session(self.scenario._checked, int(self.np_random.integers(2**32)))
        return self._observation(), {"time_s": 0.0, "acked_bytes": 0}

    def step(self, action: numpy.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._session is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        reward, done, over, time_s, acked = self._session.step(int(action))
        return self._observation(), reward, done, over, {"time_s": time_s, "acked_bytes": acked}

    def _observation(self) -> Observation:
        assert self._session is not None
        return numpy.array(self._session.observation(), numpy.float32)
