"""Sessions, samples and rows, as Python objects."""

from __future__ import annotations

import ctypes as c
import os
import signal
import threading
import time
from typing import Any, AsyncIterator, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from . import _library as _c
from ._errors import GpulseError, Unavailable

Number = Union[int, float]
Scalar = Union[int, float, str]

# What gpus() and processes() read. Other metrics are read when they are first asked for.
GPU_FIELDS = ("index,name,uuid,pci.bus_id,mig.index,utilization.gpu,utilization.memory,memory.total,memory.used,"
              "memory.free,temperature.gpu,power.draw,power.limit,fan.speed,clocks.sm,clocks.mem,pstate")
PROCESS_FIELDS = "pid,user,used_memory,process_name,process.command,type"


class Metric(NamedTuple):
    """A metric: its name, unit ("bytes", "percent", … or ""), kind of row (0: host, 1: GPU, 2: process; others:
    lists), type (int, float or str) and a line of help."""

    name: str
    unit: str
    scope: int
    type: type
    help: str
    number: int


_TYPES: Tuple[type, ...] = (int, float, str)


def _all_metrics() -> Dict[str, Metric]:
    found: Dict[str, Metric] = {}
    info = _c.MetricInfo()
    for number in range(_c.lib.gpulse_metric_count()):
        _c.lib.gpulse_metric_describe(number, c.byref(info))
        name = info.name.decode()
        found[name] = Metric(name, info.unit.decode(), info.scope, _TYPES[info.type], info.help.decode(), number)
    return found


_metrics: Dict[str, Metric] = {}
_aliases: Dict[str, Metric] = {} # those that were used


def metrics() -> Dict[str, Metric]:
    """All metrics by name."""
    if not _metrics:
        _metrics.update(_all_metrics())
    return _metrics


class _Names:
    """What may follow a prefix of metrics, up to the next dot: a metric, or more names."""

    __slots__ = ("prefix", "members")

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.members: "Dict[str, Union[Metric, _Names]]" = {}


_trees: Dict[int, _Names] = {} # by the kind of row


def _names(scope: int) -> _Names:
    """All metrics of a kind of row. Where a metric is also a prefix of others, it is the metric."""
    tree = _Names("")
    for metric in metrics().values():
        if metric.scope != scope:
            continue
        *parts, last = metric.name.split(".")
        names: Union[Metric, _Names] = tree
        for i, part in enumerate(parts):
            if isinstance(names, _Names):
                names = names.members.setdefault(part, _Names(".".join(parts[:i + 1])))
        if isinstance(names, _Names):
            names.members[last] = metric
    return tree


def _find(name: str) -> Metric:
    known = metrics().get(name) or _aliases.get(name)
    if known:
        return known
    error = _c.Error()
    number = _c.lib.gpulse_metric_find(name.encode(), c.byref(error))
    if number < 0:
        raise AttributeError(_c.text(error.text))
    info = _c.MetricInfo()
    _c.lib.gpulse_metric_describe(number, c.byref(info))
    return _aliases.setdefault(name, metrics()[info.name.decode()])


class Session(_c.Owner):
    """Reads a chosen set of metrics from the driver: see gpulse_open() in gpulse/gpulse.h.

    `fields` are metrics, as in "name,memory.*,pid"; `gpus` chooses GPUs by index, range, UUID, bus id or name;
    `sim` is a machine of gpulse-sim(1); `timeout` is in seconds. Threads that share a session wait for each other. It
    can be used in a `with` statement."""

    def __init__(self, fields: Optional[str] = None, *, gpus: Optional[str] = None, sim: Optional[str] = None,
                 root: Optional[str] = None, timeout: float = 3.0, mig: bool = False) -> None:
        self._arguments = (fields, gpus, sim, root, timeout, mig)
        self.may_have_mig = mig or gpus is not None # a UUID of an instance chooses it
        self._pointer = c.c_void_p()
        self._pid = 0
        self._lock = threading.RLock()
        self._open()

    def _open(self) -> None:
        fields, gpus, sim, root, timeout, mig = self._arguments
        error = _c.Error()
        options = _c.options(fields, gpus, sim, root, timeout, _c.MIG if mig else 0)
        pointer = c.c_void_p()
        _c.check(_c.lib.gpulse_open(c.byref(options), c.byref(pointer), c.byref(error)), error)
        self._pointer = pointer
        self._pid = os.getpid()

    def _own_lock(self) -> Any:
        if self._pid != os.getpid():
            self._lock = threading.RLock() # another thread of the parent may have held it
        return self._lock

    def sample(self) -> "Sample":
        """The values of now. After fork(), the session is opened anew in the child."""
        with self._own_lock():
            if not self._pointer:
                raise GpulseError("the session is closed", _c.EUSAGE)
            if self._pid != os.getpid():
                self._open()
            error = _c.Error()
            pointer = c.c_void_p()
            _c.check(_c.lib.gpulse_take(self._pointer, c.byref(pointer), c.byref(error)), error)
            return Sample(pointer, self)

    def close(self) -> None:
        """Waits for a sample that another thread takes."""
        with self._own_lock():
            pointer, self._pointer = self._pointer, c.c_void_p()
            if pointer and self._pid == os.getpid():
                _c.lib.gpulse_close(pointer)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self) -> None:
        self.close()


class Sample(_c.Owner):
    """The values of one moment."""

    def __init__(self, pointer: c.c_void_p, session: Session) -> None:
        self._pointer = pointer
        self.session = session
        self._more: "Dict[str, Sample]" = {}

    def _read_more(self, fields: str) -> "Sample":
        """Other values, read now, of a sample of gpus()."""
        if fields not in self._more:
            self._more[fields] = _sample_of(fields)
        return self._more[fields]

    def _end(self) -> None:
        _c.lib.gpulse_sample_free(self._pointer)

    @property
    def time(self) -> float:
        """When it was taken, in seconds since 1970."""
        return float(_c.lib.gpulse_sample_time(self._pointer)) / 1e9

    @property
    def partial(self) -> bool:
        """Whether a GPU did not respond, was lost, or failed."""
        return bool(_c.lib.gpulse_sample_is_partial(self._pointer))

    def rows(self, scope: int) -> int:
        return int(_c.lib.gpulse_sample_rows(self._pointer, scope))

    @property
    def gpus(self) -> "List[GPU]":
        rows = range(self.rows(_c.GPU))
        if not self.session.may_have_mig:
            return [GPU(self, row) for row in rows]
        return [(MIG if _is_mig(self, row) else GPU)(self, row) for row in rows]

    @property
    def processes(self) -> "List[Process]":
        return [Process(self, row) for row in range(self.rows(_c.PROCESS))]

    @property
    def host(self) -> "Row":
        return Row(self, 0)

    def _get(self, metric: Metric, row: int) -> _c.Value:
        value = _Value()
        _get_value(self._pointer, metric.number, row, _byref(value))
        return value

    def value(self, metric: Metric, row: int) -> Scalar:
        """Raises Unavailable."""
        return _payload(metric, self._get(metric, row))


# Names of this module, as they are used for each value.
_Value, _byref, _get_value = _c.Value, c.byref, _c.lib.gpulse_sample_get
_NONE, _OK, _STALE = _c.NONE, _c.OK, _c.STALE


def _payload(metric: Metric, value: _c.Value) -> Scalar:
    status = value.status
    if status != _OK and status != _STALE:
        raise Unavailable(metric.name, value.reason.decode())
    if metric.type is int:
        return value.i # type: ignore[no-any-return]
    return value.f if metric.type is float else value.s.decode() # type: ignore[no-any-return]


def _is_mig(sample: Sample, row: int) -> bool:
    return sample._get(_find("mig.index"), row).status in (_c.OK, _c.STALE)


class _Group:
    """Metrics with a common prefix: gpu.memory."""

    def __init__(self, row: "Row", names: _Names) -> None:
        self._row = row
        self._names = names

    def __getattr__(self, name: str) -> Any:
        member = self._names.members.get(name)
        if type(member) is Metric:
            return self._row._value(member)
        if isinstance(member, _Names):
            group = vars(self)[name] = _Group(self._row, member)
            return group
        raise AttributeError(f"there is no metric {self._names.prefix + '.' + name!r} here; gpulse.metrics() has all")

    def __repr__(self) -> str:
        return f"<{self._names.prefix}.* of {self._row!r}>"

    def __dir__(self) -> List[str]:
        return sorted(self._names.members)


class Row:
    """A row of a sample. Metrics are attributes and items."""

    _scope = 0

    def __init__(self, sample: Sample, row: int) -> None:
        self._sample = sample
        self._row = row

    def _read_more(self, metric: Metric) -> Scalar:
        raise Unavailable(metric.name, "not read: name it in the fields of the session")

    def __getitem__(self, name: str) -> Scalar:
        metric = _metrics.get(name) or _aliases.get(name)
        if metric is None or metric.scope != self._scope:
            metric = self._find(name)
        return self._value(metric)

    def _find(self, name: str) -> Metric:
        try:
            metric = _find(name)
        except AttributeError as unknown:
            raise KeyError(str(unknown)) from None
        if metric.scope != self._scope:
            raise KeyError(f"{name} is not a metric of this kind of row")
        return metric

    def _value(self, metric: Metric) -> Scalar:
        value = self._sample._get(metric, self._row)
        return self._read_more(metric) if value.status == _NONE else _payload(metric, value)

    def get(self, name: str, default: Optional[Scalar] = None) -> Optional[Scalar]:
        """The value, or `default` if there is none."""
        try:
            return self[name]
        except Unavailable:
            return default

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        scope = self._scope
        names = _trees.get(scope) or _trees.setdefault(scope, _names(scope))
        member = names.members.get(name)
        if type(member) is Metric:
            return self._value(member)
        if isinstance(member, _Names):
            group = vars(self)[name] = _Group(self, member)
            return group
        if _find(name).scope == scope: # an alias
            return self[name]
        raise AttributeError(f"there is no metric {name!r} here; gpulse.metrics() has all")

    def to_dict(self) -> Dict[str, Any]:
        """The values that were read, by name; None for those that are missing, with "reasons"."""
        values: Dict[str, Any] = {}
        reasons: Dict[str, str] = {}
        for metric in metrics().values():
            if metric.scope != self._scope:
                continue
            value = self._sample._get(metric, self._row)
            if value.status == _c.NONE:
                continue
            try:
                values[metric.name] = _payload(metric, value)
            except Unavailable as missing:
                values[metric.name] = None
                reasons[metric.name] = missing.reason
        if reasons:
            values["reasons"] = reasons
        return values

    def __dir__(self) -> List[str]:
        own = {m.name.split(".")[0] for m in metrics().values() if m.scope == self._scope}
        return sorted(own | set(super().__dir__()))


class Process(Row):
    """A process on one GPU."""

    _scope = _c.PROCESS

    def _gpu_row(self) -> int:
        return int(_c.lib.gpulse_sample_gpu_of(self._sample._pointer, _c.PROCESS, self._row))

    @property
    def gpu(self) -> "GPU":
        row = self._gpu_row()
        return (MIG if _is_mig(self._sample, row) else GPU)(self._sample, row)

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Sends it a signal, and never to another process that got its pid since the sample was taken."""
        error = _c.Error()
        _c.check(_c.lib.gpulse_sample_signal(self._sample._pointer, self._row, number, c.byref(error)), error)

    def __repr__(self) -> str:
        return f"<process {self.get('pid')} on GPU {self.gpu.get('index')}>"


class GPU(Row):
    """A GPU."""

    _scope = _c.GPU

    @property
    def processes(self) -> List[Process]:
        """Its processes, if the session reads any. Those of gpulse.gpus() are read when they are first asked for."""
        sample = self._sample
        if sample.session is _kept.get(GPU_FIELDS):
            sample = sample._read_more(GPU_FIELDS + "," + PROCESS_FIELDS)
        return [p for p in sample.processes if p._gpu_row() == self._row]

    def _read_more(self, metric: Metric) -> Scalar:
        if self._sample.session is not _kept.get(GPU_FIELDS):
            return super()._read_more(metric)
        return self._sample._read_more(metric.name).value(metric, self._row)

    def __repr__(self) -> str:
        return f"<GPU {self.get('index')}: {self.get('name')}>"


class MIG(GPU):
    """A MIG instance of a GPU: in sessions with mig=True."""


# ---- the sessions of the module ----

_KEPT_MOST = 8
_kept: Dict[str, Session] = {} # by their fields, the one used last at the end
_lock = threading.Lock()


def _sample_of(fields: str) -> Sample:
    """The values of now, from a session that is kept open while it is among the last ones used."""
    with _lock:
        session = _kept.pop(fields, None) or Session(fields)
        _kept[fields] = session
        for old in [f for f in _kept if f != GPU_FIELDS][:-_KEPT_MOST]:
            del _kept[old] # its last sample closes it
    return session.sample()


os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def is_stuck() -> bool:
    """Whether a thread of the library hangs in the driver. Such a program should end with os._exit(): the normal end
    unloads the driver's library under that thread, and may hang in that."""
    return bool(_c.lib.gpulse_is_stuck())


def gpus() -> List[GPU]:
    """The GPUs of this machine, as they are now."""
    return _sample_of(GPU_FIELDS).gpus


def processes() -> List[Process]:
    """The processes that use GPUs: one for each process and GPU."""
    return _sample_of(GPU_FIELDS + "," + PROCESS_FIELDS).processes


def host() -> Row:
    """This machine: host().driver_version, …"""
    return _sample_of("host.name,driver_version").host


class Watch:
    """A sample in each interval, as an iterator and as an asynchronous one. Missed times are skipped."""

    def __init__(self, interval: float = 1.0, fields: Optional[str] = None, **options: Any) -> None:
        if not interval > 0:
            raise ValueError("the interval must be more than 0 seconds")
        self.interval = interval
        self._session = Session(fields or GPU_FIELDS, **options)
        self._next = time.monotonic()

    def _wait(self) -> float:
        now = time.monotonic()
        seconds = max(self._next - now, 0.0)
        self._next = max(self._next, now) + self.interval
        return seconds

    def __iter__(self) -> Iterator[Sample]:
        return self

    def __next__(self) -> Sample:
        time.sleep(self._wait())
        return self._session.sample()

    def __aiter__(self) -> AsyncIterator[Sample]:
        return self

    async def __anext__(self) -> Sample:
        import asyncio # takes longer than all other imports

        await asyncio.sleep(self._wait())
        return await asyncio.get_running_loop().run_in_executor(None, self._session.sample)

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def watch(interval: float = 1.0, fields: Optional[str] = None, **options: Any) -> Watch:
    """for sample in gpulse.watch(0.5): …; or: async for sample in gpulse.watch(0.5): …"""
    return Watch(interval, fields, **options)
