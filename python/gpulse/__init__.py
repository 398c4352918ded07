"""What the GPUs of this machine do, and which processes use them.

    import gpulse

    for gpu in gpulse.gpus():
        print(gpu.index, gpu.name, gpu.memory.used / 2**30, "GiB")
        for process in gpu.processes:
            print("   ", process.pid, process.user, process.used_memory)

Values are those of gpulse-metrics(7), by attribute (gpu.memory.used) or by name (gpu["memory.used"]):
bytes, percent, watts, °C, MHz. A value that the GPU or the driver does not have raises Unavailable with
the reason; gpu.get("fan.speed") returns None instead.

No call waits for a GPU longer than three seconds: a GPU that hangs has no values, and the others do.
"""

import os
import threading
from typing import TYPE_CHECKING, Any, List

from ._errors import GpulseError, Unavailable
from ._library import lib as _lib
from ._model import GPU, MIG, Metric, Process, Row, Sample, Session, Watch, gpus, host, is_stuck, metrics, processes, watch

# What most programs do not use is imported when it is first used.
if TYPE_CHECKING:
    from ._events import Event, Events, events
    from ._explain import Estimate, estimate, explain, explain_log
    from ._fit import Trial
    from ._fit_batch import BatchFit, fit_batch
    from ._frame import frame
    from ._measure import GpuUse, Measure, measure
    from ._repeat import Measured, Measurements, Trend, measured
    from ._reserve import Grant, Reservation, pick, reserve
    from ._settings import ChangeFailed, Setting, change, settings
    from ._timeline import mark, span, step
    from ._torch import TorchUse
    from ._usage import Usage

_modules = {
    "_events": ("Event", "Events", "events"),
    "_explain": ("Estimate", "estimate", "explain", "explain_log"),
    "_fit": ("Trial",),
    "_fit_batch": ("BatchFit", "fit_batch"),
    "_frame": ("frame",),
    "_measure": ("GpuUse", "Measure", "measure"),
    "_repeat": ("Measured", "Measurements", "Trend", "measured"),
    "_reserve": ("Grant", "Reservation", "pick", "reserve"),
    "_settings": ("ChangeFailed", "Setting", "change", "settings"),
    "_timeline": ("mark", "span", "step"),
    "_torch": ("TorchUse",),
    "_usage": ("Usage",),
}
# Not during a fork(): in the child, the module would stay locked by a thread that is not there. That holds for what
# this package imports; the import statements of a program have the same problem, as those of all modules.
_importing = threading.RLock()
os.register_at_fork(before=_importing.acquire, after_in_parent=_importing.release, after_in_child=_importing.release)
_module_of = {name: module for module, names in _modules.items() for name in names}

__version__ = _lib.gpulse_version().decode()
__all__ = ["BatchFit", "ChangeFailed", "Estimate", "Event", "Events", "GPU", "GpuUse", "GpulseError", "Grant", "MIG",
           "Measure", "Measured", "Measurements", "Metric", "Process", "Reservation", "Row", "Sample", "Session", "Setting",
           "TorchUse", "Trend", "Trial", "Unavailable", "Usage", "Watch", "change", "estimate", "events", "explain",
           "explain_log", "fit_batch", "frame", "gpus", "host", "is_stuck", "mark", "measure", "measured", "metrics", "pick",
           "processes", "reserve", "settings", "span", "step", "watch"]


if not TYPE_CHECKING: # which would accept any name
    def __getattr__(name: str) -> Any:
        if name not in _module_of:
            raise AttributeError(f"module 'gpulse' has no attribute {name!r}")
        found = getattr(_import(_module_of[name]), name)
        globals()[name] = found
        return found


def _import(module: str) -> Any:
    with _importing:
        from importlib import import_module

        return import_module(f"gpulse.{module}")


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: object) -> None:
    """%load_ext gpulse: the magics %gpulse and %%gpulse."""
    _import("_jupyter").load(shell)
