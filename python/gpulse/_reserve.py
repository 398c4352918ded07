"""Free GPUs: choosing and reserving them."""

from __future__ import annotations

import ctypes as c
import os
import queue
import re
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Set, TypeVar, Union

from . import _library as _c
from ._errors import GpulseError

Size = Union[int, float, str]

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DECIMAL = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_FOREVER_S = 36500 * 86400


def size(value: Optional[Size]) -> int:
    """Bytes: a number, or a text as in gpulse pick --mem, such as "20GiB" or "500M" (binary) or "20GB" (decimal)."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"a size is a number of bytes, or a text such as '20GiB', not {value!r}")
    if not isinstance(value, str):
        number, factor = float(value), 1
    else:
        parts = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) *([a-z]*)", value.strip().lower())
        unit = re.sub(r"^([kmgt]?)i?b?$", r"\1", parts[2]) if parts and parts[2] not in _DECIMAL else ""
        if not parts or unit not in _UNITS:
            raise ValueError(f"bad size {value!r}: expected bytes, or a text such as '20GiB'")
        number, factor = float(parts[1]), _DECIMAL.get(parts[2], _UNITS[unit])
    if not 0 <= number * factor < 2**63:
        raise ValueError(f"bad size {value!r}")
    return int(number * factor)


class Grant(_c.Owner):
    """GPUs that were chosen. `mask` is for CUDA_VISIBLE_DEVICES, with CUDA_DEVICE_ORDER=PCI_BUS_ID; `gpus` names
    them as in -i: "2,5"."""

    def __init__(self, pointer: c.c_void_p) -> None:
        self._pointer = c.c_void_p(pointer.value)
        pointer.value = None # this object frees it
        pointer = self._pointer
        self.mask: str = _c.lib.gpulse_grant_mask(pointer).decode()
        self.gpus: str = _c.lib.gpulse_grant_gpus(pointer).decode()
        self.uuids: List[str] = [_c.lib.gpulse_grant_uuid(pointer, i).decode()
                                 for i in range(_c.lib.gpulse_grant_count(pointer))]

    def __len__(self) -> int:
        return len(self.uuids)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of GPU {self.gpus}>"

    def _end(self) -> None:
        pointer, self._pointer = self._pointer, c.c_void_p()
        if pointer:
            _c.lib.gpulse_release(pointer)


_MASK, _ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
_held: "Set[Reservation]" = set() # a reservation does not end because nobody has a reference to it
_masks: "List[Reservation]" = []  # those whose mask was set, the last one at the end
_outside: Dict[str, Optional[str]] = {} # the variables before the first of them


def _set_variable(name: str, value: Optional[str]) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


class Reservation(Grant):
    """GPUs that are reserved until release(), the end of the `with` block, or the end of this process, also by
    exec()."""

    def __init__(self, pointer: c.c_void_p, sets_mask: bool) -> None:
        super().__init__(pointer)
        self._lock = threading.RLock() # a signal handler may release what it interrupts
        self._is_kept = self._is_released = False
        _held.add(self)
        if sets_mask:
            if not _masks:
                _outside.update({name: os.environ.get(name) for name in (_MASK, _ORDER)})
            _masks.append(self)
            os.environ.update({_MASK: self.mask, _ORDER: "PCI_BUS_ID"})

    def keep(self) -> None:
        """Writes the reservation again if its file was removed, as some systems do when its user logs out. Raises
        GpulseError if somebody else has reserved one of the GPUs since."""
        error = _c.Error()
        with self._lock:
            self._is_kept = True # from here on, release() in a signal handler leaves the rest to this function
            try:
                if self._is_released:
                    raise GpulseError("this reservation has been released", _c.EUSAGE)
                _c.check(_c.lib.gpulse_grant_keep(self._pointer, c.byref(error)), error)
            finally:
                self._is_kept = False
                if self._is_released:
                    self._end()

    def release(self) -> None:
        """Also restores the variables of the environment, unless somebody else has changed them: to the mask of the
        last reservation that goes on, or to what they were before the first one."""
        if self in _masks:
            _masks.remove(self)
            if os.environ.get(_MASK) == self.mask:
                _set_variable(_MASK, _masks[-1].mask if _masks else _outside[_MASK])
            if not _masks and os.environ.get(_ORDER) == "PCI_BUS_ID":
                _set_variable(_ORDER, _outside[_ORDER])
        _held.discard(self)
        with self._lock:
            self._is_released = True
            if not self._is_kept:
                self._end()

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


# ---- is it too late? ----

def _has_open(path: str) -> bool:
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + number) == path:
                return True
        except OSError: # closed meanwhile
            pass
    return False


def _cuda_is_initialized() -> bool:
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            return True
    except AttributeError:
        pass
    return _has_open("/dev/nvidia-uvm") # CUDA opens it, NVML does not


# ---- choosing ----

Granted = TypeVar("Granted", bound=Grant)


class _Waiting:
    """A call of the library that waits for GPUs, in a thread of its own: the caller's waits for its end, so that a
    signal, such as that of Ctrl-C, interrupts it in Python's usual way."""

    def __init__(self, on_wait: Optional[Callable[[str], None]]) -> None:
        self._on_wait = on_wait
        self._news: "queue.SimpleQueue[Optional[str]]" = queue.SimpleQueue() # None: the end
        self._is_cancelled = False
        self.on_wait = _c.Request.ON_WAIT(lambda _, why: self._news.put(_c.text(why)))
        self.is_cancelled = _c.Request.IS_CANCELLED(lambda _: self._is_cancelled)

    def run(self, call: Callable[[], int], give_back: Callable[[], None]) -> int:
        results: List[int] = []

        def work() -> None:
            results.append(call())
            if self._is_cancelled:
                give_back()
            self._news.put(None)

        threading.Thread(target=work, name="gpulse-wait", daemon=True).start()
        try:
            while True:
                why = self._news.get()
                if why is None:
                    return results[0]
                if self._on_wait:
                    self._on_wait(why)
        except BaseException:
            self._is_cancelled = True # noticed within half a second
            while self._news.get() is not None:
                pass
            raise


_NUMBERS = ("count", "at_most", "memory", "total_memory", "most_load", "most_celsius")


def _call(function: Any, make: Callable[[c.c_void_p], Granted], options: _c.Options, flags: Dict[int, bool],
          on_wait: Optional[Callable[[str], None]], wait: float, **members: Any) -> Granted:
    for name, value in members.items():
        if name in _NUMBERS and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"{name} takes a whole number, not {value!r}")
        if name in _NUMBERS and not 0 <= value < (2**64 if "memory" in name else 2**32):
            raise ValueError(f"bad {name} {value}")
    if not _c.seconds(wait, "wait") >= 0:
        raise ValueError(f"bad wait {wait!r}: expected 0 seconds or more")
    request = _c.Request(size=c.sizeof(_c.Request), wait_ns=int(min(wait, _FOREVER_S) * 1e9),
                         flags=sum(bit for bit, is_set in flags.items() if is_set),
                         **{name: value if name in _NUMBERS else _c.encoded(value, name)
                            for name, value in members.items()})
    error = _c.Error()
    pointer = c.c_void_p()

    def call() -> int:
        return int(function(c.byref(options), c.byref(request), c.byref(pointer), c.byref(error)))

    def give_back() -> None:
        held, pointer.value = pointer.value, None # first: a second Ctrl-C may interrupt this
        _c.lib.gpulse_release(held)

    try:
        if wait > 0:
            waiting = _Waiting(on_wait)
            request.on_wait, request.is_cancelled = waiting.on_wait, waiting.is_cancelled
            result = waiting.run(call, give_back)
        else:
            result = call()
        _c.check(result, error)
        return make(pointer)
    except BaseException: # also KeyboardInterrupt when the function returns
        give_back()
        raise


def _flags(count: Union[int, str], share: bool, no_display: bool, same_node: bool, nvlink: bool, ignore_mask: bool,
           uuids: bool) -> Dict[int, bool]:
    return {_c.ALL: count == "all", _c.SHARE: share, _c.NO_DISPLAY: no_display, _c.SAME_NODE: same_node,
            _c.NVLINK: nvlink, _c.IGNORE_MASK: ignore_mask, _c.UUIDS: uuids}


def _count(count: Union[int, str]) -> int:
    if count == "all":
        return 0
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"bad number of GPUs {count!r}: expected 1 or more, or 'all'")
    return count


def pick(count: Union[int, str] = 1, *, memory: Optional[Size] = None, gpus: _c.Choice = None,
         at_most: int = 0, total_memory: Optional[Size] = None, most_load: int = 0, most_celsius: int = 0,
         avoid: Optional[str] = None, prefer: Optional[str] = None, order: Optional[str] = None, share: bool = False,
         no_display: bool = False, same_node: bool = False, nvlink: bool = False, ignore_mask: bool = False,
         uuids: bool = False, wait: float = 0, on_wait: Optional[Callable[[str], None]] = None,
         sim: Optional[str] = None, timeout: Optional[float] = None) -> Grant:
    """Chooses free GPUs by the rules of gpulse-pick(1): `count` of them, or "all" in `gpus`, which limits the choice
    and is written as in -i. `memory` must be free on each. Waits for up to `wait` seconds (math.inf: as long as it
    takes). Raises GpulseError of kind "busy" or "never", which says what is missing and who has the GPUs. The other
    parameters are options of gpulse-pick(1).

    Another job may start on these GPUs first: reserve() reserves them."""
    return _call(_c.lib.gpulse_pick, Grant, _c.options(gpus=gpus, sim=sim, timeout=timeout),
                 _flags(count, share, no_display, same_node, nvlink, ignore_mask, uuids), on_wait, wait,
                 count=_count(count), at_most=at_most, avoid=avoid, prefer=prefer, memory=size(memory),
                 total_memory=size(total_memory), most_load=most_load, most_celsius=most_celsius, order=order)


def reserve(count: Union[int, str] = 1, *, memory: Optional[Size] = None, gpus: _c.Choice = None,
            total_memory: Optional[Size] = None, most_load: int = 0, most_celsius: int = 0,
            avoid: Optional[str] = None, prefer: Optional[str] = None, order: Optional[str] = None,
            share: bool = False, no_display: bool = False, same_node: bool = False, nvlink: bool = False,
            ignore_mask: bool = False, uuids: bool = False, wait: float = 0,
            on_wait: Optional[Callable[[str], None]] = None, name: Optional[str] = None, set_mask: bool = True,
            sim: Optional[str] = None, timeout: Optional[float] = None) -> Reservation:
    """Like pick(), and reserves the GPUs for this process: no gpulse run, and no other reservation of any user, gets
    them; only child processes of this one may reserve them again. Use it as `with gpulse.reserve(2) as gpus:`. `name` is
    shown to those who wait for them.

    Sets CUDA_VISIBLE_DEVICES, so call it before the first use of CUDA; GpulseError if that is too late. While it is
    set, pick() and reserve() see these GPUs only, unless with ignore_mask=True. With
    set_mask=False, the program chooses its devices itself (`gpus.mask`)."""
    if set_mask and _cuda_is_initialized():
        raise GpulseError("CUDA is initialized in this process, so it would ignore CUDA_VISIBLE_DEVICES; reserve GPUs "
                          "before the first use of CUDA, or choose the devices yourself with set_mask=False", -2)
    return _call(_c.lib.gpulse_reserve, lambda pointer: Reservation(pointer, set_mask),
                 _c.options(gpus=gpus, sim=sim, timeout=timeout),
                 _flags(count, share, no_display, same_node, nvlink, ignore_mask, uuids), on_wait, wait,
                 count=_count(count), avoid=avoid, prefer=prefer, memory=size(memory),
                 total_memory=size(total_memory), most_load=most_load, most_celsius=most_celsius, order=order,
                 name=name)
