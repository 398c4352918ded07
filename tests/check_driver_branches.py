#!/usr/bin/env python3
"""One machine with drivers from 450 to 610: what the library exports, how its structs are laid out,
which field ids and calls it knows, as a plain ctypes client sees it; and that gpulse tells the same
of the machine whatever the driver, or says that it cannot.

variants: release
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from ctypes import byref, c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void_p, sizeof
from pathlib import Path

from tap import BUILD, GPULSE, good, gpulse, main, test

SUCCESS, INVALID_ARGUMENT, DEPRECATED = 0, 2, 26
MEMORY_V2 = 40 | 2 << 24
ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))

# as asked for, as it calls itself
DRIVERS = {"450": "450.80.02", "470": "470.57.02", "510": "510.47.03", "535.43": "535.43.02",
           "535.98": "535.98", "550": "550.54.15", "575": "575.51.03", "590": "590.48.01",
           "610": "610.57.04"}

# the first branch whose library has them
SYMBOLS = {
    "nvmlInit_v2": 0, "nvmlDeviceGetMemoryInfo": 0, "nvmlDeviceGetFieldValues": 0,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0, "nvmlDeviceGetMemoryInfo_v2": 510,
    "nvmlDeviceGetNumFans": 510, "nvmlDeviceGetComputeRunningProcesses_v3": 510,
    "nvmlDeviceGetMemClkVfOffset": 520, "nvmlGpmMetricsGet": 520, "nvmlDeviceGetModuleId": 535,
    "nvmlDeviceGetCurrentClocksEventReasons": 535, "nvmlDeviceGetJpgUtilization": 535,
    "nvmlDeviceGetGpuFabricInfoV": 550, "nvmlDeviceGetMarginTemperature": 570,
    "nvmlDeviceGetPdi": 580, "nvmlDeviceGetHostname_v1": 590, "nvmlSystemGetCPER_v1": 610,
}


class Memory(ctypes.Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", c_uint), ("total", c_ulonglong), ("reserved", c_ulonglong),
                ("free", c_ulonglong), ("used", c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [("pid", c_uint), ("usedGpuMemory", c_ulonglong), ("gpuInstanceId", c_uint),
                ("computeInstanceId", c_uint)]


class WideProcess(ctypes.Structure):
    _fields_ = Process._fields_ + [("usedGpuCcProtectedMemory", c_ulonglong)]


class Field(ctypes.Structure):
    _fields_ = [("fieldId", c_uint), ("scopeId", c_uint), ("timestamp", c_longlong),
                ("latencyUsec", c_longlong), ("valueType", c_int), ("nvmlReturn", c_int),
                ("value", c_ulonglong)]


assert sizeof(MemoryV2) == 40 and sizeof(Process) == 24 and sizeof(WideProcess) == 32


class Client:
    """The calls that the tests are interested in, made as pynvml makes them."""

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        assert self.nvml.nvmlInit_v2() == SUCCESS
        self.device = c_void_p()
        assert self.nvml.nvmlDeviceGetHandleByIndex_v2(c_uint(0), byref(self.device)) == SUCCESS

    def has(self, name):
        return hasattr(self.nvml, name)

    def text(self, name):
        buffer = ctypes.create_string_buffer(80)
        assert getattr(self.nvml, name)(buffer, c_uint(80)) == SUCCESS
        return buffer.value.decode()

    def memory(self):
        v1, v2 = Memory(), MemoryV2(version=MEMORY_V2)
        assert self.nvml.nvmlDeviceGetMemoryInfo(self.device, byref(v1)) == SUCCESS
        code = None
        if self.has("nvmlDeviceGetMemoryInfo_v2"):
            code = self.nvml.nvmlDeviceGetMemoryInfo_v2(self.device, byref(v2))
        return {"v1": [v1.total, v1.used, v1.free], "v2_code": code,
                "v2": [v2.total, v2.reserved, v2.used, v2.free]}

    def pids(self, suffix, entry):
        name = "nvmlDeviceGetComputeRunningProcesses" + suffix
        if not self.has(name):
            return None
        count, room = c_uint(8), (entry * 8)()
        assert getattr(self.nvml, name)(self.device, byref(count), room) == SUCCESS
        return [room[i].pid for i in range(count.value)]

    def fields(self, ids):
        batch = (Field * len(ids))(*[Field(fieldId=i) for i in ids])
        assert self.nvml.nvmlDeviceGetFieldValues(self.device, len(ids), batch) == SUCCESS
        return {f.fieldId: [f.nvmlReturn, f.value if f.nvmlReturn == 0 else None] for f in batch}

    def code(self, name, *args):
        return getattr(self.nvml, name)(self.device, *args)

    def report(self):
        clock = c_uint()
        return {
            "symbols": [name for name in SYMBOLS if self.has(name)],
            "driver": self.text("nvmlSystemGetDriverVersion"),
            "nvml": self.text("nvmlSystemGetNVMLVersion"),
            "memory": self.memory(),
            "pids": {"v2": self.pids("_v2", Process) if self.has("nvmlDeviceGetComputeRunningProcesses_v2")
                     else None,
                     "v3": self.pids("_v3", Process), "v3_wide": self.pids("_v3", WideProcess)},
            "fields": self.fields([82, 186, 197, 230, 251, 252, 253, 256, 269, 270, 271, 274, 301]),
            "application_clock": self.code("nvmlDeviceGetApplicationsClock", c_uint(0), byref(clock)),
            "exports": [name for name in captured_symbols() if not self.has(name)],
        }


def captured_symbols():
    """What nm found in a real library of 590.48."""
    text = (ROOT / "data/captures/nvml-symbols__h100-80gb-hbm3_590.48.01.txt").read_text()
    return sorted({word for line in text.splitlines() for word in line.split()
                   if word.startswith("nvml") and word.isidentifier()})


if sys.argv[1:] == ["client"]:
    print(json.dumps(Client().report()))
    sys.exit(0)

FOLDER = tempfile.TemporaryDirectory()
os.environ["GPULSE_SIM_STATE"] = FOLDER.name


def machine_file():
    """An H100 whose three newest counters can be told apart."""
    machine = json.loads(Path(BUILD, "sim/machines/h100.json").read_text())
    machine["devices"] = machine["devices"][:1]
    machine["workload"] = machine["workload"][:1]
    machine["devices"][0]["fields"].update({"251": 1, "256": 40, "269": 11_000_000,
                                            "270": 22_000_000, "271": 33_000_000})
    path = Path(FOLDER.name, "machine.json")
    path.write_text(json.dumps(machine))
    return path


MACHINE = machine_file()
_reports = {}


def seen(driver):
    if driver not in _reports:
        command = [GPULSE, "sim", "exec", "-m", f"{MACHINE},driver={driver}", "--still", "--",
                   sys.executable, __file__, "client"]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        _reports[driver] = json.loads(result.stdout)
    return _reports[driver]


def branch(driver):
    return int(driver.split(".")[0])


@test
def a_library_exports_what_its_branch_had():
    for driver in DRIVERS:
        expected = {name for name, first in SYMBOLS.items() if branch(driver) >= first}
        if driver == "535.98":
            expected.discard("nvmlDeviceGetComputeRunningProcesses_v3")
        assert set(seen(driver)["symbols"]) == expected, (driver, seen(driver)["symbols"])


@test
def nothing_of_a_real_590_library_is_missing_from_590_on():
    assert len(captured_symbols()) > 350
    assert seen("590")["exports"] == [], seen("590")["exports"]
    assert len(seen("450")["exports"]) > 100


@test
def versions_are_those_of_a_real_release():
    for driver, version in DRIVERS.items():
        assert seen(driver)["driver"] == version
        assert seen(driver)["nvml"].split(".", 1)[1] == version, seen(driver)["nvml"]
    assert seen("470")["nvml"].startswith("11.") and seen("610")["nvml"].startswith("13.")


@test
def memory_counts_the_reservation_as_used_since_510():
    total, reserved, used, free = seen("610")["memory"]["v2"]
    assert total == reserved + used + free and reserved > 0
    for driver in DRIVERS:
        memory = seen(driver)["memory"]
        if branch(driver) < 510:
            assert memory["v1"] == [total - reserved, used, free], driver
            assert memory["v2_code"] is None
        else:
            assert memory["v1"] == [total, used + reserved, free], driver
            assert memory["v2_code"] == SUCCESS and memory["v2"] == [total, reserved, used, free]


@test
def process_entries_were_32_bytes_in_535_43():
    for driver in DRIVERS:
        pids = seen(driver)["pids"]
        if branch(driver) < 510 or driver == "535.98":
            assert pids["v3"] is None, driver
        elif driver == "535.43":
            assert pids["v3_wide"] == [4190001], pids
        else:
            assert pids["v3"] == [4190001], (driver, pids)


@test
def fields_answer_by_the_numbers_of_their_branch():
    counters = [11_000_000, 22_000_000, 33_000_000]
    for driver in DRIVERS:
        got = {int(i): v for i, v in seen(driver)["fields"].items()}
        number = branch(driver)
        refused = [INVALID_ARGUMENT, None]
        assert got[82][0] == SUCCESS, driver
        assert (got[186] != refused) == (number >= 535), driver
        assert (got[230] != refused) == (number >= 570), driver
        assert (got[274] != refused) == (number >= 590), driver
        assert (got[301] != refused) == (number >= 595), driver
        if number == 575:
            assert [got[i][1] for i in (251, 252, 253)] == counters and got[256][1] == 1
        elif number >= 590:
            assert [got[i][1] for i in (269, 270, 271)] == counters and got[251][1] == 1
        else:
            assert all(got[i] == refused for i in (251, 269, 270, 271)), driver


@test
def retired_calls_say_so():
    for driver in DRIVERS:
        expected = DEPRECATED if branch(driver) >= 590 else SUCCESS
        assert seen(driver)["application_clock"] == expected, driver


def queried(driver, fields, *more):
    text = good(gpulse("--sim", f"{MACHINE},driver={driver}", "--sim-still", "query", fields, *more,
                       "-f", "csv", "--no-header"))
    return text.strip().split(",")


@test
def gpulse_tells_the_same_with_every_driver():
    fields = "name,uuid,memory.used,memory.free,temperature.gpu,power.draw,clocks.sm,pstate," \
             "clocks_event_reasons.active,utilization.gpu,temperature.memory"
    newest = queried("610", fields)
    assert "[N/A]" not in newest, newest
    for driver in DRIVERS:
        assert queried(driver, fields) == newest, driver
        assert queried(driver, "driver_version") == [DRIVERS[driver]]
        assert queried(driver, "pid,used_gpu_memory", "--processes")[0] == "4190001", driver


@test
def gpulse_reads_the_counters_by_their_numbers():
    fields = ",".join(f"clocks_event_reasons_counters.{n}" for n in
                      ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"))
    for driver in ("575", "580.65", "580.105", "590", "610"):
        assert queried(driver, fields) == ["11000", "22000", "33000"], (driver, queried(driver, fields))
    for driver in ("450", "470", "550"):
        assert queried(driver, fields) == ["[N/A]"] * 3, driver


@test
def a_driver_that_is_not_known_is_refused_with_the_known_ones():
    result = gpulse("--sim", "h100,driver=471", "status")
    assert result.returncode != 0 and "unknown version driver=471; known: " in result.stderr
    result = gpulse("sim", "exec", "-m", "h100,driver=x", "--", "true")
    assert result.returncode == 2 and "expected a branch or a version" in result.stderr
    result = gpulse("sim", "exec", "-m", "h100,drivr=470", "--", "true")
    assert result.returncode == 2 and "expected driver=BRANCH" in result.stderr


main()
