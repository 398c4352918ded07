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

from ._errors import GpulseError, Unavailable
from ._events import Event, Events, events
from ._explain import Estimate, estimate, explain, explain_log
from ._fit import Trial
from ._fit_batch import BatchFit, fit_batch
from ._frame import frame
from ._library import lib as _lib
from ._measure import GpuUse, Measure, measure
from ._model import GPU, MIG, Metric, Process, Sample, Session, Watch, gpus, host, is_stuck, metrics, processes, watch
from ._repeat import Measured, Measurements, Trend, measured
from ._reserve import Grant, Reservation, pick, reserve
from ._settings import ChangeFailed, Setting, change, settings
from ._torch import TorchUse
from ._usage import Usage

__version__ = _lib.gpulse_version().decode()
__all__ = ["BatchFit", "ChangeFailed", "Estimate", "Event", "Events", "GPU", "GpuUse", "GpulseError", "Grant", "MIG",
           "Measure", "Measured", "Measurements", "Metric", "Process", "Reservation", "Sample", "Session", "Setting",
           "TorchUse", "Trend", "Trial", "Unavailable", "Usage", "Watch", "change", "estimate", "events", "explain",
           "explain_log", "fit_batch", "frame", "gpus", "host", "is_stuck", "measure", "measured", "metrics", "pick",
           "processes", "reserve", "settings", "watch"]


def load_ipython_extension(shell: object) -> None:
    """%load_ext gpulse: the magics %gpulse and %%gpulse."""
    from ._jupyter import load

    load(shell)
