#!/usr/bin/env python3
"""gpulse.frame(): rows as data frames, with pandas itself, and with the part of polars' interface that it uses.

variants: release
"""
import shutil

from package import STATE, python
from tap import Skip, main, system_module, test

pandas = system_module("pandas")
POLARS = """
import sys, types
class DataFrame:
    def __init__(self, data):
        self.data = data
polars = sys.modules["polars"] = types.SimpleNamespace(DataFrame=DataFrame)
"""


def needs_pandas():
    if not pandas:
        raise Skip("no pandas")


@test
def gpus_and_processes():
    needs_pandas()
    python("""
import pandas
gpus = gpulse.gpus()
f = gpulse.frame(gpus)
assert type(f) is pandas.DataFrame and len(f) == 8 and list(f["index"]) == list(range(8))
assert list(f["memory.used"]) == [g.memory.used for g in gpus] and f["memory.used"].dtype == "int64"
assert list(f["name"]) == ["NVIDIA H100 80GB HBM3"] * 8
assert f["fan.speed"].isna().all() and list(f.columns)[0] == "time" and f["time"].nunique() == 1
assert "reasons" not in f.columns
p = gpulse.frame(gpulse.processes())
assert list(p["pid"]) == [q.pid for q in gpulse.processes()] and list(p["gpu"])[:2] == [0, 1], p
assert p.groupby("process.user")["used_gpu_memory"].sum()["mia"] > 0
""")


@test
def a_series():
    needs_pandas()
    python("""
samples = [s for _, s in zip(range(3), gpulse.watch(0.05, fields="index,utilization.gpu"))]
f = gpulse.frame(gpu for sample in samples for gpu in sample.gpus)
assert len(f) == 24 and f["time"].nunique() == 3 and list(f.columns) == ["time", "index", "utilization.gpu"], f
wide = f.pivot(index="time", columns="index", values="utilization.gpu")
assert wide.shape == (3, 8)
assert gpulse.frame([]).empty
""")


@test
def the_library_that_is_imported_or_named():
    python(POLARS + """
f = gpulse.frame(gpulse.gpus())
assert type(f) is DataFrame and f.data["index"] == list(range(8)) and f.data["fan.speed"] == [None] * 8
assert type(gpulse.frame(gpulse.gpus(), "polars")) is DataFrame
try:
    gpulse.frame([], "numpy")
    assert False
except ValueError as error:
    assert "'pandas' or 'polars'" in str(error)
sys.modules["polars"] = sys.modules["pandas"] = None # as if neither were installed
for library, words in ((None, "pandas or polars"), ("polars", "needs polars")):
    try:
        gpulse.frame([], library)
        assert False
    except ImportError as error:
        assert words in str(error), error
""")


try:
    main()
finally:
    shutil.rmtree(STATE)
