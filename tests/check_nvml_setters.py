#!/usr/bin/env python3
"""Setters of the simulated driver as a client sees them that gpulse did not write: plain ctypes, with
layouts and numbers written down here.

Called without arguments it starts itself again below `gpulse sim exec` and shows what that prints.

variants: release
"""
import json
import os
import subprocess
import sys
import tempfile
from ctypes import (CDLL, Structure, byref, c_char, c_char_p, c_int, c_ubyte, c_uint, c_ulonglong,
                    c_void_p, create_string_buffer, sizeof)

from tap import BUILD, GPULSE, main, test

if "GPULSE_SIM" not in os.environ:
    with tempfile.TemporaryDirectory() as state:
        os.chmod(state, 0o700)
        status = subprocess.run([GPULSE, "sim", "exec", "-m", "h100x8", "--still", "--",
                                 sys.executable, __file__],
                                env=dict(os.environ, GPULSE_SIM_STATE=state, GPULSE_SIM_ROOT="1"),
                                check=False).returncode
    sys.exit(status)

SUCCESS, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 0, 2, 3, 4, 6
IN_USE, INSUFFICIENT_RESOURCES, VERSION_MISMATCH = 19, 23, 25
GRAPHICS, SM, MEM = 0, 1, 2
IDLE, BUSY = 7, 0  # GPUs of the machine


class PowerValue(Structure):
    _fields_ = [("version", c_uint), ("powerScope", c_ubyte), ("powerValueMw", c_uint)]


class ProfileInfo(Structure):
    _fields_ = [(n, c_uint) for n in
                ("version", "id", "isP2pSupported", "sliceCount", "instanceCount",
                 "multiprocessorCount", "copyEngineCount", "decoderCount", "encoderCount",
                 "jpegCount", "ofaCount")] + [("memorySizeMB", c_ulonglong), ("name", c_char * 96)]


class Placement(Structure):
    _fields_ = [("start", c_uint), ("size", c_uint)]


class InstanceInfo(Structure):
    _fields_ = [("device", c_void_p), ("id", c_uint), ("profileId", c_uint),
                ("placement", Placement)]


class GpmMetrics(Structure):
    _fields_ = [("version", c_uint), ("numMetrics", c_uint), ("samples", c_void_p * 2),
                ("metrics", c_ulonglong * (5 * 512))]


assert sizeof(PowerValue) == 12 and sizeof(ProfileInfo) == 152 and sizeof(InstanceInfo) == 24

nvml = CDLL("libnvidia-ml.so.1")


def call(name, *args):
    return getattr(nvml, name)(*args)


def check(name, *args):
    code = call(name, *args)
    assert code == SUCCESS, f"{name}: {code}"


def handle(index):
    device = c_void_p()
    check("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(device))
    return device


def number(name, device, *args):
    value = c_uint()
    check(name, device, *args, byref(value))
    return value.value


def mig_mode(device):
    current, pending = c_uint(), c_uint()
    check("nvmlDeviceGetMigMode", device, byref(current), byref(pending))
    return current.value, pending.value


def set_mig_mode(device, mode):
    activation = c_int(-1)
    check("nvmlDeviceSetMigMode", device, c_uint(mode), byref(activation))
    return activation.value


def create(device, profile):
    instance = c_void_p()
    code = call("nvmlDeviceCreateGpuInstance", device, c_uint(profile), byref(instance))
    return code, instance


def mig_uuids(device):
    found = []
    for index in range(number("nvmlDeviceGetMaxMigDeviceCount", device)):
        mig, uuid = c_void_p(), create_string_buffer(96)
        code = call("nvmlDeviceGetMigDeviceHandleByIndex", device, c_uint(index), byref(mig))
        assert code in (SUCCESS, NOT_FOUND), code
        if code == SUCCESS:
            check("nvmlDeviceGetUUID", mig, uuid, c_uint(96))
            found.append(uuid.value.decode())
    return found


@test
def a_limit_is_kept_within_the_range():
    check("nvmlInit_v2")
    device = handle(1)
    check("nvmlDeviceSetPowerManagementLimit", device, c_uint(350000))
    assert number("nvmlDeviceGetPowerManagementLimit", device) == 350000
    assert number("nvmlDeviceGetEnforcedPowerLimit", device) == 350000
    assert number("nvmlDeviceGetPowerManagementDefaultLimit", device) == 700000
    for wrong in (0, 199999, 700001, 4294967295):
        assert call("nvmlDeviceSetPowerManagementLimit", device, c_uint(wrong)) == INVALID_ARGUMENT
    assert number("nvmlDeviceGetPowerManagementLimit", device) == 350000
    assert number("nvmlDeviceGetPowerManagementLimit", handle(2)) == 700000, "another GPU"


@test
def the_second_version_of_the_limit_wants_its_version_word():
    device = handle(1)
    power = PowerValue(version=12 | 2 << 24, powerScope=0, powerValueMw=400000)
    check("nvmlDeviceSetPowerManagementLimit_v2", device, byref(power))
    assert number("nvmlDeviceGetPowerManagementLimit", device) == 400000
    power.version = 12 | 1 << 24
    assert call("nvmlDeviceSetPowerManagementLimit_v2", device, byref(power)) == VERSION_MISMATCH
    power = PowerValue(version=12 | 2 << 24, powerScope=1, powerValueMw=400000)
    assert call("nvmlDeviceSetPowerManagementLimit_v2", device, byref(power)) == NOT_SUPPORTED


@test
def without_the_right_nothing_is_changed():
    device = handle(1)
    nvml_calls = (("SetPowerManagementLimit", c_uint(300000)), ("SetPersistenceMode", c_int(0)),
                  ("SetComputeMode", c_int(3)), ("SetGpuLockedClocks", c_uint(900), c_uint(900)),
                  ("ResetGpuLockedClocks",), ("SetEccMode", c_int(0)),
                  ("ClearEccErrorCounts", c_int(0)), ("SetAccountingMode", c_int(1)),
                  ("SetMigMode", c_uint(1), byref(c_int())))
    # the simulated driver reads the environment of this process
    os.environ["GPULSE_SIM_ROOT"] = "0"
    for name, *args in nvml_calls:
        assert call("nvmlDevice" + name, device, *args) == NO_PERMISSION, name
    os.environ["GPULSE_SIM_ROOT"] = "1"
    assert number("nvmlDeviceGetPowerManagementLimit", device) == 400000
    assert mig_mode(device) == (0, 0)


@test
def modes_take_what_they_know():
    device = handle(IDLE)
    mode = c_int()
    check("nvmlDeviceSetComputeMode", device, c_int(3))
    check("nvmlDeviceGetComputeMode", device, byref(mode))
    assert mode.value == 3
    for wrong in (1, 4, -1):
        assert call("nvmlDeviceSetComputeMode", device, c_int(wrong)) == INVALID_ARGUMENT
    check("nvmlDeviceSetComputeMode", device, c_int(0))
    assert call("nvmlDeviceSetPersistenceMode", device, c_int(2)) == INVALID_ARGUMENT
    assert call("nvmlDeviceSetComputeMode", None, c_int(0)) == INVALID_ARGUMENT
    assert call("nvmlDeviceSetFanSpeed_v2", device, c_uint(0), c_uint(50)) == NOT_SUPPORTED


@test
def ecc_mode_is_pending():
    device = handle(IDLE)
    current, pending = c_int(), c_int()
    check("nvmlDeviceSetEccMode", device, c_int(0))
    check("nvmlDeviceGetEccMode", device, byref(current), byref(pending))
    assert (current.value, pending.value) == (1, 0)
    check("nvmlDeviceSetEccMode", device, c_int(1))


@test
def locked_clocks_are_kept_by_the_clock():
    device = handle(BUSY)
    before = number("nvmlDeviceGetClockInfo", device, c_int(SM))
    check("nvmlDeviceSetGpuLockedClocks", device, c_uint(600), c_uint(900))
    assert number("nvmlDeviceGetClockInfo", device, c_int(SM)) == 900 < before
    reasons = c_ulonglong()
    check("nvmlDeviceGetCurrentClocksThrottleReasons", device, byref(reasons))
    assert reasons.value & 2, hex(reasons.value)
    for low, high in ((900, 600), (0, 99999), (0xFFFFFF01, 900)):
        assert call("nvmlDeviceSetGpuLockedClocks", device, c_uint(low), c_uint(high)) == INVALID_ARGUMENT
    check("nvmlDeviceSetGpuLockedClocks", device, c_uint(0xFFFFFF02), c_uint(0xFFFFFF02))
    assert number("nvmlDeviceGetClockInfo", device, c_int(SM)) == before


@test
def mig_mode_of_a_gpu_in_use_stays_pending():
    device = handle(BUSY)
    assert set_mig_mode(device, 1) == IN_USE
    assert mig_mode(device) == (0, 1)
    assert set_mig_mode(device, 0) == SUCCESS
    assert mig_mode(device) == (0, 0)


@test
def instances_are_created_within_what_fits():
    device = handle(IDLE)
    code, _ = create(device, 9)
    assert code == NOT_SUPPORTED, "MIG mode is off"
    assert set_mig_mode(device, 1) == SUCCESS
    assert mig_mode(device) == (1, 1)
    info = ProfileInfo(version=152 | 2 << 24)
    check("nvmlDeviceGetGpuInstanceProfileInfoV", device, c_uint(2), byref(info))
    assert (info.id, info.sliceCount, info.name) == (9, 3, b"MIG 3g.40gb"), info.name
    info.version = 152
    assert call("nvmlDeviceGetGpuInstanceProfileInfoV", device, c_uint(2), byref(info)) == VERSION_MISMATCH
    assert number("nvmlDeviceGetGpuInstanceRemainingCapacity", device, c_uint(9)) == 2
    codes = [create(device, profile)[0] for profile in (9, 9, 19, 9)]
    assert codes == [SUCCESS, SUCCESS, INSUFFICIENT_RESOURCES, INSUFFICIENT_RESOURCES], codes
    assert mig_uuids(device) == [], "no compute instance yet"
    instances, count = (c_void_p * 2)(), c_uint()
    check("nvmlDeviceGetGpuInstances", device, c_uint(9), instances, byref(count))
    assert count.value == 2
    places = []
    for instance in instances:
        info = InstanceInfo()
        check("nvmlGpuInstanceGetInfo", c_void_p(instance), byref(info))
        assert info.device == device.value and info.profileId == 9
        places.append((info.placement.start, info.placement.size))
    assert sorted(places) == [(0, 4), (4, 4)], places
    for instance in instances:
        check("nvmlGpuInstanceDestroy", c_void_p(instance))


@test
def a_mig_device_comes_with_its_compute_instance_and_goes_with_it():
    device = handle(IDLE)
    code, instance = create(device, 9)
    assert code == SUCCESS
    parts = [c_void_p(), c_void_p()]
    check("nvmlGpuInstanceCreateComputeInstance", instance, c_uint(0), byref(parts[0]))  # 1 slice
    check("nvmlGpuInstanceCreateComputeInstance", instance, c_uint(1), byref(parts[1]))  # 2 slices
    assert call("nvmlGpuInstanceCreateComputeInstance", instance, c_uint(0),
                byref(c_void_p())) == INSUFFICIENT_RESOURCES
    uuids = mig_uuids(device)
    assert len(set(uuids)) == 2, uuids
    mig = c_void_p()
    check("nvmlDeviceGetHandleByUUID", c_char_p(uuids[0].encode()), byref(mig))
    name = create_string_buffer(96)
    check("nvmlDeviceGetName", mig, name, c_uint(96))
    assert name.value == b"NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb", name.value
    assert call("nvmlGpuInstanceDestroy", instance) == IN_USE
    check("nvmlComputeInstanceDestroy", parts[0])
    assert mig_uuids(device) == uuids[1:]
    assert call("nvmlDeviceGetName", mig, name, c_uint(96)) == INVALID_ARGUMENT, "a dead handle"
    assert call("nvmlComputeInstanceDestroy", parts[0]) == NOT_FOUND
    check("nvmlComputeInstanceDestroy", parts[1])
    check("nvmlGpuInstanceDestroy", instance)
    assert call("nvmlGpuInstanceDestroy", instance) == NOT_FOUND
    assert call("nvmlGpuInstanceDestroy", None) == INVALID_ARGUMENT


@test
def samples_of_instances_of_two_gpus_are_no_pair():
    samples, parts = [], []
    for device in (handle(IDLE), handle(IDLE - 1)):
        assert set_mig_mode(device, 1) == SUCCESS
        _, instance = create(device, 0)
        check("nvmlGpuInstanceCreateComputeInstance", instance, c_uint(4), byref(c_void_p()))
        mig, sample = c_void_p(), c_void_p()
        check("nvmlDeviceGetMigDeviceHandleByIndex", device, c_uint(0), byref(mig))
        check("nvmlGpmSampleAlloc", byref(sample))
        check("nvmlGpmSampleGet", mig, sample)
        samples.append(sample)
        parts.append(mig)
    metrics = GpmMetrics(version=1, samples=(c_void_p * 2)(*[s.value for s in samples]))
    assert call("nvmlGpmMetricsGet", byref(metrics)) == INVALID_ARGUMENT
    check("nvmlGpmSampleGet", parts[0], samples[1])
    check("nvmlGpmMetricsGet", byref(metrics))
    for sample in samples:
        check("nvmlGpmSampleFree", sample)
    for device in (handle(IDLE), handle(IDLE - 1)):
        assert set_mig_mode(device, 0) == SUCCESS
    assert set_mig_mode(handle(IDLE), 1) == SUCCESS


SET_ON_MIG = """
from ctypes import *
nvml = CDLL("libnvidia-ml.so.1")
gpu, mig, answer = c_void_p(), c_void_p(), c_uint()
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetHandleByIndex_v2(0, byref(gpu))
nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0, byref(mig))
print(nvml.nvmlDeviceClearEccErrorCounts(mig, 0), nvml.nvmlDeviceSetApplicationsClocks(mig, 1215, 1410),
      nvml.nvmlDeviceResetApplicationsClocks(mig), nvml.nvmlDeviceSetPersistenceMode(mig, 1),
      nvml.nvmlDeviceSetPowerManagementLimit(mig, 300000), nvml.nvmlDeviceSetMigMode(mig, 0, byref(answer)),
      nvml.nvmlDeviceSetComputeMode(mig, 2))
"""


@test
def a_mig_device_has_a_compute_mode_and_nothing_else_to_set():
    with open(os.path.join(BUILD, "sim/machines/a100-mig.json"), encoding="utf-8") as file:
        machine = json.load(file)
    device = machine["devices"][0]
    device["answers"]["TotalEccErrors"] = {"corrected.volatile": 7}
    device["mig"][0]["answers"] = device["answers"]  # as if it had all that its GPU has
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(machine, file)
        file.flush()
        codes = subprocess.run([GPULSE, "sim", "exec", "-m", file.name, "--", sys.executable, "-c",
                                SET_ON_MIG], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert codes.split() == [str(NOT_SUPPORTED)] * 6 + [str(SUCCESS)], codes


@test
def another_process_sees_what_was_made_here():
    device = handle(IDLE)
    _, instance = create(device, 0)
    check("nvmlGpuInstanceCreateComputeInstance", instance, c_uint(4), byref(c_void_p()))
    seen = subprocess.run([GPULSE, "--sim", os.environ["GPULSE_SIM"], "query", "uuid", "--mig",
                           "-i", str(IDLE), "-f", "csv", "--no-header"], stdout=subprocess.PIPE,
                          check=True).stdout.decode().split()
    assert seen[1:] == mig_uuids(device), seen
    assert set_mig_mode(device, 0) == SUCCESS
    assert mig_uuids(device) == []
    check("nvmlShutdown")


main()
