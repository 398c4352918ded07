"""The interface of nvidia-ml-py ("import pynvml", versions from 11.5, where texts are str): the functions that programs use.

Differences: a GPU that hangs raises NVMLError_Timeout after three seconds; a function that the driver does not have raises
NVMLError_NotSupported; the sampling period of the encoder and the decoder is 0, which means unknown. Functions that change
settings, events, vGPUs and units are missing.
"""

from __future__ import annotations

import ctypes as _c
import os as _os
import threading as _threading
import time as _time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

import gpulse as _gpulse
from gpulse import _library
from gpulse._model import GPU as _GPU, MIG as _MIG, Process as _Process, Row as _Row, Sample as _Sample, _find, _payload

_Scalar = Union[int, float, str]

# ---- constants ----

_RETURNS = {
    1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION", 5: "ALREADY_INITIALIZED",
    6: "NOT_FOUND", 7: "INSUFFICIENT_SIZE", 8: "INSUFFICIENT_POWER", 9: "DRIVER_NOT_LOADED", 10: "TIMEOUT",
    11: "IRQ_ISSUE", 12: "LIBRARY_NOT_FOUND", 13: "FUNCTION_NOT_FOUND", 14: "CORRUPTED_INFOROM", 15: "GPU_IS_LOST",
    16: "RESET_REQUIRED", 17: "OPERATING_SYSTEM", 18: "LIB_RM_VERSION_MISMATCH", 19: "IN_USE", 20: "MEMORY",
    21: "NO_DATA", 22: "VGPU_ECC_NOT_SUPPORTED", 23: "INSUFFICIENT_RESOURCES", 24: "FREQ_NOT_SUPPORTED",
    25: "ARGUMENT_VERSION_MISMATCH", 26: "DEPRECATED", 27: "NOT_READY", 28: "GPU_NOT_FOUND", 29: "INVALID_STATE",
    999: "UNKNOWN",
}

# Where the driver's text is not the name in words.
_TEXTS = {
    4: "Insufficient Permissions", 8: "Insufficient External Power", 11: "Interrupt Request Issue",
    12: "NVML Shared Library Not Found", 14: "Corrupted infoROM", 15: "GPU is lost", 16: "GPU requires restart",
    17: "The operating system has blocked the request.", 18: "RM has detected an NVML/RM version mismatch.",
    19: "In use by another client", 20: "Insufficient Memory", 21: "No data", 22: "ECC is not supported on the vGPU",
    24: "Frequency Not Supported", 28: "No supported GPUs were found", 999: "Unknown Error",
}

# Prefix: names in the order of their values, which begin at 0; "-" has no name.
_ORDERED = {
    "NVML_FEATURE": "DISABLED ENABLED",
    "NVML_DEVICE_MIG": "DISABLE ENABLE",
    "NVML_TEMPERATURE": "GPU COUNT",
    "NVML_TEMPERATURE_THRESHOLD":
        "SHUTDOWN SLOWDOWN MEM_MAX GPU_MAX ACOUSTIC_MIN ACOUSTIC_CURR ACOUSTIC_MAX GPS_CURR COUNT",
    "NVML_CLOCK": "GRAPHICS SM MEM VIDEO COUNT",
    "NVML_CLOCK_ID": "CURRENT APP_CLOCK_TARGET APP_CLOCK_DEFAULT CUSTOMER_BOOST_MAX COUNT",
    "NVML_PCIE_UTIL": "TX_BYTES RX_BYTES COUNT",
    "NVML_MEMORY_ERROR_TYPE": "CORRECTED UNCORRECTED COUNT",
    "NVML_MEMORY_LOCATION":
        "L1_CACHE L2_CACHE DEVICE_MEMORY REGISTER_FILE TEXTURE_MEMORY TEXTURE_SHM CBU SRAM COUNT",
    "NVML_COMPUTEMODE": "DEFAULT EXCLUSIVE_THREAD PROHIBITED EXCLUSIVE_PROCESS COUNT",
    "NVML_BRAND": "UNKNOWN QUADRO TESLA NVS GRID GEFORCE TITAN NVIDIA_VAPPS NVIDIA_VPC NVIDIA_VCS NVIDIA_VWS "
                  "NVIDIA_CLOUD_GAMING QUADRO_RTX NVIDIA_RTX NVIDIA GEFORCE_RTX TITAN_RTX COUNT",
    "NVML_DEVICE_ARCH": "- - KEPLER MAXWELL PASCAL VOLTA TURING AMPERE ADA HOPPER BLACKWELL",
    "NVML_PSTATE": " ".join(map(str, range(16))),
    "NVML_GPU_VIRTUALIZATION_MODE": "NONE PASSTHROUGH VGPU HOST_VGPU HOST_VSGA",
    "NVML_VALUE_TYPE": "DOUBLE UNSIGNED_INT UNSIGNED_LONG UNSIGNED_LONG_LONG SIGNED_LONG_LONG",
}

_EVENT_REASONS = ("GpuIdle", "UserDefinedClocks", "SwPowerCap", "HwSlowdown", "SyncBoost", "SwThermalSlowdown",
                  "HwThermalSlowdown", "HwPowerBrakeSlowdown", "DisplayClockSetting")

NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_INSTANT = 185, 186

# Fields of nvmlDeviceGetFieldValues(): number, metric, factor to the unit of the field. Scopes have names below.
_FIELDS: Dict[str, Tuple[int, str, int]] = {
    "MEMORY_TEMP": (82, "temperature.memory", 1),
    "TOTAL_ENERGY_CONSUMPTION": (83, "energy.consumption", 1000),
    "ECC_CURRENT": (1, "ecc.mode.current", 1),
    "ECC_PENDING": (2, "ecc.mode.pending", 1),
    "ECC_SBE_VOL_TOTAL": (3, "ecc.errors.corrected.volatile.total", 1),
    "ECC_DBE_VOL_TOTAL": (4, "ecc.errors.uncorrected.volatile.total", 1),
    "ECC_SBE_AGG_TOTAL": (5, "ecc.errors.corrected.aggregate.total", 1),
    "ECC_DBE_AGG_TOTAL": (6, "ecc.errors.uncorrected.aggregate.total", 1),
    "NVLINK_LINK_COUNT": (91, "nvlink.count", 1),
    "PCIE_REPLAY_COUNTER": (94, "pcie.replay_counter", 1),
    "PCIE_REPLAY_ROLLOVER_COUNTER": (95, "pcie.replay_rollover_counter", 1),
    "REMAPPED_COR": (142, "remapped_rows.correctable", 1),
    "REMAPPED_UNC": (143, "remapped_rows.uncorrectable", 1),
    "REMAPPED_PENDING": (144, "remapped_rows.pending", 1),
    "REMAPPED_FAILURE": (145, "remapped_rows.failure", 1),
    "POWER_AVERAGE": (NVML_FI_DEV_POWER_AVERAGE, "power.draw.average", 1000),
    "POWER_INSTANT": (NVML_FI_DEV_POWER_INSTANT, "power.draw.instant", 1000),
    "POWER_MIN_LIMIT": (187, "power.min_limit", 1000),
    "POWER_MAX_LIMIT": (188, "power.max_limit", 1000),
    "POWER_DEFAULT_LIMIT": (189, "power.default_limit", 1000),
    "POWER_CURRENT_LIMIT": (190, "enforced.power.limit", 1000),
    "POWER_REQUESTED_LIMIT": (192, "power.limit", 1000),
}


def _constants() -> Iterator[Tuple[str, int]]:
    for prefix, names in _ORDERED.items():
        for value, name in enumerate(names.split()):
            if name != "-":
                yield f"{prefix}_{name}", value
    for value, name in _RETURNS.items():
        yield f"NVML_ERROR_{name}", value
    for old in ("nvmlClocksThrottleReason", "nvmlClocksEventReason"):
        for bit, name in enumerate(_EVENT_REASONS):
            yield old + name, 1 << bit
        yield old + "ApplicationsClocksSetting", 2
        yield old + "None", 0
        yield old + "All", (1 << len(_EVENT_REASONS)) - 1
    for name, (number, _, _) in _FIELDS.items():
        yield f"NVML_FI_DEV_{name}", number


globals().update(_constants())

NVML_SUCCESS = 0
NVML_POWER_SCOPE_GPU, NVML_POWER_SCOPE_MODULE, NVML_POWER_SCOPE_MEMORY = 0, 1, 2
NVML_SINGLE_BIT_ECC, NVML_DOUBLE_BIT_ECC = 0, 1
NVML_VOLATILE_ECC, NVML_AGGREGATE_ECC = 0, 1
NVML_MEMORY_LOCATION_DRAM = 2
NVML_BRAND_NVIDIA_VGAMING = 11
NVML_DEVICE_ARCH_UNKNOWN = 0xFFFFFFFF
NVML_PSTATE_UNKNOWN = 32
NVML_INIT_FLAG_NO_GPUS, NVML_INIT_FLAG_NO_ATTACH = 1, 2
NVML_NVLINK_MAX_LINKS = 18
NVML_DEVICE_NAME_BUFFER_SIZE = 64
NVML_DEVICE_NAME_V2_BUFFER_SIZE = NVML_DEVICE_UUID_V2_BUFFER_SIZE = 96
NVML_DEVICE_UUID_BUFFER_SIZE = NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE = NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE = 80
NVML_VALUE_NOT_AVAILABLE_ulonglong = _c.c_ulonglong(-1)
NVML_VALUE_NOT_AVAILABLE_uint = _c.c_uint(-1)
nvmlMemory_v2 = 0x2000028


# ---- errors ----

class NVMLError(Exception):
    """NVMLError(3) is an NVMLError_NotSupported."""

    value: int = 999
    _classes: Dict[int, Type["NVMLError"]] = {}

    def __new__(cls, value: Optional[int] = None) -> "NVMLError":
        if value is None:
            value = cls.value
        self = super().__new__(cls._classes.get(value, cls) if cls is NVMLError else cls)
        self.value = value
        return self

    def __str__(self) -> str:
        return nvmlErrorString(self.value)


def nvmlErrorString(result: int) -> str:
    if result == NVML_SUCCESS:
        return "Success"
    if result in _TEXTS:
        return _TEXTS[result]
    return _RETURNS[result].replace("_", " ").title() if result in _RETURNS else _TEXTS[999]


for _code, _name in _RETURNS.items():
    _class = "NVMLError_" + _name.title().replace("_", "")
    NVMLError._classes[_code] = globals()[_class] = type(_class, (NVMLError,), {"value": _code})


def nvmlExceptionClass(nvmlErrorCode: int) -> Type[NVMLError]:
    if nvmlErrorCode not in NVMLError._classes:
        raise ValueError(f"nvmlErrorCode {nvmlErrorCode} is not valid")
    return NVMLError._classes[nvmlErrorCode]


_KINDS = {"no-device": 6, "permission": 4, "timeout": 10, "memory": 20, "usage": 2}
# GPULSE_STALE, UNSUPPORTED, NO_PERMISSION, LOST, TIMEOUT, ASLEEP, RELEASED
_STATUSES = {_library.STALE: 10, 3: 3, 4: 4, 5: 15, 6: 10, 7: 27, 8: 27}


def nvml_error(error: _gpulse.GpulseError) -> NVMLError:
    """The same error as nvidia-ml-py reports it."""
    return NVMLError(error.driver_code or _KINDS.get(error.kind, 999))


# ---- handles and sessions ----

class c_nvmlDevice_t:
    """A GPU by its index, or a MIG instance of it by its UUID."""

    def __init__(self, index: int, mig_uuid: str = "") -> None:
        self._index = index
        self._mig_uuid = mig_uuid

    def __eq__(self, other: object) -> bool:
        return isinstance(other, c_nvmlDevice_t) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._index, self._mig_uuid))


_sessions: Dict[Tuple[str, Optional[int], bool], _gpulse.Session] = {}
_SESSIONS_MOST = 256 # each has a thread and a file or two
_references = 0
_lock = _threading.RLock() # a signal handler may call these functions


def _after_fork() -> None:
    global _lock
    _lock = _threading.RLock()


_os.register_at_fork(after_in_child=_after_fork)


def _sample(fields: str, index: Optional[int] = None, mig: bool = False) -> _Sample:
    """Reads the host, or one GPU. There is a session for each GPU, so that a GPU that hangs delays no other one."""
    if not _references:
        raise NVMLError(1)
    key = (fields, index, mig)
    session = None
    try:
        with _lock:
            session = _sessions.get(key)
        if session is None:
            session = _gpulse.Session(fields, gpus=None if index is None else str(index), mig=mig)
            with _lock:
                session = _sessions.setdefault(key, session)
                while len(_sessions) > _SESSIONS_MOST:
                    del _sessions[next(iter(_sessions))] # the oldest
        return session.sample()
    except _gpulse.GpulseError as error:
        if session is not None and session._is_closed: # by nvmlShutdown() in another thread
            raise NVMLError(1) from error
        raise nvml_error(error) from error


def _value(sample: _Sample, name: str, row: int) -> _Scalar:
    metric = _find(name)
    value = sample._get(metric, row)
    if value.status != _library.OK:
        raise NVMLError(_STATUSES.get(value.status, 999))
    return _payload(metric, value)


def _get(row: _Row, name: str) -> _Scalar:
    return _value(row._sample, name, row._row)


def _int(row: _Row, name: str) -> int:
    return _number(_get(row, name))


def _row(handle: Any, fields: str) -> _GPU:
    """The GPU or MIG instance, read now."""
    if not isinstance(handle, c_nvmlDevice_t):
        raise NVMLError(1 if not _references else 2)
    if not handle._mig_uuid:
        return _sample(fields, handle._index).gpus[0]
    for row in _sample("uuid,mig.index," + fields, handle._index, True).gpus:
        if isinstance(row, _MIG) and row.get("uuid") == handle._mig_uuid:
            return row
    raise NVMLError(6)


def _entries(handle: Any, *names: str) -> List[Tuple[_Scalar, ...]]:
    """The entries of a list of the GPU: these values of each."""
    row = _row(handle, ",".join(("uuid", *names)))
    _get(row, "uuid")
    sample = row._sample
    return [tuple(_value(sample, name, entry) for name in names)
            for entry in range(sample.rows(_find(names[0]).scope))]


# ---- structures ----

def _struct(name: str, fields: str, form: str = "{}", **forms: str) -> Type[Any]:
    """A class with these attributes, which is printed as nvidia-ml-py prints its structures."""
    names = fields.split()

    def init(self: Any, *values: object) -> None:
        vars(self).update(zip(names, values))

    def text(self: Any) -> str:
        return f"{name}({', '.join(n + ': ' + forms.get(n, form).format(getattr(self, n)) for n in names)})"

    return type(name, (), {"__init__": init, "__str__": text, "__repr__": text})


c_nvmlMemory_t = _struct("c_nvmlMemory_t", "total free used", "{} B")
c_nvmlMemory_v2_t = _struct("c_nvmlMemory_v2_t", "version total reserved free used", "{} B")
c_nvmlBAR1Memory_t = _struct("c_nvmlBAR1Memory_t", "bar1Total bar1Free bar1Used", "{} B")
c_nvmlUtilization_t = _struct("c_nvmlUtilization_t", "gpu memory", "{} %")
c_nvmlProcessUtilizationSample_t = _struct("c_nvmlProcessUtilizationSample_t",
                                           "pid timeStamp smUtil memUtil encUtil decUtil")
nvmlPciInfo_t = _struct("nvmlPciInfo_t", "busIdLegacy domain bus device pciDeviceId pciSubSystemId busId",
                        domain="0x{:08X}", bus="0x{:02X}", device="0x{:02X}", pciDeviceId="0x{:08X}",
                        pciSubSystemId="0x{:08X}")
c_nvmlDeviceAttributes = _struct(
    "c_nvmlDeviceAttributes", "multiprocessorCount sharedCopyEngineCount sharedDecoderCount sharedEncoderCount "
    "sharedJpegCount sharedOfaCount gpuInstanceSliceCount computeInstanceSliceCount memorySizeMB")
c_nvmlRowRemapperHistogramValues = _struct("c_nvmlRowRemapperHistogramValues", "max high partial low none")
c_nvmlValue_t = _struct("c_nvmlValue_t", "dVal uiVal ulVal ullVal sllVal siVal")
c_nvmlFieldValue_t = _struct("c_nvmlFieldValue_t", "fieldId scopeId timestamp latencyUsec valueType nvmlReturn value")


c_nvmlC2cModeInfo_v1_t = _struct("c_nvmlC2cModeInfo_v1_t", "isC2cEnabled")


class nvmlFriendlyObject:
    """A process: pid, usedGpuMemory (None if unknown), gpuInstanceId, computeInstanceId."""

    def __init__(self, values: Mapping[str, object]) -> None:
        vars(self).update(values)

    def __str__(self) -> str:
        return str(vars(self))

    __repr__ = __str__


# ---- conversions ----

_SWITCHES = {"Enabled": 1, "Disabled": 0, "Yes": 1, "No": 0, "On": 1, "Off": 0}
_COMPUTE_MODES = {"Default": 0, "Exclusive_Thread": 1, "Prohibited": 2, "Exclusive_Process": 3}
_VIRTUALIZATIONS = {"None": 0, "Pass-Through": 1, "VGPU": 2, "Host VGPU": 3, "Host VSGA": 4}
_ARCHITECTURES = {name: value for value, name in enumerate(
    ("Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell"), 2)}
_BRANDS = {name: value for value, name in enumerate(
    ("Quadro", "Tesla", "NVS", "Grid", "GeForce", "Titan", "NVIDIA Virtual Applications", "NVIDIA Virtual PC",
     "NVIDIA Virtual Compute Server", "NVIDIA RTX Virtual Workstation", "NVIDIA Cloud Gaming", "Quadro RTX",
     "NVIDIA RTX", "NVIDIA", "GeForce RTX", "Titan RTX"), 1)}


def _number(value: _Scalar) -> int:
    return _SWITCHES[value] if isinstance(value, str) and value in _SWITCHES else round(float(value))


def _milli(value: _Scalar) -> int:
    return round(float(value) * 1000)


def _hex(value: _Scalar) -> int:
    return int(str(value), 16)


def _version(value: _Scalar) -> int:
    major, minor = str(value).split(".")[:2]
    return int(major) * 1000 + int(minor) * 10


def _pair(value: _Scalar) -> Tuple[int, int]:
    major, minor = str(value).split(".")
    return int(major), int(minor)


# ---- functions with one value ----

# nvmlSystemGet…: metric of the host, conversion
_HOST: Dict[str, Tuple[str, Callable[[_Scalar], Any]]] = {
    "nvmlSystemGetDriverVersion": ("driver_version", str),
    "nvmlSystemGetNVMLVersion": ("nvml_version", str),
    "nvmlSystemGetCudaDriverVersion": ("cuda_version", _version),
    "nvmlSystemGetCudaDriverVersion_v2": ("cuda_version", _version),
    "nvmlDeviceGetCount": ("count", _number),
}

# nvmlDeviceGet…(handle): metric, conversion
_VALUES: Dict[str, Tuple[str, Callable[[_Scalar], Any]]] = {
    "Name": ("name", str),
    "UUID": ("uuid", str),
    "Serial": ("serial", str),
    "MinorNumber": ("minor_number", _number),
    "BoardPartNumber": ("board.part_number", str),
    "BoardId": ("board.id", _hex),
    "MultiGpuBoard": ("board.multi_gpu", _number),
    "VbiosVersion": ("vbios_version", str),
    "InforomImageVersion": ("inforom.img", str),
    "Brand": ("brand", lambda value: _BRANDS.get(str(value), 0)),
    "Architecture": ("architecture", lambda value: _ARCHITECTURES.get(str(value), NVML_DEVICE_ARCH_UNKNOWN)),
    "CudaComputeCapability": ("compute_cap", _pair),
    "NumGpuCores": ("cores", _number),
    "MemoryBusWidth": ("memory_bus_width", _number),
    "IrqNum": ("irq", _number),
    "PersistenceMode": ("persistence_mode", _number),
    "ComputeMode": ("compute_mode", lambda value: _COMPUTE_MODES[str(value)]),
    "VirtualizationMode": ("virtualization.mode", lambda value: _VIRTUALIZATIONS[str(value)]),
    "DisplayMode": ("display_attached", _number),
    "DisplayActive": ("display_active", _number),
    "AccountingMode": ("accounting.mode", _number),
    "AccountingBufferSize": ("accounting.buffer_size", _number),
    "PerformanceState": ("pstate", lambda value: int(str(value)[1:])),
    "PowerState": ("pstate", lambda value: int(str(value)[1:])),
    "PowerUsage": ("power.draw", _milli),
    "PowerManagementLimit": ("power.limit", _milli),
    "EnforcedPowerLimit": ("enforced.power.limit", _milli),
    "PowerManagementDefaultLimit": ("power.default_limit", _milli),
    "TotalEnergyConsumption": ("energy.consumption", _milli),
    "FanSpeed": ("fan.speed", _number),
    "CurrPcieLinkGeneration": ("pcie.link.gen.current", _number),
    "MaxPcieLinkGeneration": ("pcie.link.gen.max", _number),
    "GpuMaxPcieLinkGeneration": ("pcie.link.gen.gpumax", _number),
    "CurrPcieLinkWidth": ("pcie.link.width.current", _number),
    "MaxPcieLinkWidth": ("pcie.link.width.max", _number),
    "PcieReplayCounter": ("pcie.replay_counter", _number),
    "CurrentClocksThrottleReasons": ("clocks_event_reasons.active", _number),
    "CurrentClocksEventReasons": ("clocks_event_reasons.active", _number),
    "SupportedClocksThrottleReasons": ("clocks_event_reasons.supported", _number),
    "SupportedClocksEventReasons": ("clocks_event_reasons.supported", _number),
    "CurrentEccMode": ("ecc.mode.current", _number),
    "PendingEccMode": ("ecc.mode.pending", _number),
    "DefaultEccMode": ("ecc.mode.default", _number),
    "RetiredPagesPendingStatus": ("retired_pages.pending", _number),
    "NumaNodeId": ("numa_node", _number),
    "GpuInstanceId": ("mig.gpu_instance_id", _number),
    "ComputeInstanceId": ("mig.compute_instance_id", _number),
}

# nvmlDeviceGet…(handle): metrics, and what is made of the list of their values
_LISTS: Dict[str, Tuple[str, Callable[[List[int]], Any]]] = {
    "UtilizationRates": ("utilization.gpu,utilization.memory", lambda v: c_nvmlUtilization_t(*v)),
    "BAR1MemoryInfo": ("bar1.total,bar1.free,bar1.used", lambda v: c_nvmlBAR1Memory_t(*v)),
    "EncoderUtilization": ("utilization.encoder", lambda v: [v[0], 0]),
    "DecoderUtilization": ("utilization.decoder", lambda v: [v[0], 0]),
    "JpgUtilization": ("utilization.jpeg", lambda v: [v[0], 0]),
    "OfaUtilization": ("utilization.ofa", lambda v: [v[0], 0]),
    "C2cModeInfoV": ("c2c.mode", lambda v: c_nvmlC2cModeInfo_v1_t(*v)),
    "EccMode": ("ecc.mode.current,ecc.mode.pending", list),
    "MigMode": ("mig.mode.current,mig.mode.pending", list),
    "PowerManagementLimitConstraints": ("power.min_limit,power.max_limit", lambda v: [1000 * n for n in v]),
    "RemappedRows": ("remapped_rows.correctable,remapped_rows.uncorrectable,remapped_rows.pending,"
                     "remapped_rows.failure", tuple),
    "RowRemapperHistogram": (",".join(f"remapped_rows.histogram.{n}" for n in ("max", "high", "partial", "low", "none")),
                             lambda v: c_nvmlRowRemapperHistogramValues(*v)),
    "EncoderStats": ("encoder.stats.sessionCount,encoder.stats.averageFps,encoder.stats.averageLatency", tuple),
}

# nvmlDeviceGet…(handle, n): metrics by n; "" is not supported, any other n is an invalid argument
_CHOICES: Dict[str, Sequence[str]] = {
    "Temperature": ["temperature.gpu"],
    "TemperatureThreshold": ["temperature.threshold.shutdown", "temperature.threshold.slowdown",
                             "temperature.threshold.memory_max", "temperature.threshold.gpu_max",
                             "temperature.target.min", "temperature.target", "temperature.target.max", ""],
    "ClockInfo": [f"clocks.current.{name}" for name in ("graphics", "sm", "memory", "video")],
    "MaxClockInfo": [f"clocks.max.{name}" for name in ("graphics", "sm", "memory", "video")],
    "ApplicationsClock": ["clocks.applications.graphics", "", "clocks.applications.memory", ""],
    "DefaultApplicationsClock": ["clocks.default_applications.graphics", "", "clocks.default_applications.memory", ""],
    "MaxCustomerBoostClock": ["clocks.max_customer_boost.graphics", "", "", ""],
}


def _chosen(metrics: Sequence[str], number: int) -> str:
    if not 0 <= number < len(metrics):
        raise NVMLError(2)
    if not metrics[number]:
        raise NVMLError(3)
    return metrics[number]


def _of_host(metric: str, convert: Callable[[_Scalar], Any]) -> Callable[..., Any]:
    return lambda: convert(_get(_sample(metric).host, metric))


def _of_gpu(metric: str, convert: Callable[[_Scalar], Any]) -> Callable[..., Any]:
    return lambda handle: convert(_get(_row(handle, metric), metric))


def _of_list(metrics: str, build: Callable[[List[int]], Any]) -> Callable[..., Any]:
    names = metrics.split(",")

    def function(handle: c_nvmlDevice_t) -> Any:
        row = _row(handle, metrics)
        return build([_int(row, name) for name in names])

    return function


def _of_choice(metrics: Sequence[str]) -> Callable[..., Any]:
    def function(handle: c_nvmlDevice_t, number: int) -> int:
        name = _chosen(metrics, number)
        return _int(_row(handle, name), name)

    return function


for _name, _spec in _HOST.items():
    globals()[_name] = _of_host(*_spec)
for _name, _spec in _VALUES.items():
    globals()["nvmlDeviceGet" + _name] = _of_gpu(*_spec)
for _name, _specs in _LISTS.items():
    globals()["nvmlDeviceGet" + _name] = _of_list(*_specs)
for _name, _metrics in _CHOICES.items():
    globals()["nvmlDeviceGet" + _name] = _of_choice(_metrics)
nvmlDeviceGetTemperatureV = _of_choice(_CHOICES["Temperature"])


# ---- the library ----

def nvmlInitWithFlags(flags: int) -> None:
    global _references
    with _lock:
        try:
            key = ("count", None, False)
            _sessions[key] = _sessions.get(key) or _gpulse.Session("count")
        except _gpulse.GpulseError as error:
            raise nvml_error(error) from error
        _references += 1


def nvmlInit() -> None:
    nvmlInitWithFlags(0)


def nvmlShutdown() -> None:
    global _references
    with _lock:
        if not _references:
            raise NVMLError(1)
        _references -= 1
        if not _references:
            closing = list(_sessions.values())
            _sessions.clear()
            for session in closing:
                session.close()


def nvmlSystemGetProcessName(pid: int) -> str:
    for process in _sample("pid,process.path").processes:
        if process.get("pid") == pid:
            return str(_get(process, "process.path"))
    raise NVMLError(6)


# ---- handles ----

_IDENTITY = "index,uuid,serial,pci.bus_id,status"


def nvmlDeviceGetHandleByIndex(index: int) -> c_nvmlDevice_t:
    if not _references:
        raise NVMLError(1)
    if not isinstance(index, int) or index < 0:
        raise NVMLError(2)
    try:
        rows = _sample(_IDENTITY, index).gpus
    except NVMLError as error:
        raise NVMLError(2 if error.value == 6 else error.value) from None
    if rows[0].get("status") == "lost":
        raise NVMLError(15)
    _get(rows[0], "uuid")
    return c_nvmlDevice_t(index)


def _identities() -> Iterator[Tuple[c_nvmlDevice_t, _GPU]]:
    """The GPUs that respond."""
    for index in range(globals()["nvmlDeviceGetCount"]()):
        row = _sample(_IDENTITY, index).gpus[0]
        if row.get("uuid") is not None and row.get("status") != "lost":
            yield c_nvmlDevice_t(index), row


def _text(value: Union[str, bytes]) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def nvmlDeviceGetHandleByUUID(uuid: Union[str, bytes]) -> c_nvmlDevice_t:
    wanted = _text(uuid)
    for handle, row in _identities():
        if row.get("uuid") == wanted:
            return handle
        if wanted.startswith("MIG-"):
            for instance in _instances(handle):
                if instance.get("uuid") == wanted:
                    return c_nvmlDevice_t(handle._index, wanted)
    raise NVMLError(6)


def nvmlDeviceGetHandleBySerial(serial: Union[str, bytes]) -> c_nvmlDevice_t:
    for handle, row in _identities():
        if row.get("serial") == _text(serial):
            return handle
    raise NVMLError(6)


def _address(bus_id: str) -> Tuple[int, ...]:
    parts = bus_id.replace(".", ":").split(":")
    return tuple(int(part, 16) for part in (["0"] * (4 - len(parts)) + parts))


def nvmlDeviceGetHandleByPciBusId(pciBusId: Union[str, bytes]) -> c_nvmlDevice_t:
    try:
        wanted = _address(_text(pciBusId))
    except ValueError:
        raise NVMLError(2) from None
    for handle, row in _identities():
        if _address(str(row.get("pci.bus_id"))) == wanted:
            return handle
    raise NVMLError(6)


def nvmlDeviceGetIndex(handle: c_nvmlDevice_t) -> int:
    return _int(_row(handle, "index"), "mig.index" if handle._mig_uuid else "index")


# ---- memory, processes ----

def nvmlDeviceGetMemoryInfo(handle: c_nvmlDevice_t, version: Optional[int] = None) -> Any:
    """Without a version, the memory that the driver reserves counts as used."""
    row = _row(handle, "memory.total,memory.reserved,memory.free,memory.used")
    total, free, used = (_int(row, "memory." + name) for name in ("total", "free", "used"))
    if version is None:
        return c_nvmlMemory_t(total, free, total - free)
    if version != nvmlMemory_v2:
        raise NVMLError(25)
    return c_nvmlMemory_v2_t(version, total, _int(row, "memory.reserved"), free, used)


def _running(kind: str) -> Callable[[c_nvmlDevice_t], List[nvmlFriendlyObject]]:
    fields = "pid,used_gpu_memory,process.type,process.gpu_instance_id,process.compute_instance_id,uuid"

    def function(handle: c_nvmlDevice_t) -> List[nvmlFriendlyObject]:
        row = _row(handle, fields)
        _get(row, "uuid")
        found = []
        for process in row._sample.processes:
            if handle._mig_uuid and process._gpu_row() != row._row:
                continue
            if kind in str(process.get("process.type")):
                found.append(nvmlFriendlyObject({
                    "pid": process["pid"], "usedGpuMemory": process.get("used_gpu_memory"),
                    "gpuInstanceId": process.get("process.gpu_instance_id", 0xFFFFFFFF),
                    "computeInstanceId": process.get("process.compute_instance_id", 0xFFFFFFFF)}))
        return found

    return function


for _kind, _name in (("C", "Compute"), ("G", "Graphics"), ("M", "MPSCompute")):
    for _suffix in ("", "_v2", "_v3"):
        globals()[f"nvmlDeviceGet{_name}RunningProcesses{_suffix}"] = _running(_kind)


def nvmlDeviceGetProcessUtilization(handle: c_nvmlDevice_t, timeStamp: int) -> List[Any]:
    """What the driver last measured for each process that did something, with the time of the reading."""
    names = [f"process.utilization.{name}" for name in ("sm", "memory", "encoder", "decoder")]
    row = _row(handle, "uuid,pid," + ",".join(names))
    _get(row, "uuid")
    now = round(row._sample.time * 1e6)
    found = []
    for process in row._sample.processes:
        shares = [process.get(name, 0) for name in names]
        if any(shares):
            found.append(c_nvmlProcessUtilizationSample_t(process["pid"], now, *shares))
    if not found:
        raise NVMLError(6)
    return found


# ---- PCI, NVLink ----

def nvmlDeviceGetPciInfo(handle: c_nvmlDevice_t) -> Any:
    if handle._mig_uuid:
        raise NVMLError(3)
    names = ("pci.domain", "pci.bus", "pci.device", "pci.device_id", "pci.sub_device_id")
    row = _row(handle, "pci.bus_id," + ",".join(names))
    bus_id = str(_get(row, "pci.bus_id"))
    return nvmlPciInfo_t(bus_id[4:], *(_hex(_get(row, name)) for name in names), bus_id)


nvmlDeviceGetPciInfo_v3 = nvmlDeviceGetPciInfo

_RATE_S = 0.1  # long enough for the driver's counters to change


def nvmlDeviceGetPcieThroughput(device: c_nvmlDevice_t, counter: int) -> int:
    """KB per second since the last call; the first call measures for a tenth of a second."""
    name = _chosen(["pcie.throughput.tx", "pcie.throughput.rx"], counter)
    row = _row(device, name)
    if row.get(name) is None:
        _time.sleep(_RATE_S)
        row = _row(device, name)
    return int(float(_get(row, name)) // 1000)


def nvmlDeviceGetNvLinkState(device: c_nvmlDevice_t, link: int) -> int:
    states = {number: state for number, state in _entries(device, "links.number", "links.state")}
    if not states:
        raise NVMLError(3)
    if link not in states:
        raise NVMLError(2)
    return int(states[link] == "Active")


def nvmlDeviceGetCpuAffinity(handle: c_nvmlDevice_t, cpuSetSize: int) -> Any:
    """A bit for each CPU, in an array of unsigned long."""
    text = str(_get(_row(handle, "affinity.cpu"), "affinity.cpu"))
    words = (_c.c_ulong * cpuSetSize)()
    bits = 8 * _c.sizeof(_c.c_ulong)
    for part in text.split(","):
        first, _, last = part.partition("-")
        for cpu in range(int(first), int(last or first) + 1):
            if cpu // bits < cpuSetSize:
                words[cpu // bits] |= 1 << cpu % bits
    return words


# ---- clocks ----

def nvmlDeviceGetClock(handle: c_nvmlDevice_t, type: int, id: int) -> int:
    names = ("ClockInfo", "ApplicationsClock", "DefaultApplicationsClock", "MaxCustomerBoostClock")
    metric = _chosen(_CHOICES[_chosen(names, id)], type)
    return _int(_row(handle, metric), metric)


_CLOCKS = ("supported_clocks.memory", "supported_clocks.graphics")


def nvmlDeviceGetSupportedMemoryClocks(handle: c_nvmlDevice_t) -> List[int]:
    return list(dict.fromkeys(int(memory) for memory, _ in _entries(handle, *_CLOCKS)))


def nvmlDeviceGetSupportedGraphicsClocks(handle: c_nvmlDevice_t, memoryClockMHz: int) -> List[int]:
    found = [int(graphics) for memory, graphics in _entries(handle, *_CLOCKS) if memory == memoryClockMHz]
    if not found:
        raise NVMLError(6)
    return found


# ---- fans ----

def nvmlDeviceGetNumFans(handle: c_nvmlDevice_t) -> int:
    return len(_entries(handle, "fans.number"))


def nvmlDeviceGetFanSpeed_v2(handle: c_nvmlDevice_t, fan: int) -> int:
    speeds = _entries(handle, "fans.speed")
    if not speeds:
        raise NVMLError(3)
    if not 0 <= fan < len(speeds):
        raise NVMLError(2)
    return int(speeds[fan][0])


# ---- ECC, fields ----

_ERROR_TYPES = ("corrected", "uncorrected")
_COUNTERS = ("volatile", "aggregate")
_LOCATIONS = ("l1_cache", "l2_cache", "dram", "register_file", "texture_memory", "texture_shm", "cbu", "sram")


def _ecc(handle: c_nvmlDevice_t, error_type: int, counter: int, location: str) -> int:
    name = f"ecc.errors.{_chosen(_ERROR_TYPES, error_type)}.{_chosen(_COUNTERS, counter)}.{location}"
    return _int(_row(handle, name), name)


def nvmlDeviceGetTotalEccErrors(handle: c_nvmlDevice_t, errorType: int, counterType: int) -> int:
    return _ecc(handle, errorType, counterType, "total")


def nvmlDeviceGetMemoryErrorCounter(handle: c_nvmlDevice_t, errorType: int, counterType: int,
                                    locationType: int) -> int:
    return _ecc(handle, errorType, counterType, _chosen(_LOCATIONS, locationType))


def nvmlDeviceGetFieldValues(handle: c_nvmlDevice_t, fieldIds: Sequence[Any]) -> List[Any]:
    """Fields are numbers, or pairs with a scope. A field that is not in the table is not supported."""
    known = {(number, 0): (metric, factor) for number, metric, factor in _FIELDS.values()}
    for number, metric in ((NVML_FI_DEV_POWER_AVERAGE, "average"), (NVML_FI_DEV_POWER_INSTANT, "instant")):
        known[number, NVML_POWER_SCOPE_MODULE] = f"module.power.draw.{metric}", 1000
        known[number, NVML_POWER_SCOPE_MEMORY] = f"gpu_memory.power.draw.{metric}", 1000
    wanted = [(field, 0) if isinstance(field, int) else (int(field[0]), int(field[1])) for field in fieldIds]
    metrics = sorted({known[field][0] for field in wanted if field in known})
    row = _row(handle, ",".join(["uuid", *metrics]))
    _get(row, "uuid")
    found = []
    for number, scope in wanted:
        result, value = NVML_SUCCESS, 0
        try:
            if (number, scope) not in known:
                raise NVMLError(3)
            metric, factor = known[number, scope]
            got = _get(row, metric)
            value = round(float(got) * factor) if factor > 1 else _number(got)
        except NVMLError as error:
            result = error.value
        found.append(c_nvmlFieldValue_t(number, scope, round(row._sample.time * 1e6), 0, 3, result,
                                        c_nvmlValue_t(float(value), *[value] * 5)))
    return found


# ---- MIG ----

def _instances(handle: c_nvmlDevice_t) -> List[_MIG]:
    return [row for row in _sample("uuid,mig.index", handle._index, True).gpus if isinstance(row, _MIG)]


def nvmlDeviceIsMigDeviceHandle(handle: c_nvmlDevice_t) -> _c.c_uint:
    _row(handle, "uuid")
    return _c.c_uint(bool(handle._mig_uuid))


def nvmlDeviceGetMaxMigDeviceCount(device: c_nvmlDevice_t) -> int:
    try:
        return max((int(count) for count, in _entries(device, "mig_profiles.instances")), default=0)
    except NVMLError as error:
        if error.value == 3:
            return 0
        raise


def nvmlDeviceGetMigDeviceHandleByIndex(device: c_nvmlDevice_t, index: int) -> c_nvmlDevice_t:
    _get(_row(device, "mig.mode.current"), "mig.mode.current")
    for row in _instances(device):
        if row.get("mig.index") == index:
            return c_nvmlDevice_t(device._index, str(_get(row, "uuid")))
    raise NVMLError(6)


def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(migDevice: c_nvmlDevice_t) -> c_nvmlDevice_t:
    _row(migDevice, "uuid")
    if not migDevice._mig_uuid:
        raise NVMLError(2)
    return c_nvmlDevice_t(migDevice._index)


def nvmlDeviceGetAttributes_v2(device: c_nvmlDevice_t) -> Any:
    names = [f"mig.{name}" for name in ("multiprocessors", "copy_engines", "decoders", "encoders", "jpeg", "ofa")]
    row = _row(device, "memory.total,mig.profile," + ",".join(names))
    parts = [part for part in str(_get(row, "mig.profile")).split(".")]
    slices = [int(part[:-1]) for part in parts if part[:-1].isdigit() and part[-1] in "cg"]
    return c_nvmlDeviceAttributes(*(_int(row, name) for name in names), slices[-1], slices[0],
                                  _int(row, "memory.total") >> 20)


nvmlDeviceGetAttributes = nvmlDeviceGetAttributes_v2


def _nvmlGetFunctionPointer(name: str) -> Any:
    """By this name, programs tell NVIDIA's bindings from others. There are no pointers here."""
    raise NVMLError(13)


def __getattr__(name: str) -> Any:
    if name.startswith(("nvml", "NVML", "c_nvml")):
        raise AttributeError(f"gpulse.compat.pynvml does not have {name}; for it, use the package nvidia-ml-py")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
