#!/usr/bin/env python3
"""gpulse record, and --tape: simulated machines that are recorded while others look at them.

variants: asan release
"""
import atexit
import contextlib
import csv
import io
import json
import lzma
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tap import GPULSE, VARIANT, Skip, good, gpulse, main, run, test

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-tape-"))
ENV = dict(os.environ, XDG_STATE_HOME=str(FOLDER / "state"))
MACHINE = "h100x2"


def record(name, *words, sim=MACHINE):
    """Starts recording; returns the process and the file when the first sample is stored."""
    tape = FOLDER / name
    recorder = subprocess.Popen([GPULSE, "--sim", sim, "record", "-q", "-o", tape, *words], env=ENV,
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    before = count(tape)
    until(lambda: count(tape) > before, recorder)
    return recorder, tape


def count(tape):
    """How many samples are stored. What is not there is not opened: that would create it, empty."""
    try:
        return len(times(tape)) if tape.exists() else 0
    except sqlite3.Error:
        return 0


def until(is_true, process=None):
    while not is_true():
        assert process is None or process.poll() is None, process.communicate()[1]
        time.sleep(0.05)


def end(recorder, sig=signal.SIGINT):
    recorder.send_signal(sig)
    said = recorder.communicate()[1]
    return recorder.returncode, said


def rows(tape, *words):
    return list(csv.DictReader(io.StringIO(good(gpulse("query", *words, "--tape", tape, "-f", "csv")))))


def database(tape):
    """As another program opens it, which does not know of gpulse."""
    return contextlib.closing(sqlite3.connect(tape))


def times(tape):
    """When samples were taken, in seconds."""
    with database(tape) as db:
        return [t / 1e6 for t, in db.execute("SELECT t FROM tick ORDER BY t")]


def local(seconds):
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


# ---- what was recorded is what is shown ----

@test
def the_same_as_query_shows():
    """On a machine that stands still, so that both see the same."""
    tape = FOLDER / "still.tape"
    good(gpulse("--sim", "h100x2", "--sim-still", "record", "-q", "-o", tape, "--duration", "1.5s"))
    for kind in ("--host", "--processes", "--mig"):
        there = list(csv.DictReader(io.StringIO(good(
            gpulse("--sim", "h100x2", "--sim-still", "query", "*", kind, "-f", "csv")))))
        recorded = rows(tape, "*", kind)
        assert len(there) == len(recorded) > 0
        moving = {"timestamp", "host.cpu.utilization", "host.load.1m", "host.uptime", "host.memory.available",
                  "host.swap.used", "process.idle", "process.last_active", "process.energy", "process.power",
                  "process.start_time", "process.cpu", "energy.consumption"}
        for one, other in zip(there, recorded):
            wrong = {name: (one[name], other[name]) for name in one
                     if name not in moving and "throughput" not in name and "gpm" not in name and one[name] != other[name]}
            assert not wrong, wrong


def by_subject(text):
    """Rows of NDJSON, by what they are about: lists of times and values."""
    subjects = {}
    for line in text.splitlines():
        row = json.loads(line)
        subjects.setdefault((row["index"], row.get("pid")), []).append(
            (datetime.fromisoformat(row.pop("time")).timestamp(), row))
    return subjects


def is_among(value, others):
    """Whether it is one of these values, or a number between them."""
    numbers = [other for other in others if isinstance(other, (int, float))]
    if value in others or not isinstance(value, (int, float)) or not numbers:
        return value in others
    room = max(map(abs, numbers)) / 1000 + (max(numbers) < 1e5)  # for the top of a wave
    return min(numbers) - room <= value <= max(numbers) + room


# Shares of the time since the sample before, a second ago for a query: among those of that second.
OF_THE_LAST_SECOND = re.compile("^throttle[.]")
# Values that are changes since the sample before, or read less often than the others, so that they are of another time.
OF_ANOTHER_TIME = re.compile("timestamp|reasons|[.](mean|peak)$|throughput|gpm|last_active|idle|cpu|process.(energy|power)")


@test
def every_value_as_a_query_saw_it():
    """A query beside the recorder, on a machine that moves: each value is among those that were recorded around it."""
    seconds = 600 if os.environ.get("GPULSE_TEST_LONG") else 6
    recorder, tape = record("moving.tape", "-n", "0.1")
    time.sleep(1)
    queries = [subprocess.Popen([GPULSE, "--sim", MACHINE, "query", "*", *kind, "-n", "1", "-f", "ndjson", "--duration", f"{seconds}s"],
                                stdout=subprocess.PIPE, text=True) for kind in ([], ["--processes"])]
    seen = [query.communicate()[0] for query in queries]
    time.sleep(1)
    assert end(recorder)[0] == 130
    for kind, text in zip(([], ["--processes"]), seen):
        recorded = by_subject(good(gpulse("query", "*", *kind, "--tape", tape, "--at", "start", "-n", "0.1", "-f", "ndjson")))
        compared = 0
        for subject, samples in by_subject(text).items():
            for when, row in samples:
                near = [other for t, other in recorded[subject] if abs(t - when) < 0.5]
                assert near, (subject, when)
                before = [other for t, other in recorded[subject] if when - 1.5 < t <= when - 0.5]
                wrong = {}
                for name, value in row.items():
                    others = [other[name] for other in near + (before if OF_THE_LAST_SECOND.search(name) else [])]
                    if not OF_ANOTHER_TIME.search(name) and not is_among(value, others):
                        wrong[name] = (value, others)
                assert not wrong, wrong
                compared += len(row)
        assert compared > (50 if kind else 500) * seconds, compared


@test
def looking_at_it():
    tape = FOLDER / "still.tape"
    assert "H100" in good(gpulse("status", "--tape", tape))
    assert "python" in good(gpulse("--tape", tape, "ps")) or "COMMAND" in good(gpulse("--tape", tape, "ps"))
    assert "NVIDIA-SMI" in good(gpulse("--tape", tape, "smi"))
    plain = good(gpulse("top", "--plain", "--tape", tape, "-c", "1"))
    assert "H100" in plain, plain


@test
def what_acts_refuses_a_recording():
    tape = FOLDER / "still.tape"
    for command in ("kill", "set", "events", "doctor", "pick"):
        result = gpulse(command, "--tape", tape)
        assert result.returncode == 2 and "not on a recording" in result.stderr, (command, result)
    assert gpulse("status", "--at", "03:10").returncode == 2
    result = gpulse("status", "--tape", tape, "--sim", "h100")
    assert result.returncode == 2 and "cannot be combined" in result.stderr


@test
def times_that_were_not_recorded():
    tape = FOLDER / "still.tape"
    for at in ("2020-01-01", "2d ago", "now"):
        result = gpulse("status", "--tape", tape, "--at", at)
        if at == "now" and result.returncode == 0:
            continue  # it was recorded less than a moment ago
        assert result.returncode == 2 and "nothing was recorded" in result.stderr, (at, result)
    assert "is not a time" in gpulse("status", "--tape", tape, "--at", "noon").stderr
    early = gpulse("status", "--tape", tape, "--at", "2020-01-02 03:04").stderr
    assert "nothing was recorded at 2020-01-02 03:04:00; the recording is from " in early, early
    assert good(gpulse("query", "name", "--tape", tape, "--at", "end")) == good(gpulse("query", "name", "--tape", tape))
    result = gpulse("status", "--tape", FOLDER / "none.tape")
    assert result.returncode == 1 and "No such file" in result.stderr, result


@test
def a_recording_of_the_first_format():
    """Made by the first gpulse that recorded. Newer ones must read it, and continue it."""
    tape = FOLDER / "first.tape"
    tape.write_bytes(lzma.decompress((ROOT / "tests/compat/recording-1.tape.xz").read_bytes()))
    tape.chmod(0o600)
    assert [row["utilization.gpu"] for row in rows(tape, "name,utilization.gpu")] == ["97", "97"]
    before = count(tape)
    document = json.loads(good(gpulse("report", tape, "--by", "gpu,user", "-f", "json")))
    assert document["processes_known"] and document["waiting_seen_percent"] is None, document
    assert not any(row["waited_hours"] for row in document["tables"][1]["rows"]), document
    good(gpulse("--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "1s"))
    assert count(tape) > before > 0
    with database(tape) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
    after = json.loads(good(gpulse("report", tape, "--by", "wait", "-f", "json")))
    assert 0 < after["waiting_seen_percent"] < 100, "only of the time since it was continued"


@test
def an_upgrade_that_is_killed():
    """Killed at any of its writes, the file is of the one version or of the other, and is continued."""
    if VARIANT != "release" or not shutil.which("strace"):
        raise Skip("needs strace, and no sanitizer")
    first = lzma.decompress((ROOT / "tests/compat/recording-1.tape.xz").read_bytes())
    versions = set()
    for write in range(1, 25, 2):
        folder = FOLDER / f"killed-{write}"
        folder.mkdir()
        tape = folder / "t"
        tape.write_bytes(first)
        tape.chmod(0o600)
        killed = run("strace", "-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e", f"inject=pwrite64:signal=KILL:when={write}",
                     GPULSE, "--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "300ms")
        if "ptrace" in killed.stderr:
            raise Skip("no process may be traced here")
        if killed.returncode == 0:
            break  # it does not write that often
        assert killed.returncode == -signal.SIGKILL, (write, killed)
        assert rows(tape, "name"), write
        with database(tape) as db:
            versions.add(db.execute("PRAGMA user_version").fetchone()[0])
            before = db.execute("SELECT count(*) FROM tick").fetchone()[0]
        good(gpulse("--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "300ms"))
        with database(tape) as db:
            assert db.execute("PRAGMA user_version").fetchone() == (2,) and db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert count(tape) > before > 0
    assert versions == {1, 2}, versions


@test
def very_many_who_wait():
    """A user who invents requests does not fill the file, and those of others stay."""
    tape = FOLDER / "requests.tape"
    good(gpulse("--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "1s"))
    with database(tape) as db:
        long_ago = db.execute("SELECT max(t) FROM tick").fetchone()[0] - 10 * 3600 * 1_000_000
        db.executemany("INSERT INTO line VALUES(NULL, ?, ?, ?, 1, ?, ?)",
                       [(n, "bad", f"job {n}", long_ago, long_ago + 1000 + n) for n in range(3000)]
                       + [(1, "ann", "honest", long_ago, long_ago + 1_000_000), (0, None, None, long_ago, long_ago + 1)])
        db.commit()
    good(gpulse("--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "1s", "--size", "1M"))
    with database(tape) as db:
        users = dict(db.execute("SELECT user, count(*) FROM line GROUP BY user"))
        assert 0 < users["bad"] < 256 and users["ann"] == 1 and users[None] >= 3, users
        assert db.execute("SELECT min(request) FROM line WHERE user = 'bad'").fetchone()[0] > 2700, "the shortest go first"


# ---- recording ----

@test
def the_record_of_a_command():
    tape = FOLDER / "command.tape"
    result = gpulse("--sim", MACHINE, "record", "-o", tape, "-n", "0.2", "--", "sh", "-c", "sleep 1; exit 7")
    assert result.returncode == 7, result
    assert len(times(tape)) >= 4
    assert gpulse("--sim", MACHINE, "record", "-o", tape, "--", "/nonexistent").returncode == 127
    assert gpulse("--sim", MACHINE, "record", "-o", tape, "--").returncode == 2


@test
def in_the_background():
    started = run(GPULSE, "--sim", MACHINE, "record", "start", "-n", "0.2", env=ENV)
    assert started.returncode == 0 and "recording to" in started.stdout, started
    again = run(GPULSE, "--sim", MACHINE, "record", "start", env=ENV)
    assert again.returncode == 69 and "already" in again.stderr, again
    own = FOLDER / "state/gpulse/record/gpulse.tape"
    assert own.stat().st_mode & 0o777 == 0o600 and own.parent.stat().st_mode & 0o777 == 0o700
    until(lambda: "2 GPUs" in run(GPULSE, "record", "status", env=ENV).stdout)
    status = good(run(GPULSE, "record", "status", env=ENV))
    assert "yes, by process" in status and "2 GPUs" in status, status
    assert "stopped" in good(run(GPULSE, "record", "stop", env=ENV))
    assert re.search("^recording +no$", good(run(GPULSE, "record", "status", env=ENV)), re.M)
    nothing = run(GPULSE, "record", "stop", env=ENV)
    assert nothing.returncode == 1 and "no recorder is writing" in nothing.stderr
    failed = run(GPULSE, "--sim", "nosuch", "record", "start", env=ENV)
    assert failed.returncode != 0 and "nosuch" in failed.stderr, failed


@test
def how_much_before_an_incident():
    """A bad length is a usage error, in the background, too; then nothing is created."""
    tape = FOLDER / "before.tape"
    for verb in ((), ("start",)):
        for bad in ("2h", "61s", "-1s", "soon", ""):
            result = gpulse("--sim", MACHINE, "record", *verb, "-q", "-o", tape, f"--before={bad}", "--duration", "1s")
            assert result.returncode == 2 and f"bad value '{bad}' for --before" in result.stderr, (verb, bad, result)
    assert not tape.exists()
    for well in ("0", "1m", "500ms"):
        good(gpulse("--sim", MACHINE, "record", "-q", "-o", tape, f"--before={well}", "--duration", "300ms"))


@test
def what_it_says():
    tape = FOLDER / "said.tape"
    said = gpulse("--sim", MACHINE, "record", "-o", tape, "--duration", "1s", "-n", "0.2").stderr
    assert "recording to" in said and re.search(r"\d samples stored; gpulse top --tape", said), said
    directory = gpulse("--sim", MACHINE, "record", "-o", FOLDER, "--duration", "1s")
    assert directory.returncode == 2 and "is a directory" in directory.stderr, directory


@test
def a_recording_is_continued():
    tape = FOLDER / "twice.tape"
    for _ in range(2):
        good(gpulse("--sim", MACHINE, "record", "-q", "-o", tape, "-n", "0.2", "--duration", "1s"))
    with database(tape) as db:
        assert db.execute("SELECT count(*) FROM event WHERE kind = 'start'").fetchone() == (2,)
        assert db.execute("SELECT count(*) FROM gpu").fetchone() == (2,)
        processes, pids = db.execute("SELECT count(*), count(DISTINCT pid) FROM process").fetchone()
        assert processes == pids > 0
    assert times(tape) == sorted(times(tape))


@test
def others_read_it_meanwhile():
    """With SQLite's own tools, which would remove the log when they end, if nobody uses it."""
    recorder, tape = record("others.tape", "-n", "0.1")
    for _ in range(10):
        assert count(tape) > 0
        time.sleep(0.2)
    recorder.kill()
    recorder.communicate()
    taken = times(tape)
    assert len(taken) >= 10 and max(b - a for a, b in zip(taken, taken[1:])) < 2, taken


@test
def killed_at_any_moment():
    """No sample but those of the last second is lost, and none is wrong."""
    moments = random.Random(27)
    tape = FOLDER / "killed.tape"
    stored = 0
    for _ in range(4 if VARIANT == "asan" else 12):
        recorder, _ = record(tape.name, "-n", "0.1")
        time.sleep(moments.uniform(0.5, 2.5))
        killed = time.time()
        recorder.kill()
        recorder.communicate()
        with database(tape) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            last, count = db.execute("SELECT max(t), count(*) FROM tick").fetchone()
        assert count > stored
        stored = count
        if VARIANT != "asan":
            assert killed - last / 1e6 < 2.5, killed - last / 1e6
        assert len(rows(tape, "uuid,power.draw")) == 2
    good(gpulse("--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "1s"))


@test
def a_damaged_recording_is_refused():
    """Cut or changed anywhere: an error or values, never a crash or a hang."""
    tape = FOLDER / "damaged.tape"
    whole = (FOLDER / "killed.tape").read_bytes()
    chance = random.Random(2727)
    good(gpulse("status", "--tape", FOLDER / "killed.tape"))
    for _ in range(15 if VARIANT == "asan" else 60):
        damaged = bytearray(whole)
        if chance.random() < 0.3:
            del damaged[chance.randrange(len(damaged)):]
        for _ in range(chance.randrange(1, 40)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        tape.write_bytes(damaged)
        result = gpulse("query", "power.draw", "--tape", tape, timeout=120)
        assert result.returncode in (0, 1, 2, 6, 69), result


@test
def numbers_that_end_are_refused():
    """A crafted recording whose next request in the waiting line would have no number."""
    tape = FOLDER / "numbers.tape"
    good(gpulse("--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "1s"))
    with database(tape) as db:
        db.execute("INSERT INTO line VALUES(?, 1, 'ann', 'job', 1, 1, 2)", ((1 << 63) - 1,))
        db.commit()
    result = gpulse("--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "1s")
    assert result.returncode == 2 and "numbers.tape' is damaged" in result.stderr, result


@test
def foreign_tables_are_refused():
    """SQLite would run what another program's file contains."""
    for statement in ("CREATE VIEW extra AS SELECT 1", "CREATE TRIGGER t AFTER INSERT ON meta BEGIN SELECT 1; END",
                      "CREATE TABLE extra(x)", "PRAGMA user_version=99", "PRAGMA application_id=1"):
        tape = FOLDER / "foreign.tape"
        shutil.copy(FOLDER / "still.tape", tape)
        with database(tape) as db:
            db.execute(statement)
            db.commit()
        result = gpulse("status", "--tape", tape)
        assert result.returncode == 2, (statement, result)
        assert ("newer gpulse" if "99" in statement else "damaged") in result.stderr, (statement, result)


@test
def a_full_disk():
    """It records to memory, says so, and goes on when there is room."""
    if os.geteuid() != 0:
        raise Skip("needs root for a small file system")
    small = FOLDER / "small"
    small.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", small).returncode != 0:
        raise Skip("no file system can be mounted here")
    try:
        recorder, tape = record("small/a.tape", "-n", "0.1")
        with open(small / "filler", "wb") as filler:
            try:
                while True:
                    filler.write(b"x" * 65536)
                    filler.flush()
            except OSError:
                pass
        time.sleep(4)
        (small / "filler").unlink()
        time.sleep(2.5)
        stopped, said = end(recorder)
        assert "recording to memory" in said and "again" in said, said
        assert stopped == 130, (stopped, said)
        taken = times(tape)
        assert len(taken) > 40 and max(b - a for a, b in zip(taken, taken[1:])) < 2, taken
    finally:
        run("umount", small)


@atexit.register
def clean_up():
    run(GPULSE, "record", "stop", env=ENV)
    shutil.rmtree(FOLDER, ignore_errors=True)


main()
