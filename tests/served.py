"""For tests/check_serve*.py: gpulse serve on the simulated driver."""
import contextlib
import json
import os
import subprocess
import tempfile
from pathlib import Path

from tap import GPULSE

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
STATE = tempfile.mkdtemp(prefix="gpulse-serve-")
ENV = dict(os.environ, GPULSE_SIM="h100x8", GPULSE_SIM_STILL="1", GPULSE_SIM_STATE=STATE)


class Server:
    def __init__(self, *options, **env):
        self.process = subprocess.Popen([GPULSE, *options, "serve", "--stdio"], env=dict(ENV, **env),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.notes = []
        self.last_id = 0

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), (line, self.process.stderr.read())
        return json.loads(line)

    def answer(self):
        """The next answer; notifications before it are kept."""
        while "method" in (message := self.read()):
            self.notes.append(message)
        return message

    def ask(self, method, params=None):
        self.last_id += 1
        request = {"jsonrpc": "2.0", "id": self.last_id, "method": method}
        if params is not None:
            request["params"] = params
        self.write(json.dumps(request).encode() + b"\n")
        answer = self.answer()
        assert answer["jsonrpc"] == "2.0" and answer["id"] == self.last_id, answer
        return answer

    def call(self, method, **params):
        answer = self.ask(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    def note(self):
        return self.notes.pop(0) if self.notes else self.read()

    def end(self):
        """What it still writes after the end of its input."""
        rest, messages = self.process.communicate()
        assert (self.process.returncode, messages) == (0, b""), (self.process.returncode, messages)
        return [json.loads(line) for line in rest.splitlines()]


@contextlib.contextmanager
def server(*options, **env):
    served = Server(*options, **env)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.kill()
        served.process.communicate()


def told(lines, **env):
    """What it answers to these bytes."""
    r = subprocess.run([GPULSE, "serve", "--stdio"], input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       env=dict(ENV, **env), timeout=600, check=False)
    assert (r.returncode, r.stderr) == (0, b""), r
    return [json.loads(line) for line in r.stdout.splitlines()]


def schemas():
    """jsonschema, and the schemas of serve and of events; None without jsonschema."""
    try:
        import jsonschema
    except ImportError:
        return None
    found = {name: json.loads((SOURCE / f"data/schema/gpulse.{name}-1.json").read_text()) for name in ("serve", "event")}
    return jsonschema, found
