#!/usr/bin/env python3
"""Many jobs of gpulse run at once on eight simulated GPUs: none is promised twice, all get their turn,
and what is killed leaves nothing behind.

variants: release
"""
import atexit
import contextlib
import fcntl
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from tap import main, needs_terminal, test

BUILD = Path(os.environ.get("GPULSE_BUILD", Path(__file__).resolve().parent.parent / "build"))
GPULSE = BUILD / "gpulse"
JOBS = int(os.environ.get("GPULSE_RUN_JOBS", 64))
KILLS = int(os.environ.get("GPULSE_RUN_KILLS", 100))
LIMIT_S = 600  # only a broken program meets it
DELAY_S = float(os.environ.get("GPULSE_RUN_DELAY", 1.0))


class Machine:
    """Eight GPUs on which nothing runs, and a folder of leases that all users share."""

    def __init__(self):
        # not below $TMPDIR, which may be this user's alone
        self.folder = Path(tempfile.mkdtemp(prefix="gpulse-run-", dir="/tmp"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        machine = json.loads((BUILD / "sim/machines/h100.json").read_text())
        machine["workload"] = []
        self.file = self.folder / "m.json"
        self.file.write_text(json.dumps(machine))
        (self.folder / "leases").mkdir()
        (self.folder / "leases").chmod(0o1777)

    def environment(self, user):
        leases = self.folder / "leases"
        if not leases.exists():
            leases.mkdir()
            leases.chmod(0o1777)
        state = self.folder / f"sim-{user}"
        if not state.exists():
            state.mkdir(mode=0o700)
            if user:
                os.chown(state, user, user)
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "GPULSE_"))}
        return {**keep, "GPULSE_SIM": str(self.file), "GPULSE_SIM_STATE": str(state),
                "GPULSE_STATE_DIR": str(self.folder / "leases"), "GPULSE_SIM_TIMEOUT": "5m"}

    def start(self, arguments, user=0, **options):
        as_user = {"user": user, "group": user, "extra_groups": []} if user else {}
        return subprocess.Popen([GPULSE, *arguments], env=self.environment(user), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True, **as_user, **options)

    def queue(self):
        out = subprocess.run([GPULSE, "queue", "-f", "json"], env=self.environment(0), check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        return json.loads(out)["leases"]

    def close(self):
        shutil.rmtree(self.folder)


def read_proc(pid, name):
    """A file of a process; empty for one that has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def all_pids():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def marked_processes(folder):
    """Processes that were started with this folder of leases, or have it in their arguments."""
    word = f"GPULSE_STATE_DIR={folder}/leases".encode()
    return [pid for pid in all_pids() if word in read_proc(pid, "environ").split(b"\0")
            or str(folder).encode() in read_proc(pid, "cmdline")]


def stat_of(pid):
    """State, parent, group and session of a process; None for one that has ended."""
    fields = read_proc(pid, "stat").rpartition(b")")[2].split()
    return (fields[0].decode(), *map(int, fields[1:4])) if fields else None


def children_of(pid):
    stats = {child: stat_of(child) for child in all_pids()}
    return [child for child, stat in stats.items() if stat and stat[0] != "Z" and stat[1] == pid]


def no_gpu_twice(leases):
    held = [uuid for lease in leases if lease["state"] == "held" for uuid in lease["uuids"]]
    assert len(held) == len(set(held)), (held, leases)


def other_user():
    """A second user, where this test may be one and that one may run the program: leases are among users."""
    open_to_all = all(folder.stat().st_mode & 0o5 == 0o5 for folder in GPULSE.resolve().parents)
    return 65534 if os.geteuid() == 0 and open_to_all else 0


@test
def nobody_is_promised_what_another_one_has():
    machine = Machine()
    rng = random.Random(7)
    running = {}
    for n in range(JOBS):
        user = other_user() if n % 2 else 0
        memory = f"{rng.randint(1, 70)}GiB"
        # as a training does: it takes its memory long after it was started
        job = f"until test -e {machine.folder}/go; do sleep 0.1; done; sleep {rng.uniform(0, DELAY_S):.2f}; " \
              f"exec {GPULSE} sim load --mem {memory} --for 0.3s"
        running[n] = machine.start(["run", "--wait", "-n", str(rng.choice([1, 1, 1, 2])), "--", "sh", "-c", job], user)
    peak = 0
    while any(p.poll() is None for p in running.values()):
        leases = machine.queue()
        no_gpu_twice(leases)
        held = [lease for lease in leases if lease["state"] == "held"]
        peak = max(peak, len(held))
        if peak >= 5 or sum(len(lease["uuids"]) for lease in held) >= 7:  # one may wait for two
            (machine.folder / "go").touch()
        time.sleep(0.05)
    for n, process in running.items():
        out, err = process.communicate()
        assert process.returncode == 0, (n, process.returncode, out, err)
        assert "out of memory" not in err, err
    assert peak >= 5, f"at most {peak} ran at the same time"
    assert machine.queue() == []
    assert marked_processes(machine.folder) == []
    machine.close()


@test
def who_asks_first_comes_first():
    machine = Machine()
    order = machine.folder / "order"
    order.touch()
    first = machine.start(["run", "-n", "8", "--", "sleep", "1000"])
    while not machine.queue():
        time.sleep(0.02)
    waiting = []
    for n in range(8):
        waiting.append(machine.start(["run", "--wait", "-n", "8", "--", "sh", "-c", f"echo {n} >>{order}"]))
        while sum(lease["state"] == "waiting" for lease in machine.queue()) <= n:
            time.sleep(0.02)
    os.kill(first.pid, signal.SIGTERM)
    for process in (first, *waiting):
        process.communicate()
    assert order.read_text().split() == [str(n) for n in range(8)], order.read_text()
    machine.close()


# How the children of a job try to leave it; {sleep} has the folder in its arguments.
ESCAPES = [
    "{sleep} &",
    "setsid {sleep} &",
    "nohup {sleep} >/dev/null 2>&1 &",
    "env -i {sleep} &",
    "env -i setsid {sleep} &",
    "(setsid {sleep} &)",
    "(env -i setsid nohup {sleep} >/dev/null 2>&1 &)",
]


def kill(pid):
    with contextlib.suppress(ProcessLookupError):  # it has ended with another one
        os.kill(pid, signal.SIGKILL)


def kill_supervisor(supervisor, _):
    kill(supervisor.pid)
    supervisor.wait()


def kill_guard(supervisor, _):
    """Of a job that runs; its supervisor cleans up, and says why the job has ended."""
    for guard in children_of(supervisor.pid):
        if children_of(guard):
            kill(guard)
            _, words = supervisor.communicate(timeout=LIMIT_S)
            assert f"guard (process {guard}) was killed" in words, (supervisor.returncode, words)
            assert supervisor.returncode == (1 if "cannot start" in words else 137), supervisor.returncode


def kill_job(supervisor, _):
    """The first process of a job; its supervisor cleans up."""
    for guard in children_of(supervisor.pid):
        for child in children_of(guard):
            if (stat_of(child) or ())[2:] == (child, supervisor.pid):  # leads a group in this session
                kill(child)
                supervisor.communicate(timeout=LIMIT_S)
                assert supervisor.returncode == 137, supervisor.returncode


def kill_by_name(supervisor, name):
    """As pkill -f does."""
    for pid in all_pids():
        if name.encode() in read_proc(pid, "cmdline"):
            kill(pid)
    supervisor.wait()


class Bystanders:
    """Processes that look like a job's, and one that starts processes for jobs, as a service manager does."""

    def __init__(self, machine):
        folder = machine.folder
        os.mkfifo(folder / "orders")
        names = ["job-guard", f"sleeper:{folder}", f"train-{folder}-x", "gpulse"]
        self.processes = [subprocess.Popen([name, "1000000"], executable=shutil.which("sleep"),
                                           env=machine.environment(0), start_new_session=n % 2 == 0)
                          for n, name in enumerate(names)]
        serve = f"for i in 1 2 3; do read -r _; sleep 1000000 & done <>{folder}/orders; wait"
        self.server = subprocess.Popen(["bash", "-c", serve, str(folder)], env=machine.environment(0))
        self.processes.append(self.server)

    def pids(self):
        return [p.pid for p in self.processes] + children_of(self.server.pid)

    def touched(self):
        """How many are not as they were: four, the server, and what that has started."""
        return 8 - sum((stat_of(pid) or "Z")[0] in "RS" for pid in self.pids())

    def end(self):
        for pid in reversed(self.pids()):
            kill(pid)
        for process in self.processes:
            process.wait()


def kill_many(machine, bystanders):
    rng = random.Random(11)
    killers = [kill_supervisor, kill_supervisor, kill_guard, kill_job, kill_by_name]
    running = {}
    for n in range(KILLS):
        sleeper = f"bash -c 'exec -a sleeper:{machine.folder}:{n} sleep 1000000'"
        escapes = "\n".join(e.format(sleep=sleeper) for e in rng.sample(ESCAPES, 3))
        name = f"train-{machine.folder}-{n}."
        job = f"echo >{machine.folder}/orders\n{escapes}\nexec {GPULSE} sim load --mem 1GiB"
        running[name] = machine.start(["run", "--wait", "--", "sh", "-c", job, name])
        time.sleep(rng.uniform(0, 0.05))
        name = rng.choice(list(running))
        rng.choice(killers)(running[name], name)
        if n % 10 == 0:
            no_gpu_twice(machine.queue())
        running = {name: p for name, p in running.items() if p.poll() is None}
        while len(running) > 24:  # those that wait would become more and more
            victim = running.pop(rng.choice(list(running)))
            kill(victim.pid)
            victim.communicate()
    for process in running.values():
        kill(process.pid)
        process.communicate()
    for _ in range(4000):
        left = set(marked_processes(machine.folder)) - set(bystanders.pids())
        if not left:
            break
        time.sleep(0.05)
    queue = machine.queue()
    touched = bystanders.touched()
    print(f"# {KILLS} kills: {len(left)} survivors, {len(queue)} reservations left, {touched} bystanders touched")
    assert not left, [read_proc(pid, "cmdline") for pid in left]
    assert queue == []
    assert touched == 0


@test
def what_is_killed_leaves_nothing_behind():
    machine = Machine()
    bystanders = Bystanders(machine)
    try:
        kill_many(machine, bystanders)
    finally:
        bystanders.end()
    # one more who decides takes away what is left of the others
    last = machine.start(["run", "--wait=600s", "--", "true"])
    _, words = last.communicate()
    assert last.returncode == 0, words
    # "new.ID" was being written at the kill; for a while nobody can tell that it is abandoned
    names = [p.name for p in (machine.folder / "leases").glob("*/*") if not p.name.startswith("new.")]
    assert names == [], names
    machine.close()


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, machine):
        needs_terminal()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"],
                       {**machine.environment(0), "PS1": "$ ", "TERM": "dumb"})
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern):
        """Reads on until this stands there, behind what was read before."""
        end = time.monotonic() + LIMIT_S
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, (pattern, self.seen)
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen[found.end():]

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@test
def a_shell_on_a_terminal_is_not_watched():
    terminal = Terminal(Machine())
    for options, name in (("--step-match x", "--step-match"), ("--timeline t.json --mark x", "--mark")):
        terminal.type(f"{GPULSE} run {options} -- bash; echo status=$?\n")
        terminal.until(f"gpulse: {name} needs to watch the output; omit it for a shell, pager or editor, which gets the "
                       "terminal itself")
        terminal.until("status=2")
    terminal.type(f"{GPULSE} run --step-match x -- bash -c 'echo x-$((1 + 1))'\n")  # but a script is
    terminal.until("x-2")
    terminal.close()


@test
def the_keyboard_reaches_the_job_and_the_shell_goes_on():
    machine = Machine()
    terminal = Terminal(machine)
    terminal.type(f"{GPULSE} run -- cat\n")
    terminal.until(r"on GPU \d")
    terminal.type("hello\n")
    terminal.until(r"hello\s+hello")  # it has the terminal
    terminal.type("\x1a")
    terminal.until(r"Stopped.*\s+\$ ")
    terminal.type("fg\n")
    terminal.until("run -- cat")
    terminal.type("again\n")
    terminal.until(r"again\s+again")
    terminal.type("\x03")
    terminal.until("with status 130")
    # in the background it goes on, and the shell keeps the terminal. The job forks nothing: a shell whose
    # child is stopped between vfork() and exec waits for it and cannot be stopped itself
    os.mkfifo(machine.folder / "go")
    terminal.type(f"{GPULSE} run -- sh -c 'echo started; exec cat {machine.folder}/go'\n")
    terminal.until(r"\nstarted")
    terminal.type("\x1a")
    terminal.until(r"Stopped.*\s+\$ ")
    terminal.type("bg\n")
    terminal.type("echo is-$((40 + 2))\n")
    terminal.until("is-42")
    (machine.folder / "go").write_text("")
    terminal.until("with status 0")
    # one that wants to read in the background gets the terminal with fg
    terminal.type(f"{GPULSE} run -- cat &\n")
    terminal.until(r"on GPU \d")
    terminal.type("until jobs | grep -q Stopped; do sleep 0.1; done; echo is-$((40 + 1))\n")
    terminal.until("is-41")
    terminal.type("fg\n")
    terminal.until("run -- cat")
    terminal.type("back\n\x04")
    terminal.until(r"back\s+back[\s\S]*with status 0")
    # one that is killed leaves the terminal as it was
    terminal.type(f"{GPULSE} run --no-watch -- sh -c 'stty raw -echo; kill -9 $$'\n")
    terminal.until(r"with status 137")
    terminal.type("stty -a | grep -q ' echo ' && stty -a | grep -q ' icanon' && echo is-$((40 + 4))\n")
    terminal.until("is-44")
    # Ctrl-C ends a script, not only its first job
    terminal.type(f"for i in 1 2 3; do {GPULSE} run -- sh -c 'echo started; exec sleep 100'; done\n")
    terminal.until(r"\nstarted")
    terminal.type("\x03")
    terminal.until("with status 130")
    terminal.type("echo is-$((40 + 3))\n")
    terminal.until("is-43")
    assert machine.queue() == []
    terminal.close()
    machine.close()


SIZES = """
import os, signal, sys, time
def tell(*_): # one signal may interrupt the other one's
    os.write(1, b"size %d\\n" % os.get_terminal_size(1).columns)
signal.signal(signal.SIGWINCH, tell)
print("terminal", sys.stdout.isatty(), sys.stderr.isatty(), flush=True)
while True:
    time.sleep(0.1)
"""

SILENT = """
import termios, time
def echoes(fd):
    return bool(termios.tcgetattr(fd)[3] & termios.ECHO)
before = echoes(0)
now = termios.tcgetattr(1)
now[3] &= ~termios.ECHO
termios.tcsetattr(1, termios.TCSANOW, now)
end = time.monotonic() + 600
while echoes(0) and time.monotonic() < end:
    time.sleep(0.01)
print("echo", before, echoes(0), flush=True)
"""


@test
def what_is_watched_has_a_terminal():
    machine = Machine()
    terminal = Terminal(machine)
    (machine.folder / "sizes.py").write_text(SIZES)
    terminal.type(f"{GPULSE} run -- {sys.executable} {machine.folder}/sizes.py\n")
    terminal.until("terminal True True")
    terminal.resize(50, 132)
    terminal.until("size 132")
    terminal.type("\x03")
    terminal.until("exited after")
    # its settings are those of the terminal that is typed into, and are put back
    (machine.folder / "silent.py").write_text(SILENT)
    terminal.type(f"{GPULSE} run -q -- {sys.executable} {machine.folder}/silent.py\n")
    terminal.until("echo True False")
    terminal.type("stty -a | tr ' ' '\\n' | grep -c '^echo$'; echo is-$((40 + 4))\n")
    terminal.until(r"\n1\s+is-44")
    # a shell has all of it to itself
    terminal.type(f"{GPULSE} run -q -- bash --norc\n")
    terminal.type("sh -c 'echo begun; exec sleep 1000'\n")
    terminal.until(r"\nbegun")
    terminal.type("\x1a")
    terminal.until("Stopped.*sleep 1000")
    # with a stopped job a shell does not exit at the first word
    terminal.type("kill -KILL %1; while jobs %1 >/dev/null 2>&1; do sleep 0.1; done; exit\n")
    terminal.type("echo is-$((40 + 5))\n")
    terminal.until("is-45")
    assert machine.queue() == []
    terminal.close()
    machine.close()


main()
