#!/usr/bin/env python3
"""The Python package in programs that are not simple: signal handlers, threads that fork, pickles, wrong arguments.

variants: release
"""
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tap import BUILD, GPULSE, good, main, run, test

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
STATE = tempfile.mkdtemp(prefix="gpulse-robust-")
ENV = dict(os.environ, GPULSE_SIM="h100x8", GPULSE_SIM_STILL="1", GPULSE_SIM_STATE=STATE, PYTHONPATH=str(SOURCE / "python"),
           PYTHONDONTWRITEBYTECODE="1", GPULSE_LIBRARY=str((Path(BUILD) / "libgpulse.so.0").resolve()), GPULSE=GPULSE,
           GPULSE_STATE_DIR=STATE)
HEAD = """
import copy, gc, os, pickle, signal, sys, threading, time
import gpulse
def refused(kind, words, call, *args, **options):
    try:
        call(*args, **options)
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError((call, args, options))
"""


def python(code, **env):
    return good(run(sys.executable, "-c", HEAD + code, env=dict(ENV, **env)))


# ---- signal handlers ----

# A trace function runs the handler at each line of the package in turn, as a signal may at any time.
AT_EACH_LINE = """
def at_each_line(start, handler):
    '''start() once for each line that it executes in the package, and handler() in that line.'''
    line = 0
    while True:
        line += 1
        seen = [0]
        def trace(frame, event, argument):
            if "gpulse" not in frame.f_code.co_filename:
                return None
            if event == "line":
                seen[0] += 1
                if seen[0] == line:
                    sys.settrace(None)
                    handler()
            return trace
        sys.settrace(trace)
        try:
            start()
        finally:
            sys.settrace(None)
        if seen[0] < line:
            return line
"""


@test
def a_handler_may_close_what_it_interrupts():
    python(AT_EACH_LINE + """
session = None
def sample():
    global session
    session = gpulse.Session("index,memory.used")
    try:
        sample = session.sample()
        assert len(sample.gpus) == 8
    except gpulse.GpulseError as error:
        assert "closed" in str(error), error
assert at_each_line(sample, lambda: session and session.close()) > 20

events = None
def take():
    global events
    events = gpulse.events("xid", interval=60)
    try:
        assert events.poll(0) is None or events.poll(0) is None
    except ValueError as error:
        assert "closed" in str(error), error
assert at_each_line(take, lambda: events and events.close()) > 20

held = None
def keep():
    global held
    held = gpulse.reserve(set_mask=False)
    try:
        held.keep()
    except gpulse.GpulseError as error:
        assert "released" in str(error), error
    held.release()
assert at_each_line(keep, lambda: held and held.release()) > 20
assert gpulse.pick("all", gpus="6,7").gpus == "6,7" # nothing is left
""")


@test
def a_handler_may_ask_for_gpus():
    python(AT_EACH_LINE + """
from gpulse import _model
def ask():
    _model._kept.clear()
    assert len(gpulse.gpus()) == 8
assert at_each_line(ask, lambda: gpulse.gpus()[0].memory.used) > 20
""")


# ---- threads and fork() ----

@test
def threads_open_the_driver_at_the_same_time():
    python("""
from gpulse import _model
all_of_them = threading.Barrier(4, timeout=100) # one behind the other, they would never meet
class Slow(gpulse.Session):
    def _open(self):
        all_of_them.wait()
        super()._open()
_model.Session = Slow
failed = []
def ask():
    try:
        assert len(gpulse.gpus()) == 8
    except BaseException as problem:
        failed.append(problem)
threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed and len(_model._kept) == 1, failed
""")


@test
def threads_of_a_child_share_a_session():
    python("""
session = gpulse.Session("index,memory.used")
session.sample()
if os.fork() == 0:
    try:
        before = len(os.listdir("/proc/self/fd"))
        opened = []
        usual = session._open
        session._open = lambda: (opened.append(1), usual())
        start = threading.Barrier(8)
        failed = []
        def take():
            try:
                start.wait()
                for _ in range(20):
                    assert len(session.sample().gpus) == 8
            except BaseException as problem:
                failed.append(problem)
        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session.close()
        assert opened == [1] and not failed, (opened, failed)
        os._exit(0)
    except BaseException as problem:
        print(repr(problem), file=sys.stderr)
        os._exit(1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0 if hasattr(os, "waitstatus_to_exitcode") else os.wait()[1] == 0
""")


@test
def a_child_that_cannot_open_the_driver_may_close():
    python("""
session = gpulse.Session("index")
session.sample()
if os.fork() == 0:
    usual = session._open
    session._open = lambda: gpulse.Session("index", timeout=-1)
    for _ in range(2):
        refused(ValueError, "bad timeout", session.sample)
    session._open = usual
    assert len(session.sample().gpus) == 8
    session.close()
    session.close()
    os._exit(0)
assert os.wait()[1] == 0
""")


@test
def a_child_has_locks_of_its_own():
    python("""
from gpulse import _model, _torch
from gpulse.compat import pynvml
pynvml.nvmlInit()
taken, ends = threading.Event(), threading.Event()
def hold():
    with _model._lock, _torch._lock, pynvml._lock, session._lock:
        taken.set()
        ends.wait()
session = gpulse.Session("index")
thread = threading.Thread(target=hold)
thread.start()
taken.wait()
if os.fork() == 0:
    signal.alarm(100) # instead of a hang
    assert len(gpulse.gpus()) == len(session.sample().gpus) == 8
    with gpulse.measure():
        pass
    pynvml.nvmlInit()
    session.close()
    os._exit(0)
ends.set()
thread.join()
assert os.wait()[1] == 0
""")


# ---- memory ----

@test
def samples_do_not_wait_for_the_garbage_collector():
    python("""
import weakref
gc.disable()
gpu = gpulse.gpus()[0]
assert gpu.memory.used > 0 and gpu.ecc.mode.current == "Enabled" and gpu.memory is gpu.memory
sample = weakref.ref(gpu._sample)
del gpu
assert sample() is None
session = gpulse.Session("index,memory.used")
gone = weakref.ref(session)
assert [gpu.memory.used for gpu in session.sample().gpus]
del session
assert gone() is None
files = len(os.listdir("/proc/self/fd"))
gpu = gpulse.gpus()[0]
for name in list(gpulse.metrics())[:200]:
    gpu.get(name) if gpulse.metrics()[name].scope == 1 else None
assert len(os.listdir("/proc/self/fd")) < files + 20, os.listdir("/proc/self/fd")
""")


# ---- pickles and names ----

@test
def errors_and_measured_functions_are_pickled():
    python("""
missing = gpulse.Unavailable("fan.speed", "not supported")
for again in (pickle.loads(pickle.dumps(missing)), copy.copy(missing), copy.deepcopy(missing)):
    assert (again.metric, again.reason, str(again)) == ("fan.speed", "not supported", "fan.speed: not supported")
try:
    gpulse.change({"power-limit": 100000})
except gpulse.GpulseError as error:
    again = pickle.loads(pickle.dumps(error))
    assert (again.kind, str(again)) == (error.kind, str(error))
from gpulse._settings import ChangeFailed
from gpulse import _library
failed = ChangeFailed(_library.Error(code=-5, text=b"refused"), [1])
again = pickle.loads(pickle.dumps(failed))
assert (again.kind, str(again), again.settings) == ("permission", "refused", [1])
@gpulse.measured
def train():
    return 7
assert pickle.loads(pickle.dumps(train)) is train and train() == 7 and train.measurements.count == 1
""")


@test
def names_are_what_python_expects():
    python("""
gpu = gpulse.gpus()[0]
assert gpu.clocks.sm == gpu["clocks.sm"] == gpu.clocks.current.sm and gpu.clocks.mem == gpu["clocks.mem"]
assert not hasattr(gpu.fan, "speed") and getattr(gpu.fan, "speed", None) is None
assert copy.copy(gpu.memory).used == gpu.memory.used
assert "memory.used" in gpu and "fan.speed" not in gpu and "memory.usd" not in gpu and 5 not in gpu
refused(TypeError, "", iter, gpu)
refused(AttributeError, "did you mean", lambda: gpu.memory.usd)
refused(KeyError, "did you mean", lambda: gpu["memory.usd"])
refused(TypeError, "text", lambda: gpu[5])
refused(AttributeError, "pop", lambda: gpulse.metrics().pop("name"))
refused(ValueError, "NUL", lambda: gpu["memory.used\\0junk"])
""")


# ---- arguments ----

@test
def gpus_are_a_text_an_index_or_a_list():
    python("""
for gpus, indices in (("0", [0]), (0, [0]), ([0, "2-3"], [0, 2, 3]), ("6,7", [6, 7]), (None, list(range(8)))):
    assert [gpu.index for gpu in gpulse.Session("index", gpus=gpus).sample().gpus] == indices, gpus
    assert {setting.gpu for setting in gpulse.settings(gpus)} == set(indices), gpus
    rows = gpulse.change({"power-limit": 400}, gpus, check_only=True)
    assert [row.gpu for row in rows] == indices, gpus
    with gpulse.measure(gpus=gpus) as m:
        pass
    assert [gpu.index for gpu in m.gpus] == ([] if gpus is None else indices), gpus
assert gpulse.pick(gpus=6).gpus == gpulse.pick(gpus=[6]).gpus == "6"
for wrong in (True, [], 1.5, [None], {"0"}):
    for call in (lambda: gpulse.Session("index", gpus=wrong), lambda: gpulse.settings(wrong),
                 lambda: gpulse.change("power-limit=400", wrong), lambda: gpulse.measure(gpus=wrong),
                 lambda: gpulse.events(gpus=wrong), lambda: gpulse.pick(gpus=wrong), lambda: gpulse.watch(gpus=wrong)):
        refused(TypeError, "gpus takes", call)
for wrong in ("", []):
    refused((TypeError, gpulse.GpulseError), "", gpulse.Session, "index", gpus=wrong)
""")


@test
def wrong_arguments_are_named():
    python("""
for name in ("avoid", "prefer", "order"):
    refused(TypeError, f"{name} takes a text, not 5", gpulse.pick, **{name: 5})
refused(TypeError, "name takes a text, not 5", gpulse.reserve, name=5)
refused(TypeError, "most_load takes a whole number", gpulse.pick, most_load="5")
refused(TypeError, "wait takes a number of seconds", gpulse.pick, wait="1m")
refused(ValueError, "bad wait", gpulse.pick, wait=-1)
for count in (None, True, "2", 0, 1.5):
    refused(ValueError, "bad number of GPUs", gpulse.pick, count)
refused(TypeError, "a size is", gpulse.pick, memory=[1])
for interval in ("1s", None, True):
    refused(TypeError, "interval takes a number of seconds", gpulse.watch, interval)
for interval in (0, -1, float("inf"), float("nan")):
    refused(ValueError, "bad interval", gpulse.watch, interval)
    refused(ValueError, "bad interval", gpulse.measure, interval=interval)
    refused(ValueError, "bad interval", gpulse.events, interval=interval)
refused(TypeError, "timeout takes a number of seconds", gpulse.Session, timeout="3")
refused(TypeError, "fields takes", gpulse.watch, 1, [1])
assert [gpu.index for gpu in next(gpulse.watch(1, ["index", "name"])).gpus] == list(range(8))
refused(TypeError, "kinds takes", gpulse.events, 5)
refused(TypeError, "params takes", gpulse.estimate, 7)
refused(TypeError, "dtype takes", gpulse.estimate, "7B", dtype=16)
refused(TypeError, "batch takes", gpulse.estimate, "7B", batch="1")
refused(TypeError, "explain() takes", gpulse.explain, None)
assert gpulse.explain("first\\0CUDA out of memory") == gpulse.explain("first CUDA out of memory")
refused(TypeError, "changes are", gpulse.change, 300)
refused(TypeError, "measured() takes", gpulse.measured, 5)
refused(TypeError, "pid takes", gpulse.measure, pid="x")
refused(ValueError, "bad pid", gpulse.measure, pid=-1)
refused(TypeError, "frame() takes", gpulse.frame, [1])
refused(ValueError, "negative", gpulse.fit_batch, print, start=-1)
refused(gpulse.Unavailable, "has not begun", lambda: gpulse.measure().seconds)
from gpulse.integrations import Numbers
refused(TypeError, "fields takes", Numbers, "memory.used")
refused(gpulse.GpulseError, "memory.usd", Numbers(["memory.usd"]))
""")


@test
def a_pause_in_a_watch_loses_no_sample():
    python("""
import asyncio
async def late():
    taken = 0
    begin = time.monotonic()
    watch = gpulse.watch(0.2, "index")
    while taken < 5:
        try:
            await asyncio.wait_for(watch.__anext__(), 0.05)
            taken += 1
        except asyncio.TimeoutError:
            pass
    assert watch._next - time.monotonic() <= 0.2
    watch.close()
    assert [sample async for sample in watch] == []
    async with gpulse.watch(0.01, "index") as again:
        asyncio.get_running_loop().call_later(0.1, again.close)
        assert [sample async for sample in again]
asyncio.run(late())
refused(gpulse.GpulseError, "reads no processes", lambda: next(gpulse.watch(0.1)).processes)
refused(gpulse.GpulseError, "reads no processes", lambda: next(gpulse.watch(0.1)).gpus[0].processes)
for fields in ("pid", "index, process.*", "used_memory"):
    assert len(next(gpulse.watch(0.1, fields)).processes) == 6, fields
""")


@test
def a_fork_waits_for_each_import_of_the_package():
    python("""
import builtins
started, goes_on = threading.Event(), threading.Event()
usual = builtins.__import__
def slow(name, *rest):
    if name == "importlib" and threading.current_thread() is not threading.main_thread():
        started.set()
        goes_on.wait()
    return usual(name, *rest)
builtins.__import__ = slow
thread = threading.Thread(target=lambda: gpulse.fit_batch)
thread.start()
started.wait()
threading.Timer(0.3, goes_on.set).start()
child = os.fork() # waits until the import is over
if child == 0:
    gpulse.fit_batch
    os._exit(0 if goes_on.is_set() else 1)
thread.join()
assert os.wait()[1] == 0
""")


@test
def programs_run_unchanged():
    program = Path(STATE) / "program.py"
    program.write_text("import sys, GPUtil, pynvml\nprint(sys.argv[1], GPUtil.__name__, len(GPUtil.getGPUs()))\n")
    text = good(run(sys.executable, "-m", "gpulse.compat", program, "7", env=ENV))
    assert text == "7 gpulse.compat.GPUtil 8\n", text
    text = good(run(sys.executable, "-m", "gpulse.compat", "-m", "program", "7", env=dict(ENV, PYTHONPATH=ENV["PYTHONPATH"] + ":" + STATE)))
    assert text == "7 gpulse.compat.GPUtil 8\n", text
    r = run(sys.executable, "-m", "gpulse.compat", env=ENV)
    assert r.returncode == 1 and r.stderr.startswith("usage: "), r
    python("""
import types, warnings
import gpulse.compat
sys.modules["GPUtil"] = types.ModuleType("GPUtil")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    gpulse.compat.install("GPUtil")
assert "imported before" in str(seen[0].message)
""")


try:
    main()
finally:
    shutil.rmtree(STATE, ignore_errors=True)
