#!/usr/bin/env python3
"""gpulse replay and gpulse top on a recording, in a terminal: playing, moving in it, its timeline; and that no
command shows anything of this machine as if it were in a recording.

variants: asan release
"""
import atexit
import contextlib
import csv
import io
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tap import GPULSE, good, gpulse, main, run, test
from terminal import Terminal

FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-replay-"))
MACHINE = "h100x2"
CONFIG = ("--config", "none")
os.environ["TZ"] = "UTC"
time.tzset()


def record(name, *words, sim=MACHINE):
    tape = FOLDER / name
    good(gpulse("--sim", sim, "record", "-q", "-o", tape, *words))
    return tape


def database(tape):
    return contextlib.closing(sqlite3.connect(tape))


def times(tape):
    """When samples were taken, in microseconds."""
    with database(tape) as db:
        return [t for t, in db.execute("SELECT t FROM tick ORDER BY t")]


def add_event(tape, t, kind, words, gpu=1):
    with database(tape) as db:
        db.execute("INSERT INTO event(t, gpu, kind, number, reported, was, now, words) "
                   "VALUES(?, ?, ?, 0, 1, '', '', ?)", (t, gpu, kind, words))
        db.commit()


def local(us):
    return datetime.fromtimestamp(us // 1000000).strftime("%Y-%m-%d %H:%M:%S")


def watts(tape, at=None):
    """Of each GPU, as query shows it."""
    text = good(gpulse("query", "power.draw", "--tape", tape, "-f", "csv", *(["--at", at] if at else [])))
    return [float(row["power.draw"]) for row in csv.DictReader(io.StringIO(text))]


def shown_watts(terminal):
    return [int(n) for n in re.findall(r"(\d+)/700 ?W", terminal.text())]


def shows(terminal, wanted):
    """Whole watts: query has two decimals, so one that is half a watt may be rounded either way."""
    shown = shown_watts(terminal)
    return len(shown) == len(wanted) and all(abs(a - b) < 0.51 for a, b in zip(shown, wanted))


def status(terminal):
    """The line that says where in the recording it is."""
    return next((line.strip() for line in terminal.text().splitlines() if " · 20" in line and " ago · " in line), "")


def place(terminal):
    """The time of the sample, as in the line."""
    found = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", status(terminal))
    return found and found.group()


def is_there(terminal, us):
    terminal.until(lambda: place(terminal) == local(us), f"sample of {local(us)}")


TAPE = record("a.tape", "-n", "0.25", "--duration", "6s")
TAKEN = times(TAPE)
add_event(TAPE, TAKEN[8] + 1, "xid", "Xid 79: fallen off the \x1b[31mbus")
add_event(TAPE, TAKEN[16] + 1, "throttle", "limited by heat")


@test
def it_plays_from_the_beginning():
    with Terminal("replay", TAPE) as terminal:
        terminal.see("playing 1x")
        terminal.see("recorded ")
        assert place(terminal) >= local(TAKEN[0])
        terminal.see(datetime.fromtimestamp(TAKEN[0] / 1e6).strftime("%H:%M:%S "))  # where the timeline begins
        terminal.see("end of the recording")
        is_there(terminal, TAKEN[-1])
        terminal.until(lambda: shows(terminal, watts(TAPE)), "last sample")
        terminal.keys("q")
        assert terminal.wait() == 0
        terminal.clean()


@test
def it_steps_through_the_samples():
    with Terminal("replay", TAPE, "--speed", "0.25", size=(120, 40)) as terminal:
        terminal.see("playing 0.25x")
        terminal.keys(" ")
        terminal.see("PAUSED · ")
        first = place(terminal)
        for _ in range(9):
            terminal.keys("]")
            time.sleep(0.3)  # slower than a key that is held
        terminal.until(lambda: place(terminal) > first, "later sample")
        while place(terminal) > local(TAKEN[0]):
            before = status(terminal)
            terminal.keys("[[[")
            terminal.until(lambda: status(terminal) != before or place(terminal) == local(TAKEN[0]), "earlier sample")
        is_there(terminal, TAKEN[0])
        terminal.keys("}")
        is_there(terminal, TAKEN[-1])
        terminal.keys("{")
        is_there(terminal, TAKEN[0])
        terminal.keys("q")
        assert terminal.wait() == 0


@test
def a_value_is_that_of_its_time():
    """What is shown at a time is what query shows at that time."""
    for i in (3, 11, 19):
        at = local(TAKEN[i] + 1000000)
        with Terminal("top", "--tape", TAPE, "--at", at, "-n", "1h", *CONFIG) as terminal:
            wanted = watts(TAPE, at)
            assert wanted
            terminal.until(lambda: place(terminal) and shows(terminal, wanted), f"{wanted} W")


@test
def it_jumps_to_events():
    with Terminal("replay", TAPE, size=(120, 30)) as terminal:
        terminal.see("playing")
        terminal.keys(" ,")
        terminal.see("no earlier event")
        terminal.keys("{.")
        terminal.see("GPU 0: Xid 79: fallen off the ")
        assert "\x1b[31mbus" not in terminal.output.decode(errors="replace")
        is_there(terminal, TAKEN[8])
        terminal.see("PAUSED")
        terminal.keys(".")
        terminal.see("limited by heat")
        is_there(terminal, TAKEN[16])
        terminal.keys(",")
        terminal.see("Xid 79")
        terminal.until(lambda: re.search(r" \d\d:\d\d:\d\d .*!.*▲.* \d\d:\d\d:\d\d", terminal.text()), "marks")


@test
def an_incident_is_seen_step_by_step():
    """Ten samples a second before the loss of a GPU, in a recording with one a second."""
    tape = FOLDER / "incident.tape"
    state = FOLDER / "state"
    state.mkdir(mode=0o700)
    env = dict(os.environ, GPULSE_SIM_STATE=str(state))
    with subprocess.Popen([GPULSE, "--sim", MACHINE, "record", "-q", "-o", tape, "--duration", "7s"], env=env) as recorder:
        time.sleep(4)
        good(run(GPULSE, "sim", "fault", "-m", MACHINE, "--gpu", "1", "lost", env=env))
        assert recorder.wait() == 0
    with Terminal("replay", tape, size=(120, 40)) as terminal:
        terminal.see("playing")
        terminal.keys(" {")
        terminal.see("PAUSED")
        terminal.keys(".")
        terminal.see("GPU is lost")
        seen = []
        for _ in range(8):
            before = status(terminal)
            terminal.keys("[")
            terminal.until(lambda: status(terminal) != before, "earlier sample")
            seen.append(status(terminal))
        brief = [line for line in seen if "sample of an incident" in line]
        assert len(brief) >= 5, seen
        assert all(re.search(r"\d\d:\d\d:\d\d\.\d ", line) for line in brief), brief
        assert shown_watts(terminal)
        terminal.keys("q")
        assert terminal.wait() == 0


@test
def it_goes_to_a_time():
    with Terminal("top", "--tape", TAPE, *CONFIG) as terminal:
        terminal.see("end of the recording")
        terminal.keys(f"g{datetime.fromtimestamp(TAKEN[0] / 1e6 + 2).strftime('%H:%M:%S')}\r")
        terminal.until(lambda: place(terminal) and place(terminal) < local(TAKEN[-1]), "earlier time")
        terminal.keys("g2020-01-01\r")
        terminal.see("the recording begins here")
        terminal.keys("gsoon\r")
        terminal.see("'soon' is not a time")
        terminal.keys("gnow\r")
        terminal.see("the recording ends here")


@test
def speeds():
    with Terminal("replay", TAPE) as terminal:
        terminal.see("playing 1x")
        terminal.keys(" ++-")
        terminal.see("PAUSED")
        terminal.keys("{ ")
        terminal.see("playing 2x")
        terminal.keys("++++++++")
        terminal.see("end of the recording")


@test
def what_was_not_recorded_is_unknown():
    """Between two recordings in a file: neither 0 nor the last value."""
    tape = record("hole.tape", "-n", "0.25", "--duration", "1s")
    time.sleep(9)
    record("hole.tape", "-n", "0.25", "--duration", "1s")
    taken = times(tape)
    gap = max(range(1, len(taken)), key=lambda i: taken[i] - taken[i - 1])
    with Terminal("replay", tape, "--at", local(taken[0] + 1000000)) as terminal:
        terminal.see("playing")
        terminal.keys(f" g{local(taken[gap] - 1000000)}\r")
        terminal.see("nothing recorded")
        lines = [line for line in terminal.text().splitlines() if "/700" in line or re.search(r"H100 80GB HBM3.*\d", line)]
        assert not lines, lines
        terminal.keys("]")
        is_there(terminal, taken[gap])
        assert shown_watts(terminal)
        terminal.keys("[")
        is_there(terminal, taken[gap - 1])
        terminal.keys("q")
        assert terminal.wait() == 0


@test
def it_follows_a_recording_that_grows():
    tape = FOLDER / "growing.tape"
    recorder = subprocess.Popen([GPULSE, "--sim", MACHINE, "record", "-q", "-o", tape, "-n", "0.25"],
                                stdin=subprocess.DEVNULL)
    try:
        while not tape.exists() or gpulse("status", "--tape", tape).returncode != 0:
            assert recorder.poll() is None
            time.sleep(0.1)
        with Terminal("top", "--tape", tape, *CONFIG) as terminal:
            terminal.see("recording now")
            first = place(terminal)
            terminal.until(lambda: place(terminal) > first, "newer sample")
            terminal.keys("[ ")
            terminal.see("playing 1x")
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.wait()


@test
def nothing_of_this_machine_is_shown():
    """A recorded process has the pid of one that runs here, whose environment and threads could be read."""
    tape = FOLDER / "pid.tape"
    shutil.copy(TAPE, tape)
    with database(tape) as db:
        db.execute("UPDATE process SET command = 'a-recorded-command', user = 'somebody'")
        db.commit()
    with Terminal("top", "--tape", tape, *CONFIG, "-n", "1h", size=(120, 50)) as terminal:
        terminal.see("a-recorded-command")
        for key, words in (("k", "signals are only sent"), ("a", "settings can only"), ("e", "environments are not")):
            terminal.keys(key)
            terminal.see(words)
        terminal.keys("\r")
        terminal.see("nothing else is recorded of it")
        terminal.keys("q\t\r")
        terminal.see(" · m: next graph")
        assert "adjust" not in terminal.text() and "what limits it" not in terminal.text()
        terminal.keys("q?")
        terminal.see("previous sample")
        terminal.keys("qq")
        assert terminal.wait() == 0


@test
def commands_that_inspect_processes_refuse():
    for words in (("ps", "--holders"), ("ps", "--env"), ("ps", "--explain"), ("advise",), ("why", "train.py")):
        result = gpulse("--tape", TAPE, *words)
        assert result.returncode == 2 and "recording" in result.stderr, (words, result)
    for words in (("-pm", "1"), ("-pl", "300"), ("--dry-run", "-pl", "300"), ("-r",), ("mig", "-cgi", "9"),
                  ("topo", "-m"), ("nvlink", "-s"), ("clocks",)):
        result = gpulse("--tape", TAPE, "smi", *words)
        assert result.returncode == 3 and "not on a recording" in result.stdout, (words, result)


@test
def commands_that_show_a_recording():
    assert "MiB" in good(gpulse("mem", "--tape", TAPE))
    assert "# gpu" in good(gpulse("--tape", TAPE, "smi", "pmon", "-c", "1"))
    for words in ((), ("-q",), ("-q", "-x"), ("--query-gpu=power.draw", "--format=csv"), ("dmon", "-c", "1")):
        good(gpulse("--tape", TAPE, "smi", *words))
    said = good(gpulse("why", "--tape", TAPE))
    assert "GPU 0" in said and "reserved by process" not in said, said
    assert "samples" in good(gpulse("why", "--tape", TAPE, "--at", "start", "--for", "2s"))
    good(gpulse("why", "--tape", TAPE, "-f", "json"))


@test
def without_a_terminal_it_prints_lines():
    lines = good(gpulse("replay", TAPE))
    assert lines.count("H100") >= 2, lines


@test
def wrong_words_are_refused():
    for words, wanted in (
            ((), "missing recording"), ((TAPE, TAPE), "one recording"), ((TAPE, "--speed", "0"), "0.25 to 64"),
            ((TAPE, "--speed", "fast"), "0.25 to 64"), ((TAPE, "--speed", "65"), "0.25 to 64"),
            ((TAPE, "--at", "2020-01-01"), "nothing was recorded"), ((TAPE, "--at", "soon"), "is not a time")):
        result = gpulse("replay", *words)
        assert result.returncode == 2 and wanted in result.stderr, (words, result)
    result = gpulse("replay", FOLDER / "none.tape")
    assert result.returncode == 1 and "No such file" in result.stderr, result
    result = gpulse("--tape", TAPE, "replay")
    assert result.returncode == 2 and "after the command" in result.stderr, result
    with Terminal("replay", FOLDER / "none.tape") as terminal:
        assert terminal.wait() == 1
        assert "No such file" in terminal.text() and b"\x1b[?1049h" not in terminal.output


@atexit.register
def clean_up():
    shutil.rmtree(FOLDER, ignore_errors=True)


main()
