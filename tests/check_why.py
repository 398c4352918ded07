#!/usr/bin/env python3
"""gpulse why: real programs that starve a simulated GPU in one way each, and simulated GPUs that are slow in others.

variants: asan
"""
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

from tap import GPULSE, Skip, good, gpulse, main, run, test

scratch = tempfile.TemporaryDirectory()
SCRATCH = Path(scratch.name)
STATE = SCRATCH / "state"
STATE.mkdir(mode=0o700)
LEASES = SCRATCH / "leases"
LEASES.mkdir(mode=0o700)
SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
GIB = 1 << 30
BUSY = {"UtilizationRates": {"gpu": 97, "memory": 50}, "PowerUsage": 650000, "Temperature": 62,
        "ClockInfo": {"GRAPHICS": 1900, "SM": 1900, "MEM": 2619, "VIDEO": 1500}}
STARVED = {**BUSY, "UtilizationRates": {"gpu": 38, "memory": 20}, "PowerUsage": 280000}


def device(number, pids, answers, gpm=None, **more):
    return {
        "uuid": f"GPU-{number:08x}-0000-0000-0000-000000000000",
        "pci": {"bus_id": f"00000000:{number + 1:02X}:00.0", "device_id": "0x233010DE", "subsystem_id": "0x16C110DE"},
        "answers": {"Name": "NVIDIA H100 80GB HBM3", "MinorNumber": number, "PersistenceMode": "Enabled",
                    "MemoryInfo": {"total": 80 * GIB, "reserved": 0, "used": 70 * GIB, "free": 10 * GIB},
                    "MaxClockInfo": {"GRAPHICS": 1980, "SM": 1980, "MEM": 2619, "VIDEO": 1545},
                    "EnforcedPowerLimit": 700000, "PowerManagementDefaultLimit": 700000, "GpuSupport": 0, "GpmSupport": 0, "ProcessUtilization": 0,
                    "ComputeRunningProcesses": 0, "GraphicsRunningProcesses": 0,
                    "MaxPcieLinkGeneration": 5, "CurrPcieLinkGeneration": 5, "MaxPcieLinkWidth": 16,
                    "CurrPcieLinkWidth": 16, "PcieThroughput": {"TX": 500000, "RX": 900000},
                    "CurrentClocksEventReasons": 0, **answers},
        "gpm": gpm or {},
        "processes": [{"pid": pid, "type": "C", "memory_bytes": 40 * GIB, "name": "python", "util": util}
                      for pid, util in pids],
        **more,
    }


def machine(*devices):
    """A file of them."""
    for one in devices:
        one["answers"].pop("GpuSupport", None)
    path = SCRATCH / f"machine{len(list(SCRATCH.iterdir()))}.json"
    path.write_text(json.dumps({
        "gpulse_machine": 1, "source": "check_why",
        "driver": {"version": "580.105.08", "nvml": "13.580.105.08", "cuda": 13000}, "devices": list(devices)}))
    return path


def why(path, *words, seconds=1.5):
    """The verdicts of each GPU, and all of the document."""
    r = run(GPULSE, "--sim", path, "--sim-still", "why", "--for", f"{seconds}s", "-n", "0.1s", "-f", "json", *words,
            env={**os.environ, "GPULSE_SIM_STATE": str(STATE)})
    document = json.loads(good(r))
    return [[verdict["rule"] for verdict in gpu["verdicts"]] for gpu in document["gpus"]], document


@contextlib.contextmanager
def program(code, *words):
    """A Python program of a shell, as each is a job of its own, once it has printed its pid."""
    child = subprocess.Popen(["sh", "-c", '"$@"; :', "sh", *words, sys.executable, "-c",
                              "import os, subprocess, sys, threading, time\n" + code],
                             stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield int(child.stdout.readline())
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


@contextlib.contextmanager
def load(path, *words):
    """A simulated job, once it is on the GPU."""
    with subprocess.Popen([GPULSE, "sim", "load", "-m", path, *words], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "GPULSE_SIM_STATE": str(STATE)}) as job:
        try:
            assert " holds " in job.stdout.readline()
            yield job.pid
        finally:
            job.kill()


READY = "print(os.getpid(), flush=True)\n"
WORKER = "subprocess.Popen([sys.executable, '-c', 'while True: pass'])\n"


# ---- real programs ----

def verdict_of(code, *words):
    with program(code, *words) as pid:
        rules, document = why(machine(device(0, [(pid, 30)], STARVED)))
    return rules[0], document["gpus"][0]


@test
def a_loop_in_the_main_thread():
    rules, gpu = verdict_of(READY + "while True: pass")
    # with one CPU for it and the test, it waits for that one instead
    assert rules in (["main-thread"], ["cpu-cores"]), gpu
    assert gpu["host"]["processes"] == 1 and gpu["host"]["workers"] == 0, gpu
    assert gpu["verdicts"][0]["gain"] > 2 and "38 %" in gpu["verdicts"][0]["seen"], gpu


@test
def a_busy_thread():
    rules, gpu = verdict_of("def work():\n    while True: pass\n"
                            "threading.Thread(target=work, daemon=True).start()\n" + READY + "while True: time.sleep(1)")
    if gpu["host"]["other_threads"] < 0.95:
        raise Skip("the machine is busy: the thread got too little CPU time")
    # with one CPU for it and the test, it waits for that one instead
    assert rules in (["threads"], ["cpu-cores"]), gpu


@test
def a_program_that_sleeps():
    rules, gpu = verdict_of(READY + "while True: time.sleep(0.01)")
    assert rules == ["waiting"], gpu
    assert gpu["host"]["main_thread"] < 0.3, gpu


@test
def workers_on_one_core():
    rules, gpu = verdict_of(WORKER * 3 + READY + "while True: time.sleep(1)", "taskset", "-c",
                            str(min(os.sched_getaffinity(0))))
    assert rules == ["cpu-cores"], gpu
    assert gpu["host"]["allowed_cpus"] == 1 and gpu["host"]["workers"] == 3, gpu
    if os.cpu_count() > 1:
        assert "may run on 1 of" in gpu["verdicts"][0]["try"], gpu


@test
def a_program_that_reads_what_is_not_in_memory():
    data = SCRATCH / "data"
    data.write_bytes(os.urandom(16 << 20))
    with open(data) as file:
        os.fsync(file.fileno())
    with program(f"""import mmap
size = {16 << 20}
fd = os.open({str(data)!r}, os.O_RDONLY)
{READY}
while True:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as pages:
        pages.madvise(mmap.MADV_RANDOM)
        for at in range(0, size, 4096):
            pages[at]
""") as pid:
        _, document = why(machine(device(0, [(pid, 30)], STARVED)))
    gpu, = document["gpus"]
    if gpu["host"]["major_faults_per_s"] < 100:
        raise Skip("this file system has everything in memory")
    assert [verdict["rule"] for verdict in gpu["verdicts"]] == ["storage"], gpu
    assert "page faults a second" in gpu["verdicts"][0]["seen"], gpu


@test
def a_busy_worker():
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("one CPU")
    rules, gpu = verdict_of(WORKER + READY + "while True: time.sleep(1)")
    if gpu["host"]["workers_cpus"] < 0.8:
        raise Skip("the machine is busy: the worker got too little CPU time")
    assert rules == ["data-loader"], gpu
    assert gpu["host"]["workers"] == 1 and gpu["host"]["main_thread"] < 0.2, gpu


@test
def a_program_that_is_stopped():
    with program(READY + "while True: time.sleep(0.01)") as pid:
        os.kill(pid, signal.SIGSTOP)
        while " T " not in Path(f"/proc/{pid}/stat").read_text():
            time.sleep(0.01)
        still = {**STARVED, "UtilizationRates": {"gpu": 0, "memory": 0}}
        rules, document = why(machine(device(0, [(pid, 0)], still)))
    verdict, = document["gpus"][0]["verdicts"]
    assert verdict["rule"] == "suspended" and f"kill -CONT {pid}" in verdict["try"], verdict


@test
def a_program_that_is_idle():
    with program(READY + "time.sleep(1e6)") as pid:
        still = {**STARVED, "UtilizationRates": {"gpu": 0, "memory": 0}}
        rules, document = why(machine(device(0, [(pid, 0)], still)))
    assert rules == [["idle"]], document


@test
def a_gpu_that_its_job_does_not_use():
    with program(WORKER + READY + "time.sleep(1e6)") as pid:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        still = {**STARVED, "UtilizationRates": {"gpu": 0, "memory": 0}}
        # two ranks of one job: they have the same parent
        rules, document = why(machine(device(0, [(pid, 90)], BUSY), device(1, [(int(children[0]), 0)], still)))
    assert rules == [[], ["unused-gpu"]], document


@test
def siblings_are_one_job_in_a_recording_too():
    """Of a recording, the launcher that is above them is only known as the job's first process."""
    with program(WORKER + WORKER + READY + "time.sleep(1e6)") as pid:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        still = {**STARVED, "UtilizationRates": {"gpu": 0, "memory": 0}}
        path = machine(device(0, [(children[0], 90)], BUSY), device(1, [(children[1], 0)], still))
        alive, _ = why(path)
        tape = SCRATCH / "siblings.tape"
        good(run(GPULSE, "--sim", path, "--sim-still", "record", "-q", "-o", tape, "-n", "0.2", "--duration", "4s",
                 env={**os.environ, "GPULSE_SIM_STATE": str(STATE)}))
    words = "why", "--tape", tape, "--at", "start", "--for", "3s", "-n", "0.2s", "-f", "json"
    document = json.loads(good(run(GPULSE, *words)))
    rules = [[verdict["rule"] for verdict in gpu["verdicts"]] for gpu in document["gpus"]]
    assert rules == alive == [[], ["unused-gpu"]], (alive, document)
    assert len(json.loads(good(run(GPULSE, *words, str(pid))))["gpus"]) == 2


# ---- slow GPUs ----

SLOW = {
    "thermal": ({**BUSY, "CurrentClocksEventReasons": 0x40, "ClockInfo": {**BUSY["ClockInfo"], "SM": 1200}}, {}),
    "power-brake": ({**BUSY, "CurrentClocksEventReasons": 0x80, "ClockInfo": {**BUSY["ClockInfo"], "SM": 990}}, {}),
    "power-limit": ({**BUSY, "PowerUsage": 390000, "EnforcedPowerLimit": 400000, "CurrentClocksEventReasons": 0x4, "ClockInfo": {**BUSY["ClockInfo"], "SM": 1300}}, {}),
    "clock-limit": ({**BUSY, "CurrentClocksEventReasons": 0x2, "ClockInfo": {**BUSY["ClockInfo"], "SM": 1200}}, {}),
    "transfers": ({**BUSY, "CurrPcieLinkGeneration": 1, "PcieThroughput": {"TX": 100000, "RX": 2400000}}, {}),
    "memory-bandwidth": (BUSY, {"2": 92, "5": 6, "10": 86}),
    "tensor-cores": (BUSY, {"2": 93, "5": 1, "10": 25, "12": 72}),
}


@test
def a_gpu_that_is_slow():
    with program(READY + "while True: time.sleep(0.01)") as pid:
        rules, document = why(machine(*(device(i, [(pid, 30)], answers, gpm)
                                        for i, (answers, gpm) in enumerate(SLOW.values()))))
        small, _ = why(machine(device(0, [(pid, 90)], {**BUSY, "PowerUsage": 210000}, {"2": 20, "3": 8, "5": 4, "10": 8})))
        alone, again = why(machine(device(0, [(pid, 90)], BUSY)))
    assert rules == [[rule] for rule in SLOW], list(zip(rules, SLOW))
    assert small == [["small-kernels"]] and alone == [[]], (small, again)


@test
def a_gpu_that_has_failed_comes_first():
    """In the words of the doctor; advice about speed would mislead there. GPU 5 is hot: its clock is cut, and that is worth something."""
    r = run(GPULSE, "--sim", "sick", "why", "--for", "1s", "-n", "0.2s", "-f", "json", env={**os.environ, "GPULSE_SIM_STATE": str(STATE)})
    assert r.returncode == 6, r
    gpus = json.loads(r.stdout)["gpus"]
    assert [gpu["gpu"] for gpu in gpus] == ["2", "3", "0", "1", "5"], gpus
    lost, broken, hot = gpus[0], gpus[1], gpus[4]
    assert lost["pid"] is None and [v["rule"] for v in lost["verdicts"]] == ["gpu-fault"], lost
    assert [v["rule"] for v in broken["verdicts"]] == ["gpu-fault"], broken
    doctor = json.loads(run(GPULSE, "--sim", "sick", "doctor", "-f", "json").stdout)
    said = [f["summary"].split(": ", 1)[1] for f in doctor["findings"] if f["check"] in ("health.ecc", "health.remap")]
    assert len(said) == 2 and all(words in broken["verdicts"][0]["seen"] for words in said), (said, broken)
    assert "nvidia-smi --gpu-reset -i 3" in broken["verdicts"][0]["try"], broken
    assert hot["verdicts"][0]["rule"] == "thermal" and hot["verdicts"][0]["gain"] > 1.5, hot
    advice = good(run(GPULSE, "--sim", "sick", "advise", "-i", "3", "--for", "1s", "-n", "0.2s"))
    assert "The GPU has a fault. (certain)" in advice and "batch" not in advice, advice


@test
def ranks_that_wait_for_each_other():
    gpm = {"2": 15, "5": 3, "10": 5}
    slow = {**BUSY, "PowerUsage": 240000, "ClockInfo": {**BUSY["ClockInfo"], "SM": 1200}}
    with program(READY + "while True: time.sleep(0.01)") as pid:
        rules, document = why(machine(device(0, [(pid, 30)], {**BUSY, "PowerUsage": 240000}, gpm),
                                      device(1, [(pid, 30)], slow, gpm)))
    assert rules == [["collective"], ["straggler"]], document
    assert "GPU 1 runs at 63 % of the clock" in document["gpus"][0]["verdicts"][0]["seen"], document


@test
def another_job_on_the_gpu():
    with program(READY + "while True: time.sleep(0.01)") as one, program(READY + "while True: time.sleep(0.01)") as other:
        path = machine(device(0, [(one, 50), (other, 45)], BUSY))
        rules, document = why(path, str(one))
        verdict, = document["gpus"][0]["verdicts"]
        assert verdict["rule"] == "shared" and f"process {other}" in verdict["seen"], verdict
        assert 1.5 < verdict["gain"] < 2.2, verdict


@test
def names_of_any_length():
    for odd in ("", "x"):  # one of them is cut in the middle of a character
        with program(READY + "time.sleep(1e6)\n# " + odd + "é" * 300) as pid:
            path = machine(device(0, [(pid, 90)], BUSY))
            _, document = why(path)
            text = good(run(GPULSE, "--sim", path, "--sim-still", "why", "--for", "0.3s", "-n", "0.1s"))
        assert 10 < document["gpus"][0]["command"].count("é") < 300 and "é (pid" in text, document


@test
def a_gpu_that_another_job_has_reserved():
    with program(READY + "time.sleep(1e6)") as pid:
        path = machine(device(7, [(pid, 90)], BUSY))
        env = {**os.environ, "GPULSE_SIM_STATE": str(STATE), "GPULSE_STATE_DIR": str(LEASES)}
        holder = subprocess.Popen([GPULSE, "--sim", path, "--sim-still", "run", "--share", "--mem", "1GiB", "--quiet", "--",
                                   "sh", "-c", "echo ready; sleep 1000"], stdout=subprocess.PIPE, text=True, env=env)
        try:
            assert holder.stdout.readline() == "ready\n"
            r = run(GPULSE, "--sim", path, "--sim-still", "why", "--for", "0.5s", "-n", "0.1s", "-f", "json", env=env)
            gpu, = json.loads(good(r))["gpus"]
        finally:
            holder.send_signal(signal.SIGTERM)
            holder.communicate()
    assert [verdict["rule"] for verdict in gpu["verdicts"]] == ["wrong-gpu"], gpu
    assert f"reserved by process {holder.pid}" in gpu["verdicts"][0]["seen"], gpu


@test
def a_job_is_chosen_by_its_name():
    """The one in gpulse queue, or a part of it; that of a scheduler by its id."""
    path = machine(device(0, [], BUSY), device(1, [], BUSY))
    env = {**os.environ, "GPULSE_SIM_STATE": str(STATE), "GPULSE_STATE_DIR": str(LEASES)}
    command = [GPULSE, "--sim", path, "run", "--quiet", "--no-record"]
    load = ["--", GPULSE, "sim", "load", "--mem", "1GiB", "--for", "1h"]
    with contextlib.ExitStack() as jobs:
        for name in ("baseline", "ablation", "ablation-2"):
            child = jobs.enter_context(subprocess.Popen([*command, "--share", "--mem", "1GiB", "-i", "0,1", "--name", name, *load],
                                                        env=env, stdout=subprocess.DEVNULL))
            jobs.callback(child.send_signal, signal.SIGTERM)

        def pids():
            """Of the load of each job."""
            listed = json.loads(run(GPULSE, "--sim", path, "ps", "-f", "json", env=env).stdout)["processes"]
            return {row["pid"] for row in listed if "load --mem" in (row["command"] or "")}

        def why_job(*words):
            return run(GPULSE, "--sim", path, "why", "--for", "0.5s", "-n", "0.1s", "-f", "json", *words, env=env)
        while len(pids()) < 3:
            time.sleep(0.1)
        for word in ("base", "ablation"):  # a part of a name, and one that is a part of another one
            gpu, = json.loads(good(why_job(word)))["gpus"]
            assert gpu["pid"] in pids(), (word, gpu)
        for words, status, message in ((("a",), 1, "3 jobs match 'a'; give the PID of one: gpulse queue"),
                                       (("nobody",), 3, "no job is called 'nobody'; gpulse queue lists the jobs of gpulse run, and GPUs are selected with -i"),
                                       (("0",), 2, "'0' is not a process id"),
                                       (("a", "b"), 2, "why takes one process or job, got 2 arguments"),
                                       (("a", "--job", "7"), 2, "--job cannot be combined with"),
                                       (("--job", ","), 2, "--job takes job ids separated by commas"),
                                       (("--job", "4711"), 3, "no process on the GPUs matches 'job:4711'")):
            done = why_job(*words)
            assert done.returncode == status and message in done.stderr and not done.stdout, (words, done)


@test
def a_job_is_chosen_by_its_first_process():
    with program(WORKER + READY + "time.sleep(1e6)") as pid, program(READY + "time.sleep(1e6)") as other:
        child = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        path = machine(device(0, [(child, 90)], BUSY), device(1, [(other, 90)], BUSY))
        _, document = why(path, str(pid))
        assert [gpu["pid"] for gpu in document["gpus"]] == [child], document
        _, document = why(path)
        assert [gpu["pid"] for gpu in document["gpus"]] == [child, other], document


@test
def a_job_that_was_suspended():
    path = machine(device(0, [], BUSY))
    with load(path, "--mem", "5GiB") as pid:
        good(run(GPULSE, "--sim", path, "suspend", str(pid), "--yes", env={**os.environ, "GPULSE_SIM_STATE": str(STATE)}))
        for words in ((), (str(pid),)):
            rules, document = why(path, *words)
            assert rules == [["suspended"]], document
            assert document["gpus"][0]["verdicts"][0]["try"] == f"gpulse resume {pid}", document


# ---- what changes while it looks ----

def follow(path, change, *words, seconds=4, before=()):
    """The rules of each GPU, while change() is called again and again."""
    env = {**os.environ, "GPULSE_SIM_STATE": str(STATE)}
    with subprocess.Popen([*before, GPULSE, "--sim", path, "--sim-still", "why", "--for", f"{seconds}s", "-n", "0.1s", "-f", "json",
                           *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            change()
        out, errors = child.communicate()
    assert child.returncode == 0, errors
    document = json.loads(out)
    return [[verdict["rule"] for verdict in gpu["verdicts"]] for gpu in document["gpus"]], document


def sim(*words):
    good(run(GPULSE, "sim", *words, env={**os.environ, "GPULSE_SIM_STATE": str(STATE)}))


@test
def counters_that_grow():
    for rule, counter, step in (("ecc", "TotalEccErrors.corrected.volatile", 1), ("pcie-replays", "94", 50)):
        with program(READY + "while True: time.sleep(0.01)") as pid:
            path = machine(device(0, [(pid, 90)], BUSY, fields={"94": 7}))  # 94: the counter of replays
            value = [7]

            def grow():
                sim("fault", "-m", path, "-g", "0", f"set={counter}={value[0]}")
                value[0] += step
                time.sleep(0.1)

            grow()
            rules, document = follow(path, grow)
        assert rules == [[rule]], (rule, document)


@test
def memory_that_is_freed_and_allocated_again():
    path = machine(device(0, [], {**BUSY, "MemoryInfo": {"total": 80 * GIB, "reserved": 0, "used": 0, "free": 80 * GIB}}))
    with load(path, "--mem", "79GiB", "--churn", "30GiB", "--util", "95") as pid:
        rules, document = follow(path, lambda: time.sleep(0.1), str(pid))
        assert rules == [["memory-full"]], document
    with program(READY + "while True: time.sleep(0.01)") as pid:
        # the memory of another job that comes and goes says nothing about this one
        path = machine(device(0, [(pid, 90)], {**BUSY, "MemoryInfo": {"total": 80 * GIB, "reserved": 0, "used": 40 * GIB,
                                                                      "free": 40 * GIB}}))
        rules, document = follow(path, lambda: sim("load", "-m", path, "--mem", "39GiB", "--for", "0.4s"), str(pid))
        assert "memory-full" not in rules[0], document


@test
def processes_that_start_one_after_the_other():
    """Each job of a shell is a process that starts, and when it ends the GPU has none."""
    path = machine(device(0, [], {**BUSY, "PersistenceMode": "Disabled"}))

    def job():
        sim("load", "-m", path, "--mem", "1GiB", "--for", "0.5s")
        time.sleep(0.4)

    rules, document = follow(path, job)
    assert "persistence" in rules[0], document


@test
def a_job_that_fills_its_mig_instance():
    made = json.loads((Path(os.environ["GPULSE_BUILD"]) / "sim/machines/a100-mig.json").read_text())
    for key in ("host", "workload"):
        made.pop(key)
    path = SCRATCH / "mig.json"
    path.write_text(json.dumps(made))
    with subprocess.Popen([GPULSE, "sim", "load", "-m", path, "-g", "0", "--mem", "19GiB"], stderr=subprocess.DEVNULL,
                          env={**os.environ, "GPULSE_SIM_STATE": str(STATE)}) as job:
        try:
            while not (found := why(path))[0]:
                assert job.poll() is None
            rules, document = found
        finally:
            job.terminate()
    assert document["gpus"][0]["gpu"] == "0:0" and rules == [["mig-slice"]], document


@test
def a_program_in_swap():
    """A real program. Of its files in /proc, one says that it has page faults, another that its memory is in swap."""
    if os.geteuid() != 0 or run("unshare", "--mount", "true").returncode != 0:
        raise Skip("needs root, and mount namespaces")
    with program(READY + "while True: time.sleep(0.01)") as pid:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)
        rest = fields[1].split()
        stat, status = SCRATCH / "stat", SCRATCH / "status"
        status.write_text(re.sub(r"VmSwap:.*", "VmSwap:\t 2097152 kB", Path(f"/proc/{pid}/status").read_text()))
        faults = [1000000]  # of constant width, so that a write replaces all of it at once

        def fault():
            faults[0] += 20
            text = f"{fields[0]}) " + " ".join([*rest[:9], str(faults[0]), *rest[10:]]) + "\n"
            with open(stat, "r+" if stat.exists() else "w") as file:
                file.write(text)
            time.sleep(0.1)

        fault()
        mounted = ["unshare", "--mount", "sh", "-c", f'mount --bind {stat} /proc/{pid}/stat && '
                   f'mount --bind {status} /proc/{pid}/status && exec "$@"', "sh"]
        rules, document = follow(machine(device(0, [(pid, 30)], STARVED)), fault, before=mounted)
    assert rules == [["swapped"]], document
    assert "2.0 GiB of its memory are in swap" in document["gpus"][0]["verdicts"][0]["seen"], document


@test
def a_program_on_the_other_socket():
    if os.sched_getaffinity(0) < {0, 1}:
        raise Skip("needs CPUs 0 and 1")
    transfers = {"PcieThroughput": {"TX": 3000000, "RX": 9000000}}
    for cpu, expected in ((1, ["numa"]), (0, [])):
        with program(READY + "while True: pass", "taskset", "-c", str(cpu)) as pid:
            path = machine(device(0, [(pid, 90)], {**BUSY, **transfers}))
            made = json.loads(path.read_text())
            made["topology"] = {"levels": ["NODE"], "cpus": ["0", "1"], "nodes": ["0", "1"]}
            path.write_text(json.dumps(made))
            rules, document = why(path)
        assert rules == [expected], (cpu, document)


# ---- gpulse advise ----

def advise(path, *words):
    return run(GPULSE, "--sim", path, "--sim-still", "advise", "--for", "1.5s", "-n", "0.1s", *words,
               env={**os.environ, "GPULSE_SIM_STATE": str(STATE), "GPULSE_STATE_DIR": str(LEASES)})


@test
def what_to_change_in_a_program():
    loop = READY + "while True: pass"
    with program(loop, "env", "-u", "OMP_NUM_THREADS", "CUDA_LAUNCH_BLOCKING=1") as pid:
        path = machine(device(0, [(pid, 30)], STARVED))
        gpu, = json.loads(good(advise(path, str(pid), "-f", "json")))["gpus"]
        text = good(advise(path))
    first, *others = gpu["advice"]
    assert gpu["pid"] == pid and gpu["environment_known"], gpu
    assert first["advice"] == "environment" and first["confidence"] == "certain", gpu
    assert first["change"] == "unset CUDA_LAUNCH_BLOCKING", gpu
    assert f"(pid {pid}" in text and "    do    unset CUDA_LAUNCH_BLOCKING\n" in text, text
    if others:  # a CPU is free
        assert others[0]["advice"] == "workers" and "num_workers=" in others[0]["change"] and others[0]["gain"] > 2, gpu


@test
def nothing_to_advise():
    with program(READY + "while True: time.sleep(0.01)", "env", "-u", "CUDA_LAUNCH_BLOCKING") as pid:
        busy = good(advise(machine(device(0, [(pid, 90)], BUSY))))
        still = {**STARVED, "UtilizationRates": {"gpu": 0, "memory": 0}}
        idle = good(advise(machine(device(0, [(pid, 0)], still))))
    assert "\n  Nothing to advise.\n    seen  GPU busy 97 % of the time" in busy and "but" not in busy.split("seen")[1], busy
    assert f"    but   The job holds the GPU, but is idle. See gpulse why {pid}.\n" in idle, idle
    r = run(GPULSE, "--sim", machine(device(0, [], BUSY)), "advise", "--for", "0.5s", "-n", "0.1s")
    assert good(r) == "No process uses a GPU.\n", r
    r = run(GPULSE, "--sim", "h100x8", "advise", "x")
    assert r.returncode == 3 and "no job is called 'x'; gpulse queue lists" in r.stderr, r


# ---- the summary of gpulse run ----

def run_job(seconds):
    """Runs a simulated job that uses 30 % of a GPU; its messages, its record, and what is said of that later."""
    path = machine(device(0, [], {**STARVED, "UtilizationRates": {"gpu": 0, "memory": 0}, "MemoryInfo": {"total": 80 * GIB, "reserved": 0, "used": 0, "free": 80 * GIB}}))
    env = {**os.environ, "GPULSE_SIM_STATE": str(STATE), "GPULSE_STATE_DIR": str(LEASES)}
    folder = SCRATCH / f"record{len(list(SCRATCH.iterdir()))}"
    r = run(GPULSE, "--sim", path, "run", "-i", "0", "--dir", folder, "--", GPULSE, "sim", "load", "--util", "30",
            "--for", f"{seconds}s", env=env)
    good(r)
    return r.stderr, json.loads((folder / "run.json").read_text()), good(run(GPULSE, "explain", folder, env=env))


@test
def why_a_job_was_slow():
    stderr, record, explained = run_job(45)
    verdict, = record["verdicts"]
    assert verdict["rule"] == "waiting" and verdict["gpu"] == "0" and verdict["share"] == 1, record
    busy = re.match(r"GPU busy (29|30|31) % of the time", verdict["seen"])  # its samples are not all the same
    assert busy and f"{busy[0]}; main thread busy 0 %" in verdict["seen"] and verdict["gain"] > 3, record
    assert "py-spy dump --pid PID" in verdict["try"], record  # its own is over
    lines = stderr.splitlines()
    at = lines.index(next(line for line in lines if "gpulse: The GPU waits for the program" in line))
    assert f"(possible, 100 % of the time; GPU 0: {busy[0]}" in lines[at], stderr
    assert lines[at + 1].startswith("      -> look for sleeps, locks") and lines[at + 1].endswith("times as fast"), stderr
    assert ("    The GPU waits for the program, which waits for something else. (possible, 100 % of the time; "
            f"GPU 0: {busy[0]}") in explained, explained
    assert "\n      -> look for sleeps, locks" in explained, explained


@test
def a_short_job_is_not_judged():
    stderr, record, _ = run_job(7)
    assert record["verdicts"] is None and "of the time" not in stderr, (record, stderr)


# ---- the command ----

@test
def a_simulated_host():
    _, document = why("h100x8")
    assert [gpu["gpu"] for gpu in document["gpus"]] == ["0", "1", "2", "3", "4", "5"], document
    by_gpu = {gpu["gpu"]: [verdict["rule"] for verdict in gpu["verdicts"]] for gpu in document["gpus"]}
    assert by_gpu["0"] == [] and by_gpu["4"] == ["low-use"] and by_gpu["5"] == ["idle"], by_gpu
    assert document["schema"] == "gpulse.why/1" and document["gpus"][0]["user"] == "mia"


@test
def text_and_nothing():
    r = gpulse("--sim", "h100x8", "why", "--for", "0.5s", "-n", "0.1s", "-i", "0", env={"GPULSE_SIM_STATE": str(STATE)})
    lines = good(r).splitlines()
    assert lines[0].startswith("GPU 0  NVIDIA H100 80GB HBM3 · python train.py --config llama-8b.yaml (pid 4190001, mia)"), lines
    assert lines[1] == "  Nothing stands out." and lines[2].startswith("    seen  GPU busy 9"), lines
    r = run(GPULSE, "--sim", machine(device(0, [], BUSY)), "why", "--for", "0.5s", "-n", "0.1s")
    assert good(r) == "No process uses a GPU.\n", r
    r = gpulse("--sim", "h100x8", "why", "--for", "3s", "-i", "0", env={"GPULSE_SIM_STATE": str(STATE)})
    assert "gpulse: observing for 3 s" in r.stderr, r


@test
def it_goes_on_with_watch():
    child = subprocess.Popen([GPULSE, "--sim", "h100x8", "why", "--watch", "--for", "0.3s", "-n", "0.1s", "-i", "0"],
                             stdout=subprocess.PIPE, text=True, env={**os.environ, "GPULSE_SIM_STATE": str(STATE)})
    seen = 0
    while seen < 3:
        line = child.stdout.readline()
        assert line, "it ended"
        seen += "Nothing stands out" in line
    child.send_signal(signal.SIGINT)
    child.stdout.read()
    assert child.wait() in (130, -signal.SIGINT), child.returncode
    child.stdout.close()


@test
def a_document_per_line_with_watch():
    child = subprocess.Popen([GPULSE, "--sim", "h100x8", "why", "--watch", "--for", "0.3s", "-n", "0.1s", "-f", "ndjson"],
                             stdout=subprocess.PIPE, text=True, env={**os.environ, "GPULSE_SIM_STATE": str(STATE)})
    for _ in range(2):
        assert len(json.loads(child.stdout.readline())["gpus"]) == 6
    child.send_signal(signal.SIGINT)
    child.communicate()


@test
def wrong_words():
    for words, text in ((["0"], "'0' is not a process id"),
                        (["1", "2"], "why takes one process or job"), (["--for", "0.5s"], "at least twice"),
                        (["-n", "1ms"], "at least 0.1s"), (["-f", "text,json"], "one of: text json ndjson"),
                        (["--watch", "-f", "json"], "-f ndjson")):
        r = run(GPULSE, "--sim", "h100x8", "why", *words)
        assert r.returncode == 2 and text in r.stderr, r
    r = run(GPULSE, "--sim", "h100x8", "why", "--for", "0.3s", "-n", "0.1s", "999999")
    assert r.returncode == 3 and "neither process 999999 nor one that it started uses a GPU" in r.stderr, r


@test
def the_commands_that_it_advises_exist():
    """In the texts of the rules and of the advice: names of commands, options and settings."""
    text = re.sub(r'"\s*"', "", "".join((SOURCE / f"src/why/{part}.c").read_text() for part in ("rules_job", "rules_gpu", "advice")))
    listed = good(gpulse("--sim", "h100x8", "set", "--list"))
    settings = {line.partition("=")[0] for line in listed.splitlines() if line[:1].isalpha()}
    commands = re.findall(r"gpulse ([a-z-]+)((?: --?[a-z-]+| [a-z-]+=[a-zA-Z]+)*)", text)
    assert len(commands) >= 12, commands
    for command, rest in commands:
        usage = good(gpulse(command, "--help"))
        for word in rest.split():
            name, is_setting, _ = word.partition("=")
            assert name in settings if is_setting else word == "-i" or word in usage, (command, word)


@test
def each_rule_is_documented():
    words = re.findall(r'GP_WHY_RULE\(\w+, "([a-z-]+)"', (SOURCE / "src/why/rules.def").read_text())
    page = (SOURCE / "docs/schema.md").read_text()
    words += re.findall(r'GP_ADVICE\(\w+, "([a-z-]+)"', (SOURCE / "src/why/advice.def").read_text())
    assert len(words) >= 38 and not [word for word in words if f"`{word}`" not in page], words


if __name__ == "__main__":
    main()
