"""Marks and spans in the timeline of a job: gpulse run --timeline."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from typing import Any

from ._library import encoded, lib


def mark(name: str) -> None:
    """Marks this moment in the timeline of the job. Does nothing, and costs nothing, without one."""
    lib.gpulse_mark(encoded(name, "mark()"))


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
