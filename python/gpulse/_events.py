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


_POLL_MOST_S = 86400 # more does not fit poll()


class _Closed(ValueError):
    """close() was called."""


class Events(_c.Owner):
    """An iterator, also an asynchronous one, over events: the first is of kind "start". fileno() is for select().
    Several threads or tasks may take events; each gets others. close() ends their iterations."""

    def __init__(self, kinds: _c.Words = None, *, interval: float = 5.0, gpus: _c.Choice = None,
                 sim: Optional[str] = None, timeout: Optional[float] = None) -> None:
        _c.interval_of(interval)
        options = _c.options(gpus=gpus, sim=sim, timeout=timeout)
        error = _c.Error()
        self._pointer = c.c_void_p()
        self._lock = threading.RLock() # of these three; a signal handler may close what it interrupts
        self._is_closed = False
        self._waiting = 0
        pointer = c.c_void_p()
        self._pid = os.getpid()
        self._closed, self._close = os.pipe() # the end of the one makes the other one readable
        try:
            _c.check(_c.lib.gpulse_events_open(c.byref(options), _c.words(kinds, "kinds"), int(interval * 1e9),
                                               c.byref(pointer), c.byref(error)), error)
        except BaseException:
            os.close(self._closed)
            os.close(self._close)
            raise
        self._pointer = pointer

    def fileno(self) -> int:
        with self._open_files() as files:
            return files[0]

    def poll(self, timeout: Optional[float] = 0) -> Optional[Event]:
        """The next event; None if there is none within `timeout` seconds (None: no limit), or if close() ends the
        wait."""
        end = None if timeout is None else time.monotonic() + _c.seconds(timeout, "timeout")
        with self._open_files() as files:
            news = select.poll()
            for fd in files:
                news.register(fd, select.POLLIN)
            while True:
                event = self._take()
                left = None if end is None else end - time.monotonic()
                if event or self._is_closed or (left is not None and left <= 0):
                    return event
                news.poll(None if left is None else math.ceil(min(left, _POLL_MOST_S) * 1000))

    @contextlib.contextmanager
    def _open_files(self) -> Iterator[List[int]]:
        """What is readable when there is something to take, or when it was closed. They stay open in this block."""
        with self._lock:
            self._waiting += 1 # from here on, close() leaves the rest to this function
        try:
            if self._is_closed:
                raise _Closed("these events are closed")
            with self._lock: # as gpulse_events_next()
                fd = int(_c.lib.gpulse_events_fd(self._pointer))
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

    async def __aenter__(self) -> "Events":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _end(self) -> None:
        if self._pid == os.getpid():
            self.close()


def events(kinds: _c.Words = None, *, interval: float = 5.0, gpus: _c.Choice = None,
           sim: Optional[str] = None, timeout: Optional[float] = None) -> Events:
    """for event in gpulse.events("xid,lost"): …; or: async for event in gpulse.events(): …

    `kinds` are those of gpulse-events(1), or groups of them (default "health,state"). What the driver does not report
    is found by comparing samples every `interval` seconds."""
    return Events(kinds, interval=interval, gpus=gpus, sim=sim, timeout=timeout)
