"""Runs jobs side by side, and keeps what passed: the engine of tests/run.

A job is one command whose output is TAP. Many jobs mostly wait, so far more of them run at a time than
there are CPUs, the longest first, as long as the CPU time that they are known to need fits. How long a
job takes is kept from run to run, beside a fingerprint of what it depends on: a job whose fingerprint has
already passed need not run again.
"""
import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

HANG_SECONDS = 900  # then it hangs, unless it computes: the machine may be busy with something else
WORKS = 0.02        # of a CPU: a job that uses less only waits
OVERCOMMIT = 1.5    # of the CPUs, because what is known of a job's need is of another moment
QUIET = 0.5         # of the CPUs: busier than that, a machine is no longer quiet

# The sanitizer's own failure, now and then: it says nothing about the program.
NO_SHADOW = "ThreadSanitizer failed to allocate"


class Job:
    """One command whose output is TAP (or, for a plain job, whose exit status is its one test).

    quiet: it measures time and mostly waits; only such jobs run beside it, while half of the machine is idle.
    load: CPUs that it is thought to keep busy, seconds_guess: how long, until it has been measured.
    inputs: what it depends on, as a digest; None: it runs every time.
    then: called with its result, returns the jobs that follow from it.
    """

    def __init__(self, name, command, env, plain=False, cwd=None, quiet=False, load=0.5,
                 seconds_guess=5.0, inputs=None, then=None, seconds=HANG_SECONDS):
        self.name = name
        self.command = [str(word) for word in command]
        self.env = env
        self.plain = plain
        self.cwd = cwd
        self.quiet = quiet
        self.load = load
        self.seconds_guess = seconds_guess
        self.inputs = inputs
        self.then = then
        self.seconds = seconds

    def fingerprint(self):
        if self.inputs is None:
            return None
        ours = sorted(item for item in self.env.items() if item[0].startswith(("GPULSE_", "CMOCKA")))
        words = json.dumps([self.name, self.command, ours, self.inputs])
        return hashlib.sha256(words.encode()).hexdigest()


class Result:
    """What became of a job. failures and skipped are texts; seconds, cpu: what it took."""

    def __init__(self, passed=0, failures=(), skipped=(), log="", seconds=0.0, cpu=0.0, kept=False):
        self.passed = passed
        self.failures = list(failures)
        self.skipped = list(skipped)
        self.log = log
        self.seconds = seconds
        self.cpu = cpu
        self.kept = kept  # not run: it passed before


# ---------------------------------------------------------------- one job

GROUPS = set()  # process groups of the jobs in progress
STARTING = threading.RLock()  # held where a job starts, and where its process is reaped


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def cpu_seconds(session):
    """What the processes of a session, and those that they have waited for, have used."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def outlasts(session, ended, seconds):
    """Waits until a job has ended, and for no more than that time once it only waits, or computes without end."""
    used = 0
    while not ended.wait(seconds):
        before, used = used, cpu_seconds(session)
        if used - before < WORKS * seconds or used > seconds * (os.cpu_count() or 1):
            return True
    return False


def kill_all():
    """Kills all jobs in progress. Keeps the lock, so that no other starts: for a caller about to exit."""
    STARTING.acquire()
    for group in list(GROUPS):
        kill_group(group)


def run_process(job):
    """Runs the job in a process group of its own.

    Returns (exit status or None on time-out, output, CPU seconds). The group's id stays taken until its
    leader has been waited for, so nobody else's processes are ever signalled.
    """
    with tempfile.TemporaryFile() as out:
        with STARTING:
            process = subprocess.Popen(job.command, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.STDOUT, env=job.env, cwd=job.cwd,
                                       start_new_session=True)
            GROUPS.add(process.pid)
        hung, ended = threading.Event(), threading.Event()

        def watch():
            if outlasts(process.pid, ended, job.seconds):
                hung.set()
                kill_group(process.pid)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ended.set()
        watcher.join()
        kill_group(process.pid)  # processes that it may have left over
        with STARTING:
            _, status, usage = os.wait4(process.pid, 0)
            GROUPS.discard(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        output = out.read().decode("utf-8", "replace")
    return (None if hung.is_set() else process.returncode), output, usage.ru_utime + usage.ru_stime


def parse_tap(output):
    """Returns (passed, names of failed tests, names of skipped tests, number planned or None)."""
    passed, failures, skipped, planned = 0, [], [], None
    for line in output.splitlines():
        if match := re.match(r"1\.\.0\s+#\s*skip\S*\s*(.*)", line, re.I):  # all of it is skipped
            planned = (planned or 0) + 1
            skipped.append(match.group(1) or "without a reason")
        elif match := re.match(r"\s*1\.\.(\d+)\b", line):
            planned = (planned or 0) + int(match.group(1))
        elif match := re.match(r"\s*(not )?ok\b\s*(.*)", line):
            if re.search(r"#\s*(todo|skip)\b", line, re.I):
                skipped.append(match.group(2))
            elif match.group(1):
                failures.append(match.group(2))
            else:
                passed += 1
    return passed, failures, skipped, planned


def judge(job, status, output):
    """The result of a command that ended with this status and output."""
    if status is None:
        return Result(failures=[f"no end: it has waited for {job.seconds} s, or computes without end"], log=output)
    if job.plain:
        failures = [f"exit status {status}"] if status else []
        return Result(passed=0 if failures else 1, failures=failures, log=output)
    passed, failures, skipped, planned = parse_tap(output)
    reported = passed + len(failures) + len(skipped)
    if planned is None:
        failures.append(f"no TAP plan (exit status {status})")
    elif planned != reported:
        failures.append(f"{planned} tests planned, {reported} reported (exit status {status})")
    elif reported == 0:
        failures.append("no test in it")
    elif status and not failures:
        failures.append(f"exit status {status}")
    return Result(passed, failures, skipped, output)


def run_job(job):
    start = time.monotonic()
    try:
        status, output, cpu = run_process(job)
        if NO_SHADOW in output:
            status, output, cpu = run_process(job)
    except OSError as error:
        return Result(failures=[f"cannot run: {error}"])
    result = judge(job, status, output)
    result.seconds, result.cpu = time.monotonic() - start, cpu
    return result


# ---------------------------------------------------------------- what is kept

class Kept:
    """What earlier runs measured and passed, by the name of the job."""

    def __init__(self, path, trust_passes=True):
        self.path = Path(path)
        self.trust_passes = trust_passes
        try:
            self.rows = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.rows = {}

    def passed(self, job):
        """The result of an earlier run of the very same, or None."""
        row, print_now = self.rows.get(job.name, {}), job.fingerprint()
        if not self.trust_passes or print_now is None or row.get("fingerprint") != print_now:
            return None
        return Result(row["passed"], kept=True)

    def need(self, job):
        """(seconds, CPUs) that a job takes."""
        row = self.rows.get(job.name)
        if not row:
            return job.seconds_guess, job.load
        return row["seconds"], row["cpu"] / max(row["seconds"], 0.01)

    def add(self, job, result):
        # What was skipped might run the next time: with a program that is installed by then.
        good = not result.failures and not result.skipped
        self.rows[job.name] = {
            "seconds": round(result.seconds, 2), "cpu": round(result.cpu, 2), "passed": result.passed,
            "fingerprint": job.fingerprint() if good else None}

    def save(self):
        self.path.parent.mkdir(exist_ok=True)
        fresh = self.path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(self.rows))
        fresh.replace(self.path)


# ---------------------------------------------------------------- many jobs

class Schedule:
    """Runs jobs, those that take longest first; report(job, result) hears of each end."""

    def __init__(self, kept, report, slots, cpus):
        self.kept = kept
        self.report = report
        self.slots = slots
        self.cpus = cpus
        self.waiting = []  # (seconds, CPUs, job), longest first
        self.running = {}  # job: CPUs
        self.ended = []    # (job, result)
        self.changed = threading.Condition()

    def add(self, jobs):
        for job in jobs:
            if result := self.kept.passed(job):
                self.report(job, result)
            else:
                self.waiting.append((*self.kept.need(job), job))
        self.waiting.sort(key=lambda item: (item[2].quiet, -item[0]))

    def _fits(self, job, cpus):
        """Whether the job may start beside those that run."""
        if any(other.quiet != job.quiet for other in self.running):
            return False
        share = QUIET if job.quiet else OVERCOMMIT
        return not self.running or sum(self.running.values()) + cpus <= self.cpus * share

    def _next(self):
        """Takes the first job that may start now out of those that wait, or None."""
        if len(self.running) >= self.slots:
            return None
        for place, (_, cpus, job) in enumerate(self.waiting):
            if self._fits(job, cpus):
                del self.waiting[place]
                return job, cpus
        return None

    def _run(self, job):
        result = run_job(job)
        with self.changed:
            self.ended.append((job, result))
            self.changed.notify()

    def run(self):
        """Returns when all jobs, and those that followed from them, have ended."""
        while self.waiting or self.running:
            while found := self._next():
                job, self.running[job] = found[0], found[1]
                threading.Thread(target=self._run, args=(job,), daemon=True).start()
            with self.changed:
                self.changed.wait_for(lambda: self.ended)
                ended, self.ended = self.ended, []
            for job, result in ended:
                del self.running[job]
                self.kept.add(job, result)
                self.report(job, result)
                if job.then:
                    self.add(job.then(result))
