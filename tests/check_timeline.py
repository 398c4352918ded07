#!/usr/bin/env python3
"""gpulse run --timeline: real jobs on simulated GPUs, and their traces read by an independent program.

variants: asan release
"""
import collections
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tap import BUILD, GPULSE, VARIANT, Skip, good, main, run, test
from traces import ENV, JOB_PID, SCRATCH, Trace, timeline


def test_of_library(function):
    """Not with ASan: Python cannot load a library that needs it."""
    return function if VARIANT == "asan" else test(function)


def python(code, *more, **options):
    return timeline(sys.executable, "-c", "import os, signal, sys, threading, time\nimport gpulse\n" + code, *more, **options)


# ---- what is in it ----

@test
def a_job_on_a_gpu():
    trace, said = timeline("sh", "-c", 'echo epoch 1; "$GPULSE" sim load --mem 20GiB --for 2s >&2; echo epoch 2; exit 3',
                           options=["--mark", "epoch ([0-9]+)"], status=3)
    gpu, = [pid for pid, name in trace.names.items() if name.startswith("GPU 7: NVIDIA H100")]
    assert trace.names[JOB_PID].startswith("job: sh -c echo epoch 1;"), trace.names
    counted = {name for pid, name in trace.counters if pid == gpu}
    assert {"memory", "utilization", "SM active", "tensor cores active", "memory bandwidth", "power", "temperature",
            "SM clock", "memory clock", "PCIe", "NVLink"} <= counted, counted
    assert max(values["job MiB"] for _, values in trace.counters[gpu, "memory"]) == 20 * 1024
    assert max(values["%"] for _, values in trace.counters[gpu, "utilization"]) > 50
    load, = [pid for pid, name in trace.counters if name == "GPU 7 memory"]
    assert [values["MiB"] for _, values in trace.counters[load, "GPU 7 memory"]] == [20 * 1024, 0]
    assert "host memory" in {name for pid, name in trace.counters if pid == load}, trace.counters
    idle = [(start, end) for pid, _, name, start, end, _ in trace.slices if pid == gpu and name == "gpu idle"]
    assert idle and not any(trace.open.values()), (idle, trace.open)
    outputs = [(m["name"], m["ts"]) for m in trace.marks if m["cat"] == "output"]
    assert [name for name, _ in outputs] == ["1", "2"], outputs
    assert outputs[1][1] - outputs[0][1] > 1.9e6, outputs  # the job ran for 2 s between them
    assert trace.notes() == ["started", "exited with status 3"], trace.notes()
    assert re.search(r"timeline: \S+trace.json \(2 marks, 0 ranges\)", said), said
    assert "nsys profile --trace=cuda,nvtx,osrt sh -c" in said and "ncu " in said, said


@test
def counters_are_not_repeated():
    trace, _ = timeline("sleep", "2")
    repeated = [(place, a, b) for place, values in trace.counters.items()
                for (a, x), (b, y) in zip(values, values[1:-1]) if x == y]  # the last ones are, up to the end
    assert not repeated, repeated[:3]
    gpu = [pid for pid, name in trace.names.items() if name.startswith("GPU ")]
    assert len(gpu) == 1, "only the job's GPU"
    end = max(m["ts"] for m in trace.marks)
    assert all(values[-1][0] > 1.9e6 for (pid, _), values in trace.counters.items() if pid in gpu), end


@test
def a_gpu_that_is_lost_for_a_while():
    state = tempfile.mkdtemp(dir=SCRATCH)
    trace, _ = timeline("sh", "-c", '"$GPULSE" sim load --mem 20GiB --for 5s & sleep 1; f="$GPULSE sim fault -m h100x8"; '
                        '$f --gpu 7 lost >&2; sleep 2; $f clear >&2; wait', env={**ENV, "GPULSE_SIM_STATE": state})
    gpu, = [pid for pid, name in trace.names.items() if name.startswith("GPU 7: NVIDIA H100")]
    memory, = [values for (_, name), values in trace.counters.items() if name == "GPU 7 memory"]
    assert [values["MiB"] for _, values in memory] == [20 * 1024, 0], memory
    (start, end), = [(start, end) for pid, _, name, start, end, _ in trace.slices if pid == gpu and name == "no answer"]
    assert end - start > 1e6 and "no answer" in trace.threads.values(), (start, end)


@test
def processes_of_the_job():
    trace, _ = timeline(sys.executable, "-c", """
import os, subprocess, sys, time
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
held = bytearray(100 << 20)
with open(sys.argv[1], "wb") as file:
    for _ in range(20):
        file.write(os.urandom(4 << 20))
        os.fsync(file.fileno())
time.sleep(2)
busy.kill()
""", str(SCRATCH / "written"))
    cpu = {pid: max(v["%"] for _, v in values) for (pid, name), values in trace.counters.items()
           if name == "CPU" and pid != JOB_PID}
    busiest = max(cpu, key=cpu.get)
    assert cpu[busiest] > 1 and "python" in trace.names[busiest], (cpu, trace.names)  # other tests take their share
    parent = [pid for (pid, name), values in trace.counters.items()
              if name == "host memory" and max(v["MiB"] for _, v in values) >= 100]
    assert len(parent) == 1, trace.counters
    assert max(values["cores"] for _, values in trace.counters[JOB_PID, "CPU"]) > 0.02


@test
def short_processes_are_in_the_sum():
    trace, _ = timeline("sh", "-c", f"for i in $(seq 25); do {sys.executable} -S -c 'for i in range(1000000): pass'; done; sleep 0.5")
    cores = [values["cores"] for _, values in trace.counters[JOB_PID, "CPU"]]
    # One after the other; but on a busy machine their time can come late, and all at once.
    assert max(cores) > 0.02 and sum(cores) / len(cores) < 1.5, cores


@test
def more_processes_than_have_a_track():
    trace, _ = timeline(sys.executable, "-c", """
import subprocess, sys, time
sleeping = [subprocess.Popen(["sleep", "60"]) for _ in range(270)]
time.sleep(1)
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
time.sleep(1.5)
for child in [busy, *sleeping]:
    child.kill()
""")
    assert len({pid for pid, name in trace.counters if name == "host memory"}) == 256
    assert max(values["cores"] for ts, values in trace.counters[JOB_PID, "CPU"] if ts > 8e5) > 0.02, trace.counters[JOB_PID, "CPU"]


@test
def a_process_is_named_by_what_it_runs():
    trace, _ = timeline("bash", "-c", f"sleep 1; exec {sys.executable} -c 'import time; time.sleep(1)' one")
    names = [e["args"]["name"] for e in trace.events if e["ph"] == "M" and e["name"] == "process_name"]
    assert "bash" in names and trace.names[next(e["pid"] for e in trace.events if e.get("args") == {"name": "bash"})] == "python3", names
    trace, _ = timeline("sh", "-c", '"$GPULSE" sim load --mem 1GiB --for 1s')
    load, = [pid for pid, name in trace.counters if name == "GPU 7 memory"]
    assert trace.names[load].endswith("load --mem 1GiB --for 1s"), trace.names


@test_of_library
def processes_that_report_have_their_command_lines():
    trace, _ = python("gpulse.mark('x')\ntime.sleep(0.6)", "--rank", "3")
    pid, = {m["pid"] for m in trace.marks if m["cat"] == "job"}
    assert trace.names[pid].startswith(f"{sys.executable} -c import os"), trace.names
    indexes = {e["args"]["sort_index"] for e in trace.events if e.get("name") == "process_sort_index" and e["pid"] == pid}
    assert indexes == {100}, indexes


@test_of_library
def marks_and_spans_of_python():
    trace, said = python("""
@gpulse.span("step")
def step():
    with gpulse.span("load"):
        time.sleep(0.05)
    with gpulse.span("compute"):
        time.sleep(0.02)
def other():
    with gpulse.span("decode"):
        time.sleep(0.1)
thread = threading.Thread(target=other)
thread.start()
before = time.monotonic_ns()
gpulse.mark("epoch 0")
for _ in range(3):
    step()
thread.join()
gpulse.mark("the end")
""")
    assert trace.reported() == ["epoch 0", "the end"], trace.marks
    by_name = collections.Counter(name for _, _, name, *_ in trace.slices if name != "gpu idle")
    assert by_name == {"step": 3, "load": 3, "compute": 3, "decode": 1}, by_name
    steps = [(tid, start, end) for _, tid, name, start, end, _ in trace.slices if name == "step"]
    for _, tid, name, start, end, _ in trace.slices:
        if name in ("load", "compute"):
            assert any(tid == t and a <= start and end <= b for t, a, b in steps), (name, start, end)
        if name == "load":
            assert 49e3 < end - start < 5e6, end - start
        if name == "decode":
            assert tid != steps[0][0], "it is another thread"
    assert "(2 marks, 10 ranges)" in said, said


@test_of_library
def a_name_that_is_missing():
    refuse = """
for call in gpulse.mark, gpulse.span:
    try:
        call(None)
    except TypeError as error:
        print(error, flush=True)
"""
    expected = "mark() takes a text, not None\nspan() takes a text, not None\n"
    result = run(sys.executable, "-c", "import gpulse" + refuse, env=ENV)
    assert (result.returncode, result.stdout) == (0, expected), result
    trace, _ = python(refuse + """
import ctypes
lib = ctypes.CDLL(os.environ["GPULSE_LIBRARY"])
lib.gpulse_range_push(b"outer")
lib.gpulse_mark(None)
lib.gpulse_range_push(None)
lib.gpulse_range_pop()
lib.gpulse_mark(b"within")
lib.gpulse_range_pop()
""", options=["--mark", ".* not None"])
    assert sorted(trace.reported()) == [*expected.splitlines(), "within"], trace.marks
    (start, end), = [(start, end) for _, _, name, start, end, _ in trace.slices if name == "outer"]
    assert start < next(m["ts"] for m in trace.marks if m["name"] == "within") < end


@test_of_library
def functions_that_run_later_are_not_decorated():
    result = run(sys.executable, "-c", """
import gpulse
async def coroutine(): pass
async def stream(): yield
def numbers(): yield
for function in coroutine, stream, numbers:
    try:
        gpulse.span("x")(function)
    except TypeError as error:
        print(error)
print(gpulse.span("x")(abs)(-1))
""", env=ENV)
    assert result.stdout == "".join(f"span() cannot decorate {what}: use with gpulse.span(…) inside\n" for what in (
        "a coroutine function", "an async generator", "a generator")) + "1\n", result


@test_of_library
def marks_are_on_the_clock_of_the_samples():
    trace, _ = python("""
gpulse.mark("the first one opens the channel")
gpulse.mark(f"{time.monotonic_ns()}")
time.sleep(0.5)
gpulse.mark(f"{time.monotonic_ns()}")
print(f"now {time.monotonic_ns()}", flush=True)
""", options=["--mark", "now ([0-9]+)"])
    shifts = [int(m["name"]) / 1000 - m["ts"] for m in trace.marks if m["name"].isdigit()]
    assert len(shifts) == 3, trace.marks
    assert abs(shifts[0] - shifts[1]) < 1e5, shifts
    assert shifts[2] - shifts[0] < 1e3 and shifts[0] - shifts[2] < 5e6, shifts  # a line is read a little later


@test_of_library
def rates_are_shown_when_they_happened():
    trace, _ = python("""
time.sleep(0.5)
gpulse.mark("idle")
time.sleep(1.2)
gpulse.mark("busy")
until = time.monotonic() + 1.5
while time.monotonic() < until:
    pass
""")
    idle, busy = [m["ts"] for m in trace.marks if m["cat"] == "job"]
    edge = min(ts for ts, values in trace.counters[JOB_PID, "CPU"] if ts >= idle and values["cores"] > 0.05)
    assert edge < busy + 1e5, (idle, busy, edge)


@test_of_library
def names_are_escaped():
    trace, _ = python(r"""
gpulse.mark('quote " backslash \\ newline \n bell \a escape \x1b[31m')
gpulse.mark("\u202eright to left \udcff")
gpulse.mark("ä" * 200)
gpulse.mark("")
print('line "a\tb" \x1b[1mbold', flush=True)
""", options=["--mark", 'line.*'])
    first, second, third, fourth = [m["name"] for m in trace.marks if m["cat"] == "job"]
    assert first.startswith('quote " backslash \\ newline \\n bell \\x07 escape \\x1b['), first
    assert not re.search(r"[\x00-\x1f\u202e]", "".join(m["name"] for m in trace.marks)), trace.marks
    assert "\\u{202e}right" in second, second
    assert third.startswith("ä" * 51) and len(third) < 60, third
    assert fourth == "", fourth


@test
def each_try_is_in_one_trace():
    flag = SCRATCH / "tried"
    trace, _ = timeline("sh", "-c", f'if [ -e {flag} ]; then exit 0; fi; touch {flag}; exit 7',
                        options=["--retries", "2", "--on", "failure"])
    assert trace.notes() == ["started", "exited with status 7", "started again", "exited with status 0"], trace.notes()


@test
def a_failure_is_noted():
    trace, _ = timeline("sh", "-c", "echo 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
                        "GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is free.' >&2; sleep 1; exit 1", status=1)
    assert any("CUDA out of memory" in note for note in trace.notes()), trace.notes()


# ---- steps that the job reports ----

LOAD = """import os, subprocess, sys, time, gpulse
load = subprocess.Popen([os.environ["GPULSE"], "sim", "load", "--mem", "1GiB", "--for", "1.5s"], stdout=subprocess.DEVNULL)
def steps(count):
    for _ in range(count):
        time.sleep(0.01)
        gpulse.step()
"""


def stepping(code, *options, words=(sys.executable, "-c"), status=0):
    """Runs a job without a timeline; returns what is said and the pace in its record."""
    folder = Path(tempfile.mkdtemp(dir=SCRATCH))
    result = run(GPULSE, "run", "--dir", folder, *options, "--", *words, LOAD + code, env=ENV)
    assert result.returncode == status, (result.returncode, result.stderr)
    record, = folder.glob("**/run.json")
    return result.stderr, json.loads(record.read_text())["pace"]


@test_of_library
def steps_without_an_expression():
    said, pace = stepping("steps(101)\nload.wait()", "--flops-per-step", "1e12")
    assert re.search(r"^gpulse: \S+ steps/s \(100 steps in \S+ s\), .*\(MFU\) \S+ % of 1 GPU with 989.4 TFLOP/s", said, re.M), said
    assert pace["steps"] == 100 and 1 < pace["seconds"] < 30 and pace["flops_per_step"] == 1e12, pace
    assert abs(pace["mfu"] * pace["peak_flops"] / pace["steps_per_s"] / 1e12 - 1) < 1e-9, pace


@test_of_library
def steps_of_two_processes_are_not_added():
    said, pace = stepping("steps(3)\nif os.fork() == 0:\n    steps(21)\n    os._exit(0)\nos.wait()\nsteps(7)\nload.wait()",
                          "--flops-per-step", "1e12")
    assert pace["steps"] == 20, (pace, said)


@test_of_library
def steps_of_each_try_count_anew():
    flag = SCRATCH / "stepped"
    said, pace = stepping(f"steps(4 if os.path.exists({str(flag)!r}) else 40)\nload.wait()\n"
                          f"if not os.path.exists({str(flag)!r}):\n    open({str(flag)!r}, 'w')\n    sys.exit(1)",
                          "--flops-per-step", "1e12", "--retries", "1", "--on", "failure")
    assert said.count(" steps/s") == 2 and pace["steps"] == 3, (pace, said)


@test_of_library
def lines_that_match_count_before_calls():
    said, pace = stepping("for i in range(3):\n    print('step', i, flush=True)\n    steps(1)\nload.wait()",
                          "--flops-per-step", "1e12", "--step-match", "step")
    assert pace["steps"] == 2 and " steps/s" in said, (pace, said)


@test_of_library
def steps_with_a_timeline():
    _, said = python("for _ in range(11):\n    time.sleep(0.01)\n    gpulse.step()")
    assert re.search(r"^gpulse: \S+ steps/s \(10 steps in \S+ s\)$", said, re.M), said


@test_of_library
def steps_are_a_counter():
    trace, _ = python("""
for pause, count in (0.02, 75), (0.1, 15), (0.7, 3):
    for _ in range(count):
        time.sleep(pause)
        gpulse.step()
""")
    counted = [(ts, values["steps/s"]) for ts, values in trace.counters[JOB_PID, "steps"]]
    assert counted == sorted(counted, key=lambda one: one[0]) and counted[-1][1] == 0, counted
    assert 25 < max(rate for _, rate in counted) < 51 and 0.5 < counted[-2][1] < 1.5, counted
    steps = sum(rate * (end - start) / 1e6 for (start, rate), (end, _) in zip(counted, counted[1:]))
    assert abs(steps - 92) < 0.01, (steps, counted)


@test
def a_job_without_steps():
    folder = Path(tempfile.mkdtemp(dir=SCRATCH))
    result = run(GPULSE, "run", "-q", "--dir", folder, "--flops-per-step", "1e12", "--", "true", env=ENV)
    assert result.stderr == ("gpulse: no MFU: it reported 0 steps; call gpulse.step() in each step of the program, or count "
                             "lines of its output with --step-match\n"), result.stderr
    trace, said = timeline("true")
    assert "step" not in said, said
    assert (JOB_PID, "steps") not in trace.counters


# ---- however it ends ----

@test_of_library
def the_job_is_killed_within_a_range():
    trace, _ = python("""
gpulse.span("epoch 4").__enter__()
with gpulse.span("done"):
    pass
gpulse.span("backward").__enter__()
time.sleep(0.2)
os.kill(os.getpid(), signal.SIGKILL)
""", status=137)
    unfinished = {name for _, _, name, *_, event in trace.slices if event.get("args", {}).get("unfinished")}
    assert unfinished == {"epoch 4", "backward"}, trace.slices
    assert "done" in [name for _, _, name, *_ in trace.slices]


@contextlib.contextmanager
def started(*words):
    """gpulse in the background, and its trace."""
    path = Path(tempfile.mkdtemp(dir=SCRATCH)) / "trace.json"
    child = subprocess.Popen([GPULSE, "run", "--no-record", "--timeline", path, "--timeline-interval", "0.1s", "--", *words],
                             env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield child, path
    finally:
        child.kill()
        child.communicate()


@contextlib.contextmanager
def stopped(child):
    child.send_signal(signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        yield
    finally:
        child.send_signal(signal.SIGCONT)


LOOP = """import os, time, gpulse
print(os.environ["GPULSE_TIMELINE"], flush=True)
while True:
    with gpulse.span("step"):
        time.sleep(0.001)
"""


@test_of_library
def gpulse_is_killed():
    with started(sys.executable, "-c", LOOP) as (child, path):
        folder = Path(child.stdout.readline().strip())
        assert folder.is_dir(), folder
        count, until = 0, time.monotonic() + 60
        for i in range(1000):  # at any moment: it is stopped, since the file could change while it is read
            if i >= 40 and (count >= 20 or time.monotonic() > until):
                break
            with stopped(child):
                count = len([s for s in Trace(path).slices if s[2] == "step"])
            time.sleep(0.02)
    trace = Trace(path)
    assert len([name for _, _, name, *_ in trace.slices if name == "step"]) >= 20, len(trace.slices)
    until = time.monotonic() + 60
    while folder.exists() and time.monotonic() < until:  # its guard may still be ending the job
        timeline("true")  # removes what was left over
    assert not folder.exists(), folder


@test_of_library
def gpulse_is_interrupted():
    with started(sys.executable, "-c", LOOP) as (child, path):
        assert "gpulse-timeline-" in child.stdout.readline()
        child.send_signal(signal.SIGINT)
        child.wait()
        said = child.stderr.read()
    assert "timeline: " in said, said
    assert Trace(path).notes()[-1].startswith("exited with status"), Trace(path).notes()


@test
def a_job_that_cannot_be_run():
    _, said = timeline("/nowhere/at-all", status=127)
    assert "cannot run" in said and "timeline:" not in said, said


@test_of_library
def a_process_that_cuts_its_file():
    """It loses its marks, but neither gpulse nor the job."""
    code = ("import ctypes, glob, os, time\n"
            f"library = ctypes.CDLL({str(Path(BUILD).resolve() / 'libgpulse.so.0')!r})\n"
            "library.gpulse_mark(b'one')\n"
            "time.sleep(1)\n"  # it is open by now, and has no name any more
            "for fd in os.listdir('/proc/self/map_files') if os.access('/proc/self/map_files', os.R_OK) else ():\n"
            "    path = '/proc/self/map_files/' + fd\n"
            "    if 'gpulse-timeline-' in os.readlink(path):\n"
            "        os.truncate(path, 0)\n"
            "        print('cut', flush=True)\n"
            "        break\n"
            "time.sleep(1)\n"
            "print('alive', flush=True)\n")
    path = SCRATCH / "cut.json"
    result = run(GPULSE, "run", "--no-record", "--timeline", path, "--", sys.executable, "-c", code, env=ENV)
    if "cut" not in result.stdout:
        raise Skip("the mapped file cannot be reached")
    assert result.returncode == 0 and "alive" in result.stdout, (result.returncode, result.stderr)
    assert Trace(path).notes()[-1] == "exited with status 0", Trace(path).notes()


@test
def a_run_that_is_refused_leaves_the_earlier_trace():
    path = SCRATCH / "earlier.json"
    earlier = '{"displayTimeUnit":"ms","traceEvents":[\n\n]}\n'
    path.write_text(earlier)
    for _ in range(2):
        result = run(GPULSE, "run", "--no-record", "-g", "9", "--timeline", path, "--", "true", env=ENV)
        assert result.returncode == 78, result
    assert path.read_text() == earlier and not path.with_name("earlier.json.1").exists()


@test
def the_disk_is_full():
    path = SCRATCH / "limited.json"
    code = ("import os, resource, signal, sys\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
            "os.execvp(sys.argv[1], sys.argv[1:])")
    result = run(sys.executable, "-c", code, GPULSE, "run", "--no-record", "--timeline", path, "--timeline-interval", "0.1s",
                 "--mark", "mark", "--", "sh", "-c", "for i in $(seq 2000); do echo mark $i; done; sleep 0.5", env=ENV)
    assert result.returncode == 0, result.stderr
    assert "the timeline is incomplete: cannot write" in result.stderr and "File too large" in result.stderr, result.stderr
    assert Trace(path).notes()[:1] in ([], ["started"]) and path.stat().st_size <= 20000


def refused(path, why, status=1, options=(), env=ENV):
    marker = SCRATCH / "it-ran"
    result = run(GPULSE, "run", "--no-record", "--timeline", path, *options, "--", "touch", marker, env=env)
    assert result.returncode == status and why in result.stderr, (result.returncode, result.stderr)
    assert not marker.exists(), "the job ran"


@test
def a_file_that_cannot_be_written():
    fifo = SCRATCH / "fifo"
    os.mkfifo(fifo)
    refused("/nowhere/trace.json", "cannot write '/nowhere/trace.json': No such file or directory",
            options=["-g", "9"])  # before it looks for GPUs, and waits
    refused("-", "--timeline needs a file", 2)
    assert not Path("-").exists()
    refused("/dev/null", "it is not a regular file")
    refused(SCRATCH, "Is a directory")
    refused(fifo, "it is not a regular file")
    (SCRATCH / "link").symlink_to("/nowhere/trace.json")
    refused(SCRATCH / "link", "No such file or directory")
    refused(SCRATCH / "x.json", "--mark '(':", 2, ["--mark", "("])
    refused(SCRATCH / "x.json", "another tool receives the NVTX ranges", 2, ["--nvtx"],
            {**ENV, "NVTX_INJECTION64_PATH": "/opt/nsys/injection.so"})


@test
def a_link_of_another_user():
    if os.geteuid() != 0:
        raise Skip("only root can prepare a file of another user")
    folder = SCRATCH / "public"
    folder.mkdir()
    folder.chmod(0o1777)
    (folder / "link").symlink_to(SCRATCH / "target")
    os.chown(folder / "link", 1234, 1234, follow_symlinks=False)
    refused(folder / "link", "it is a link created by uid 1234", 5)
    (folder / "file").write_text("")
    os.chown(folder / "file", 1234, 1234)
    refused(folder / "file", "it belongs to uid 1234", 5)


@test
def an_old_trace_is_kept():
    path = SCRATCH / "again.json"
    for _ in range(2):
        good(run(GPULSE, "run", "--no-record", "-q", "--timeline", path, "--", "true", env=ENV))
    assert Trace(path).notes() == Trace(f"{path}.1").notes() == ["started", "exited with status 0"]


@test
def a_file_that_is_no_trace_is_refused():
    script = SCRATCH / "train.py"
    link = SCRATCH / "to-train.py"
    link.symlink_to(script)
    for text in "x", "print()\n" * 50, '{"displayTimeUnit":"ns","traceEvents":[\n\n]}\n':
        script.write_text(text)
        for path in script, link:
            refused(path, f"'{path}' exists and is not a trace of gpulse; choose another file for the timeline", 2)
            refused(path, "is not a trace of gpulse", 2, options=["-g", "9"])  # before anything else is tried
            assert script.read_text() == text and not Path(f"{path}.1").exists()
    script.write_text("")
    for _ in range(2):
        good(run(GPULSE, "run", "--no-record", "-q", "--timeline", link, "--", "true", env=ENV))
    assert Trace(script).notes() and link.is_symlink() and not Path(f"{link}.1").exists()


# ---- the job's side ----

@test_of_library
def a_job_that_closes_its_descriptors_and_forks():
    trace, _ = python("""
gpulse.mark("before")
os.closerange(3, 1000)
for i in range(3):
    files = [open("/dev/null") for _ in range(5)]
    if os.fork() == 0:
        with gpulse.span(f"child {i}"):
            gpulse.mark("in a child")
        os._exit(0)
    os.wait()
gpulse.mark("after")
""")
    marks = [m for m in trace.marks if m["cat"] == "job"]
    assert sorted(m["name"] for m in marks) == ["after", "before", *["in a child"] * 3], marks
    assert len({m["pid"] for m in marks}) == 4, marks
    assert {name for _, _, name, *_ in trace.slices} >= {"child 0", "child 1", "child 2"}, trace.slices


@test_of_library
def a_flood_of_marks():
    trace, said = python("""
begin = time.monotonic()
for i in range(200000):
    gpulse.mark("flood")
print(f"{time.monotonic() - begin:.3f} s")
""")
    count = len(trace.reported())
    lost = re.search(r"(\d+) marks and ranges are missing", said)
    assert count + (int(lost[1]) if lost else 0) == 200000, (count, lost)
    assert count >= 8192, count


@test
def a_flood_of_lines():
    trace, said = timeline("sh", "-c", "yes mark | head -n 300000 >&2", options=["--mark", "mark"])
    lost = re.search(r"(\d+) marks and ranges are missing", said)
    assert len(trace.reported()) + (int(lost[1]) if lost else 0) == 300000, said[-500:]


@test_of_library
def a_job_of_many_threads():
    trace, _ = python("""
def work(number):
    for i in range(20):
        with gpulse.span(f"{number}"):
            with gpulse.span("inner"):
                pass
for round in range(3):
    threads = [threading.Thread(target=work, args=[n]) for n in range(60)]
    for t in threads: t.start()
    for t in threads: t.join()
""")
    by_name = collections.Counter(name for _, _, name, *_ in trace.slices)
    assert by_name["inner"] == 3 * 60 * 20 and all(by_name[f"{n}"] == 60 for n in range(60)), by_name


@test_of_library
def without_a_timeline_nothing_happens():
    env = {**ENV, "GPULSE_TIMELINE": "/nowhere"}
    code = "import gpulse\ngpulse.mark('x')\nwith gpulse.span('y'): pass\nprint('fine')"
    assert good(run(sys.executable, "-c", code, env=env)) == "fine\n"
    assert good(run(sys.executable, "-c", code, env={**ENV, "GPULSE_TIMELINE": "relative"})) == "fine\n"


@test_of_library
def others_cannot_enter():
    trace, _ = python("print('mode %o' % os.stat(os.environ['GPULSE_TIMELINE']).st_mode, flush=True)",
                      options=["--mark", "mode.*"])
    assert trace.reported() == ["mode 40700"], trace.reported()


@test_of_library
def processes_of_other_pid_namespaces():
    if run("unshare", "--pid", "--fork", "true").returncode != 0:
        raise Skip("no pid namespaces here")
    code = """import os, time, gpulse
with gpulse.span("one"):
    time.sleep(0.3)
    with gpulse.span("two"):
        time.sleep(0.3 * os.getpid())
"""
    trace, _ = timeline("sh", "-c", f"c='{code}'; for i in 1 2; do unshare --pid --fork {sys.executable} -c \"$c\" & sleep 0.15; "
                        "done; wait")
    pids = {pid for pid, _, name, *_ in trace.slices if name == "two"}
    assert len(pids) == 2 and all(pid > JOB_PID for pid in pids), trace.slices
    assert all(trace.names[pid].endswith("(pid 1 of a container)") for pid in pids), trace.names


@test_of_library
def little_room_for_shared_memory():
    if run("unshare", "--mount", "true").returncode != 0:
        raise Skip("no mounts here")
    small = 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"'
    code = "import os, gpulse; gpulse.mark('x'); print(os.environ['GPULSE_TIMELINE'])"
    result = run("unshare", "--mount", "sh", "-c", small, "sh", GPULSE, "run", "--no-record", "--timeline",
                 SCRATCH / "small.json", "--", sys.executable, "-c", code, env=ENV)
    assert result.stdout.startswith("/tmp/gpulse-timeline-") and "(1 mark, 0 ranges)" in result.stderr, result
    _, said = timeline("sh", "-c", ': >"$GPULSE_TIMELINE/1-0"')  # as a process without room leaves it
    assert "gpulse: 1 process could not report marks or steps: no room in /" in said, said


@test_of_library
def what_is_put_into_the_directory():
    trace, _ = python("""
place = os.environ["GPULSE_TIMELINE"]
gpulse.mark("first")
size = os.stat(os.path.join(place, os.listdir(place)[0])).st_size if os.listdir(place) else 1616424
for name, content in {"1-0": os.urandom(size), "2-0": bytes(size), "3-0": b"gpmarks1"}.items():
    with open(os.path.join(place, name), "wb") as file:
        file.write(content)
bad = bytearray(os.urandom(size))
bad[:8] = b"gpmarks1"
with open(os.path.join(place, "4-0"), "wb") as file:
    file.write(bad)
os.symlink("/etc/passwd", os.path.join(place, "5-0"))
os.mkfifo(os.path.join(place, "6-0"))
time.sleep(1)
gpulse.mark("last")
""")
    assert [m for m in trace.reported() if m in ("first", "last")] == ["first", "last"], trace.reported()[:5]


if __name__ == "__main__":
    main()
