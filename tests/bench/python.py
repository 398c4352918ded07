#!/usr/bin/env python3
"""Compares the cost of the Python package with that of pynvml and gpustat, on one simulated driver.

Usage: tests/bench/python.py BUILD [--rounds N]

The other packages come from the Debian root that scripts/peers.py makes, and run outside it, with its Python; so does
gpulse when it is compared with them, in the same process. The rounds are interleaved, and the fastest of each counts,
as other programs only make it slower. Without such a root, only gpulse's own cost is shown.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
ROOT = Path(os.environ.get("GPULSE_ROOTS") or
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpulse/roots") / "peers"
PACKAGES = ROOT / "usr/lib/python3/dist-packages"

# What gpulse.gpus() reads, and how pynvml does.
NAMES = ("index,name,uuid,pci.bus_id,utilization.gpu,utilization.memory,memory.total,memory.used,memory.free,"
         "temperature.gpu,power.draw,power.limit,fan.speed,clocks.sm,clocks.mem,pstate").split(",")


def fastest(rounds, **functions):
    """The seconds of the fastest call of each function."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def compare(rounds):
    """In the Python of the Debian root: pynvml, gpustat and gpulse."""
    import pynvml as n

    import gpulse
    n.nvmlInit()
    handles = [n.nvmlDeviceGetHandleByIndex(index) for index in range(n.nvmlDeviceGetCount())]

    def by_pynvml():
        rows = []
        for index, h in enumerate(handles):
            rates, memory = n.nvmlDeviceGetUtilizationRates(h), n.nvmlDeviceGetMemoryInfo(h, n.nvmlMemory_v2)
            try:
                fan = n.nvmlDeviceGetFanSpeed(h)
            except n.NVMLError:
                fan = None
            rows.append((index, n.nvmlDeviceGetName(h), n.nvmlDeviceGetUUID(h), n.nvmlDeviceGetPciInfo(h).busId, rates.gpu,
                         rates.memory, memory.total, memory.used, memory.free, n.nvmlDeviceGetTemperature(h, 0),
                         n.nvmlDeviceGetPowerUsage(h) / 1000, n.nvmlDeviceGetPowerManagementLimit(h) / 1000, fan,
                         n.nvmlDeviceGetClockInfo(h, 1), n.nvmlDeviceGetClockInfo(h, 2),
                         f"P{n.nvmlDeviceGetPerformanceState(h)}"))
        return rows

    def by_items():
        return [tuple(gpu.get(name) for name in NAMES) for gpu in gpulse.gpus()]

    def by_attributes():
        return [(g.index, g.name, g.uuid, g.pci.bus_id, g.utilization.gpu, g.utilization.memory, g.memory.total, g.memory.used,
                 g.memory.free, g.temperature.gpu, g.power.draw, g.power.limit, g.get("fan.speed"),
                 g.clocks.current.sm, g.clocks.current.memory, g.pstate) for g in gpulse.gpus()]

    assert by_pynvml() == by_items() == by_attributes()
    calls = fastest(rounds, pynvml=by_pynvml, items=by_items, attributes=by_attributes)
    import gpustat  # after the measurement: it replaces functions of pynvml

    from gpulse.compat import gpustat as our_gpustat
    query = fastest(max(rounds // 100, 2), gpustat=gpustat.new_query, gpus=by_items, ours=our_gpustat.new_query)
    print(json.dumps({"calls": calls, "query": query}))


def watch(seconds):
    """The share of a core that a watch of eight GPUs at 10 Hz takes."""
    import gpulse
    samples = gpulse.watch(0.1)
    next(samples)
    count, start, used = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        for gpu in next(samples).gpus:
            assert gpu.memory.used >= 0 and gpu.utilization.gpu >= 0 and gpu.temperature.gpu >= 0
        count += 1
    print(json.dumps([(time.process_time() - used) / (time.perf_counter() - start), count]))


def machine(build):
    """Eight GPUs, without a simulated host: to keep its files up to date costs the observing process more than the GPUs."""
    made = json.loads((build / "sim/machines/h100.json").read_text())
    for key in ("host", "topology", "workload"):
        made.pop(key, None)
    first = made["devices"][0]
    made["devices"] = [dict(first, uuid=f"GPU-{i:08x}-0000-0000-0000-000000000000", processes=[],
                            pci=dict(first["pci"], bus_id=f"{i + 1:08X}:10:00.0")) for i in range(8)]
    return made


def cpu_of(command, env):
    """The CPU seconds of a program."""
    _, status, usage = os.wait4(subprocess.Popen(command, env=env).pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime


def line(text, value, limit, unit=""):
    print(f"{'ok  ' if value <= limit else 'MISS'} {text}: {value:.3g}{unit} (at most {limit:g}{unit})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--part", choices=("compare", "watch"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "compare":
        return compare(options.rounds)
    if options.part == "watch":
        return watch(5)
    build = options.build.resolve()
    with tempfile.TemporaryDirectory(prefix="gpulse-bench-") as state:
        file = Path(state) / "machine.json"
        file.write_text(json.dumps(machine(build)))
        env = dict(os.environ, GPULSE_SIM=str(file), GPULSE_SIM_STILL="1", GPULSE_SIM_STATE=state,
                   GPULSE_LIBRARY=str((build / "libgpulse.so.0").resolve()), PYTHONPATH=str(SOURCE / "python"))
        run = [sys.executable, __file__, str(build), "--part"]
        if (PACKAGES / "pynvml.py").exists():
            libraries = f"{build}/sim:{ROOT}/lib/x86_64-linux-gnu:{ROOT}/usr/lib/x86_64-linux-gnu"
            there = dict(env, PYTHONHOME=f"{ROOT}/usr", PYTHONPATH=f"{PACKAGES}:{SOURCE / 'python'}")
            found = json.loads(subprocess.run(
                [ROOT / "lib64/ld-linux-x86-64.so.2", "--library-path", libraries, ROOT / "usr/bin/python3.13", *run[1:],
                 "compare", "--rounds", str(options.rounds)], env=there, check=True, stdout=subprocess.PIPE).stdout)
            calls, query = found["calls"], found["query"]
            print("     fastest calls in µs: " + ", ".join(f"{k} {v * 1e6:.0f}" for k, v in {**calls, **query}.items()))
            line("gpulse.gpus() and 16 values each / pynvml, items", calls["items"] / calls["pynvml"], 1.2)
            line("gpulse.gpus() and 16 values each / pynvml, attributes", calls["attributes"] / calls["pynvml"], 1.2)
            line("gpulse.gpus() / gpustat.new_query()", query["gpus"] / query["gpustat"], 0.2)
            line("gpulse.compat.gpustat.new_query() / gpustat.new_query()", query["ours"] / query["gpustat"], 0.2)
        else:
            print("     no Debian root with pynvml and gpustat: see scripts/peers.py")
        subprocess.run([sys.executable, "-c", "import gpulse"], env=env, check=True)  # compiled from now on
        pairs = [[cpu_of([sys.executable, "-c", code], env) for code in ("pass", "import gpulse")] for _ in range(20)]
        bare, ours = map(min, zip(*pairs))
        line("import gpulse", 1000 * (ours - bare), 40, " ms of CPU time")
        share, count = min(json.loads(subprocess.run([*run, "watch"], env=env, check=True, stdout=subprocess.PIPE).stdout)
                           for _ in range(3))
        line(f"a watch of 8 GPUs at 10 Hz ({count} samples)", 100 * share, 1, " % of a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
