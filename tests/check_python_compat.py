#!/usr/bin/env python3
"""Programs for pynvml, gpustat and nvitop, with our replacements: the answers are those of the real packages.

tests/compat/*.py are small programs with the calls of public ones, tests/compat/answers what they print with
the real packages. GPULSE_GOLDEN=write records the answers anew: the packages come from the Debian root that
scripts/peers.py makes. Where there is such a root, the real packages run as well, and must print what was recorded.

variants: release
"""
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import BUILD, GPULSE, Skip, good, main, run, test

HERE = Path(__file__).resolve().parent
SOURCE = Path(os.environ.get("GPULSE_SOURCE", HERE.parent))
BUILD = Path(BUILD).resolve()
STATE = tempfile.mkdtemp(prefix="gpulse-compat-")
ENV = dict(os.environ, GPULSE_SIM_STILL="1", GPULSE_SIM_STATE=STATE, PYTHONDONTWRITEBYTECODE="1", TERM="xterm-256color",
           LC_ALL="C.UTF-8")
OURS = dict(ENV, PYTHONPATH=str(SOURCE / "python"), GPULSE_LIBRARY=str((BUILD / "libgpulse.so.0").resolve()))
ROOT = Path(os.environ.get("GPULSE_ROOTS") or
            Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpulse/roots") / "peers"
PACKAGES = ROOT / "usr/lib/python3/dist-packages"
HEADER = ("# What tests/compat/{name}.py prints with {packages} of Debian 13,\n"
          "# on the simulated driver. Recorded by GPULSE_GOLDEN=write tests/check_python_compat.py.\n")

INSTALL = """import runpy, sys
import gpulse.compat
gpulse.compat.install()
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def with_ours(code, *arguments, **env):
    return run(sys.executable, "-c", code, *arguments, env=dict(OURS, **env))


def printed(code, machine="h100x8", **env):
    """What a program prints that has our modules."""
    return good(with_ours("import gpulse.compat\ngpulse.compat.install()\n" + code, GPULSE_SIM=machine, **env))


def has_root():
    return all((PACKAGES / name).exists() for name in ("pynvml.py", "gpustat", "nvitop"))


def with_real(program, **env):
    """The same with the packages of the Debian root, outside of it: with its loader, libraries and Python."""
    libraries = f"{BUILD}/sim:{ROOT}/lib/x86_64-linux-gnu:{ROOT}/usr/lib/x86_64-linux-gnu"
    return run(ROOT / "lib64/ld-linux-x86-64.so.2", "--library-path", libraries, ROOT / "usr/bin/python3.13", program,
               env=dict(ENV, PYTHONHOME=f"{ROOT}/usr", PYTHONPATH=str(PACKAGES), **env))


def versions():
    return ", ".join(sorted(re.sub(r"[.]\w+-info$", "", path.name).replace("_", "-")
                            for path in PACKAGES.iterdir()
                            if re.match(r"(nvidia_ml_py|gpustat|nvitop)-.*-info$", path.name)))


def with_processes(pids):
    """A machine of two GPUs that these processes use."""
    machine = json.loads((BUILD / "sim/machines/h100.json").read_text())
    for key in ("host", "topology", "workload"):
        machine.pop(key, None)
    machine["devices"] = [copy.deepcopy(machine["devices"][0]) for _ in range(2)]
    for i, gpu in enumerate(machine["devices"]):
        gpu["uuid"] = f"GPU-0000000{i}-0000-0000-0000-000000000000"
        gpu["pci"]["bus_id"] = f"0000000{i + 1}:10:00.0"
        gpu["processes"] = [{"pid": pid, "type": "C", "memory_bytes": (n + 1) << 30, "name": "sleep"}
                            for n, pid in enumerate(pids) if n % 2 == i]
    path = Path(STATE) / "processes.json"
    path.write_text(json.dumps(machine))
    return str(path)


class Sleepers:
    """Processes that do nothing."""

    def __enter__(self):
        self.processes = [subprocess.Popen(["sleep", "infinity"]) for _ in range(3)]
        return [process.pid for process in self.processes]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def answers_of(runner, path):
    """What a program prints, with P0, P1, … for its processes, and USER for who runs it."""
    machine = re.search(r"^# machine: (\S+)$", path.read_text(), re.M).group(1)
    with Sleepers() as pids:
        env = {"GPULSE_SIM": with_processes(pids) if machine == "processes" else machine,
               "COMPAT_PIDS": " ".join(map(str, pids))}
        text = good(runner(path, **env))
    for number, pid in enumerate(pids):
        text = re.sub(rf"\b{pid}\b", f"P{number}", text)
    user = good(run("id", "-un")).strip()
    return re.sub(rf"\b{re.escape(user)}\b", "USER", text)


def check(path):
    record = HERE / "compat/answers" / f"{path.stem}.txt"
    if os.environ.get("GPULSE_GOLDEN") == "write":
        if not has_root():
            raise Skip("there is no Debian root to record from; scripts/peers.py makes one")
        record.parent.mkdir(exist_ok=True)
        record.write_text(HEADER.format(name=path.stem, packages=versions()) + answers_of(with_real, path))
    wanted = record.read_text().split("\n", 2)[2]
    assert wanted, "nothing was recorded"
    ours = answers_of(lambda p, **env: with_ours(INSTALL, p, **env), path)
    assert ours == wanted, f"\n--- recorded\n{wanted}\n--- ours\n{ours}"
    if has_root():
        real = answers_of(with_real, path)
        assert real == wanted, f"\n--- recorded\n{wanted}\n--- the real package\n{real}"


for _path in sorted((HERE / "compat").glob("*.py")):
    def _test(path=_path):
        check(path)
    _test.__name__ = f"answers_of_{_path.stem}"
    test(_test)


@test
def constants_of_pynvml():
    program = Path(STATE) / "constants.py"
    program.write_text("import json, pynvml\nprint(json.dumps({k: v for k, v in vars(pynvml).items() if type(v) is int "
                       "and k.startswith(('NVML', 'nvml'))}, indent=0, sort_keys=True))\n")
    ours = json.loads(good(with_ours(INSTALL, program, GPULSE_SIM="h100x8")))
    record = HERE / "compat/answers/constants.json"
    if os.environ.get("GPULSE_GOLDEN") == "write" and has_root():
        real = json.loads(good(with_real(program, GPULSE_SIM="h100x8")))
        record.write_text(json.dumps({name: real[name] for name in ours if name in real}, indent=0, sort_keys=True) + "\n")
    wanted = json.loads(record.read_text())
    newer = {"NVML_DEVICE_ARCH_BLACKWELL": 10}  # than nvidia-ml-py 12.550
    assert ours == {**wanted, **newer}, {k: v for k, v in ours.items() if v != wanted.get(k)}


@test
def gpustat_on_our_pynvml():
    if not has_root():
        raise Skip("no Debian root with gpustat; scripts/peers.py makes one")
    program = Path(STATE) / "program.py"
    lines = ["import sys", f"sys.path.append({str(SOURCE / 'python')!r})", "import runpy",
             "sys.argv = ['gpustat', '-a', '--no-color', '--no-header']",
             f"runpy.run_path({str(ROOT / 'usr/bin/gpustat')!r}, run_name='__main__')"]
    with Sleepers() as pids:
        env = {"GPULSE_SIM": with_processes(pids), "GPULSE_LIBRARY": OURS["GPULSE_LIBRARY"]}
        texts = []
        for install in ([], ["import gpulse.compat", "gpulse.compat.install('pynvml')"]):
            program.write_text("\n".join(lines[:2] + install + lines[2:]))
            texts.append(good(with_real(program, **env)))
    assert texts[0] == texts[1] and texts[0].count("H100") == 2 and f"/{pids[2]}(" in texts[0], texts


@test
def errors_of_pynvml():
    printed("""
import pynvml as n
try:
    n.nvmlDeviceGetCount()
    assert False
except n.NVMLError_Uninitialized as error:
    assert (error.value, str(error)) == (1, "Uninitialized")
n.nvmlInit(); n.nvmlInitWithFlags(0); n.nvmlShutdown()
assert n.nvmlDeviceGetCount() == 8                        # opened twice, closed once
handle = n.nvmlDeviceGetHandleByIndex(0)
for call, value in ((lambda: n.nvmlDeviceGetFanSpeed(handle), 3), (lambda: n.nvmlDeviceGetHandleByIndex(8), 2),
                    (lambda: n.nvmlDeviceGetClockInfo(handle, 9), 2), (lambda: n.nvmlDeviceGetHandleByUUID("GPU-x"), 6),
                    (lambda: n.nvmlDeviceGetName(None), 2), (lambda: n.nvmlDeviceGetMemoryInfo(handle, version=1), 25),
                    (lambda: n.nvmlDeviceGetHandleByPciBusId("1:2:3.4.5.6"), 6)):
    try:
        call()
        assert False
    except n.NVMLError as error:
        assert error.value == value and type(error) is n.nvmlExceptionClass(value), (error, value)
assert type(n.NVMLError(3)) is n.NVMLError_NotSupported and n.NVMLError_Timeout().value == n.NVML_ERROR_TIMEOUT == 10
assert str(n.NVMLError(12345)) == "Unknown Error"
for missing in ("nvmlDeviceSetPowerManagementLimit", "nvmlEventSetCreate", "NVML_NO_SUCH", "other"):
    try:
        getattr(n, missing)
        assert False
    except AttributeError as error:
        assert missing in str(error)
n.nvmlShutdown()
try:
    n.nvmlDeviceGetName(handle)
    assert False
except n.NVMLError_Uninitialized:
    pass
""")


@test
def processes_with_drivers_that_confuse_the_bindings():
    for machine in ("desktop", "h100x8,driver=470"):  # 535.86; no list of the newest version
        rows = json.loads(good(run(GPULSE, "query", "--json", "--rows", "processes", "pid,used_gpu_memory,type",
                                   env=dict(ENV, GPULSE_SIM=machine))))["processes"]
        wanted = sorted((row["pid"], row["used_gpu_memory"]) for row in rows if "C" in row["process.type"])
        text = printed("""
import pynvml as n
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
print(sorted((p.pid, p.usedGpuMemory) for h in handles for p in n.nvmlDeviceGetComputeRunningProcesses(h)))
""", machine)
        assert text.strip() == str(wanted) and len(wanted) >= 2, (text, wanted)


@test
def handles_of_pynvml():
    printed("""
import pynvml as n
n.nvmlInit()
handle = n.nvmlDeviceGetHandleByIndex(5)
uuid, pci = n.nvmlDeviceGetUUID(handle), n.nvmlDeviceGetPciInfo(handle)
assert n.nvmlDeviceGetHandleByUUID(uuid) == n.nvmlDeviceGetHandleByUUID(uuid.encode()) == handle
for bus_id in (pci.busId, pci.busIdLegacy, pci.busId.encode(), pci.busId.lower(), pci.busId[9:]):
    assert n.nvmlDeviceGetHandleByPciBusId(bus_id) == handle, bus_id
assert n.nvmlDeviceGetHandleBySerial(n.nvmlDeviceGetSerial(handle)) == handle and n.nvmlDeviceGetIndex(handle) == 5
assert {handle: 1}[n.nvmlDeviceGetHandleByIndex(5)] == 1
""")


@test
def drivers_that_fail():
    for fault, value in (("unloaded", 9), ("mismatch", 18), ("deny", 4)):
        with tempfile.TemporaryDirectory(dir=STATE) as state:
            good(run(GPULSE, "sim", "fault", "-m", "h100x2", fault, env=dict(ENV, GPULSE_SIM_STATE=state)))
            printed(f"""
import gpustat, nvitop, pynvml
for call in (pynvml.nvmlInit, gpustat.new_query, nvitop.Device.all):
    try:
        call()
        assert False
    except pynvml.NVMLError as error:
        assert error.value == {value}, error
""", "h100x2", GPULSE_SIM_STATE=state)


@test
def no_gpu():
    with tempfile.TemporaryDirectory(dir=STATE) as state:
        good(run(GPULSE, "sim", "fault", "-m", "h100x2", "nogpu", env=dict(ENV, GPULSE_SIM_STATE=state)))
        text = printed("""
import gpustat, nvitop, pynvml
pynvml.nvmlInit()
assert pynvml.nvmlDeviceGetCount() == nvitop.Device.count() == gpustat.gpu_count() == len(gpustat.new_query()) == 0
gpustat.new_query().print_formatted(show_header=False)
""", "h100x2", GPULSE_SIM_STATE=state)
        assert text == "(No GPUs are available)\n", text


@test
def without_a_driver():
    printed("""
import gpustat, nvitop, pynvml
try:
    pynvml.nvmlInit()
    assert False
except pynvml.NVMLError_LibraryNotFound as error:
    assert str(error) == "NVML Shared Library Not Found"
assert gpustat.gpu_count() == 0 and not gpustat.is_available()
try:
    nvitop.Device.all()
    assert False
except nvitop.NVMLError:
    pass
""", "", GPULSE_NVML="/does/not/exist.so")


@test
def a_gpu_that_hangs():
    with tempfile.TemporaryDirectory(dir=STATE) as state:
        fault = dict(ENV, GPULSE_SIM_STATE=state)
        good(run(GPULSE, "sim", "fault", "-m", "h100x8", "--gpu", "2", "hang=10m", env=fault))
        printed("""
import os
import gpustat, nvitop, pynvml as n
n.nvmlInit()
for index in range(8):
    try:
        handle = n.nvmlDeviceGetHandleByIndex(index)
        assert n.nvmlDeviceGetMemoryInfo(handle).total > 0 and index != 2
    except n.NVMLError_Timeout:
        assert index == 2
stats = gpustat.new_query()
assert [gpu.available for gpu in stats] == [True] * 2 + [False] + [True] * 5 and "((" in stats[2].name
assert stats[3].memory_total == 81559 and stats[2].jsonify()["processes"] is None
free = [device.memory_free() for device in nvitop.Device.all()]
assert free[2] is nvitop.NA and nvitop.NA not in free[:2] + free[3:]
os._exit(0)
""", GPULSE_SIM_STATE=state)


@test
def a_gpu_that_hangs_later():
    with tempfile.TemporaryDirectory(dir=STATE) as state:
        printed(f"""
import os, subprocess, time
import pynvml as n
n.nvmlInit()
handles = [n.nvmlDeviceGetHandleByIndex(index) for index in range(8)]
assert all(n.nvmlDeviceGetMemoryInfo(handle).used >= 0 for handle in handles)
subprocess.run([{str(GPULSE)!r}, "sim", "fault", "-m", "h100x8", "--gpu", "2", "hang=10m"], check=True)
for _ in range(2):
    try:
        n.nvmlDeviceGetMemoryInfo(handles[2])
        assert False
    except n.NVMLError_Timeout:
        pass
assert n.nvmlDeviceGetMemoryInfo(handles[3]).used >= 0
os._exit(0)
""", GPULSE_SIM_STATE=state)


@test
def threads_and_forks():
    printed("""
import os, threading
import pynvml as n
n.nvmlInit()
handle = n.nvmlDeviceGetHandleByIndex(0)
wanted, failed = n.nvmlDeviceGetMemoryInfo(handle).used, []
def work():
    try:
        for _ in range(50):
            assert n.nvmlDeviceGetMemoryInfo(handle).used == wanted
            assert n.nvmlDeviceGetUtilizationRates(handle).gpu == 97
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
child = os.fork()
if child == 0:
    os._exit(0 if n.nvmlDeviceGetMemoryInfo(handle).used == wanted else 1)
for thread in threads: thread.join()
assert not failed, failed
assert os.waitpid(child, 0)[1] == 0
""")


@test
def closed_while_others_read():
    printed("""
import threading
import gpulse
import pynvml as n
session = gpulse.Session("name")
session.close()
try:
    session.sample()
    assert False
except gpulse.GpulseError as error:
    assert error.kind == "usage", error.kind
n.nvmlInit()
handle = n.nvmlDeviceGetHandleByIndex(0)
done, failed = threading.Event(), []
def work():
    while not done.is_set():
        try:
            assert n.nvmlDeviceGetMemoryInfo(handle).total > 0
        except n.NVMLError_Uninitialized:
            pass
        except BaseException as error:
            failed.append(error)
            return
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(30):
    n.nvmlShutdown()
    n.nvmlInit()
done.set()
for thread in threads: thread.join()
assert not failed, failed
""")


@test
def rates_of_pcie():
    text = printed("""
import pynvml as n
n.nvmlInit()
handle = n.nvmlDeviceGetHandleByIndex(0)
print(n.nvmlDeviceGetPcieThroughput(handle, n.NVML_PCIE_UTIL_TX_BYTES),
      n.nvmlDeviceGetPcieThroughput(handle, n.NVML_PCIE_UTIL_RX_BYTES))
""", GPULSE_SIM_STILL="")
    sent, received = map(int, text.split())
    assert 1000 < sent < 64e6 and 1000 < received < 64e6, text  # KB a second


@test
def the_collector_of_nvitop():
    with Sleepers() as pids:
        printed(f"""
import os, time
from nvitop import Device, HostProcess, ResourceMetricCollector, take_snapshots
collector = ResourceMetricCollector(root_pids={{{os.getpid()}}}, interval=0.02)
with collector("train"):
    for _ in range(3):
        time.sleep(0.03)
        metrics = collector.collect()
for pid, gpu in (({pids[0]}, 0), ({pids[1]}, 1), ({pids[2]}, 0)):
    assert metrics[f"train/pid:{{pid}}/gpu:{{gpu}}/gpu_memory (MiB)/max"] >= 1024
    assert metrics[f"train/pid:{{pid}}/host/host_memory (MiB)/last"] > 0
assert metrics["train/duration (s)"] > 0.08 and 0 <= metrics["train/host/memory_percent (%)/mean"] <= 100
other = ResourceMetricCollector(root_pids={{os.getpid()}})
with other("x"):
    assert not [key for key in other.collect() if "pid:" in key]
seen = []
thread = other.daemonize(lambda metrics: (seen.append(metrics), len(seen) < 3)[1], interval=0.01,
                         on_start=lambda c: seen.append("start"), on_stop=lambda c: seen.append("stop"))
thread.join()
assert len(seen) == 4 and seen[0] == "start" and seen[-1] == "stop", seen
snapshots = take_snapshots(gpu_processes=True)
assert [len(part) for part in snapshots] == [2, 3] and snapshots.gpu_processes[0].host.status == "sleeping"
me = HostProcess()
assert me.pid == os.getpid() and me.is_running() and me.parent().pid == os.getppid() and me in me.parent().children()
assert me.rss_memory() > 1 << 20 and me.username() and abs(me.create_time() - time.time()) < 600 and me.cpu_percent() >= 0
""", with_processes(pids))


@test
def times_and_sizes_of_nvitop():
    printed("""
import math
from nvitop import NA, bytes2human, human2bytes, timedelta2human
for count, text in ((0, "0B"), (1023, "1023B"), (1025, "1KiB"), (1 << 20, "1.00MiB"), (100 << 20, "100.0MiB"), (5 << 30, "5120MiB"),
                    (20 << 30, "20.00GiB"), (1000 << 30, "0.98TiB"), (NA, "N/A")):
    assert bytes2human(count) == text, (count, bytes2human(count))
for text, count in (("4GiB", 4 << 30), ("1.5 MB", 1500000), ("4G", 4 * 10**9), ("77", 77), (77, 77)):
    assert human2bytes(text) == count, text
for seconds, text in ((59.9, "0:59"), (3723, "1:02:03"), (86400, "24:00:00"), (4 * 86400, "4.0 days"), (NA, "N/A")):
    assert timedelta2human(seconds) == text, (seconds, timedelta2human(seconds))
assert NA > 5 and not NA < 5 and 5 < NA and math.isnan(NA * 2) and "x" + NA == "xN/A" and not NA and NA == "N/A"
""")


@test
def names_of_submodules():
    printed("""
import nvitop, nvitop.host, pynvml
from nvitop.values import NA
assert NA is nvitop.NA and nvitop.host is nvitop.host and nvitop.libnvml is pynvml
import gpulse.compat
try:
    gpulse.compat.install("numpy")
    assert False
except ValueError as error:
    assert "gpustat" in str(error)
""")


try:
    main()
finally:
    shutil.rmtree(STATE)
