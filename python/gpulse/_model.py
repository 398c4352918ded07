"""Sessions, samples and rows, as Python objects."""

from __future__ import annotations

import ctypes as c
import os
import signal
import threading
import time
import weakref
from types import MappingProxyType
from typing import Any, AsyncIterator, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Union

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


def metrics() -> Mapping[str, Metric]:
    """All metrics by name."""
    if not _metrics:
        _metrics.update(_all_metrics())
    return MappingProxyType(_metrics)


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
    number = _c.lib.gpulse_metric_find(_c.encoded(name, "the name of a metric"), c.byref(error))
    if number < 0:
        raise AttributeError(_c.text(error.text))
    info = _c.MetricInfo()
    _c.lib.gpulse_metric_describe(number, c.byref(info))
    return _aliases.setdefault(name, metrics()[info.name.decode()])


def _are_processes(fields: _c.Words) -> bool:
    """Whether one of these fields is a metric of processes."""
    names = [] if fields is None else fields.split(",") if isinstance(fields, str) else fields
    for name in (name.strip() for name in names):
        if "*" in name:
            from fnmatch import fnmatchcase # slow to import

            if any(m.scope == _c.PROCESS and fnmatchcase(m.name, name) for m in metrics().values()):
                return True
        elif name and _find(name.partition(":")[0]).scope == _c.PROCESS:
            return True
    return False


class Session(_c.Owner):
    """Reads a chosen set of metrics from the driver: see gpulse_open() in gpulse/gpulse.h.

    `fields` are metrics, as in "name,memory.*,pid" or a list of them; `gpus` chooses GPUs by index, range, UUID, bus id
    or name, or is a list of these; `sim` is a machine of gpulse-sim(1); `timeout` is in seconds. Threads that share a
    session wait for each other. It can be used in a `with` statement."""

    def __init__(self, fields: _c.Words = None, *, gpus: _c.Choice = None, sim: Optional[str] = None,
                 root: Optional[str] = None, timeout: float = 3.0, mig: bool = False) -> None:
        self._arguments = (fields, gpus, sim, root, timeout, mig)
        self._may_have_mig = mig or gpus is not None # a UUID of an instance chooses it
        self._reads_more = False # when a value of its samples is missing: in those of gpus()
        self._pointer = c.c_void_p()
        self._pid = 0
        self._lock = threading.RLock() # a signal handler may use the session that it interrupts
        self._samplings = 0
        self._is_closed = False
        self._open()
        self._lists_processes = _are_processes(fields)
        _sessions.add(self)

    def _open(self) -> None:
        fields, gpus, sim, root, timeout, mig = self._arguments
        error = _c.Error()
        options = _c.options(fields, gpus, sim, root, timeout, _c.MIG if mig else 0)
        pointer = c.c_void_p()
        _c.check(_c.lib.gpulse_open(c.byref(options), c.byref(pointer), c.byref(error)), error)
        self._pointer = pointer
        self._pid = os.getpid()

    def sample(self) -> "Sample":
        """The values of now. After fork(), the session is opened anew in the child."""
        error = _c.Error()
        pointer = c.c_void_p()
        with self._lock:
            self._samplings += 1 # from here on, close() in a signal handler leaves the rest to this function
            try:
                if self._is_closed:
                    raise GpulseError("the session is closed", _c.EUSAGE)
                if self._pid != os.getpid():
                    inherited, self._pointer = self._pointer, c.c_void_p()
                    _c.lib.gpulse_close(inherited) # the child's copy
                    self._open()
                _c.check(_c.lib.gpulse_take(self._pointer, c.byref(pointer), c.byref(error)), error)
            finally:
                self._samplings -= 1
                self._free()
            return Sample(pointer, self)

    def close(self) -> None:
        """Waits for a sample that another thread takes."""
        with self._lock:
            self._is_closed = True
            self._free()

    def _free(self) -> None:
        """If it is closed, and not by a signal handler in the middle of a sample."""
        if self._is_closed and self._samplings == 0:
            pointer, self._pointer = self._pointer, c.c_void_p()
            _c.lib.gpulse_close(pointer)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self) -> None:
        self.close()


_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _after_fork() -> None:
    """Other threads of the parent may have held locks, and are not here."""
    global _lock
    _lock = threading.RLock()
    for session in list(_sessions):
        session._lock = threading.RLock()
        session._samplings = 0


os.register_at_fork(after_in_child=_after_fork)


class Sample(_c.Owner):
    """The values of one moment."""

    def __init__(self, pointer: c.c_void_p, session: Session) -> None:
        self._pointer = pointer
        self._may_have_mig = session._may_have_mig
        self._reads_more = session._reads_more
        self._lists_processes = session._lists_processes
        self._more: "Dict[str, Sample]" = {}

    def _read_more(self, fields: str) -> "Sample":
        """Other values, read now, of a sample of gpus()."""
        if fields not in self._more:
            self._more[fields] = _sample_of(fields)
        return self._more[fields]

    def _end(self) -> None:
        _c.lib.gpulse_sample_free(self._pointer)

    def __repr__(self) -> str:
        return f"<sample of {self.rows(_c.GPU)} GPUs at {time.strftime('%H:%M:%S', time.localtime(self.time))}>"

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
        if not self._may_have_mig:
            return [GPU(self, row) for row in rows]
        return [(MIG if _is_mig(self, row) else GPU)(self, row) for row in rows]

    @property
    def processes(self) -> "List[Process]":
        if not self._lists_processes:
            raise GpulseError("the session reads no processes: name pid or another metric of them in its fields",
                              _c.EUSAGE)
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
        if name.startswith("_"):
            raise AttributeError(name)
        member = self._names.members.get(name)
        if type(member) is Metric:
            return self._row._value(member)
        if isinstance(member, _Names):
            group = vars(self)[name] = _Group(self._row, member)
            return group
        return self._row._value(self._row._named(f"{self._names.prefix}.{name}")) # an alias, as clocks.sm

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
            try:
                metric = self._named(name)
            except AttributeError as unknown:
                raise KeyError(str(unknown)) from None
        return self._value(metric)

    def __contains__(self, name: object) -> bool:
        """Whether there is a value of this name."""
        try:
            return isinstance(name, str) and self[name] is not None
        except LookupError:
            return False

    __iter__ = None # the metrics are in to_dict()

    def _named(self, name: str) -> Metric:
        metric = _find(name)
        if metric.scope != self._scope:
            raise AttributeError(f"{name} is not a metric of this kind of row")
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
            # Of a row of its own: with this one, it would be a cycle, which only the garbage collector frees.
            group = vars(self)[name] = _Group(type(self)(self._sample, self._row), member)
            return group
        return self._value(self._named(name)) # an alias

    def __repr__(self) -> str:
        return f"<host {self.get('host.name')}>"

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
        """Its processes. Those of gpulse.gpus() are read when they are first asked for; a
        session that reads none raises GpulseError."""
        sample = self._sample
        if sample._reads_more:
            sample = sample._read_more(GPU_FIELDS + "," + PROCESS_FIELDS)
        return [p for p in sample.processes if p._gpu_row() == self._row]

    def _read_more(self, metric: Metric) -> Scalar:
        if not self._sample._reads_more:
            return super()._read_more(metric)
        return self._sample._read_more(metric.name).value(metric, self._row)

    def __repr__(self) -> str:
        return f"<GPU {self.get('index')}: {self.get('name')}>"


class MIG(GPU):
    """A MIG instance of a GPU: in sessions with mig=True."""


# ---- the sessions of the module ----

_KEPT_MOST = 8
_kept: Dict[str, Session] = {} # by their fields, the one used last at the end
_lock = threading.RLock() # a signal handler may use the module


def _session_of(fields: str) -> Session:
    """It is kept open while it is among the last ones used."""
    session = _kept.get(fields)
    if session is None:
        session = Session(fields) # not under the lock: a driver may take long
        session._reads_more = fields == GPU_FIELDS
    with _lock:
        session = _kept.pop(fields, session) # that of another thread which was faster
        _kept[fields] = session
        for old in [f for f in list(_kept) if f != GPU_FIELDS][:-_KEPT_MOST]:
            del _kept[old] # nobody else has it, unless a thread is taking its last sample
    return session


def _sample_of(fields: str) -> Sample:
    return _session_of(fields).sample()


def is_stuck() -> bool:
    """Whether a thread of the library hangs in the driver, and its session has been closed. Such a program should end with os._exit(): the normal end
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
    """A sample in each interval, as an iterator and as an asynchronous one. Missed times are skipped. close() ends the
    iteration, also from another thread, a task or a signal handler. The other parameters are those of Session; without
    `fields`, it reads what gpus() reads."""

    def __init__(self, interval: float = 1.0, fields: _c.Words = None, *, gpus: _c.Choice = None,
                 sim: Optional[str] = None, root: Optional[str] = None, timeout: float = 3.0,
                 mig: bool = False) -> None:
        self.interval = _c.interval_of(interval)
        self._session = Session(GPU_FIELDS if fields is None else fields, gpus=gpus, sim=sim, root=root,
                                timeout=timeout, mig=mig)
        self._next = time.monotonic()

    def _left(self) -> float:
        return max(self._next - time.monotonic(), 0.0)

    def _sample(self) -> Optional[Sample]:
        """None: it was closed."""
        self._next = max(self._next, time.monotonic() - self.interval) + self.interval
        try:
            return None if self._session._is_closed else self._session.sample()
        except GpulseError:
            if self._session._is_closed: # meanwhile
                return None
            raise

    def __iter__(self) -> Iterator[Sample]:
        return self

    def __next__(self) -> Sample:
        time.sleep(self._left())
        sample = self._sample()
        if sample is None:
            raise StopIteration
        return sample

    def __aiter__(self) -> AsyncIterator[Sample]:
        return self

    async def __anext__(self) -> Sample:
        import asyncio # takes longer than all other imports

        await asyncio.sleep(self._left())
        sample = await asyncio.get_running_loop().run_in_executor(None, self._sample)
        if sample is None:
            raise StopAsyncIteration
        return sample

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "Watch":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def watch(interval: float = 1.0, fields: _c.Words = None, *, gpus: _c.Choice = None, sim: Optional[str] = None,
          root: Optional[str] = None, timeout: float = 3.0, mig: bool = False) -> Watch:
    """for sample in gpulse.watch(0.5): …; or: async for sample in gpulse.watch(0.5): …"""
    return Watch(interval, fields, gpus=gpus, sim=sim, root=root, timeout=timeout, mig=mig)
