"""The Python interface of gpustat 1.1.1.

Differences: a query takes a millisecond, because CPU utilization is that since the last query (in the first one: since the
process started) instead of that in a tenth of a second; a GPU that hangs is listed with the reason.
"""

from __future__ import annotations

import json
import locale
import os
import platform
import sys
from collections.abc import Sequence as _Sequence
from datetime import datetime
from typing import Any, Callable, Dict, Iterator, List, Optional, TextIO, Union

import gpulse
from gpulse._model import _sample_of

from ._text import shown
from .pynvml import NVMLError, nvml_error

__version__ = "1.1.1"
__all__ = ["GPUStat", "GPUStatCollection", "gpu_count", "is_available", "new_query", "print_gpustat"]

_MIB = 1 << 20


def _whole(value: Any) -> int:
    return int(value)


def _mib(value: Any) -> int:
    return int(value) // _MIB


# Key of an entry: metric, conversion
_VALUES: Dict[str, "tuple[str, Callable[[Any], Any]]"] = {
    "index": ("index", _whole),
    "uuid": ("uuid", str),
    "name": ("name", str),
    "temperature.gpu": ("temperature.gpu", _whole),
    "fan.speed": ("fan.speed", _whole),
    "utilization.gpu": ("utilization.gpu", _whole),
    "utilization.enc": ("utilization.encoder", _whole),
    "utilization.dec": ("utilization.decoder", _whole),
    "power.draw": ("power.draw", _whole),
    "enforced.power.limit": ("enforced.power.limit", _whole),
    "memory.used": ("memory.used", _mib),
    "memory.total": ("memory.total", _mib),
}

_FIELDS = (",".join(metric for metric, _ in _VALUES.values()) +
           ",status,status.text,driver_version,pid,process.user,used_gpu_memory,process.cpu,process.rss,process.suspended")


class _Entry(Dict[str, Any]):
    """The values of a GPU that does not respond: whatever is asked for is unknown."""

    def __missing__(self, key: str) -> str:
        return "?"


class GPUStat:
    """A GPU: memory in MiB, power in W."""

    def __init__(self, entry: Dict[str, Any]) -> None:
        if not isinstance(entry, dict):
            raise TypeError(f"entry should be a dict, {type(entry)} given")
        self.entry = entry

    def keys(self) -> Any:
        return self.entry.keys()

    def __getitem__(self, key: str) -> Any:
        return self.entry[key]

    def _number(self, key: str) -> Optional[int]:
        value = self.entry[key]
        return None if value is None else int(value)

    available = property(lambda self: not isinstance(self.entry, _Entry))
    index = property(lambda self: self.entry["index"])
    uuid = property(lambda self: self.entry["uuid"])
    name = property(lambda self: self.entry["name"])
    memory_total = property(lambda self: int(self.entry["memory.total"]))
    memory_used = property(lambda self: int(self.entry["memory.used"]))
    memory_free = memory_available = property(lambda self: max(self.memory_total - self.memory_used, 0))
    temperature = property(lambda self: self._number("temperature.gpu"))
    fan_speed = property(lambda self: self._number("fan.speed"))
    utilization = property(lambda self: self._number("utilization.gpu"))
    utilization_enc = property(lambda self: self._number("utilization.enc"))
    utilization_dec = property(lambda self: self._number("utilization.dec"))
    power_draw = property(lambda self: self._number("power.draw"))
    power_limit = property(lambda self: self._number("enforced.power.limit"))
    processes = property(lambda self: self.entry["processes"])

    def jsonify(self) -> Dict[str, Any]:
        return dict(self.entry)

    def print_to(self, fp: TextIO, **options: Any) -> TextIO:
        options.pop("term", None)
        options.setdefault("colored", _is_colored(sys.stdout, False, False))
        fp.write(_line(self, **options))
        return fp

    def __repr__(self) -> str:
        return _line(self, colored=False)


class GPUStatCollection(_Sequence): # type: ignore[type-arg]
    """The GPUs at one moment."""

    def __init__(self, gpu_list: List[GPUStat], driver_version: Optional[str] = None) -> None:
        self.gpus = gpu_list
        self.hostname = platform.node()
        self.query_time = datetime.now()
        self.driver_version = driver_version

    @staticmethod
    def new_query(debug: bool = False, id: Union[None, str, "_Sequence[int]"] = None) -> "GPUStatCollection":
        numbers: Any = id.split(",") if isinstance(id, str) else id
        wanted = None if numbers is None else [int(number) for number in numbers]
        sample = _sample()
        gpus = [_stat(gpu) for gpu in sample.gpus]
        if wanted is not None:
            if not all(0 <= index < len(gpus) for index in wanted):
                raise NVMLError(2)
            gpus = [gpus[index] for index in wanted]
        return GPUStatCollection(gpus, str(sample.host.get("driver_version")))

    def __len__(self) -> int:
        return len(self.gpus)

    def __iter__(self) -> Iterator[GPUStat]:
        return iter(self.gpus)

    def __getitem__(self, index: Any) -> Any:
        return self.gpus[index]

    def __repr__(self) -> str:
        return f"GPUStatCollection(host={self.hostname}, [\n" + "\n".join(f"  {gpu!r}" for gpu in self.gpus) + "\n])"

    def print_formatted(self, fp: Optional[TextIO] = None, *, force_color: bool = False, no_color: bool = False,
                        gpuname_width: Optional[int] = None, show_header: bool = True, eol_char: str = os.linesep,
                        **options: Any) -> None:
        """Options: show_cmd, show_full_cmd, show_user, show_pid, show_fan_speed, show_codec, show_power, no_processes."""
        fp = fp or sys.stdout
        paint = _Paint(_is_colored(sys.stdout, force_color, no_color))
        if gpuname_width is None:
            gpuname_width = max((len(gpu.entry["name"]) for gpu in self), default=0)
        if show_header:
            host = f"{self.hostname:{(gpuname_width or _NAME_WIDTH) + 3}}"
            time = self.query_time.strftime(locale.nl_langinfo(locale.D_T_FMT))
            fp.write(f"{paint('bold white', host)}  {time}  {paint('bold black', str(self.driver_version))}".strip())
            fp.write(eol_char)
        for gpu in self:
            fp.write(_line(gpu, colored=paint.colored, gpuname_width=gpuname_width, eol_char=eol_char, **options))
            fp.write(eol_char)
        if not self.gpus:
            print(paint("yellow", "(No GPUs are available)"))
        fp.flush()

    def jsonify(self) -> Dict[str, Any]:
        return {"hostname": self.hostname, "driver_version": self.driver_version, "query_time": self.query_time,
                "gpus": [gpu.jsonify() for gpu in self]}

    def print_json(self, fp: Optional[TextIO] = None) -> None:
        fp = fp or sys.stdout
        json.dump(self.jsonify(), fp, indent=4, default=datetime.isoformat)
        fp.write(os.linesep)
        fp.flush()


# ---- the query ----

def _sample() -> gpulse.Sample:
    try:
        return _sample_of(_FIELDS)
    except gpulse.GpulseError as error:
        if error.kind == "no-device":
            return gpulse.Session("driver_version").sample()
        raise nvml_error(error) from error


def _stat(gpu: gpulse.GPU) -> GPUStat:
    if gpu["status"] != "ok":
        reason = "GPU is lost" if gpu["status"] == "lost" else gpu.get("status.text")
        return GPUStat(_Entry(index=gpu["index"], name=f"(({reason}))", processes=None))
    entry: Dict[str, Any] = {}
    for key, (metric, convert) in _VALUES.items():
        value = gpu.get(metric)
        entry[key] = None if value is None else convert(value)
    found: Dict[Any, Optional[Dict[str, Any]]] = {}
    for process in gpu.processes:
        if process.get("process.suspended") is None:
            found.setdefault(process["pid"], _process(process))
    entry["processes"] = [process for process in found.values() if process]
    return GPUStat(entry)


def _process(process: gpulse.Process) -> Optional[Dict[str, Any]]:
    """None if it has ended."""
    pid = process["pid"]
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            command = [shown(word) for word in file.read().rstrip(b"\0").split(b"\0")]
    except OSError:
        return None
    memory = process.get("used_gpu_memory")
    if command == [""]:
        command = ["?"]
    return {"username": process.get("process.user", "?"), "command": os.path.basename(command[0]),
            "full_command": command, "gpu_memory_usage": int(memory) // _MIB if memory else None,
            "cpu_percent": process.get("process.cpu", 0.0), "cpu_memory_usage": process.get("process.rss", 0),
            "pid": pid}


# ---- text ----

_NAME_WIDTH = 16
_COLORS = {name: f"\x1b[3{number}m" for number, name in
           enumerate(("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"))}
_STYLES = {"bold": "\x1b[1m", "dark blue": "\x1b[38;5;24m", **_COLORS}
_NORMAL = "\x1b[0;10m"


def _is_colored(fp: Any, force_color: bool, no_color: bool) -> bool:
    if force_color and no_color:
        raise ValueError("--color and --no_color can't be used at the same time")
    return force_color or (not no_color and fp.isatty())


class _Paint:
    def __init__(self, colored: bool) -> None:
        self.colored = colored

    def __call__(self, styles: str, text: str) -> str:
        if not self.colored:
            return text
        codes = [_STYLES[styles]] if styles in _STYLES else [_STYLES[style] for style in styles.split()]
        return "".join(codes) + text + _NORMAL


def _shade(color: str, value: Any, limit: float) -> str:
    """Bold from the limit on; grey without a value."""
    if not isinstance(value, (int, float)):
        return "bold black"
    return color if value < limit else "bold " + color


def _known(value: Any, otherwise: str = "??") -> Any:
    return otherwise if value is None else value


def _line(gpu: GPUStat, *, colored: bool, show_cmd: bool = False, show_full_cmd: bool = False, no_processes: bool = False,
          show_user: bool = False, show_pid: bool = False, show_fan_speed: Optional[bool] = None,
          show_codec: Optional[str] = "", show_power: Union[None, bool, str] = None, gpuname_width: Optional[int] = None,
          eol_char: str = os.linesep) -> str:
    paint = _Paint(colored)
    get = gpu.entry.__getitem__

    def percent(color: str, key: str, limit: float) -> str:
        return paint(_shade(color, get(key), limit), f"{_known(get(key)):>3} %")

    text = paint("cyan", f"[{get('index')}]") + " "
    if gpuname_width != 0:
        name = get("name")
        if gpuname_width and len(name) > gpuname_width:
            name = "…" + name[len(name) - gpuname_width + 1:]
        text += paint("blue" if gpu.available else "red", f"{name:{gpuname_width or _NAME_WIDTH}}") + " |"
    temperature = get("temperature.gpu")
    text += paint(_shade("red", temperature, 50), f"{_known(temperature):>3}°C") + ", "
    if show_fan_speed:
        text += percent("cyan", "fan.speed", 30) + ", "
    text += percent("green", "utilization.gpu", 30)
    if show_codec:
        text += " (" + "  ".join(paint("bold", f"{key[0].upper()}: ") + percent("green", f"utilization.{key}", 50)
                                 for key in ("enc", "dec") if key in show_codec) + ")"
    if show_power:
        text += ",  " + _power(paint, get("power.draw"), get("enforced.power.limit"),
                               show_power is True or "limit" in show_power)
    used, total = ("bold yellow", "yellow") if gpu.available else ("bold black", "bold black")
    text += " | " + (_STYLES["cyan"] if colored else "")
    text += paint(used, f"{_known(get('memory.used')):>5}") + " / "
    text += paint(total, f"{_known(get('memory.total')):>5}") + " MB"
    if no_processes:
        return text
    processes = get("processes")
    text += " |" + (" (Not Supported)" if processes is None else "")
    for process in processes or []:
        text += " " + _short(paint, process, show_user or not show_cmd, show_cmd, show_pid)
    if show_full_cmd:
        for number, process in enumerate(processes or [], 1):
            text += eol_char + _long(paint, process, "└" if number == len(processes) else "├")
    return text


def _power(paint: _Paint, draw: Any, limit: Any, shows_limit: bool) -> str:
    known = isinstance(draw, int) and isinstance(limit, int) and limit
    style = _shade("magenta", draw / limit, 0.4) if known else "bold magenta" if limit is None else "bold black"
    text = paint(style, f"{_known(draw):>3}") + " "
    if not shows_limit:
        return text + paint(style, "W")
    return text + "/ " + paint("magenta", f"{_known(limit):>3}") + " " + paint("magenta", "W")


def _short(paint: _Paint, process: Dict[str, Any], shows_user: bool, shows_command: bool, shows_pid: bool) -> str:
    names = [paint("bold black", str(_known(process["username"], "--")))] if shows_user else []
    if shows_command:
        names.append(paint("cyan", str(_known(process["command"], "--"))))
    pid = f"/{process['pid']}" if shows_pid else ""
    return ":".join(names) + pid + "(" + paint("yellow", f"{_known(process['gpu_memory_usage'], '?')}M") + ")"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 10000 or unit == "TB":
            break
        count /= 1024
    return f"{int(count)}{unit}"


def _long(paint: _Paint, process: Dict[str, Any], corner: str) -> str:
    command, *arguments = process["full_command"]
    folder, name = os.path.split(command)
    folder += "/" if folder and not folder.endswith("/") else ""
    words = [paint("dark blue", folder) + paint("cyan", name), *(paint("dark blue", word) for word in arguments)]
    return (f" {corner}─ {process['pid']:>6} (" + paint("green", f"{process['cpu_percent']:4.0f}%") + ", " +
            paint("yellow", f"{_size(process['cpu_memory_usage']):>6}") + "): " + " ".join(words))


# ---- functions ----

def new_query() -> GPUStatCollection:
    """The GPUs of this machine, as they are now."""
    return GPUStatCollection.new_query()


def gpu_count() -> int:
    """The number of GPUs; 0 without a driver."""
    try:
        return len(_sample().gpus)
    except NVMLError:
        return 0


def is_available() -> bool:
    return gpu_count() > 0


def print_gpustat(*, id: Union[None, str, "_Sequence[int]"] = None, json: bool = False, debug: bool = False,
                  **options: Any) -> None:
    stats = GPUStatCollection.new_query(debug=debug, id=id)
    if json:
        stats.print_json()
    else:
        stats.print_formatted(**options)
