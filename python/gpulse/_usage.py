"""Memory during a block of code."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Optional, Union

from ._errors import Unavailable

# A value, or why there is none.
Reading = Union[float, Unavailable]


def known(reading: Reading) -> float:
    """Raises Unavailable."""
    if isinstance(reading, Unavailable):
        raise Unavailable(reading.metric, reading.reason)
    return reading


class Usage:
    """Memory in bytes: at the start and at the end of a block, and the highest seen in samples. While the block
    runs, the end is the newest sample. A value that does not exist raises Unavailable."""

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._start: Optional[Reading] = None
        self._end: Reading = Unavailable(metric, "not read yet")
        self._peak: Optional[float] = None
        self._peak_unknown: Optional[Unavailable] = None
        self._after: Reading = Unavailable(metric, "read after the end of the block, if reclaim=True")

    def _take(self, reading: Reading) -> None:
        if self._start is None:
            self._start = reading
        self._end = reading
        if not isinstance(reading, Unavailable):
            self._raise_peak(reading)

    def _raise_peak(self, value: float) -> None:
        self._peak = value if self._peak is None else max(self._peak, value)

    def _hide(self, reason: str) -> None:
        """Nothing is known."""
        self._start = self._end = self._after = self._peak_unknown = Unavailable(self._metric, reason)

    @property
    def start(self) -> int:
        return int(known(self._end if self._start is None else self._start))

    @property
    def end(self) -> int:
        return int(known(self._end))

    @property
    def peak(self) -> int:
        """The highest amount seen."""
        if self._peak_unknown:
            return int(known(self._peak_unknown))
        return int(known(self._end if self._peak is None else self._peak))

    @property
    def consumed(self) -> int:
        """What the block added; less than 0 if it freed memory."""
        return self.end - self.start

    @property
    def peaked(self) -> int:
        """How far the peak was above both the start and the end: memory that the block needed temporarily."""
        return self.peak - max(self.start, self.end)

    @property
    def reclaimed(self) -> int:
        """What was freed after the block, by collecting garbage and emptying PyTorch's cache."""
        return self.end - int(known(self._after))

    def to_dict(self) -> Dict[str, Optional[int]]:
        return {name: value_or_none(partial(getattr, self, name))
                for name in ("start", "end", "peak", "consumed", "peaked", "reclaimed")}

    def __str__(self) -> str:
        values = {name: value_or_none(partial(getattr, self, name)) for name in ("consumed", "peaked", "reclaimed", "end")}
        return ", ".join(f"{name} {'unknown' if size is None else size_text(size)}" for name, size in values.items())

    def __repr__(self) -> str:
        return f"<{self}>"


def value_or_none(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except Unavailable:
        return None


def size_text(size: float) -> str:
    mib = round(size / 2**20, 1) + 0.0 # never -0.0
    return f"{size / 2**30:.2f} GiB" if abs(size) >= 2**30 else f"{mib:.1f} MiB"
