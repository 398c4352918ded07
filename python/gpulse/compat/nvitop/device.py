"""GPUs, MIG instances and the processes on them."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

from .. import pynvml
from .host import HostProcess, NoSuchProcess
from .values import NA, Snapshot, bytes2human

Index = Union[int, Tuple[int, int]]

_ENVIRONMENT = "CUDA_VISIBLE_DEVICES of the environment"


class MemoryInfo(NamedTuple):
    total: Any = NA
    free: Any = NA
    used: Any = NA


class UtilizationRates(NamedTuple):
    gpu: Any = NA
    memory: Any = NA
    encoder: Any = NA
    decoder: Any = NA


class ClockInfos(NamedTuple):
    graphics: Any = NA
    sm: Any = NA
    memory: Any = NA
    video: Any = NA


class ClockSpeedInfos(NamedTuple):
    current: ClockInfos
    max: ClockInfos


class ThroughputInfo(NamedTuple):
    tx: Any = NA
    rx: Any = NA


# ---- values of the driver ----

def _call(function: str, *arguments: Any) -> Any:
    if not pynvml._references:
        pynvml.nvmlInit()
    return getattr(pynvml, function)(*arguments)


def _query(function: str, *arguments: Any) -> Any:
    """NA if there is no value."""
    try:
        return _call(function, *arguments)
    except pynvml.NVMLError:
        return NA


_SWITCH = {0: "Disabled", 1: "Enabled"}
_COMPUTE_MODES = {0: "Default", 1: "Exclusive Thread", 2: "Prohibited", 3: "Exclusive Process"}

# Method: nvmlDeviceGet…, further arguments, what is made of the value, value if there is none
_METHODS: Dict[str, Tuple[str, Tuple[Any, ...], Optional[Callable[[Any], Any]], Any]] = {
    "uuid": ("UUID", (), None, NA),
    "bus_id": ("PciInfo", (), lambda pci: pci.busId, NA),
    "serial": ("Serial", (), None, NA),
    "memory_info": ("MemoryInfo", (pynvml.nvmlMemory_v2,), lambda m: MemoryInfo(m.total, m.free, m.used), MemoryInfo()),
    "bar1_memory_info": ("BAR1MemoryInfo", (), lambda m: MemoryInfo(m.bar1Total, m.bar1Free, m.bar1Used), MemoryInfo()),
    "encoder_utilization": ("EncoderUtilization", (), lambda pair: pair[0], NA),
    "decoder_utilization": ("DecoderUtilization", (), lambda pair: pair[0], NA),
    "gpu_utilization": ("UtilizationRates", (), lambda rates: rates.gpu, NA),
    "memory_utilization": ("UtilizationRates", (), lambda rates: rates.memory, NA),
    "graphics_clock": ("ClockInfo", (0,), None, NA),
    "sm_clock": ("ClockInfo", (1,), None, NA),
    "memory_clock": ("ClockInfo", (2,), None, NA),
    "video_clock": ("ClockInfo", (3,), None, NA),
    "max_graphics_clock": ("MaxClockInfo", (0,), None, NA),
    "max_sm_clock": ("MaxClockInfo", (1,), None, NA),
    "max_memory_clock": ("MaxClockInfo", (2,), None, NA),
    "max_video_clock": ("MaxClockInfo", (3,), None, NA),
    "fan_speed": ("FanSpeed", (), None, NA),
    "temperature": ("Temperature", (0,), None, NA),
    "power_usage": ("PowerUsage", (), None, NA),
    "power_limit": ("PowerManagementLimit", (), None, NA),
    "pcie_tx_throughput": ("PcieThroughput", (0,), None, NA),
    "pcie_rx_throughput": ("PcieThroughput", (1,), None, NA),
    "display_active": ("DisplayActive", (), _SWITCH.get, NA),
    "display_mode": ("DisplayMode", (), _SWITCH.get, NA),
    "persistence_mode": ("PersistenceMode", (), _SWITCH.get, NA),
    "performance_state": ("PerformanceState", (), "P{}".format, NA),
    "compute_mode": ("ComputeMode", (), _COMPUTE_MODES.get, NA),
    "cuda_compute_capability": ("CudaComputeCapability", (), None, NA),
    "total_volatile_uncorrected_ecc_errors": ("TotalEccErrors", (1, 0), None, NA),
    "mig_mode": ("MigMode", (), lambda modes: _SWITCH[modes[0]], NA),
    "max_mig_device_count": ("MaxMigDeviceCount", (), None, 0),
}


class _Meta(type):
    """Device.cuda is the class of the devices that CUDA sees."""

    @property
    def cuda(cls) -> Any:
        return CudaDevice


class Device(metaclass=_Meta):
    """Device(0), Device(uuid="GPU-…"), Device(bus_id="…"); Device((0, 1)) is a MIG instance."""

    def __new__(cls, index: Union[Index, str, None] = None, *, uuid: Optional[str] = None,
                bus_id: Optional[str] = None) -> "Device":
        if [index, uuid, bus_id].count(None) != 2:
            raise TypeError(f"Device(index=None, uuid=None, bus_id=None) takes 1 non-None arguments but "
                            f"(index, uuid, bus_id) = {(index, uuid, bus_id)} were given")
        uuid = index if isinstance(index, str) else uuid
        if cls is Device:
            cls = MigDevice if isinstance(index, tuple) or (uuid or "").startswith("MIG-") else PhysicalDevice
        self = super().__new__(cls)
        self._find(None if isinstance(index, str) else index, uuid, bus_id)
        return self

    index: Index
    handle: Any
    _lost: str
    _cache: Optional[Dict[str, Any]]

    def _find(self, index: Optional[Index], uuid: Optional[str], bus_id: Optional[str]) -> None:
        self._lost, self._cache = "", None
        self.handle = None
        try:
            if isinstance(index, tuple):
                parent = _call("nvmlDeviceGetHandleByIndex", index[0])
                self.handle = _call("nvmlDeviceGetMigDeviceHandleByIndex", parent, index[1])
            elif index is not None:
                self.index = index
                self.handle = _call("nvmlDeviceGetHandleByIndex", index)
            elif uuid:
                self.handle = _call("nvmlDeviceGetHandleByUUID", uuid)
            else:
                self.handle = _call("nvmlDeviceGetHandleByPciBusId", bus_id)
        except pynvml.NVMLError as error:
            if index is None or error.value not in (10, 15, 27, 999):
                raise
            self._lost = "ERROR: " + ("GPU is Lost" if error.value == 15 else str(error))
            return
        number = _call("nvmlDeviceGetIndex", self.handle)
        self.index = (self.handle._index, number) if self.handle._mig_uuid else number

    # ---- which devices ----

    @classmethod
    def is_available(cls) -> bool:
        return cls.count() > 0

    @classmethod
    def count(cls) -> int:
        return int(_call("nvmlDeviceGetCount"))

    @classmethod
    def all(cls) -> List[Any]:
        return [Device(index) for index in range(cls.count())]

    @classmethod
    def from_indices(cls, indices: Union[int, Iterable[Index], None] = None) -> List[Any]:
        if indices is None:
            return cls.all()
        return [Device(index) for index in ([indices] if isinstance(indices, int) else indices)]

    @staticmethod
    def from_cuda_visible_devices() -> List["CudaDevice"]:
        return CudaDevice.all()

    @staticmethod
    def from_cuda_indices(cuda_indices: Union[int, Iterable[int], None] = None) -> List["CudaDevice"]:
        return CudaDevice.from_indices(cuda_indices)

    @staticmethod
    def parse_cuda_visible_devices(cuda_visible_devices: Optional[str] = _ENVIRONMENT) -> List[Index]:
        return parse_cuda_visible_devices(cuda_visible_devices)

    @staticmethod
    def normalize_cuda_visible_devices(cuda_visible_devices: Optional[str] = _ENVIRONMENT) -> str:
        return normalize_cuda_visible_devices(cuda_visible_devices)

    @staticmethod
    def driver_version() -> Any:
        return _query("nvmlSystemGetDriverVersion")

    @staticmethod
    def cuda_driver_version() -> Any:
        version = _query("nvmlSystemGetCudaDriverVersion")
        return NA if version is NA else f"{version // 1000}.{version % 1000 // 10}"

    max_cuda_version = cuda_driver_version

    # ---- what it is ----

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.index == other.index

    def __hash__(self) -> int:
        return hash(self.index)

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(index={self.index}, name={self.name()!r}, "
                f"total_memory={self.memory_total_human()})")

    @property
    def physical_index(self) -> int:
        return self.index[0] if isinstance(self.index, tuple) else self.index

    @property
    def nvml_index(self) -> Index:
        return self.index

    @property
    def cuda_index(self) -> int:
        return parse_cuda_visible_devices().index(self.index)

    def _value(self, method: str) -> Any:
        if self._cache is not None and method in self._cache:
            return self._cache[method]
        function, arguments, convert, missing = _METHODS[method]
        value = _query("nvmlDeviceGet" + function, self.handle, *arguments) if self.handle else NA
        value = missing if value is NA else convert(value) if convert else value
        if self._cache is not None:
            self._cache[method] = value
        return value

    @contextlib.contextmanager
    def oneshot(self) -> Iterator[None]:
        """In this block, each value is read once."""
        self._cache = {}
        try:
            yield
        finally:
            self._cache = None

    def name(self) -> Any:
        return self._lost or _query("nvmlDeviceGetName", self.handle)

    # ---- memory ----

    def memory_total(self) -> Any:
        return self._value("memory_info").total

    def memory_free(self) -> Any:
        return self._value("memory_info").free

    def memory_used(self) -> Any:
        return self._value("memory_info").used

    def memory_total_human(self) -> str:
        return bytes2human(self.memory_total())

    def memory_free_human(self) -> str:
        return bytes2human(self.memory_free())

    def memory_used_human(self) -> str:
        return bytes2human(self.memory_used())

    def memory_percent(self) -> Any:
        return _percent(self._value("memory_info"))

    def memory_usage(self) -> str:
        info = self._value("memory_info")
        return f"{bytes2human(info.used)} / {bytes2human(info.total)}"

    def bar1_memory_total(self) -> Any:
        return self._value("bar1_memory_info").total

    def bar1_memory_free(self) -> Any:
        return self._value("bar1_memory_info").free

    def bar1_memory_used(self) -> Any:
        return self._value("bar1_memory_info").used

    def bar1_memory_percent(self) -> Any:
        return _percent(self._value("bar1_memory_info"))

    # ---- utilization, clocks, power ----

    def utilization_rates(self) -> UtilizationRates:
        return UtilizationRates(*(self._value(f"{part}_utilization") for part in ("gpu", "memory", "encoder", "decoder")))

    def gpu_percent(self) -> Any:
        return self._value("gpu_utilization")

    def clock_infos(self) -> ClockInfos:
        return ClockInfos(*(self._value(f"{part}_clock") for part in ClockInfos._fields))

    def max_clock_infos(self) -> ClockInfos:
        return ClockInfos(*(self._value(f"max_{part}_clock") for part in ClockInfos._fields))

    clocks, max_clocks = clock_infos, max_clock_infos

    def clock_speed_infos(self) -> ClockSpeedInfos:
        return ClockSpeedInfos(self.clock_infos(), self.max_clock_infos())

    def power_draw(self) -> Any:
        return self._value("power_usage")

    def power_status(self) -> str:
        usage, limit = (NA if value is NA else f"{round(value / 1000)}W"
                        for value in (self._value("power_usage"), self._value("power_limit")))
        return f"{usage} / {limit}"

    def pcie_throughput(self) -> ThroughputInfo:
        return ThroughputInfo(self._value("pcie_tx_throughput"), self._value("pcie_rx_throughput"))

    def pcie_tx_throughput_human(self) -> str:
        return _speed(self._value("pcie_tx_throughput"))

    def pcie_rx_throughput_human(self) -> str:
        return _speed(self._value("pcie_rx_throughput"))

    def current_driver_model(self) -> Any:
        return NA

    driver_model = current_driver_model

    # ---- MIG ----

    def is_mig_device(self) -> bool:
        return isinstance(self.index, tuple)

    def is_mig_mode_enabled(self) -> bool:
        return bool(self._value("mig_mode") == "Enabled")

    def mig_device(self, mig_index: int) -> "MigDevice":
        return MigDevice((self.physical_index, mig_index))

    def mig_devices(self) -> List["MigDevice"]:
        found = []
        for number in range(self._value("max_mig_device_count") if self.is_mig_mode_enabled() else 0):
            with contextlib.suppress(pynvml.NVMLError):
                found.append(self.mig_device(number))
        return found

    def is_leaf_device(self) -> bool:
        return self.is_mig_device() or not self.is_mig_mode_enabled()

    def to_leaf_devices(self) -> List[Any]:
        return [self] if self.is_leaf_device() else list(self.mig_devices())

    # ---- processes, snapshots ----

    def processes(self) -> Dict[int, "GpuProcess"]:
        """By pid. A process that did nothing recently has the utilization 0."""
        found: Dict[int, GpuProcess] = {}
        for kind, function in (("C", "Compute"), ("G", "Graphics")):
            listed: Any = _query(f"nvmlDeviceGet{function}RunningProcesses", self.handle) if self.handle else NA
            for process in listed or []:
                if process.pid in found:
                    found[process.pid]._type += "+" + kind
                    continue
                ids = [NA if number == 0xFFFFFFFF else number
                       for number in (process.gpuInstanceId, process.computeInstanceId)]
                memory = NA if process.usedGpuMemory is None else process.usedGpuMemory
                found[process.pid] = GpuProcess(process.pid, self, gpu_memory=memory, gpu_instance_id=ids[0],
                                                compute_instance_id=ids[1], type=kind)
        if found:
            for sample in _query("nvmlDeviceGetProcessUtilization", self.handle, 0) or []:
                if sample.pid in found:
                    found[sample.pid]._utilization = (sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil)
        return found

    SNAPSHOT_KEYS = ["name", "uuid", "bus_id", "memory_info", "memory_used", "memory_free", "memory_total",
                     "memory_used_human", "memory_free_human", "memory_total_human", "memory_percent", "memory_usage",
                     "utilization_rates", "gpu_utilization", "memory_utilization", "encoder_utilization",
                     "decoder_utilization", "clock_infos", "max_clock_infos", "clock_speed_infos", "sm_clock",
                     "memory_clock", "fan_speed", "temperature", "power_usage", "power_limit", "power_status",
                     "pcie_throughput", "pcie_tx_throughput", "pcie_rx_throughput", "pcie_tx_throughput_human",
                     "pcie_rx_throughput_human", "display_active", "display_mode", "current_driver_model",
                     "persistence_mode", "performance_state", "total_volatile_uncorrected_ecc_errors", "compute_mode",
                     "cuda_compute_capability", "mig_mode"]

    def as_snapshot(self) -> Snapshot:
        with self.oneshot():
            return Snapshot(self, index=self.index, physical_index=self.physical_index,
                            **{key: getattr(self, key)() for key in self.SNAPSHOT_KEYS})


def _percent(info: MemoryInfo) -> Any:
    return round(100.0 * info.used / info.total, 1) if info.total and info.used is not NA else NA


def _speed(kilobytes: Any) -> str:
    return "N/A" if kilobytes is NA else bytes2human(kilobytes << 10) + "/s"


def _method(name: str) -> Callable[[Device], Any]:
    return lambda self: self._value(name)


for _name in _METHODS:
    setattr(Device, _name, _method(_name))


class PhysicalDevice(Device):
    """A GPU."""


class MigDevice(Device):
    """A MIG instance."""

    SNAPSHOT_KEYS = [*Device.SNAPSHOT_KEYS, "gpu_instance_id", "compute_instance_id"]

    @classmethod
    def all(cls) -> List["MigDevice"]:
        return [instance for device in PhysicalDevice.all() for instance in device.mig_devices()]

    @classmethod
    def count(cls) -> int:
        return len(cls.all())

    @property
    def mig_index(self) -> int:
        assert isinstance(self.index, tuple)
        return self.index[1]

    @property
    def parent(self) -> Device:
        return PhysicalDevice(self.physical_index)

    def gpu_instance_id(self) -> Any:
        return _query("nvmlDeviceGetGpuInstanceId", self.handle)

    def compute_instance_id(self) -> Any:
        return _query("nvmlDeviceGetComputeInstanceId", self.handle)


class CudaDevice(Device):
    """A device by its index in CUDA, from CUDA_VISIBLE_DEVICES."""

    _cuda_index: int

    def __new__(cls, cuda_index: Optional[int] = None, *, nvml_index: Optional[Index] = None,
                uuid: Optional[str] = None) -> "CudaDevice":
        visible = parse_cuda_visible_devices()
        index = nvml_index if nvml_index is not None else Device(uuid=uuid).index if uuid else None
        number = cuda_index if cuda_index is not None else visible.index(index) if index in visible else -1
        if not 0 <= number < len(visible):
            raise RuntimeError(f"CUDA Error: invalid device ordinal: {cuda_index}.")
        self: CudaDevice = object.__new__(cls)
        self._cuda_index = number
        self._find(visible[number], None, None)
        return self

    @classmethod
    def count(cls) -> int:
        return len(parse_cuda_visible_devices())

    @classmethod
    def all(cls) -> List["CudaDevice"]:
        return [CudaDevice(number) for number in range(cls.count())]

    @classmethod
    def from_indices(cls, indices: Union[int, Iterable[Any], None] = None) -> List["CudaDevice"]:
        if indices is None:
            return cls.all()
        return [CudaDevice(number) for number in ([indices] if isinstance(indices, int) else indices)]

    @property
    def cuda_index(self) -> int:
        return self._cuda_index

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(cuda_index={self.cuda_index}, nvml_index={self.index}, '
                f'name="{self.name()}", total_memory={self.memory_total_human()})')


def parse_cuda_visible_devices(cuda_visible_devices: Optional[str] = _ENVIRONMENT) -> List[Index]:
    """The devices that CUDA sees, by index; by default with CUDA_VISIBLE_DEVICES of the environment."""
    if cuda_visible_devices is _ENVIRONMENT:
        cuda_visible_devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    devices = list(itertools.takewhile(lambda device: not device._lost, PhysicalDevice.all()))
    instances = [instance for device in devices for instance in device.mig_devices()]
    if cuda_visible_devices is None:
        return [instances[0].index] if instances else [device.index for device in devices]
    found: List[Index] = []
    for word in cuda_visible_devices.split(","):
        word = word.strip()
        if word.isdigit():
            chosen = [device for device in devices if str(device.index) == word]
            if chosen and not chosen[0].is_leaf_device():
                chosen = list(chosen[0].mig_devices()[:1])
        else:
            chosen = [device for device in [*devices, *instances]
                      if word and device.is_leaf_device() and str(device._value("uuid")).startswith(word)]
        if len(chosen) != 1:
            break
        if chosen[0].index in found:
            return []
        found.append(chosen[0].index)
    return found


def normalize_cuda_visible_devices(cuda_visible_devices: Optional[str] = _ENVIRONMENT) -> str:
    return ",".join(Device(index)._value("uuid") for index in parse_cuda_visible_devices(cuda_visible_devices))


# ---- processes ----

_failsafe = threading.local()

# What a process that has ended answers in GpuProcess.failsafe(); NA to the rest.
_FALLBACKS = {"status": "terminated", "cmdline": ["No Such Process"], "command": "No Such Process"}

_HOST_METHODS = ("status", "name", "username", "cmdline", "command", "cpu_percent", "memory_percent", "running_time",
                 "running_time_human", "running_time_in_seconds", "create_time", "memory_info", "ppid", "parent",
                 "children", "num_threads", "send_signal", "terminate", "kill")


class GpuProcess:
    """A process on a device."""

    def __init__(self, pid: Optional[int], device: Device, *, gpu_memory: Any = None, gpu_instance_id: Any = None,
                 compute_instance_id: Any = None, type: Any = None) -> None:
        self.pid = os.getpid() if pid is None else pid
        self.device = device
        self._memory: Any = NA if gpu_memory is None else gpu_memory
        self._ids = tuple(NA if number is None else number for number in (gpu_instance_id, compute_instance_id))
        self._type = type or NA
        self._utilization = (0, 0, 0, 0)
        self.host = HostProcess(self.pid)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GpuProcess) and (self.pid, self.device, self.host) == (other.pid, other.device, other.host)

    def __hash__(self) -> int:
        return hash((self.pid, self.device))

    def __repr__(self) -> str:
        return (f"GpuProcess(pid={self.pid}, gpu_memory={self.gpu_memory_human()}, type={self._type}, "
                f"device={self.device!r}, host={self.host!r})")

    @staticmethod
    @contextlib.contextmanager
    def failsafe() -> Iterator[None]:
        """In this block, a process that has ended returns NA instead of raising NoSuchProcess."""
        before = getattr(_failsafe, "is_on", False)
        _failsafe.is_on = True
        try:
            yield
        finally:
            _failsafe.is_on = before

    def _of_host(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self.host, name)(*arguments)
        except NoSuchProcess:
            if getattr(_failsafe, "is_on", False):
                return _FALLBACKS.get(name, NA)
            raise

    def is_running(self) -> bool:
        return self.host.is_running()

    def host_memory(self) -> Any:
        return self._of_host("rss_memory")

    rss_memory = host_memory

    def host_memory_human(self) -> str:
        return bytes2human(self.host_memory())

    def host_memory_percent(self) -> Any:
        return self._of_host("memory_percent")

    def gpu_memory(self) -> Any:
        return self._memory

    def gpu_memory_human(self) -> str:
        return bytes2human(self._memory)

    def gpu_memory_percent(self) -> Any:
        used, total = self._memory, self.device.memory_total()
        return NA if NA in (used, total) else round(100.0 * used / total, 1)

    def gpu_sm_utilization(self) -> Any:
        return self._utilization[0]

    def gpu_memory_utilization(self) -> Any:
        return self._utilization[1]

    def gpu_encoder_utilization(self) -> Any:
        return self._utilization[2]

    def gpu_decoder_utilization(self) -> Any:
        return self._utilization[3]

    def gpu_instance_id(self) -> Any:
        return self._ids[0]

    def compute_instance_id(self) -> Any:
        return self._ids[1]

    @property
    def type(self) -> Any:
        return self._type

    def as_snapshot(self) -> Snapshot:
        own = {key: getattr(self, key)() for key in (
            "gpu_memory", "gpu_memory_human", "gpu_memory_percent", "gpu_sm_utilization", "gpu_memory_utilization",
            "gpu_encoder_utilization", "gpu_decoder_utilization", "gpu_instance_id", "compute_instance_id")}
        with self.failsafe():
            shared = {key: getattr(self, key)() for key in (
                "name", "username", "cmdline", "command", "status", "is_running", "cpu_percent", "memory_percent",
                "host_memory", "host_memory_human", "running_time", "running_time_human", "running_time_in_seconds")}
        return Snapshot(self, pid=self.pid, device=self.device, type=self._type, host=Snapshot(self.host, **shared),
                        **own, **shared)

    @staticmethod
    def take_snapshots(gpu_processes: Iterable["GpuProcess"], *, failsafe: bool = False) -> List[Snapshot]:
        return [process.as_snapshot() for process in gpu_processes]


def _host_method(name: str) -> Callable[..., Any]:
    return lambda self, *arguments: self._of_host(name, *arguments)


for _name in _HOST_METHODS:
    setattr(GpuProcess, _name, _host_method(_name))
