"""libgpulse by ctypes: what include/gpulse/gpulse.h declares, and nothing else."""

from __future__ import annotations

import ctypes as c
import math
import os
import sys
from typing import Any, List, Optional, Sequence, Union

from ._errors import GpulseError

GPU = 1
PROCESS = 2

NONE = 0
OK = 1
STALE = 2
UNSUPPORTED = 3

EUSAGE = -2

TEXT = 2
REAL = 1

MIG = 1


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("driver_code", c.c_int), ("text", c.c_char * 400)]


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("fields", c.c_char_p), ("gpus", c.c_char_p), ("sim", c.c_char_p),
                ("root", c.c_char_p), ("timeout_ns", c.c_uint64), ("flags", c.c_uint)]


class Payload(c.Union):
    _fields_ = [("i", c.c_int64), ("f", c.c_double), ("s", c.c_char_p)]


class Value(c.Structure):
    _anonymous_ = ("u",)
    _fields_ = [("u", Payload), ("type", c.c_int), ("status", c.c_int), ("age_ns", c.c_uint64),
                ("reason", c.c_char_p)]


class MetricInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("unit", c.c_char_p), ("help", c.c_char_p), ("scope", c.c_int),
                ("type", c.c_int)]


class Request(c.Structure):
    ON_WAIT = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
    IS_CANCELLED = c.CFUNCTYPE(c.c_bool, c.c_void_p)
    _fields_ = [("size", c.c_size_t), ("count", c.c_uint), ("at_most", c.c_uint), ("avoid", c.c_char_p),
                ("prefer", c.c_char_p), ("memory", c.c_uint64), ("total_memory", c.c_uint64),
                ("most_load", c.c_uint), ("most_celsius", c.c_uint), ("order", c.c_char_p), ("name", c.c_char_p),
                ("wait_ns", c.c_uint64), ("flags", c.c_uint), ("on_wait", ON_WAIT),
                ("is_cancelled", IS_CANCELLED), ("context", c.c_void_p)]


ALL, SHARE, NO_DISPLAY, SAME_NODE, NVLINK, IGNORE_MASK, UUIDS = (1 << bit for bit in range(7))


class Event(c.Structure):
    _fields_ = [("size", c.c_size_t), ("kind", c.c_char_p), ("time_ns", c.c_uint64), ("from_driver", c.c_bool),
                ("gpu", c.c_int), ("uuid", c.c_char * 96), ("pci_bus_id", c.c_char * 24), ("gpu_instance", c.c_int),
                ("compute_instance", c.c_int), ("number", c.c_uint64), ("was", c.c_char * 64),
                ("now", c.c_char * 64), ("text", c.c_char * 240)]


class Setting(c.Structure):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("unit", c.c_char_p), ("gpu", c.c_int), ("mig", c.c_int),
                ("uuid", c.c_char_p), ("status", c.c_int), ("reason", c.c_char_p), ("value", c.c_char_p),
                ("pending", c.c_char_p), ("fallback", c.c_char_p), ("has_range", c.c_bool), ("least", c.c_double),
                ("most", c.c_double), ("wanted", c.c_char_p), ("after", c.c_char_p), ("outcome", c.c_int)]


CHECK_ONLY, MAY_LOSE = 1, 2


class Model(c.Structure):
    _fields_ = [("size", c.c_size_t), ("params", c.c_char_p), ("dtype", c.c_char_p), ("optimizer", c.c_char_p),
                ("inference", c.c_bool), ("batch", c.c_uint64), ("seq", c.c_uint64), ("layers", c.c_uint64),
                ("hidden", c.c_uint64), ("vocab", c.c_uint64), ("heads", c.c_uint64)]


class Term(c.Structure):
    _fields_ = [("name", c.c_char_p), ("bytes", c.c_double), ("formula", c.c_char * 112), ("about", c.c_char_p)]


class Estimate(c.Structure):
    _fields_ = [("size", c.c_size_t), ("total", c.c_double), ("split", c.c_double), ("count", c.c_uint), ("terms", Term * 16)]


_FUNCTIONS: List[Any] = [
    ("gpulse_version", c.c_char_p, []),
    ("gpulse_is_stuck", c.c_bool, []),
    ("gpulse_metric_count", c.c_int, []),
    ("gpulse_metric_find", c.c_int, [c.c_char_p, c.POINTER(Error)]),
    ("gpulse_metric_describe", c.c_int, [c.c_int, c.POINTER(MetricInfo)]),
    ("gpulse_open", c.c_int, [c.POINTER(Options), c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_close", c.c_bool, [c.c_void_p]),
    ("gpulse_take", c.c_int, [c.c_void_p, c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_sample_free", None, [c.c_void_p]),
    ("gpulse_sample_time", c.c_uint64, [c.c_void_p]),
    ("gpulse_sample_is_partial", c.c_bool, [c.c_void_p]),
    ("gpulse_sample_rows", c.c_size_t, [c.c_void_p, c.c_int]),
    ("gpulse_sample_gpu_of", c.c_int, [c.c_void_p, c.c_int, c.c_size_t]),
    ("gpulse_sample_get", c.c_int, [c.c_void_p, c.c_int, c.c_size_t, c.POINTER(Value)]),
    ("gpulse_sample_signal", c.c_int, [c.c_void_p, c.c_size_t, c.c_int, c.POINTER(Error)]),
    ("gpulse_pick", c.c_int, [c.POINTER(Options), c.POINTER(Request), c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_reserve", c.c_int, [c.POINTER(Options), c.POINTER(Request), c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_grant_mask", c.c_char_p, [c.c_void_p]),
    ("gpulse_grant_gpus", c.c_char_p, [c.c_void_p]),
    ("gpulse_grant_count", c.c_size_t, [c.c_void_p]),
    ("gpulse_grant_uuid", c.c_char_p, [c.c_void_p, c.c_size_t]),
    ("gpulse_grant_keep", c.c_int, [c.c_void_p, c.POINTER(Error)]),
    ("gpulse_release", None, [c.c_void_p]),
    ("gpulse_events_open", c.c_int,
     [c.POINTER(Options), c.c_char_p, c.c_uint64, c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_events_fd", c.c_int, [c.c_void_p]),
    ("gpulse_events_next", c.c_int, [c.c_void_p, c.POINTER(Event), c.POINTER(Error)]),
    ("gpulse_events_close", c.c_bool, [c.c_void_p]),
    ("gpulse_settings_read", c.c_int, [c.POINTER(Options), c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_settings_change", c.c_int,
     [c.POINTER(Options), c.c_char_p, c.c_uint, c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_settings_count", c.c_size_t, [c.c_void_p]),
    ("gpulse_settings_get", c.c_int, [c.c_void_p, c.c_size_t, c.POINTER(Setting)]),
    ("gpulse_settings_undo", c.c_char_p, [c.c_void_p, c.c_size_t]),
    ("gpulse_settings_free", None, [c.c_void_p]),
    ("gpulse_explain", c.c_int, [c.c_char_p, c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_explain_log", c.c_int, [c.c_char_p, c.POINTER(c.c_void_p), c.POINTER(Error)]),
    ("gpulse_text_free", None, [c.c_void_p]),
    ("gpulse_mark", None, [c.c_char_p]),
    ("gpulse_range_push", None, [c.c_char_p]),
    ("gpulse_range_pop", None, []),
    ("gpulse_step", None, []),
    ("gpulse_estimate_model", c.c_int, [c.POINTER(Model), c.POINTER(Estimate), c.POINTER(Error)]),
]

_NAME = "libgpulse.so.0"


def _places() -> List[str]:
    chosen = os.environ.get("GPULSE_LIBRARY")
    if chosen:
        return [chosen]
    here = os.path.dirname(os.path.abspath(__file__))
    tree = os.path.dirname(os.path.dirname(here))
    builds = ("build-release", "build") if os.path.exists(os.path.join(tree, "src/lib/libgpulse.map")) else ()
    return [os.path.join(here, "lib", _NAME), *(os.path.join(tree, build, _NAME) for build in builds), _NAME,
            "/usr/local/lib/" + _NAME]


def _prepared(place: str) -> Any:
    library = c.CDLL(place)
    for name, result, arguments in _FUNCTIONS:
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def _load() -> Any:
    problems = []
    for place in _places():
        try:
            return _prepared(place)
        except OSError as problem:
            problems.append(str(problem))
        except AttributeError as problem: # an older library
            problems.append(f"{place} does not fit this package: {problem}")
    advice = "correct or unset GPULSE_LIBRARY" if "GPULSE_LIBRARY" in os.environ else "set GPULSE_LIBRARY to its path"
    raise ImportError(f"cannot load libgpulse: {'; '.join(problems)}; {advice}")


lib = _load()


class Owner:
    """An object that frees one of the library's: two of them would free it twice."""

    _pointer: Any = None

    def _end(self) -> None:
        """Frees it, if nobody refers to it any more."""
        raise NotImplementedError

    def __del__(self, _is_ending: Any = sys.is_finalizing) -> None:
        if self._pointer and not _is_ending(): # then modules are empty, and the kernel frees everything
            self._end()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"{type(self).__name__} objects cannot be copied or pickled")


def text(value: bytes) -> str:
    """Names of files may be anything."""
    return value.decode(errors="replace")


Words = Union[str, Sequence[str], None]
Choice = Union[str, int, Sequence[Union[str, int]], None]


def encoded(value: Optional[str], name: str) -> Optional[bytes]:
    """A text for the library."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} takes a text, not {value!r}")
    if "\0" in value:
        raise ValueError(f"{name} contains a NUL character: {value!r}")
    return os.fsencode(value)


def required(value: str, name: str) -> bytes:
    """A text that the library cannot do without."""
    result = encoded(value, name)
    if result is None:
        raise TypeError(f"{name} takes a text, not None")
    return result


def words(value: Words, name: str) -> Optional[bytes]:
    """A text with commas, or a list of texts."""
    if value is None or isinstance(value, str):
        return encoded(value, name)
    if isinstance(value, (list, tuple)) and value and all(isinstance(word, str) for word in value):
        return encoded(",".join(value), name)
    raise TypeError(f"{name} takes a text such as 'index,name' or a list of texts, not {value!r}")


def choice(value: Choice) -> Optional[bytes]:
    """GPUs: a text as in -i, the index of one, or a list of these."""
    some = value if isinstance(value, (list, tuple)) else [value]
    if value is None:
        return None
    if not some or not all(isinstance(one, (str, int)) and not isinstance(one, bool) for one in some):
        raise TypeError(f"gpus takes a text such as '0,2-3', an index or a list of these, not {value!r}")
    return encoded(",".join(map(str, some)), "gpus")


def seconds(value: float, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} takes a number of seconds, not {value!r}")
    return value


def interval_of(value: float) -> float:
    """Seconds between two samples."""
    if not 0 < seconds(value, "interval") < 2**31:
        raise ValueError(f"bad interval {value!r}: expected more than 0 seconds")
    return value


def options(fields: Words = None, gpus: Choice = None, sim: Optional[str] = None,
            root: Optional[str] = None, timeout: Optional[float] = None, flags: int = 0) -> Options:
    """`timeout` is in seconds; None: the default."""
    if timeout is not None and not 0 < seconds(timeout, "timeout") < 2**31:
        raise ValueError(f"bad timeout {timeout!r}: expected more than 0 seconds")
    return Options(size=c.sizeof(Options), fields=words(fields, "fields"), gpus=choice(gpus), sim=encoded(sim, "sim"),
                   root=None if root is None else os.fsencode(root), timeout_ns=math.ceil((timeout or 0) * 1e9),
                   flags=flags)


def check(result: int, error: Error) -> int:
    """Raises GpulseError if a function has failed."""
    if result < 0:
        raise GpulseError(text(error.text), error.code, error.driver_code)
    return result
