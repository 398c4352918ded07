#!/usr/bin/env python3
"""GPULSE_SIM_STRICT=1: the simulated driver ends a program that makes a call which a real library
answers with a crash. Otherwise it answers with a return code, as before.

variants: release
"""
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from ctypes import byref, c_uint, c_void_p

from tap import GPULSE, good, gpulse, main, test

MEMORY_V2 = 40 | 2 << 24


def handle(nvml, index=0):
    found = c_void_p()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(found)) == 0
    return found


def null_handle(nvml):
    return nvml.nvmlDeviceGetPowerUsage(c_void_p(), byref(c_uint()))


def garbage_handle(nvml):
    return nvml.nvmlDeviceGetPowerUsage(c_void_p(0x1234), byref(c_uint()))


def stale_handle(nvml):
    old = handle(nvml)
    nvml.nvmlShutdown()
    nvml.nvmlInit_v2()
    return nvml.nvmlDeviceGetPowerUsage(old, byref(c_uint()))


def after_shutdown(nvml):
    nvml.nvmlShutdown()
    return nvml.nvmlDeviceGetCount_v2(byref(c_uint()))


def before_init(nvml):
    return nvml.nvmlDeviceGetCount_v2(byref(c_uint()))


def wrong_version(nvml):
    word = (ctypes.c_ulonglong * 5)(2)
    return nvml.nvmlDeviceGetMemoryInfo_v2(handle(nvml), word)


def wrong_version_of_profile(nvml):
    word = (ctypes.c_ulonglong * 19)(152)
    return nvml.nvmlDeviceGetGpuInstanceProfileInfoV(handle(nvml), c_uint(0), word)


def wrong_version_of_fan(nvml):
    word = (ctypes.c_uint * 3)(12)
    return nvml.nvmlDeviceGetFanSpeedRPM(handle(nvml), word)


def second_handle_of_p2p(nvml):
    return nvml.nvmlDeviceGetP2PStatus(handle(nvml), c_void_p(0x1234), c_uint(0), byref(c_uint()))


def second_handle_of_topology(nvml):
    return nvml.nvmlDeviceGetTopologyCommonAncestor(handle(nvml), c_void_p(), byref(c_uint()))


def freed_event_set(nvml):
    events = c_void_p()
    assert nvml.nvmlEventSetCreate(byref(events)) == 0
    assert nvml.nvmlEventSetFree(events) == 0
    return nvml.nvmlEventSetFree(events)


def wait_on_an_old_event_set(nvml):
    events = c_void_p()
    assert nvml.nvmlEventSetCreate(byref(events)) == 0
    nvml.nvmlShutdown()
    nvml.nvmlInit_v2()
    data = (ctypes.c_ulonglong * 4)()
    return nvml.nvmlEventSetWait_v2(events, data, c_uint(0))


def second_shutdown(nvml):
    nvml.nvmlShutdown()
    return nvml.nvmlShutdown()


def in_child_of(nvml, function):
    child = os.fork()
    if child == 0:
        os._exit(function())
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.WEXITSTATUS(status)


def in_child(nvml):
    return in_child_of(nvml, lambda: nvml.nvmlDeviceGetCount_v2(byref(c_uint())))


def init_in_child(nvml):
    return in_child_of(nvml, nvml.nvmlInit_v2)


def shutdown_in_child(nvml):
    return in_child_of(nvml, nvml.nvmlShutdown)


CLOCK_NANOSLEEP = {"x86_64": "230", "aarch64": "115"}  # the kernel's number of the call


def shutdown_beside_a_call(nvml):
    device = handle(nvml)
    speed = byref(c_uint())
    thread = threading.Thread(target=lambda: nvml.nvmlDeviceGetFanSpeed(device, speed), daemon=True)
    thread.start()
    # a thread of Python waits for the lock of the interpreter, the driver's sleeps until a moment
    path = f"/proc/self/task/{thread.native_id}/syscall"
    for _ in range(1000):
        try:
            with open(path, encoding="ascii") as file:
                if file.read().split()[0] == CLOCK_NANOSLEEP.get(os.uname().machine):
                    break
        except OSError:  # it is over: nothing was slow
            break
        time.sleep(0.01)
    code = nvml.nvmlShutdown()
    os._exit(code)


def well_behaved(nvml):
    code = nvml.nvmlDeviceGetPowerUsage(handle(nvml), byref(c_uint()))
    word = (ctypes.c_ulonglong * 5)(MEMORY_V2)
    code |= nvml.nvmlDeviceGetMemoryInfo_v2(handle(nvml), word)
    nvml.nvmlErrorString(3)
    return code | nvml.nvmlShutdown()


CASES = [
    (null_handle, "nvmlDeviceGetPowerUsage was called with a NULL handle", 2),
    (garbage_handle, "nvmlDeviceGetPowerUsage was called with an invalid or stale handle", 2),
    (stale_handle, "nvmlDeviceGetPowerUsage was called with an invalid or stale handle", 2),
    (after_shutdown, "nvmlDeviceGetCount_v2 was called after nvmlShutdown", 1),
    (before_init, "nvmlDeviceGetCount_v2 was called before nvmlInit", 1),
    (wrong_version, "nvmlDeviceGetMemoryInfo_v2 was called with a wrong version word", 25),
    (wrong_version_of_profile,
     "nvmlDeviceGetGpuInstanceProfileInfoV was called with a wrong version word", 25),
    (wrong_version_of_fan, "nvmlDeviceGetFanSpeedRPM was called with a wrong version word", 25),
    (second_handle_of_p2p, "nvmlDeviceGetP2PStatus was called with an invalid or stale handle", 2),
    (second_handle_of_topology,
     "nvmlDeviceGetTopologyCommonAncestor was called with a NULL handle", 2),
    (freed_event_set, "nvmlEventSetFree was called with an invalid or stale event set", 2),
    (wait_on_an_old_event_set, "nvmlEventSetWait_v2 was called with an invalid or stale event set", 2),
    (second_shutdown, "nvmlShutdown was called after nvmlShutdown", 1),
    (in_child, "nvmlDeviceGetCount_v2 was called in a child of the process", 0),
    (init_in_child, "nvmlInit_v2 was called in a child of the process", 0),
    (shutdown_in_child, "nvmlShutdown was called in a child of the process", 0),
    (shutdown_beside_a_call, "nvmlShutdown was called during another call", 0),
]

if len(sys.argv) == 2:
    library = ctypes.CDLL("libnvidia-ml.so.1")
    if sys.argv[1] != "before_init":
        assert library.nvmlInit_v2() == 0
    sys.exit(globals()[sys.argv[1]](library))

STATE = tempfile.TemporaryDirectory()
os.environ["GPULSE_SIM_STATE"] = STATE.name


def run_case(function, strict):
    machine = "h100" if function is wrong_version_of_profile else "t4"
    env = dict(os.environ, GPULSE_SIM_STRICT="1" if strict else "0")
    command = [GPULSE, "sim", "exec", "-m", machine, "--", sys.executable, __file__, function.__name__]
    return subprocess.run(command, env=env, stderr=subprocess.PIPE, text=True)


for case, message, code in CASES:
    def refused(case=case, message=message):
        if case is shutdown_beside_a_call:
            good(gpulse("sim", "fault", "-m", "t4", "slow=60s:nvmlDeviceGetFanSpeed"))
        result = run_case(case, strict=True)
        good(gpulse("sim", "fault", "-m", "t4", "clear"))
        assert result.returncode == -signal.SIGABRT, (result.returncode, result.stderr)
        assert f"gpulse-sim: strict: {message}" in result.stderr, result.stderr
    refused.__name__ = f"strict_{case.__name__}_ends_the_program"
    test(refused)

    def answered(case=case, code=code):
        result = run_case(case, strict=False)
        assert result.returncode == code, (result.returncode, result.stderr)
        assert "strict" not in result.stderr
    answered.__name__ = f"otherwise_{case.__name__}_is_answered"
    test(answered)


@test
def a_well_behaved_program_meets_nothing_of_it():
    result = run_case(well_behaved, strict=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr


main()
