#!/usr/bin/env python3
"""What a user can do to the others' reservations: attacks by real second and third users.

variants: release

Each attack is played against two honest users in file systems of its own: one holds GPU 0, another
asks for it, and for GPU 1. Wanted each time: GPU 0 is not granted twice, the reservation is seen and
outlives the attack, it ends with its holder, and whoever asks is served, or refused in words that
name the culprit, within two seconds (by default more, for machines that are busy: see SOON_S).

  tests/check_attack.py               all of them; needs root, for users and mounts
  GPULSE_ATTACK_SOON=2 tests/check_attack.py  with the two seconds
  GPULSE_ATTACK=lock tests/check_attack.py    only those whose name contains "lock"
  GPULSE=OTHER/build/gpulse GPULSE_BUILD=OTHER/build tests/check_attack.py    against another version

variants: release
"""
import fcntl
import json
import os
import resource
import select
import shutil
import signal
import struct
import subprocess
import time
from collections import Counter
from contextlib import suppress

from tap import Skip, main, test
from users import ANN, BAD, BOB, HOME, LIMIT_S, WORSE, Attacker, answer, begin_anew, command, environment, lease_text, libc, lock, \
    own, put, run_as_root, sh

SOON_S = float(os.environ.get("GPULSE_ATTACK_SOON", LIMIT_S))
FOLDERS = ("/run/gpulse", "/dev/shm", "/tmp")
MOST = 256  # reservations of one user, as docs/security.md says
slowest = []


def asks(gpu, around=(), uid=BOB):
    """The status and the words of who wants this GPU at once."""
    status, _, words, seconds = answer(uid, "run", "-q", "-i", str(gpu), "--", "true", around=around)
    slowest.append(seconds)
    assert seconds <= SOON_S, f"GPU {gpu}: answered in {seconds:.1f} s only: {status} {words}"
    return status, words


class Holder:
    """Ann, who has GPU 0."""

    def __init__(self, uid=ANN, gpu=0, around=()):
        self.process = command(uid, "run", "-q", "-i", str(gpu), "--", "sh", "-c", "echo has; exec sleep 600", around=around)
        self.words = self.process.stdout.readline()
        if self.words != "has\n":
            self.process.wait()
            self.words = self.process.stderr.read()
            self.process = None

    def close(self):
        if self.process:
            self.process.kill()
            self.process.communicate()


def line_of_ann():
    status, out, err, seconds = answer(BOB, "queue", "-f", "json")
    assert status == 0 and out, (status, err)
    assert seconds <= SOON_S, f"queue: answered in {seconds:.1f} s only"
    leases = json.loads(out)["leases"]
    for user, count in Counter(lease["user"] for lease in leases).items():
        assert count <= MOST, f"{count} reservations of user {user} count"
    return [lease for lease in leases if lease["gpus"] == "0" and
            lease["state"] == "held" and lease["user"] == str(ANN)]


def names_culprit(words):
    return str(BAD) in words or str(WORSE) in words


def clear_words(status, words):
    """Refused without a crash, in words that say who is in the way."""
    return status in (1, 5, 69, 74) and names_culprit(words)


# ---- what attackers use ----

def files_of(uid):
    """All that this user has in the places."""
    found = []
    for place in FOLDERS:
        for root, folders, names in os.walk(place):
            for name in (*folders, *names):
                path = os.path.join(root, name)
                with suppress(OSError):
                    if os.lstat(path).st_uid == uid:
                        found.append(path)
    return found


def held(name="held.0000000000000001", **more):
    return lambda: put(own(), name, lease_text(**more)) and None


# ---- the attacks: NAME: (before Ann comes, when she has her GPU) ----

ATTACKS = {}


def attack(name, before=None, after=None, **world):
    ATTACKS[name] = (before, after, world)


def destroy():
    """What can be removed, renamed, closed or emptied of Ann's, is; again and again."""
    for path in files_of(ANN):
        for step in (lambda p=path: os.rename(p, p + ".gone"), lambda p=path: os.unlink(p), lambda p=path: os.rmdir(p),
                     lambda p=path: os.chmod(p, 0), lambda p=path: os.truncate(p, 0)):
            with suppress(OSError):
                step()


def destroying():
    destroy()
    return destroy


# names
attack("a time behind all others", None, lambda: os.utime(put(own(), "held.ffffffffffffffff", lease_text(gpus="7", since=(1 << 64) - 1)), (1 << 40, 1 << 40)))
attack("a hand-made file at the head of the line", None, lambda: os.utime(put(own(), "wait.0000000000000000", lease_text()), (0, 0)))
attack("a file in another user's name, in one's own folder", None, held(gpus="1", uid=ANN))
attack("a folder in another user's name", None, lambda: put(own(suffix=".x", uid=ANN), "held.0000000000000001", lease_text(gpus="1")) and None)
attack("more folders in another user's name than count", lambda: [own(place, suffix, ANN) for place in ("/dev/shm", "/tmp") for suffix in ("", *(f".!{i}" for i in range(20)))] and None)
attack("the name of another user's request", None, lambda: copy_names)
attack("terminal escapes in names and commands", None,
       held(gpus="7", name="\033[2J\033]0;owned\a", command="\033[31mred\r\n"))
for what, make in {"folder": os.mkdir, "file": lambda p: os.close(os.open(p, os.O_CREAT)), "fifo": os.mkfifo,
                   "link to /etc": lambda p: os.symlink("/etc", p), "dangling link": lambda p: os.symlink("/nonexistent", p),
                   "link to a folder of the attacker's": lambda p: os.symlink(own(), p)}.items():
    def take_names(make=make):
        for place in ("/dev/shm", "/tmp"):
            for uid in (ANN, BOB):
                make(f"{place}/gpulse-{uid}")
    attack(f"the others' folder names are taken: {what}", take_names)

# who comes first
attack("all that can be removed or renamed is", None, destroying)
attack("all that can be removed or renamed is, in /run/gpulse", None, destroying, has_run=True)

# locks


def lock_all_of_ann():
    kept = []
    for path in files_of(ANN):
        with suppress(OSError):
            fd = os.open(path, os.O_RDONLY)
            kept.append(fd)
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            with suppress(OSError):
                lock(fd, fcntl.F_RDLCK)
    return lock_all_again


def lock_all_again():
    time.sleep(0.01)
    lock_all_of_ann()


attack("locks on another's files, held on behind their end", None, lock_all_of_ann)


def delay_openers():
    """A file lease: whoever opens the file, and may be blocked, waits until it is given back, or 45 s."""
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    name = "held.0000000000000001"
    os.close(put(own(), name, lease_text(gpus="7"), False))
    fcntl.fcntl(os.open(f"{own()}/{name}", os.O_RDWR), 1024, fcntl.F_WRLCK)  # F_SETLEASE


attack("a file lease that delays whoever opens the file", None, delay_openers)


def copy_names():
    """Files of the attacker's with the ids of the others' requests."""
    for path in (*files_of(ANN), *files_of(BOB)):
        name = os.path.basename(path)
        if name.startswith(("wait.", "claim.", "held.")):
            for state in ("wait", "claim", "held"):
                os.close(put(own(), f"{state}.{name.split('.')[1]}", lease_text(gpus="7"), False))


def flap():
    name = f"{own()}/held.0000000000000001"
    os.close(put(own(), "held.0000000000000001", lease_text(gpus="1")))
    os.unlink(name)


attack("a claim that comes and goes", None, lambda: flap)
attack("files that come and go, thousands a second", None, lambda: lambda: (put(own(), "wait.0000000000000001", "", False), os.unlink(own() + "/wait.0000000000000001")))



def swap_folder():
    """The folder is a folder, nothing, a link to another's and a fifo by turns."""
    folder = own()
    put(folder, "held.0000000000000001", lease_text(gpus="7"))

    def again():
        os.rename(folder, folder + ".away")
        os.symlink(f"/dev/shm/gpulse-{ANN}", folder)
        os.unlink(folder)
        os.mkfifo(folder)
        os.unlink(folder)
        os.rename(folder + ".away", folder)
    return again


def turn_states():
    """A request that goes through the states for ever, and back."""
    names = [f"{own()}/{state}.0000000000000001" for state in ("wait", "claim", "held")]
    put(own(), "wait.0000000000000001", lease_text(gpus="7"))
    return lambda: [os.rename(old, new) for old, new in zip(names, names[1:] + names[:1])]


attack("a folder that is replaced all the time", None, swap_folder)
attack("a request that changes its state all the time", None, turn_states)
attack("a claim that is never confirmed", None, held("claim.0000000000000001", gpus="0,1"))

# types and contents
attack("a sparse file of a terabyte", None, lambda: os.ftruncate(put(own(), "held.0000000000000001", lease_text(gpus="7")), 1 << 40))
attack("fifos, folders and links as files", None,
       lambda: (os.mkfifo(own() + "/held.0000000000000001"), os.mkdir(own() + "/held.0000000000000002"),
                os.symlink((files_of(ANN) or ["/"])[-1], own() + "/held.0000000000000003")) and None)
attack("a file that cannot be read", None, lambda: os.fchmod(put(own(), "held.0000000000000001", lease_text(gpus="7")), 0))
attack("promises beyond all numbers", None, held(gpus="7", shared=1, bytes=(1 << 63) - 1))
attack("a text that ends in the middle", None, lambda: put(own(), "held.0000000000000001", "gpulse-lease 2\npid") and None)
attack("another's process named as one's own", None, lambda: put(own(), "held.0000000000000001", lease_text(gpus="7", pid=1)) and None)
attack("a version that is not known yet", None, held(gpus="1", magic="gpulse-lease 99"))
attack("a text of line ends", None, held(name="held.0000000000000001", magic="\n" * 20000))
attack("a text that is none", None, lambda: put(own(), "held.0000000000000001", "".join(map(chr, range(256))) * 60) and None)
attack("as many GPUs as fit, and one more", None, lambda: put(own(), "held.0000000000000001", lease_text(gpus="7") + f"gpu GPU-{'0' * 91}\n" * 70) and None)
attack("a folder that cannot be read", None, lambda: (put(own(), "held.0000000000000001", lease_text(gpus="7")), os.chmod(own(), 0)) and None)
attack("a folder that can be read but not searched", None, lambda: (put(own(), "held.0000000000000001", lease_text(gpus="7")), os.chmod(own(), 0o744)) and None)
attack("a folder that everybody can write", None, lambda: (put(own(), "held.0000000000000001", lease_text(gpus="7")), os.chmod(own(), 0o777)) and None)
attack("a folder with the longest name", None, lambda: put(own(suffix="." + "x" * 240), "held.0000000000000001", lease_text(gpus="7")) and None)

# how many
attack("one file under three thousand names", None, lambda: (put(own(), "held.ffffffffffffffff", lease_text(gpus="7")), *(os.link(f"{own()}/held.ffffffffffffffff", f"{own()}/held.{i:016x}") for i in range(3000))) and None)
attack("ten thousand half-written files", None, lambda: [os.close(put(own(), f"new.{i:016x}", "", False)) for i in range(10000)] and None)
attack("ten thousand files in one's own folder", None, lambda: [os.close(put(own(), f"held.{i:016x}", "", False)) for i in range(10000)] and None)
attack("ten thousand folders", None, lambda: [os.mkdir(f"/dev/shm/gpulse-{BAD}.{i}") for i in range(10000)] and None)
attack("ten thousand folders in others' names", None, lambda: [os.mkdir(f"/dev/shm/gpulse-{100000 + i}") for i in range(10000)] and None)


def many_leases():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for i in range(min(3500, hard - 50)):
        put(own(), f"held.{i:016x}", lease_text(gpus="7", command="x" * 4000, name="y" * 4000))


attack("3,500 long reservations", None, many_leases)


def hoard():
    """All folders that count, full: each GPU has a name of its own, with a long common start."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gpus = "".join(f"gpu GPU-{'0' * 80}%08x\n" for _ in range(63))
    for number, (place, suffix) in enumerate((p, s) for p in FOLDERS for s in ("", ".1", ".2", ".3")):
        for i in range(min(MOST, (hard - 50) // 12)):
            n = number * MOST + i
            text = lease_text(gpus="7") + gpus % tuple(range(63 * n, 63 * n + 63))
            put(own(place, suffix), f"{('held', 'wait')[i % 2]}.{n:016x}", text)


attack("3,072 reservations in twelve folders", None, hoard, has_run=True)

# file systems


def fill(*places):
    def play():
        for place in places:
            with suppress(OSError), open(f"{place}/filler-{os.geteuid()}", "wb", buffering=0) as file:
                while file.write(b"x" * 65536):
                    pass
    return play


def use_up_inodes():
    for place in ("/dev/shm", "/tmp"):
        with suppress(OSError):
            for i in range(100000):
                os.close(os.open(f"{place}/filler-{i}", os.O_CREAT))


attack("a full file system", None, fill("/dev/shm"), size="1m")
attack("full file systems, all of them", None, fill("/dev/shm", "/tmp"), size="1m")
attack("full before anybody comes", fill("/dev/shm"), None, size="1m")
attack("no more files can be made", None, use_up_inodes, inodes="500")

# the lock of a supervisor


def stopped(*words):
    """A gpulse of the attacker's, stopped when it has come so far."""
    def play():
        process = subprocess.Popen([HOME / "gpulse", *words], env=attacker_environment(), cwd="/", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))
        time.sleep(0.7)
        process.send_signal(signal.SIGSTOP)
    return play


def attacker_environment():
    return {**os.environ, "GPULSE_SIM": str(HOME / "m.json"), "GPULSE_SIM_STATE": str(HOME / f"sim-{BAD}"), "HOME": "/"}


attack("a stopped supervisor that waits", None, stopped("run", "-q", "-i", "0,1", "-n", "2", "--wait", "--", "true"))
attack("a stopped supervisor that has a GPU", None, stopped("run", "-q", "-i", "1", "--", "sleep", "600"))
attack("signals to others", None, lambda: [kill_quietly(pid) for pid in pids_of(ANN)] and None)


def pids_of(uid):
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                yield int(name)


def kill_quietly(pid):
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def play(name):
    before, after, world = ATTACKS[name]
    environment(BAD)
    begin_anew(**world)
    attackers = []
    ann = None
    try:
        if before:
            attackers.append(Attacker(before))
        ann = Holder()
        if not ann.process:  # then she was refused, and knows by whom
            assert names_culprit(ann.words), f"Ann is refused: {ann.words}"
        if after:
            attackers.append(Attacker(after))
        if ann.process:
            status, words = asks(0)
            assert status != 0, "GPU 0 is granted twice"
            assert len(line_of_ann()) == 1, f"the reservation is not seen: {answer(BOB, 'queue')}"
        status, words = asks(1)
        assert status == 0 or clear_words(status, words), f"GPU 1: {status} {words}"
        assert "\033" not in answer(BOB, "queue")[1], "raw escapes"
        if ann.process:
            assert ann.process.poll() is None, "the job has ended"
            status, _ = asks(0)
            assert status != 0, "GPU 0 is granted twice, later"
            ann.close()
            status, words = asks(0)
            assert status == 0 or (clear_words(status, words) and not line_of_ann()), f"GPU 0, behind its end: {status} {words}"
    finally:
        for attacker in attackers:
            attacker.close()
        if ann:
            ann.close()


def add(name):
    def function():
        play(name)
    function.__name__ = name.replace(" ", "_")
    test(function)


# ---- no attack, but bad days ----

@test
def a_better_folder_comes_later():
    begin_anew()
    ann = Holder()
    os.mkdir("/run/gpulse")
    os.chmod("/run/gpulse", 0o1777)
    late = Holder(BOB, 1)
    assert asks(0)[0] == 69 and asks(1, uid=ANN)[0] == 69
    late.close()
    ann.close()
    assert asks(0)[0] == 0


@test
def a_folder_of_roots_that_is_not_safe():
    for mode, owner in ((0o777, 0), (0o1777, BAD)):
        begin_anew(has_run=True)
        ann = Holder()
        os.chmod("/run/gpulse", mode)
        os.chown("/run/gpulse", owner, owner)
        bob = Holder(BOB, 1)
        assert bob.process, bob.words
        assert not [path for path in files_of(BOB) if path.startswith("/run")]
        assert asks(1, uid=ANN)[0] == 69
        bob.close()
        ann.close()


@test
def a_place_that_is_read_only():
    begin_anew()
    ann = Holder()
    sh("mount", "--bind", "/dev/shm", "/dev/shm")
    sh("mount", "-o", "remount,bind,ro", "/dev/shm")
    assert asks(0)[0] == 69
    bob = Holder(BOB, 1)
    assert bob.process, bob.words
    assert asks(1, uid=ANN)[0] == 69
    bob.close()
    ann.close()
    assert asks(0)[0] == 0


@test
def what_is_mounted_on_a_folder_or_a_file():
    """A mount of a user's may be one that never answers, so nothing is read through it."""
    begin_anew()
    ann = Holder()
    folder = f"/dev/shm/gpulse-{BAD}"
    other = f"/dev/shm/other-{BAD}"
    name = "held.0000000000000001"
    for path in (folder, other):
        os.mkdir(path)
        os.chown(path, BAD, BAD)
    kept = Attacker(lambda: [put(path, name, lease_text(gpus="1")) for path in (folder, other)] and None)
    assert asks(1)[0] == 69
    sh("mount", "--bind", f"{other}/{name}", f"{folder}/{name}")
    assert asks(1)[0] == 0, "a mounted file is read"
    sh("umount", f"{folder}/{name}")
    assert asks(1)[0] == 69
    sh("mount", "--bind", other, folder)
    assert asks(1)[0] == 0, "a mounted folder is read"
    assert asks(0)[0] == 69 and len(line_of_ann()) == 1
    kept.close()
    ann.close()
    assert asks(0)[0] == 0


@test
def more_than_a_user_may_have_in_all_places_together():
    begin_anew(has_run=True)
    own_ones = Attacker(lambda: [put(own(place), f"wait.{i:016x}", lease_text(gpus="7"))
                                 for place in FOLDERS[1:] for i in range(MOST // 2)] and None, BOB)
    status, words = asks(1)
    assert status == 1 and f"{MOST} reservations" in words, (status, words)
    own_ones.close()
    assert asks(1)[0] == 0


@test
def who_has_filled_a_place():
    """Whoever did is named, also if the files are in a directory; who has only a few files is not."""
    for mode, is_named in ((0o755, True), (0o700, False)):
        begin_anew(size="1m")
        ann = Holder()
        Attacker(lambda mode=mode: (fill_below("/dev/shm", mode), fill_below("/tmp", mode)) and None).close()
        status, words = asks(1)
        assert status == 1 and "No space left" in words, (status, words)
        assert (str(BAD) in words) == is_named and str(ANN) not in words, words
        ann.close()


def fill_below(place, mode):
    os.makedirs(f"{place}/mine/deep")
    with suppress(OSError), open(f"{place}/mine/deep/.filler", "wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    os.chmod(f"{place}/mine", mode)


@test
def too_few_descriptors_are_not_free_gpus():
    begin_anew()
    ann = Holder()
    for limit in range(3, 40):
        status, out, err, _ = answer(BOB, "pick", "-i", "0", around=("prlimit", f"--nofile={limit}:{limit}"))
        assert status != 0 and not out, f"with {limit} descriptors GPU 0 is free: {status} {out} {err}"
    assert status == 69, (status, err)
    ann.close()


def wait_for(what):
    until = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < until, f"not within {LIMIT_S} s"
        time.sleep(0.01)


def bob_waits():
    bob = command(BOB, "run", "-q", "-i", "0", "--wait", "--", "sh", "-c", "echo has; exec sleep 600")
    wait_for(lambda: waits_for_gpu_0(BOB))
    return bob


def has_nothing(process):
    return process.poll() is None and not select.select([process.stdout], [], [], 0)[0]


def end_both(ann, bob):
    """Whoever waited gets the GPU now."""
    ann.close()
    assert bob.stdout.readline() == "has\n", "who waited gets nothing"
    bob.terminate()
    bob.communicate(timeout=LIMIT_S)
    assert asks(0)[0] == 0, "GPU 0 is lost"


def has_seen_ann(process):
    """Whether it has the file of her reservation open that is there now."""
    files = {os.stat(entry).st_ino for entry in os.scandir(f"/dev/shm/gpulse-{ANN}") if entry.is_file()}
    fds = f"/proc/{process.pid}/fd"
    return any(os.stat(f"{fds}/{fd}").st_ino in files for fd in os.listdir(fds) if os.path.exists(f"{fds}/{fd}"))


@test
def all_files_are_removed_at_logout():
    begin_anew()
    ann = Holder()
    bob = bob_waits()
    for _ in range(5):
        wait_for(lambda: has_seen_ann(bob))
        shutil.rmtree(f"/dev/shm/gpulse-{ANN}")
        wait_for(line_of_ann)
        assert has_nothing(bob) and waits_for_gpu_0(BOB), "GPU 0 is granted twice"
    end_both(ann, bob)


@test
def all_files_are_removed_for_good():
    begin_anew()
    ann = Holder()
    bob = bob_waits()
    shutil.rmtree(f"/dev/shm/gpulse-{ANN}")
    for place in ("/dev/shm", "/tmp"):
        sh("mount", "--bind", place, place)
        sh("mount", "-o", "remount,bind,ro", place)
    line = ann.process.stderr.readline()
    assert "reservation" in line and "removed" in line and "Read-only" in line, line
    assert has_nothing(bob), "GPU 0 is granted twice"
    ann.close()
    bob.terminate()
    bob.communicate(timeout=LIMIT_S)


@test
def all_files_are_removed_of_one_who_is_stopped():
    begin_anew()
    ann = Holder()
    ann.process.send_signal(signal.SIGSTOP)
    shutil.rmtree(f"/dev/shm/gpulse-{ANN}")
    bob = Holder(BOB)  # has never seen the reservation
    assert bob.process, bob.words
    ann.process.send_signal(signal.SIGCONT)
    line = ann.process.stderr.readline()
    assert "removed" in line and str(BOB) in line, line
    ann.close()
    bob.close()


@test
def from_other_pid_namespaces():
    begin_anew()
    around = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if subprocess.run([*around, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no pid namespaces can be made here")
    ann = Holder()
    assert asks(0, around)[0] == 69
    assert asks(1, around)[0] == 0
    ann.close()
    assert asks(0, around)[0] == 0


@test
def folders_of_1500_users():
    """Who has subordinate uids makes folders of thousands of users; each is that user's own."""
    begin_anew()
    ann = Holder()
    for uid in range(200000, 201500):
        for suffix in ("", ".1"):
            os.mkdir(f"/dev/shm/gpulse-{uid}{suffix}", 0o755)
            os.chown(f"/dev/shm/gpulse-{uid}{suffix}", uid, uid)
    around = ("prlimit", "--nofile=64:64")
    assert asks(0, around)[0] == 69, "GPU 0 is granted twice"
    assert asks(1, around)[0] == 0
    assert len(line_of_ann()) == 1
    bob = Holder(BOB, 1)
    assert bob.process, bob.words
    assert asks(1, around, uid=ANN)[0] == 69
    bob.close()
    ann.close()
    assert asks(0, around)[0] == 0


# ---- clocks that step ----

# The clocks of who has it loaded are as many seconds ahead as the file says: wall clock, boot clock.
CLOCKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static const volatile long long *ahead;
static int (*real)(clockid_t, struct timespec *);
static void __attribute__((constructor)) begin(void)
{
    int fd = open(getenv("CLOCKS"), O_RDONLY | O_CLOEXEC);
    void *file = mmap(0, 16, PROT_READ, MAP_SHARED, fd, 0);
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (file == MAP_FAILED)
        abort();
    ahead = file;
}
int clock_gettime(clockid_t id, struct timespec *ret)
{
    int r = real(id, ret);
    if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_BOOTTIME))
        ret->tv_sec += ahead[id == CLOCK_BOOTTIME];
    return r;
}
time_t time(time_t *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *ret, void *zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
"""
HOUR, DAY, YEAR = 3600, 86400, 31557600
# NAME: (wall clock, boot clock), in seconds
STEPS = {
    "the wall clock an hour ahead": (HOUR, 0), "the wall clock an hour back": (-HOUR, 0),
    "the wall clock a day ahead": (DAY, 0), "the wall clock a day back": (-DAY, 0),
    "the wall clock twenty years ahead": (20 * YEAR, 0), "the wall clock at the epoch": (-int(time.time()) + 1, 0),
    "the wall clock before the epoch": (-int(time.time()) - DAY, 0),
    "the boot clock an hour ahead": (0, HOUR), "the boot clock thirty days ahead": (0, 30 * DAY),
    "the boot clock at its beginning": (0, -int(time.clock_gettime(time.CLOCK_BOOTTIME))),
    "both a day ahead": (DAY, DAY), "both back": (-DAY, -int(time.clock_gettime(time.CLOCK_BOOTTIME)) + 1),
}


def clocks():
    """What to start programs with, whose clocks step() moves."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    library = HOME / "clocks.so"
    if not compiler:
        raise Skip("no C compiler")
    if not library.exists():
        (HOME / "clocks.c").write_text(CLOCKS)
        sh(compiler, "-shared", "-fPIC", "-o", str(library), str(HOME / "clocks.c"))
        library.chmod(0o755)
    step(0, 0)
    # a build with sanitizers insists on being loaded first, which nothing here needs
    asan = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0")))
    return "env", f"LD_PRELOAD={library}", f"CLOCKS={HOME / 'clocks'}", f"ASAN_OPTIONS={asan}"


def step(wall, boot):
    file = HOME / "clocks"
    if not file.exists():
        file.write_bytes(bytes(16))
        file.chmod(0o644)
    with open(file, "r+b") as opened:
        opened.write(struct.pack("qq", wall, boot))


def waits_for_gpu_0(uid):
    status, out, _, _ = answer(ANN, "queue", "-f", "json")
    return status == 0 and any(lease["state"] == "waiting" and lease["user"] == str(uid) for lease in json.loads(out)["leases"])


def step_clocks(wall, boot):
    begin_anew()
    around = clocks()
    environment(WORSE)
    ann = Holder(around=around)
    assert ann.process, ann.words
    bob = command(BOB, "run", "-q", "-i", "0", "--wait", "--", "sh", "-c", "echo has; exec sleep 600", around=around)
    until = time.monotonic() + LIMIT_S
    while not waits_for_gpu_0(BOB):
        assert time.monotonic() < until and bob.poll() is None, "Bob does not wait"
    try:
        for now in ((wall, boot), (0, 0), (wall, boot)):
            step(*now)
            for programs in (around, ()):
                status, words = asks(0, programs, WORSE)
                assert status == 69, f"GPU 0 at {now}: {status} {words}"
                assert asks(1, programs, WORSE)[0] == 0, "GPU 1 is not granted"
            assert ann.process.poll() is None and bob.poll() is None
            assert len(line_of_ann()) == 1 and waits_for_gpu_0(BOB), "a reservation is lost"
        ann.close()
        ann = None
        assert bob.stdout.readline() == "has\n", "who waited gets nothing"
        assert asks(0, around, WORSE)[0] == 69, "GPU 0 is granted twice"
    finally:
        if ann:
            ann.close()
        bob.terminate()
        bob.communicate(timeout=LIMIT_S)
    assert asks(0, around, WORSE)[0] == 0, "GPU 0 is lost"


def add_step(name, ahead):
    def function():
        step_clocks(*ahead)
    function.__name__ = f"step {name}"
    test(function)


for step_name, step_ahead in STEPS.items():
    add_step(step_name, step_ahead)


@test
def fifty_who_want_eight_gpus():
    contend()


@test
def fifty_who_want_eight_gpus_beside_attackers():
    contend(flap, lambda: (lambda: (destroy(), time.sleep(0.01))), lock_all_of_ann)


def contend(*plays):
    """Whoever has a GPU writes when it came and when it went: no two at the same time."""
    begin_anew(has_run=True)
    log = HOME / "log"
    log.write_text("")
    log.chmod(0o666)
    environment(BAD)
    attackers = [Attacker((lambda p=p: p) if p is flap else p) for p in plays]
    jobs = []
    for i in range(50):
        jobs.append(command((ANN, BOB, WORSE)[i % 3], "run", "-q", "--wait", "--", "sh", "-c",
                            f"echo $CUDA_VISIBLE_DEVICES + >>{log}; sleep 0.05; echo $CUDA_VISIBLE_DEVICES - >>{log}"))
    for job in jobs:
        _, words = job.communicate(timeout=LIMIT_S * 5)
        assert job.returncode == 0, words
    for attacker in attackers:
        attacker.close()
    taken = set()
    lines = log.read_text().split("\n")[:-1]
    assert len(lines) == 100, len(lines)
    for line in lines:
        gpu, sign = line.split()
        assert (gpu in taken) == (sign == "-"), f"GPU {gpu} is granted twice"
        (taken.add if sign == "+" else taken.remove)(gpu)


if __name__ == "__main__":
    run_as_root(__file__)
    chosen = os.environ.get("GPULSE_ATTACK", "")
    for title in ATTACKS:
        if chosen in title:
            add(title)
    try:
        main()
    finally:
        print(f"# the slowest answer took {max(slowest, default=0):.2f} s")
