"""The unknown value NA, sizes and times as text, and snapshots."""

from __future__ import annotations

import datetime
import math
import re
import shlex
import time
from typing import Any, Dict, Iterable, List, Union

KiB, MiB, GiB, TiB, PiB = (1 << shift for shift in (10, 20, 30, 40, 50))
SIZE_UNITS: Dict[str, int] = {"": 1, "B": 1}
for _power, _prefix in enumerate("KMGTP", 1):
    SIZE_UNITS[_prefix] = SIZE_UNITS[_prefix + "B"] = 1000 ** _power
    SIZE_UNITS[_prefix + "iB"] = 1024 ** _power
UINT_MAX = 0xFFFFFFFF
ULONGLONG_MAX = 0xFFFFFFFFFFFFFFFF


class NaType(str):
    """A value that does not exist: the text "N/A", which is NaN in arithmetic, and greater than all numbers."""

    def __new__(cls) -> "NaType":
        return _NA[0] if _NA else super().__new__(cls, "N/A")

    def __float__(self) -> float:
        return math.nan

    def __bool__(self) -> bool:
        return False

    def __int__(self) -> int:
        return 0

    def __round__(self, digits: Any = None) -> Any:
        return 0 if digits is None else math.nan

    def __lt__(self, other: Any) -> Any:
        return False if isinstance(other, (int, float)) else str.__lt__(self, other)

    def __le__(self, other: Any) -> Any:
        return math.isnan(other) if isinstance(other, (int, float)) else str.__le__(self, other)

    def __gt__(self, other: Any) -> Any:
        return not math.isnan(other) if isinstance(other, (int, float)) else str.__gt__(self, other)

    def __ge__(self, other: Any) -> Any:
        return True if isinstance(other, (int, float)) else str.__ge__(self, other)


_NA: List[NaType] = []


def _nan(self: str, *_: Any) -> float:
    return math.nan


def _add(self: str, other: Any) -> Any:
    return str.__add__(self, other) if isinstance(other, str) else math.nan


def _radd(self: str, other: Any) -> Any:
    return str.__add__(other, self) if isinstance(other, str) else math.nan


for _name in ("sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow",
              "neg", "pos", "abs"):
    setattr(NaType, f"__{_name}__", _nan)
setattr(NaType, "__add__", _add)
setattr(NaType, "__radd__", _radd)

NA = NotApplicable = NaType()
_NA.append(NA)
NotApplicableType = NaType


def bytes2human(count: Union[int, float, NaType], min_unit: int = 1) -> str:
    """1.00MiB, 20.00GiB, 128.0GiB, 1000MiB: MiB up to 20 GiB, larger units up to 1000."""
    if isinstance(count, str) or math.isnan(count):
        return "N/A"
    if count < KiB and min_unit < KiB:
        return f"{round(count)}B"
    if count < MiB and min_unit <= KiB:
        return f"{round(count / KiB)}KiB"
    if count < 20 * GiB and min_unit <= MiB:
        unit, name = MiB, "MiB"
    elif count < 1000 * GiB and min_unit <= GiB:
        unit, name = GiB, "GiB"
    elif count < 1000 * TiB and min_unit <= TiB:
        unit, name = TiB, "TiB"
    else:
        unit, name = PiB, "PiB"
    number = count / unit
    digits = 0 if unit == MiB and number >= 1000 else 1 if number >= 100 else 2
    return f"{number:.{digits}f}{name}"


def human2bytes(text: Union[int, str]) -> int:
    """4GiB, 1.5 MB, 4096."""
    if isinstance(text, int):
        return text
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGTP]?)(I?B?)\s*", text.upper())
    if not match:
        raise ValueError(f"Cannot convert {text!r} to bytes.")
    number, prefix, suffix = match.groups()
    return int(float(number) * SIZE_UNITS[prefix + suffix.replace("I", "i")])


def timedelta2human(span: Any, *, round: bool = False) -> str:
    """1:02:03, or 4.0 days."""
    if isinstance(span, str):
        return "N/A"
    seconds = span.total_seconds() if isinstance(span, datetime.timedelta) else float(span)
    if seconds >= 4 * 86400 or (round and seconds >= 86400):
        return f"{seconds / 86400:.1f} days"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def utilization2string(utilization: Any) -> str:
    return "N/A" if isinstance(utilization, str) else f"{utilization}%"


def boolify(text: str, default: Any = None) -> bool:
    if text.lower() in ("true", "yes", "on", "enabled", "1"):
        return True
    if text.lower() in ("false", "no", "off", "disabled", "0"):
        return False
    return bool(default)


def command_join(command: Iterable[str]) -> str:
    return shlex.join(command)


class Snapshot:
    """The values of an object at one moment. Other attributes are those of the object, as they are now."""

    def __init__(self, real: Any, **values: Any) -> None:
        self.real = real
        self.timestamp = time.time()
        self._names = list(values)
        vars(self).update(values)

    def keys(self) -> List[str]:
        return list(self._names)

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self, name)
        except AttributeError:
            raise KeyError(name) from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self.real, name)
        if callable(value):
            value = value()
        setattr(self, name, value)
        return value

    def __repr__(self) -> str:
        name = type(self.real).__name__ + "Snapshot"
        lines = [f"{key}={getattr(self, key)!r}".replace("\n", "\n    ") + "," for key in sorted(self._names)]
        return "\n    ".join([f"{name}(", f"real={self.real!r},", *lines]) + "\n)"
