"""The largest batch size that fits the GPU, found in this process."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Tuple

from ._errors import Unavailable
from ._fit import TEXTS, TRIALS, Fit, Request, Trial
from ._library import Choice
from ._measure import GpuUse, Measure, measure
from ._oom import ran_out
from ._torch import free_memory
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
        lines = [f"{t.batch_size:>10}  {t.verdict:<6} {size_text(t.peak) if t.peak else '-':>12}  {t.seconds:8.2f} s"
                 f"{'  again' if t.is_confirming else ''}" for t in self.trials]
        return "\n".join([*lines, f"batch size {self._answer or 'unknown'}: {self.reason}"])


def _room(gpu: GpuUse) -> int:
    """What this process may use: what is free, and what it has itself."""
    return int(known(gpu._free_at_start)) + gpu.memory.start


def _tightest(m: Measure) -> GpuUse:
    """The GPU on which the least memory was left: it decides what fits."""
    if not m.gpus:
        raise Unavailable("used_gpu_memory", "the function used no GPU; choose one with gpus=")
    return min(m.gpus, key=lambda gpu: _room(gpu) - gpu.memory.peak)


def _peak(m: Measure, index: Optional[int]) -> int:
    """Of this GPU. PyTorch knows its own exactly, while samples may have missed it; which of several devices is which,
    it does not say."""
    memory = next((gpu.memory for gpu in m.gpus if gpu.index == index), None)
    if memory is None:
        return 0
    devices = [device for device in value_or_none(lambda: m.torch) or [] if device.reserved.peak > 0]
    if len(devices) == 1 == len(m.gpus):
        reserved = devices[0].reserved
        return int(max(memory.peak, memory.start + reserved.peak - reserved.start))
    return memory.peak


def _try(function: Callable[[int], Any], batch: int, gpus: Choice, interval: float) -> Tuple[str, Measure]:
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


def fit_batch(function: Callable[[int], Any], *, start: int = 0, min: int = 1, max: int = 0, multiple: int = 1,
              margin: float = 0.05, trials: int = TRIALS, confirm: bool = False, gpus: Choice = None,
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
    index: Optional[int] = None
    while fit.end == "searching":
        verdict, m = _try(function, fit.next, gpus, interval)
        if not fit.trials:
            tightest = _tightest(m)
            fit = fit_of(_room(tightest), int(known(tightest._total)))
            index = tightest.index
            gpus = gpus if gpus is not None else ",".join(str(gpu.index) for gpu in m.gpus)
        fit.take(verdict, _peak(m, index), m.seconds)
        if progress:
            progress(fit.trials[-1])
    end, answer = fit.end, fit.answer
    if end == "max" and not any(trial.peak for trial in fit.trials): # it does not use this GPU
        end, answer = "independent", 0
    return BatchFit(end, TEXTS[end], fit.trials, fit.request.capacity, answer)
