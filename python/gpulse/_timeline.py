"""What a job reports to gpulse run: marks and spans for its timeline, and its steps."""

from __future__ import annotations

import inspect
import threading
from contextlib import ContextDecorator
from typing import Any, Callable, Sequence, Tuple

from ._library import lib, required


def mark(name: str) -> None:
    """Marks this moment in the timeline of the job. Does nothing, and costs nothing, without one."""
    lib.gpulse_mark(required(name, "mark()"))


def step() -> None:
    """Counts a step of the job, such as one of a training loop: call it once in each. gpulse run reports steps per second
    if it runs with --timeline, and the MFU with --flops-per-step. Otherwise this does nothing."""
    lib.gpulse_step()


_LATER: Sequence[Tuple[str, Callable[[Any], bool]]] = (
    ("a coroutine function", inspect.iscoroutinefunction), ("an async generator", inspect.isasyncgenfunction),
    ("a generator", inspect.isgeneratorfunction))


class span(ContextDecorator):
    """A range in the timeline of the job: a block, as in with gpulse.span("load"): …, or with @gpulse.span("step")
    each call of a function. A coroutine function or a generator returns before its body runs, so these cannot be
    decorated (TypeError): use with gpulse.span(…) inside."""

    def __init__(self, name: str) -> None:
        self._name = required(name, "span()")
        self._thread = 0

    def __call__(self, function: Any) -> Any:
        for what, applies in _LATER:
            if applies(function):
                raise TypeError(f"span() cannot decorate {what}: use with gpulse.span(…) inside")
        return super().__call__(function)

    def _recreate_cm(self) -> span:
        """For each call of a decorated function: several may run at the same time."""
        again = span.__new__(span)
        again._name = self._name
        return again

    def __enter__(self) -> span:
        self._thread = threading.get_ident()
        lib.gpulse_range_push(self._name)
        return self

    def __exit__(self, *raised: Any) -> None:
        if self._thread == threading.get_ident(): # a generator may end on a thread that has not begun the range
            lib.gpulse_range_pop()
