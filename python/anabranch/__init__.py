"""Anabranch: Multipath TCP packet schedulers and coupled congestion controls, simulated deterministically.

    import anabranch as ab
    r = ab.run("wifi-lte", schedulers=["minrtt", "blest"], repeat=20)
    r.plot.goodput()
"""

import importlib.util as _util

from . import errors
from ._native import Acked, Event, Path, Round, Window, __version__
from .again import rerun
from .commands import (
    Comparison,
    Inference,
    Page,
    Reproduction,
    command,
    compare,
    explain,
    infer,
    model,
    names,
    reproduce,
)
from .errors import (
    AnabranchError,
    CommandError,
    Diagnostic,
    Interrupted,
    PlugInError,
    ResultsError,
    RunFailed,
    ScenarioError,
    StoreError,
    UnknownKey,
    UnknownName,
    UnknownScheduler,
    WorkerError,
    WrongUnit,
)
from .plugins import CongestionControl, Scheduler
from .results import Results, load
from .running import run, sweep
from .scenario import Scenario
from .store import Store, open_store
from .tables import Table

__all__ = [
    "Acked",
    "AnabranchError",
    "CommandError",
    "Comparison",
    "CongestionControl",
    "Diagnostic",
    "Event",
    "Inference",
    "Interrupted",
    "Page",
    "Path",
    "PlugInError",
    "Reproduction",
    "Results",
    "ResultsError",
    "Round",
    "RunFailed",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "Store",
    "StoreError",
    "Table",
    "UnknownKey",
    "UnknownName",
    "UnknownScheduler",
    "Window",
    "WorkerError",
    "WrongUnit",
    "__version__",
    "command",
    "compare",
    "errors",
    "explain",
    "infer",
    "load",
    "model",
    "names",
    "open_store",
    "reproduce",
    "rerun",
    "run",
    "sweep",
]

if _util.find_spec("gymnasium") is not None:
    import gymnasium as _gymnasium

    _gymnasium.register("anabranch/Scheduling-v0", entry_point="anabranch.gym:Scheduling")
