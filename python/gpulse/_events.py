"""Events of GPUs, as they happen."""

from __future__ import annotations

import ctypes as c
import math
import os
import select
from dataclasses import dataclass
from typing import AsyncIterator, Iterator, Optional

from . import _library as _c


@dataclass(frozen=True)
class Event:
    """`kind` is one of gpulse-events(1): "xid", "lost", …; `gpu` is None if it is not about one GPU, and so are
    `gpu_instance` and `compute_instance` if it is about a whole one. `number` is the Xid, the pid, or the number of
    missed events."""

    kind: str
    time: float
    gpu: Optional[int]
    uuid: str
    pci_bus_id: str
    gpu_instance: Optional[int]
    compute_instance: Optional[int]
    number: int
    was: str
    now: str
    text: str
    from_driver: bool


def _known(number: int) -> Optional[int]:
    return number if number >= 0 else None


def _event(e: _c.Event) -> Event:
    return Event(e.kind.decode(), e.time_ns / 1e9, _known(e.gpu), e.uuid.decode(), e.pci_bus_id.decode(),
                 _known(e.gpu_instance), _known(e.compute_instance), e.number, e.was.decode(), e.now.decode(),
                 e.text.decode(), e.from_driver)


class Events:
    """An iterator, also an asynchronous one, over events: the first is of kind "start". fileno() is for select()."""

    def __init__(self, kinds: Optional[str] = None, *, interval: float = 5.0, gpus: Optional[str] = None,
                 sim: Optional[str] = None, timeout: Optional[float] = None) -> None:
        if not interval > 0:
            raise ValueError("the interval must be more than 0 seconds")
        options = _c.options(gpus=gpus, sim=sim, timeout=timeout)
        error = _c.Error()
        self._pointer = c.c_void_p()
        pointer = c.c_void_p()
        _c.check(_c.lib.gpulse_events_open(c.byref(options), kinds and kinds.encode(), int(interval * 1e9),
                                           c.byref(pointer), c.byref(error)), error)
        self._pointer = pointer
        self._pid = os.getpid()

    def fileno(self) -> int:
        if not self._pointer:
            raise ValueError("these events are closed")
        return int(_c.lib.gpulse_events_fd(self._pointer))

    def poll(self, timeout: Optional[float] = 0) -> Optional[Event]:
        """The next event; None if there is none within `timeout` seconds (None: no limit)."""
        fd = self.fileno()
        event = self._take()
        if event is None:
            news = select.poll()
            news.register(fd, select.POLLIN)
            if news.poll(None if timeout is None else math.ceil(max(timeout, 0) * 1000)):
                event = self._take()
        return event

    def _take(self) -> Optional[Event]:
        event = _c.Event(size=c.sizeof(_c.Event))
        error = _c.Error()
        found = _c.check(_c.lib.gpulse_events_next(self._pointer, c.byref(event), c.byref(error)), error)
        return _event(event) if found else None

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while True:
            event = self.poll(None)
            if event is not None:
                return event

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        import asyncio # takes longer than all other imports

        loop = asyncio.get_running_loop()
        while True:
            fd = self.fileno()
            event = self._take()
            if event is not None:
                return event
            ready = asyncio.Event()
            loop.add_reader(fd, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_reader(fd)

    def close(self) -> None:
        pointer, self._pointer = self._pointer, c.c_void_p()
        if pointer:
            _c.lib.gpulse_events_close(pointer)

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) and getattr(self, "_pid", 0) == os.getpid():
            self.close()


def events(kinds: Optional[str] = None, *, interval: float = 5.0, gpus: Optional[str] = None,
           sim: Optional[str] = None, timeout: Optional[float] = None) -> Events:
    """for event in gpulse.events("xid,lost"): …; or: async for event in gpulse.events(): …

    `kinds` are those of gpulse-events(1), or groups of them (default "health,state"). What the driver does not report
    is found by comparing samples every `interval` seconds."""
    return Events(kinds, interval=interval, gpus=gpus, sim=sim, timeout=timeout)
