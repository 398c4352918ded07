"""libgpulse by ctypes: what include/gpulse/gpulse.h declares, and nothing else."""

from __future__ import annotations

import ctypes as c
import os
from typing import Any, List

GPU = 1
PROCESS = 2

NONE = 0
OK = 1
STALE = 2

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
    _fields_ = [("u", Payload), ("type", c.c_int), ("status", c.c_int), ("age_ns", c.c_uint64),
                ("reason", c.c_char_p)]


class MetricInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("unit", c.c_char_p), ("help", c.c_char_p), ("scope", c.c_int),
                ("type", c.c_int)]


_FUNCTIONS: List[Any] = [
    ("gpulse_version", c.c_char_p, []),
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
]

_NAME = "libgpulse.so.0"


def _places() -> List[str]:
    chosen = os.environ.get("GPULSE_LIBRARY")
    if chosen:
        return [chosen]
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", _NAME)
    return [beside, _NAME, "/usr/local/lib/" + _NAME]


def _load() -> Any:
    problems = []
    for place in _places():
        try:
            library = c.CDLL(place)
            break
        except OSError as problem:
            problems.append(str(problem))
    else:
        raise ImportError("cannot load libgpulse: " + "; ".join(problems) +
                          "; set GPULSE_LIBRARY to its path")
    for name, result, arguments in _FUNCTIONS:
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


lib = _load()
