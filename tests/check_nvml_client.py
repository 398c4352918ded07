#!/usr/bin/env python3
"""A client that gpulse did not write runs on the simulated driver: the calls of pynvml, made as
pynvml makes them, with the library found by its name and struct layouts written down here.

Called without arguments it starts itself again below `gpulse sim exec` and shows what that prints.

variants: release
"""
import os
import re
import subprocess
import sys
import tempfile
from ctypes import (CDLL, Structure, byref, c_char, c_char_p, c_int, c_uint, c_ulonglong,
                    c_void_p, create_string_buffer, sizeof)
from pathlib import Path

from tap import GPULSE, main, test

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED = 0, 1, 2, 3
NOT_FOUND, INSUFFICIENT_SIZE, VERSION_MISMATCH = 6, 7, 25
NOT_AVAILABLE = 0xFFFFFFFF
GIB = 1 << 30


class Memory(Structure):
    _fields_ = [("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong)]


class MemoryV2(Structure):
    _fields_ = [("version", c_uint), ("total", c_ulonglong), ("reserved", c_ulonglong),
                ("free", c_ulonglong), ("used", c_ulonglong)]


MEMORY_V2 = sizeof(MemoryV2) | 2 << 24


class Utilization(Structure):
    _fields_ = [("gpu", c_uint), ("memory", c_uint)]


class ProcessV2(Structure):
    _fields_ = [("pid", c_uint), ("usedGpuMemory", c_ulonglong), ("gpuInstanceId", c_uint),
                ("computeInstanceId", c_uint)]


class PciInfo(Structure):
    _fields_ = [("busIdLegacy", c_char * 16), ("domain", c_uint), ("bus", c_uint), ("device", c_uint),
                ("pciDeviceId", c_uint), ("pciSubSystemId", c_uint), ("busId", c_char * 32)]


def launch():
    """The other end of this file: this script below `sim exec`."""
    with tempfile.TemporaryDirectory() as state:
        env = dict(os.environ, GPULSE_SIM_STATE=state)
        command = [GPULSE, "sim", "exec", "-m", "h100x8", "--still", "--", sys.executable, __file__, "client"]
        sys.exit(subprocess.run(command, env=env).returncode)


if sys.argv[1:] != ["client"]:
    launch()

nvml = CDLL("libnvidia-ml.so.1")
nvml.nvmlErrorString.restype = c_char_p


def call(name, *args):
    return getattr(nvml, name)(*args)


def check(name, *args):
    code = call(name, *args)
    assert code == SUCCESS, f"{name}: {code} {nvml.nvmlErrorString(code).decode()}"


def read_text(name, *args, size=96):
    buffer = create_string_buffer(size)
    check(name, *args, buffer, c_uint(size))
    return buffer.value.decode()


def read_uint(name, *args):
    value = c_uint()
    check(name, *args, byref(value))
    return value.value


def handle(index):
    found = c_void_p()
    check("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(found))
    return found


@test
def calls_before_init_are_refused():
    count = c_uint()
    assert call("nvmlDeviceGetCount_v2", byref(count)) == UNINITIALIZED
    assert call("nvmlShutdown") == UNINITIALIZED


@test
def init_and_count():
    check("nvmlInit_v2")
    assert read_uint("nvmlDeviceGetCount_v2") == 8


@test
def versions_of_the_system():
    assert read_text("nvmlSystemGetDriverVersion", size=80) == "580.105.08"
    assert read_text("nvmlSystemGetNVMLVersion", size=80) == "13.580.105.08"
    cuda = c_int()
    check("nvmlSystemGetCudaDriverVersion", byref(cuda))
    assert cuda.value == 13000, cuda.value
    check("nvmlSystemGetCudaDriverVersion_v2", byref(cuda))
    assert cuda.value == 13000, cuda.value


@test
def a_handle_by_index_uuid_or_bus_id_is_the_same():
    for index in range(8):
        by_index = handle(index)
        uuid = read_text("nvmlDeviceGetUUID", by_index)
        assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid), uuid
        pci = PciInfo()
        check("nvmlDeviceGetPciInfo_v3", by_index, byref(pci))
        by_uuid, by_bus = c_void_p(), c_void_p()
        check("nvmlDeviceGetHandleByUUID", c_char_p(uuid.encode()), byref(by_uuid))
        check("nvmlDeviceGetHandleByPciBusId_v2", c_char_p(pci.busId), byref(by_bus))
        assert by_index.value == by_uuid.value == by_bus.value, index
        assert read_uint("nvmlDeviceGetIndex", by_uuid) == index


@test
def pci_of_the_first_gpu():
    pci = PciInfo()
    check("nvmlDeviceGetPciInfo_v3", handle(0), byref(pci))
    assert pci.busId == b"00000000:53:00.0", pci.busId
    assert pci.busIdLegacy == b"0000:53:00.0", pci.busIdLegacy
    assert (pci.domain, pci.bus, pci.device) == (0, 0x53, 0)
    assert (pci.pciDeviceId, pci.pciSubSystemId) == (0x233010DE, 0x16C110DE)


@test
def name_and_a_buffer_that_is_too_small():
    assert read_text("nvmlDeviceGetName", handle(0)) == "NVIDIA H100 80GB HBM3"
    buffer = create_string_buffer(4)
    assert call("nvmlDeviceGetName", handle(0), buffer, c_uint(4)) == INSUFFICIENT_SIZE
    assert buffer.raw == bytes(4), "the buffer was written"


@test
def memory_of_both_versions_agrees():
    v1, v2 = Memory(), MemoryV2(version=MEMORY_V2)
    check("nvmlDeviceGetMemoryInfo", handle(0), byref(v1))
    check("nvmlDeviceGetMemoryInfo_v2", handle(0), byref(v2))
    assert v1.total == v2.total == 81559 << 20, v1.total
    assert v2.reserved > 0
    assert v2.total == v2.reserved + v2.used + v2.free
    # The first version counts the driver's own memory as used.
    assert v1.used == v2.used + v2.reserved and v1.free == v2.free


@test
def memory_v2_wants_its_version_word():
    for version in (0, MEMORY_V2 + 1, sizeof(MemoryV2) | 1 << 24):
        wrong = MemoryV2(version=version, total=7)
        assert call("nvmlDeviceGetMemoryInfo_v2", handle(0), byref(wrong)) == VERSION_MISMATCH
        assert wrong.total == 7, "a refused call wrote its answer"


@test
def utilization_temperature_power():
    utilization = Utilization()
    check("nvmlDeviceGetUtilizationRates", handle(0), byref(utilization))
    assert 0 < utilization.gpu <= 100 and 0 < utilization.memory <= 100
    assert 20 < read_uint("nvmlDeviceGetTemperature", handle(0), c_uint(0)) < 100
    power, limit = (read_uint(f"nvmlDeviceGet{n}", handle(0)) for n in
                    ("PowerUsage", "EnforcedPowerLimit"))
    assert 100_000 < power <= limit == 700_000, (power, limit)
    assert call("nvmlDeviceGetTemperature", handle(0), c_uint(9), byref(c_uint())) == INVALID_ARGUMENT


@test
def still_values_stand_still():
    first = [read_uint("nvmlDeviceGetPowerUsage", handle(i)) for i in range(8)]
    assert first == [read_uint("nvmlDeviceGetPowerUsage", handle(i)) for i in range(8)]


def processes(version, device):
    """The protocol of pynvml: ask with 0 entries, then with room for some more."""
    name = f"nvmlDeviceGetComputeRunningProcesses_v{version}"
    count = c_uint(0)
    code = call(name, device, byref(count), None)
    if code == SUCCESS:
        return []
    assert code == INSUFFICIENT_SIZE, code
    assert count.value > 0
    count.value = count.value * 2 + 5
    room = (ProcessV2 * count.value)()
    check(name, device, byref(count), room)
    return list(room[:count.value])


@test
def process_lists_of_both_versions():
    for index in range(8):
        v2, v3 = processes(2, handle(index)), processes(3, handle(index))
        rows = [[(p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId) for p in v] for v in (v2, v3)]
        assert rows[0] == rows[1]
        for pid, memory, gi, ci in rows[0]:
            assert pid > 1 and GIB < memory < 80 * GIB, (pid, memory)
            assert gi == ci == NOT_AVAILABLE, "no MIG instance here"
    assert len(processes(3, handle(0))) == 1 and processes(3, handle(7)) == []


@test
def a_list_with_too_little_room_tells_how_much_it_needs():
    count = c_uint(0)
    room = (ProcessV2 * 1)()
    assert call("nvmlDeviceGetComputeRunningProcesses_v3", handle(0), byref(count), room) == INSUFFICIENT_SIZE
    assert count.value == 1 and room[0].pid == 0


@test
def lists_of_clocks_follow_the_capacity_protocol():
    count = c_uint(0)
    assert call("nvmlDeviceGetSupportedMemoryClocks", handle(0), byref(count), None) == INSUFFICIENT_SIZE
    assert count.value == 2
    assert call("nvmlDeviceGetSupportedMemoryClocks", handle(0), byref(count), None) == INVALID_ARGUMENT
    clocks = (c_uint * 5)()
    count.value = 1
    assert call("nvmlDeviceGetSupportedMemoryClocks", handle(0), byref(count), clocks) == INSUFFICIENT_SIZE
    assert count.value == 2 and clocks[0] == 0, "nothing is written where there is no room"
    count.value = 5
    check("nvmlDeviceGetSupportedMemoryClocks", handle(0), byref(count), clocks)
    assert count.value == 2 and list(clocks) == [2619, 1593, 0, 0, 0]
    count.value = 0
    assert call("nvmlDeviceGetSupportedGraphicsClocks", handle(0), c_uint(1), byref(count), None) == NOT_FOUND


@test
def links_have_a_range_and_an_other_end():
    state, version, pci = c_uint(), c_uint(), PciInfo()
    check("nvmlDeviceGetNvLinkState", handle(0), c_uint(17), byref(state))
    check("nvmlDeviceGetNvLinkVersion", handle(0), c_uint(17), byref(version))
    check("nvmlDeviceGetNvLinkRemotePciInfo_v2", handle(0), c_uint(17), byref(pci))
    assert (state.value, version.value, pci.busId) == (1, 6, b"00000000:08:00.0")
    assert call("nvmlDeviceGetNvLinkState", handle(0), c_uint(18), byref(state)) == INVALID_ARGUMENT
    assert call("nvmlDeviceGetNvLinkState", handle(0), c_uint(0), None) == INVALID_ARGUMENT


@test
def topology_takes_two_handles():
    level = c_uint()
    for other, expected in ((0, 0), (1, 40), (7, 50)):
        check("nvmlDeviceGetTopologyCommonAncestor", handle(0), handle(other), byref(level))
        assert level.value == expected, (other, level.value)
    assert call("nvmlDeviceGetTopologyCommonAncestor", handle(0), c_void_p(1), byref(level)) == INVALID_ARGUMENT
    mask = (c_ulonglong * 2)()
    check("nvmlDeviceGetCpuAffinity", handle(7), c_uint(2), mask)
    assert list(mask) == [0xFFF0000000000000, 0xFFFFFFFFFF], [hex(m) for m in mask]


@test
def clocks_of_one_call_are_those_of_the_others():
    device = handle(0)
    for kind, name in enumerate(("ClockInfo", "ApplicationsClock", "DefaultApplicationsClock",
                                 "MaxCustomerBoostClock")):
        for clock in range(4):
            one, other = c_uint(), c_uint()
            codes = (call("nvmlDeviceGetClock", device, c_uint(clock), c_uint(kind), byref(one)),
                     call("nvmlDeviceGet" + name, device, c_uint(clock), byref(other)))
            assert codes[0] == codes[1] and one.value == other.value, (name, clock, codes)
    assert call("nvmlDeviceGetClock", device, c_uint(0), c_uint(0), byref(one)) == SUCCESS
    assert call("nvmlDeviceGetClock", device, c_uint(0), c_uint(4), byref(one)) == INVALID_ARGUMENT
    assert call("nvmlDeviceGetClock", device, c_uint(4), c_uint(0), byref(one)) == INVALID_ARGUMENT


@test
def the_branch_of_the_driver():
    info = (c_uint * 21)(84 | 1 << 24)
    check("nvmlSystemGetDriverBranch", info, c_uint(80))
    version = read_text("nvmlSystemGetDriverVersion").split(".")[0]
    assert bytes(info)[4:].split(b"\0")[0].decode() == f"r{version}_00"
    assert call("nvmlSystemGetDriverBranch", info, c_uint(3)) == INSUFFICIENT_SIZE


@test
def names_of_processes():
    pid = processes(3, handle(0))[0].pid
    name = read_text("nvmlSystemGetProcessName", c_uint(pid), size=1024)
    assert name.startswith("python"), name
    buffer = create_string_buffer(64)
    assert call("nvmlSystemGetProcessName", c_uint(4194303), buffer, c_uint(64)) == NOT_FOUND


@test
def error_strings():
    texts = {0: "Success", 1: "Uninitialized", 2: "Invalid Argument", 3: "Not Supported",
             4: "Insufficient Permissions", 6: "Not Found", 7: "Insufficient Size",
             9: "Driver Not Loaded", 10: "Timeout", 15: "GPU is lost",
             18: "Driver/library version mismatch", 999: "Unknown Error", 4711: "Unknown Error"}
    for code, words in texts.items():
        assert nvml.nvmlErrorString(c_int(code)).decode() == words, (code, nvml.nvmlErrorString(c_int(code)))


@test
def what_the_gpu_lacks_is_not_supported():
    assert call("nvmlDeviceGetFanSpeed", handle(0), byref(c_uint())) == NOT_SUPPORTED


@test
def bad_handles_and_arguments_are_refused():
    value = c_uint()
    for bad in (None, c_void_p(0), c_void_p(0x1234), c_void_p(handle(0).value + 8)):
        assert call("nvmlDeviceGetPowerUsage", bad, byref(value)) == INVALID_ARGUMENT, bad
    assert call("nvmlDeviceGetPowerUsage", handle(0), None) == INVALID_ARGUMENT
    found = c_void_p()
    assert call("nvmlDeviceGetHandleByIndex_v2", c_uint(8), byref(found)) == INVALID_ARGUMENT
    assert call("nvmlDeviceGetHandleByUUID", c_char_p(b"GPU-none"), byref(found)) == NOT_FOUND
    assert call("nvmlDeviceGetHandleByPciBusId_v2", c_char_p(b"0000:ff:1f.0"), byref(found)) == NOT_FOUND
    assert found.value is None


@test
def sessions_are_counted_and_old_handles_die_with_the_last():
    old = handle(0)
    check("nvmlInit_v2")
    check("nvmlShutdown")
    assert read_uint("nvmlDeviceGetCount_v2") == 8, "the first session goes on"
    check("nvmlShutdown")
    assert call("nvmlDeviceGetPowerUsage", old, byref(c_uint())) == UNINITIALIZED
    assert call("nvmlShutdown") == UNINITIALIZED
    check("nvmlInit_v2")
    assert call("nvmlDeviceGetPowerUsage", old, byref(c_uint())) == INVALID_ARGUMENT
    check("nvmlShutdown")


@test
def the_library_is_the_simulated_one():
    maps = Path("/proc/self/maps").read_text()
    paths = {line.split()[-1] for line in maps.splitlines() if "libnvidia-ml" in line}
    assert len(paths) == 1 and "/sim/" in paths.pop(), paths


main()
