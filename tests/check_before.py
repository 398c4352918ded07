#!/usr/bin/env python3
"""gpulse record --before: simulated machines that lose a GPU while they are recorded.

variants: asan release
"""
import atexit
import contextlib
import csv
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tap import GPULSE, VARIANT, good, gpulse, main, run, test

FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-before-"))
MACHINE = "h100x2"
os.environ["TZ"] = "UTC"
time.tzset()


def environment(name):
    """A state of the simulated machine of its own."""
    state = FOLDER / f"{name}.state"
    state.mkdir(mode=0o700, exist_ok=True)
    return dict(os.environ, GPULSE_SIM_STATE=str(state))


def begin(name, *words):
    tape = FOLDER / f"{name}.tape"
    recorder = subprocess.Popen([GPULSE, "--sim", MACHINE, "record", "-q", "-o", tape, *words],
                                env=environment(name), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until(lambda: number(tape, "SELECT count(*) FROM tick") > 0, recorder)
    return recorder, tape


def until(is_true, process):
    while not is_true():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)


def number(tape, sql, *values):
    """0: not yet. Read only: what is not there must not be created, empty, under the recorder's hands."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{tape}?mode=ro", uri=True)) as db:
            return db.execute(sql, values).fetchone()[0]
    except sqlite3.Error:
        return 0


def fault(name, *words):
    good(run(GPULSE, "sim", "fault", "-m", MACHINE, *words, env=environment(name)))


def windows(tape):
    """The incidents with samples: when they begin and end in seconds, and how many samples they have."""
    with contextlib.closing(sqlite3.connect(tape)) as db:
        return [(first / 1e6, last / 1e6, count) for first, last, count in
                db.execute("SELECT first, last, count FROM chunk WHERE step = 1000 ORDER BY first")]


def end(recorder):
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate()[1]
    assert recorder.returncode == 130, (recorder.returncode, said)


def local(seconds):
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def rows(tape, at, *words):
    """What is shown; the exit code says whether a GPU was lost then."""
    result = gpulse("query", "timestamp,index,status,power.draw,power.limit,name", "--tape", tape, "--at", at,
                    "-f", "csv", *words)
    assert result.returncode in (0, 6), result
    return list(csv.DictReader(io.StringIO(result.stdout)))


def lose_a_gpu(name, after, *words):
    """A recording in which GPU 1 is lost so many seconds after it began; returns it and when that was."""
    recorder, tape = begin(name, *words)
    time.sleep(after)
    lost = time.time()
    fault(name, "--gpu", "1", "lost")
    until(lambda: number(tape, "SELECT count(*) FROM event WHERE kind = 'lost'") > 0, recorder)
    time.sleep(3.5)
    end(recorder)
    return tape, lost


LOST, LOST_AT = lose_a_gpu("lost", 12)


@test
def the_ten_seconds_before_a_loss():
    (first, last, count), = windows(LOST)
    if VARIANT != "asan":
        assert 95 <= count <= 123, count
        assert abs(LOST_AT - 10 - first) < 0.7, (LOST_AT, first)
    assert 1.5 < last - LOST_AT < 4, (LOST_AT, last)
    found = [row for row in rows(LOST, local(LOST_AT - 5), "-n", "0.1", "-c", "40") if row["index"] == "1"]
    times = [datetime.fromisoformat(row["timestamp"]).timestamp() for row in found]
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert all(gap >= 0 for gap in gaps) and len(set(times)) > 20, times
    assert sorted(gaps)[len(gaps) // 2] < 0.15, gaps
    assert len({row["power.draw"] for row in found}) > 10, found
    limits = {row["power.limit"] for row in found}
    assert {"700.00"} <= limits <= {"700.00", "[Timeout]"}, limits  # of the sample before, which may have been late


@test
def the_moment_of_the_loss():
    """It is seen within a moment, though samples are a second apart; what is not known then is not shown."""
    with contextlib.closing(sqlite3.connect(LOST)) as db:
        event, = db.execute("SELECT t FROM event WHERE kind = 'lost'").fetchone()
        ticks = [t / 1e6 for t, in db.execute("SELECT t FROM tick")]
    if VARIANT != "asan":
        assert -0.1 < event / 1e6 - LOST_AT < 0.9, (event, LOST_AT)
        gaps = [b - a for a, b in zip(ticks, ticks[1:])]
        assert sorted(gaps)[len(gaps) // 2] < 1.5 and max(gaps) < 5, gaps  # on a busy machine, one may be late
    found = rows(LOST, local(event / 1e6 + 1))
    assert [row["status"] for row in found] == ["ok", "lost"], found
    assert found[1]["power.limit"] == found[1]["power.draw"] == "[GPU is lost]", found
    assert "H100" in found[1]["name"]


@test
def other_commands_see_them():
    assert "1, with" in good(gpulse("record", "status", "-o", LOST)) and "10 Hz" in good(
        gpulse("record", "status", "-o", LOST))
    report = good(gpulse("report", LOST))
    assert f"1 incident is recorded with 10 samples a second, from {local(windows(LOST)[0][0])} on" in report, report
    trace = FOLDER / "lost.json"
    good(gpulse("record", "export", LOST, "-o", trace))
    power = [event["ts"] for event in json.loads(trace.read_text())["traceEvents"]
             if event.get("ph") == "C" and event["name"] == "power"]
    first, last, count = windows(LOST)[0]
    assert len(power) > count, (len(power), count)


@test
def nothing_happens_and_nothing_is_stored():
    recorder, tape = begin("quiet")
    time.sleep(4)
    fault("quiet", "--gpu", "0", "xid=13")  # a program's error
    until(lambda: number(tape, "SELECT count(*) FROM event WHERE kind = 'xid'") > 0, recorder)
    time.sleep(1)
    end(recorder)
    assert windows(tape) == []
    assert "incidents" not in good(gpulse("record", "status", "-o", tape))
    assert "samples a second" not in good(gpulse("report", tape))


@test
def it_can_be_off_or_shorter():
    for name, words, most in ("off", ["--before", "0"], 0), ("fast", ["-n", "0.1"], 0), ("short", ["--before", "2s"], 43):
        tape, _ = lose_a_gpu(name, 4, *words)
        count = sum(count for _, _, count in windows(tape))
        assert count <= most and (count > 0) == (most > 0), (name, count)
    for wrong in ("2h", "-1s", "soon"):
        result = gpulse("--sim", MACHINE, "record", "-o", FOLDER / "no.tape", f"--before={wrong}")
        assert result.returncode == 2 and "up to 60s" in result.stderr, result


@test
def killed_while_it_is_written():
    """At the moment of the incident, and after it: what is there is whole."""
    for delay in (0.3, 0.8, 1.3, 2.2):
        name = f"killed{delay}"
        recorder, tape = begin(name)
        time.sleep(3)
        fault(name, "--gpu", "1", "lost")
        until(lambda: number(tape, "SELECT count(*) FROM event WHERE kind = 'lost'") > 0, recorder)
        time.sleep(delay)
        recorder.kill()
        recorder.communicate()
        with contextlib.closing(sqlite3.connect(tape)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (first, last, count), = windows(tape)
        assert count >= (5 if VARIANT == "asan" else 20), (delay, count)
        found = rows(tape, local(first + 1.5), "-n", "0.1", "-c", "10")
        assert len({row["power.draw"] for row in found}) > 3, found
        good(run(GPULSE, "--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "1s", env=environment(name)))
        assert windows(tape)[0] == (first, last, count)


@test
def a_gpu_that_hangs_delays_no_sample():
    silent = "SELECT count(*) FROM event WHERE kind = 'silent'"
    for attempt in range(5):  # on a busy machine a healthy GPU may be silent for a second, too
        name = f"hangs{attempt}"
        recorder, tape = begin(name, "--timeout", "1s")
        time.sleep(3)
        if number(tape, silent) == 0:
            break
        end(recorder)
    fault(name, "--gpu", "1", "hang=4s:nvmlDeviceGetPowerUsage")
    until(lambda: number(tape, silent) > 0, recorder)
    time.sleep(4)
    end(recorder)
    with contextlib.closing(sqlite3.connect(tape)) as db:
        ticks = [t / 1e6 for t, in db.execute("SELECT t FROM tick")]
    if VARIANT != "asan":
        assert max(b - a for a, b in zip(ticks, ticks[1:])) < 2.6, ticks
    assert len(windows(tape)) == 1
    first, last, _ = windows(tape)[0]
    found = [rows(tape, local(first + i)) for i in range(1, int(last - first) + 2)]
    both = [(row[0]["status"], row[1]["status"]) for row in found]
    assert ("ok", "timeout") in both, both  # on a busy machine the healthy one may be late at times


@atexit.register
def clean_up():
    shutil.rmtree(FOLDER, ignore_errors=True)


main()
