"""What a job reports to gpulse run: marks and spans for its timeline, and its steps."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from typing import Any

from ._library import encoded, lib


def mark(name: str) -> None:
    """Marks this moment in the timeline of the job. Does nothing, and costs nothing, without one."""
    lib.gpulse_mark(encoded(name, "mark()"))


def step() -> None:
    """Counts a step of the job, such as one of a training loop: call it once in each. gpulse run reports steps per second
    if it runs with --timeline, and the MFU with --flops-per-step. Otherwise this does nothing."""
    lib.gpulse_step()


class span(ContextDecorator):
    """A range in the timeline of the job: a block, as in with gpulse.span("load"): …, or with @gpulse.span("step")
    each call of a function."""

    def __init__(self, name: str) -> None:
        self._name = encoded(name, "span()")
        self._thread = 0

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
