#!/usr/bin/env python3
"""Compares the cost of gpulse top with that of other live monitors, on one simulated driver.

Usage: scripts/peers.py BUILD [--seconds N] [--rounds N] [--lively] [PROGRAM...]

Each monitor runs in a terminal of 200x60 and takes a sample a second; its CPU time is that of all its
threads (/proc/PID/task/*/schedstat), its bytes those that reach the terminal. "floor" is a program in
tests/bench that makes about the same calls and reads and prints plain lines. The machines have 8 or 64
GPUs whose values stand still, or move with --lively, and 10 or 2,000 real processes, which sleep. The
rounds are interleaved, and the median counts. Prints a table in Markdown.

The other monitors come from a Debian 13 root, made by debootstrap from this machine's own mirror and kept
in $GPULSE_ROOTS (default ~/.cache/gpulse/roots). They run outside it, with its libraries and the simulated
one. Where there is no such root and none can be made, gpulse and the floor run alone.
"""
import argparse
import copy
import fcntl
import json
import os
import pty
import resource
import signal
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

SUITE, PACKAGES = "trixie", ("nvtop", "btop", "nvitop", "gpustat")
SHAPES = ((8, 10), (8, 2000), (64, 10), (64, 2000))  # GPUs, processes
WARM_UP_S = 70  # like a monitor that runs for hours: ages below a minute change in every second
PYTHON = "usr/bin/python3.13"

# name: command; {root} is the Debian root
PROGRAMS = {
    "gpulse top": ["{build}/gpulse", "top", "-n", "1"],
    "floor": ["{build}/tests/bench/floor", "{build}/sim/libnvidia-ml.so.1", "screen", "1000000", "1000"],
    "nvtop": ["{root}/usr/bin/nvtop"],
    "btop": ["{root}/usr/bin/btop", "--utf-force"],
    "nvitop": ["{root}/" + PYTHON, "{root}/usr/bin/nvitop", "--interval", "1"],
    "gpustat": ["{root}/" + PYTHON, "{root}/usr/bin/gpustat", "-i", "1"],
}


def debian_root():
    """A Debian root with the peers, or None and why there is none."""
    roots = Path(os.environ.get("GPULSE_ROOTS") or
                 Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpulse/roots")
    root = roots / "peers"
    if all((root / "usr/bin" / name).exists() for name in PACKAGES):
        return root, None
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        return None, "making a Debian root needs root and debootstrap"
    print("peers: making a Debian root, which takes some minutes", file=sys.stderr)
    fresh = roots / "peers.new"
    shutil.rmtree(fresh, ignore_errors=True)
    roots.mkdir(parents=True, exist_ok=True)
    sites = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE)"], text=True,
                           capture_output=True).stdout.split()
    site = [s for s in sites if s.rstrip("/").endswith("debian")][:1]
    steps = [["debootstrap", "--variant=minbase", "--components=main,contrib,non-free",
              SUITE, str(fresh), *site]]
    for command in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
        steps.append(["chroot", str(fresh), "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq",
                      *command])
    for number, step in enumerate(steps):
        done = subprocess.run(step, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            return None, f"{step[0]} failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}"
        for file in Path("/etc/apt/apt.conf.d").glob("*") if number == 0 else ():
            if "Acquire::" in file.read_text(errors="replace"):  # proxies and the like
                shutil.copy(file, fresh / "etc/apt/apt.conf.d")
    fresh.rename(root)
    return root, None


def machine(build, gpus, pids):
    """The built-in h100 machine with this number of GPUs, and these processes on them."""
    made = json.loads((build / "sim/machines/h100.json").read_text())
    for key in ("host", "topology", "workload"):
        made.pop(key, None)
    first = made["devices"]
    made["devices"] = []
    for i in range(gpus):
        gpu = copy.deepcopy(first[i % len(first)])
        gpu["uuid"] = f"GPU-{i:08x}-0000-0000-0000-000000000000"
        gpu["pci"]["bus_id"] = f"{1 + i // 32:08X}:{16 + i % 32:02X}:00.0"
        gpu["answers"]["MinorNumber"] = i
        gpu["processes"] = [{"pid": pid, "type": "C", "memory_bytes": 1 << 24, "name": "sleep"}
                            for pid in pids[i::gpus]]
        made["devices"].append(gpu)
    return made


def is_own(name):
    """Whether it is of this build, and needs no Debian root."""
    return PROGRAMS[name][0].startswith("{build}")


def command_of(name, build, root):
    """The command with the root's own loader, as its C library differs from that of this machine."""
    words = [w.format(build=build, root=root) for w in PROGRAMS[name]]
    if is_own(name):
        return words
    libraries = f"{build}/sim:{root}/lib/x86_64-linux-gnu:{root}/usr/lib/x86_64-linux-gnu"
    return [f"{root}/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, *words]


def cpu_seconds(pid):
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:
            pass  # a thread that has just ended
    return total / 1e9


def resident_mib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0


def measure(command, env, seconds):
    """(CPU seconds a minute, bytes a second, MiB), or None if the program does not stay."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
        os.execve(command[0], command, env)
    count = [0]

    def drain():
        try:
            while data := os.read(terminal, 1 << 16):
                count[0] += len(data)
        except OSError:
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    try:
        time.sleep(WARM_UP_S)
        bytes_before, cpu_before = count[0], cpu_seconds(pid)
        time.sleep(seconds)
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return None  # it has ended itself
        cpu, sent = cpu_seconds(pid) - cpu_before, count[0] - bytes_before
        return cpu * 60 / seconds, sent / seconds, resident_mib(pid)
    except OSError:
        return None
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        reader.join()
        os.close(terminal)


def run_shape(names, build, root, gpus, processes, options):
    """{name: median of (CPU, bytes, MiB)}"""
    sleepers = [subprocess.Popen(["sleep", "infinity"]) for _ in range(processes)]
    results = {name: [] for name in names}
    try:
        with tempfile.TemporaryDirectory(prefix="gpulse-peers-") as home:
            file = Path(home) / "machine.json"
            file.write_text(json.dumps(machine(build, gpus, [s.pid for s in sleepers])))
            env = {"HOME": home, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"],
                   "GPULSE_SIM": str(file), "GPULSE_SIM_STATE": home}
            if not options.lively:
                env["GPULSE_SIM_STILL"] = "1"
            if root:
                env["PYTHONHOME"] = f"{root}/usr"
                env["PYTHONPATH"] = f"{root}/usr/lib/python3/dist-packages"
            for _ in range(options.rounds):
                for name in names:
                    results[name].append(measure(command_of(name, build, root), env, options.seconds))
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
    return {name: None if None in rows else tuple(map(statistics.median, zip(*rows)))
            for name, rows in results.items()}


def table(results, names):
    """Markdown: a row per monitor, a column per shape."""
    lines = ["| | " + " | ".join(f"{gpus} GPUs, {processes:,} processes" for gpus, processes in SHAPES) + " |",
             "|---" * (1 + len(SHAPES)) + "|"]
    for title, part, form in (("CPU s/min", 0, "{:.3f}"), ("bytes/s", 1, "{:,.0f}"), ("MiB", 2, "{:.1f}")):
        for name in names:
            cells = [results[shape][name] for shape in SHAPES]
            lines.append(f"| {name}, {title} | " +
                         " | ".join(form.format(c[part]) if c else "-" for c in cells) + " |")
    for other in ("floor", "nvtop"):
        if other in names and "gpulse top" in names:
            ours, theirs = ([results[s][n] for s in SHAPES] for n in ("gpulse top", other))
            lines.append(f"| **CPU, gpulse / {other}** | " + " | ".join(
                f"**{a[0] / b[0]:.2f}**" if a and b else "-" for a, b in zip(ours, theirs)) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lively", action="store_true", help="the values of the GPUs move")
    parser.add_argument("programs", nargs="*", choices=[*PROGRAMS, []], metavar="PROGRAM")
    options = parser.parse_intermixed_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    names = options.programs or list(PROGRAMS)
    root, why = (None, None) if all(map(is_own, names)) else debian_root()
    if why:
        names = [name for name in names if is_own(name)]
        if not names:
            sys.exit(f"peers: no other monitors: {why}")
        print(f"peers: only {', '.join(names)}: {why}", file=sys.stderr)
    build = options.build.resolve()
    results = {shape: run_shape(names, build, root, *shape, options)
               for shape in SHAPES}
    print(table(results, names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
