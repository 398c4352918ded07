"""What is known without asking the driver: errors of programs, and the memory of models."""

from __future__ import annotations

import ctypes as c
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Union

from . import _library as _c


def _document(function: Any, text: bytes) -> Dict[str, Any]:
    error = _c.Error()
    pointer = c.c_void_p()
    _c.check(function(text, c.byref(pointer), c.byref(error)), error)
    try:
        document: Dict[str, Any] = json.loads(c.string_at(pointer.value or 0))
    finally:
        _c.lib.gpulse_text_free(pointer)
    return document


def explain(error: Union[str, BaseException]) -> Dict[str, Any]:
    """Explains a code ("xid 79", "cuda 802", "SIGKILL"), a message, or an exception: the document of gpulse doctor
    explain -f json. Its list is empty if nothing in the text is known. An unknown number, as
    in "xid 99999", raises GpulseError."""
    if not isinstance(error, (str, BaseException)):
        raise TypeError(f"explain() takes a text or an exception, not {error!r}")
    text = str(error).replace("\0", " ") # a log may contain anything
    return _document(_c.lib.gpulse_explain, text.encode("utf-8", "replace"))


def explain_log(path: "Union[str, os.PathLike[str]]" = "last") -> Dict[str, Any]:
    """Why a program failed: from its log, the directory of a job that gpulse run has recorded, or "last" for your last
    one. Raises GpulseError if it cannot be read."""
    return _document(_c.lib.gpulse_explain_log, os.fsencode(path))


@dataclass(frozen=True)
class Term:
    name: str
    bytes: float
    formula: str
    about: str


@dataclass(frozen=True)
class Estimate:
    """Bytes on one GPU: `total`, and the part of it that several GPUs can share evenly, `split`."""

    total: float
    split: float
    terms: List[Term]


def estimate(params: str, *, dtype: Optional[str] = None, optimizer: Optional[str] = None, inference: bool = False,
             batch: int = 0, seq: int = 0, layers: int = 0, hidden: int = 0, vocab: int = 0, heads: int = 0) -> Estimate:
    """A rule of thumb for the memory that a model needs, as in gpulse mem --params: estimate("7B", dtype="bf16",
    optimizer="adamw"). Nothing is measured."""
    for name, value in dict(batch=batch, seq=seq, layers=layers, hidden=hidden, vocab=vocab, heads=heads).items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} takes a whole number, not {value!r}")
        if not 0 <= value < 2**64:
            raise ValueError(f"bad {name} {value}")
    if params is None:
        raise TypeError("params takes a text such as '7B'")
    model = _c.Model(size=c.sizeof(_c.Model), params=_c.encoded(params, "params"), dtype=_c.encoded(dtype, "dtype"),
                     optimizer=_c.encoded(optimizer, "optimizer"), inference=inference, batch=batch, seq=seq,
                     layers=layers, hidden=hidden, vocab=vocab, heads=heads)
    result = _c.Estimate(size=c.sizeof(_c.Estimate))
    error = _c.Error()
    _c.check(_c.lib.gpulse_estimate_model(c.byref(model), c.byref(result), c.byref(error)), error)
    return Estimate(result.total, result.split,
                    [Term(t.name.decode(), t.bytes, t.formula.decode(), t.about.decode())
                     for t in result.terms[:result.count]])
