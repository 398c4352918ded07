#!/usr/bin/env python3
"""Event sets of the simulated driver, used as monitors use them (and as they should not): plain
ctypes, with the struct written down here.

Called without arguments it starts itself again below `gpulse sim exec` and shows what that prints.

variants: release
"""
import os
import subprocess
import sys
import tempfile
import threading
import time
from ctypes import CDLL, Structure, byref, c_uint, c_ulonglong, c_void_p

from tap import GPULSE, main, test

SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, TIMEOUT, IS_LOST = 0, 1, 2, 3, 10, 15
UNKNOWN = 999
CORRECTED, UNCORRECTED, PSTATE, XID, CLOCK, RECOVERY = 0x1, 0x2, 0x4, 0x8, 0x10, 0x8000
POWER_SOURCE = 0x80  # no server reports it
NOT_AVAILABLE = 0xFFFFFFFF
MACHINE = "h100x2"


class EventData(Structure):
    _fields_ = [("device", c_void_p), ("type", c_ulonglong), ("data", c_ulonglong),
                ("gpu_instance", c_uint), ("compute_instance", c_uint)]


def launch():
    with tempfile.TemporaryDirectory() as state:
        env = dict(os.environ, GPULSE_SIM_STATE=state)
        command = [GPULSE, "sim", "exec", "-m", MACHINE, "--still", "--", sys.executable, __file__,
                   "client"]
        sys.exit(subprocess.run(command, env=env).returncode)


if sys.argv[1:] != ["client"]:
    launch()

nvml = CDLL("libnvidia-ml.so.1")


def call(name, *args):
    return getattr(nvml, name)(*args)


def check(name, *args):
    code = call(name, *args)
    assert code == SUCCESS, f"{name}: {code}"


def inject(*words):
    # gpulse and not this program sees to it: it must not load the library from here
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    subprocess.run([GPULSE, "sim", "fault", "-m", MACHINE, *words], env=env, check=True)


def handle(index):
    found = c_void_p()
    check("nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(found))
    return found


def new_set(*registrations):
    """A set with (GPU, types) registered."""
    made = c_void_p()
    check("nvmlEventSetCreate", byref(made))
    for gpu, types in registrations:
        check("nvmlDeviceRegisterEvents", handle(gpu), c_ulonglong(types), made)
    return made


def wait(event_set, timeout_ms=0, name="nvmlEventSetWait_v2"):
    """(return code, event)"""
    data = EventData(gpu_instance=77, compute_instance=77)
    return call(name, event_set, byref(data), c_uint(timeout_ms)), data


def free(event_set):
    check("nvmlEventSetFree", event_set)


@test
def nothing_works_before_init():
    made = c_void_p()
    assert call("nvmlEventSetCreate", byref(made)) == UNINITIALIZED
    check("nvmlInit_v2")


@test
def what_a_gpu_reports():
    types = c_ulonglong()
    check("nvmlDeviceGetSupportedEventTypes", handle(0), byref(types))
    assert types.value & XID and types.value & RECOVERY and not types.value & POWER_SOURCE


@test
def wrong_arguments():
    event_set = new_set()
    assert call("nvmlEventSetCreate", None) == INVALID_ARGUMENT
    assert call("nvmlEventSetFree", None) == INVALID_ARGUMENT
    assert call("nvmlEventSetFree", c_void_p(0x1234)) == INVALID_ARGUMENT
    assert call("nvmlDeviceRegisterEvents", handle(0), c_ulonglong(XID), None) == INVALID_ARGUMENT
    assert call("nvmlDeviceRegisterEvents", None, c_ulonglong(XID), event_set) == INVALID_ARGUMENT
    assert call("nvmlEventSetWait_v2", event_set, None, c_uint(0)) == INVALID_ARGUMENT
    assert call("nvmlEventSetWait_v2", None, byref(EventData()), c_uint(0)) == INVALID_ARGUMENT
    # types that do not exist, and some that this GPU does not report
    assert call("nvmlDeviceRegisterEvents", handle(0), c_ulonglong(1 << 40),
                event_set) == INVALID_ARGUMENT
    assert call("nvmlDeviceRegisterEvents", handle(0), c_ulonglong(XID | POWER_SOURCE),
                event_set) == NOT_SUPPORTED
    free(event_set)


@test
def a_freed_set_is_dead_even_if_its_place_is_used_again():
    first = new_set()
    free(first)
    second = new_set()
    assert first.value != second.value
    assert wait(first)[0] == INVALID_ARGUMENT
    assert call("nvmlEventSetFree", first) == INVALID_ARGUMENT
    free(second)


@test
def without_events_the_time_is_waited_out():
    event_set = new_set((0, XID))
    begin = time.monotonic()
    assert wait(event_set, 300)[0] == TIMEOUT
    assert time.monotonic() - begin >= 0.29
    assert wait(event_set, 0)[0] == TIMEOUT
    free(event_set)


@test
def an_event_with_all_that_it_tells():
    event_set = new_set((0, XID), (1, XID))
    inject("--gpu", "1", "xid=94:3/1")
    code, event = wait(event_set, 60000)
    assert code == SUCCESS
    assert (event.device, event.type, event.data) == (handle(1).value, XID, 94)
    assert (event.gpu_instance, event.compute_instance) == (3, 1)
    inject("--gpu", "0", "xid=13")
    code, event = wait(event_set, 60000)
    assert (code, event.device, event.data) == (SUCCESS, handle(0).value, 13)
    assert (event.gpu_instance, event.compute_instance) == (NOT_AVAILABLE, NOT_AVAILABLE)
    assert wait(event_set)[0] == TIMEOUT
    free(event_set)


@test
def the_older_wait_knows_a_shorter_struct():
    event_set = new_set((0, XID))
    inject("--gpu", "0", "xid=94:3/1")
    code, event = wait(event_set, 60000, "nvmlEventSetWait")
    assert (code, event.data) == (SUCCESS, 94)
    assert (event.gpu_instance, event.compute_instance) == (77, 77)
    free(event_set)


@test
def only_what_is_registered_and_only_from_then_on():
    inject("--gpu", "0", "xid=13")
    event_set = new_set((0, XID))
    inject("--gpu", "1", "xid=31")
    inject("--gpu", "0", "event=pstate")
    assert wait(event_set, 50)[0] == TIMEOUT
    # a second registration adds types, and hears nothing from before either
    check("nvmlDeviceRegisterEvents", handle(0), c_ulonglong(PSTATE), event_set)
    check("nvmlDeviceRegisterEvents", handle(1), c_ulonglong(XID), event_set)
    inject("--gpu", "1", "xid=43")
    inject("--gpu", "0", "event=pstate", "xid=45")
    seen = [wait(event_set, 60000)[1] for _ in range(3)]
    assert [(e.type, e.data) for e in seen] == [(XID, 43), (PSTATE, 0), (XID, 45)]
    assert wait(event_set)[0] == TIMEOUT
    free(event_set)


@test
def every_set_hears_every_event():
    sets = [new_set((0, XID)), new_set((0, XID | CLOCK))]
    inject("--gpu", "0", "xid=13", "event=clock")
    assert [wait(s, 60000)[1].data for s in sets] == [13, 13]
    assert wait(sets[0])[0] == TIMEOUT
    assert wait(sets[1], 60000)[1].type == CLOCK
    for event_set in sets:
        free(event_set)


@test
def a_changed_answer_is_there_before_its_event():
    event_set = new_set((0, PSTATE | CORRECTED))
    state = c_uint()
    inject("--gpu", "0", "set=PerformanceState=P8")
    assert wait(event_set, 60000)[1].type == PSTATE
    check("nvmlDeviceGetPerformanceState", handle(0), byref(state))
    assert state.value == 8
    inject("--gpu", "0", "set=PersistenceMode=Disabled")  # no driver reports that
    assert wait(event_set, 50)[0] == TIMEOUT
    inject("clear")
    check("nvmlDeviceGetPerformanceState", handle(0), byref(state))
    assert state.value != 8
    free(event_set)


@test
def a_waiter_is_woken():
    event_set = new_set((0, XID))
    seen = []

    def waiting():
        seen.append(wait(event_set, 600000))

    thread = threading.Thread(target=waiting)
    begin = time.monotonic()
    thread.start()
    # a set is used by one thread at a time
    while not (busy := call("nvmlDeviceRegisterEvents", handle(1), c_ulonglong(XID), event_set)):
        time.sleep(0.01)
    assert busy == UNKNOWN
    assert call("nvmlEventSetFree", event_set) == UNKNOWN
    inject("--gpu", "0", "xid=13")
    thread.join()
    assert seen[0][0] == SUCCESS and seen[0][1].data == 13
    assert time.monotonic() - begin < 500
    free(event_set)


@test
def more_events_than_are_kept():
    event_set = new_set((0, XID))
    inject("--gpu", "0", "xid=13*20000")
    inject("--gpu", "0", "xid=31")
    seen = []
    while (last := wait(event_set))[0] == SUCCESS:
        seen.append(last[1].data)
    assert len(seen) == 16384 and seen[-1] == 31, len(seen)
    free(event_set)


@test
def a_lost_gpu_ends_the_wait_behind_its_last_event():
    event_set = new_set((0, XID), (1, XID))
    others = new_set((0, XID))
    inject("--gpu", "1", "xid=79")
    code, event = wait(event_set, 60000)
    assert (code, event.data) == (SUCCESS, 79)
    begin = time.monotonic()
    assert wait(event_set, 600000)[0] == IS_LOST
    assert time.monotonic() - begin < 500  # at once: who does not pause spins
    assert wait(others)[0] == TIMEOUT
    inject("clear")
    free(event_set)
    free(others)


@test
def sets_die_with_the_session():
    event_set = new_set((0, XID))
    check("nvmlShutdown")
    assert wait(event_set)[0] == UNINITIALIZED
    check("nvmlInit_v2")
    assert wait(event_set)[0] == INVALID_ARGUMENT
    assert call("nvmlEventSetFree", event_set) == INVALID_ARGUMENT


@test
def sets_are_used_up_and_given_back():
    sets = []
    made = c_void_p()
    while call("nvmlEventSetCreate", byref(made)) == SUCCESS:
        sets.append(c_void_p(made.value))
        assert len(sets) < 1000
    assert len({s.value for s in sets}) == len(sets) >= 8
    for event_set in sets:
        free(event_set)
    free(new_set((0, XID)))


main()
