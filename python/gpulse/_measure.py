"""What a block of code consumes: GPU memory, host memory, energy and time."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import _library as _c
from ._errors import Unavailable
from ._model import Sample, Session, metrics
from ._torch import TorchBlock, TorchUse, free_memory
from ._tree import resident, tree_of, use_cuda
from ._usage import Reading, Usage, known, value_or_none

_FIELDS = "index,name,memory.used,memory.free,memory.total,utilization.gpu,energy.consumption,pid,used_memory"
_POINTS = 1000 # of the curve, at most


class Point(NamedTuple):
    """A sample: seconds since the start of the block, GPU memory of its processes in bytes, and the mean load of
    their GPUs in percent. None: unknown."""

    seconds: float
    memory: Optional[float]
    load: Optional[float]


class _GpuNow(NamedTuple):
    """A GPU in a sample; `is_used`: by the processes that are measured."""

    memory: Reading
    all_memory: Reading
    load: Reading
    energy: Reading
    is_used: bool


class GpuUse:
    """A GPU during a block. `memory` is that of the block's processes, `all_memory` that of all processes."""

    def __init__(self, index: Optional[int], name: str, free: Reading, total: Reading) -> None:
        self.index: Optional[int] = index
        self.name: str = name
        self.memory: Usage = Usage("used_gpu_memory")
        self.all_memory: Usage = Usage("memory.used")
        self._free_at_start = free
        self._total = total
        self._seen = False
        self._load_sum = 0.0
        self._load_count = 0
        self._load: Reading = Unavailable("utilization.gpu", "not read yet")
        self._energy: List[Reading] = []

    def _take(self, now: _GpuNow) -> None:
        self.memory._take(now.memory)
        self.all_memory._take(now.all_memory)
        self._load = now.load
        if not isinstance(now.load, Unavailable):
            self._load_sum += now.load
            self._load_count += 1
        self._energy = [self._energy[0] if self._energy else now.energy, now.energy]
        self._seen = self._seen or now.is_used

    @property
    def load(self) -> float:
        """Mean of the samples, in percent, of the whole GPU."""
        return self._load_sum / self._load_count if self._load_count else known(self._load)

    @property
    def energy(self) -> float:
        """Joules, of the whole GPU, from the driver's counter."""
        first, last = (known(reading) for reading in self._energy)
        if last < first:
            raise Unavailable("energy.consumption", "the driver's counter was reset")
        return last - first

    def to_dict(self) -> Dict[str, Any]:
        return {"index": self.index, "name": self.name, "memory": self.memory.to_dict(),
                "all_memory": self.all_memory.to_dict(), "load": value_or_none(lambda: self.load),
                "energy": value_or_none(lambda: self.energy)}

    def __str__(self) -> str:
        load, energy = value_or_none(lambda: self.load), value_or_none(lambda: self.energy)
        return (f"GPU {self.index}: {self.memory}" + ("" if load is None else f"; load {load:.0f} %") +
                ("" if energy is None else f", {energy:.0f} J"))

    def __repr__(self) -> str:
        return f"<{self}>"


class Measure:
    """See measure()."""

    def __init__(self, *, interval: float = 0.05, pid: Optional[int] = None, gpus: _c.Choice = None,
                 reclaim: bool = True) -> None:
        if pid is not None and (isinstance(pid, bool) or not isinstance(pid, int)):
            raise TypeError(f"pid takes a process id, not {pid!r}")
        if pid is not None and not 0 < pid < 2**31:
            raise ValueError(f"bad pid {pid}")
        self.interval: float = _c.interval_of(interval)
        self._pid = pid
        self._chosen = _c.choice(gpus)
        self._reclaim = reclaim
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._gpus: List[GpuUse] = []
        self.host: Usage = Usage("process.rss")
        self._torch: Optional[TorchBlock] = None
        self._curve: List[Tuple[float, List[_GpuNow]]] = []
        self._stride = 1 # of the samples in the curve
        self._samples = 0
        self._begin: Optional[float] = None
        self._seconds: Optional[float] = None
        self._listed = False

    # ---- the block ----

    def __enter__(self) -> "Measure":
        if self._begin is not None:
            raise RuntimeError("a measurement is used once; call measure() for another one")
        self._owner = os.getpid()
        self.pid = self._owner if self._pid is None else self._pid
        self._session = _open(self._chosen)
        self._thread = threading.Thread(target=self._watch, name="gpulse-measure", daemon=True)
        self._begin = time.perf_counter()
        self._take(self._read(), is_at_end=True)
        self._thread.start()
        if self.pid == os.getpid():
            self._torch = TorchBlock()
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._owner: # after fork(): there is no sampling thread here
            return
        self._stop.set()
        # A sample ends in time even if a GPU hangs; more than that is never waited for.
        self._thread.join(60)
        hangs = self._thread.is_alive()
        try:
            if hangs:
                raise RuntimeError("the driver does not respond")
            self._take(self._read(), is_at_end=True)
        except Exception as problem: # an exception of the block is more important
            self._fail(f"the last sample failed: {problem}")
        self._seconds = self.seconds
        if self._torch:
            self._torch.end()
        if self._reclaim and not hangs:
            self._reclaim_memory()
        if not hangs:
            _close(self._chosen, self._session)

    def _reclaim_memory(self) -> None:
        try:
            if self.pid == os.getpid():
                free_memory()
            host, gpus = self._read()
        except Exception as problem:
            for usage in self._usages():
                usage._after = Unavailable(usage._metric, f"the sample after the block failed: {problem}")
            return
        for gpu, now in zip(self._gpus, gpus):
            gpu.memory._after, gpu.all_memory._after = now.memory, now.all_memory
        self.host._after = host
        if self._torch:
            self._torch.after()

    def _watch(self) -> None:
        """The sampling thread. Whatever goes wrong here is in the result."""
        try:
            while not self._stop.wait(self.interval):
                self._take(self._read())
        except BaseException as problem:
            with self._lock:
                self._lose_peak(f"the sampling thread failed: {type(problem).__name__}: {problem}")

    def _usages(self) -> List[Usage]:
        return [self.host] + [usage for gpu in self._gpus for usage in (gpu.memory, gpu.all_memory)]

    def _lose_peak(self, reason: str) -> None:
        for usage in self._usages():
            usage._peak_unknown = Unavailable(usage._metric, reason)

    def _fail(self, reason: str) -> None:
        self._lose_peak(reason)
        for usage in self._usages():
            usage._end = Unavailable(usage._metric, reason)
        for gpu in self._gpus:
            gpu._energy = [Unavailable("energy.consumption", reason)] * 2

    # ---- samples ----

    def _read(self) -> Tuple[Reading, List[_GpuNow]]:
        """Host memory, and the GPUs."""
        sample = self._session.sample()
        if not self._gpus:
            self._gpus = [GpuUse(_int(gpu.get("index")), str(gpu.get("name", "?")),
                                 _reading(sample, "memory.free", row), _reading(sample, "memory.total", row))
                          for row, gpu in enumerate(sample.gpus)]
        tree = tree_of(self.pid)
        memory = _nothing_yet(sample, len(self._gpus))
        used = [False] * len(self._gpus)
        for process in sample.processes:
            row = process._gpu_row()
            if process.get("pid") in tree and row < len(used):
                memory[row] = _add(memory[row], _reading(sample, "used_gpu_memory", process._row))
                used[row] = True
        gpus = [_GpuNow(memory[row], _reading(sample, "memory.used", row), _reading(sample, "utilization.gpu", row),
                        _reading(sample, "energy.consumption", row), used[row]) for row in range(len(self._gpus))]
        self._tree = tree
        return resident(self.pid, tree), gpus

    def _take(self, moment: Tuple[Reading, List[_GpuNow]], is_at_end: bool = False) -> None:
        """is_at_end: the first sample, or the last."""
        host, gpus = moment
        with self._lock:
            self.host._take(host)
            for gpu, now in zip(self._gpus, gpus):
                gpu._take(now)
                self._listed = self._listed or now.is_used
            if is_at_end or self._samples % self._stride == 0:
                self._curve.append((self.seconds, gpus))
            self._samples += 1
            if len(self._curve) > _POINTS:
                del self._curve[1::2]
                self._stride *= 2
        if is_at_end and not self._listed and use_cuda(self._tree):
            for gpu in self._gpus:
                gpu._seen = True
                gpu.memory._hide("the driver does not list this process; is it in another pid namespace?")

    # ---- the result ----

    @property
    def gpus(self) -> List[GpuUse]:
        """The GPUs that the block's processes used; with gpus=…, those."""
        return [gpu for gpu in self._gpus if gpu._seen or self._chosen is not None]

    @property
    def seconds(self) -> float:
        if self._begin is None:
            raise Unavailable("seconds", "the block has not begun")
        return time.perf_counter() - self._begin if self._seconds is None else self._seconds

    @property
    def consumed(self) -> int:
        """GPU memory that the block added, on all its GPUs, in bytes."""
        return sum(gpu.memory.consumed for gpu in self.gpus)

    @property
    def peaked(self) -> int:
        """Sum of what it needed temporarily on each GPU, in bytes."""
        return sum(gpu.memory.peaked for gpu in self.gpus)

    @property
    def reclaimed(self) -> int:
        """GPU memory that was freed after the block, in bytes."""
        return sum(gpu.memory.reclaimed for gpu in self.gpus)

    @property
    def energy(self) -> float:
        """Joules used by its GPUs."""
        return sum(gpu.energy for gpu in self.gpus)

    @property
    def torch(self) -> List[TorchUse]:
        """PyTorch's own numbers, for each CUDA device."""
        if self._torch is None:
            raise Unavailable("torch", "of another process")
        return self._torch.uses

    @property
    def curve(self) -> List[Point]:
        """The samples; of a long block, a part of them."""
        rows = [row for row, gpu in enumerate(self._gpus) if gpu._seen or self._chosen is not None]
        with self._lock:
            return [Point(seconds, _sum([gpus[row].memory for row in rows]), _mean([gpus[row].load for row in rows]))
                    for seconds, gpus in self._curve]

    def to_dict(self) -> Dict[str, Any]:
        return {"seconds": self.seconds, "gpus": [gpu.to_dict() for gpu in self.gpus], "host": self.host.to_dict(),
                "torch": [use.to_dict() for use in value_or_none(lambda: self.torch) or []]}

    def __str__(self) -> str:
        if self._begin is None:
            return "a measurement that has not begun"
        lines = [str(gpu) for gpu in self.gpus] or ["GPU: not used"]
        lines += [str(use) for use in value_or_none(lambda: self.torch) or []]
        return "\n".join([*lines, f"host: {self.host}", f"time: {self.seconds:.3f} s"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__.strip('_')}: {'; '.join(str(self).splitlines())}>"


def measure(*, interval: float = 0.05, pid: Optional[int] = None, gpus: _c.Choice = None,
            reclaim: bool = True) -> Measure:
    """with gpulse.measure() as m: …; print(m.consumed, m.energy, m.seconds); print(m)

    Measures this process and its children, or those of process `pid`, on the GPUs that they use, or on those chosen
    by `gpus` as in Session(). The peak is the highest amount seen in samples, taken every `interval` seconds and at
    the beginning and the end: the driver does not report peaks. With `reclaim`, garbage is collected and
    PyTorch's cache is emptied after the block, to see how much of its memory that frees."""
    return Measure(interval=interval, pid=pid, gpus=gpus, reclaim=reclaim)


def _int(value: Any) -> Optional[int]:
    return None if value is None else int(value)


def _reading(sample: Sample, name: str, row: int) -> Reading:
    """Of now: a value that is old because the GPU does not respond is none."""
    value = sample._get(metrics()[name], row)
    if value.status == _c.OK:
        return float(value.u.f) if value.type == _c.REAL else int(value.u.i)
    return _missing(name, value)


def _missing(name: str, value: _c.Value) -> Unavailable:
    reasons = {_c.STALE: "the GPU does not respond", _c.NONE: "there is no such GPU any more"}
    return Unavailable(name, reasons.get(value.status) or value.reason.decode())


def _nothing_yet(sample: Sample, gpus: int) -> List[Reading]:
    """For each GPU 0, unless its processes are unknown. A GPU that has failed lists none. If none has, but something is
    missing in the sample, it is the processes of a GPU without any."""
    values = [sample._get(metrics()["memory.used"], row) for row in range(gpus)]
    failed = [value.status not in (_c.OK, _c.UNSUPPORTED) for value in values]
    listed = {process._gpu_row() for process in sample.processes}
    unlisted = Unavailable("used_gpu_memory", "the driver lists no processes")
    lacks_lists = sample.partial and not any(failed)
    return [_missing("used_gpu_memory", value) if has_failed else unlisted if lacks_lists and row not in listed else 0
            for row, (value, has_failed) in enumerate(zip(values, failed))]


def _add(a: Reading, b: Reading) -> Reading:
    if isinstance(a, Unavailable):
        return a
    return b if isinstance(b, Unavailable) else a + b


def _sum(readings: List[Reading]) -> Optional[float]:
    total: Reading = 0
    for reading in readings:
        total = _add(total, reading)
    return None if isinstance(total, Unavailable) else total


def _mean(readings: List[Reading]) -> Optional[float]:
    total = _sum(readings)
    return total / len(readings) if readings and total is not None else None


# Sessions that are open but not in use, by their choice of GPUs: opening the driver takes long.
_idle: Dict[Optional[bytes], List[Session]] = {}
_IDLE_MOST = 8


def _open(gpus: Optional[bytes]) -> Session:
    try:
        return _idle.setdefault(gpus, []).pop()
    except IndexError:
        return Session(_FIELDS, gpus=None if gpus is None else os.fsdecode(gpus))


def _close(gpus: Optional[bytes], session: Session) -> None:
    if sum(map(len, list(_idle.values()))) < _IDLE_MOST:
        _idle.setdefault(gpus, []).append(session)
