#!/usr/bin/env python3
"""What the Python package does beyond reading: choosing, reserving, signals, events, settings, explanations.

variants: release
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import BUILD, GPULSE, good, main, run, test

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
PLACE = Path(tempfile.mkdtemp(prefix="gpulse-acts-"))
ENV = dict(os.environ, GPULSE_SIM="h100x8", GPULSE_SIM_STILL="1", GPULSE_SIM_STATE=str(PLACE / "sim"),
           GPULSE_STATE_DIR=str(PLACE / "leases"), XDG_STATE_HOME=str(PLACE / "home"), PYTHONPATH=str(SOURCE / "python"),
           PYTHONDONTWRITEBYTECODE="1", GPULSE_LIBRARY=str((Path(BUILD) / "libgpulse.so.0").resolve()), GPULSE=str(GPULSE))
for folder in ("sim", "leases", "home"):
    (PLACE / folder).mkdir(mode=0o700)
HEAD = """
import json, os, re, signal, subprocess, sys, threading, time
import gpulse
def gp(*words):
    return subprocess.run([os.environ["GPULSE"], *words], text=True, capture_output=True)
def refused(kind, call, *args, **options):
    try:
        call(*args, **options)
    except gpulse.GpulseError as error:
        assert error.kind == kind, (error.kind, error)
        assert "--" not in re.sub("gpulse [a-z]+ --", "", str(error)), error
        return str(error)
    raise AssertionError("it was not refused")
"""


def python(code, cwd=None, **env):
    return good(run(sys.executable, "-c", HEAD + code, cwd=cwd, env=dict(ENV, **env)))


@test
def pick_as_the_command_does():
    python("""
assert gpulse.pick().mask == gp("pick").stdout.strip()
assert gpulse.pick(2, memory="20GiB").gpus == gp("pick", "-g", "2", "--mem", "20GiB").stdout.strip()
grant = gpulse.pick(at_most=8)
assert len(grant) == len(grant.uuids) == 2 and grant.gpus == grant.mask == "6,7", grant.mask
assert gpulse.pick("all", gpus="6-7", uuids=True).mask == ",".join(gpulse.pick("all", gpus="6-7").uuids)
assert gpulse.pick(order="index").gpus == "6" and gpulse.pick(avoid="7").gpus == "6" and gpulse.pick().gpus == "7"
assert gpulse.pick(share=True, memory=2**30, gpus="5").gpus == "5"
assert "reserved by llama-8b (mia)" in refused("busy", gpulse.pick, 8)
refused("never", gpulse.pick, 9)
refused("usage", gpulse.pick, order="size")
refused("usage", gpulse.pick, gpus="4-2")
for wrong in (dict(count=0), dict(count="two"), dict(count=2**32 + 1), dict(most_load=-1), dict(memory=-1)):
    try:
        gpulse.pick(**wrong)
        assert False
    except ValueError:
        pass
""")


@test
def sizes():
    python("""
from gpulse._reserve import size
assert [size(t) for t in ("20GiB", "20G", "20gb", "1.5k", "7", 7, None, "2 TiB", "3MB")] == [
    20 << 30, 20 << 30, 20 * 10**9, 1536, 7, 7, 0, 2 << 40, 3 * 10**6]
for wrong in ("", "GiB", "2 apples", "-1", -1, "1e99", "9e20", "5KiBB"):
    try:
        size(wrong)
        raise SystemExit(f"{wrong!r} is a size")
    except ValueError:
        pass
""")


@test
def reserve_sets_the_mask_and_keeps_others_out():
    python("""
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
with gpulse.reserve(2, name="training") as gpus:
    assert len(gpus) == 2 and os.environ["CUDA_VISIBLE_DEVICES"] == gpus.mask
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    held = [h for h in json.loads(gp("queue", "-f", "json").stdout)["leases"] if h["pid"] == os.getpid()]
    assert [(h["name"], h["uuids"], h["state"]) for h in held] == [("training", gpus.uuids, "held")], held
    gpus.keep()
    assert gp("pick", "-g", "2").stdout.strip() == gpus.mask # a child may use them
    assert "reserved" in refused("busy", gpulse.reserve)
assert "CUDA_VISIBLE_DEVICES" not in os.environ
assert gp("pick", "-g", "2").returncode == 0
with gpulse.reserve(set_mask=False) as one:
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    with gpulse.reserve(set_mask=False) as rest:
        assert not set(one.uuids) & set(rest.uuids)
        refused("busy", gpulse.reserve)
""")


@test
def a_reservation_without_a_name_lasts():
    python("""
import gc
gpulse.reserve(2)
gc.collect()
assert "reserved" in refused("busy", gpulse.reserve)
""")
    assert good(run(GPULSE, "pick", "-g", "2", env=ENV))


@test
def a_reservation_ends_with_its_process():
    python("""
child = subprocess.Popen([sys.executable, "-c", "import gpulse, sys; held = gpulse.reserve(2); print('held', flush=True); sys.stdin.read()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert child.stdout.readline() == "held\\n"
assert "reserved" in refused("busy", gpulse.pick)
child.kill()
child.wait()
assert len(gpulse.pick(2)) == 2
""")


@test
def waiting_ends_when_gpus_are_free_or_by_an_exception():
    python("""
reasons = []
with gpulse.reserve(2, set_mask=False) as all_free:
    refused("busy", gpulse.reserve, wait=1.5, on_wait=reasons.append)
    def waited():
        begin = time.monotonic()
        refused("busy", gpulse.reserve, wait=0.1)
        return time.monotonic() - begin
    assert min(waited() for _ in range(5)) < 2 # it looks every two seconds, but not beyond the end
    assert reasons and "reserved" in reasons[0], reasons
    def stop(why):
        raise KeyError(why)
    for function in (gpulse.reserve, gpulse.pick):
        try:
            function(wait=3600, on_wait=stop)
            assert False
        except KeyError:
            pass
    def interrupt(why):
        os.kill(os.getpid(), signal.SIGINT)
    try:
        gpulse.reserve(wait=3600, on_wait=interrupt)
        assert False
    except KeyboardInterrupt:
        pass
assert str(os.getpid()) not in [str(h["pid"]) for h in json.loads(gp("queue", "-f", "json").stdout)["leases"]]
# of the signal at any time, as of Ctrl-C, and not only in on_wait
held = gpulse.reserve(2, set_mask=False)
for function in (gpulse.reserve, gpulse.pick):
    stop = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    try:
        stop.start()
        function(wait=3600)
        assert False
    except KeyboardInterrupt:
        pass
    stop.join()
held.release()
held = gpulse.reserve(2, set_mask=False)
waited = gpulse.reserve(wait=3600, on_wait=lambda why: held.release(), set_mask=False)
assert len(waited) == 1
""")


@test
def the_mask_is_that_of_the_last_reservation():
    python("""
def mask():
    return os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("CUDA_DEVICE_ORDER")
os.environ.update(CUDA_DEVICE_ORDER="FASTEST_FIRST")
os.environ.pop("CUDA_VISIBLE_DEVICES", None)
for first_ends_first in (True, False):
    x = gpulse.reserve()
    y = gpulse.reserve(ignore_mask=True)
    assert mask() == (y.mask, "PCI_BUS_ID") and x.mask != y.mask
    one, other = (x, y) if first_ends_first else (y, x)
    one.release()
    assert mask() == (other.mask, "PCI_BUS_ID")
    other.release()
    assert mask() == (None, "FASTEST_FIRST"), mask()
with gpulse.reserve():
    os.environ["CUDA_VISIBLE_DEVICES"] = "5" # of somebody else
assert mask() == ("5", "FASTEST_FIRST")
""")


@test
def what_has_ended_is_not_used():
    python("""
import copy, pickle
held = gpulse.reserve(set_mask=False)
held.keep()
held.release()
held.release()
assert "has been released" in refused("usage", held.keep)
for _ in range(20):
    held = gpulse.reserve(set_mask=False)
    def keep():
        try:
            while True:
                held.keep()
        except gpulse.GpulseError as error:
            assert "has been released" in str(error), error
    keeper = threading.Thread(target=keep)
    keeper.start()
    held.release()
    keeper.join()
sample = gpulse.gpus()[0]._sample
for one in (sample, gpulse.Session("index"), gpulse.pick(), gpulse.events()):
    for how in (copy.copy, copy.deepcopy, pickle.dumps):
        try:
            how(one)
            assert False, one
        except TypeError as error:
            assert "cannot be copied" in str(error)
""")


@test
def closing_ends_those_who_wait_for_events():
    python("""
import asyncio
for _ in range(10):
    events = gpulse.events("xid", interval=60)
    files = len(os.listdir("/proc/self/fd"))
    seen = [[], []]
    def read(into):
        for event in events:
            into.append(event.kind)
    readers = [threading.Thread(target=read, args=(into,)) for into in seen]
    for reader in readers:
        reader.start()
    while not any(seen):
        time.sleep(0.01)
    events.close()
    for reader in readers:
        reader.join()
    assert sorted(seen) == [[], ["start"]], seen
    try:
        events.poll()
        assert False
    except ValueError as error:
        assert "closed" in str(error)
    assert list(events) == []
    assert len(os.listdir("/proc/self/fd")) < files

async def read_all():
    events = gpulse.events("xid", interval=60)
    seen = [[], []]
    async def read(into):
        async for event in events:
            into.append(event.kind)
    tasks = [asyncio.ensure_future(read(into)) for into in seen]
    while not any(seen):
        await asyncio.sleep(0.01)
    events.close()
    await asyncio.gather(*tasks)
    assert sorted(seen) == [[], ["start"]]
    await read([])
asyncio.run(read_all())
""")


@test
def too_late_for_the_mask():
    python("""
import types
cuda = types.SimpleNamespace(is_initialized=lambda: True)
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
assert "before the first use of CUDA" in refused("usage", gpulse.reserve)
gpulse.reserve(set_mask=False).release()
cuda.is_initialized = lambda: False
gpulse.reserve().release()
from gpulse import _reserve
assert not _reserve._has_open("/dev/zero")
with open("/dev/zero"):
    assert _reserve._has_open("/dev/zero")
""")


@test
def signals_reach_only_the_process_that_was_seen():
    job = subprocess.Popen([GPULSE, "sim", "load", "--mem", "1GiB"], env=ENV, stdout=subprocess.PIPE, text=True)
    try:
        assert "holds" in job.stdout.readline()
        python(f"""
found = [p for p in gpulse.processes() if p.pid == {job.pid}]
assert len(found) == 1
found[0].signal(0)
found[0].signal(signal.SIGTERM)
simulated = [p for p in gpulse.processes() if p.pid != {job.pid}][0]
refused("no-device", simulated.signal)
""")
        job.wait() # it has ended, by itself
    finally:
        if job.poll() is None:
            job.kill()
        job.communicate()


@test
def a_signal_for_a_process_that_has_ended():
    python("""
job = subprocess.Popen([os.environ["GPULSE"], "sim", "load", "--mem", "1GiB"], stdout=subprocess.PIPE, text=True)
assert "holds" in job.stdout.readline()
found = [p for p in gpulse.processes() if p.pid == job.pid]
job.kill()
job.communicate()
refused("failed", found[0].signal)
""")


@test
def events_as_iterators():
    python("""
import asyncio
def xid(gpu, number):
    assert gp("sim", "fault", "-m", "h100x8", "--gpu", str(gpu), f"xid={number}").returncode == 0
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
many = [os.dup(0) for _ in range(1100)]
with gpulse.events("xid") as events:
    assert events.fileno() > 1024
    first = next(events)
    assert first.kind == "start" and first.gpu is None and "8 GPUs" in first.text, first
    assert events.poll() is None
    xid(3, 79)
    event = next(events)
    assert (event.kind, event.gpu, event.number) == ("xid", 3, 79) and event.from_driver, event
    xid(5, 31)
    async def one():
        async for event in events:
            return event
    assert asyncio.run(one()).gpu == 5
try:
    events.poll()
    assert False
except ValueError:
    pass
assert "xid" in refused("usage", gpulse.events, "xd")
""")


@test
def settings_are_read_and_changed_and_restored():
    shown = json.loads(good(run(GPULSE, "set", "--show", "-f", "json", "-i", "2", env=ENV)))["gpus"][0]["controls"]
    rows = json.loads(python("""
import dataclasses
print(json.dumps([dataclasses.asdict(s) for s in gpulse.settings("2")]))"""))
    assert [r["name"] for r in rows] == list(shown)
    power = next(r for r in rows if r["name"] == "power-limit")
    theirs = shown["power-limit"]
    assert float(power["value"]) == theirs["value"] and (power["least"], power["most"]) == (theirs["min"], theirs["max"])
    assert all((r["reason"] is not None) >= (r["value"] is None) for r in rows), rows
    python("""
def limit():
    return [s.value for s in gpulse.settings("2") if s.name == "power-limit"][0]
before = limit()
checked = gpulse.change({"power-limit": 400}, "2", check_only=True)
assert [s.outcome for s in checked] == ["not tried"] and limit() == before
done = gpulse.change({"power-limit": 400, "persistence-mode": "on"}, "2")
assert {s.name: s.outcome for s in done}["power-limit"] == "done", done
power = [s for s in done if s.name == "power-limit"][0]
assert (power.value, power.wanted, power.after) == (before, "400", "400") and limit() == "400"
assert power.undo["power-limit"] == before
assert gpulse.change("power-limit=400", "2", check_only=True)[0].outcome == "same"
again = gpulse.change("power-limit=400", "2")
assert again[0].outcome == "same" and not again[0].undo
gpulse.change(power.undo, power.uuid)
assert limit() == before
assert "200" in refused("usage", gpulse.change, {"power-limit": 1}, "2")
refused("usage", gpulse.change, {"power-limt": 300})
refused("usage", gpulse.change, "")
refused("no-device", gpulse.change, {"power-limit": 400}, "99")
refused("usage", gpulse.change, {"ecc-counters": "volatile"}, "2")
""", GPULSE_SIM_ROOT="1")


@test
def changes_need_permission():
    python("""
refused("permission", gpulse.change, {"power-limit": 400}, "2")
""", GPULSE_SIM_ROOT="0")


@test
def explanations():
    log = PLACE / "train.log"
    log.write_text("step 1\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
                   "total capacity of 79.10 GiB of which 1.20 GiB is free.\n")
    python(f"""
known = gpulse.explain("xid 79")
assert known["schema"].startswith("gpulse.doctor.explain/") and "79" in json.dumps(known)
assert known == json.loads(gp("explain", "--no-look", "xid", "79", "-f", "json").stdout)
assert gpulse.explain(RuntimeError("CUDA error: no kernel image is available for execution on the device")) == json.loads(
    gp("explain", "--no-look", "CUDA error: no kernel image is available for execution on the device", "-f", "json").stdout)
refused("failed", gpulse.explain, "xid 99999")
assert gpulse.explain_log("{log}") == json.loads(gp("explain", "{log}", "-f", "json").stdout)
assert gpulse.explain_log("{log}")["incidents"]
refused("failed", gpulse.explain_log, "/no/such/file")
refused("failed", gpulse.explain_log, "-")
""")


@test
def logs_that_would_wait():
    python("""
os.mkdir("elsewhere")
os.chdir("elsewhere")
for name in ("-", "last"): # what others have put there
    os.mkfifo(name)
assert "neither a file nor a directory" in refused("failed", gpulse.explain_log, "-")
assert "no job" in refused("failed", gpulse.explain_log)
os.unlink("last")
with open("last", "w") as log:
    log.write("RuntimeError: CUDA out of memory\\n")
refused("failed", gpulse.explain_log)
assert gpulse.explain_log("./last")["incidents"]
try:
    gpulse.explain_log("/tmp/a/--x")
    assert False
except gpulse.GpulseError as error: # a name, and no option of a command
    assert "/tmp/a/--x" in str(error)
""", cwd=PLACE)


@test
def estimates():
    python("""
ours = gpulse.estimate("7B", dtype="bf16", optimizer="adamw", batch=4, seq=2048, layers=32, hidden=4096)
theirs = json.loads(gp("mem", "--params", "7B", "--dtype", "bf16", "--optimizer", "adamw", "--batch", "4", "--seq", "2048",
                       "--layers", "32", "--hidden", "4096", "-f", "json").stdout)
text = json.dumps(theirs)
assert f"{ours.total:.0f}" in text.replace(".0", ""), (ours.total, text[:400])
assert abs(sum(t.bytes for t in ours.terms) - ours.total) < 1 and ours.terms[0].name == "weights"
assert "params" in refused("usage", gpulse.estimate, "seven")
refused("usage", gpulse.estimate, "7B", dtype="fp3")
""")


try:
    main()
finally:
    shutil.rmtree(PLACE)
