#!/usr/bin/env python3
"""libgpulse as others use it: what it exports, and a client in another language.

variants: release
"""
import re
import shutil
import subprocess
import sys
import tempfile

from library import DEST, HEADER, SIMULATED, SOURCE, declared, install, installed
from tap import GPULSE, good, main, run, test


@test
def exports_what_the_header_declares():
    symbols = good(run("nm", "-D", "--defined-only", installed("libgpulse.so.0.0.0")))
    exported = {name.split("@")[0] for name in re.findall(r" [A-Z] (\w\S*)", symbols)} - {"GPULSE_0"}
    assert exported == declared(), exported ^ declared()


@test
def the_header_compiles_in_c_and_cplusplus():
    cplusplus = "c++" if shutil.which("c++") else "clang++"
    for compiler, standard in (("cc", "c99"), ("cc", "c17"), (cplusplus, "c++11"), (cplusplus, "c++17")):
        language = "c" if compiler == "cc" else "c++"
        good(run(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror",
                 "-fsyntax-only", "-x", language, HEADER))


# ---- a client in another language, each in a process of its own ----

CLIENT = r'''
import ctypes as c, os, sys
from gpulse._library import Error, MetricInfo as Info, Options, Value, lib
lib.gpulse_sample_text.argtypes = [c.c_void_p, c.c_int, c.c_size_t]
lib.gpulse_sample_text.restype = c.c_char_p
error = Error()
def find(name):
    return lib.gpulse_metric_find(name.encode(), c.byref(error))
def open_session(expect=0, **given):
    session = c.c_void_p()
    options = Options(size=c.sizeof(Options), **given)
    r = lib.gpulse_open(c.byref(options), c.byref(session), c.byref(error))
    assert r == expect, (r, error.code, error.text)
    return session
def take(session, expect=0):
    sample = c.c_void_p()
    r = lib.gpulse_take(session, c.byref(sample), c.byref(error))
    assert r == expect, (r, error.code, error.text)
    return sample
def value(sample, name, row=0):
    v = Value()
    status = lib.gpulse_sample_get(sample, find(name), row, c.byref(v))
    assert status == v.status
    return v
'''


def client(code, **env):
    library = installed("libgpulse.so.0.0.0")
    program = DEST / "client.py"
    program.write_text(CLIENT + code)
    good(run(sys.executable, program, env=dict(SIMULATED, GPULSE_LIBRARY=str(library), PYTHONPATH=str(SOURCE / "python"),
                                               PYTHONDONTWRITEBYTECODE="1", **env)))


@test
def metrics_are_described():
    client('''
assert lib.gpulse_version().count(b".") == 2
info = Info()
names = set()
for metric in range(lib.gpulse_metric_count()):
    assert lib.gpulse_metric_describe(metric, c.byref(info)) == 0
    assert find(info.name.decode()) == metric and info.help
    names.add(info.name)
assert len(names) == lib.gpulse_metric_count() > 200
assert lib.gpulse_metric_describe(find("memory.used"), c.byref(info)) == 0
assert (info.unit, info.scope, info.type) == (b"bytes", 1, 0)
for metric in (-1, lib.gpulse_metric_count()):
    assert lib.gpulse_metric_describe(metric, c.byref(info)) == -2
assert find("memory.usd") == -2 and error.code == -2 and b"memory.used" in error.text, error.text
assert lib.gpulse_metric_find(b"nothing", None) == -2
assert [lib.gpulse_scope_find(n) for n in (b"hosts", b"gpus", b"processes", b"things")] == [0, 1, 2, -2]
''')


@test
def values_of_all_kinds():
    client('''
links = lib.gpulse_scope_find(b"links")
session = open_session(fields=b"index,name,memory.used,power.draw,fan.speed,pid,hostname,links.*")
sample = take(session)
assert lib.gpulse_sample_rows(sample, 0) == 1 and lib.gpulse_sample_rows(sample, 1) == 8
assert lib.gpulse_sample_rows(sample, 2) > 0 and lib.gpulse_sample_rows(sample, links) == 8 * 18
for scope in (-1, 99, lib.gpulse_scope_find(b"fans")):
    assert lib.gpulse_sample_rows(sample, scope) == 0, scope
assert abs(lib.gpulse_sample_time(sample) / 1e9 - __import__("time").time()) < 3600
assert not lib.gpulse_sample_is_partial(sample)
v = value(sample, "memory.used", 3)
assert v.type == 0 and v.status == 1 and v.u.i > 1 << 20 and v.reason == b"", (v.u.i, v.status)
v = value(sample, "power.draw", 7)
assert v.type == 1 and 50 < v.u.f < 800
assert value(sample, "name", 7).u.s == b"NVIDIA H100 80GB HBM3"
assert value(sample, "hostname").type == 2
v = value(sample, "fan.speed")
assert v.status == 3 and v.reason == b"not supported", (v.status, v.reason)
assert value(sample, "name", 8).status == 0 and value(sample, "temperature.gpu").status == 0
assert value(sample, "name", 8).reason == b"not queried"
number = c.c_double(-1)
lib.gpulse_sample_number.argtypes = [c.c_void_p, c.c_int, c.c_size_t, c.POINTER(c.c_double)]
lib.gpulse_sample_number.restype = c.c_bool
assert not lib.gpulse_sample_number(sample, find("name"), 0, c.byref(number)) and number.value == -1
assert lib.gpulse_sample_number(sample, find("power.draw"), 0, c.byref(number)) and number.value > 50
assert lib.gpulse_sample_text(sample, find("power.draw"), 0) is None
assert lib.gpulse_sample_text(sample, find("name"), 0).startswith(b"NVIDIA")
assert lib.gpulse_sample_gpu_of(sample, links, 8 * 18 - 1) == 7
assert lib.gpulse_sample_gpu_of(sample, 1, 5) == 5
assert lib.gpulse_sample_gpu_of(sample, 0, 0) == lib.gpulse_sample_gpu_of(sample, 1, 8) == -2
assert lib.gpulse_close(session)
assert value(sample, "name", 0).u.s.startswith(b"NVIDIA")  # a sample outlives its session
lib.gpulse_sample_free(sample)
lib.gpulse_sample_free(None)
assert lib.gpulse_close(None)
''')


@test
def options_of_other_versions():
    client('''
session = c.c_void_p()
assert lib.gpulse_open(None, c.byref(session), None) == 0
assert value(take(session), "power.draw").status == 1
assert lib.gpulse_close(session)
class Larger(c.Structure):
    _fields_ = [("known", Options), ("new", c.c_uint64)]
larger = Larger(Options(size=c.sizeof(Larger), fields=b"name"), 7)
assert lib.gpulse_open(c.byref(larger.known), c.byref(session), None) == 0
options = Options(size=Options.gpus.offset, fields=b"name", gpus=b"99")
assert lib.gpulse_open(c.byref(options), c.byref(session), c.byref(error)) == 0, error.text
assert lib.gpulse_sample_rows(take(session), 1) == 8
''')


@test
def selections_and_wrong_options():
    client('''
sample = take(open_session(fields=b"name", gpus=b"2-3"))
assert lib.gpulse_sample_rows(sample, 1) == 2
open_session(-3, gpus=b"9")
assert b"9" in error.text and error.code == -3
open_session(-2, gpus=b"3-1")
take(open_session(gpus=b"no such name"), -3)
assert b"no such name" in error.text
open_session(-2, fields=b"nme")
open_session(-2, sim=b"a100")
assert b"another machine" in error.text, error.text
open_session(0, sim=b"h100x8")
''')


@test
def mig_instances_are_rows():
    client('''
plain = take(open_session(fields=b"name,mig.profile"))
with_mig = take(open_session(fields=b"name,mig.profile", flags=1))
assert lib.gpulse_sample_rows(with_mig, 1) > lib.gpulse_sample_rows(plain, 1) > 0
assert any(value(with_mig, "mig.profile", r).status == 1
           for r in range(lib.gpulse_sample_rows(with_mig, 1)))
''', GPULSE_SIM="h100-mig")


@test
def suspended_processes_are_listed_for_any_fields():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        own = dict(GPULSE_SIM_STATE=state, XDG_STATE_HOME=state)
        job = subprocess.Popen([GPULSE, "sim", "load", "--mem", "1GiB"], env=dict(SIMULATED, **own),
                               stdout=subprocess.PIPE, text=True)
        try:
            line = job.stdout.readline()
            assert "holds" in line, line
            pid = line.split()[1]
            is_listed = f'''
sample = take(open_session(fields=b"pid"))
pids = [value(sample, "pid", r).u.i for r in range(lib.gpulse_sample_rows(sample, 2))]
assert {pid} in pids, pids
'''
            client(is_listed, **own)
            good(run(GPULSE, "suspend", pid, "--yes", env=dict(SIMULATED, **own)))
            client(is_listed, **own)
        finally:
            job.kill()
            job.communicate()


@test
def a_gpu_that_hangs_costs_only_its_own_values():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        own = dict(GPULSE_SIM_STATE=state)
        good(run(GPULSE, "sim", "fault", "-m", "h100x8", "--gpu", "2", "hang=10m",
                 env=dict(SIMULATED, **own)))
        client('''
session = open_session(fields=b"memory.used", timeout_ns=300 * 10**6)
sample = take(session)
assert lib.gpulse_sample_is_partial(sample)
assert [value(sample, "memory.used", r).status for r in range(8)] == [1, 1, 6, 1, 1, 1, 1, 1]
assert value(sample, "memory.used", 2).reason
assert not lib.gpulse_close(session)
os._exit(0)
''', **own)


@test
def a_driver_that_hangs():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        own = dict(GPULSE_SIM_STATE=state)
        good(run(GPULSE, "sim", "fault", "-m", "h100x8", "hang=10m:nvmlInit_v2", env=dict(SIMULATED, **own)))
        client('''
open_session(-7, timeout_ns=200 * 10**6)
open_session(-7, timeout_ns=200 * 10**6)
os._exit(0)
''', **own)


@test
def after_fork():
    client('''
session = open_session(fields=b"memory.used")
first = take(session)
child = os.fork()
if child == 0:
    take(session, -8)
    assert b"fork" in error.text
    assert lib.gpulse_close(session)
    again = open_session(fields=b"memory.used")
    assert value(take(again), "memory.used").u.i == value(first, "memory.used").u.i
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert value(take(session), "memory.used").status == 1
assert lib.gpulse_close(session)
''')


@test
def threads_with_sessions_of_their_own():
    client('''
import threading
failed = []
def work():
    try:
        for _ in range(5):
            session = open_session(fields=b"index,memory.used,pid")
            for _ in range(10):
                sample = take(session)
                assert lib.gpulse_sample_rows(sample, 1) == 8
                assert value(sample, "index", 7).u.i == 7
                lib.gpulse_sample_free(sample)
            assert lib.gpulse_close(session)
    except BaseException as e:
        failed.append(e)
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not failed, failed
''')


# What is not said in Python tests, which use the same functions.
ACTS = """
from gpulse._library import Event, Estimate, Model, Request, Setting, options
def act(function, expect=0, **given):
    request = Request(size=c.sizeof(Request), **given)
    grant = c.c_void_p()
    r = function(None, c.byref(request), c.byref(grant), c.byref(error))
    assert r == expect, (r, error.text)
    return grant
"""


@test
def reservations_in_threads_and_children():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        client(ACTS + """
import threading
grants = []
threads = [threading.Thread(target=lambda: grants.append(act(lib.gpulse_reserve))) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
uuids = {lib.gpulse_grant_uuid(g, 0) for g in grants}
assert len(uuids) == 2, uuids
assert lib.gpulse_grant_uuid(grants[0], 1) is None and lib.gpulse_grant_count(grants[0]) == 1
child = os.fork()
if child == 0:
    assert lib.gpulse_grant_keep(grants[0], c.byref(error)) == -8 and b"fork" in error.text
    lib.gpulse_release(grants[0])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert lib.gpulse_grant_keep(grants[0], c.byref(error)) == 0
files = [n for _, _, names in os.walk(os.environ["GPULSE_STATE_DIR"]) for n in names if n.startswith("held")]
assert len(files) == 2, list(os.walk(os.environ["GPULSE_STATE_DIR"]))
place = os.path.dirname([os.path.join(d, n) for d, _, names in os.walk(os.environ["GPULSE_STATE_DIR"]) for n in names][0])
def removed():
    for n in os.listdir(place):
        os.unlink(os.path.join(place, n))
removed()
for g in grants:
    assert lib.gpulse_grant_keep(g, c.byref(error)) == 0
assert len(os.listdir(place)) == 2  # they are there again
removed()
rival = act(lib.gpulse_reserve)  # the file of the other one is gone
for _ in range(2):
    results = sorted(lib.gpulse_grant_keep(g, c.byref(error)) for g in grants)
    assert results == [-9, 0], results
assert b"reserved the same GPU since" in error.text or results[0] == -9
lib.gpulse_release(rival)
assert [lib.gpulse_grant_keep(g, c.byref(error)) for g in grants] == [0, 0]
if os.getuid() == 0:
    removed()
    os.rename(os.environ["GPULSE_STATE_DIR"], os.environ["GPULSE_STATE_DIR"] + ".away")
    assert [lib.gpulse_grant_keep(grants[0], c.byref(error)) for _ in range(2)] == [-1, -1], error.text
    os.rename(os.environ["GPULSE_STATE_DIR"] + ".away", os.environ["GPULSE_STATE_DIR"])
    assert [lib.gpulse_grant_keep(g, c.byref(error)) for g in grants] == [0, 0], error.text
act(lib.gpulse_reserve, -9)
assert b"reserved" in error.text and b"--wait" not in error.text, error.text
act(lib.gpulse_reserve, -10, count=9)
act(lib.gpulse_pick, -2, count=65)
act(lib.gpulse_pick, -2, flags=1 << 20)
act(lib.gpulse_pick, -2, flags=2)
act(lib.gpulse_pick, -2, order=b"size")
lib.gpulse_release(grants.pop())
lib.gpulse_release(act(lib.gpulse_pick, wait_ns=2**64 - 1))
lib.gpulse_release(act(lib.gpulse_reserve, wait_ns=2**64 - 1))
assert not lib.gpulse_is_stuck()
for g in grants: lib.gpulse_release(g)
lib.gpulse_release(None)
lib.gpulse_release(act(lib.gpulse_reserve, count=2))
""", GPULSE_STATE_DIR=state)


@test
def events_by_poll():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        client(ACTS + """
import select, subprocess
events = c.c_void_p()
assert lib.gpulse_events_open(None, b"xd", 0, c.byref(events), c.byref(error)) == -2 and b"xid" in error.text
assert lib.gpulse_events_open(None, b"xid", 0, c.byref(events), c.byref(error)) == 0, error.text
fd = lib.gpulse_events_fd(events)
def next_event():
    event = Event(size=c.sizeof(Event))
    select.select([fd], [], [])
    r = lib.gpulse_events_next(events, c.byref(event), c.byref(error))
    assert r == 1, (r, error.text)
    return event
first = next_event()
assert first.kind == b"start" and first.gpu == -1, first.kind
assert select.select([fd], [], [], 0)[0] == []
assert lib.gpulse_events_next(events, c.byref(Event(size=c.sizeof(Event))), None) == 0
def xid(*faults):
    subprocess.run([os.environ["PROGRAM"], "sim", "fault", "-m", "h100x8", "--gpu", "3", *faults], check=True)
xid("xid=31")
got = next_event()
assert (got.kind, got.gpu, got.number) == (b"xid", 3, 31) and got.text, (got.kind, got.text)
child = os.fork()
if child == 0:
    assert lib.gpulse_events_next(events, c.byref(Event()), c.byref(error)) == -8
    assert lib.gpulse_events_close(events)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
# A second stream says when the driver has reported them; the first one is not read meanwhile.
xid("clear")
unread, events = events, c.c_void_p()
assert lib.gpulse_events_open(None, b"xid", 0, c.byref(events), c.byref(error)) == 0, error.text
fd = lib.gpulse_events_fd(events)
assert next_event().kind == b"start"
for _ in range(6):
    xid(*["xid=31"] * 50)
    for _ in range(50):
        event = next_event()
        assert event.number == 31, (event.kind, event.number, event.text)
    xid("clear")
assert lib.gpulse_events_close(events)
events, fd = unread, lib.gpulse_events_fd(unread)
taken = missed = 0
while taken + missed < 300:
    event = next_event()
    taken += event.kind == b"xid"
    missed += event.number if event.kind == b"missed" else 0
assert 254 <= taken <= 256 and 44 <= missed <= 46, (taken, missed)  # the stream may say that the driver is slow
assert lib.gpulse_events_close(events) and lib.gpulse_events_close(None)
""", GPULSE_SIM_STATE=state, PROGRAM=str(GPULSE))


@test
def structures_of_other_versions():
    client(ACTS + """
settings = c.c_void_p()
assert lib.gpulse_settings_read(c.byref(options(gpus="0")), c.byref(settings), c.byref(error)) == 0, error.text
small = Setting(size=Setting.unit.offset)
small.unit = b"mine"
assert lib.gpulse_settings_get(settings, 0, c.byref(small)) == 0
assert small.name == b"persistence-mode" and small.unit == b"mine" and small.size == Setting.unit.offset
assert lib.gpulse_settings_get(settings, lib.gpulse_settings_count(settings), c.byref(small)) == -2
lib.gpulse_settings_free(settings)
lib.gpulse_settings_free(None)
assert lib.gpulse_settings_change(None, b"power-limit=400", 4, c.byref(settings), c.byref(error)) == -2
assert b"flags" in error.text
class Less(c.Structure):
    _fields_ = Estimate._fields_[:2] + [("mine", c.c_int)]
less = Less(size=Less.mine.offset, mine=7)
model = Model(size=c.sizeof(Model), params=b"7B")
assert lib.gpulse_estimate_model(c.byref(model), c.cast(c.byref(less), c.POINTER(Estimate)), c.byref(error)) == 0
assert less.total > 7e9 and less.mine == 7 and less.size == Less.mine.offset
""")


@test
def logs_explained_by_several_threads():
    with tempfile.TemporaryDirectory(dir=DEST) as folder:
        client("""
import json, threading
def log(name, gib):
    path = os.path.join(os.environ["FOLDER"], name)
    with open(path, "w") as file:
        for line in range(20000):
            file.write(f"step {line} of {name}\\n")
            if line % 100 == 0:
                file.write(f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {gib}.00 GiB.\\n")
    return path
def explained(path):
    text = c.c_void_p()
    assert lib.gpulse_explain_log(path.encode(), c.byref(text), c.byref(error)) == 0
    document = json.loads(c.string_at(text.value))
    lib.gpulse_text_free(text)
    return document["incidents"]
paths = [log("a", 2), log("b", 3)]
alone = [explained(path) for path in paths]
assert all(alone) and alone[0] != alone[1]
failed = []
def work(path, expected):
    for _ in range(10):
        if explained(path) != expected:
            failed.append(path)
threads = [threading.Thread(target=work, args=pair) for pair in zip(paths, alone)]
for t in threads: t.start()
for t in threads: t.join()
assert not failed, failed
fifo = os.path.join(os.environ["FOLDER"], "fifo")
os.mkfifo(fifo)
text = c.c_void_p()
for path in (fifo, "/dev/zero", "/no/such/file"):
    assert lib.gpulse_explain_log(path.encode(), c.byref(text), c.byref(error)) == -1, path
""", FOLDER=folder)


@test
def a_change_that_hangs():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        own = dict(GPULSE_SIM_STATE=state, GPULSE_SIM_ROOT="1")
        good(run(GPULSE, "sim", "fault", "-m", "h100x8", "--gpu", "2", "hang=10m:nvmlDeviceSetPowerManagementLimit",
                 env=dict(SIMULATED, **own)))
        client(ACTS + """
import subprocess, time
settings = c.c_void_p()
given = options(gpus="1-2", timeout=1)
before = len(os.listdir("/proc/self/fd"))
assert lib.gpulse_settings_change(c.byref(given), b"power-limit=400", 0, c.byref(settings), c.byref(error)) < 0
rows = []
for row in range(lib.gpulse_settings_count(settings)):
    s = Setting(size=c.sizeof(Setting))
    assert lib.gpulse_settings_get(settings, row, c.byref(s)) == 0
    rows.append((s.gpu, s.outcome, s.value, s.wanted, s.after, lib.gpulse_settings_undo(settings, row)))
assert rows == [(1, 2, b"700", b"400", b"400", b"power-limit=700"), (2, 6, b"700", b"400", b"", b"power-limit=700")], rows
assert lib.gpulse_is_stuck()
assert len(os.listdir("/proc/self/fd")) > before
subprocess.run([os.environ["GPULSE"], "sim", "fault", "-m", "h100x8", "clear"], check=True)
while lib.gpulse_is_stuck():
    time.sleep(0.01)
assert len(os.listdir("/proc/self/fd")) == before
""", **own, GPULSE=str(GPULSE))


install()
try:
    main()
finally:
    shutil.rmtree(DEST)
