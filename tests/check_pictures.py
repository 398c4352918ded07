#!/usr/bin/env python3
"""The animated session in docs/pictures/kill.svg: the program prints what tests/golden/session-kill.txt says, apart
from pids, users and times. GPULSE_GOLDEN=write makes the file anew; scripts/pictures.py draws it.

variants: asan
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from tap import GPULSE, good, gpulse, main, needs_terminal, run, test

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
SESSION = ROOT / "tests/golden/session-kill.txt"
JOB = "finetune.py"
COLUMNS = 80
LEFT = ("USER", "CONTAINER", "COMMAND")  # columns that are aligned at the left


def on_terminal(command, answer, env):
    """What a command prints on a terminal, including the answer to its question."""
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 30, COLUMNS, 0, 0))
    program = subprocess.Popen(command, stdin=writer, stdout=writer, stderr=writer, env=env)
    os.close(writer)
    text = b""
    while True:
        try:
            data = os.read(reader, 4096)
        except OSError:  # the end
            break
        text += data
        if answer and text.endswith(b"[y/N] "):
            os.write(reader, answer)
            answer = None
    os.close(reader)
    assert program.wait() == 0, text
    return text.decode().replace("\r\n", "\n")


def aligned(rows):
    """The lines of a table, whose first row is the heading, with columns as wide as their values."""
    rows = [re.split(r"\s{2,}", row.strip()) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(f"{text:{'<' if title in LEFT else '>'}{width}}"
                        for text, title, width in zip(row, rows[0], widths)).rstrip()


def masked(text):
    """The text, with pids, users and times that are always the same."""
    text = re.sub(rf"({JOB})\b[^\n]*", r"\1", text)
    pids = list(dict.fromkeys(re.findall(r"^ *(\d+)  ", text, re.M)))
    for number, pid in enumerate(pids):
        text = re.sub(rf"\b{pid}\b", f"{4242 + number}", text)
    text = re.sub(r"^( *\d+)  \S+", r"\1  mia", text, flags=re.M)
    text = re.sub(r"\b\d+s(?=  -  )", "7s", text)
    text = re.sub(r"after \d+\.\d s", "after 0.1 s", text)
    lines = text.splitlines()
    table = next((i for i, line in enumerate(lines) if line.strip().startswith("PID  ")), None)
    if table is not None:
        end = next(i for i in range(table, len(lines)) if not re.match(r" *(PID|\d+)  ", lines[i]))
        lines[table:end] = aligned(lines[table:end])
    return "\n".join(lines) + "\n"


def session():
    """What the commands of the session print, on a machine where a job runs on GPU 7."""
    with tempfile.TemporaryDirectory() as state:
        notes = Path(state, "notes")  # other jobs of this computer may have reserved the same GPUs
        notes.mkdir()
        notes.chmod(0o1777)
        env = {**os.environ, "GPULSE_SIM": "h100x8", "GPULSE_SIM_STILL": "1", "GPULSE_SIM_STATE": state,
               "GPULSE_STATE_DIR": str(notes), "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
        # a process that looks for leaks at its end has one more child then
        job = subprocess.Popen([GPULSE, "sim", "load", "--gpu", "7", "--mem", "60GiB", "--util", "93", "--workers", "2",
                                "--name", f"python {JOB}"], env=env | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"},
                               stdout=subprocess.PIPE)
        try:
            assert b"holds" in job.stdout.readline()
            kill = ["kill", "--name", JOB, "--tree"]
            while gpulse(*kill, "--dry-run", env=env).stdout.count(JOB) < 3:
                assert job.poll() is None, "the job has ended"  # its workers are starting
            printed = []
            for words, answer in ((kill, b"y\n"), (["status", "-i", "7", "--no-header"], None)):
                text = masked(on_terminal([GPULSE, *words], answer, env))
                printed.append(f"$ gpulse {' '.join(words)}\n{text}")
        finally:
            job.kill()
            job.wait()
    return "".join(printed)


@test
def the_session_is_what_the_program_prints():
    needs_terminal()
    printed = session()
    if os.environ.get("GPULSE_GOLDEN") == "write":
        SESSION.write_text(printed)
    assert printed == SESSION.read_text(), printed
    assert all(len(line) <= COLUMNS for line in printed.splitlines()), printed


@test
def pictures_are_those_of_the_program():
    good(run(sys.executable, ROOT / "scripts/pictures.py", "--check"))
    for picture in (ROOT / "docs/pictures").iterdir():
        assert picture.stat().st_size < 1 << 20, picture


main()
