"""Scheduling as an environment of Gymnasium: ``gymnasium.make("anabranch/Scheduling-v0", scenario="wifi-lte")``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces
from numpy.typing import NDArray

from . import _native
from .scenario import Scenario, as_scenario

#: The facts that an observation may have: those of :class:`anabranch.Path`, and those of :class:`anabranch.Round`. Times are in seconds
#: and end in ``_s`` instead of ``_ns``; a word counts as its place, from 0 on; what is unknown is zero.
PATH_FACTS, CONNECTION_FACTS = map(tuple, _native.facts())
#: Values per path unless others are given, in the order of the observation.
PATH_VALUES = ("eligible", "srtt_s", "rttvar_s", "cwnd", "in_flight", "queued", "loss", "recovery")
#: Values of the connection unless others are given, which follow those of the paths.
CONNECTION_VALUES = ("backlog", "outstanding", "window_left", "send_window")

Observation = NDArray[numpy.float32]


class Scheduling(gymnasium.Env[Observation, numpy.int64]):
    """One transfer of a scenario; a step is one decision about the next segment.

    A decision is due when new data waits, the peer's window admits it, at least two paths may carry data, and one of them
    has room.

    - Observation: for each path ``path_values`` of :data:`PATH_FACTS`, then ``connection_values`` of :data:`CONNECTION_FACTS`;
      ``float32``, none below zero.
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

    def __init__(
        self,
        scenario: Scenario | str | PathLike[str] | Mapping[str, Any] = "wifi-lte",
        *,
        path_values: Sequence[str] = PATH_VALUES,
        connection_values: Sequence[str] = CONNECTION_VALUES,
    ) -> None:
        for kind, values, facts in (
            ("a path", path_values, PATH_FACTS),
            ("a connection", connection_values, CONNECTION_FACTS),
        ):
            for value in values:
                if value not in facts:
                    raise ValueError(f"`{value}` is no fact of {kind}: there are {', '.join(facts)}")
        self._values = list(path_values), list(connection_values)
        self.scenario = as_scenario(scenario)
        self.path_names = [str(path["name"]) for path in self.scenario.paths]
        width = len(self.path_names) * len(path_values) + len(connection_values)
        self.observation_space = spaces.Box(0.0, numpy.inf, (width,), numpy.float32)
        self.action_space = spaces.Discrete(len(self.path_names) + 1)
        self._session: _native.Session | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._session = _native.Session(self.scenario._checked, int(self.np_random.integers(2**32)), *self._values)
        return self._observation(), {"time_s": 0.0, "acked_bytes": 0}

    def step(self, action: numpy.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._session is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        reward, done, over, time_s, acked = self._session.step(int(action))
        return self._observation(), reward, done, over, {"time_s": time_s, "acked_bytes": acked}

    def _observation(self) -> Observation:
        assert self._session is not None
        return numpy.array(self._session.observation(), numpy.float32)
