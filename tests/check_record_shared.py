#!/usr/bin/env python3
"""gpulse record --shared: what each user sees of it, and what others can do to a recorder or reader.

variants: asan release

Real users in file systems of their own; the processes that are recorded are real ones, too.
"""
import contextlib
import fcntl
import json
import mmap
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import time
from collections import defaultdict
from pathlib import Path

from tap import Skip, main, test
from users import ANN, BAD, BOB, HOME, Attacker, answer, begin_anew, command, lease_text, own, put, run_as_root, sh

SERVICE = 61009
PLACE = Path("/run/gpulse-recordings")
TAPE = PLACE / "gpulse.tape"
PRIVATE = PLACE / "gpulse.tape-private"
WHO = "pid,user,command,process.path,process.cwd,origin"


# ---- who uses the GPU, and who records it ----

class Job:
    """A process of a user with a secret in its command line and in its environment."""
    jobs = []

    def __init__(self, uid, secret, around=()):
        self.uid, self.secret = uid, secret
        code = "import time; print(flush=True); time.sleep(600)"
        self.process = subprocess.Popen(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *around, "python3", "-c", code, secret],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/",
            env={"PATH": "/usr/bin:/bin", "TMUX_PANE": secret})
        Job.jobs.append(self)
        assert self.process.stdout.readline()

    def close(self):
        self.process.kill()
        self.process.wait()


def use_gpu(*jobs):
    """Has the simulated driver list these processes."""
    path = HOME / "m.json"
    machine = json.loads(path.read_text())
    machine["workload"] = [{"name": "python3", "pid": job.process.pid, "gpus": [0], "util": 50,
                            "memory_bytes": 1 << 30} for job in jobs]
    path.write_text(json.dumps(machine))


def begin_empty():
    for job in Job.jobs:
        job.close()
    Job.jobs.clear()
    begin_anew()


def begin():
    begin_empty()
    PLACE.mkdir()
    os.chown(PLACE, SERVICE, SERVICE)
    use_gpu()


def count(tape=TAPE):
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{tape}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM tick").fetchone()[0]
    return 0


def until(is_true, process):
    while not is_true():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


@contextlib.contextmanager
def recording(*words, uid=SERVICE, tape=TAPE):
    before = count(tape)
    recorder = command(uid, "record", "--shared", "-q", "-n", "0.1", "-o", str(tape), *words)
    until(lambda: count(tape) > before, recorder)
    try:
        yield recorder
        assert recorder.poll() is None, recorder.communicate()
    finally:
        recorder.send_signal(signal.SIGTERM)
        recorder.said = recorder.communicate()[1]


def once(*words, uid=SERVICE, tape=TAPE, shared=True):
    return answer(uid, "record", *(["--shared"] if shared else []), "-q", "-n", "0.1", "--duration", "0.3s", "-o", str(tape), *words)


def sees(uid, tape=TAPE):
    status, out, err, _ = answer(uid, "query", WHO, "--processes", "--tape", str(tape), "-f", "csv")
    assert status == 0, (status, err)
    return out


def bytes_of(folder):
    """All that this process can read there: {name: bytes}."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found[name] = Path(root, name).read_bytes()
    return found


def as_user(uid, function):
    """What a function returns in a process of that user, by JSON."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.write(writing, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        text = told.read()
    os.waitpid(pid, 0)
    return json.loads(text)


# ---- who sees what ----

@test
def each_user_sees_its_own_command_lines():
    begin()
    ann, bob = Job(ANN, "SECRET-OF-ANN"), Job(BOB, "SECRET-OF-BOB")
    use_gpu(ann, bob)
    with recording():
        for uid, seen in ((ANN, {ann}), (BOB, {bob}), (BAD, set()), (0, {ann, bob})):
            text = sees(uid)
            for job in (ann, bob):
                assert str(job.process.pid) in text and str(job.uid) in text, (uid, text)
                assert (job.secret in text) == (job in seen), (uid, text)
    assert TAPE.stat().st_mode & 0o777 == 0o644 and PRIVATE.stat().st_mode & 0o777 == 0o711
    for uid, seen in ((ANN, {ann}), (BAD, set())):  # also after its end
        text = sees(uid)
        assert [job.secret in text for job in (ann, bob)] == [job in seen for job in (ann, bob)], text


@test
def nobody_finds_them_in_the_files():
    """Whatever another user can read of the files, while and after they are written."""
    begin()
    ann = Job(ANN, "SECRET-OF-ANN")
    use_gpu(ann)

    def look():
        files = {name: b"SECRET" in text for name, text in bytes_of(PLACE).items()}
        for name in (str(ANN), "0", f"{ANN}.new"):
            with contextlib.suppress(OSError):
                files[name] = b"SECRET" in (PRIVATE / name).read_bytes()
        return files

    with recording():
        seen = as_user(BAD, look)
        assert {"gpulse.tape", "gpulse.tape-wal"} <= seen.keys() and not any(seen.values()), seen
    assert not any(as_user(BAD, look).values())
    own = as_user(ANN, look)
    assert own.pop(str(ANN)) and not any(own.values()), own
    assert not as_user(ANN, lambda: os.access(PRIVATE / str(ANN), os.W_OK))


@test
def environments_stay_private():
    """Where a process was started is in its environment; root records it, others do not see it."""
    begin()
    os.chown(PLACE, 0, 0)
    ann = Job(ANN, "SECRET-OF-ANN")
    use_gpu(ann)
    assert once(uid=0)[0] == 0
    assert sees(ANN).count("SECRET-OF-ANN") >= 2 and "tmux SECRET-OF-ANN" in sees(ANN)
    assert "SECRET" not in sees(BAD)
    assert b"SECRET" not in TAPE.read_bytes()


@test
def users_of_other_namespaces_are_not_stored():
    begin()
    around = ("unshare", "--user", "--map-root-user")
    if subprocess.run(["setpriv", f"--reuid={ANN}", f"--regid={ANN}", "--clear-groups", *around, "true"],
                      stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no user namespaces can be made here")
    ann, other = Job(ANN, "SECRET-OF-ANN"), Job(ANN, "SECRET-INSIDE", around)
    use_gpu(ann, other)
    assert once()[0] == 0
    for uid in (ANN, 0):
        text = sees(uid)
        assert "SECRET-OF-ANN" in text and "SECRET-INSIDE" not in text and str(other.process.pid) in text, text


@test
def without_acls_nothing_private_is_stored():
    begin()
    if subprocess.run(["mount", "-t", "ramfs", "none", str(PLACE)], check=False).returncode:
        raise Skip("no ramfs can be mounted here")
    os.chown(PLACE, SERVICE, SERVICE)
    ann = Job(ANN, "SECRET-OF-ANN")
    use_gpu(ann)
    status, _, err, _ = once()
    assert status == 0 and "no ACLs" in err, (status, err)
    assert not any(b"SECRET" in text for text in bytes_of(PLACE).values()), bytes_of(PLACE).keys()
    for uid in (ANN, 0):
        assert "SECRET" not in sees(uid) and str(ann.process.pid) in sees(uid)


@test
def one_users_recording_stays_that():
    """A recording with command lines is not opened to all, nor are they added to one that is."""
    begin()
    assert once(shared=False)[0] == 0 and TAPE.stat().st_mode & 0o777 == 0o600
    status, _, err, _ = once()
    assert status == 2 and "one user" in err, (status, err)
    assert TAPE.stat().st_mode & 0o777 == 0o600
    TAPE.unlink()
    assert once()[0] == 0
    status, _, err, _ = once(shared=False)
    assert status == 2 and "--shared" in err, (status, err)


@test
def its_state_is_seen_by_all():
    begin()
    with recording():
        status, out, err, _ = answer(BAD, "record", "status", "-o", str(TAPE))
        assert status == 0 and "by another user" in out, (out, err)
        assert "by process" in answer(SERVICE, "record", "status", "-o", str(TAPE))[1]
    assert re.search("^recording +no$", answer(SERVICE, "record", "status", "-o", str(TAPE))[1], re.M)


@test
def the_machines_recording_is_found():
    begin()
    sh("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/var/lib")
    try:
        os.mkdir("/var/lib/gpulse")
        os.chown("/var/lib/gpulse", SERVICE, SERVICE)
        status, _, err, _ = answer(SERVICE, "record", "--shared", "-q", "-n", "0.1", "--duration", "0.3s")
        assert status == 0, err
        assert "/var/lib/gpulse/gpulse.tape" in answer(BAD, "record", "status")[1]
        assert answer(BAD, "record", "-q", "--duration", "0.3s")[0] == 0
        assert "/.local/state/" in answer(BAD, "record", "status")[1]
        assert "/var/lib/gpulse/gpulse.tape" in answer(BAD, "record", "status", "--shared")[1]
    finally:
        sh("umount", "/var/lib")


@test
def what_a_crash_leaves_is_repaired():
    """An entry that was cut off, and rubbish, do not hide what is stored later."""
    begin()
    ann = Job(ANN, "SECRET-OF-ANN")
    use_gpu(ann)
    assert once()[0] == 0
    with open(PRIVATE / str(ANN), "r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 3)
    assert "SECRET" not in sees(ANN)
    for rubbish in (b"", bytes(4096), b"\xff" * 40):
        with open(PRIVATE / str(ANN), "ab") as file:
            file.write(rubbish)
        later = Job(ANN, "SECRET-LATER")
        use_gpu(ann, later)
        assert once()[0] == 0
        assert "SECRET-LATER" in sees(ANN), rubbish
        later.close()


# ---- what others do to a recorder ----

@test
def locks_and_maps_of_others():
    begin()

    def hold():
        kept = []
        for name in ("gpulse.tape", "gpulse.tape-wal"):
            fd = os.open(PLACE / name, os.O_RDONLY)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.fcntl(fd, 37, struct.pack("hhqqixxxx", fcntl.F_RDLCK, 0, 0, 0, 0))  # F_OFD_SETLK
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, 1024, fcntl.F_RDLCK)  # F_SETLEASE
            kept.append((fd, mmap.mmap(fd, 0, prot=mmap.PROT_READ)))
        hold.kept = kept

    with recording():
        attacker = Attacker(hold)
        before = count()
        time.sleep(2)
        assert count() > before + 5
    with recording():  # it ended, which moves the log to the file, and begins again
        pass
    attacker.close()


def prepare(kind, path):
    {"file": lambda: path.write_bytes(b"x"), "link": lambda: path.symlink_to(HOME / "victim"),
     "dangling": lambda: path.symlink_to(HOME / "victim-2"), "fifo": lambda: os.mkfifo(path),
     "directory": path.mkdir}[kind]()


@test
def what_others_prepared_is_refused():
    """In a directory that all can write to: nothing is followed, opened for good, or waited for."""
    victim = HOME / "victim"
    for uid in (ANN, 0):
        for suffix in ("", "-wal", "-lock", "-private"):
            for kind in ("file", "link", "dangling", "fifo", "directory"):
                begin_empty()
                victim.write_bytes(b"")
                os.chown(victim, uid, uid)
                tape = Path("/tmp/a.tape")
                Attacker(lambda kind=kind, suffix=suffix: prepare(kind, Path(f"{tape}{suffix}"))).close()
                status, _, err, _ = once(uid=uid, tape=tape)
                assert status == 5 and "of yours" in err, (uid, suffix, kind, status, err)
                assert victim.read_bytes() == b"" and not (HOME / "victim-2").exists()
                assert suffix or os.lstat(tape).st_uid == BAD


@test
def an_index_of_another_user_is_not_used():
    """SQLite's index of the log, FILE-shm, would be shared with whoever can write to it."""
    for kind in ("file", "link", "fifo", "directory"):
        begin_empty()
        (HOME / "victim").write_bytes(b"")
        os.chown(HOME / "victim", ANN, ANN)
        Attacker(lambda kind=kind: prepare(kind, Path("/tmp/e.tape-shm"))).close()
        assert once(uid=ANN, tape="/tmp/e.tape")[0] == 0
        assert (HOME / "victim").read_bytes() == b""
        assert answer(BOB, "status", "--tape", "/tmp/e.tape")[0] == 0


@test
def a_second_name_of_a_file_is_refused():
    """Another user may be able to link a file of the victim there."""
    begin_empty()
    for suffix in ("", "-lock"):
        victim = Path("/tmp/victim")
        victim.write_text("precious" if suffix else "")
        victim.chmod(0o600)
        os.chown(victim, ANN, ANN)
        os.link(victim, f"/tmp/b.tape{suffix}")
        status, _, err, _ = once(uid=ANN, tape="/tmp/b.tape")
        assert status == 5 and "of yours" in err, (suffix, status, err)
        assert victim.read_text() == ("precious" if suffix else "")
        os.unlink(f"/tmp/b.tape{suffix}")


@test
def directories_of_others_are_refused():
    begin_empty()
    for mode, owner in ((0o777, 0), (0o755, BAD)):
        folder = Path(f"/tmp/{mode}")
        folder.mkdir()
        folder.chmod(mode)
        os.chown(folder, owner, owner)
        status, _, err, _ = once(uid=0, tape=folder / "a.tape")
        assert status == 5 and "can replace files" in err, (status, err)
        assert not list(folder.iterdir())


def hot_journal(super_journal):
    """A journal that takes a database back to one page, and has the file that it names removed."""
    name = super_journal.encode()
    header = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 0, 1, 512, 4096)
    tail = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + \
        bytes.fromhex("d9d505f920a163d7")
    return header.ljust(512, b"\0") + tail


@test
def a_journal_of_another_user_is_not_played_back():
    begin_empty()
    tape = Path("/tmp/a.tape")
    assert once(uid=ANN, tape=tape)[0] == 0
    before = count(tape)
    precious = HOME / "precious"
    precious.write_bytes(b"x\0")
    os.chown(precious, ANN, ANN)
    HOME.chmod(0o777)
    Attacker(lambda: Path(f"{tape}-journal").write_bytes(hot_journal(str(precious))) and None).close()
    for uid in (ANN, BOB):
        status, out, err, _ = answer(uid, "record", "status", "-o", str(tape))
        assert status == 0, (uid, out, err)
    status, _, err, _ = once(uid=ANN, tape=tape)
    assert status == 0, err
    HOME.chmod(0o755)
    assert precious.exists()
    os.unlink(f"{tape}-journal")
    assert count(tape) > before


@test
def a_recorder_that_is_named_is_not_ended():
    """A lock file of another user that names a process of root."""
    begin_empty()
    victim = subprocess.Popen(["sleep", "600"])
    Path("/tmp/c.tape").write_bytes(b"")

    def claim():
        fd = os.open("/tmp/c.tape-lock", os.O_RDWR | os.O_CREAT, 0o644)
        os.write(fd, b"%d\n" % victim.pid)
        fcntl.flock(fd, fcntl.LOCK_EX)

    attacker = Attacker(claim)
    status, out, err, _ = answer(0, "record", "stop", "-o", "/tmp/c.tape")
    assert status == 1 and "no recorder is writing" in err, (status, out, err)
    assert victim.poll() is None
    attacker.close()
    victim.kill()
    victim.wait()


# ---- what others do to a reader ----

def changed_log(tape):
    """A log that belongs to this file, with other values."""
    folder = Path("/dev/shm/forge")
    folder.mkdir()
    shutil.copy(tape, folder / "t")
    db = sqlite3.connect(folder / "t")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA wal_autocheckpoint=0")
    db.execute("UPDATE gpu SET name = 'FORGED'")
    db.execute("DELETE FROM tick")
    db.commit()
    log = (folder / "t-wal").read_bytes()
    db.close()
    shutil.rmtree(folder)
    return log


@test
def a_log_of_another_user_is_not_read():
    begin_empty()
    tape = Path("/tmp/d.tape")
    assert once(uid=ANN, tape=tape)[0] == 0
    log = changed_log(tape)
    Attacker(lambda: Path(f"{tape}-wal").write_bytes(log) and None).close()
    for uid in (ANN, BOB, 0):
        status, out, err, _ = answer(uid, "status", "--tape", str(tape))
        assert status == 5 and "does not belong" in err, (uid, status, out, err)
    status, _, err, _ = once(uid=ANN, tape=tape)
    assert status == 5 and "of yours" in err, (status, err)
    os.unlink(f"{tape}-wal")
    assert answer(BOB, "status", "--tape", str(tape))[0] == 0


@test
def a_log_that_is_no_file_is_not_read():
    for kind in ("link", "dangling", "fifo", "directory"):
        begin_empty()
        assert once(uid=ANN, tape="/tmp/f.tape")[0] == 0
        Attacker(lambda kind=kind: prepare(kind, Path("/tmp/f.tape-wal"))).close()
        status, out, err, _ = answer(BOB, "status", "--tape", "/tmp/f.tape")
        assert status == 5 and "does not belong" in err, (kind, status, out, err)


@test
def private_texts_of_strangers_are_harmless():
    """A recording and its private files, all made by another user, as root sees them."""
    begin()
    os.chown(PLACE, BAD, BAD)
    bad = Job(BAD, "HARMLESS")
    use_gpu(bad)
    assert once(uid=BAD)[0] == 0
    path = PRIVATE / str(BAD)
    honest = path.read_bytes()
    evil = honest.replace(b"HARMLESS", b"\x1b[2J\x9bEVI")
    assert evil != honest
    for text in (evil, honest[:-1], honest[:30], honest + b"\xff" * 9 + b"\x01", b"gpulse private 1\n" + b"\x80" * 64,
                 b"gpulse private 1\n\xff\xff\x3f", bytes(1000), b"", honest * 3):
        path.write_bytes(text)
        out = sees(0)
        assert "\x1b" not in out and "\x9b" not in out and str(bad.process.pid) in out, (text, out)
    path.write_bytes(evil)
    assert "EVI" in sees(0)
    path.unlink()
    for kind in ("link", "fifo", "directory"):
        (HOME / "victim").write_bytes(honest)
        os.chown(HOME / "victim", ANN, ANN)
        prepare(kind, path)
        assert "HARMLESS" not in sees(0), kind
        path.rmdir() if kind == "directory" else path.unlink()


# ---- who waits for GPUs ----

def waiting_line():
    status, out, err, _ = answer(SERVICE, "queue", "-f", "json")
    assert status == 0, err
    return [(lease["user"], lease["state"]) for lease in json.loads(out)["leases"]]


def has_line(user, state, process):
    until(lambda: (str(user), state) in waiting_line(), process)


def forged_waits(supervisor):
    """What a user can write to look like another who waits, and has for long."""
    def play():
        text = lease_text(pid=supervisor, uid=ANN, user=ANN, name="honest", ticket=1)
        path = own()
        put(path, "wait.00000000000000aa", text)
        put(path, "wait.00000000000000ab", lease_text(name="mine"))
        for name in ("wait.00000000000000aa", "wait.00000000000000ab"):
            os.utime(f"{path}/{name}", (1, 1))
        for place in ("/dev/shm", "/tmp"):
            for uid, suffix in ((ANN, ".forged"), (BOB, ""), (BOB, ".x")):
                with contextlib.suppress(OSError):
                    put(own(place, suffix, uid), "wait.00000000000000ac", lease_text(name="forged"))
        for target in Path("/dev/shm", f"gpulse-{ANN}").glob("wait.*"):
            for make in (os.link, os.symlink):
                with contextlib.suppress(OSError):
                    make(target, f"{path}/wait.00000000000000{'ad' if make is os.link else 'ae'}")
    return play


@test
def nobody_can_make_another_user_wait():
    """A request counts for the owner of its file, from when the kernel saw it; whatever is written in it."""
    begin()
    begun = time.monotonic()
    holder = command(BOB, "run", "-q", "-i", "0", "--", "sleep", "600")
    has_line(BOB, "held", holder)
    with recording() as recorder:
        ann = command(ANN, "run", "-q", "-i", "0", "--wait", "10m", "--name", "honest", "--", "sleep", "600")
        started = time.monotonic()
        has_line(ANN, "waiting", ann)
        seen = time.monotonic()
        attacker = Attacker(forged_waits(ann.pid))
        try:
            until(lambda: waiting_line().count((str(BAD), "waiting")) >= 2, recorder)
            before = count()
            until(lambda: count() > before + 25, recorder)  # it looks at the line every two seconds
            ended = time.monotonic()
            holder.terminate()
            has_line(ANN, "held", ann)
            before = count()
            until(lambda: count() > before + 1, recorder)
            granted = time.monotonic()  # and seen by the recorder
            until(lambda: count() > before + 20, recorder)
        finally:
            attacker.close()
            for process in (holder, ann):
                process.kill()
                process.communicate()
    status, out, err, _ = answer(SERVICE, "report", str(TAPE), "--by", "wait,user", "-f", "json")
    assert status == 0, err
    document = json.loads(out)
    rows = defaultdict(list)
    for row in document["tables"][0]["rows"]:
        rows[row["user"]].append(row)
    assert set(rows) == {str(ANN), str(BAD)}, rows
    one, = rows[str(ANN)]
    assert one["job"] == "honest" and one["waits"] == 1, one
    assert ended - seen - 0.5 <= one["waited_hours"] * 3600 <= granted - started + 0.5, (one, started, seen, ended, granted)
    assert {row["job"] for row in rows[str(BAD)]} >= {"honest", "mine"}, rows
    for row in rows[str(BAD)]:
        assert row["waited_longest_hours"] * 3600 < time.monotonic() - begun, row
    with contextlib.closing(sqlite3.connect(TAPE)) as db:
        assert "sleep 600" not in str(db.execute("SELECT * FROM line").fetchall())


if __name__ == "__main__":
    run_as_root(__file__)
    try:
        main()
    finally:
        for last in Job.jobs:
            last.close()
