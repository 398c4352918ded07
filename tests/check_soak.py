#!/usr/bin/env python3
"""Two gpulse loops on 8 GPUs while processes come and go a hundred times a second and something breaks
again and again: no value that is shown was ever untrue, nothing that was there is missing, and memory,
threads and open files stay as they are.

It lasts GPULSE_SOAK seconds, 5 unless told (`make soak` tells it an hour).

variants: release
needs: quiet
"""
import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path

from tap import BUILD, GPULSE, good, gpulse, main, run, test

SECONDS = float(os.environ.get("GPULSE_SOAK", "5"))
FAULT_EVERY = min(10.0, SECONDS / 12)
# Nothing is injected for so long at the beginning and at the end.
QUIET = min(10.0, SECONDS / 8)
# The return of a lost GPU shows all of them anew, and may take so long behind the end of the fault.
RETURN = 4.0
CHURN = Path(BUILD) / "tests/soak/churn"
GPUS = 8
# Threads of the pool start when a GPU is first slow, and touch their stacks then: a short run is still
# warming up, and finds what leaks a snapshot; an hour has 9000 of them behind that.
GROWTH_KIB = 512 if SECONDS >= 1800 else 2048
# What goes wrong; the ones that slow a GPU down stay below the loop's own patience.
FAULTS = ["lost", "absurd", "deny", "slow=30ms", "hang=300ms", "grow", "error=UNKNOWN",
          "error=NOT_FOUND:nvmlDeviceGetProcessUtilization", "deny:nvmlDeviceGetComputeRunningProcesses",
          "absurd:nvmlDeviceGetMemoryInfo", "error=TIMEOUT:nvmlDeviceGetFieldValues"]
# The values that never move on this machine, and those that do.
STILL = ("temperature.gpu", "power.draw", "utilization.gpu", "memory.total", "clocks.current.sm", "name")
DEVICES = "timestamp,index,status,memory.used," + ",".join(STILL)
PROCESSES = "timestamp,index,status,pid,used_gpu_memory"


class Monitor:
    """A gpulse loop, and what it costs."""

    def __init__(self, fields, folder, env, *words):
        self.path = Path(folder) / f"{len(words)}.ndjson"
        self.error_path = self.path.with_suffix(".err")
        command = [GPULSE, "--sim-still", "--root", f"{folder}/root", "query", fields, *words, "-f", "ndjson",
                   "-n", "0.2"]
        with self.path.open("wb") as out, self.error_path.open("wb") as error:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=error,
                                            env=env)
        self.costs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def measure(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        number = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if len(line.split()) > 1}
        self.costs.append((int(number["VmRSS"]), int(number["Threads"]), self.count_files()))

    def count_files(self):
        """The least of some looks: these come in step with the loop, and it may just read a file of /proc."""
        counts = []
        for _ in range(5):
            counts.append(len(os.listdir(f"/proc/{self.process.pid}/fd")))
            time.sleep(0.03)
        return min(counts)

    def end(self):
        self.process.terminate()
        self.process.wait()
        assert self.process.returncode == 130, f"{self.process.returncode}: {self.error_path.read_text()}"

    def rows(self):
        """One at a time: an hour has millions."""
        with self.path.open() as lines:
            for line in lines:
                yield json.loads(line)


@contextlib.contextmanager
def churning(path, env):
    """Processes that come and go, the truth about them in a file."""
    with path.open("wb") as out:
        churn = subprocess.Popen([CHURN, "100", "2", "1"], stdin=subprocess.DEVNULL, stdout=out, env=env,
                                 start_new_session=True)
    try:
        yield
        churn.terminate()
        churn.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(churn.pid, signal.SIGKILL)
        churn.wait()


def inject(machine, env, until):
    """Breaks something, mends it, and so on. Yields the faults so far: (gpu, kind, from, to)."""
    broken = []
    chance = random.Random(1)
    order = []
    while time.time() + FAULT_EVERY < until:
        order = order or chance.sample(FAULTS, len(FAULTS))
        gpu = chance.randrange(GPUS)
        fault = order.pop()
        begin = time.time()
        good(gpulse("sim", "fault", "-m", machine, "--gpu", gpu, fault, env=env))
        time.sleep(FAULT_EVERY / 2)
        good(gpulse("sim", "fault", "-m", machine, "--gpu", gpu, "clear", env=env))
        broken.append((gpu, fault, begin, time.time()))
        time.sleep(max(0, begin + FAULT_EVERY - time.time()))
        yield broken


class Job:
    def __init__(self, gpu, size, before, after):
        self.gpu, self.size = gpu, size
        self.possibly, self.surely = before, after  # from these moments on
        self.surely_until, self.possibly_until = float("inf"), float("inf")

    def was_possible(self, begin, end):
        return self.possibly <= end and self.possibly_until >= begin

    def was_sure(self, begin, end):
        return self.surely <= begin and self.surely_until >= end


def read_truth(path):
    """pid → its jobs, in order."""
    jobs = defaultdict(list)
    for line in path.read_text().splitlines():
        kind, pid, *numbers = line.split()
        if kind == "+":
            gpu, size, before, after = map(int, numbers)
            jobs[int(pid)].append(Job(gpu, size, before / 1e6, after / 1e6))
        elif kind == "-":
            job = jobs[int(pid)][-1]
            job.surely_until = int(numbers[0]) / 1e6
            job.possibly_until = int(numbers[1]) / 1e6 or job.possibly_until
        elif jobs[int(pid)]:  # one that found no room has said nothing
            job = jobs[int(pid)][-1]
            job.possibly_until = min(job.possibly_until, int(numbers[0]) / 1e6)
    return jobs


class Truth:
    def __init__(self, path, broken):
        self.jobs = read_truth(path)
        self.broken = broken
        self.by_second = defaultdict(list)  # for speed: the jobs possible in each second
        for pid, jobs in self.jobs.items():
            for job in jobs:
                last = min(job.possibly_until, job.possibly + 600)
                for second in range(int(job.possibly), int(last) + 1):
                    self.by_second[second].append((pid, job))

    def was_well(self, gpu, begin, end):
        """Nothing was injected into it, and no lost GPU is about to return."""
        return not any(start <= end and begin <= stop + RETURN
                       for where, fault, start, stop in self.broken if where == gpu or fault == "lost")

    def around(self, gpu, begin, end):
        """The jobs on the GPU that may have been there in this time."""
        seen = set()
        for second in range(int(begin), int(end) + 1):
            for pid, job in self.by_second[second]:
                if job.gpu == gpu and id(job) not in seen and job.was_possible(begin, end):
                    seen.add(id(job))
                    yield pid, job


def moment(row):
    """The end of its millisecond."""
    return datetime.fromisoformat(row["timestamp"]).timestamp() + 0.001


def with_times(rows):
    """Rows with the time in which they were read: behind the snapshot before, up to their own moment. The
    rows of the first one are left out."""
    before = end = None
    for row in rows:
        if moment(row) != end:
            before, end = end, moment(row)
        if before is not None:
            yield row, before - 0.001, end


class Findings(list):
    """What is wrong: all of it is counted, the first ones are shown."""

    def expect(self, right, text):
        if not right:
            self.append(text())

    def __str__(self):
        return "\n".join([f"{len(self)} findings", *self[:10]])


def check_devices(rows, truth, first, findings):
    compared = 0
    for row, begin, end in with_times(rows):
        for field in STILL:
            if row[field] is not None and field not in row.get("reasons", {}):
                findings.expect(row[field] == first[row["index"]][field], lambda: f"untrue: {field} in {row}")
                compared += 1
        if row["memory.used"] is None or "memory.used" in row.get("reasons", {}):
            continue
        jobs = list(truth.around(row["index"], begin, end))
        used = row["memory.used"] - first[row["index"]]["memory.used"]
        least = sum(job.size for _, job in jobs if job.was_sure(begin, end))
        most = sum(job.size for _, job in jobs)
        findings.expect(least <= used <= most, lambda: f"untrue: {least} <= {used} <= {most} in {row}")
        compared += 1
    return compared


def check_processes(rows, truth, findings):
    compared = expected = 0
    shown = defaultdict(set)
    times = {}
    for row, begin, end in with_times(rows):
        times[end] = begin
        shown[end, row["index"]].add(row["pid"])
        if row["used_gpu_memory"] is None or "used_gpu_memory" in row.get("reasons", {}):
            continue
        jobs = [job for job in truth.jobs.get(row["pid"], []) if job.was_possible(begin, end)]
        findings.expect(
            any(job.gpu == row["index"] and job.size == row["used_gpu_memory"] for job in jobs),
            lambda: f"untrue: {row}; jobs of this pid: {[vars(j) for j in truth.jobs.get(row['pid'], [])]}")
        compared += 1
    for end, begin in times.items():
        for gpu in range(GPUS):
            if not truth.was_well(gpu, begin, end):
                continue
            sure = {pid for pid, job in truth.around(gpu, begin, end) if job.was_sure(begin, end)}
            findings.expect(sure <= shown[end, gpu],
                            lambda: f"missing on GPU {gpu} at {end}: {sorted(sure - shown[end, gpu])}")
            expected += len(sure)
    return compared, expected


def check_costs(monitor, name):
    half = len(monitor.costs) // 2
    early, late = monitor.costs[half // 2:half], monitor.costs[half:]
    growth = max(c[0] for c in late) - max(c[0] for c in early)
    print(f"# {name}: RSS {late[-1][0]} KiB ({growth:+} KiB in the second half), {late[-1][1]} threads, "
          f"{late[-1][2]} open files")
    assert growth <= GROWTH_KIB, [c[0] for c in monitor.costs]
    assert late[-1][1] <= 1 + 1 + GPUS, [c[1] for c in monitor.costs]
    assert max(c[2] for c in late) <= max(c[2] for c in early), [c[2] for c in monitor.costs]


def make_machine(folder):
    """Eight GPUs without work of their own."""
    machine = json.loads((Path(BUILD) / "sim/machines/h100.json").read_text())
    machine["workload"] = []
    path = f"{folder}/m.json"
    Path(path).write_text(json.dumps(machine))
    os.mkdir(f"{folder}/root")
    return path


@test
def nothing_untrue_nothing_missing_nothing_leaked():
    with tempfile.TemporaryDirectory() as folder:
        machine = make_machine(folder)
        env = dict(os.environ, GPULSE_SIM_STATE=folder, GPULSE_SIM=machine)
        first = {row["index"]: row for row in json.loads(good(gpulse(
            "--sim-still", "query", DEVICES, "-f", "json", env=env)))["gpus"]}
        truth_path = Path(folder) / "truth"
        broken = []
        with contextlib.ExitStack() as running:
            devices = running.enter_context(Monitor(DEVICES, folder, env))
            processes = running.enter_context(Monitor(PROCESSES, folder, env, "--processes"))
            running.enter_context(churning(truth_path, env))
            end = time.time() + SECONDS
            time.sleep(QUIET)
            for broken in inject(machine, env, end - QUIET):
                devices.measure()
                processes.measure()
            time.sleep(max(0, end - time.time()))
            devices.end()
            processes.end()
        truth = Truth(truth_path, broken)
        jobs = sum(len(jobs) for jobs in truth.jobs.values())
        print(f"# {SECONDS:.0f} s: {jobs} processes, {len(broken)} faults")
        findings = Findings()
        of_gpus = check_devices(devices.rows(), truth, first, findings)
        of_processes, expected = check_processes(processes.rows(), truth, findings)
        print(f"# compared: {of_gpus} values of GPUs and {of_processes} of processes; "
              f"{expected} times a process had to be there")
        assert min(of_gpus, of_processes) > 100 * SECONDS, (of_gpus, of_processes)
        assert expected > 0
        check_costs(devices, "GPUs")
        check_costs(processes, "processes")
        assert not findings, findings


main()
