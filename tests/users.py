"""Real users for tests of who may do what: processes of other uids, in mounts of their own.

    from users import ANN, BAD, HOME, Attacker, answer, begin_anew, run_as_root

    if __name__ == "__main__":
        run_as_root(__file__)   # begins again in mounts of its own, or skips all tests
        main()

Everything is in file systems that nobody else sees: /run, /dev/shm and /tmp are new and empty.
"""
import ctypes
import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path

from tap import BUILD, Skip

BAD, WORSE, ANN, BOB = 61001, 61002, 61003, 61004  # two attackers, and two who are honest
LIMIT_S = 120
PLACES = ("/run", "/dev/shm", "/tmp")
HOME = Path(os.environ.get("GPULSE_USERS_HOME", "/nonexistent"))  # the program, readable by all
libc = ctypes.CDLL(None, use_errno=True)


def sh(*words):
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)


# ---- the place ----

def enter(script):
    """Mounts of our own, and a copy of the program that all users can run; then begins again."""
    if os.geteuid() != 0:
        raise Skip("only root can become other users")
    folder = Path(tempfile.mkdtemp(prefix="gpulse-users-", dir="/var/tmp"))
    folder.chmod(0o755)
    build = Path(BUILD).resolve()
    for name in (*build.glob("gpulse*"), *build.glob("libgpulse-*.so")):
        if name.is_file():
            shutil.copy(name, folder)
    for path in (*build.glob("sim/*.so*"), *build.glob("sim/machines/*.json"), build / "sim/gpulse-sim"):
        if path.is_file():
            target = folder / path.relative_to(build)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    machine = json.loads((build / "sim/machines/h100.json").read_text())
    machine["workload"] = []
    machine.pop("host", None)
    (folder / "m.json").write_text(json.dumps(machine))
    sh("chmod", "-R", "a+rX", str(folder))
    try:
        able = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"],
                              stderr=subprocess.DEVNULL, check=False).returncode == 0
        if not able:
            raise Skip("no mounts of one's own can be made here")
        uuids = subprocess.run([folder / "gpulse", "--sim", folder / "m.json", "query", "uuid", "-f", "csv",
                                "--no-header"], check=True, stdout=subprocess.PIPE).stdout
        (folder / "uuids").write_bytes(uuids)
        environment = {**os.environ, "GPULSE_USERS_HOME": str(folder)}
        return subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable,
                               os.path.abspath(script)], env=environment, check=False).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def begin_anew(size="64m", inodes="0", has_run=False):
    for place in PLACES:
        while subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            pass
        sh("mount", "-t", "tmpfs", "-o", f"size={size},mode={'755' if place == '/run' else '1777'}"
           f",nr_inodes={inodes}", "none", place)
    if has_run:
        os.mkdir("/run/gpulse")
        os.chmod("/run/gpulse", 0o1777)


def environment(uid):
    state = HOME / f"sim-{uid}"
    if not state.exists():
        state.mkdir(mode=0o700)
        os.chown(state, uid, uid)
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "GPULSE_", "XDG_"))}
    return {**keep, "GPULSE_SIM": str(HOME / "m.json"), "GPULSE_SIM_STATE": str(state),
            "GPULSE_SIM_TIMEOUT": "5m", "HOME": str(state)}


def command(uid, *words, around=()):
    return subprocess.Popen([*around, "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                             str(HOME / "gpulse"), *words], env=environment(uid), cwd="/",
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def answer(uid, *words, around=()):
    process = command(uid, *words, around=around)
    begun = time.monotonic()
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError(f"{' '.join(words)}: no answer in {LIMIT_S} s") from None
    return process.returncode, out, err, time.monotonic() - begun


class Attacker:
    """A process of that user that plays an attack, and goes on with it until it is closed."""

    def __init__(self, play, uid=BAD):
        ready, told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                libc.prctl(1, signal.SIGKILL)
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                libc.prctl(1, signal.SIGKILL)
                os.chdir("/")
                again = play()
                os.write(told, b"x")
                while True:
                    if again:
                        with suppress(OSError):
                            again()
                    else:
                        signal.pause()
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(told)
        assert os.read(ready, 1) == b"x", "the attack could not be played"
        os.close(ready)

    def close(self):
        os.kill(self.pid, signal.SIGCONT)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


# ---- what attackers use ----

def lease_text(gpus="all", pid=None, magic="gpulse-lease 2", **more):
    uuids = (HOME / "uuids").read_text().split()
    if gpus != "all":
        uuids = [uuids[int(i)] for i in gpus.split(",")]
    ns = os.stat("/proc/self/ns/pid").st_ino
    lines = [f"{key} {value}" for key, value in more.items()]
    return "\n".join([magic, "since 1", f"pid {pid or os.getpid()}", f"ns {ns}", *lines, "wanted 1",
                      *(f"gpu {uuid}" for uuid in uuids)]) + "\n"


def lock(fd, kind=fcntl.F_WRLCK):
    fcntl.fcntl(fd, 37, struct.pack("hhqqixxxx", kind, 0, 0, 0, 0))  # F_OFD_SETLK


def own(place="/dev/shm", suffix="", uid=None):
    folder = f"{place}/gpulse-{uid or os.geteuid()}{suffix}"
    os.makedirs(folder, 0o755, exist_ok=True)
    return folder


def put(folder, name, text, locked=True):
    fd = os.open(f"{folder}/{name}", os.O_RDWR | os.O_CREAT, 0o644)
    os.write(fd, text.encode("latin-1"))
    if locked:
        fcntl.flock(fd, fcntl.LOCK_EX)
        lock(fd)
    return fd


def run_as_root(script):
    if HOME.exists():
        return
    try:
        sys.exit(enter(script))
    except Skip as reason:
        print(f"1..0 # SKIP {reason}")
        sys.exit(0)
