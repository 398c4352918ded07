"""Snapshots of devices and processes, and statistics of them over time."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

import gpulse

from . import host
from .device import CudaDevice, Device, GpuProcess
from .values import GiB, MiB, Snapshot


class SnapshotResult(NamedTuple):
    devices: List[Snapshot]
    gpu_processes: List[Snapshot]


def take_snapshots(devices: Union[Device, Iterable[Device], None] = None, *,
                   gpu_processes: Union[bool, GpuProcess, Iterable[GpuProcess], None] = None) -> SnapshotResult:
    """Of these devices, by default all, and of the processes on them, or of these processes."""
    if devices is None:
        devices = Device.all() if gpu_processes is None or isinstance(gpu_processes, bool) else []
    chosen = [devices] if isinstance(devices, Device) else list(devices)
    if isinstance(gpu_processes, GpuProcess):
        processes = [gpu_processes]
    elif gpu_processes is None or gpu_processes is True:
        processes = [process for device in chosen for process in device.processes().values()]
    else:
        processes = list(gpu_processes or [])
    return SnapshotResult([device.as_snapshot() for device in chosen], GpuProcess.take_snapshots(processes))


# ---- statistics ----

class _Statistic:
    """Mean over time, minimum, maximum and last value of a metric."""

    def __init__(self) -> None:
        self.first = self.time = 0.0
        self.sum, self.min, self.max, self.last = 0.0, math.nan, math.nan, math.nan

    def add(self, value: float, now: float) -> None:
        if math.isnan(value):
            return
        if math.isnan(self.last):
            self.first, self.min, self.max = now, value, value
        else:
            self.sum += (value + self.last) / 2 * (now - self.time)
        self.min, self.max = min(self.min, value), max(self.max, value)
        self.last, self.time = value, now

    def items(self) -> Iterator[Tuple[str, float]]:
        span = self.time - self.first
        yield "mean", self.sum / span if span > 0 else self.last
        yield "min", self.min
        yield "max", self.max
        yield "last", self.last


class _Tag:
    """What was collected since a tag was activated."""

    def __init__(self, tag: str, outer: str) -> None:
        self.tag = tag
        self.name = f"{outer}/{tag}" if outer else tag
        self.reset()

    def reset(self) -> None:
        self.started = time.monotonic()
        self.last_timestamp = math.nan
        self.statistics: Dict[str, _Statistic] = {}

    def add(self, values: Dict[str, Any], now: float) -> None:
        for key, value in values.items():
            self.statistics.setdefault(key, _Statistic()).add(float(value), now)
        self.last_timestamp = time.time()

    def collect(self) -> Dict[str, float]:
        found = {f"{self.name}/{key}/{part}": value for key, statistic in self.statistics.items()
                 for part, value in statistic.items()}
        found[f"{self.name}/duration (s)"] = time.monotonic() - self.started
        found[f"{self.name}/timestamp"] = time.time()
        found[f"{self.name}/last_timestamp"] = self.last_timestamp
        return found


# Of a device: name, method, divisor
_DEVICE = (("memory_used (MiB)", "memory_used", MiB), ("memory_free (MiB)", "memory_free", MiB),
           ("memory_total (MiB)", "memory_total", MiB), ("memory_percent (%)", "memory_percent", 1),
           ("gpu_utilization (%)", "gpu_utilization", 1), ("memory_utilization (%)", "memory_utilization", 1),
           ("fan_speed (%)", "fan_speed", 1), ("temperature (C)", "temperature", 1),
           ("power_usage (W)", "power_usage", 1000))

# Of a process: "host" or its device
_PROCESS_HOST = (("cpu_percent (%)", "cpu_percent", 1), ("host_memory (MiB)", "host_memory", MiB),
                 ("host_memory_percent (%)", "host_memory_percent", 1), ("running_time (min)", "running_time_in_seconds", 60))
_PROCESS_GPU = (("gpu_memory (MiB)", "gpu_memory", MiB), ("gpu_memory_percent (%)", "gpu_memory_percent", 1),
                ("gpu_memory_utilization (%)", "gpu_memory_utilization", 1),
                ("gpu_sm_utilization (%)", "gpu_sm_utilization", 1))


def _values(source: Any, prefix: str, table: Iterable[Tuple[str, str, int]]) -> Dict[str, Any]:
    return {f"{prefix}/{name}": getattr(source, method)() / divisor for name, method, divisor in table}


def _name(device: Device) -> str:
    index = ":".join(map(str, device.index)) if isinstance(device.index, tuple) else str(device.index)
    return f"cuda:{device.cuda_index} (gpu:{index})" if isinstance(device, CudaDevice) else f"gpu:{index}"


class ResourceMetricCollector:
    """Collects metrics of the host, of devices, and of the processes on them that come from root_pids (by default this
    process), while a tag is active: with collector("train"): … collector.collect()."""

    def __init__(self, devices: Optional[Iterable[Device]] = None, *, root_pids: Optional[Iterable[int]] = None,
                 interval: float = 1.0) -> None:
        if not interval > 0:
            raise ValueError("interval must be positive")
        self.interval = interval
        self.devices = Device.all() if devices is None else list(devices)
        self.root_pids = {os.getpid()} if root_pids is None else set(root_pids)
        self._tags: List[_Tag] = []
        self._lock = threading.RLock()
        self._wakes = threading.Condition(self._lock)
        self._thread: Optional[threading.Thread] = None

    # ---- tags ----

    def activate(self, tag: str) -> "ResourceMetricCollector":
        """Also inside of another tag: "train", then "train/batch"."""
        with self._lock:
            if any(active.tag == tag for active in self._tags):
                raise RuntimeError(f'Resource metric collector is already started with tag "{tag}"')
            self._tags.append(_Tag(tag, self._tags[-1].name if self._tags else ""))
            self._take()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="metrics-collector")
                self._thread.start()
        return self

    def deactivate(self, tag: Optional[str] = None) -> "ResourceMetricCollector":
        """Ends this tag and those inside of it; by default the innermost one."""
        with self._lock:
            self._need_tags()
            tags = [active.tag for active in self._tags]
            if tag is not None and tag not in tags:
                raise RuntimeError(f'Resource metric collector has not been started with tag "{tag}".')
            del self._tags[tags.index(tag) if tag is not None else -1:]
            self._wakes.notify_all()
        return self

    start, stop = activate, deactivate

    @contextlib.contextmanager
    def context(self, tag: str) -> Iterator["ResourceMetricCollector"]:
        self.activate(tag)
        try:
            yield self
        finally:
            self.deactivate(tag)

    __call__ = context

    def clear(self, tag: Optional[str] = None) -> None:
        """Forgets what was collected, for this tag or for all."""
        with self._lock:
            for active in self._tags:
                if tag in (None, active.tag):
                    active.reset()

    reset = clear

    def _need_tags(self) -> None:
        if not self._tags:
            raise RuntimeError("Resource metric collector has not been started yet.")

    # ---- values ----

    def take_snapshots(self) -> SnapshotResult:
        return take_snapshots(self.devices, gpu_processes=self._processes())

    def _processes(self) -> List[GpuProcess]:
        found = [process for device in self.devices for process in device.processes().values()]
        wanted = host.descendants(self.root_pids) if found else set()
        return [process for process in found if process.pid in wanted]

    def _read(self) -> Dict[str, Any]:
        memory = host.virtual_memory()
        values: Dict[str, Any] = {
            "host/cpu_percent (%)": host.cpu_percent(), "host/memory_percent (%)": memory.percent,
            "host/swap_percent (%)": host.swap_percent(), "host/memory_used (GiB)": memory.used / GiB}
        for minutes, load in zip((1, 5, 15), host.load_average()):
            values[f"host/load_average (%) ({minutes} min)"] = load
        for device in self.devices:
            with device.oneshot():
                values.update(_values(device, _name(device), _DEVICE))
        for process in self._processes():
            with process.failsafe():
                values.update(_values(process, f"pid:{process.pid}/host", _PROCESS_HOST))
                values.update(_values(process, f"pid:{process.pid}/{_name(process.device)}", _PROCESS_GPU))
        return values

    def _take(self) -> None:
        values, now = self._read(), time.monotonic()
        for active in self._tags:
            active.add(values, now)

    def _run(self) -> None:
        with self._lock:
            while self._tags:
                self._wakes.wait(self.interval)
                if self._tags:
                    with contextlib.suppress(gpulse.GpulseError, LookupError): # no values this time
                        self._take()
            self._thread = None

    def collect(self) -> Dict[str, float]:
        """<tag>/<host, gpu:N or pid:P/…>/<metric (unit)>/<mean, min, max or last>, for the innermost tag."""
        with self._lock:
            self._need_tags()
            self._take()
            return self._tags[-1].collect()

    def daemonize(self, on_collect: Callable[[Dict[str, float]], bool], interval: Optional[float] = None, *,
                  on_start: Optional[Callable[["ResourceMetricCollector"], None]] = None,
                  on_stop: Optional[Callable[["ResourceMetricCollector"], None]] = None, tag: str = "metrics-daemon",
                  start: bool = True) -> threading.Thread:
        """Calls on_collect with what was collected, in each interval, until it returns False."""
        def run() -> None:
            if on_start:
                on_start(self)
            try:
                with self.context(tag):
                    while on_collect(self.collect()):
                        time.sleep(interval or self.interval)
            finally:
                if on_stop:
                    on_stop(self)

        thread = threading.Thread(target=run, name=tag, daemon=True)
        if start:
            thread.start()
        return thread


def collect_in_background(on_collect: Callable[[Dict[str, float]], bool],
                          collector: Optional[ResourceMetricCollector] = None, interval: Optional[float] = None,
                          **options: Any) -> threading.Thread:
    return (collector or ResourceMetricCollector()).daemonize(on_collect, interval, **options)
