"""A program in a terminal of its own (a pty, read by a terminal emulator), for tests of gpulse top."""
import contextlib
import errno
import fcntl
import os
import pty
import select
import signal
import struct
import tempfile
import termios
import time
from pathlib import Path

from tap import GPULSE, Skip, needs_terminal, system_module

pyte = system_module("pyte")

LIMIT_S = 600  # only a broken program meets it

scratch = tempfile.TemporaryDirectory()
SCRATCH = Path(scratch.name)
states = 0


def new_state():
    """A state of simulated machines of its own."""
    global states
    states += 1
    path = SCRATCH / f"state{states}"
    path.mkdir(mode=0o700)
    return str(path)


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, *words, size=(80, 24), term="xterm-256color", command=None, **environment):
        if not pyte:
            raise Skip("no pyte, the terminal emulator: install python3-pyte")
        needs_terminal()
        self.size = size
        self.screen = pyte.Screen(*size)
        self.stream = pyte.ByteStream(self.screen)
        self.output = b""
        self.status = None
        env = {**os.environ, "TERM": term, "LC_ALL": "C.UTF-8", "GPULSE_SIM_STATE": new_state(),
               **environment}
        if "NO_COLOR" not in environment:
            env.pop("NO_COLOR", None)
        if term is None:
            del env["TERM"]
        is_noted, note = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.close(note)
            os.read(is_noted, 1)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            command = command or [GPULSE, *map(str, words)]
            os.execvpe(command[0], command, env)
        self.before = termios.tcgetattr(self.fd)
        os.close(is_noted)
        os.close(note)

    def take(self, wait_s=0.05):
        """Reads what is there; False at the end of the output."""
        ready, _, _ = select.select([self.fd], [], [], wait_s)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return False
        self.output += data
        self.stream.feed(data)
        return bool(data)

    def skip(self, wait_s=0.01):
        """Reads what is there without looking at it: the emulator is slow."""
        with contextlib.suppress(OSError):  # the end
            while select.select([self.fd], [], [], wait_s)[0]:
                os.read(self.fd, 1 << 20)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, condition, what):
        end = time.monotonic() + LIMIT_S
        while not condition():
            assert self.take() or condition(), f"ended before {what}:\n{self.text()}"
            assert time.monotonic() < end, f"no {what} in\n{self.text()}"

    def see(self, words):
        self.until(lambda: words in self.text(), f"'{words}'")

    def not_see(self, words):
        self.until(lambda: words not in self.text(), f"end of '{words}'")

    def is_whole(self):
        """Nothing of the last picture is still to come: it may be read in several pieces."""
        return self.output.rfind(b"\x1b[?2026l") > self.output.rfind(b"\x1b[?2026h")

    def keys(self, keys):
        os.write(self.fd, keys.encode())

    def resize(self, width, height):
        self.size = (width, height)
        self.screen.resize(height, width)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def wait(self):
        """Reads to the end; the exit status, or minus the signal."""
        end = time.monotonic() + LIMIT_S
        while self.take():
            assert time.monotonic() < end, f"does not end:\n{self.text()}"
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def clean(self):
        """The terminal is as it was before the program took it."""
        assert self.output.rindex(b"\x1b[?1049l") > self.output.rindex(b"\x1b[?1049h"), "alternate screen"
        assert self.output.rindex(b"\x1b[?25h") > self.output.rindex(b"\x1b[?25l"), "cursor"
        assert termios.tcgetattr(self.fd) == self.before, "settings of the terminal"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
