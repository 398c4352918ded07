#!/usr/bin/env python3
"""gpulse on driver libraries that were not made for it and that forgive nothing: tests/foreign/strict.c
in several variants, found as libnvidia-ml.so.1 through LD_LIBRARY_PATH. A mistake in how a driver is
called ends the process there; a value must be the library's, or absent.

variants: asan
"""
import json
import os
import re
import tempfile
from pathlib import Path

from tap import gpulse, good, main, run, side_by_side, test

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
SOURCE = ROOT / "tests/foreign/strict.c"
LISTS = ("links", "peers", "supported_clocks", "retired_pages", "accounted_apps", "fans", "encoder_sessions",
         "fbc_sessions", "mig_profiles", "samples", "gpu_instances", "compute_instances", "compute_profiles")
WITHOUT_HANDLE = re.compile(r"nvml(Init|Shutdown|System|ErrorString|GetVgpu|GetExcluded|GetBlacklist|Vgpu|Unit|"
                            r"EventSet|Gpm(SampleAlloc|SampleFree|MetricsGet)|GpuInstance|ComputeInstance|"
                            r"SetVgpu|Internal|DeviceGetHandle|DeviceGetCount|DeviceDiscover|DeviceModifyDrain|"
                            r"DeviceQueryDrain|DeviceRemove)")


def stubs(branch):
    """What else a driver of this branch exports: everything declared, by the branch that brought it."""
    declared = dict(reversed(pair) for pair in (
        *re.findall(r"SIM_UNPLAYED\((\d+), (\w+)\)", (ROOT / "sim/unplayed.def").read_text()),
        *re.findall(r"X\((\d+), [^,]+, (\w+),", (ROOT / "abi/nvml_functions.h").read_text())))
    assert len(declared) > 400, "the lists of functions were not understood"
    own = set(re.findall(r"^(?:EXPORT int |LIST\()(\w+)", SOURCE.read_text(), re.M))
    yield '#include <stdbool.h>\nint strict_unsupported(const char *, const void *, bool);'
    for name, since in declared.items():
        if int(since) <= branch and name not in own and name != "nvmlErrorString":
            of_device = "false" if WITHOUT_HANDLE.match(name) else "true"
            yield (f'__attribute__((visibility("default"))) int {name}(const void *handle)'
                   f' {{ return strict_unsupported("{name}", handle, {of_device}); }}')


class Library:
    """One variant, compiled; used as a context."""

    def __init__(self, version, *macros):
        self.branch = int(version.split(".")[0])
        self.lost_after = 0  # so many calls on it GPU 1 is lost; 0: it stays
        self.macros = [f'-DVERSION="{version}"', f"-DBRANCH={self.branch}", *(f"-D{m}" for m in macros)]

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        (path / "stubs.c").write_text("\n".join(stubs(self.branch)))
        good(run("cc", "-shared", "-fPIC", "-O1", "-fvisibility=hidden", *self.macros, SOURCE, path / "stubs.c",
                 "-o", path / "libnvidia-ml.so.1", "-lpthread"))
        return self

    def __exit__(self, *exc):
        self.folder.cleanup()

    def gpulse(self, *words, codes=(0,)):
        """The output of a run that did not make the library die."""
        env = dict(os.environ, LD_LIBRARY_PATH=self.folder.name, STRICT_LOST_AFTER=str(self.lost_after))
        env.pop("GPULSE_SIM", None)
        result = gpulse(*words, env=env)
        assert "strict library" not in result.stderr, result.stderr
        assert result.returncode in codes, f"{words}: {result.returncode}: {result.stderr}"
        return result.stdout

    def rows(self, fields, *words, kind="gpus", codes=(0,)):
        return json.loads(self.gpulse("query", fields, "-f", "json", *words, codes=codes))[kind]

    def everything(self, codes=(0,)):
        """All that gpulse can ask, once and in loops."""
        side_by_side(lambda *words: self.gpulse(*words, codes=codes), [
            ("events", "--kind", "all", "-n", "0.1", "--duration", "0.5"),
            ("query", "*", "-n", "0.15", "-c", "3"),
            ("status",), ("status", "-a"), ("set", "--show"),
            ("query", "*", "--mig"), ("query", "*", "--processes"), ("query", "*", "--host"),
            *(("query", "*", "--rows", rows) for rows in LISTS)])


def known(row):
    """The fields that have a value."""
    return {k: v for k, v in row.items() if v is not None and k != "reasons"}


@test
def a_driver_of_2021():
    with Library("470.256.02") as lib:
        lib.everything()
        row = lib.rows("name,memory.*,utilization.gpu,power.draw,temperature.gpu")[0]
        assert known(row)["memory.used"] == 3 << 30, row
        assert row["memory.reserved"] is None, row
        assert (row["utilization.gpu"], row["power.draw"], row["temperature.gpu"]) == (63, 71.25, 47), row
        processes = lib.rows("pid,used_gpu_memory", "--processes", kind="processes")
        assert [p["used_gpu_memory"] for p in processes] == [256 << 20] * 2, processes


@test
def the_oldest_driver():
    with Library("450.80.02") as lib:
        lib.everything()
        assert lib.rows("memory.total")[1]["memory.total"] == 8 << 30


@test
def process_entries_of_32_bytes():
    with Library("535.43.02", "WIDE=1") as lib:
        lib.everything()
        processes = lib.rows("pid,used_gpu_memory,process.gpu_instance_id", "--processes", kind="processes")
        # five entries of one pid each GPU are one process
        assert [p["used_gpu_memory"] for p in processes] == [256 << 20] * 2, processes
        assert all(p["process.gpu_instance_id"] is None for p in processes), processes


@test
def a_driver_of_today():
    with Library("610.57.04") as lib:
        lib.everything()
        row = lib.rows("memory.*")[0]
        assert row["memory.reserved"] == 1 << 29 and row["memory.used"] == 5 << 29, row


@test
def no_memory_info():
    with Library("580.126.09", "NO_MEMORY_INFO=1") as lib:
        lib.everything()
        row = lib.rows("memory.total,memory.used,memory.processes")[0]
        assert row["memory.total"] is None and row["memory.used"] is None, row
        assert row["memory.processes"] == 256 << 20, row


@test
def refused_version_words():
    with Library("580.126.09", "REFUSES_VERSIONS=1") as lib:
        lib.everything()
        row = lib.rows("memory.used,memory.reserved")[0]
        assert row["memory.used"] == 3 << 30 and row["memory.reserved"] is None, row


@test
def lists_that_grow():
    with Library("580.126.09", "GROWS=1") as lib:
        lib.everything()


@test
def a_gpu_that_is_lost_on_the_way():
    with Library("580.126.09") as lib:
        for lib.lost_after in (1, 2, 3, 5, 8, 13, 40, 90):
            lib.everything(codes=(0, 6))
            rows = lib.rows("index,status,temperature.gpu,utilization.gpu", codes=(0, 6))
            assert rows[0]["status"] == "ok" and rows[0]["temperature.gpu"] == 47, rows
            assert rows[1]["temperature.gpu"] in (None, 47), rows


@test
def garbage():
    with Library("540.4.0", "GARBAGE=1") as lib:
        lib.everything(codes=(0, 6))
        row = lib.rows("*")[0]
        assert row["name"].startswith("Orin (nvgpu)") and "\x1b" not in row["name"], row["name"]
        for field in ("temperature.gpu", "power.draw", "utilization.gpu", "utilization.memory", "temperature.memory"):
            assert row[field] is None, f"{field}: {row[field]}"
        assert lib.rows("pid", "--processes", kind="processes") == []


main()
