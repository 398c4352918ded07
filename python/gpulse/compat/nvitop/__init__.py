"""The Python interface of nvitop 1.5.0: devices, processes, snapshots and the collector, as far as its documentation goes.

Differences: a GPU that hangs has no values (NA) instead of blocking; a process that has ended raises
nvitop.host.NoSuchProcess, which is a class of this module, not of psutil; nvitop.host has what nvitop documents, not all
of psutil; Device.cuda follows CUDA_VISIBLE_DEVICES without starting a program that asks CUDA.
"""

from .. import pynvml as libnvml
from ..pynvml import NVMLError
from . import host
from .collector import ResourceMetricCollector, collect_in_background, take_snapshots
from .device import (CudaDevice, Device, GpuProcess, MigDevice, PhysicalDevice, normalize_cuda_visible_devices,
                     parse_cuda_visible_devices)
from .host import HostProcess
from .values import (NA, SIZE_UNITS, UINT_MAX, ULONGLONG_MAX, GiB, KiB, MiB, NaType, NotApplicable, NotApplicableType, PiB,
                     Snapshot, TiB, boolify, bytes2human, command_join, human2bytes, timedelta2human, utilization2string)

__version__ = "1.5.0"
__all__ = ["CudaDevice", "Device", "GiB", "GpuProcess", "HostProcess", "KiB", "MiB", "MigDevice", "NA", "NVMLError",
           "NaType", "NotApplicable", "NotApplicableType", "PhysicalDevice", "PiB", "ResourceMetricCollector",
           "SIZE_UNITS", "Snapshot", "TiB", "UINT_MAX", "ULONGLONG_MAX", "boolify", "bytes2human",
           "collect_in_background", "command_join", "host", "human2bytes", "libnvml", "normalize_cuda_visible_devices",
           "parse_cuda_visible_devices", "take_snapshots", "timedelta2human", "utilization2string"]
