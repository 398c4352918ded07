"""Repeated blocks, and whether memory grows from one to the next."""

from __future__ import annotations

import functools
import inspect
import time
import types
from typing import Any, Callable, Dict, Generic, List, NamedTuple, Optional, TypeVar, overload

from ._errors import Unavailable
from ._measure import Measure
from ._usage import Usage, size_text

# The rule of `gpulse ps --leaks`: caches grow in steps and then stay level, so only the minimum of several samples
# counts, in windows that rise from the first to the last.
SAMPLES = 5
WINDOWS = 64
WINDOWS_MIN = 20
RISING_PERCENT = 95
LEAST_PER_MINUTE = 2**20
LEAST_IN_ALL = 2**20 # An allocator that warms up grows by less.


class Trend(NamedTuple):
    """How memory changes from one repetition to the next. `known`: after 100 repetitions. `rises`: 95 % of all
    pairs of windows rise, by more than 1 MiB per minute and more than 1 MiB in all; a window is the minimum after 5
    repetitions. The growth is the median of the slopes of all pairs (Theil-Sen estimator), in bytes; None if it is
    not known yet."""

    what: str
    known: bool
    rises: bool
    per_repetition: Optional[float]
    per_second: Optional[float]

    def __str__(self) -> str:
        if self.per_repetition is None:
            return f"{self.what}: not enough repetitions"
        return f"{self.what}: {'leaks' if self.rises else 'does not leak'}, {size_text(self.per_repetition)} each time"


class _Series:
    """The memory of one thing after each repetition."""

    def __init__(self) -> None:
        self._open: List[float] = []
        self._windows: List[List[float]] = [] # repetition, time, bytes

    def take(self, repetition: int, seconds: float, value: float) -> None:
        self._open.append(value)
        if len(self._open) == SAMPLES:
            self._windows = [*self._windows[1 - WINDOWS:], [repetition, seconds, min(self._open)]]
            self._open = []

    def trend(self, what: str) -> Trend:
        windows = self._windows
        if len(windows) < WINDOWS_MIN:
            return Trend(what, False, False, None, None)
        pairs = [(a, b) for j, b in enumerate(windows) for a in windows[:j]]
        by_repetition, by_time = (_median([(b[2] - a[2]) / max(b[x] - a[x], 1e-9) for a, b in pairs]) for x in (0, 1))
        rising = sum(b[2] > a[2] for a, b in pairs)
        rises = (rising * 100 >= len(pairs) * RISING_PERCENT and by_time * 60 > LEAST_PER_MINUTE
                 and windows[-1][2] - windows[0][2] > LEAST_IN_ALL)
        return Trend(what, True, rises, by_repetition, by_time)


def _median(values: List[float]) -> float:
    values = sorted(values)
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


class Measurements:
    """Repeated blocks:

        runs = gpulse.Measurements()
        for batch in batches:
            with runs.measure():
                train(batch)
        print(runs.last, *runs.leaks(), sep="\\n")

    The options are those of measure()."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._series: Dict[str, _Series] = {}
        self.count = 0
        self._last: Optional[Measure] = None

    def measure(self) -> Measure:
        return _Repetition(self, **self._options)

    @property
    def last(self) -> Measure:
        if self._last is None:
            raise Unavailable("last", "no block has ended yet")
        return self._last

    def _take(self, done: Measure) -> None:
        self._last = done
        self.count += 1
        self._note("host", done.host)
        for gpu in done.gpus:
            self._note(f"GPU {gpu.index}", gpu.memory)
        try:
            for use in done.torch:
                self._note(f"torch cuda:{use.device}", use.allocated)
        except Unavailable:
            pass

    def _note(self, what: str, usage: Usage) -> None:
        """Unknown values are left out."""
        try:
            value = usage.end if isinstance(usage._after, Unavailable) else usage._after
        except Unavailable:
            return
        self._series.setdefault(what, _Series()).take(self.count, time.monotonic(), value)

    def trends(self) -> List[Trend]:
        """Of "host", "GPU 0", …, and "torch cuda:0", …"""
        return [series.trend(what) for what, series in self._series.items()]

    def leaks(self) -> List[Trend]:
        """Those that rise."""
        return [trend for trend in self.trends() if trend.rises]


class _Repetition(Measure):
    def __init__(self, runs: Measurements, **options: Any) -> None:
        super().__init__(**options)
        self._runs: Optional[Measurements] = runs

    def __exit__(self, *about: object) -> None:
        super().__exit__(*about)
        if self._runs and self._seconds is not None:
            self._runs._take(self)
        self._runs = None


R = TypeVar("R")


class Measured(Generic[R]):
    """A function whose calls are measured; see measured()."""

    def __init__(self, function: Callable[..., R], **options: Any) -> None:
        if not callable(function):
            raise TypeError(f"measured() takes a function, not {function!r}")
        functools.update_wrapper(self, function) # first: of another Measured, it also copies what follows
        self._function = function
        self.measurements = Measurements(**options)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if inspect.iscoroutinefunction(self._function):
            return self._wait(self._function(*args, **kwargs)) # type: ignore[return-value]
        with self.measurements.measure():
            return self._function(*args, **kwargs)

    async def _wait(self, coroutine: Any) -> Any:
        with self.measurements.measure():
            return await coroutine

    def __reduce__(self) -> str:
        return str(self.__qualname__) # type: ignore[attr-defined] # by its name, as functions are pickled

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


@overload
def measured(function: Callable[..., R]) -> Measured[R]: ...
@overload
def measured(**options: Any) -> Callable[[Callable[..., R]], Measured[R]]: ...
def measured(function: Optional[Callable[..., R]] = None, **options: Any) -> Any:
    """Measures each call of a function, which may be a coroutine, but not the iteration over a generator:

        @gpulse.measured
        def train(batch): …

        train(batch)
        print(train.measurements.last, train.measurements.leaks())

    @gpulse.measured(interval=0.01, …) passes options of measure()."""
    if function is None:
        return lambda chosen: Measured(chosen, **options)
    return Measured(function)
