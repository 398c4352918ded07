"""The largest batch size that fits the GPU, found in this process."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple

from ._errors import Unavailable
from ._fit import TEXTS, TRIALS, Fit, Request, Trial
from ._measure import Measure, measure
from ._oom import ran_out
from ._torch import TorchUse, free_memory
from ._usage import known, size_text, value_or_none


@dataclass(frozen=True)
class BatchFit:
    """What fit_batch() found. `end` is a word: found, max, trials; or, if there is no answer, nothing, independent,
    preallocates, unconfirmed or host; `reason` says it in a sentence."""

    end: str
    reason: str
    trials: List[Trial]
    capacity: int # GPU memory that this process may use, in bytes
    _answer: int

    @property
    def batch_size(self) -> int:
        """Raises Unavailable if no size was found."""
        if not self._answer:
            raise Unavailable("batch_size", self.reason)
        return self._answer

    @property
    def peak(self) -> int:
        """The highest GPU memory of this process with that size, in bytes."""
        return max(t.peak for t in self.trials if t.batch_size == self.batch_size)

    def __str__(self) -> str:
        lines = [f"{t.batch_size:>10}  {t.verdict:<6} {size_text(t.peak):>12}  {t.seconds:8.2f} s"
                 f"{'  again' if t.is_confirming else ''}" for t in self.trials]
        return "\n".join([*lines, f"batch size {self._answer or 'unknown'}: {self.reason}"])


def _peak(m: Measure) -> int:
    """Of the GPU where it is highest. PyTorch knows its own exactly, while samples may have missed it; which of several
    devices is which, it does not say."""
    devices: List[TorchUse] = value_or_none(lambda: m.torch) or []
    if len(devices) == 1 == len(m.gpus):
        memory, reserved = m.gpus[0].memory, devices[0].reserved
        return max(memory.peak, memory.start + reserved.peak - reserved.start)
    return max(gpu.memory.peak for gpu in m.gpus)


def _try(function: Callable[[int], Any], batch: int, gpus: Optional[str], interval: float) -> Tuple[str, Measure]:
    verdict = "ok"
    with measure(gpus=gpus, interval=interval) as m:
        try:
            function(batch)
        except Exception as problem:
            memory = ran_out(problem)
            if not memory:
                raise
            verdict = "oom" if memory == "gpu" else "host"
            _forget(problem)
    return verdict, m


def _forget(problem: Optional[BaseException]) -> None:
    """The frames of a failed call hold its tensors."""
    seen: List[int] = []
    while problem is not None and id(problem) not in seen:
        seen.append(id(problem))
        traceback.clear_frames(problem.__traceback__)
        problem = problem.__cause__ or problem.__context__


def _room(m: Measure) -> Tuple[int, int]:
    """(what this process may use, total) of the GPU that has the least: what is free, and what it has itself."""
    if not m.gpus:
        raise Unavailable("used_gpu_memory", "the function used no GPU; choose one with gpus=")
    rooms = [int(known(gpu._free)) + gpu.memory.start for gpu in m.gpus]
    return min(rooms), min(int(known(gpu._total)) for gpu in m.gpus)


def fit_batch(function: Callable[[int], Any], *, start: int = 0, min: int = 1, max: int = 0, multiple: int = 1,
              margin: float = 0.05, trials: int = TRIALS, confirm: bool = False, gpus: Optional[str] = None,
              interval: float = 0.02, progress: Optional[Callable[[Trial], Any]] = None) -> BatchFit:
    """Calls function(batch_size) with different sizes, and returns the largest that fits the GPU, as
    `gpulse fit-batch` does with programs:

        best = gpulse.fit_batch(lambda size: train_some_steps(model, size), start=8, multiple=8)
        print(best.batch_size, best)

    The function should do a few whole steps, so that gradients and the optimizer's state exist. Out-of-memory errors
    of PyTorch, TensorFlow, JAX, CuPy and others are caught, and the memory of each trial is freed; other exceptions
    are passed on. A share `margin` of the memory stays free, at least 512 MiB. With `confirm`, the result is called
    once more, and reduced if it fails. `max` 0 is no limit; `start` 0 is `min`. The GPUs are those that the first
    call uses, or `gpus` as in Session(). `progress` is called after each trial."""
    def fit_of(capacity: int, total: int) -> Fit:
        return Fit(Request(capacity, total, min, start, max, multiple, margin, trials, confirm))

    free_memory()
    fit = fit_of(1 << 62, 1 << 60) # the GPUs are known after the first call
    while fit.end == "searching":
        verdict, m = _try(function, fit.next, gpus, interval)
        if not fit.trials:
            fit = fit_of(*_room(m))
            gpus = gpus or ",".join(str(gpu.index) for gpu in m.gpus)
        fit.take(verdict, _peak(m), m.seconds)
        if progress:
            progress(fit.trials[-1])
    return BatchFit(fit.end, TEXTS[fit.end], fit.trials, fit.request.capacity, fit.answer)
