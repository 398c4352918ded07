#!/usr/bin/env python3
"""On a machine with a real NVIDIA GPU: `gpulse smi` against the real nvidia-smi, its values and processes, a real
CUDA program that is seen, suspended, resumed and killed, jobs on a GPU that `run` reserves, benchmarks, programs that
are slow for a known reason, and the Python package against pynvml. Installs nothing and changes no setting.

Usage: GPULSE=PATH tests/gpu/check.py

GPULSE_LIBRARY=PATH: libgpulse, for the Python package. GPULSE_KEEP=DIRECTORY keeps what both programs printed.
"""
import csv
import io
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from captures import CAPTURES  # noqa: E402
from smi_lines import helps, is_help, reason_of, shape  # noqa: E402
from tap import GPULSE, Skip, good, gpulse, main, run, test  # noqa: E402

MIB = 1 << 20
KEEP = os.environ.get("GPULSE_KEEP")

# Fields of both programs: those that stand still are equal to the letter, the others near, as the two programs ask
# one after the other.
STILL = """index name uuid pci.bus_id serial compute_cap vbios_version driver_version memory.total persistence_mode
compute_mode mig.mode.current ecc.mode.current pcie.link.gen.max pcie.link.width.max power.limit power.max_limit
power.min_limit power.default_limit enforced.power.limit clocks.max.sm clocks.max.memory
ecc.errors.uncorrected.aggregate.total gpu_recovery_action""".split()
MOVING = """temperature.gpu temperature.memory power.draw clocks.current.sm clocks.current.memory memory.used memory.free
memory.reserved utilization.gpu utilization.memory pstate fan.speed""".split()
ABSENT = {"[N/A]", "N/A", "[Not Supported]"}

# Beside these, every command line that was recorded (data/captures/commands__*.json).
COMMANDS = ["", "-q", "-q -x", "-q -i 0", "topo -C -i 0", "topo -M -i 0", "dmon -c 1 -o T", "dmon -c 1 -o D",
            "dmon -c 1 --format csv", "pmon -c 1 -s um -o DT"]
TABLES = ("gpu", "supported-clocks", "compute-apps", "accounted-apps", "retired-pages", "remapped-rows")


def nvidia_smi(*words):
    return run("nvidia-smi", *words)


def ended(program, words):
    """What a program printed, and its exit status; some command lines make nvidia-smi loop."""
    try:
        done = run(*program, *words, timeout=10)
        return done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(), "none: still running"


def fields_of(table):
    """All that nvidia-smi lists in its help for --query-TABLE."""
    text = nvidia_smi(f"--help-query-{table}").stdout
    return [names[0] for line in text.splitlines() if (names := re.findall(r'"([\w.]+)"', line)) and line.startswith('"')]


def forms():
    """All command lines to compare, with those that ask for every field."""
    recorded = [command["words"] for file in sorted(CAPTURES.glob("commands__*.json"))
                for command in json.loads(file.read_text())]
    listed = {table: fields_of(table) for table in TABLES}
    for text in dict.fromkeys(COMMANDS + recorded):
        if not reason_of(text):
            yield shlex.split(text)
    for table, names in listed.items():
        for form in ("csv", "csv,noheader", "csv,noheader,nounits"):
            if names:
                yield [f"--query-{table}={','.join(names)}", f"--format={form}"]


# Lines of values that nvidia-smi has by private calls (docs/smi.md).
PRIVATE = re.compile(r"GPU Part Number|gpu_part_number|Sparse Operation Mode|sparse_operation_mode")


def both(words):
    """(before, ours, after): nvidia-smi's output, ours, and nvidia-smi's again, with the exit statuses."""
    return [ended(program, words) for program in (["nvidia-smi"], [GPULSE, "smi"], ["nvidia-smi"])]


def differences(before, ours, after):
    """The lines of ours that differ although nvidia-smi's stood still, or that differ in more than numbers."""
    (a, status), (b, our_status), (c, _) = before, ours, after
    if status != our_status:
        yield f"exit status {our_status}, nvidia-smi's {status}"
    if is_help(a):
        first = a.split("\n\n")[0].strip() if not a.startswith("\n") else ""
        if not helps(b, "" if is_help(first) else first):
            yield f"not the help, but {b[:200]!r}"
        return
    a, b, c = a.split("\n"), b.split("\n"), c.split("\n")
    if len(a) != len(b):
        yield f"{len(b)} lines, nvidia-smi has {len(a)}"
    for theirs, line, again in zip(a, b, c if len(c) == len(a) else a):
        if line != theirs and line != again and not PRIVATE.search(line) and (theirs == again or shape(line) != shape(theirs)):
            yield f"gpulse     {line}\n  nvidia-smi {theirs}"


def smi_differs(words):
    """What differs in each of three attempts: a value that moved is another one in the next."""
    found = None
    for _ in range(3):
        outputs = both(words)
        now = set(differences(*outputs))
        found = now if found is None else found & now
        if not found:
            break
    if KEEP and outputs:
        name = re.sub(r"[^\w,=-]+", "_", " ".join(words))[:60] or "summary"
        for who, (text, status) in zip(("nvidia-smi", "gpulse"), outputs):
            (Path(KEEP) / f"{name}.{who}").write_text(f"{text}\n# exit status {status}\n")
    return sorted(found)


def compare_smi(*words):
    found = smi_differs(words)
    assert not found, "\n".join(found[:40])


def kept_name(words):
    text = " ".join(words)
    return f"smi {text if len(text) < 60 else text[:57] + '...'}".strip()


def add_forms():
    for words in forms():
        def one(words=words):
            compare_smi(*words)
        one.__name__ = kept_name(words).replace(" ", "_")
        test(one)


def values(fields):
    """({field: value} of each GPU by gpulse, the same by nvidia-smi)"""
    ours = good(gpulse("query", ",".join(fields), "-f", "csv", "--no-header"))
    theirs = good(nvidia_smi(f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"))
    a, b = ([dict(zip(fields, row)) for row in csv.reader(io.StringIO(text), skipinitialspace=True)] for text in (ours, theirs))
    assert len(a) == len(b) > 0
    return a, b


def same(field, ours, theirs, moving):
    if ours == theirs or (ours in ABSENT | {""} and theirs in ABSENT):
        return True
    if field.startswith("memory."):
        return abs(math.ceil(int(ours) / MIB) - int(theirs)) <= (64 if moving else 1)
    if not moving:
        return False
    return field == "pstate" or abs(float(ours) - float(theirs)) <= max(15.0, 0.25 * abs(float(theirs)))


def compare_values(fields, moving):
    bad = [f"GPU {gpu} {f}: gpulse {a[f]}, nvidia-smi {b[f]}" for gpu, (a, b) in enumerate(zip(*values(fields)))
           for f in fields if not same(f, a[f], b[f], moving)]
    assert not bad, "\n".join(bad)


@test
def status_runs():
    text = good(gpulse("status", "-a"))
    print("\n".join("# " + line for line in text.splitlines()))


@test
def still_values_are_nvidia_smis():
    compare_values(STILL, False)


@test
def moving_values_are_near():
    compare_values(MOVING, True)


@test
def verify_finds_no_difference():
    done = gpulse("sim", "verify")
    print("# " + (done.stdout + done.stderr).rstrip().replace("\n", "\n# "))
    assert done.returncode == 0, done.returncode


# A CUDA program without any framework: a context, 256 MiB, and a line when it has them.
CUDA = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
count = ctypes.c_int()
assert cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256 << 20)) == 0
print("ready", count.value, flush=True)
for line in sys.stdin:
    assert cuda.cuMemsetD8_v2(memory, 1, ctypes.c_size_t(256 << 20)) == 0 and cuda.cuCtxSynchronize() == 0
    print("done", flush=True)
"""


class Cuda:
    """A CUDA program, as long as the block."""

    def __enter__(self):
        self.job = subprocess.Popen([sys.executable, "-c", CUDA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.job.stdout.readline().startswith("ready")
        return self

    def works(self):
        self.job.stdin.write("\n")
        self.job.stdin.flush()
        return self.job.stdout.readline() == "done\n"

    def __exit__(self, *_):
        self.job.kill()
        self.job.wait()


def processes():
    """{pid: row} of gpulse query --processes"""
    made = json.loads(good(gpulse("query", "pid,process_name,user,used_gpu_memory,index", "--processes", "-f", "json")))
    return {row["pid"]: row for row in made["processes"]}


@test
def a_cuda_program_is_seen_with_its_memory():
    with Cuda() as program:
        pid = program.job.pid
        theirs = dict(csv.reader(io.StringIO(good(nvidia_smi("--query-compute-apps=pid,used_gpu_memory",
                                                             "--format=csv,noheader,nounits"))), skipinitialspace=True))
        row = processes()[pid]
        assert math.ceil(row["used_gpu_memory"] / MIB) == int(theirs[str(pid)]) > 256, (row, theirs)
        assert "python" in row["process_name"], row
        assert str(pid) in good(gpulse("ps"))


@test
def what_nvidia_smi_prints_while_a_program_runs():
    with Cuda():
        for words in ([], ["-q", "-d", "PIDS"], ["-q", "-x"], ["pmon", "-c", "1", "-s", "um"],
                      ["--query-compute-apps=pid,process_name,used_memory,gpu_uuid", "--format=csv"]):
            compare_smi(*words)


@test
def memory_is_accounted_for():
    with Cuda():
        report = json.loads(good(gpulse("mem", "-f", "json")))
        print("# " + json.dumps(report)[:600])
        text = good(gpulse("mem"))
        assert "python" in text, text


@test
def kill_ends_a_program_and_its_memory():
    with Cuda() as program:
        text = good(gpulse("kill", "--pid", program.job.pid, "--yes", "--signal", "term"))
        print("# " + text.replace("\n", "\n# "))
        assert program.job.wait(60) == -signal.SIGTERM
        assert program.job.pid not in processes()


@test
def a_program_is_suspended_and_resumed():
    with Cuda() as program:
        assert program.works()
        done = gpulse("suspend", "--pid", program.job.pid, "--yes")
        if done.returncode == 3 or "570" in done.stderr:
            raise Skip(done.stderr.strip())
        text = good(done)
        print("# " + text.replace("\n", "\n# "))
        assert processes().get(program.job.pid, {}).get("used_gpu_memory") in (None, 0)
        text = good(gpulse("resume", program.job.pid))
        print("# " + text.replace("\n", "\n# "))
        assert program.works()


@test
def run_reserves_a_gpu_that_a_program_can_use():
    with tempfile.TemporaryDirectory() as state:
        env = dict(os.environ, GPULSE_STATE_DIR=state)
        text = good(gpulse("run", "--", sys.executable, "-c", CUDA, env=env))
        assert text.startswith("ready 1"), text


def torch():
    if run(sys.executable, "-c", "import torch; assert torch.cuda.is_available()").returncode:
        raise Skip("PyTorch is not installed")


@test
def why_a_real_program_ran_out_of_memory():
    torch()
    with tempfile.TemporaryDirectory() as state:
        env = dict(os.environ, GPULSE_STATE_DIR=state, HOME=state, XDG_STATE_HOME=state)
        program = "import torch; a = [torch.empty(1 << 32, device='cuda') for _ in range(1000)]"
        done = gpulse("run", "--", sys.executable, "-c", program, env=env)
        print("# " + done.stderr.replace("\n", "\n# "))
        assert done.returncode == 1
        text = gpulse("explain", "last", env=env)
        print("# " + text.stdout.replace("\n", "\n# "))
        assert "out of memory" in (done.stderr + text.stdout).lower()


@test
def the_largest_batch_of_a_real_program_is_found():
    torch()
    program = ("import sys, torch\nn = int(sys.argv[1])\na = torch.empty((n, 1 << 28), dtype=torch.float32, device='cuda')\n"
               "for step in range(3):\n    a.add_(1)\ntorch.cuda.synchronize()\nprint('step 3/3', flush=True)")
    with tempfile.TemporaryDirectory() as state:
        env = dict(os.environ, GPULSE_STATE_DIR=state, HOME=state, XDG_CACHE_HOME=state)
        done = gpulse("fit-batch", "--until", "step 3/3", "--start", "32", "--multiple", "4", "--confirm", "no", "-f", "json", "--",
                      sys.executable, "-c", program, "{}", env=env)
        print("# " + (done.stdout + done.stderr).replace("\n", "\n# "))
        found = json.loads(good(done))
        total = int(good(gpulse("query", "memory.total", "-i", "0", "-f", "csv", "--no-header")))
        # each sequence has 1 GiB; some hundred MiB are the context's, and at least 5 % stay free
        assert total * 0.8 / (1 << 30) < found["batch"] < total / (1 << 30), found


def bench(*words):
    """What is measured, by (test, what)."""
    done = gpulse("bench", *words, "-i", "0", "-f", "json")
    print("# " + done.stderr.replace("\n", "\n# "))
    rows = json.loads(good(done))["results"]
    for row in rows:
        print("#", row["test"], row["what"], row["size"], row["outcome"], row["value"]["median"], row["unit"], row["kernel"],
              row["peak"], row["note"], row["conditions"])
    assert not [row for row in rows if row["outcome"] in ("wrong", "failed")], "wrong or failed"
    return {(row["test"], row["what"]): row for row in rows}


@test
def bench_measures_the_memory():
    rows = bench("memory")
    copy = rows["memory", "copy"]
    assert copy["value"]["median"] >= 0.92 * (copy["peak"] or math.nan), copy


@test
def bench_multiplies_in_each_precision():
    rows = bench("gemm")
    torch()
    program = ("import time, torch\nn = 8192\na, b = (torch.randn(n, n, device='cuda', dtype=torch.bfloat16) for _ in 'ab')\n"
               "def flops(count):\n    torch.cuda.synchronize()\n    begin = time.perf_counter()\n"
               "    for _ in range(count):\n        a @ b\n    torch.cuda.synchronize()\n"
               "    return count * 2 * n**3 / (time.perf_counter() - begin) / 1e12\n"
               "flops(500)\nprint(sorted(flops(50) for _ in range(9))[4])")
    theirs = float(good(run(sys.executable, "-c", program)))
    print(f"# torch: {theirs:.1f} TFLOP/s")
    assert rows["gemm", "bf16"]["value"]["median"] >= 0.95 * theirs, (rows["gemm", "bf16"], theirs)


@test
def bench_has_latencies_and_burns():
    bench("latency")
    bench("burn", "--for", "10s")


# What makes a program slow, and the rules one of which must say so.
SLOW = [
    ("import time\nwhile True:\n    a @ a\n    torch.cuda.synchronize()\n    time.sleep(0.05)", {"waiting", "low-use"}),
    ("while True:\n    a @ a\n    torch.cuda.synchronize()\n    sum(range(1 << 20))", {"main-thread"}),
    ("s = torch.zeros(8, device='cuda')\nwhile True:\n    s.add_(1)", {"small-kernels", "main-thread"}),
    ("h = torch.zeros(1 << 28).pin_memory()\nwhile True:\n    h.to('cuda')", {"transfers"}),
    ("a = a.float()\nwhile True:\n    a @ a\n    torch.cuda.synchronize()", {"tensor-cores"}),
]


def add_slow(code, rules):
    def slow():
        torch()
        with subprocess.Popen([sys.executable, "-c", "import torch\na = torch.randn(4096, 4096, device='cuda', "
                               "dtype=torch.bfloat16)\nprint('ready', flush=True)\n" + code],
                              stdout=subprocess.PIPE, text=True) as child:
            try:
                assert child.stdout.readline() == "ready\n"
                time.sleep(3)
                gpu, = json.loads(good(gpulse("why", str(child.pid), "--for", "12s", "-f", "json")))["gpus"]
            finally:
                child.kill()
        print("#", gpu["verdicts"], gpu["means"], gpu["host"])
        assert gpu["verdicts"] and gpu["verdicts"][0]["rule"] in rules, gpu["verdicts"]
    slow.__name__ = "why_" + min(rules).replace("-", "_")
    test(slow)


@test
def doctor_sees_the_driver():
    done = gpulse("doctor")
    print("# " + done.stdout.replace("\n", "\n# "))
    assert "libnvidia-ml" in done.stdout or "driver" in done.stdout.lower()


@test
def a_record_of_this_machine_shows_the_same():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(KEEP or folder) / "machine.json"
        good(gpulse("sim", "record", "-o", file))
        for words in (["-L"], ["--query-gpu=" + ",".join(STILL), "--format=csv"]):
            assert good(gpulse("--sim", file, "smi", *words)) == good(nvidia_smi(*words))


@test
def the_python_package_agrees_with_pynvml():
    if not os.environ.get("GPULSE_LIBRARY"):
        raise Skip("GPULSE_LIBRARY is not set")
    sys.path.insert(0, str(HERE.parent.parent / "python"))
    try:
        import pynvml
    except ImportError as error:
        raise Skip("pynvml is not installed") from error
    import gpulse as package
    pynvml.nvmlInit()
    for index, gpu in enumerate(package.gpus()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        assert gpu.name == pynvml.nvmlDeviceGetName(handle) and gpu.uuid == pynvml.nvmlDeviceGetUUID(handle)
        assert gpu.memory.total == pynvml.nvmlDeviceGetMemoryInfo(handle).total
        assert abs(gpu.temperature.gpu - pynvml.nvmlDeviceGetTemperature(handle, 0)) <= 5
        assert gpu.power.limit == pynvml.nvmlDeviceGetPowerManagementLimit(handle) / 1000


if __name__ == "__main__":
    if not shutil.which("nvidia-smi") or nvidia_smi("-L").returncode:
        print("1..0 # SKIP no NVIDIA GPU answers here")
        sys.exit(0)
    # a driver without persistence mode loads anew for each program, which takes a second
    awake = subprocess.Popen([GPULSE, "query", "name", "-n", "60"], stdout=subprocess.DEVNULL)
    try:
        add_forms()
        for code, rules in SLOW:
            add_slow(code, rules)
        main()
    finally:
        awake.terminate()
        awake.wait()
