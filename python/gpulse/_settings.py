"""Settings of GPUs: reading and changing them."""

from __future__ import annotations

import copyreg
import ctypes as c
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Union

from . import _library as _c
from ._errors import GpulseError

_OUTCOMES = ("not tried", "same", "done", "pending", "unverified", "failed", "hung")


@dataclass(frozen=True)
class Setting:
    """A setting of a GPU. Values are texts in the syntax of gpulse-set(1); None for what is unknown or does not apply.
    `outcome` is what became of a change: "not tried", "same" (it had the value), "done", "pending" (until a reset),
    "unverified" (the driver does not report the value), "failed", or "hung" (nobody knows)."""

    name: str
    unit: str
    gpu: int
    mig: Optional[int]
    uuid: str
    value: Optional[str]
    pending: Optional[str]
    default: Optional[str]
    least: Optional[float]
    most: Optional[float]
    reason: Optional[str]
    wanted: Optional[str]
    after: Optional[str]
    outcome: str
    undo: Dict[str, str]


def _text(value: bytes) -> Optional[str]:
    return value.decode() or None


def _setting(s: _c.Setting, undo: bytes) -> Setting:
    return Setting(s.name.decode(), s.unit.decode(), s.gpu, s.mig if s.mig >= 0 else None, s.uuid.decode(),
                   _text(s.value), _text(s.pending), _text(s.fallback), s.least if s.has_range else None,
                   s.most if s.has_range else None, _text(s.reason), _text(s.wanted), _text(s.after),
                   _OUTCOMES[s.outcome], dict(word.split("=", 1) for word in undo.decode().split()))


def _rows(pointer: c.c_void_p) -> List[Setting]:
    rows = []
    for row in range(_c.lib.gpulse_settings_count(pointer)):
        setting = _c.Setting(size=c.sizeof(_c.Setting))
        _c.lib.gpulse_settings_get(pointer, row, c.byref(setting))
        rows.append(_setting(setting, _c.lib.gpulse_settings_undo(pointer, row)))
    _c.lib.gpulse_settings_free(pointer)
    return rows


class ChangeFailed(GpulseError):
    """Some changes were made, and others failed: `settings` has what became of each."""

    def __init__(self, error: _c.Error, settings: List[Setting]) -> None:
        super().__init__(_c.text(error.text), error.code, error.driver_code)
        self.settings = settings

    def __reduce__(self) -> Any:
        return copyreg.__newobj__, (ChangeFailed, *self.args), vars(self) # type: ignore[attr-defined]


def settings(gpus: _c.Choice = None, *, sim: Optional[str] = None, timeout: Optional[float] = None
             ) -> List[Setting]:
    """All settings of the GPUs (default: of all GPUs)."""
    options = _c.options(gpus=gpus, sim=sim, timeout=timeout)
    error = _c.Error()
    pointer = c.c_void_p()
    _c.check(_c.lib.gpulse_settings_read(c.byref(options), c.byref(pointer), c.byref(error)), error)
    return _rows(pointer)


def change(changes: Union[Dict[str, Any], str], gpus: _c.Choice = None, *, check_only: bool = False,
           may_lose: bool = False, sim: Optional[str] = None, timeout: Optional[float] = None) -> List[Setting]:
    """Changes settings: change({"power-limit": 300}, "0"). Everything is checked on every GPU before the first change.
    If one is refused, GpulseError is raised, and nothing is changed. If a change fails, the others are still made, and
    ChangeFailed has what became of each. check_only=True changes nothing; may_lose=True also makes changes that
    destroy what nothing restores, such as MIG instances.

    To undo it: change(setting.undo, setting.uuid)"""
    if not isinstance(changes, (str, dict)):
        raise TypeError(f"changes are a dictionary such as {{'power-limit': 300}}, or a text, not {changes!r}")
    text = changes if isinstance(changes, str) else " ".join(f"{name}={value}" for name, value in changes.items())
    options = _c.options(gpus=gpus, sim=sim, timeout=timeout)
    error = _c.Error()
    pointer = c.c_void_p()
    flags = (_c.CHECK_ONLY if check_only else 0) | (_c.MAY_LOSE if may_lose else 0)
    result = _c.lib.gpulse_settings_change(c.byref(options), _c.encoded(text, "changes"), flags, c.byref(pointer), c.byref(error))
    rows = _rows(pointer) if pointer else []
    if result < 0 and rows:
        raise ChangeFailed(error, rows)
    _c.check(result, error)
    return rows
