#!/usr/bin/env python3
"""gpulse.measure() and repeated blocks, on simulated jobs of known size.

variants: release
"""
import re
import shutil
import sys
import tempfile

from package import ENV, SOURCE, STATE, python
from tap import good, main, run, test


@test
def consumed_peaked_and_reclaimed_are_exact():
    python("""
with gpulse.measure(interval=0.005) as m:
    job = Job("--mem", "20GiB")
    wait_until(lambda: m.gpus)
    job.end()
    Kept("--mem", "5GiB")
    held = Job("--mem", "3GiB")
    assert "after the end of the block" in unavailable(lambda: m.reclaimed)
assert (m.consumed, m.peaked, m.reclaimed) == (8 * GIB, 12 * GIB, 5 * GIB), m
assert [gpu.index for gpu in m.gpus] == [6]
memory = m.gpus[0].memory
assert (memory.start, memory.end, memory.peak) == (0, 8 * GIB, 20 * GIB), memory
assert m.gpus[0].all_memory.consumed == 8 * GIB
assert m.to_dict()["gpus"][0]["memory"]["consumed"] == 8 * GIB
assert "GPU 6: consumed 8.00 GiB, peaked 12.00 GiB, reclaimed 5.00 GiB" in str(m), str(m)
assert repr(m.gpus).startswith("[<GPU 6: consumed 8.00 GiB,"), m.gpus
assert repr(m.gpus[0].memory).startswith("<consumed 8.00 GiB,"), m.gpus[0].memory
from gpulse._usage import size_text
assert [size_text(n) for n in (-40000, 0, 1, -2**20, 2**30)] == ["0.0 MiB", "0.0 MiB", "0.0 MiB", "-1.0 MiB", "1.00 GiB"]
assert m.seconds > 0 and m.gpus[0].load > 0
assert [p.seconds for p in m.curve] == sorted(p.seconds for p in m.curve)
assert m.curve[0].memory == 0 and max(p.memory for p in m.curve) == 20 * GIB and m.curve[-1].memory == 8 * GIB
with gpulse.measure() as m:
    held.end()
assert (m.consumed, m.peaked, m.reclaimed) == (-3 * GIB, 0, 0), m
with gpulse.measure() as m:
    pass
assert (m.consumed, m.peaked, m.reclaimed, m.energy, m.gpus) == (0, 0, 0, 0, []) and "not used" in str(m)
""")


@test
def several_gpus_and_nested_blocks():
    python("""
with gpulse.measure(interval=0.005) as outer:
    a = Job("--mem", "2GiB", gpu=6)
    with gpulse.measure(interval=0.005) as inner:
        b = Job("--mem", "4GiB", gpu=7)
        c = Job("--mem", "1GiB", gpu=6)
    wait_until(lambda: [g.memory.peak for g in outer.gpus] == [3 * GIB, 4 * GIB])
    b.end()
    with gpulse.measure(gpus="7") as chosen:
        c.end()
assert inner.consumed == 5 * GIB, inner
assert [(g.index, g.memory.start, g.memory.end) for g in inner.gpus] == [(6, 2 * GIB, 3 * GIB), (7, 0, 4 * GIB)]
assert outer.consumed == 2 * GIB and [g.memory.peak for g in outer.gpus] == [3 * GIB, 4 * GIB], outer
assert [(g.index, g.memory.consumed) for g in chosen.gpus] == [(7, 0)], chosen
a.end()
""")


@test
def another_process():
    """Also one whose memory is not that of this process."""
    python("""
job, other = Job("--mem", "10GiB"), Job("--mem", "1GiB")
with gpulse.measure(pid=job.pid) as m:
    other.end()
assert (m.consumed, m.gpus[0].memory.end, m.gpus[0].all_memory.consumed) == (0, 10 * GIB, -1 * GIB), m
assert "another process" in unavailable(lambda: m.torch)
with gpulse.measure(pid=job.pid) as m:
    job.end()
assert m.consumed == -10 * GIB and m.reclaimed == 0, m
assert "cannot be read" in unavailable(lambda: m.host.consumed)
""")


@test
def host_memory():
    python("""
with gpulse.measure() as m:
    kept = bytearray(b"x") * (200 * MIB)
    gone = bytearray(b"x") * (100 * MIB)
    wait_until(lambda: m.host.peak - m.host.start > 290 * MIB)
    del gone
assert 190 * MIB < m.host.consumed < 210 * MIB and 90 * MIB < m.host.peaked < 110 * MIB, m.host
""")


@test
def what_does_not_exist_is_said():
    python("""
with gpulse.measure(gpus="0") as m:
    pass
assert unavailable(lambda: m.energy) == "energy.consumption: not supported"
assert m.to_dict()["gpus"][0]["energy"] is None and " J" not in str(m)
assert "torch: not imported" == unavailable(lambda: m.torch)
with gpulse.measure(reclaim=False) as m:
    pass
assert "reclaim" in unavailable(lambda: m.host.reclaimed)
for wrong in (0, float("nan")):
    try:
        gpulse.measure(interval=wrong)
        assert False
    except ValueError:
        pass
""", GPULSE_SIM="p100")
    python("""
pid = next(p.pid for p in gpulse.processes() if p.get("used_gpu_memory") is None)
with gpulse.measure(pid=pid) as m:
    pass
for get in (lambda: m.consumed, lambda: m.peaked, lambda: m.gpus[0].memory.start):
    assert unavailable(get) == "used_gpu_memory: not supported", unavailable(get)
assert m.gpus[0].all_memory.end > 0
assert "consumed unknown" in str(m) and m.curve[-1].memory is None
""", GPULSE_SIM="rtx2080-win")


@test
def processes_that_the_driver_does_not_list():
    with tempfile.TemporaryDirectory(dir=STATE) as state:
        python("""
job = Job("--mem", "1GiB")
words = [os.environ["GPULSE"], "sim", "fault", "-m", "h100x8"]
for version in ("", "_v2", "_v3"):
    subprocess.run([*words, "--gpu", "6", f"deny:nvmlDeviceGetComputeRunningProcesses{version}"], check=True)
with gpulse.measure(gpus="6,7") as m:
    pass
assert unavailable(lambda: m.gpus[0].memory.end) == "used_gpu_memory: the driver lists no processes", m
subprocess.run([*words, "clear"], check=True)
with gpulse.measure(gpus="6") as m:
    pass
assert m.gpus[0].memory.end == GIB
job.end()
""", GPULSE_SIM_STATE=state)
    python("""
import gpulse._tree
assert not gpulse._tree.use_cuda({os.getpid()})
os.readlink = lambda path: "/dev/nvidia-uvm"               # as in a container whose driver lists pids of the host
with gpulse.measure() as m:
    pass
assert len(m.gpus) == 8 and "pid namespace" in unavailable(lambda: m.consumed), m
assert "pid namespace" in unavailable(lambda: m.gpus[0].memory.peak) and m.gpus[0].all_memory.end > 0
job = Job("--mem", "1GiB")
with gpulse.measure() as m:
    pass
assert [(g.index, g.memory.end) for g in m.gpus] == [(6, GIB)]
job.end()
""")


@test
def energy_is_that_of_the_driver():
    python("""
job = Job("--mem", "1GiB")
before = gpulse.Session("energy.consumption", gpus="6").sample().gpus[0].energy.consumption
with gpulse.measure() as m:
    wait_until(lambda: m.energy > 1)
after = gpulse.Session("energy.consumption", gpus="6").sample().gpus[0].energy.consumption
assert 1 < m.energy <= after - before and m.gpus[0].energy == m.energy
job.end()
""", GPULSE_SIM_STILL="0")


@test
def a_gpu_that_hangs():
    with tempfile.TemporaryDirectory(dir=STATE) as state:
        python("""
words = [os.environ["GPULSE"], "sim", "fault", "-m", "h100x8"]
six, seven = Job("--mem", "1GiB", gpu=6), Job("--mem", "1GiB", gpu=7)
with gpulse.measure() as m:
    subprocess.run([*words, "--gpu", "6", "hang=10m"], check=True)
    seven.end()
assert [g.index for g in m.gpus] == [6, 7]
assert "respon" in unavailable(lambda: m.consumed), unavailable(lambda: m.consumed)
assert m.gpus[1].memory.consumed == -1 * GIB, m
subprocess.run([*words, "clear"], check=True)
six.end()
os._exit(0)
""", GPULSE_SIM_STATE=state)


@test
def a_failure_in_the_sampling_thread_is_in_the_result():
    python("""
import threading
m = gpulse.measure(interval=0.001)
read, failed = m._read, threading.Event()
def fails():
    if threading.current_thread() is not threading.main_thread():
        failed.set()
        raise ZeroDivisionError("as a test")
    return read()
m._read = fails
with m:
    job = Job("--mem", "1GiB")
    failed.wait()
assert m.consumed == 1 * GIB and m.reclaimed == 0
assert "ZeroDivisionError: as a test" in unavailable(lambda: m.peaked)
assert "ZeroDivisionError" in unavailable(lambda: m.host.peak)
m = gpulse.measure()
read, count = m._read, []
def ends():
    count.append(0)
    if len(count) > 1:
        raise gpulse.GpulseError("gone")
    return read()
m._read = ends
try:
    with m:
        raise KeyError("of the block")
except KeyError:
    pass
assert "gone" in unavailable(lambda: m.host.consumed) and "gone" in unavailable(lambda: m.host.reclaimed), m
job.end()
""")


@test
def exceptions_and_forks_in_a_block():
    python("""
try:
    with gpulse.measure() as m:
        job = Job("--mem", "1GiB")
        raise KeyError("of the block")
except KeyError:
    pass
assert m.consumed == 1 * GIB
import signal
with gpulse.measure() as m:
    with m._lock:                                          # as the sampling thread may have it
        child = os.fork()
        if child == 0:
            signal.alarm(60)
    if child == 0:
        m._lock.acquire()
        raise SystemExit(7)                                # leaves the block in the child
    status = os.waitpid(child, 0)[1]
assert os.WEXITSTATUS(status) == 7 and m.consumed == 0
child = os.fork()
if child == 0:
    with gpulse.measure(pid=job.pid) as m:
        pass
    os._exit(0 if m.gpus[0].memory.end == GIB else 1)
assert os.waitpid(child, 0)[1] == 0
job.end()
""")


@test
def blocks_leave_nothing_open():
    python("""
import threading
def count(what):
    return len(os.listdir(f"/proc/self/{what}"))
def blocks(n):
    for _ in range(n):
        with gpulse.measure(), gpulse.measure():
            pass
blocks(5)
fds, tasks = count("fd"), count("task")
blocks(100)
# the library's pool of threads may grow, but not with each block
assert count("fd") < fds + 30 and count("task") < tasks + 30, (fds, count("fd"), tasks, count("task"))
assert threading.active_count() == 1
""")


TORCH = """
import types
class Cuda(types.ModuleType):
    allocated = reserved = most_allocated = most_reserved = emptied = 0
    def is_initialized(self): return True
    def device_count(self): return 1
    def memory_allocated(self, device): return self.allocated
    def memory_reserved(self, device): return self.reserved
    def max_memory_allocated(self, device): return self.most_allocated
    def max_memory_reserved(self, device): return self.most_reserved
    def reset_peak_memory_stats(self, device):
        self.most_allocated, self.most_reserved = self.allocated, self.reserved
    def empty_cache(self):
        self.emptied += 1
        self.reserved = self.allocated
    def change(self, by):
        self.allocated += by
        self.reserved = max(self.reserved, self.allocated)
        self.most_allocated = max(self.most_allocated, self.allocated)
        self.most_reserved = max(self.most_reserved, self.reserved)
torch = types.ModuleType("torch")
torch.cuda = cuda = Cuda("torch.cuda")
sys.modules["torch"] = torch
"""


@test
def numbers_of_torch():
    python(TORCH + """
cuda.change(10 * GIB); cuda.change(-9 * GIB)               # an earlier peak, which does not count
with gpulse.measure() as outer:
    cuda.change(4 * GIB); cuda.change(-4 * GIB)
    with gpulse.measure() as inner:
        cuda.change(3 * GIB); cuda.change(-1 * GIB)
first, second = outer.torch[0], inner.torch[0]
assert (second.allocated.consumed, second.allocated.peaked) == (2 * GIB, 1 * GIB), second
assert (first.allocated.start, first.allocated.peak, first.allocated.end) == (GIB, 5 * GIB, 3 * GIB), first
assert (first.reserved.start, second.reserved.start, second.reserved.reclaimed) == (10 * GIB, 10 * GIB, 7 * GIB)
assert cuda.emptied == 2 and "torch cuda:0: allocated consumed 2.00 GiB" in str(inner)
assert inner.to_dict()["torch"][0]["reserved"]["reclaimed"] == 7 * GIB
cuda.is_initialized = lambda: False
with gpulse.measure() as m:
    assert "not initialized" in unavailable(lambda: m.torch)
    cuda.is_initialized = lambda: True
assert m.torch[0].allocated.start == 0 and m.torch[0].allocated.end == 3 * GIB
def fails(device):
    raise RuntimeError("driver shutting down")
cuda.memory_allocated = fails
with gpulse.measure() as m:
    pass
assert "driver shutting down" in unavailable(lambda: m.torch) and m.consumed == 0
import gpulse._torch
assert gpulse._torch._active == []
""")
    python("with gpulse.measure(): pass\nassert 'torch' not in sys.modules")


@test
def a_leaking_block_is_found():
    python(TORCH + """
import random
random.seed(3)
kept = []
runs = gpulse.Measurements(interval=1, reclaim=False)
for i in range(200):
    with runs.measure():
        kept.append(bytearray(b"x") * (300 << 10))         # of the host
        cuda.change(MIB); cuda.change(random.randrange(10) * MIB)
        noise = cuda.allocated - (i + 1) * MIB
    cuda.change(-noise)
    if i == 98:
        assert not any(t.known or t.per_second for t in runs.trends()) and runs.leaks() == []
leaks = {t.what: t for t in runs.leaks()}
assert runs.count == 200 and set(leaks) == {"host", "torch cuda:0"}, runs.trends()
assert 0.8 * MIB < leaks["torch cuda:0"].per_repetition < 1.2 * MIB, leaks
assert 250 << 10 < leaks["host"].per_repetition < 350 << 10, leaks
assert leaks["host"].per_second > leaks["host"].per_repetition and "leaks" in str(leaks["host"])
""")
    python("""
job = Job("--mem", "1GiB", "--grow", "1GiB")               # by 100 MiB, ten times per second
runs = gpulse.Measurements(interval=1, reclaim=False)
for _ in range(200):
    with runs.measure():
        time.sleep(0.02)
leak, = (t for t in runs.leaks() if t.what == "GPU 6")
assert 0.8 * GIB < leak.per_second < 1.1 * GIB and 0 < leak.per_repetition < leak.per_second, leak
job.end()
""")


@test
def a_noisy_block_is_no_leak():
    python(TORCH + """
import random
job = Job("--mem", "1GiB")
for seed in range(3):
    random.seed(seed)
    runs = gpulse.Measurements(interval=1, reclaim=False)
    cuda.allocated = 0
    for i in range(200):
        with runs.measure():
            noise = bytearray(b"x") * random.randrange(20 * MIB)
            cuda.change(random.randrange(200) * MIB + min(i, 30) * 10 * MIB - cuda.allocated)  # a cache fills at first
    assert {t.what for t in runs.trends()} == {"host", "GPU 6", "torch cuda:0"}
    assert all(t.known and not t.rises for t in runs.trends()) and runs.leaks() == [], runs.trends()
    assert "does not leak" in str(runs.trends()[0])
job.end()
""")


@test
def an_allocator_that_warms_up_is_no_leak():
    """It grows by less than 1 MiB in all, but by many MiB per minute, since the blocks are short."""
    python("""
kept = []
runs = gpulse.Measurements(interval=1, reclaim=False)
for _ in range(120):
    with runs.measure():
        kept.append(bytearray(b"x") * (6 << 10))
host, = runs.trends()
assert host.known and not host.rises and host.per_second * 60 > MIB, host
""")


@test
def measured_functions():
    python("""
import asyncio
@gpulse.measured
def step(size, *, gpu=6):
    "trains"
    return Job("--mem", size, gpu=gpu)
assert "no block" in unavailable(lambda: step.measurements.last)
step("1GiB").end()
job = step("2GiB", gpu=7)
assert step.__name__ == "step" and step.__doc__ == "trains" and step.measurements.count == 2
assert step.measurements.last.consumed == 2 * GIB
job.end()

class Model:
    @gpulse.measured(interval=0.5, reclaim=False)
    def train(self, value):
        return self, value
model = Model()
assert model.train(3) == (model, 3) and Model.train.measurements.count == model.train.measurements.count == 1
assert Model.train.measurements.last.interval == 0.5

@gpulse.measured
async def later():
    await asyncio.sleep(0.05)
    return 5
assert asyncio.run(later()) == 5 and later.measurements.last.seconds >= 0.05

@gpulse.measured
def fails():
    raise KeyError
try:
    fails()
except KeyError:
    assert fails.measurements.count == 1
""")


@test
def the_programs_of_the_handbook_run():
    programs = re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs/measure.md").read_text(), re.M | re.S)
    said = [good(run(sys.executable, "-c", program, env=ENV)) for program in programs]
    assert len(said) == 5, programs
    assert said[0].startswith("0 0 0 0 ") and re.search(r"^(99|10\d) MiB of host memory$", said[0], re.M), said[0]
    assert "GPU: not used" in said[1] and said[1].endswith("[]\n"), said[1]
    assert said[2].endswith("batch_size: even the smallest size does not fit\n"), said[2]
    assert [line.split()[0] for line in said[3].splitlines()] == ["50", "100", "6"], said[3]
    assert said[4] == "", said[4]


@test
def without_a_driver():
    python("""
try:
    with gpulse.measure():
        assert False
except gpulse.GpulseError as error:
    assert error.kind == "driver", error.kind
""", GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so")


try:
    main()
finally:
    shutil.rmtree(STATE)
