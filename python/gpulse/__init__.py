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
from ._model import GPU, MIG, Metric, Process, Sample, Session, Watch, gpus, host, metrics, processes, watch
from ._library import lib as _lib

__version__ = _lib.gpulse_version().decode()
__all__ = ["GPU", "GpulseError", "MIG", "Metric", "Process", "Sample", "Session", "Unavailable", "Watch", "gpus",
           "host", "metrics", "processes", "watch"]
