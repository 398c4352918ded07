"""Events of GPUs, as they happen."""

from __future__ import annotations

import contextlib
import ctypes as c
import math
import os
import select
import threading
import time
from dataclasses import dataclass
from typing import AsyncIterator, Iterator, List, Optional

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


class _Closed(ValueError):
    """close() was called."""


class Events(_c.Owner):
    """An iterator, also an asynchronous one, over events: the first is of kind "start". fileno() is for select().
    Several threads or tasks may take events; each gets others. close() ends their iterations."""

    def __init__(self, kinds: Optional[str] = None, *, interval: float = 5.0, gpus: Optional[str] = None,
                 sim: Optional[str] = None, timeout: Optional[float] = None) -> None:
        if not interval > 0:
            raise ValueError("the interval must be more than 0 seconds")
        options = _c.options(gpus=gpus, sim=sim, timeout=timeout)
        error = _c.Error()
        self._pointer = c.c_void_p()
        self._lock = threading.Lock() # of these three
        self._is_closed = False
        self._waiting = 0
        pointer = c.c_void_p()
        _c.check(_c.lib.gpulse_events_open(c.byref(options), kinds and kinds.encode(), int(interval * 1e9),
                                           c.byref(pointer), c.byref(error)), error)
        self._pointer = pointer
        self._pid = os.getpid()
        self._closed, self._close = os.pipe() # the end of the one makes the other one readable

    def fileno(self) -> int:
        with self._lock:
            return self._file()

    def _file(self) -> int:
        if self._is_closed:
            raise _Closed("these events are closed")
        return int(_c.lib.gpulse_events_fd(self._pointer))

    def poll(self, timeout: Optional[float] = 0) -> Optional[Event]:
        """The next event; None if there is none within `timeout` seconds (None: no limit), or if close() ends the
        wait."""
        end = None if timeout is None else time.monotonic() + timeout
        with self._open_files() as files:
            news = select.poll()
            for fd in files:
                news.register(fd, select.POLLIN)
            while True:
                event = self._take()
                left = None if end is None else end - time.monotonic()
                if event or self._is_closed or (left is not None and left <= 0):
                    return event
                news.poll(None if left is None else math.ceil(left * 1000))

    @contextlib.contextmanager
    def _open_files(self) -> Iterator[List[int]]:
        """What is readable when there is something to take, or when it was closed. They stay open in this block."""
        with self._lock:
            fd = self._file()
            self._waiting += 1
        try:
            yield [fd, self._closed]
        finally:
            with self._lock:
                self._waiting -= 1
            self._free()

    def _take(self) -> Optional[Event]:
        event = _c.Event(size=c.sizeof(_c.Event))
        error = _c.Error()
        with self._lock:
            if self._is_closed:
                return None
            found = _c.check(_c.lib.gpulse_events_next(self._pointer, c.byref(event), c.byref(error)), error)
            return _event(event) if found else None

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        try:
            event = self.poll(None)
        except _Closed:
            event = None
        if event is None:
            raise StopIteration
        return event

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        import asyncio # takes longer than all other imports

        loop = asyncio.get_running_loop()
        try:
            with self._open_files() as files:
                while not self._is_closed:
                    event = self._take()
                    if event is not None:
                        return event
                    ready = asyncio.Event()
                    own = [os.dup(fd) for fd in files] # a loop has one reader for a number
                    try:
                        for fd in own:
                            loop.add_reader(fd, ready.set)
                        await ready.wait()
                    finally:
                        for fd in own:
                            loop.remove_reader(fd)
                            os.close(fd)
        except _Closed:
            pass
        raise StopAsyncIteration

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            os.close(self._close)
        self._free()

    def _free(self) -> None:
        """If it is closed, and nobody waits for its files any more."""
        with self._lock:
            if not self._is_closed or self._waiting > 0:
                return
            pointer, self._pointer = self._pointer, c.c_void_p()
        if pointer:
            os.close(self._closed)
            _c.lib.gpulse_events_close(pointer)

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self) -> None:
        if getattr(self, "_pid", 0) == os.getpid():
            self.close()


def events(kinds: Optional[str] = None, *, interval: float = 5.0, gpus: Optional[str] = None,
           sim: Optional[str] = None, timeout: Optional[float] = None) -> Events:
    """for event in gpulse.events("xid,lost"): …; or: async for event in gpulse.events(): …

    `kinds` are those of gpulse-events(1), or groups of them (default "health,state"). What the driver does not report
    is found by comparing samples every `interval` seconds."""
    return Events(kinds, interval=interval, gpus=gpus, sim=sim, timeout=timeout)
