"""The interface of GPUtil 1.4.0 (https://github.com/anderskm/gputil).

The differences are those that programs want: no nvidia-smi is started, a driver that is missing gives an
empty list instead of an error while its message is parsed, and a GPU whose memory is unknown can be
available with includeNan.
"""

from __future__ import annotations

import math
import random
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

import gpulse
from gpulse._model import _sample_of

__version__ = "1.4.0"

_FIELDS = ("index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,serial,"
           "display_active,display_mode,temperature.gpu")
_MIB = 1 << 20


class GPU:
    """load and memoryUtil are fractions, the memory is in MiB, and unknown numbers are NaN."""

    def __init__(self, ID: int, uuid: str, load: float, memoryTotal: float, memoryUsed: float, memoryFree: float,
                 driver: str, gpu_name: str, serial: str, display_mode: str, display_active: str,
                 temp_gpu: float) -> None:
        self.id = ID
        self.uuid = uuid
        self.load = load
        self.memoryUtil = float(memoryUsed) / float(memoryTotal) if memoryTotal else math.nan
        self.memoryTotal = memoryTotal
        self.memoryUsed = memoryUsed
        self.memoryFree = memoryFree
        self.driver = driver
        self.name = gpu_name
        self.serial = serial
        self.display_mode = display_mode
        self.display_active = display_active
        self.temperature = temp_gpu


def _number(row: gpulse.GPU, name: str) -> float:
    value = row.get(name)
    return float(value) if isinstance(value, (int, float)) else math.nan


def _mib(row: gpulse.GPU, name: str, rounds_up: bool) -> float:
    value = row.get(name)
    if not isinstance(value, (int, float)):
        return math.nan
    return float(math.ceil(value / _MIB) if rounds_up else value // _MIB)


def _rounds_up(driver: str) -> bool:
    """nvidia-smi does since R570."""
    branch = driver.split(".")[0]
    return branch.isdigit() and int(branch) >= 570


def _text(row: gpulse.GPU, name: str) -> str:
    value = row.get(name)
    return "[N/A]" if value is None else str(value)


def getGPUs() -> List[GPU]:
    """All GPUs; none without a driver."""
    try:
        sample = _sample_of(_FIELDS)
    except gpulse.GpulseError:
        return []
    driver = str(sample.host.get("driver_version", ""))
    up = _rounds_up(driver)
    return [GPU(int(row["index"]), _text(row, "uuid"), _number(row, "utilization.gpu") / 100,
                _mib(row, "memory.total", up), _mib(row, "memory.used", up), _mib(row, "memory.free", up),
                driver, _text(row, "name"), _text(row, "serial"), _text(row, "display_mode"),
                _text(row, "display_active"), _number(row, "temperature.gpu"))
            for row in sample.gpus]


def _is_below(value: float, limit: float, accepts_nan: bool) -> bool:
    return value < limit or (accepts_nan and math.isnan(value))


def getAvailability(GPUs: Sequence[GPU], maxLoad: float = 0.5, maxMemory: float = 0.5, memoryFree: float = 0,
                    includeNan: bool = False, excludeID: Sequence[int] = (),
                    excludeUUID: Sequence[str] = ()) -> List[int]:
    """1 for each GPU that is available, else 0. The limits are exclusive."""
    return [int(_is_below(gpu.load, maxLoad, includeNan) and _is_below(gpu.memoryUtil, maxMemory, includeNan) and
                (gpu.memoryFree >= memoryFree or (includeNan and math.isnan(gpu.memoryFree))) and
                gpu.id not in excludeID and gpu.uuid not in excludeUUID)
            for gpu in GPUs]


def _sort_key(value: float) -> float:
    return math.inf if math.isnan(value) else value


_ORDERS: Dict[str, Callable[[List[GPU]], List[GPU]]] = {
    "first": lambda gpus: sorted(gpus, key=lambda gpu: gpu.id),
    "last": lambda gpus: sorted(gpus, key=lambda gpu: -gpu.id),
    "random": lambda gpus: random.sample(gpus, len(gpus)),
    "load": lambda gpus: sorted(gpus, key=lambda gpu: _sort_key(gpu.load)),
    "memory": lambda gpus: sorted(gpus, key=lambda gpu: _sort_key(gpu.memoryUtil)),
}


def getAvailable(order: str = "first", limit: int = 1, maxLoad: float = 0.5, maxMemory: float = 0.5,
                 memoryFree: float = 0, includeNan: bool = False, excludeID: Sequence[int] = (),
                 excludeUUID: Sequence[str] = ()) -> List[int]:
    """The ids of available GPUs, at most `limit`. An unknown order is the order of the driver."""
    gpus = getGPUs()
    is_available = getAvailability(gpus, maxLoad, maxMemory, memoryFree, includeNan, excludeID, excludeUUID)
    available = [gpu for gpu, yes in zip(gpus, is_available) if yes]
    if order in _ORDERS:
        available = _ORDERS[order](available)
    return [gpu.id for gpu in available[:limit]]


def getFirstAvailable(order: str = "first", maxLoad: float = 0.5, maxMemory: float = 0.5, attempts: int = 1,
                      interval: float = 900, verbose: bool = False, includeNan: bool = False,
                      excludeID: Sequence[int] = (), excludeUUID: Sequence[str] = ()) -> List[int]:
    """A list with the id of an available GPU. RuntimeError if there is none after all attempts."""
    for attempt in range(attempts):
        if verbose:
            print(f"Attempting ({attempt + 1}/{attempts}) to locate available GPU.")
        available = getAvailable(order, 1, maxLoad, maxMemory, 0, includeNan, excludeID, excludeUUID)
        if available:
            if verbose:
                print(f"GPU {available[0]} located!")
            return available
        if attempt + 1 < attempts:
            time.sleep(interval)
    raise RuntimeError(f"Could not find an available GPU after {attempts} attempts with {interval} seconds interval.")


_Column = Dict[str, Any]

_PERCENT: _Column = {"suffix": "%", "transform": lambda x: x * 100, "precision": 0}
_USUAL: List[List[_Column]] = [[{"attr": "id", "name": "ID"}, {"attr": "load", "name": "GPU", **_PERCENT},
                                {"attr": "memoryUtil", "name": "MEM", **_PERCENT}]]
_ALL: List[List[_Column]] = [
    [{"attr": "id", "name": "ID"}, {"attr": "name", "name": "Name"}, {"attr": "serial", "name": "Serial"},
     {"attr": "uuid", "name": "UUID"}],
    [{"attr": "temperature", "name": "GPU temp.", "suffix": "C", "precision": 0},
     {"attr": "load", "name": "GPU util.", **_PERCENT}, {"attr": "memoryUtil", "name": "Memory util.", **_PERCENT}],
    [{"attr": "memoryTotal", "name": "Memory total", "suffix": "MB", "precision": 0},
     {"attr": "memoryUsed", "name": "Memory used", "suffix": "MB", "precision": 0},
     {"attr": "memoryFree", "name": "Memory free", "suffix": "MB", "precision": 0}],
    [{"attr": "display_mode", "name": "Display mode"}, {"attr": "display_active", "name": "Display active"}],
]


def _cell(gpu: GPU, column: _Column) -> str:
    value = getattr(gpu, column["attr"])
    if column.get("transform"):
        value = column["transform"](value)
    if column.get("precision") is not None:
        value = f"{value:.{column['precision']}f}"
    return f"{value}{column.get('suffix') or ''}"


def _lines(gpus: Sequence[GPU], groups: Sequence[Sequence[_Column]]) -> List[str]:
    """A heading, a line, and a row for each GPU: numbers to the right, texts to the left."""
    heads, rows = [], [[] for _ in gpus]  # type: ignore[var-annotated]
    for group in groups:
        head_cells, row_cells = [], [[] for _ in gpus]  # type: ignore[var-annotated]
        for column in group:
            texts = [_cell(gpu, column) for gpu in gpus]
            width = max(map(len, [column["name"], *texts]))
            head_cells.append(column["name"].ljust(width))
            for cells, text, gpu in zip(row_cells, texts, gpus):
                is_text = isinstance(getattr(gpu, column["attr"]), str)
                cells.append(text.ljust(width) if is_text else text.rjust(width))
        heads.append(" | ".join(head_cells))
        for row, cells in zip(rows, row_cells):
            row.append(" | ".join(cells))
    head = "| " + " || ".join(heads) + " |"
    return [head, "-" * len(head), *("| " + " || ".join(row) + " |" for row in rows)]


def showUtilization(all: bool = False, attrList: Optional[Sequence[Sequence[_Column]]] = None,
                    useOldCode: bool = False) -> None:
    """Prints a table. attrList: groups of columns, each a dict with attr, name, suffix, transform, precision."""
    gpus = getGPUs()
    if useOldCode and not all:
        print(" ID  GPU  MEM")
        print("--------------")
        for gpu in gpus:
            print(f" {gpu.id:2d} {gpu.load * 100:3.0f}% {gpu.memoryUtil * 100:3.0f}%")
        return
    print("\n".join(_lines(gpus, attrList or (_ALL if all else _USUAL))))
