#!/usr/bin/env python3
"""The Python package, on the simulated driver: its values against those of the program.

variants: release
"""
import ast
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from tap import BUILD, GPULSE, Skip, good, main, run, test

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
STATE = tempfile.mkdtemp(prefix="gpulse-python-")
ENV = dict(os.environ, GPULSE_SIM="h100x8", GPULSE_SIM_STILL="1", GPULSE_SIM_STATE=STATE, PYTHONPATH=str(SOURCE / "python"),
           PYTHONDONTWRITEBYTECODE="1", GPULSE_LIBRARY=str((Path(BUILD) / "libgpulse.so.0").resolve()))


def python(code, **env):
    """What a program prints that imports gpulse."""
    return good(run(sys.executable, "-c", "import gpulse\n" + code, env=dict(ENV, **env)))


def fails(code, **env):
    r = run(sys.executable, "-c", "import gpulse\n" + code, env=dict(ENV, **env))
    assert r.returncode != 0, r
    return r.stderr


def queried(*words):
    return json.loads(good(run(GPULSE, "query", "--json", *words, env=ENV)))


@test
def gpus_have_the_values_of_the_program():
    fields = "index,name,uuid,memory.used,memory.total,temperature.gpu,power.draw,utilization.gpu"
    rows = queried(fields)["gpus"]
    text = python("import json; print(json.dumps([g.to_dict() for g in gpulse.gpus()]))")
    assert len(rows) == 8
    for ours, theirs in zip(json.loads(text), rows):
        for name in fields.split(","):
            assert ours[name] == theirs[name], (name, ours[name], theirs[name])


@test
def attributes_and_items():
    python("""
gpu = gpulse.gpus()[3]
assert gpu.index == gpu["index"] == 3 and gpu.memory.used == gpu["memory.used"] > 1 << 30
assert gpu.temperature.gpu == gpu["temperature.gpu"] and "used" in dir(gpu.memory) and "memory" in dir(gpu)
assert gpu.serial == "1650000000004"                      # not among the usual fields: read when asked for
assert repr(gpu) == "<GPU 3: NVIDIA H100 80GB HBM3>"
assert gpu.get("fan.speed") is None and gpu.get("fan.speed", -1) == -1
try:
    gpu.fan.speed
    assert False
except gpulse.Unavailable as missing:
    assert (missing.metric, missing.reason) == ("fan.speed", "not supported"), missing
values = gpu.to_dict()
assert values["fan.speed"] is None and values["reasons"]["fan.speed"] == "not supported"
for wrong in ("memory.usd", "pid"):
    try:
        gpu[wrong]
        assert False
    except KeyError:
        pass
try:
    gpu.memory.usd
    assert False
except AttributeError as error:
    assert "memory.usd" in str(error)
assert gpulse.host().driver_version.count(".") >= 1
metric = gpulse.metrics()["memory.used"]
assert (metric.unit, metric.type, metric.scope) == ("bytes", int, 1) and metric.help
""")


@test
def processes_know_their_gpu():
    rows = queried("--rows", "processes", "index,pid,user,used_memory")["processes"]
    text = python("""
import json
print(json.dumps([[p.gpu.index, p.pid, p.user, p.used_memory] for p in gpulse.processes()]))
assert [p.pid for g in gpulse.gpus() for p in g.processes] == [p.pid for p in gpulse.processes()]
""")
    wanted = [[r["index"], r["pid"], r["process.user"], r["used_gpu_memory"]] for r in rows]
    assert json.loads(text) == wanted and wanted, (text, wanted)


@test
def sessions_choose_fields_and_gpus():
    python("""
with gpulse.Session("name,mig.index", gpus="2-3") as session:
    sample = session.sample()
    assert [type(g) for g in sample.gpus] == [gpulse.GPU] * 2 and not sample.partial
    try:
        sample.gpus[0].memory.used
        assert False
    except gpulse.Unavailable as missing:
        assert "not read" in missing.reason
import time
assert abs(sample.time - time.time()) < 3600
assert sample.gpus[0].name.startswith("NVIDIA")           # outlives its session
for fields, gpus, kind in (("nme", None, "usage"), ("name", "12", "no-device")):
    try:
        gpulse.Session(fields, gpus=gpus)
        assert False
    except gpulse.GpulseError as error:
        assert error.kind == kind, (error.kind, error)
""")


@test
def what_was_not_asked_for_is_not_there():
    python("""
alone = gpulse.Session("pid").sample().processes[0]
assert list(alone.to_dict()) == ["pid"], alone.to_dict()
assert alone.get("process_name") is None and alone.get("user") is None
try:
    alone.process_name
    assert False
except gpulse.Unavailable as missing:
    assert "not read" in missing.reason, missing.reason
assert gpulse.Session("user").sample().processes[0].to_dict().keys() == {"pid", "process.user"}
""")


@test
def mig_instances():
    python("""
rows = gpulse.Session("index,mig.index,mig.profile", mig=True).sample().gpus
assert [type(r) for r in rows] == [gpulse.GPU] + [gpulse.MIG] * 4, rows
assert rows[1].mig.profile == "3g.40gb"
""", GPULSE_SIM="h100-mig")


@test
def watches():
    python("""
import asyncio
with gpulse.watch(0.01) as samples:
    times = [next(samples).time for _ in range(3)]
assert times[0] < times[1] < times[2]
async def some():
    found = []
    async for sample in gpulse.watch(0.01, "memory.used"):
        found.append(sample.gpus[7].memory.used)
        if len(found) == 3:
            return found
assert len(asyncio.run(some())) == 3
for wrong in (0, -1, float("nan")):
    try:
        gpulse.watch(wrong)
        assert False
    except ValueError:
        pass
""")


@test
def a_gpu_that_hangs():
    with tempfile.TemporaryDirectory(dir=STATE) as state:
        good(run(GPULSE, "sim", "fault", "-m", "h100x8", "--gpu", "2", "hang=10m",
                 env=dict(ENV, GPULSE_SIM_STATE=state)))
        python("""
import os
sample = gpulse.Session("memory.used", timeout=0.3).sample()
values = [gpu.get("memory.used") for gpu in sample.gpus]
assert sample.partial and values[2] is None and None not in values[:2] + values[3:], values
os._exit(0)
""", GPULSE_SIM_STATE=state)


@test
def after_fork():
    python("""
import os
before = [g.memory.used for g in gpulse.gpus()]
child = os.fork()
if child == 0:
    os._exit(0 if [g.memory.used for g in gpulse.gpus()] == before else 1)
assert os.waitpid(child, 0)[1] == 0
assert [g.memory.used for g in gpulse.gpus()] == before
""")


@test
def a_fork_while_another_thread_explains():
    """The child has none of the locks that the thread held. Not in tests/unit: the sanitizers' own ones stay locked."""
    python("""
import os, signal, threading
text = "RuntimeError: CUDA out of memory. Tried to allocate 20 GiB " + 3000 * "cudaMalloc " # the search takes a while
def explain_on():
    while True:
        gpulse.explain(text)
threading.Thread(target=explain_on, daemon=True).start()
for _ in range(60):
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        os._exit(0 if gpulse.explain(text)["known"] else 1)
    assert os.waitpid(child, 0)[1] == 0
""")


@test
def threads_share_a_session():
    python("""
import threading
session = gpulse.Session("memory.used,pid")
failed = []
def work():
    for _ in range(50):
        try:
            assert len(session.sample().gpus) == 8
        except gpulse.GpulseError as error:
            failed.append(str(error))
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not failed
closing = [threading.Thread(target=work) for _ in range(4)]
for t in closing: t.start()
session.close()
for t in closing: t.join()
assert set(failed) == {"the session is closed"}, failed
""")


@test
def threads():
    python("""
import threading
failed = []
def work():
    try:
        for _ in range(30):
            assert [g.index for g in gpulse.gpus()] == list(range(8))
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not failed, failed
""")


@test
def few_sessions_stay_open():
    python("""
import os, threading
gpu = gpulse.gpus()[0]
before = len(os.listdir("/proc/self/fd"))
names = [m.name for m in gpulse.metrics().values() if m.scope == 1]
for name in names[:60]:
    gpu.get(name)
del gpu
gpu = gpulse.gpus()[0]
from gpulse import _model
assert 2 <= len(_model._kept) <= 9 and _model.GPU_FIELDS in _model._kept
assert len(os.listdir("/proc/self/fd")) < before + 60
""")


@test
def bad_arguments_are_refused():
    python("""
import math
for timeout in (-1, 0, math.inf, math.nan, 2**64):
    try:
        gpulse.Session(timeout=timeout)
        assert False, timeout
    except ValueError as error:
        assert "bad timeout" in str(error)
gpulse.Session(timeout=60)
for batch in (-1, 2**64 + 1):
    try:
        gpulse.estimate("7B", batch=batch)
        assert False
    except ValueError as error:
        assert "bad batch" in str(error)
for call in (lambda: gpulse.explain_log("/nowhere/" + chr(0xdcff)), lambda: gpulse.Session(gpus="a" + "\u00e4" * 300),
             lambda: gpulse.events("\u00e4" * 300), lambda: gpulse.change({"power-limit": "a" + "\u00e4" * 300})):
    try:
        call()
        assert False
    except gpulse.GpulseError:
        pass
""")


@test
def what_is_missing_is_said():
    assert "set GPULSE_LIBRARY" in fails("", GPULSE_LIBRARY="/does/not/exist.so")
    text = fails("gpulse.gpus()", GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so")
    assert "GpulseError" in text and "/does/not/exist.so" in text, text
    python("""
try:
    gpulse.gpus()
    assert False
except gpulse.GpulseError as error:
    assert error.kind == "driver", error.kind
""", GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so")


def gputil_against_smi(machine, *more):
    """Row by row, what nvidia-smi prints and what GPUtil makes of it."""
    words = ("index,memory.total,memory.used,memory.free,utilization.gpu,temperature.gpu,uuid,name,serial,driver_version,"
             "display_active") + "".join("," + name for name in more)
    csv = good(run(GPULSE, "smi", f"--query-gpu={words}", "--format=csv,noheader,nounits",
                   env=dict(ENV, GPULSE_SIM=machine)))
    text = python(f"""
import gpulse.compat
gpulse.compat.install("GPUtil")
import GPUtil
for g in GPUtil.getGPUs():
    print(g.id, *(f"{{n:.0f}}" for n in (g.memoryTotal, g.memoryUsed, g.memoryFree, g.load * 100, g.temperature)),
          g.uuid, g.name, g.serial, g.driver, g.display_active, *(getattr(g, name) for name in {more}), sep=", ")
""", GPULSE_SIM=machine)
    assert text == csv and text.count("\n") == 8, (text, csv)


@test
def gputil_has_the_values_of_nvidia_smi():
    gputil_against_smi("h100x8,driver=535", "display_mode")
    gputil_against_smi("h100x8")  # rounds up, and calls display_mode deprecated


@test
def gputil_chooses_like_gputil():
    python("""
import math
from gpulse.compat import GPUtil
gpu = lambda id, load, used, total=80000: GPUtil.GPU(id, f"GPU-{id}", load, total, used, total - used, "", "", "", "", "", 40)
some = [gpu(0, 0.97, 70000), gpu(1, 0.0, 100), gpu(2, math.nan, 0), gpu(3, 0.5, 0), gpu(4, 0.1, 40000)]
assert GPUtil.getAvailability(some) == [0, 1, 0, 0, 0]
assert GPUtil.getAvailability(some, includeNan=True) == [0, 1, 1, 0, 0]
assert GPUtil.getAvailability(some, maxLoad=0) == [0] * 5
assert GPUtil.getAvailability(some, memoryFree=79950, includeNan=True) == [0, 0, 1, 0, 0]
assert GPUtil.getAvailability(some, 1, 1, excludeID=[1], excludeUUID=["GPU-4"]) == [1, 0, 0, 1, 0]
GPUtil.getGPUs = lambda: some
assert GPUtil.getAvailable("first", 9, 1, 1) == [0, 1, 3, 4] and GPUtil.getAvailable("last", 2, 1, 1) == [4, 3]
assert GPUtil.getAvailable("load", 9, 1, 1, includeNan=True) == [1, 4, 3, 0, 2]
assert GPUtil.getAvailable("memory", 9, 1, 1) == [3, 1, 4, 0]
assert sorted(GPUtil.getAvailable("random", 9, 1, 1)) == [0, 1, 3, 4]
assert GPUtil.getFirstAvailable() == [1]
try:
    GPUtil.getFirstAvailable(attempts=2, interval=0, maxLoad=0)
    assert False
except RuntimeError as error:
    assert str(error) == "Could not find an available GPU after 2 attempts with 0 seconds interval."
""")


@test
def gputil_prints_its_table():
    text = python("""
import math
from gpulse.compat import GPUtil
GPUtil.getGPUs = lambda: [GPUtil.GPU(i, "u", load, 100, used, 100 - used, "d", "n", "s", "Enabled", "Disabled", 58)
                          for i, load, used in ((0, 0.97, 87), (1, 0, 0), (2, math.nan, 0))]
GPUtil.showUtilization()
GPUtil.showUtilization(useOldCode=True)
""")
    assert text == """\
| ID | GPU  | MEM |
-------------------
|  0 |  97% | 87% |
|  1 |   0% |  0% |
|  2 | nan% |  0% |
 ID  GPU  MEM
--------------
  0  97%  87%
  1   0%   0%
  2 nan%   0%
""", text


@test
def the_programs_of_the_handbook_run():
    programs = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs/library.md").read_text(), re.M | re.S)
    assert len(programs) == 7, programs
    said = [good(run(sys.executable, "-c", program, env=dict(ENV, GPULSE_STATE_DIR=STATE, GPULSE_SIM_ROOT="1"))) for program in programs]
    assert said[0].count("H100") == 8 and "train.py" in said[0], said[0]
    assert said[1].startswith("None\nfan.speed not supported\n{"), said[1]
    assert said[2].count(", ") == 7, said[2]
    assert re.fullmatch(r"6,7\n6,7 \['GPU-[^ ]*', 'GPU-[^ ]*'\]\n", said[3]), said[3]
    assert said[4].startswith("start None watching 8 GPUs") and "\npower-limit 700 200.0 700.0\n" in said[4], said[4]
    assert "'xid.79'" in said[5] and "118 GiB ['weights'" in said[5], said[5]
    assert said[6] == "[6, 7]\n", said[6]


@test
def what_is_imported_later_is_there():
    """And a type checker, which reads the imports under TYPE_CHECKING, knows the same names."""
    python("""
import sys
assert "gpulse._measure" not in sys.modules and "dataclasses" not in sys.modules and "inspect" not in sys.modules
assert set(gpulse.__all__) <= set(dir(gpulse))
for name in gpulse.__all__:
    assert getattr(gpulse, name) is getattr(gpulse, name)
assert gpulse.measure.__module__ == "gpulse._measure"
try:
    gpulse.nothing
    assert False
except AttributeError as e:
    assert str(e) == "module 'gpulse' has no attribute 'nothing'", e
from gpulse import *
assert events is gpulse.events
""")
    checked = next(node for node in ast.parse((SOURCE / "python/gpulse/__init__.py").read_text()).body if isinstance(node, ast.If))
    names = json.loads(python("import json; print(json.dumps(gpulse._modules))"))
    assert {node.module: sorted(n.name for n in node.names) for node in checked.body} == {m: sorted(n) for m, n in names.items()}


@test
def what_still_exists_when_python_ends_is_left_to_the_kernel():
    r = run(sys.executable, "-c", """
import gpulse, gpulse._model as model
kept = [gpulse.Session("index"), gpulse.gpus(), gpulse.events(), gpulse.Session("name").sample()]
kept.append(kept)
model.kept = kept
""", env=ENV)
    assert r.returncode == 0 and r.stderr == "", r


@test
def types_are_right():
    if not shutil.which("mypy"):
        raise Skip("no mypy")
    good(run("mypy", "--strict", "--cache-dir", Path(STATE) / "mypy", SOURCE / "python/gpulse", env=ENV))


try:
    main()
finally:
    shutil.rmtree(STATE)
