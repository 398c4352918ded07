"""Rows as a data frame of pandas or polars."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Dict, Iterable, List, Optional

from ._model import Process, Row

_LIBRARIES = ("pandas", "polars")


def _import(library: Optional[str]) -> Any:
    if library not in (None, *_LIBRARIES):
        raise ValueError(f"unknown library {library!r}: expected 'pandas' or 'polars'")
    names = [library] if library else sorted(_LIBRARIES, key=lambda name: name not in sys.modules)
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            pass
    raise ImportError(f"a data frame needs {' or '.join(names)}, which is not installed")


def frame(rows: Iterable[Row], library: Optional[str] = None) -> Any:
    """A data frame with a line for each GPU or process: gpulse.frame(gpulse.gpus()). It is one of pandas or polars,
    whichever is imported, or else installed; `library` names one. The columns are `time` (seconds since 1970), for processes
    `gpu` (its index), and the metrics that were read, by their full names. Values that do not exist are missing.

    Of a series: gpulse.frame(gpu for sample in samples for gpu in sample.gpus)"""
    if isinstance(rows, Row):
        rows = [rows]
    records: List[Dict[str, Any]] = []
    for row in rows:
        if not isinstance(row, Row):
            raise TypeError(f"frame() takes GPUs or processes, not {row!r}")
        record: Dict[str, Any] = {"time": row._sample.time}
        if isinstance(row, Process):
            record["gpu"] = row.gpu.get("index")
        record.update(row.to_dict())
        record.pop("reasons", None)
        records.append(record)
    module = _import(library)
    columns = dict.fromkeys(name for record in records for name in record) # in their order
    return module.DataFrame({name: [record.get(name) for record in records] for name in columns})
