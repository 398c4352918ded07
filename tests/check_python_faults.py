#!/usr/bin/env python3
"""Every function of the Python package on bad days: a GPU or the whole driver hangs, there is no driver, no permission,
no library. Each call ends, with what is right, or with one clear exception.

variants: release
"""
import json
import shutil
import tempfile

from package import ENV, STATE, python
from tap import GPULSE, good, main, run, test

# What needs the driver: name, expression. `t`: keyword arguments with a timeout, where there is one.
CALLS = {
    "gpus": "len(gpulse.gpus())",
    "processes": "len(gpulse.processes())",
    "host": "gpulse.host()['host.name']",
    "watch": "len(next(iter(gpulse.watch(0.05, **t))).gpus)",
    "Session": "gpulse.Session('memory.used', **t).sample().partial",
    "frame": "gpulse.frame(gpulse.gpus(), 'polars')",
    "pick": "gpulse.pick(**t).gpus",
    "reserve": "reserved()",
    "events": "next(gpulse.events('xid', **t)).kind",
    "settings": "[s.reason is None for s in gpulse.settings('1-2', **t) if s.name == 'power-limit']",
    "change": "[s.outcome for s in gpulse.change('power-limit=400', '1-2', check_only=True, **t)]",
    "measure": "measured()",
    "fit_batch": "str(gpulse.fit_batch(lambda size: None, start=1, max=4, gpus='1'))[:40]",
}
# What does not.
WITHOUT = {
    "explain": "gpulse.explain('xid 79')['known'][0]['id']",
    "estimate": "len(gpulse.estimate('7B').terms)",
    "metrics": "gpulse.metrics()['memory.used'].unit",
    "mark": "gpulse.mark('there is no timeline')",
    "span": "gpulse.span('load')(len)('abc')",
    "step": "gpulse.step()",
}
HEAD = """
import json, sys, types
sys.modules["polars"] = types.SimpleNamespace(DataFrame=lambda data: len(data["index"]))
t = {"timeout": 1.0}
def reserved():
    with gpulse.reserve(set_mask=False, **t) as gpus:
        return gpus.gpus
def measured():
    with gpulse.measure(gpus="1") as m:
        pass
    return m.consumed
def outcome(expression):
    try:
        return eval(expression)
    except gpulse.GpulseError as error:
        return [error.kind, str(error)]
"""


def outcomes(calls, **env):
    """{name: what its expression gives, or [kind, text] of its exception}, all in one process, which ends normally."""
    with tempfile.TemporaryDirectory(dir=STATE) as leases:
        code = HEAD + f"print(json.dumps({{name: outcome(e) for name, e in {calls!r}.items()}}))"
        return json.loads(python(code, GPULSE_STATE_DIR=leases, **env))


def broken(*fault):
    """A place with this fault of the simulated machine."""
    state = tempfile.mkdtemp(dir=STATE)
    good(run(GPULSE, "sim", "fault", "-m", "h100x8", *fault, env=dict(ENV, GPULSE_SIM_STATE=state)))
    return {"GPULSE_SIM_STATE": state}


@test
def every_function_is_here():
    names = set(json.loads(python("import json; print(json.dumps([n for n in gpulse.__all__ if n[0].islower()]))")))
    # measured() is measure() for each call; explain_log() reads a file
    assert names - {"measured", "explain_log", "is_stuck"} == (set(CALLS) | set(WITHOUT)) - {"Session"}


@test
def on_a_good_day():
    said = outcomes(CALLS)
    assert isinstance(said.pop("fit_batch"), str)
    assert said == {"gpus": 8, "processes": 6, "host": "gpu07", "watch": 8, "Session": False, "frame": 8, "pick": "7",
                    "reserve": "7", "events": "start", "settings": [True, True], "change": ["not tried", "not tried"],
                    "measure": 0}, said
    assert outcomes(WITHOUT) == {"explain": "xid.79", "estimate": 5, "metrics": "bytes", "mark": None, "span": 3, "step": None}


@test
def one_gpu_hangs():
    said = outcomes(CALLS, **broken("--gpu", "2", "hang=10m"))
    assert isinstance(said.pop("fit_batch"), str)
    kind, text = said.pop("change")  # of a set of GPUs, all must respond
    assert kind == "timeout" and text.startswith("GPU 2: no response within 1.0 s"), text
    assert said == {"gpus": 8, "processes": 5, "host": "gpu07", "watch": 8, "Session": True, "frame": 8, "pick": "7",
                    "reserve": "7", "events": "start", "settings": [True, False], "measure": 0}, said


@test
def calls_that_have_hung_are_forgotten():
    fault = broken("--gpu", "3", "hang=10m")
    python(f"""
import subprocess, time
assert not gpulse.is_stuck()
count = 0
kind = "none yet"
while kind != "failed":
    try:
        assert len(gpulse.pick(timeout=0.1)) == 1
    except gpulse.GpulseError as error: # on a busy machine, all GPUs may be late
        kind, said = error.kind, str(error)
    count += 1
assert "64 calls of the driver hang" in said and count >= 65 and gpulse.is_stuck(), (count, said)
subprocess.run([{GPULSE!r}, "sim", "fault", "-m", "h100x8", "clear"], check=True)
while gpulse.is_stuck():
    time.sleep(0.1)
for _ in range(70):
    assert len(gpulse.pick()) == 1
""", **fault)


@test
def the_driver_hangs():
    said = outcomes(CALLS, **broken("hang=10m:nvmlInit_v2"))
    assert {name: value[0] for name, value in said.items()} == dict.fromkeys(CALLS, "timeout"), said


@test
def there_is_no_driver():
    said = outcomes(CALLS, GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so")
    for name, (kind, text) in said.items():
        assert kind == "driver" and "/does/not/exist.so" in text, (name, kind, text)
    assert outcomes(WITHOUT, GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so") == outcomes(WITHOUT)


@test
def no_permission():
    said = outcomes(CALLS, **broken("deny:nvmlInit_v2"))
    for name, (kind, text) in said.items():
        assert kind == "permission" and text, (name, kind, text)


@test
def no_library():
    r = run("python3", "-c", "import gpulse", env=dict(ENV, GPULSE_LIBRARY="/does/not/exist.so"))
    assert r.returncode == 1 and r.stderr.splitlines()[-1].startswith("ImportError: cannot load libgpulse: "), r
    assert "set GPULSE_LIBRARY" in r.stderr.splitlines()[-1], r


try:
    main()
finally:
    shutil.rmtree(STATE)
