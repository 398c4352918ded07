"""Says who holds the memory of the GPUs when a program runs out of it.

    logging.getLogger().addHandler(OutOfMemoryHandler())   # for errors that are logged
    install_excepthook()                                   # for those that end the program
"""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import Optional, Type

from .._oom import holders, ran_out


class OutOfMemoryHandler(logging.Handler):
    """When a record has an out-of-memory exception, of a GPU, logs another one to the logger "gpulse": a line for
    each GPU and each of its processes."""

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(level)
        self._logger = logging.getLogger("gpulse")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            problem = record.exc_info[1] if record.exc_info else None
            if problem is not None and ran_out(problem) == "gpu":
                self._logger.log(record.levelno, "GPU memory at the time of the error:\n%s", holders())
        except Exception:
            self.handleError(record)


def install_excepthook() -> None:
    """An out-of-memory exception that nothing catches is followed by these lines on standard error."""
    before = sys.excepthook

    def hook(kind: Type[BaseException], problem: BaseException, trace: Optional[TracebackType]) -> None:
        before(kind, problem, trace)
        if ran_out(problem) == "gpu":
            print("GPU memory at the time of the error:", holders(), sep="\n", file=sys.stderr)

    sys.excepthook = hook
