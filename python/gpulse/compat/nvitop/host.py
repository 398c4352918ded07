"""The host: its load and memory, and its processes, from gpulse and /proc."""

from __future__ import annotations

import collections
import datetime
import getpass
import os
import platform
import pwd
import signal
import time
from typing import Any, Dict, List, Optional, Set, Tuple

import gpulse
from gpulse._model import _sample_of

from .._text import shown
from .values import Snapshot, bytes2human, command_join, timedelta2human

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STATES = {"R": "running", "S": "sleeping", "D": "disk-sleep", "T": "stopped", "t": "tracing-stop", "Z": "zombie",
           "X": "dead", "I": "idle"}

svmem = collections.namedtuple("svmem", "total available percent used free")
sswap = collections.namedtuple("sswap", "total used free percent")
pmem = collections.namedtuple("pmem", "rss vms")


class NoSuchProcess(Exception):
    def __init__(self, pid: int, name: Optional[str] = None, msg: str = "process no longer exists") -> None:
        super().__init__(f"{msg} (pid={pid})")
        self.pid, self.name, self.msg = pid, name, msg


# ---- the host ----

def _host() -> gpulse.Sample:
    return _sample_of("host.cpu.utilization,host.cpu.count,host.memory.total,host.memory.available,host.swap.total,"
                      "host.swap.used,host.uptime")


def _number(name: str) -> Any:
    return _host().host[name]


def _percent(part: float, total: float) -> float:
    return round(100.0 * part / total, 1) if total else 0.0


def cpu_percent(interval: Optional[float] = None) -> float:
    """Since the last call; in the first call: since the host booted."""
    if interval:
        _host()
        time.sleep(interval)
    return round(float(_number("host.cpu.utilization")), 1)


def cpu_count(logical: bool = True) -> int:
    return int(_number("host.cpu.count"))


def virtual_memory() -> Any:
    """Memory that is not available counts as used."""
    host = _host().host
    total, available = int(host["host.memory.total"]), int(host["host.memory.available"])
    return svmem(total, available, _percent(total - available, total), total - available, available)


def swap_memory() -> Any:
    host = _host().host
    total, used = int(host["host.swap.total"]), int(host["host.swap.used"])
    return sswap(total, used, total - used, _percent(used, total))


def memory_percent() -> float:
    return float(virtual_memory().percent)


def swap_percent() -> float:
    return float(swap_memory().percent)


def load_average() -> Tuple[float, float, float]:
    return os.getloadavg()


getloadavg = load_average


def uptime() -> float:
    return float(_number("host.uptime"))


def boot_time() -> float:
    return time.time() - uptime()


def hostname() -> str:
    return platform.node()


def getuser() -> str:
    return getpass.getuser()


def pids() -> List[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def pid_exists(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def ppid_map() -> Dict[int, int]:
    found = {}
    for pid in pids():
        try:
            found[pid] = int(_stat(pid)[1])
        except NoSuchProcess:
            pass
    return found


def descendants(roots: Set[int]) -> Set[int]:
    """These processes and all that they started."""
    parents = ppid_map()
    found: Set[int] = set()
    for pid in parents:
        line: List[int] = []
        while pid and pid not in line and pid not in found and pid not in roots:
            line.append(pid)
            pid = parents.get(pid, 0)
        if pid in roots or pid in found:
            found.update(line)
    return found | roots


# ---- processes ----

def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        raise NoSuchProcess(pid) from None


def _stat(pid: int) -> List[str]:
    """The fields of /proc/PID/stat from the state on."""
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _started(fields: List[str]) -> int:
    """In clock ticks since the machine was started: unlike the time of day, it never changes."""
    return int(fields[19])


def _created(ticks: int) -> float:
    """In seconds since 1970."""
    with open("/proc/stat") as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith("btime"))
    return boot + ticks * _TICK_S


# (pid, start): when CPU time was last read, and how much
_cpu_times: Dict[Tuple[int, int], Tuple[float, float]] = {}


class HostProcess:
    """A process, by default this one."""

    def __init__(self, pid: Optional[int] = None) -> None:
        self.pid = os.getpid() if pid is None else pid
        try:
            self._start = _started(_stat(self.pid))
        except NoSuchProcess:
            self._start = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostProcess) and (self.pid, self._start) == (other.pid, other._start)

    def __hash__(self) -> int:
        return hash((self.pid, self._start))

    def __repr__(self) -> str:
        try:
            started = datetime.datetime.fromtimestamp(_created(self._start)).strftime("%H:%M:%S")
            return f"HostProcess(pid={self.pid}, name={self.name()!r}, status={self.status()!r}, started={started!r})"
        except NoSuchProcess:
            return f"HostProcess(pid={self.pid}, status='terminated')"

    def _fields(self) -> List[str]:
        fields = _stat(self.pid)
        if _started(fields) != self._start:
            raise NoSuchProcess(self.pid)
        return fields

    def is_running(self) -> bool:
        try:
            return self._fields()[0] != "Z"
        except NoSuchProcess:
            return False

    def status(self) -> str:
        return _STATES.get(self._fields()[0], "?")

    def name(self) -> str:
        return _read(self.pid, "comm").decode(errors="replace").rstrip("\n")

    def username(self) -> str:
        try:
            uid = os.stat(f"/proc/{self.pid}").st_uid
        except OSError:
            raise NoSuchProcess(self.pid) from None
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)

    def cmdline(self) -> List[str]:
        words = _read(self.pid, "cmdline").rstrip(b"\0").split(b"\0")
        return [shown(word) for word in words if word or len(words) > 1]

    def command(self) -> str:
        return command_join(self.cmdline()) or f"[{self.name()}]"

    def ppid(self) -> int:
        return int(self._fields()[1])

    def parent(self) -> Optional["HostProcess"]:
        parent = self.ppid()
        return HostProcess(parent) if parent else None

    def parents(self) -> List["HostProcess"]:
        parent = self.parent()
        return [parent, *parent.parents()] if parent else []

    def children(self, recursive: bool = False) -> List["HostProcess"]:
        if recursive:
            wanted = descendants({self.pid}) - {self.pid}
        else:
            wanted = {pid for pid, parent in ppid_map().items() if parent == self.pid}
        return [HostProcess(pid) for pid in sorted(wanted) if pid_exists(pid)]

    def num_threads(self) -> int:
        return int(self._fields()[17])

    def create_time(self) -> float:
        if not self._start:
            raise NoSuchProcess(self.pid)
        return _created(self._start)

    def running_time_in_seconds(self) -> float:
        self._fields()
        return time.time() - _created(self._start)

    def running_time(self) -> datetime.timedelta:
        return datetime.timedelta(seconds=self.running_time_in_seconds())

    def running_time_human(self) -> str:
        return timedelta2human(self.running_time())

    elapsed_time, elapsed_time_human, elapsed_time_in_seconds = running_time, running_time_human, running_time_in_seconds

    def memory_info(self) -> Any:
        fields = self._fields()
        return pmem(int(fields[21]) * _PAGE, int(fields[20]))

    def rss_memory(self) -> int:
        return int(self.memory_info().rss)

    def memory_percent(self) -> float:
        return 100.0 * self.rss_memory() / float(virtual_memory().total)

    def cpu_percent(self, interval: Optional[float] = None) -> float:
        """Since the last call; the first call returns 0."""
        fields = self._fields()
        now, used = time.monotonic(), (int(fields[11]) + int(fields[12])) * _TICK_S
        before = _cpu_times.get((self.pid, self._start))
        _cpu_times[self.pid, self._start] = now, used
        if interval and not before:
            time.sleep(interval)
            return self.cpu_percent()
        return round(100.0 * (used - before[1]) / (now - before[0]), 1) if before and now > before[0] else 0.0

    def send_signal(self, number: int) -> None:
        self._fields()
        os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def as_snapshot(self) -> Snapshot:
        return Snapshot(self, name=self.name(), username=self.username(), cmdline=self.cmdline(), command=self.command(),
                        status=self.status(), is_running=self.is_running(), cpu_percent=self.cpu_percent(),
                        memory_percent=self.memory_percent(), host_memory=self.rss_memory(),
                        host_memory_human=bytes2human(self.rss_memory()), running_time=self.running_time(),
                        running_time_human=self.running_time_human(),
                        running_time_in_seconds=self.running_time_in_seconds())
